//! Repairs what died half-way: whoever reads a run repairs that run first, and `doctor --fix` repairs all.
//!
//! ```text
//! observe ──▶ decide (model::repair) ──▶ record | adopt | complete | end | mark stopped
//! ```
//!
//! A live run costs a look at its shim and at a file that is not there. Two repairs at once are harmless: an end is
//! written by compare-and-set, and a set is adopted by the one shim that gets the lock of its run directory. If we die
//! half-way the next one goes on.

mod groups;

use serde_json::{Value, json};

use crate::crash;
use crate::error::Error;
use crate::host::Host;
use crate::model::{
    self, Actor, AdminEvent, Began, Bytes, Carriers, Entity, IDENTITY_STAGE, Left, Observed, Recorded, Runtime,
    RuntimeState, SeenGone, Standing, Unseen, is_overdue, repair_evidence,
};
use crate::process::{Look, PROOF_SCAN, ShimLock, SpawnErrorRecord};
use crate::store::RuntimeUpdate;
use crate::verbs::adopt::adopt;
use crate::verbs::identity::{standing, unheld, unreadable};
use crate::verbs::settle::{
    HOST_RESTARTED, Told, exit_record, newest_runtime, nobody, record_end, run_directory, settle, unseen,
};

/// What says that nobody of a set of an earlier boot is left.
const PROOF_BOOT: &str = "earlier_boot";

/// Whether repairs are carried out or only told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// They are carried out.
    Do,
    /// They are told, and nothing is changed.
    DryRun,
}

/// What became of one run.
#[derive(Debug)]
pub struct Repaired {
    /// The run.
    pub reference: String,
    /// Its status before.
    pub previous_status: String,
    /// Its status now.
    pub status: String,
    /// What was decided.
    pub decision: model::Repair,
    /// What was observed.
    pub evidence: Value,
    /// Why it could not be carried out.
    pub failure: Option<Error>,
}

impl Repaired {
    fn of(entity: &Entity, decision: model::Repair, evidence: Value) -> Self {
        Self {
            reference: entity.reference.to_string(),
            previous_status: entity.status.clone(),
            status: entity.status.clone(),
            decision,
            evidence,
            failure: None,
        }
    }

    /// The JSON document.
    pub fn json(&self) -> Value {
        json!({
            "ref": self.reference,
            "previous_status": self.previous_status,
            "status": self.status,
            "decision": self.decision.word(),
            "evidence": self.evidence,
            "failure": self.failure.as_ref().map(ToString::to_string),
        })
    }
}

/// Repairs one run as far as that is possible now; answers the entity as it then is. What needs nothing comes back as it
/// is, what is unknown too.
///
/// # Errors
/// The store failed, or the exit file cannot be read: nothing was written.
pub fn repair(host: &Host, entity: Entity) -> Result<Entity, Error> {
    let Some(runtime) = newest_runtime(host, &entity)?.filter(|runtime| !runtime.is_stopped()) else {
        return settle(host, entity);
    };
    let case = look(host, &entity, runtime)?;
    match case.decision {
        model::Repair::Leave(_) => Ok(entity),
        // A set that cannot be taken over keeps nobody from reading: `doctor --fix` says why.
        model::Repair::Adopt => carry_out(host, entity.clone(), &case).or_else(|error| match error {
            Error::Process(error) => {
                tracing::warn!(%error, entity = %entity.reference, "it could not be taken over");
                Ok(entity)
            }
            error => Err(error),
        }),
        _ => carry_out(host, entity, &case),
    }
}

/// Repairs everything that is not stopped, each run for itself, and removes the empty groups that are left of what is.
///
/// # Errors
/// The inventory cannot be read: nothing was done.
pub fn repair_all(host: &Host, act: Act) -> Result<Vec<Repaired>, Error> {
    let mut told = Vec::new();
    for runtime in host.store().runtimes(None)? {
        let Some(entity) = host.store().load(&runtime.owner.id)? else {
            continue;
        };
        told.push(repair_one(host, entity, runtime, act));
    }
    for (entity, runtime) in groups::left(host)? {
        if act == Act::Do {
            unheld(host, &runtime)?.remove_cgroup();
        }
        if act == Act::DryRun || groups::is_gone(&runtime) {
            let evidence = json!({"cgroup": runtime.cgroup.map(Bytes), "runtime": runtime.id});
            told.push(Repaired::of(&entity, model::Repair::RemoveGroup, evidence));
        }
    }
    Ok(told)
}

fn repair_one(host: &Host, entity: Entity, runtime: Runtime, act: Act) -> Repaired {
    let mut repaired = Repaired::of(&entity, model::Repair::Leave(Left::Unknown), Value::Null);
    let done = look(host, &entity, runtime).and_then(|case| {
        repaired.decision = case.decision;
        repaired.evidence = case.evidence.clone();
        match act {
            Act::Do if case.decision.acts() => carry_out(host, entity, &case).map(|entity| Some(entity.status)),
            Act::Do | Act::DryRun => Ok(None),
        }
    });
    match done {
        Ok(status) => repaired.status = status.unwrap_or(repaired.status),
        Err(error) => repaired.failure = Some(error),
    }
    repaired
}

/// Whether a look at a run that has not ended may lead to more than its being left alone. Cheap for one whose shim lives.
pub(crate) fn is_suspect(host: &Host, runtime: &Runtime) -> Result<bool, Error> {
    if runtime.is_stopped() || exit_record(runtime)?.is_some() {
        return Ok(true);
    }
    Ok(
        match standing(host, runtime).unwrap_or_else(|error| unreadable(&error)) {
            Standing::Held | Standing::Nothing | Standing::Unjudged(_) => false,
            Standing::Starting => is_overdue(runtime, host.now()),
            Standing::Unheld | Standing::Gone(_) => true,
        },
    )
}

/// Whether the lock of a runtime's directory says that its shim is gone: a look at one file.
pub(crate) fn is_unwatched(runtime: &Runtime) -> bool {
    let lock = runtime.run_dir.as_deref().map(|path| run_directory(path).shim_lock());
    matches!(lock, Some(Ok(ShimLock::Free)))
}

/// A run, what was seen of it, and what follows.
struct Case {
    runtime: Runtime,
    observed: Observed,
    decision: model::Repair,
    evidence: Value,
}

fn look(host: &Host, entity: &Entity, runtime: Runtime) -> Result<Case, Error> {
    let observed = observe(host, &runtime)?;
    let now = host.now();
    let decision = model::repair(entity, &runtime, &observed, now);
    let evidence = repair_evidence((&runtime, entity), &observed, decision, now);
    Ok(Case {
        runtime,
        observed,
        decision,
        evidence,
    })
}

fn observe(host: &Host, runtime: &Runtime) -> Result<Observed, Error> {
    let standing = standing(host, runtime).unwrap_or_else(|error| unreadable(&error));
    let record = match exit_record(runtime)? {
        None => Recorded::Nothing,
        Some(record) if record.set.empty => Recorded::Whole,
        Some(_) => Recorded::WorkerOnly,
    };
    let is_open = record == Recorded::Nothing;
    let carriers = if is_open && standing == Standing::Starting && is_overdue(runtime, host.now()) {
        match unheld(host, runtime)?.look() {
            Look::Empty(_) => Carriers::Nobody,
            Look::Living(members) if members.is_empty() => Carriers::Unknown,
            Look::Living(_) => Carriers::Somebody,
        }
    } else {
        Carriers::Unknown
    };
    let began = match &standing {
        Standing::Gone(_) if is_open => began(runtime),
        _ => Began::Yes,
    };
    Ok(Observed {
        standing,
        record,
        began,
        carriers,
    })
}

/// What the worker noted when it got through its gate. Who finds no notes at all says nothing.
fn began(runtime: &Runtime) -> Began {
    let directory = runtime.run_dir.as_deref().map(run_directory);
    match directory.and_then(|directory| directory.noted()) {
        Some(noted) if noted.began.is_none() => Began::No,
        Some(_) | None => Began::Yes,
    }
}

fn carry_out(host: &Host, entity: Entity, case: &Case) -> Result<Entity, Error> {
    crash::point("repair.decided");
    match case.decision {
        model::Repair::MarkStopped | model::Repair::Complete | model::Repair::End(_) => {
            // Nobody is left who would, and nobody looks again once the end is told; one that has members is not removed.
            unheld(host, &case.runtime)?.remove_cgroup();
        }
        model::Repair::Leave(_) | model::Repair::RemoveGroup | model::Repair::Record | model::Repair::Adopt => {}
    }
    match case.decision {
        model::Repair::Leave(_) | model::Repair::RemoveGroup => return Ok(entity),
        model::Repair::Record => return settle(host, entity),
        model::Repair::Adopt => adopt(host, &entity, &case.runtime, &case.evidence)?,
        model::Repair::MarkStopped => mark_stopped(host, case)?,
        model::Repair::Complete => complete(host, &entity, case)?,
        model::Repair::End(how) => end(host, &entity, case, how)?,
    }
    Ok(host.store().load(&entity.reference.id)?.unwrap_or(entity))
}

/// Writes an end that nobody saw.
fn end(host: &Host, entity: &Entity, case: &Case, how: Unseen) -> Result<(), Error> {
    let (cause, stage) = match how {
        Unseen::HostRestarted => (HOST_RESTARTED, None),
        Unseen::Unobserved => ("unobserved", None),
        Unseen::NeverBegan => ("unobserved", Some("gate")),
        Unseen::IdentityLost => ("unobserved", Some(IDENTITY_STAGE)),
    };
    let mut record = unseen(&case.runtime, cause, nobody(proof(&case.observed)), host.now());
    record.spawn_error = stage.map(|stage| SpawnErrorRecord {
        stage: stage.to_owned(),
        errno: 0,
    });
    let told = Told::observed(&record, &case.evidence);
    // Somebody else may have been first: then it is as they wrote it.
    record_end(host, entity, &case.runtime, &told).map(drop)
}

/// The worker's end was seen; the others are positively gone since.
fn complete(host: &Host, entity: &Entity, case: &Case) -> Result<(), Error> {
    let Some(mut record) = exit_record(&case.runtime)? else {
        return Ok(());
    };
    record.set = nobody(proof(&case.observed));
    let told = Told::observed(&record, &case.evidence);
    record_end(host, entity, &case.runtime, &told).map(drop)
}

const fn proof(observed: &Observed) -> &'static str {
    match observed.standing {
        Standing::Gone(SeenGone::EarlierBoot) => PROOF_BOOT,
        _ => PROOF_SCAN,
    }
}

/// It had ended, so there is no history row to tell why: the audit row does.
fn mark_stopped(host: &Host, case: &Case) -> Result<(), Error> {
    let runtime = &case.runtime;
    let event = AdminEvent {
        id: 0,
        at: host.now(),
        action: "runtime_repaired".to_owned(),
        target: Some(runtime.owner.to_string()),
        actor: Actor::system("repair").to_string(),
        details: case.evidence.clone(),
    };
    let update = RuntimeUpdate {
        id: runtime.id,
        only_from: vec![runtime.state],
        state: Some(RuntimeState::Stopped),
        stop_unconfirmed: Some(false),
        at: host.now(),
        ..RuntimeUpdate::default()
    };
    host.store().record(&[event], &[update])?;
    host.wake();
    Ok(())
}
