//! Says why an entity is where it is. Looks, and changes nothing but what every reader does: an end that waits is
//! recorded.

use serde_json::{Value, json};

use crate::error::Error;
use crate::host::Host;
use crate::model::{
    AdminEvent, Case, Entity, Explanation, HistoryRow, LockSeen, Process, Program, Runtime, RuntimeKind, ShimLock,
    Sight, explain,
};
use crate::process::{self, Gone, Liveness, Living, LockWait, Unknown, classify, lock_waits, waits_in};
use crate::store::{AdminQuery, HistoryQuery, Scope};
use crate::verbs::living::{Seen, living};
use crate::verbs::settle::run_directory;
use crate::verbs::standing::{Standing, standing};
use crate::verbs::{identity, resolve};

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
    let entity = standing.into_entity();
    let lifecycle = host.lifecycle(&entity)?;
    let runtime = newest(host, &entity)?;
    let sight = match &runtime {
        Some(runtime) => look(host, runtime)?,
        None => Sight::Nothing,
    };
    let explanation = explain(&Case {
        entity: &entity,
        lifecycle: &lifecycle,
        runtime: runtime.as_ref(),
        sight: &sight,
        end_waits,
        children: &host.store().linked(&entity, Scope::Children)?,
        refusal: refusal(host, &entity)?.as_ref(),
        entered: entered(host, &entity)?.as_ref(),
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

fn newest(host: &Host, entity: &Entity) -> Result<Option<Runtime>, Error> {
    let runtimes = host.store().runtimes(Some(std::slice::from_ref(&entity.reference)))?;
    Ok(runtimes.into_iter().next_back())
}

/// What can be seen of a runtime from here.
pub(crate) fn look(host: &Host, runtime: &Runtime) -> Result<Sight, Error> {
    if runtime.is_stopped() || runtime.kind != RuntimeKind::Local {
        return Ok(Sight::Nothing);
    }
    let Some(shim) = identity::shim(runtime) else {
        return Ok(of_place(host, runtime));
    };
    if let Seen::Processes(processes) = living(host, runtime)? {
        return Ok(Sight::Held(described(&processes)));
    }
    Ok(match classify(&shim, host.place()) {
        // It ended between the two looks.
        Liveness::Alive(_) => Sight::ShimGone(Program::Unknown),
        Liveness::Gone { why: Gone::EarlierBoot } => Sight::EarlierBoot,
        // A shim lives, and is not the one that was recorded.
        Liveness::Gone { .. } if shim_lock(runtime) == ShimLock::Held => Sight::Undetermined,
        Liveness::Gone { .. } => Sight::ShimGone(program(host, runtime)),
        Liveness::Unknown {
            why: Unknown::OtherHost,
        } => Sight::OtherHost,
        Liveness::Unknown {
            why: Unknown::OtherPidNamespace | Unknown::OtherTimeNamespace,
        } => Sight::OtherNamespace(shim_lock(runtime)),
        Liveness::Unknown { .. } => Sight::Undetermined,
    })
}

/// One that has no process yet: machine and boot are all that is known.
fn of_place(host: &Host, runtime: &Runtime) -> Sight {
    let (here, there) = (identity::place(host), &runtime.place);
    if there.host != here.host {
        Sight::OtherHost
    } else if there.boot_id.is_empty() || here.boot_id.is_empty() {
        Sight::Undetermined
    } else if there.boot_id == here.boot_id {
        Sight::Nothing
    } else {
        Sight::EarlierBoot
    }
}

fn program(host: &Host, runtime: &Runtime) -> Program {
    let Some(worker) = identity::worker(runtime) else {
        return Program::Unknown;
    };
    match classify(&worker, host.place()) {
        Liveness::Alive(_) => Program::Alive,
        Liveness::Gone { .. } => Program::Gone,
        Liveness::Unknown { .. } => Program::Unknown,
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
