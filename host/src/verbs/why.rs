//! Says why an entity is where it is. Looks, and changes nothing but what every reader does: an end that waits is
//! recorded.

use serde_json::{Value, json};

use crate::error::Error;
use crate::host::Host;
use crate::model::{
    self, AdminEvent, Case, DISPATCH_KIND, Entity, Explanation, HistoryRow, LockSeen, Notice, Process, Runtime,
    RuntimeKind, SeenGone, ShimLock, Sight, explain,
};
use crate::process::{self, Living, LockWait, Look, Survivor, lock_waits, waits_in};
use crate::store::{AdminQuery, HistoryQuery, Scope};
use crate::verbs::health::health_if_open;
use crate::verbs::lease::queue_sight;
use crate::verbs::living::{Seen, living};
use crate::verbs::settle::run_directory;
use crate::verbs::standing::{Standing, standing};
use crate::verbs::view::{EntityView, view};
use crate::verbs::{identity, resolve};

/// How many notices of an entity's events are looked at.
const NOTICES_MAX: usize = 50;

/// An entity explained.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    /// The entity.
    pub entity: Entity,
    /// Why it is where it is.
    pub explanation: Explanation,
    /// Its program has ended, and the store, which cannot be written, does not say so yet.
    pub end_waits: bool,
}

/// Explains the entity that a word means, as [`resolve`] does.
///
/// # Errors
/// Nothing is meant or several are, or the store or the list of processes cannot be read.
pub fn why(host: &Host, word: &str, own: Option<&str>) -> Result<Why, Error> {
    let found = resolve(host, word, own)?;
    let standing = standing(host, found)?;
    let end_waits = matches!(standing, Standing::EndWaits(_));
    let view = view(host, standing.into_entity())?;
    let lifecycle = host.lifecycle(&view.entity)?;
    let health = health_if_open(host, &view)?;
    let EntityView {
        entity, runtime, work, ..
    } = view;
    let sight = match &runtime {
        Some(runtime) => look(host, runtime)?,
        None => Sight::Nothing,
    };
    let notice = notice(host, &entity)?;
    let queued = queue_sight(host, &entity)?;
    let explanation = explain(&Case {
        entity: &entity,
        lifecycle: &lifecycle,
        runtime: runtime.as_ref(),
        sight: &sight,
        health: health.as_ref(),
        end_waits,
        children: &host.store().linked(&entity, Scope::Children)?,
        refusal: refusal(host, &entity)?.as_ref(),
        entered: entered(host, &entity)?.as_ref(),
        notice: notice.as_ref(),
        queued: queued.as_ref(),
        is_attempt: work.is_some_and(|work| !work["lease"].is_null()),
        notices: &host.store().notices_of(&entity, NOTICES_MAX)?,
        now: host.now(),
    });
    Ok(Why {
        entity,
        explanation,
        end_waits,
    })
}

impl Why {
    /// The JSON document.
    pub fn json(&self) -> Value {
        let explanation = &self.explanation;
        let facts = explanation.facts.iter();
        json!({
            "ref": self.entity.reference.to_string(),
            "status": self.entity.status,
            "headline": explanation.headline,
            "facts": facts.map(|fact| json!({"what": fact.what, "value": fact.value})).collect::<Vec<_>>(),
            "next": explanation.next,
        })
    }
}

/// What can be seen of a runtime from here.
pub(crate) fn look(host: &Host, runtime: &Runtime) -> Result<Sight, Error> {
    if runtime.is_stopped() || runtime.kind != RuntimeKind::Local {
        return Ok(Sight::Nothing);
    }
    Ok(match identity::standing(host, runtime)? {
        model::Standing::Nothing | model::Standing::Starting => Sight::Nothing,
        model::Standing::Held => match living(host, runtime)? {
            Seen::Processes(processes) => Sight::Held(described(&processes)),
            // It has ended between the two looks.
            Seen::ShimGone | Seen::Unknown => Sight::Held(Vec::new()),
        },
        model::Standing::Unheld => match identity::unheld(host, runtime)?.look() {
            Look::Living(members) => Sight::Unheld(members.iter().map(member).collect()),
            Look::Empty(_) => Sight::Gone(SeenGone::NoSuchProcess),
        },
        model::Standing::Gone(seen) => Sight::Gone(seen),
        model::Standing::Unjudged(unjudged) => Sight::Unjudged(unjudged, shim_lock(runtime)),
    })
}

/// A process that lives on without its shim.
fn member(survivor: &Survivor) -> Process {
    Process {
        pid: i64::from(survivor.pid),
        name: survivor.comm.clone(),
        state: survivor.state.chars().next().unwrap_or('?'),
        waits_in: None,
        lock: None,
        run: None,
    }
}

/// What the lock in its run directory says: in one boot it speaks across namespaces.
fn shim_lock(runtime: &Runtime) -> ShimLock {
    let lock = runtime.run_dir.as_deref().map(|path| run_directory(path).shim_lock());
    match lock {
        Some(Ok(process::ShimLock::Held)) => ShimLock::Held,
        Some(Ok(process::ShimLock::Free)) => ShimLock::Free,
        Some(Ok(process::ShimLock::Absent) | Err(_)) | None => ShimLock::Unknown,
    }
}

/// Processes as the model knows them, with what they wait for.
fn described(processes: &[Living]) -> Vec<Process> {
    let pids: Vec<i32> = processes.iter().map(|one| one.pid).collect();
    let waits = lock_waits(&pids);
    let described = |one: &Living| Process {
        pid: i64::from(one.pid),
        name: called(one),
        state: one.state,
        waits_in: (one.state == 'D').then(|| waits_in(one.pid)).flatten(),
        lock: waits.iter().find(|wait| wait.waiter == one.pid).map(lock),
        run: one.run.clone(),
    };
    processes.iter().map(described).collect()
}

/// Its command, as far as it fits a line; the kernel's name where it cannot be read.
fn called(one: &Living) -> String {
    const CHARS_MAX: usize = 80;
    let words: Vec<_> = one.command.iter().map(|word| String::from_utf8_lossy(word)).collect();
    let command = words.join(" ");
    match command.char_indices().nth(CHARS_MAX) {
        _ if command.is_empty() => one.name.clone(),
        Some((end, _)) => format!("{}…", &command[..end]),
        None => command,
    }
}

fn lock(wait: &LockWait) -> LockSeen {
    LockSeen {
        holder: Some(i64::from(wait.holder)).filter(|pid| *pid > 0),
        file: wait.file.as_ref().map(|path| path.to_string_lossy().into_owned()),
    }
}

/// What a dispatch delivers, and how its destination has been doing.
fn notice(host: &Host, entity: &Entity) -> Result<Option<Notice>, Error> {
    if entity.reference.kind != DISPATCH_KIND {
        return Ok(None);
    }
    let Some(dispatch) = host.store().dispatch(&entity.reference.id)? else {
        return Ok(None);
    };
    let healths = host.store().destinations()?;
    Ok(Some(Notice {
        health: healths
            .into_iter()
            .find(|health| health.target_digest == dispatch.target_digest),
        served: process::is_served(&host.config().database_path()),
        dispatch,
    }))
}

/// The newest refusal of a change from the status it has.
fn refusal(host: &Host, entity: &Entity) -> Result<Option<AdminEvent>, Error> {
    let query = AdminQuery {
        target: Some(entity.reference.to_string()),
        since: Some(if entity.terminal {
            entity.updated_at
        } else {
            entity.created_at
        }),
    };
    let is_one = |event: &AdminEvent| {
        event.action == "status_transition_rejected" && event.details["previous_status"] == entity.status.as_str()
    };
    Ok(host.store().admin_events(&query)?.into_iter().rev().find(is_one))
}

/// The history row that brought it into its status.
fn entered(host: &Host, entity: &Entity) -> Result<Option<HistoryRow>, Error> {
    let query = HistoryQuery {
        id: Some(entity.reference.id.clone()),
        ..HistoryQuery::default()
    };
    let is_entry = |row: &HistoryRow| row.previous_status.as_ref() != Some(&row.status);
    Ok(host.store().history(&query)?.into_iter().rev().find(is_entry))
}
