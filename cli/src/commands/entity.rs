//! Parts of an entity that several commands show.

use runwarden_host::Host;
use runwarden_host::model::{Bytes, DurationMs, Entity, Timestamp, signal_name};
use runwarden_host::verbs::{Standing, standing, standings};
use serde_json::Value;

use crate::context::Context;
use crate::errors::Outcome;
use crate::output::{Page, between, span};

/// The entity as it is now: an end that nobody recorded yet is read from its run directory. Where it cannot be recorded,
/// the entity as it is stored, with a warning.
pub(super) fn settled(context: &Context, host: &Host, entity: Entity) -> Outcome<Entity> {
    if entity.terminal {
        return Ok(entity);
    }
    Ok(told(context, standing(host, entity)?))
}

/// The same for a listing, in its order.
pub(super) fn settled_all(context: &Context, host: &Host, entities: Vec<Entity>) -> Outcome<Vec<Entity>> {
    let found = standings(host, entities)?;
    Ok(found.into_iter().map(|found| told(context, found)).collect())
}

fn told(context: &Context, found: Standing) -> Entity {
    if let Standing::EndWaits(entity) = &found {
        context.warn_that_an_end_waits(&entity.reference);
    }
    found.into_entity()
}

/// How it ended, in a word or two: `exit 7`, `SIGKILL`, `timeout`.
pub(super) fn cause(entity: &Entity) -> String {
    let (code, signal) = (entity.structural.exit_code, entity.structural.term_signal);
    match (entity.structural.cause.as_deref(), code, signal) {
        (None | Some("exit"), Some(code), _) => format!("exit {code}"),
        (None | Some("signal"), _, Some(signal)) => signal_name(signal),
        (Some(cause), ..) => cause.to_owned(),
        (None, None, None) => String::new(),
    }
}

/// How long it has been going, or how long the work took where that was measured.
pub(super) fn duration(entity: &Entity, page: &Page) -> String {
    if let Some(measured) = entity.field("duration_ms").as_i64().filter(|_| entity.terminal) {
        return span(DurationMs::from_ms(measured));
    }
    let ended = entity
        .structural
        .ended_at
        .or(entity.terminal.then_some(entity.updated_at));
    between(entity.created_at, ended.unwrap_or(page.now))
}

/// When it ended; its last write where it does not say.
pub(super) fn ended_at(entity: &Entity) -> Timestamp {
    entity.structural.ended_at.unwrap_or(entity.updated_at)
}

/// A stored command as it would be typed.
pub(super) fn command_line(argv: &Value) -> String {
    let words = argv.as_array().map(Vec::as_slice).unwrap_or_default();
    words
        .iter()
        .map(|word| quoted(&text_of(word)))
        .collect::<Vec<_>>()
        .join(" ")
}

/// A stored string of bytes, as text.
pub(super) fn text_of(value: &Value) -> String {
    serde_json::from_value::<Bytes>(value.clone())
        .map(|bytes| bytes.lossy())
        .unwrap_or_default()
}

/// A word as a shell would read it back.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "@%+=:,./-_".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        let argv = serde_json::json!(["sh", "-c", "echo 'a b'", "", {"base64": "/w=="}]);
        assert_eq!(command_line(&argv), r"sh -c 'echo '\''a b'\''' '' '�'");
        assert_eq!(command_line(&Value::Null), "");
    }
}
