//! One dispatch, once: claimed, sent, and written down what came of it. Each write is a transition like any other.

use std::sync::{Mutex, PoisonError};

use crate::crash;
use crate::error::Error;
use crate::host::{Host, entropy};
use crate::model::outbox::{self, Due};
use crate::model::{Dispatch, Entity, Lifecycle, Sent, Transition};
use crate::notify::{self, Attempt, Surroundings, token, unreadable};
use crate::verbs::transition::{Beside, TransitionOutcome, write};

/// How one dispatch came out of a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tried {
    /// Its transport took it, and nothing more is owed.
    Delivered,
    /// Its transport took it; it waits for its acknowledgement.
    Unacknowledged,
    /// It failed and is tried again.
    Retried(String),
    /// It was given up.
    Dead(String),
    /// Its deadline passed.
    Expired,
    /// It could not be attempted; no attempt was counted.
    Postponed(String),
    /// Somebody else has it, or was faster.
    Lost,
}

/// Tries a dispatch as it was listed; what it is by now is read again.
///
/// # Errors
/// The store failed.
pub(super) fn attempt(host: &Host, listed: &Entity) -> Result<Tried, Error> {
    let id = &listed.reference.id;
    let (Some(entity), Some(dispatch)) = (host.store().load(id)?, host.store().dispatch(id)?) else {
        return Ok(Tried::Lost);
    };
    let lifecycle = host.lifecycle(&entity)?;
    let claim = match outbox::due(&lifecycle, &entity, &dispatch, host.now()) {
        Due::Claim(claim) => claim,
        Due::Close(close) => return closed(host, &entity, &close),
        Due::Nothing => return Ok(Tried::Lost),
    };
    let home = host.config().home();
    let variable = host.config().variable;
    let token = dispatch.wants_acknowledgement.then(|| token(home, id)).transpose();
    let ready = match (unreadable(&dispatch, variable), token) {
        (None, Ok(token)) => Ok(token),
        (Some(unreadable), _) => Err(unreadable),
        (None, Err(error)) => Err(error.to_string()),
    };
    let token = match ready {
        Ok(token) => token,
        Err(unreadable) => return postpone(host, &lifecycle, &entity, &unreadable),
    };
    let TransitionOutcome::Applied { entity, .. } = write(host, &entity, &claim, &Beside::NOTHING)? else {
        return Ok(Tried::Lost);
    };
    crash::point("deliver.claimed");
    let surroundings = Surroundings {
        home,
        variable,
        now: host.now(),
    };
    let sent = send(&Attempt {
        id,
        number: entity.structural.attempt.unwrap_or(1),
        dispatch: &dispatch,
        token: token.as_deref(),
        surroundings: &surroundings,
    });
    crash::point("deliver.sent");
    settle(host, (&lifecycle, &entity), &dispatch, &sent)
}

/// Sends, on a runtime of this thread's own: bounded by the destination's time limit.
fn send(attempt: &Attempt<'_>) -> Sent {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime {
        Ok(runtime) => {
            let sent = runtime.block_on(notify::send(attempt));
            // A name that is still being looked up has a thread of its own, which is not waited for.
            runtime.shutdown_background();
            sent
        }
        Err(error) => Sent::Unreadable(format!("cannot wait for anything here: {error}")),
    }
}

/// Whose turn it is to count a failure of its destination. Between processes the last one counts.
static FAILING: Mutex<()> = Mutex::new(());

fn settle(
    host: &Host,
    (lifecycle, entity): (&Lifecycle, &Entity),
    dispatch: &Dispatch,
    sent: &Sent,
) -> Result<Tried, Error> {
    // Held until a failure is written, so that those that fail together are counted one after the other.
    let _turn = matches!(sent, Sent::Failed { .. }).then(|| FAILING.lock().unwrap_or_else(PoisonError::into_inner));
    let now = host.now();
    let random = u64::from_le_bytes(entropy()?[..8].try_into().expect("eight bytes of sixteen"));
    let Some(command) = outbox::settled(lifecycle, entity, dispatch, sent, (now, random)) else {
        return Ok(Tried::Lost);
    };
    let before = host.store().destinations()?;
    let before = before
        .iter()
        .find(|health| health.target_digest == dispatch.target_digest);
    let destination = outbox::destination_after(before, dispatch, sent, now);
    let beside = Beside {
        destination: destination.as_ref(),
        ..Beside::NOTHING
    };
    let outcome = write(host, entity, &command, &beside)?;
    crash::point("deliver.settled");
    let TransitionOutcome::Applied { entity: after, .. } = outcome else {
        return Ok(Tried::Lost);
    };
    Ok(match sent {
        Sent::Delivered(_) if after.success => Tried::Delivered,
        Sent::Delivered(words) if after.terminal => Tried::Dead(words.clone()),
        Sent::Delivered(_) => Tried::Unacknowledged,
        Sent::Failed { error, .. } if !after.terminal => Tried::Retried(error.clone()),
        Sent::Failed { error, .. } | Sent::Refused(error) => Tried::Dead(error.clone()),
        Sent::Unreadable(error) => Tried::Postponed(error.clone()),
    })
}

/// Writes that nothing is sent any more.
fn closed(host: &Host, entity: &Entity, close: &Transition) -> Result<Tried, Error> {
    let outcome = write(host, entity, close, &Beside::NOTHING)?;
    let TransitionOutcome::Applied { .. } = outcome else {
        return Ok(Tried::Lost);
    };
    Ok(match close.patch.get("last_error").and_then(|error| error.as_str()) {
        Some(error) => Tried::Dead(error.to_owned()),
        None => Tried::Expired,
    })
}

fn postpone(host: &Host, lifecycle: &Lifecycle, entity: &Entity, unreadable: &str) -> Result<Tried, Error> {
    let Some(command) = outbox::postponed(lifecycle, entity, unreadable, host.now()) else {
        return Ok(Tried::Lost);
    };
    Ok(match write(host, entity, &command, &Beside::NOTHING)? {
        TransitionOutcome::Applied { .. } => Tried::Postponed(unreadable.to_owned()),
        _ => Tried::Lost,
    })
}
