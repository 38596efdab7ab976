//! `queue pause`, `queue resume`, `queue limit`: how a queue is set up.

use runwarden_host::Host;
use runwarden_host::store::QueueSetup;
use runwarden_host::verbs::lease::set_up;
use serde_json::{Value, json};

use crate::context::{Context, operator};
use crate::errors::Outcome;
use crate::output::{Page, Report, Text};
use crate::queueing::queue_name;

/// Take nothing from a queue any more; what runs goes on
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = PAUSE_EXAMPLES)]
pub(crate) struct PauseArgs {
    /// The queue; it need not have anything in it
    #[arg(value_name = "Q", value_parser = queue_name)]
    queue: String,
    /// Why, in words
    #[arg(long, value_name = "T")]
    note: Option<String>,
}

const PAUSE_EXAMPLES: &str = "EXAMPLES
  runwarden queue pause builds
  runwarden queue pause builds --note 'the registry is down'";

/// Take from a queue again
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  runwarden queue resume builds")]
pub(crate) struct ResumeArgs {
    /// The queue
    #[arg(value_name = "Q", value_parser = queue_name)]
    queue: String,
}

/// Bound how much of a queue is held at once, by all workers together
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = LIMIT_EXAMPLES)]
pub(crate) struct LimitArgs {
    /// The queue
    #[arg(value_name = "Q", value_parser = queue_name)]
    queue: String,
    /// At most so many; none: no limit
    #[arg(value_name = "N|none", value_parser = limit_word)]
    limit: Limit,
}

const LIMIT_EXAMPLES: &str = "EXAMPLES
  runwarden queue limit builds 2
  runwarden queue limit builds none

What is held already goes on. Work whose worker is not heard of counts until it is known to be stopped.";

#[derive(Clone, Copy, Debug)]
enum Limit {
    None,
    At(u32),
}

fn limit_word(word: &str) -> Result<Limit, String> {
    if word == "none" {
        return Ok(Limit::None);
    }
    match word.parse() {
        Ok(limit @ 1..) => Ok(Limit::At(limit)),
        _ => Err("write a number from 1 on, or none; `queue pause` takes nothing at all".to_owned()),
    }
}

/// A queue as it is set up now.
pub(crate) struct Set(QueueSetup);

pub(super) fn pause(context: &Context, args: &PauseArgs) -> Outcome<Set> {
    changed(context, &args.queue, |host, setup| {
        setup.paused_at = setup.paused_at.or_else(|| Some(host.now()));
        setup.note.clone_from(&args.note);
    })
}

pub(super) fn resume(context: &Context, args: &ResumeArgs) -> Outcome<Set> {
    changed(context, &args.queue, |_, setup| {
        setup.paused_at = None;
        setup.note = None;
    })
}

pub(super) fn limit(context: &Context, args: &LimitArgs) -> Outcome<Set> {
    changed(context, &args.queue, |_, setup| {
        setup.limit = match args.limit {
            Limit::None => None,
            Limit::At(limit) => Some(i64::from(limit)),
        };
    })
}

fn changed(context: &Context, name: &str, change: impl FnOnce(&Host, &mut QueueSetup)) -> Outcome<Set> {
    let host = context.create()?;
    let known = host
        .store()
        .queues()?
        .into_iter()
        .find(|queue| queue.setup.name == name);
    let mut setup = known.map(|queue| queue.setup).unwrap_or_else(|| QueueSetup {
        name: name.to_owned(),
        ..QueueSetup::default()
    });
    change(&host, &mut setup);
    set_up(&host, &setup, &operator())?;
    Ok(Set(setup))
}

impl Report for Set {
    fn json(&self) -> Value {
        let setup = &self.0;
        json!({
            "queue": setup.name,
            "paused": setup.paused_at.is_some(),
            "paused_at": setup.paused_at.map(|at| at.to_rfc3339()),
            "note": setup.note,
            "limit": setup.limit,
        })
    }

    fn text(&self, _: &Page) -> Text {
        let setup = &self.0;
        let paused = if setup.paused_at.is_some() {
            "is paused"
        } else {
            "is taken from"
        };
        let limit = match setup.limit {
            Some(limit) => format!(", at most {limit} at once"),
            None => String::new(),
        };
        Text::of(format!("{} {paused}{limit}", setup.name))
    }
}
