//! `transition`: moves an entity to a status, if its policy allows.

use runwarden_host::model::{Actor, Override, Reason, Transition};
use runwarden_host::verbs::{TransitionOutcome, transition, transition_dry_run};
use serde_json::{Value, json};

use crate::context::{Context, meant, operator};
use crate::errors::Outcome;
use crate::exit::Exit;
use crate::output::{Page, Report, Style, Text};
use crate::parse;

/// Move an entity to a status, if its policy allows
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The entity: kind/id, an id, a prefix of one, a name, @, @failed or @self
    #[arg(value_name = "REF")]
    reference: String,
    /// The status asked for
    status: String,
    /// Why, as a code that the policy admits
    #[arg(long, value_name = "CODE", required = true, help_heading = "Why and by whom")]
    reason: String,
    /// Why, in words
    #[arg(long, value_name = "T", help_heading = "Why and by whom")]
    summary: Option<String>,
    /// What was observed
    #[arg(long, value_name = "JSON", value_parser = parse::evidence, help_heading = "Why and by whom")]
    evidence: Vec<Value>,
    /// An object kept with the history row
    #[arg(long, value_name = "JSON", value_parser = parse::object, help_heading = "Why and by whom")]
    metadata: Option<Value>,
    /// Who asks [default: operator:USER]
    #[arg(long, value_name = "KIND:ID", value_parser = parse::actor, help_heading = "Why and by whom")]
    actor: Option<Actor>,
    /// Set a field in the same write
    #[arg(long = "set", value_name = "K=JSON", value_parser = parse::json_pair, help_heading = "The write")]
    patch: Vec<(String, Value)>,
    /// Makes the command safe to repeat
    #[arg(long, value_name = "K", help_heading = "The write")]
    idempotency_key: Option<String>,
    /// Say what would happen and why, and change nothing
    #[arg(long, help_heading = "The write")]
    dry_run: bool,
    /// Only if a field has this value now
    #[arg(long = "guard", value_name = "K=JSON", value_parser = parse::json_pair, help_heading = "Expectations")]
    guards: Vec<(String, Value)>,
    /// Only if it has this status now; several admit any of them
    #[arg(long, value_name = "STATUS", help_heading = "Expectations")]
    expect: Vec<String>,
    /// Only if it has this version now
    #[arg(long, value_name = "N", help_heading = "Expectations")]
    expect_version: Option<i64>,
    /// Leave a terminal status or cross a missing edge; it is audited
    #[arg(
        long = "override",
        requires = "override_actor",
        requires = "justification",
        help_heading = "Override"
    )]
    overriding: bool,
    /// Who takes responsibility
    #[arg(long, value_name = "A", requires = "overriding", help_heading = "Override")]
    override_actor: Option<String>,
    /// Why the rule is overridden
    #[arg(long, value_name = "T", requires = "overriding", help_heading = "Override")]
    justification: Option<String>,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden transition session/7kq2 completed --reason run.completed.ok
  runwarden transition play/release-42 gated --reason play.gated.waiting --expect running_complete
  runwarden transition 7kq2 failed --reason run.failed.exception --set exit_code=3 --dry-run
  runwarden transition 7kq2 running --reason run.started.ok \\
      --override --override-actor ada --justification 'ended by mistake'

EXIT CODES
  0 applied   4 conflict: an expectation did not hold   5 rejected by the policy";

/// How it came out.
pub(crate) struct Moved {
    reference: String,
    target: String,
    outcome: TransitionOutcome,
    tense: Tense,
}

/// Whether it was done or only asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tense {
    /// It was done.
    Done,
    /// It would be done.
    Asked,
}

/// Moves the entity.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Moved> {
    let host = context.open()?;
    let entity = meant(&host, &args.reference)?;
    let command = command(args);
    let (tense, outcome) = if args.dry_run {
        (Tense::Asked, transition_dry_run(&host, &entity, &command)?)
    } else {
        (Tense::Done, transition(&host, &entity, &command)?)
    };
    Ok(Moved::new(&entity.reference.to_string(), &args.status, outcome, tense))
}

fn command(args: &Args) -> Transition {
    let reason = Reason {
        code: args.reason.clone(),
        summary: args.summary.clone(),
        evidence: args.evidence.clone(),
    };
    let mut command = Transition::new(&args.status, reason, args.actor.clone().unwrap_or_else(operator));
    command.metadata = args.metadata.clone().unwrap_or(Value::Null);
    command.patch = args.patch.iter().cloned().collect();
    command.guards = args.guards.iter().cloned().collect();
    // `none` is a status that nothing has: expecting it alone never matches.
    let expected = args.expect.iter().filter(|status| *status != "none").cloned().collect();
    command.expected_statuses = (!args.expect.is_empty()).then_some(expected);
    command.expected_version = args.expect_version;
    command.idempotency_key.clone_from(&args.idempotency_key);
    command.overriding = args.overriding.then(|| Override {
        actor: args.override_actor.clone().unwrap_or_default(),
        justification: args.justification.clone().unwrap_or_default(),
    });
    command
}

impl Moved {
    /// The report of a transition.
    pub(crate) fn new(reference: &str, target: &str, outcome: TransitionOutcome, tense: Tense) -> Self {
        Self {
            reference: reference.to_owned(),
            target: target.to_owned(),
            outcome,
            tense,
        }
    }
}

impl Report for Moved {
    fn json(&self) -> Value {
        let mut document = match &self.outcome {
            TransitionOutcome::Applied {
                previous_status,
                transition_id,
                version,
                status,
                event_id,
                replayed,
                ..
            } => json!({
                "outcome": "applied",
                "ref": self.reference,
                "previous_status": previous_status,
                "status": status,
                "version": version,
                "transition_id": (self.tense == Tense::Done || *replayed).then_some(transition_id),
                "event_id": event_id,
                "code": null,
                "message": null,
                "replayed": replayed,
            }),
            TransitionOutcome::Conflict(conflict) => {
                let found = (&conflict.found.status, conflict.found.version);
                refused("conflict", &self.reference, found, (conflict.code, &conflict.message))
            }
            TransitionOutcome::Rejected(refusal) => {
                let found = (&refusal.found.status, refusal.found.version);
                refused("rejected", &self.reference, found, (&refusal.code, &refusal.message))
            }
        };
        if self.tense == Tense::Asked {
            document["dry_run"] = Value::Bool(true);
        }
        document
    }

    fn text(&self, _: &Page) -> Text {
        let begun = Text::styled(Style::Strong, &self.reference).and(": ");
        let asked = self.tense == Tense::Asked;
        match &self.outcome {
            TransitionOutcome::Applied {
                previous_status,
                version,
                status,
                replayed,
                ..
            } => {
                let from = previous_status.as_deref().unwrap_or("-");
                let words = match (replayed, asked) {
                    (true, _) => format!(" (version {version}, replayed: the key was used before)"),
                    (false, true) => format!(" would be version {version}; nothing was changed"),
                    (false, false) => format!(" (version {version})"),
                };
                begun.and(format!("{from} → {status}{words}"))
            }
            TransitionOutcome::Conflict(conflict) => {
                let found = format!(
                    "; it is {} at version {}",
                    conflict.found.status, conflict.found.version
                );
                begun
                    .and_styled(Style::Notice, "conflict")
                    .and(format!(": {}{found}", conflict.message))
            }
            TransitionOutcome::Rejected(refusal) => {
                let (would, target) = (if asked { "would be " } else { "" }, &self.target);
                let words = format!(
                    ": {} → {target}: {} ({})",
                    refusal.found.status, refusal.message, refusal.code
                );
                begun.and(would).and_styled(Style::Bad, "rejected").and(words)
            }
        }
    }

    fn exit(&self) -> Exit {
        match &self.outcome {
            TransitionOutcome::Applied { .. } => Exit::DONE,
            TransitionOutcome::Conflict(_) => Exit::CONFLICT,
            TransitionOutcome::Rejected(_) => Exit::REJECTED,
        }
    }
}

/// An outcome that left everything as it was.
fn refused(outcome: &str, reference: &str, (status, version): (&String, i64), (code, message): (&str, &str)) -> Value {
    json!({
        "outcome": outcome,
        "ref": reference,
        "previous_status": status,
        "status": status,
        "version": version,
        "transition_id": null,
        "event_id": null,
        "code": code,
        "message": message,
        "replayed": false,
    })
}
