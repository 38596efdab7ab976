//! Makes an entity, pinned to the policy in force, with its first history row.

use crate::crash;
use crate::error::Error;
use crate::host::Host;
use crate::model::{
    Create, Entity, EnvelopeContext, Event, Invalid, KeyUse, Lifecycle, NewEntity, check_given,
    create as decide_creation, envelope_of, let_out,
};
use crate::policy::{Selected, select, sha256_hex};
use crate::store::{Created, NewRun};
use crate::verbs::outbox::plan;
use crate::verbs::transition::other_command;

/// How often a drawn id is drawn again when it is taken.
pub(crate) const DRAWS_MAX: usize = 4;

/// An entity that was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// The entity as stored.
    pub entity: Entity,
    /// Its runtime row, when it is a run.
    pub runtime_id: Option<i64>,
    /// The idempotency key was used before with this command: nothing was written now.
    pub replayed: bool,
}

/// Whose choice an entity's id was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdChoice {
    /// The user's: taken is a conflict.
    Given,
    /// Drawn at random: taken means draw again.
    Drawn,
}

/// Makes an entity under the policy in force for its kind, or under the one named.
///
/// # Errors
/// The command is wrong, the id is taken, a parent is missing or closed, or the store failed: nothing was written.
pub fn create(host: &Host, command: &Create, id: IdChoice, policy: Option<&str>) -> Result<Made, Error> {
    let selected = policy_for(host, &command.kind, policy)?;
    make(host, command, id, &selected, |_| None)
}

/// The policy that an entity of the kind is created under.
pub(crate) fn policy_for(host: &Host, kind: &str, policy: Option<&str>) -> Result<Selected, Error> {
    host.ensure_bundled()?;
    let Some(words) = policy else {
        return host.active_policy(kind);
    };
    let components = host.store().components()?;
    let words = if words.starts_with('@') {
        format!("{kind}{words}")
    } else {
        words.to_owned()
    };
    let found = select(&components, &words)
        .into_iter()
        .find(|record| record.kind == kind);
    let unknown = || Error::UnknownPolicy { word: words.clone() };
    let record = found.ok_or_else(unknown)?;
    let selected = host.policies().installed(&record.digest)?.ok_or_else(unknown)?;
    all_set(&selected)?;
    Ok(selected)
}

/// A policy that was never put in force lacks the parameters that have no default.
fn all_set(selected: &Selected) -> Result<(), Invalid> {
    let descriptor = selected.lifecycle.descriptor();
    let Some(lacking) = check_given(&descriptor.parameters, &selected.pin.parameters)
        .into_iter()
        .next()
    else {
        return Ok(());
    };
    let label = descriptor.label();
    let message = format!("parameter `{}` of {label} {}", lacking.place, lacking.message);
    let hint = format!(
        "`runwarden policy activate {label} --set {}=VALUE --reason WHY` sets it",
        lacking.place
    );
    Err(Invalid::new("parameter", message, Some(hint)))
}

/// Makes an entity, with the run that `run` gives for its id.
pub(crate) fn make(
    host: &Host,
    command: &Create,
    id: IdChoice,
    selected: &Selected,
    run: impl Fn(&NewEntity) -> Option<NewRun>,
) -> Result<Made, Error> {
    let mut command = command.clone();
    for draw in 1.. {
        let new = decided(host, &command, selected)?;
        crash::point("create.decided");
        let run = run(&new);
        match host.store().create(&new, run.as_ref())? {
            Created::New { entity, runtime_id } => {
                crash::point("create.committed");
                host.wake();
                host.remember_planned(&new.planned);
                return Ok(Made {
                    entity: *entity,
                    runtime_id,
                    replayed: false,
                });
            }
            Created::IdTaken if id == IdChoice::Drawn && draw < DRAWS_MAX => command.id = host.draw_id()?,
            Created::IdTaken => return Err(Error::IdTaken { id: command.id }),
            Created::KeyUsed { entity, command_digest } if command_digest == digest(&command) => {
                return Ok(Made {
                    entity: *entity,
                    runtime_id: None,
                    replayed: true,
                });
            }
            Created::KeyUsed { .. } => {
                return Err(other_command(command.idempotency_key.as_deref().unwrap_or_default()).into());
            }
            Created::ParentMissing(missing) | Created::AwaitedMissing(missing) => {
                return Err(host.not_found(&missing.to_string()));
            }
            Created::UniqueKeyHeld(holder) => {
                return Err(Error::UniqueKeyHeld {
                    key: new.entity.unique_key.unwrap_or_default(),
                    holder: holder.reference,
                });
            }
            Created::LeaseLost => return Err(lease_lost(run)),
            Created::SucceededBy(successor) => {
                return Err(Error::Succeeded {
                    before: new.entity.chain_parent.unwrap_or_default(),
                    successor: successor.reference,
                });
            }
            Created::ParentClosed(parent) => {
                return Err(Error::ParentClosed {
                    parent: parent.to_string(),
                });
            }
        }
    }
    unreachable!("the loop draws a bounded number of ids")
}

/// Everything that the commit of a creation contains: decided, with its event and what that is to tell.
pub(crate) fn decided(host: &Host, command: &Create, selected: &Selected) -> Result<NewEntity, Error> {
    let mut new = decide_creation(
        &selected.lifecycle,
        &selected.pin,
        command,
        host.store().name(),
        host.now(),
    )?;
    new.event = event(&selected.lifecycle, &new);
    if let Some(event) = &new.event {
        let (planned, audit) = plan(host, &new.entity.reference, &new.entity.notify, event)?;
        new.planned = planned;
        new.admin = audit;
    }
    let key = command.idempotency_key.as_ref();
    new.key = key.map(|key| KeyUse {
        key: key.clone(),
        command_digest: digest(command),
    });
    Ok(new)
}

/// That the lease a run was to be made for is not current any more.
fn lease_lost(run: Option<NewRun>) -> Error {
    let lease = run.and_then(|run| run.lease).expect("a lease that was asked for");
    Error::LeaseLost {
        reference: lease.reference,
        fence: lease.fence,
    }
}

fn digest(command: &Create) -> String {
    sha256_hex(command.fingerprint().to_string().as_bytes())
}

/// An entity created in a terminal status is an end like any other.
fn event(lifecycle: &Lifecycle, new: &NewEntity) -> Option<Event> {
    let announced = lifecycle
        .status(&new.entity.status)
        .is_some_and(|status| status.announced);
    let due = announced || (new.entity.terminal && lifecycle.descriptor().emits_events);
    due.then(|| {
        let parents = new.parents.iter().map(ToString::to_string).collect();
        let context = EnvelopeContext {
            parents,
            metadata: let_out(&new.entity.notify, &new.entity.tags),
            ..EnvelopeContext::default()
        };
        Event {
            id: new.row.id.clone(),
            envelope: envelope_of(&new.entity, None, &new.row.id, &context),
        }
    })
}
