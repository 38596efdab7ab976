//! The one path that writes a status: whoever asks (a run's end, a kill, a sweep, the command), it goes through here.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::crash;
use crate::error::Error;
use crate::host::Host;
use crate::model::{
    AdminEvent, Answer, Change, Conflict, Decision, DestinationHealth, Entity, EnvelopeContext, Event, Found, KeyUse,
    Lifecycle, Refusal, Transition, decide, envelope, late_write_event, let_out, rejection_event, validate,
};
use crate::policy::sha256_hex;
use crate::store::{Applied, EffectSet, NoRoom, RuntimeUpdate, Scope, ShadowSeen, Successor};
use crate::verbs::guarded::ask_guard;
use crate::verbs::judging::{judged, look_again, refused};
use crate::verbs::outbox::plan;
use crate::verbs::verdict::End;

/// How often a lost race without expectations is decided again before it is a conflict.
const LOST_RACES_MAX: usize = 8;

/// The code of a conflict with a migration: the entity is under another policy by now, and what was to be written was made
/// by the graph of the one before.
const POLICY_MOVED: &str = "policy_moved";

/// What belongs to the same commit as a transition.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beside<'a> {
    /// Runtime rows; those of a refusal too, which is then written only if one of them is still to be changed.
    pub(crate) runtimes: &'a [RuntimeUpdate],
    /// How the destination of a delivery did.
    pub(crate) destination: Option<&'a DestinationHealth>,
    /// The attempt that follows the one that ends.
    pub(crate) successor: Option<&'a Successor>,
    /// The end of a process that it tells.
    pub(crate) end: Option<&'a End>,
}

impl Beside<'_> {
    /// Nothing.
    pub(crate) const NOTHING: Self = Self {
        runtimes: &[],
        destination: None,
        successor: None,
        end: None,
    };
}

impl<'a> Beside<'a> {
    /// Runtime rows alone.
    pub(crate) const fn runtimes(runtimes: &'a [RuntimeUpdate]) -> Self {
        Self {
            runtimes,
            ..Self::NOTHING
        }
    }
}

/// How a transition came out.
#[derive(Clone, Debug, PartialEq)]
pub enum TransitionOutcome {
    /// It is durable.
    Applied {
        /// The entity after it.
        entity: Box<Entity>,
        /// The status before.
        previous_status: Option<String>,
        /// The history row's id.
        transition_id: String,
        /// The version it gave.
        version: i64,
        /// The status it gave.
        status: String,
        /// The event's id, when it made one.
        event_id: Option<String>,
        /// An idempotency key was used before with this command: nothing was written now.
        replayed: bool,
    },
    /// An expectation did not hold or a race was lost; nothing was written.
    Conflict(Conflict),
    /// The policy forbids it; an audit row was written.
    Rejected(Refusal),
}

/// Moves an entity to a status, if its policy allows.
///
/// Repeating it with the same idempotency key answers as the first time and writes nothing.
///
/// # Errors
/// The command is wrong, the entity does not exist, or the store failed: nothing was written.
pub fn transition(host: &Host, entity: &Entity, command: &Transition) -> Result<TransitionOutcome, Error> {
    let mut outcome = write(host, entity, command, &Beside::NOTHING)?;
    for _ in 0..LOST_RACES_MAX {
        if !matches!(&outcome, TransitionOutcome::Conflict(conflict) if conflict.code == POLICY_MOVED) {
            break;
        }
        let id = &entity.reference.id;
        let current = host.store().load(id)?;
        let current = current.ok_or_else(|| host.not_found(&entity.reference.to_string()))?;
        outcome = write(host, &current, command, &Beside::NOTHING)?;
    }
    Ok(outcome)
}

/// What [`transition`] would answer, writing nothing.
///
/// # Errors
/// As [`transition`].
pub fn transition_dry_run(host: &Host, entity: &Entity, command: &Transition) -> Result<TransitionOutcome, Error> {
    let lifecycle = host.lifecycle(entity)?;
    validate(&lifecycle, command)?;
    if let Some(replay) = replayed(host, entity, command)? {
        return Ok(replay);
    }
    match admitted(host, &lifecycle, entity, command)? {
        Admission::Change(change) => Ok(applied(&change, None, entity)),
        Admission::Conflict(conflict) => Ok(TransitionOutcome::Conflict(conflict)),
        Admission::Refused(refusal, _) => Ok(TransitionOutcome::Rejected(refusal)),
    }
}

/// The write itself, with what belongs to the same commit. An entity that is moved to another policy meanwhile is a
/// conflict: whoever made the command by its policy makes another one.
pub(crate) fn write(
    host: &Host,
    entity: &Entity,
    command: &Transition,
    beside: &Beside<'_>,
) -> Result<TransitionOutcome, Error> {
    let mut entity = entity.clone();
    let lifecycle = host.lifecycle(&entity)?;
    validate(&lifecycle, command)?;
    for _ in 0..LOST_RACES_MAX {
        if let Some(replay) = replayed(host, &entity, command)? {
            return Ok(replay);
        }
        let effects = match effects(host, &lifecycle, (&entity, command), beside)? {
            Prepared::Effects(effects) => effects,
            Prepared::Outcome(outcome) => return Ok(outcome),
        };
        match commit(host, &effects, ["transition.decided", "transition.committed"])? {
            Applied::Written => return Ok(committed(host, &effects, &entity)),
            Applied::Lost(None) => return Err(host.not_found(&entity.reference.to_string())),
            Applied::Lost(Some(current)) if current.policy.digest != entity.policy.digest => {
                let found = Found::of(&current);
                let message = format!(
                    "it was moved to {}@{} meanwhile",
                    current.policy.name, current.policy.version
                );
                return Ok(TransitionOutcome::Conflict(Conflict {
                    found,
                    code: POLICY_MOVED,
                    message,
                }));
            }
            Applied::Lost(Some(current)) => {
                look_again(host, &current.reference.kind);
                entity = *current;
            }
            Applied::NoRoom(why) => return Ok(no_room(&entity, why)),
        }
    }
    let found = Found::of(&entity);
    let message = format!("other writers were first {LOST_RACES_MAX} times");
    Ok(TransitionOutcome::Conflict(Conflict {
        found,
        code: "lost_race",
        message,
    }))
}

/// Moves an entity to another policy: decided by [`crate::model::migrate`], written as any other change. A lost race is the
/// caller's to decide again.
///
/// # Errors
/// The policy is not installed any more, or the store failed: nothing was written.
pub(crate) fn move_policy(host: &Host, change: Change) -> Result<Applied, Error> {
    let effects = EffectSet {
        change,
        runtimes: Vec::new(),
        destination: None,
        successor: None,
        shadow: ShadowSeen::Unasked,
    };
    commit(host, &effects, ["migrate.decided", "migrate.committed"])
}

/// The commit, between the two places at which a test may end the process.
fn commit(host: &Host, effects: &EffectSet, [before, after]: [&str; 2]) -> Result<Applied, Error> {
    crash::point(before);
    let applied = host.store().apply(effects)?;
    if applied == Applied::Written {
        crash::point(after);
        host.wake();
    }
    Ok(applied)
}

/// Moves several entities, each from the version given, in one commit: which of them came out how, in their order. Nothing
/// is decided again for those that others were faster with: they are conflicts.
pub(crate) fn write_all(host: &Host, commands: &[(Entity, Transition)]) -> Result<Vec<TransitionOutcome>, Error> {
    let mut outcomes = Vec::with_capacity(commands.len());
    let mut prepared = Vec::new();
    let kinds: BTreeSet<&str> = commands
        .iter()
        .map(|(entity, _)| entity.reference.kind.as_str())
        .collect();
    // Whoever is lost here is not decided again, so a shadow has to be known of before.
    kinds.into_iter().for_each(|kind| look_again(host, kind));
    for (entity, command) in commands {
        let lifecycle = host.lifecycle(entity)?;
        validate(&lifecycle, command)?;
        outcomes.push(match effects(host, &lifecycle, (entity, command), &Beside::NOTHING)? {
            Prepared::Outcome(outcome) => Some(outcome),
            Prepared::Effects(effects) => {
                prepared.push(*effects);
                None
            }
        });
    }
    crash::point("transition.decided");
    let applied = if prepared.is_empty() {
        Vec::new()
    } else {
        host.store().apply_all(&prepared)?
    };
    crash::point("transition.committed");
    if applied.contains(&Applied::Written) {
        // Once, whatever their number: everybody who waits looks at everything.
        host.wake();
    }
    let mut applied = prepared.iter().zip(applied);
    let outcomes = outcomes.into_iter().zip(commands).map(|(known, (entity, _))| {
        known.or_else(|| {
            let (effects, applied) = applied.next()?;
            Some(match applied {
                Applied::Written => committed(host, effects, entity),
                Applied::NoRoom(why) => no_room(entity, why),
                Applied::Lost(_) => TransitionOutcome::Conflict(Conflict {
                    found: Found::of(entity),
                    code: "lost_race",
                    message: "another writer was first".to_owned(),
                }),
            })
        })
    });
    Ok(outcomes
        .map(|outcome| outcome.expect("each command has an outcome"))
        .collect())
}

/// A command that was judged: what is to be written, or how it came out without a write.
enum Prepared {
    Effects(Box<EffectSet>),
    Outcome(TransitionOutcome),
}

/// Judges a command; what it comes to without a write is told at once, with its audit row.
fn effects(
    host: &Host,
    lifecycle: &Lifecycle,
    (entity, command): (&Entity, &Transition),
    beside: &Beside<'_>,
) -> Result<Prepared, Error> {
    let mut change = match admitted(host, lifecycle, entity, command)? {
        Admission::Change(change) => change,
        Admission::Conflict(conflict) => {
            if conflict.code == "fence" {
                // Whoever wrote has lost the row without knowing: told in the audit rows, and counted.
                host.store()
                    .record(&[late_write_event(entity, command, host.now())], &[])?;
            }
            return Ok(Prepared::Outcome(TransitionOutcome::Conflict(conflict)));
        }
        Admission::Refused(refusal, guarded) => {
            let mut event = rejection_event(entity, command, &refusal, host.now());
            if !guarded.is_null() {
                event.details["guarded"] = guarded;
            }
            // The audit row of a refusal is committed before the answer.
            look_again(host, &entity.reference.kind);
            let (seen, difference) = judged(host, (entity, command), beside.end, refused(&refusal.code));
            let events: Vec<AdminEvent> = [event].into_iter().chain(difference).collect();
            match seen {
                ShadowSeen::Unasked | ShadowSeen::Absent => host.store().record(&events, beside.runtimes)?,
                ShadowSeen::Asked(judged) => host.store().record_judged(&events, beside.runtimes, &judged)?,
            }
            return Ok(Prepared::Outcome(TransitionOutcome::Rejected(refusal)));
        }
    };
    if let Some(end) = beside.end {
        change.row.guarded = end.kept.clone();
    }
    let recorded = Answer::Applied {
        status: change.row.status.clone(),
        code: change.row.reason.code.clone(),
    };
    let (shadow, difference) = judged(host, (entity, command), beside.end, recorded);
    change.admin.extend(difference);
    change.event = event(host, lifecycle, &change)?;
    if let Some(event) = &change.event {
        let (planned, audit) = plan(host, &entity.reference, &entity.notify, event)?;
        change.planned = planned;
        change.admin.extend(audit);
    }
    Ok(Prepared::Effects(Box::new(EffectSet {
        change: *change,
        runtimes: beside.runtimes.to_vec(),
        destination: beside.destination.cloned(),
        successor: beside.successor.cloned(),
        shadow,
    })))
}

/// What a commit means for the caller.
fn committed(host: &Host, effects: &EffectSet, before: &Entity) -> TransitionOutcome {
    host.remember_planned(&effects.change.planned);
    applied(&effects.change, effects.change.event.as_ref(), before)
}

fn no_room(entity: &Entity, why: NoRoom) -> TransitionOutcome {
    let message = match why {
        NoRoom::Paused => "its queue is paused",
        NoRoom::Full => "as many as may of its queue are held",
    };
    TransitionOutcome::Conflict(Conflict {
        found: Found::of(entity),
        code: "no_room",
        message: message.to_owned(),
    })
}

/// What policy and guard say, before anything is written.
enum Admission {
    Change(Box<Change>),
    Conflict(Conflict),
    /// With the guarded call that refused it, null when none was made.
    Refused(Refusal, Value),
}

fn admitted(host: &Host, lifecycle: &Lifecycle, entity: &Entity, command: &Transition) -> Result<Admission, Error> {
    let mut change = match decide(lifecycle, entity, command, host.store().name(), host.now()) {
        Decision::Apply(change) => change,
        Decision::Conflict(conflict) => return Ok(Admission::Conflict(conflict)),
        Decision::Rejected(refusal) => return Ok(Admission::Refused(refusal, Value::Null)),
        Decision::Invalid(invalid) => return Err(invalid.into()),
    };
    let guarded = lifecycle
        .edge(&entity.status, &command.target)
        .is_some_and(|edge| edge.guarded);
    if guarded {
        let asked = ask_guard(host, lifecycle, entity, command)?;
        if let Some(refusal) = asked.refusal {
            return Ok(Admission::Refused(refusal, asked.record));
        }
        change.row.guarded = asked.record;
    }
    let key = command.idempotency_key.as_ref().map(|key| KeyUse {
        key: key.clone(),
        command_digest: digest(command),
    });
    Ok(Admission::Change(Box::new(change.with_key(key))))
}

/// The answer of an earlier use of the command's key; invalid when it was used with another command.
fn replayed(host: &Host, entity: &Entity, command: &Transition) -> Result<Option<TransitionOutcome>, Error> {
    let Some(key) = &command.idempotency_key else {
        return Ok(None);
    };
    let Some((used_with, row)) = host.store().key_use(entity, key)? else {
        return Ok(None);
    };
    if used_with != digest(command) {
        return Err(other_command(key).into());
    }
    let event_id = host.store().envelope(row.id.as_str())?.map(|_| row.id.to_string());
    Ok(Some(TransitionOutcome::Applied {
        entity: Box::new(entity.clone()),
        previous_status: row.previous_status,
        transition_id: row.id.to_string(),
        version: row.version,
        status: row.status,
        event_id,
        replayed: true,
    }))
}

/// The same key came with another command.
pub(crate) fn other_command(key: &str) -> crate::model::Invalid {
    let message = format!("idempotency key `{key}` was used with another command");
    crate::model::Invalid::new("key", message, Some("use a new key for a new command".to_owned()))
}

fn digest(command: &Transition) -> String {
    sha256_hex(command.fingerprint().to_string().as_bytes())
}

/// The event a change makes, if it makes one.
fn event(host: &Host, lifecycle: &Lifecycle, change: &Change) -> Result<Option<Event>, Error> {
    if !change.makes_event(lifecycle) {
        return Ok(None);
    }
    let context = envelope_context(host, &change.after)?;
    Ok(Some(Event {
        id: change.row.id.clone(),
        envelope: envelope(change, &context),
    }))
}

/// What an envelope tells beside the entity.
pub(crate) fn envelope_context(host: &Host, entity: &Entity) -> Result<EnvelopeContext, Error> {
    let parents = host.store().linked(entity, Scope::Parents)?;
    let runtimes = host.store().runtimes(Some(std::slice::from_ref(&entity.reference)))?;
    let runtime = runtimes.into_iter().next_back();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let (cwd, run_dir) = runtime.map_or((None, None), |runtime| (runtime.cwd, runtime.run_dir));
    Ok(EnvelopeContext {
        parents: parents.iter().map(|parent| parent.reference.to_string()).collect(),
        artifacts: run_dir.as_deref().map(crate::process::artifacts).unwrap_or_default(),
        cwd: cwd.map(text),
        run_dir: run_dir.map(text),
        metadata: let_out(&entity.notify, &entity.tags),
    })
}

fn applied(change: &Change, event: Option<&Event>, before: &Entity) -> TransitionOutcome {
    TransitionOutcome::Applied {
        entity: Box::new(change.after.clone()),
        previous_status: Some(before.status.clone()),
        transition_id: change.row.id.to_string(),
        version: change.after.version,
        status: change.after.status.clone(),
        event_id: event.map(|event| event.id.to_string()),
        replayed: false,
    }
}
