//! How work is queued, on the command line: one set of options for whatever puts work into a queue.

use std::ffi::OsString;

use jiff::ZonedDateTime;
use runwarden_host::model::{Create, DurationMs, QUEUE_DEFAULT, Timestamp, validate_id};
use runwarden_host::verbs::known_kind;
use runwarden_host::verbs::lease::Submission;
use runwarden_host::{Host, QueueTerms};

use crate::context::{meant, operator, own_id};
use crate::errors::{Failure, Outcome};
use crate::parse;
use crate::work::WorkArgs;

/// The kind that queued work is, unless another is named.
const KIND: &str = "schedule_run";

/// The kind of the run that a worker makes for each attempt.
const RUN_KIND: &str = "session";

/// How work is queued.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct QueueArgs {
    /// The kind of entity: any whose policy has a lease rule
    #[arg(long, value_name = "KIND", default_value = KIND, help_heading = "What it is")]
    pub(crate) kind: String,
    /// The kind of the run that a worker makes for each attempt: any whose policy has an execution rule
    #[arg(long, value_name = "KIND", default_value = RUN_KIND, help_heading = "What it is")]
    pub(crate) run_kind: String,
    /// Queue it under this installed policy, such as schedule_run@1 [default: the active one of its kind]
    #[arg(long, value_name = "NAME@VERSION", help_heading = "What it is")]
    pub(crate) policy: Option<String>,
    /// The queue
    #[arg(long, value_name = "Q", default_value = QUEUE_DEFAULT, value_parser = queue_name, help_heading = "When it runs")]
    pub(crate) queue: String,
    /// Higher is taken first; equal ones in order of submission
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        allow_negative_numbers = true,
        help_heading = "When it runs"
    )]
    pub(crate) priority: i64,
    /// How many starts, whatever ended the earlier ones [default: as its policy says, 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "When it runs")]
    pub(crate) attempts: Option<u32>,
    /// For how long a worker that is not heard of keeps it [default: as its policy says, 300s]
    #[arg(long, value_name = "D", value_parser = parse::duration, allow_negative_numbers = true, help_heading = "When it runs")]
    pub(crate) lease: Option<DurationMs>,
    /// One live entity of the store has this key: a second one is refused
    #[arg(long, value_name = "K", value_parser = clap::builder::NonEmptyStringValueParser::new(), help_heading = "When it runs")]
    pub(crate) unique_key: Option<String>,
}

/// The name of a queue: as an id is spelled.
pub(crate) fn queue_name(word: &str) -> Result<String, String> {
    validate_id(word).map_err(|problem| problem.to_string())?;
    Ok(word.to_owned())
}

/// A moment to come, as typed.
pub(crate) fn moment(word: &str) -> Result<Timestamp, String> {
    parse::moment(word, &ZonedDateTime::now())
}

impl QueueArgs {
    /// What is put into the queue, without what it waits for; the id is still to be given or drawn.
    ///
    /// # Errors
    /// The kind is unknown, a parent is not there, or the working directory cannot be named.
    pub(crate) fn submission(&self, host: &Host, work: &WorkArgs, argv: &[OsString]) -> Outcome<Submission> {
        let kind = known_kind(host, &self.kind)?;
        let mut create = Create::new(&kind, "", operator());
        create.name.clone_from(&work.name);
        create.tags = work.tags.iter().cloned().collect();
        for word in &work.parents {
            create.parents.push(meant(host, word)?.reference);
        }
        let (id, choice) = work.own_id(host)?;
        create.id = id;
        let mut stored = work.work(argv)?;
        if stored.argv.is_empty() {
            return Err(Failure::usage("no program is given").hint("put it after --"));
        }
        stored.queue = Some(QueueTerms {
            run_kind: known_kind(host, &self.run_kind)?,
            lease_ms: self.lease,
            attempts: self.attempts.map(i64::from),
            not_before: None,
        });
        Ok(Submission {
            create,
            id: choice,
            policy: self.policy.clone(),
            work: stored,
            queue: self.queue.clone(),
            priority: self.priority,
            after: Vec::new(),
            not_before: None,
            unique_key: self.unique_key.clone(),
        })
    }
}

/// The run that this command is inside of, for what it submits: linked below it unless it says otherwise.
pub(crate) fn claimed_parent(work: &WorkArgs) -> Option<String> {
    own_id().filter(|_| work.parents.is_empty() && !work.no_parent)
}
