//! Retention: takes away what has been kept long enough, and nothing that is alive or can be taken up again.
//!
//! A plan is made first, from what is seen; `--dry-run` shows it. Then each of its steps looks again and goes through the
//! code of `rm`: whatever changed meanwhile stays. What a step takes is written to the audit rows before it is touched, or
//! in the same commit. If we die half-way, the next plan has the rest.

mod plan;
mod report;

use serde_json::{Value, json};

pub use report::{PruneItem, PruneKind, PruneOutcome, PruneReport};

use crate::crash;
use crate::error::Error;
use crate::host::Host;
use crate::model::{Actor, AdminEvent, Bytes, Hold, Protected, Retention, Shim, Timestamp};
use crate::process::{Emptied, Found, RunDir, remove_tree};
use crate::store::Journal;
use crate::verbs::inventory::{Node, directories_doubt, protected, run_directory_doubt};
use crate::verbs::remove::{ClearResult, Keep, Removing, in_words, remove_node};
use crate::verbs::side_by_side::side_by_side;
use plan::{Act, Judged, Step, held, plan, shim};

/// How many rows are looked at, or taken, in one step.
const BATCH_ROWS: usize = 500;

/// What a retention asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Pruning {
    /// How long things are kept.
    pub retention: Retention,
    /// Who asks.
    pub actor: Actor,
    /// Places that must not be removed, beside those the host knows.
    pub protected: Vec<Protected>,
}

/// What would be taken away.
///
/// # Errors
/// The inventory or the directory of the runs cannot be read: nothing is concluded from what is missing.
pub fn plan_prune(host: &Host, asked: &Pruning) -> Result<PruneReport, Error> {
    let (steps, notes) = plan(host, asked)?;
    let items = steps.into_iter().map(|step| step.item).collect();
    Ok(PruneReport { items, notes })
}

/// Takes away what [`plan_prune`] shows.
///
/// # Errors
/// As for the plan, with nothing done; or the store failed in between, for one step or for several that were carried out
/// side by side: what is left comes again.
pub fn prune(host: &Host, asked: &Pruning) -> Result<PruneReport, Error> {
    prune_while(host, asked, &|| true)
}

/// The same, as long as `goes_on` says so: what is left when it does not comes again.
pub(crate) fn prune_while(
    host: &Host,
    asked: &Pruning,
    goes_on: &(dyn Fn() -> bool + Sync),
) -> Result<PruneReport, Error> {
    let (steps, notes) = plan(host, asked)?;
    crash::point("prune.planned");
    let mut items = Vec::with_capacity(steps.len());
    let mut steps = steps.into_iter().peekable();
    while let Some(first) = steps.next() {
        let mut batch = vec![first];
        // Directories of runs wait for nobody: those of many share commits.
        while let Some(next) = steps.next_if(|next| both_are_directories(&batch[0], next)) {
            batch.push(next);
        }
        let step = |step| goes_on().then(|| carry_out(host, asked, step));
        for item in side_by_side(batch, step) {
            items.extend(item.transpose()?);
        }
    }
    if goes_on() {
        // Rows of workers are no records by themselves: they are kept for as long as records may name them.
        let records = asked.retention.records.as_ms();
        let before = Timestamp::from_ms(host.now().as_ms().saturating_sub(records));
        host.store().forget_workers(before)?;
    }
    host.wake();
    Ok(PruneReport { items, notes })
}

fn both_are_directories(one: &Step, other: &Step) -> bool {
    [one, other].iter().all(|step| step.item.kind == PruneKind::Directories)
}

fn carry_out(host: &Host, asked: &Pruning, step: Step) -> Result<PruneItem, Error> {
    let mut item = step.item;
    if item.outcome == PruneOutcome::Planned {
        item.outcome = act(host, asked, &item, step.act)?;
        crash::point("prune.step");
    }
    Ok(item)
}

fn act(host: &Host, asked: &Pruning, item: &PruneItem, act: Act) -> Result<PruneOutcome, Error> {
    match act {
        Act::Entity(judged) => act_on_entity(host, asked, item, &judged),
        Act::Stray(found) => remove_stray(host, asked, item, &found),
        Act::Journal(page, rows) => {
            let action = match page.journal {
                Journal::History => "history_pruned",
                Journal::Audit => "audit_pruned",
            };
            let details = json!({"rows": rows.len(), "before": page.before.to_rfc3339()});
            let event = event(host, asked, (action, None), details);
            host.store().prune_journal(&page, &rows, &event)?;
            Ok(PruneOutcome::Done)
        }
    }
}

fn event(host: &Host, asked: &Pruning, (action, target): (&str, Option<String>), details: Value) -> AdminEvent {
    AdminEvent {
        id: 0,
        at: host.now(),
        action: action.to_owned(),
        target,
        actor: asked.actor.to_string(),
        details,
    }
}

/// Looks again, with what the inventory and everything else says now, and acts if nothing speaks against it.
fn act_on_entity(host: &Host, asked: &Pruning, item: &PruneItem, planned: &Judged) -> Result<PruneOutcome, Error> {
    let Some(entity) = host.store().load(&planned.id)? else {
        return Ok(PruneOutcome::Done);
    };
    let is_same = entity.version == planned.version;
    let node = Node::read(host, entity)?;
    let held = held(host, &node);
    if !is_same || held.is_some() {
        let why = held.map_or("it changed", Hold::words);
        return Ok(PruneOutcome::Kept(format!("{why} since the plan was made")));
    }
    let protected = protected(host, &asked.protected, std::slice::from_ref(&node))?;
    if let Some(why) = directories_doubt(host, &node, &protected) {
        return Ok(PruneOutcome::Kept(why));
    }
    let (keep, action) = match item.kind {
        PruneKind::Logs => return remove_logs(host, asked, item, &node),
        PruneKind::Record => (Keep::Nothing, "record_pruned"),
        PruneKind::Directories | PruneKind::Stray | PruneKind::History | PruneKind::Audit => {
            (Keep::Record, "directories_pruned")
        }
    };
    let actor = &asked.actor;
    let cleared = remove_node(host, &node, &Removing { keep, action, actor })?;
    Ok(match cleared.result {
        ClearResult::Removed | ClearResult::Cleared => PruneOutcome::Done,
        ClearResult::Kept | ClearResult::Shared => PruneOutcome::Kept(cleared.message.unwrap_or_default()),
    })
}

fn remove_logs(host: &Host, asked: &Pruning, item: &PruneItem, node: &Node) -> Result<PruneOutcome, Error> {
    let details = json!({"bytes": item.bytes});
    let target = item.reference.clone();
    host.store()
        .record(&[event(host, asked, ("logs_pruned", target), details)], &[])?;
    crash::point("prune.audited");
    Ok(match node.directory(host).remove_logs() {
        Ok(()) => PruneOutcome::Done,
        Err(error) => PruneOutcome::Kept(in_words(&error)),
    })
}

/// Removes a directory that the inventory still does not name.
fn remove_stray(host: &Host, asked: &Pruning, item: &PruneItem, found: &Found) -> Result<PruneOutcome, Error> {
    let id = String::from_utf8_lossy(&found.name).into_owned();
    if host.store().load(&id)?.is_some() || shim(&RunDir::at(found.path.clone())) == Shim::MayLive {
        return Ok(PruneOutcome::Kept("something was started in it since".to_owned()));
    }
    let protected = protected(host, &asked.protected, &[])?;
    if let Some(why) = run_directory_doubt(&found.path, &protected) {
        return Ok(PruneOutcome::Kept(why));
    }
    let path = Bytes::from(found.path.as_os_str());
    let details = json!({"path": path, "bytes": item.bytes});
    host.store()
        .record(&[event(host, asked, ("stray_pruned", None), details)], &[])?;
    crash::point("prune.audited");
    Ok(match remove_tree(&found.path) {
        Ok(Emptied::Removed { .. } | Emptied::Absent) => PruneOutcome::Done,
        Err(error) => PruneOutcome::Kept(in_words(&error)),
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use std::sync::Arc;
    use std::sync::atomic::AtomicI64;

    use super::*;
    use crate::clock::Clock;
    use crate::host::Config;
    use crate::policy::Limits;
    use crate::store::samples::{moment, worker};
    use crate::store::{MemoryStore, Worker};

    #[test]
    fn a_worker_that_stopped_goes_when_records_of_its_time_do() {
        let home = tempfile::tempdir().unwrap();
        let records = Retention::STANDARD.records.as_ms();
        let config = Config {
            home: home.path().to_owned(),
            database: None,
            limits: Limits::DEFAULT,
            clock: Clock::Set(Arc::new(AtomicI64::new(moment(records + 10).as_ms()))),
            compiler: None,
            program: "/nonexistent".into(),
            shim: &[],
            variable: |_| None,
        };
        let host = Host::with_store(config, Arc::new(MemoryStore::named("pruned01")));
        for (holder, stopped_at) in [("old", Some(9)), ("young", Some(10)), ("at-work", None)] {
            let stopped_at = stopped_at.map(moment);
            host.store()
                .put_worker(&Worker {
                    stopped_at,
                    ..worker(holder)
                })
                .unwrap();
        }
        let asked = Pruning {
            retention: Retention::STANDARD,
            actor: Actor::new("operator", "tests"),
            protected: Vec::new(),
        };
        plan_prune(&host, &asked).unwrap();
        assert!(host.store().worker("old").unwrap().is_some());
        prune(&host, &asked).unwrap();
        let left = ["old", "young", "at-work"].map(|holder| host.store().worker(holder).unwrap().is_some());
        assert_eq!(left, [false, true, true]);
    }
}
