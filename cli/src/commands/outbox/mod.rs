//! `outbox`: notices on their way, and who outside is owed the events they tell.

mod ack;
mod consumer;
mod deliver;
mod ls;
mod purge;
mod retry;
mod send;
mod show;

use runwarden_host::Host;
use runwarden_host::model::{Bytes, DISPATCH_KIND, DestinationHealth, Entity};
use runwarden_host::store::Outline;
use serde_json::{Value, json};

use crate::app::report;
use crate::context::{Context, meant};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;

/// See and steer notices: list, send, acknowledge, retry, purge, deliver; consumers
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// The commands about notices.
#[derive(Debug, clap::Subcommand)]
enum Command {
    Ls(ls::Args),
    Show(show::Args),
    Send(send::Args),
    Ack(ack::Args),
    Retry(retry::Args),
    Purge(purge::Args),
    Deliver(deliver::Args),
    Consumer(consumer::Args),
}

/// Does what one of them says.
pub(crate) fn execute(context: &Context, args: Args) -> Exit {
    match args.command {
        Command::Ls(args) => report(context, ls::execute(context, &args)),
        Command::Show(args) => report(context, show::execute(context, &args)),
        Command::Send(args) => report(context, send::execute(context, &args)),
        Command::Ack(args) => report(context, ack::execute(context, &args)),
        Command::Retry(args) => report(context, retry::execute(context, &args)),
        Command::Purge(args) => report(context, purge::execute(context, &args)),
        Command::Deliver(args) => report(context, deliver::execute(context, &args)),
        Command::Consumer(args) => consumer::execute(context, args),
    }
}

/// The dispatch that a word means.
fn dispatch_meant(host: &Host, word: &str) -> Outcome<Entity> {
    let entity = if word.contains('/') {
        meant(host, word)?
    } else {
        meant(host, &format!("{DISPATCH_KIND}/{word}"))?
    };
    if entity.reference.kind == DISPATCH_KIND {
        return Ok(entity);
    }
    Err(Failure::usage(format!("{} is no dispatch", entity.reference)).hint("`runwarden outbox ls` lists them"))
}

/// The destinations that are paused, and until when nothing is sent there.
fn paused(host: &Host) -> Outcome<Vec<DestinationHealth>> {
    let mut healths = host.store().destinations()?;
    healths.retain(|health| health.paused_until.is_some_and(|until| until > host.now()));
    Ok(healths)
}

/// The pause that a dispatch waits for.
fn pause<'a>(paused: &'a [DestinationHealth], entity: &Entity, outline: &Outline) -> Option<&'a DestinationHealth> {
    let digest = &outline.dispatch.target_digest;
    let mut paused = paused.iter().filter(|_| !entity.terminal);
    paused.find(|health| health.target_digest == *digest)
}

/// Why nothing is sent to a destination for now, for people.
fn pause_text(health: &DestinationHealth) -> String {
    let error = health.last_error.as_deref().unwrap_or("it failed");
    format!("paused after {} failures, the last: {error}", health.failures)
}

/// A dispatch as JSON, without its body.
fn dispatch_json(entity: &Entity, outline: &Outline, pause: Option<&DestinationHealth>) -> Value {
    let pause = pause.map(|health| {
        json!({
            "until": health.paused_until.map(|until| until.to_rfc3339()),
            "failures": health.failures,
            "last_error": health.last_error,
        })
    });
    let dispatch = &outline.dispatch;
    json!({
        "ref": entity.reference.to_string(),
        "id": entity.reference.id,
        "status": entity.status,
        "terminal": entity.terminal,
        "success": entity.success,
        "version": entity.version,
        "reason": entity.reason,
        "attempt": entity.structural.attempt,
        "next_attempt_at": entity.due_at().map(|due| due.to_rfc3339()),
        "last_error": entity.field("last_error"),
        "destination_paused": pause,
        "event_id": dispatch.event_id,
        "handler": dispatch.handler,
        "destination": dispatch.destination,
        "target": dispatch.target,
        "dedup_key": dispatch.dedup_key,
        "deadline": dispatch.deadline.map(|deadline| deadline.to_rfc3339()),
        "wants_acknowledgement": dispatch.wants_acknowledgement,
        "body_bytes": outline.body_bytes,
        "body_digest": outline.body_digest,
        "created_at": entity.created_at.to_rfc3339(),
        "updated_at": entity.updated_at.to_rfc3339(),
    })
}

/// Where a dispatch goes, for people: `ops/hook`.
fn place(outline: &Outline) -> String {
    let dispatch = &outline.dispatch;
    match &dispatch.handler {
        Some(handler) => format!("{handler}/{}", dispatch.destination),
        None => dispatch.destination.clone(),
    }
}

/// A body: text where it is text.
fn body(bytes: &[u8]) -> Value {
    json!(Bytes(bytes.to_vec()))
}
