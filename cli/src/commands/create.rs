//! `create`: an entity that no process stands for.

use runwarden_host::model::{Actor, Create, DISPATCH_KIND, Reason};
use runwarden_host::verbs::{EntityView, IdChoice, create, known_kind, view};
use serde_json::Value;

use crate::context::{Context, meant, operator};
use crate::errors::{Failure, Outcome};
use crate::notify::{NotifyArgs, warn, working_directory};
use crate::output::{Page, Report, Text};
use crate::parse;

/// Make an entity without starting anything
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Its kind, such as session or play; plural names are understood
    kind: String,
    /// Its id: letters, digits, `.`, `_`, `-` [default: one is drawn]
    #[arg(long, value_name = "ID", help_heading = "What it is")]
    id: Option<String>,
    /// The status it begins in [default: the policy's first initial one]
    #[arg(long, value_name = "S", help_heading = "What it is")]
    status: Option<String>,
    /// Link it below this entity
    #[arg(long = "parent", value_name = "REF", help_heading = "What it is")]
    parents: Vec<String>,
    /// Set a field, as JSON
    #[arg(long = "field", value_name = "K=JSON", value_parser = parse::json_pair, help_heading = "What it is")]
    fields: Vec<(String, Value)>,
    /// Label it
    #[arg(long = "tag", value_name = "K=V", value_parser = parse::text_pair, help_heading = "What it is")]
    tags: Vec<(String, String)>,
    /// Create it under this installed policy [default: the active one of its kind]
    #[arg(long, value_name = "NAME@VERSION|DIGEST", help_heading = "What it is")]
    policy: Option<String>,
    /// Why, as a code that the policy admits [default: the policy's creation code]
    #[arg(long, value_name = "CODE", help_heading = "Why and by whom")]
    reason: Option<String>,
    /// Why, in words
    #[arg(long, value_name = "T", help_heading = "Why and by whom")]
    summary: Option<String>,
    /// Who asks [default: operator:USER]
    #[arg(long, value_name = "KIND:ID", value_parser = parse::actor, help_heading = "Why and by whom")]
    actor: Option<Actor>,
    /// Makes the command safe to repeat
    #[arg(long, value_name = "K", help_heading = "Why and by whom")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    notify: NotifyArgs,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden create session
  runwarden create play --id release-42 --tag team=core
  runwarden create show --status imported --reason show.imported.created
  runwarden create session --parent play/release-42 --field 'spawn_kind=\"agent\"'
  runwarden create play --notify '[\"mail-me\",\"{payload}\"]'";

/// The entity that was made.
pub(crate) struct Made(EntityView);

/// Makes the entity.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Made> {
    let host = context.create()?;
    let kind = known_kind(&host, &args.kind)?;
    if kind == DISPATCH_KIND {
        return Err(Failure::usage("a dispatch is made with what it delivers")
            .hint("`runwarden outbox send --to DESTINATION JSON` makes one"));
    }
    let (id, choice) = match &args.id {
        Some(id) => (id.clone(), IdChoice::Given),
        None => (host.draw_id()?, IdChoice::Drawn),
    };
    let mut command = Create::new(&kind, &id, args.actor.clone().unwrap_or_else(operator));
    command.status.clone_from(&args.status);
    command.reason = Reason {
        code: args.reason.clone().unwrap_or_default(),
        summary: args.summary.clone(),
        ..Reason::default()
    };
    command.fields = args.fields.iter().cloned().collect();
    command.tags = args.tags.iter().cloned().collect();
    for word in &args.parents {
        command.parents.push(meant(&host, word)?.reference);
    }
    command.idempotency_key.clone_from(&args.idempotency_key);
    let settings = args.notify.resolved(&host, working_directory().as_deref())?;
    warn(context, &settings);
    command.notify = settings.stored();
    command.notify_asked = args.notify.words();
    let made = create(&host, &command, choice, args.policy.as_deref())?;
    Ok(Made(view(&host, made.entity)?))
}

impl Report for Made {
    fn json(&self) -> Value {
        self.0.json.clone()
    }

    fn text(&self, _: &Page) -> Text {
        Text::of(self.0.entity.reference.to_string())
    }
}
