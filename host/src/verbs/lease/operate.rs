//! What an operator does to queues and leases by hand.

use serde_json::json;

use super::keep::{fence_off, next_attempt};
use super::terms::{Row, stored_work};
use crate::error::Error;
use crate::host::Host;
use crate::model::lease::Seen;
use crate::model::{Actor, AdminEvent, Entity, Invalid, Reference, Stage};
use crate::store::{NewRun, QueueSetup, Renewal, Renewed, Work as StoredWork};
use crate::verbs::create::{IdChoice, make};

/// Sets a queue up.
///
/// # Errors
/// The store failed; nothing was written.
pub fn set_up(host: &Host, queue: &QueueSetup, actor: &Actor) -> Result<(), Error> {
    let event = AdminEvent {
        id: 0,
        at: host.now(),
        action: "queue_set_up".to_owned(),
        target: Some(queue.name.clone()),
        actor: actor.to_string(),
        details: json!({
            "paused": queue.paused_at.is_some(),
            "note": queue.note,
            "limit": queue.limit,
        }),
    };
    host.store().put_queue(queue, &event)?;
    // Whoever waits for work looks again.
    host.wake();
    Ok(())
}

/// How a renewal by hand came out.
#[derive(Clone, Debug, PartialEq)]
pub enum RenewedByHand {
    /// The lease holds again for its length; the row as it is.
    Extended(Box<Entity>),
    /// It is not held under this token (any more); the row as it is.
    Lost(Box<Entity>),
}

/// Extends the lease of a row by its length, for whoever has its token: a program whose worker is known to be slow.
///
/// # Errors
/// It is no leased work, or the store failed: nothing was written.
pub fn renew_by_hand(host: &Host, entity: Entity, token: i64) -> Result<RenewedByHand, Error> {
    let row = Row::of(host, entity.clone(), None)?.ok_or_else(|| no_leased_work(&entity))?;
    let holder = row.entity.structural.leased_by.clone().unwrap_or_default();
    let at = host.steady_now()?;
    let renewal = Renewal {
        row: row.entity.row,
        fence: token,
        holder,
        until: at.plus(row.terms.lease),
        at,
        late: None,
    };
    let renewed = host.store().renew(&[renewal])?;
    let now = host.store().load(&entity.reference.id)?.unwrap_or(entity);
    Ok(match renewed.first() {
        Some(Renewed::Extended) => RenewedByHand::Extended(Box::new(now)),
        _ => RenewedByHand::Lost(Box::new(now)),
    })
}

/// What an operator's word led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirmed {
    /// The row that was given up.
    pub given_up: Reference,
    /// The attempt that follows, unless there are none left.
    pub successor: Option<Reference>,
}

/// The operator's audited word that nothing of a row's last attempt lives, where that cannot be known from here: a doubted
/// row is fenced, and the attempt that waited for this word follows.
///
/// # Errors
/// The row waits for no such word, or the store failed: nothing was written.
pub fn confirm(host: &Host, entity: Entity, (actor, note): (&Actor, Option<&str>)) -> Result<Confirmed, Error> {
    let row = Row::of(host, entity.clone(), None)?.ok_or_else(|| no_leased_work(&entity))?;
    let given_up = row.entity.reference.clone();
    let words = format!(
        "{actor} says that nothing of it lives{}",
        note.map(|note| format!(": {note}")).unwrap_or_default()
    );
    let event = AdminEvent {
        id: 0,
        at: host.now(),
        action: "lease_confirmed_stopped".to_owned(),
        target: Some(given_up.to_string()),
        actor: actor.to_string(),
        details: json!({"note": note, "fence": row.entity.fence, "leased_by": row.entity.structural.leased_by}),
    };
    let stage = row.entity.queued.as_ref().and_then(|queued| queued.stage);
    if stage == Some(Stage::Doubted) {
        host.store().record(&[event], &[])?;
        let kept = fence_off(host, &row, &Seen::Confirmed(words), host.steady_now()?)?;
        let successor = host
            .store()
            .successor(&row.entity)?
            .map(|successor| successor.reference);
        return match kept {
            Some(_) => Ok(Confirmed { given_up, successor }),
            None => Err(nothing_to_confirm(&entity, "it changed meanwhile")),
        };
    }
    if !is_given_up(&row) {
        return Err(nothing_to_confirm(&entity, "its holder is not in doubt"));
    }
    host.store().record(&[event], &[])?;
    let selected = host.policies().pinned(&row.entity.policy)?;
    let selected = selected.ok_or_else(|| Error::UnknownPolicy {
        word: row.entity.policy.digest.clone(),
    })?;
    let command = next_attempt(host, &row.entity, &row.lifecycle)?;
    let work = stored_work(host, &row.entity)?;
    let made = make(host, &command, IdChoice::Drawn, &selected, |_| {
        Some(NewRun {
            runtime: None,
            work: StoredWork(json!(work)),
            directories: Vec::new(),
            lease: None,
            after: Vec::new(),
        })
    })?;
    Ok(Confirmed {
        given_up,
        successor: Some(made.entity.reference),
    })
}

/// Whether a row was fenced while its holder could not be shown to be stopped, and nothing follows it yet.
pub(super) fn is_given_up(row: &Row) -> bool {
    let rule = row.lifecycle.descriptor().lease.as_ref();
    let fenced = rule.and_then(|rule| rule.fenced.as_ref());
    fenced.is_some_and(|fenced| fenced.status == row.entity.status && fenced.code == row.entity.reason.code)
}

fn no_leased_work(entity: &Entity) -> Error {
    let message = format!("{} is no work that was queued", entity.reference);
    Invalid::new("kind", message, Some("`runwarden queue ls` shows what is".to_owned())).into()
}

fn nothing_to_confirm(entity: &Entity, why: &str) -> Error {
    let message = format!(
        "{} waits for no confirmation: {why} (it is {})",
        entity.reference, entity.status
    );
    Invalid::new(
        "status",
        message,
        Some(format!("`runwarden why {}` says how it is", entity.reference)),
    )
    .into()
}
