//! What may go now, from what is seen; nothing is taken here.

use std::collections::HashSet;

use super::report::{PruneItem, PruneKind, PruneOutcome};
use super::{BATCH_ROWS, Pruning};
use crate::error::Error;
use crate::host::Host;
use crate::model::{
    Entity, Fate, Hold, LogUse, Protected, Shim, Timestamp, directory_fate, ended_at, hold, logs_over, record_fate,
    stray_fate,
};
use crate::process::{Found, RunDir, ShimLock, directories_below, path_of, usage};
use crate::store::{Journal, JournalPage, Scope};
use crate::verbs::inventory::{Node, directories_doubt, protected, run_directory_doubt};
use crate::verbs::settle::settle;

/// A step with what it acts on.
pub(super) struct Step {
    pub(super) item: PruneItem,
    pub(super) act: Act,
}

/// What a step acts on.
pub(super) enum Act {
    Entity(Judged),
    Stray(Found),
    Journal(JournalPage, Vec<i64>),
}

pub(super) fn plan(host: &Host, asked: &Pruning) -> Result<(Vec<Step>, Vec<String>), Error> {
    let Seen {
        runs,
        strays,
        mut notes,
    } = seen(host)?;
    // After the ends that waited were recorded: what ended protects nothing any more.
    let protected = protected(host, &asked.protected, &[])?;
    let mut steps = records(host, asked, &protected)?;
    let records: HashSet<i64> = steps.iter().filter_map(Step::row).collect();
    let mut logs = Logs::default();
    for (node, found) in runs {
        if !records.contains(&node.entity.row) {
            judge_directory(host, asked, (node, &found), &protected, (&mut steps, &mut logs));
        }
    }
    steps.extend(logs.over(asked.retention.logs_bytes));
    if host.config().database.is_none() {
        steps.extend(
            strays
                .into_iter()
                .filter_map(|found| stray(host, asked, found, &protected)),
        );
    } else if !strays.is_empty() {
        // They may be another store's.
        notes.push(format!(
            "{} run directories that this store does not name are left alone",
            strays.len()
        ));
    }
    for (journal, kind) in [
        (Journal::History, PruneKind::History),
        (Journal::Audit, PruneKind::Audit),
    ] {
        journal_steps(host, asked, (journal, kind), &mut steps)?;
    }
    Ok((steps, notes))
}

/// The directory of the runs, as it was seen.
struct Seen {
    /// Directories of runs, each with whose it is.
    runs: Vec<(Node, Found)>,
    /// Directories that no row names.
    strays: Vec<Found>,
    /// What was left unjudged, in words.
    notes: Vec<String>,
}

fn seen(host: &Host) -> Result<Seen, Error> {
    let mut seen = Seen {
        runs: Vec::new(),
        strays: Vec::new(),
        notes: Vec::new(),
    };
    for found in directories_below(&host.config().home().join("runs"))? {
        let id = String::from_utf8_lossy(&found.name).into_owned();
        let Some(entity) = host.store().load(&id)? else {
            seen.strays.push(found);
            continue;
        };
        let reference = entity.reference.clone();
        match settle(host, entity) {
            Ok(entity) => seen.runs.push((Node::read(host, entity)?, found)),
            Err(Error::Process(error)) => seen.notes.push(format!("{reference} is left alone: {error}")),
            Err(error) => return Err(error),
        }
    }
    Ok(seen)
}

/// The version of an entity that was judged.
pub(super) struct Judged {
    row: i64,
    pub(super) id: String,
    pub(super) version: i64,
}

impl Step {
    fn of(kind: PruneKind, node: &Node, found: Option<&Found>) -> Self {
        let item = PruneItem {
            kind,
            reference: Some(node.entity.reference.to_string()),
            path: found.map(|found| found.path.clone()),
            rows: 0,
            bytes: 0,
            since: ended_at(&node.entity),
            outcome: PruneOutcome::Planned,
        };
        let act = Act::Entity(Judged {
            row: node.entity.row,
            id: node.entity.reference.id.clone(),
            version: node.entity.version,
        });
        Self { item, act }
    }

    /// Counts everything that goes with the entity.
    fn measured(mut self, host: &Host, node: &Node) -> Self {
        let own = node.resources.iter().map(|resource| path_of(&resource.directory));
        let run = node.directory(host).path().to_owned();
        let all = own.chain([run]).map(|directory| usage(&directory, |_| true).bytes);
        self.item.bytes = all.sum();
        self
    }

    /// The entity whose record goes.
    fn row(&self) -> Option<i64> {
        match &self.act {
            Act::Entity(judged) if self.item.kind == PruneKind::Record => Some(judged.row),
            Act::Entity(_) | Act::Stray(_) | Act::Journal(..) => None,
        }
    }
}

/// Records that are old enough, children before their parents: what is below was created later.
fn records(host: &Host, asked: &Pruning, protected: &[Protected]) -> Result<Vec<Step>, Error> {
    let now = host.now();
    let mut old: Vec<Entity> = Vec::new();
    let mut after = 0;
    loop {
        let page = host.store().oldest(after, BATCH_ROWS)?;
        let Some(last) = page.last() else { break };
        after = last.row;
        // Rows follow creation, and nothing ends before it was created.
        let is_past = last.created_at.plus(asked.retention.records) > now;
        let is_due = |entity: &Entity| entity.terminal && record_fate(&asked.retention, entity, None, now) == Fate::Due;
        old.extend(page.into_iter().filter(is_due));
        if is_past {
            break;
        }
    }
    let mut going: HashSet<i64> = HashSet::new();
    let mut steps = Vec::new();
    for entity in old.into_iter().rev() {
        let children = host.store().linked(&entity, Scope::Children)?;
        let stays = children.iter().any(|child| !going.contains(&child.row));
        let node = Node::read(host, entity)?;
        let held = held(host, &node).or(stays.then_some(Hold::ChildStays));
        if record_fate(&asked.retention, &node.entity, held, now) != Fate::Due {
            continue;
        }
        let mut step = Step::of(PruneKind::Record, &node, None).measured(host, &node);
        match directories_doubt(host, &node, protected) {
            Some(why) => step.item.outcome = PruneOutcome::Kept(why),
            None => _ = going.insert(node.entity.row),
        }
        steps.push(step);
    }
    Ok(steps)
}

pub(super) fn held(host: &Host, node: &Node) -> Option<Hold> {
    hold(&node.entity, &node.runtimes, shim(&node.directory(host)))
}

pub(super) fn shim(directory: &RunDir) -> Shim {
    match directory.shim_lock() {
        Ok(ShimLock::Absent | ShimLock::Free) => Shim::Gone,
        Ok(ShimLock::Held) | Err(_) => Shim::MayLive,
    }
}

/// Logs of runs whose directories stay.
#[derive(Default)]
struct Logs {
    uses: Vec<LogUse>,
    steps: Vec<Step>,
    others_bytes: u64,
}

impl Logs {
    /// Those that go so that the rest fits.
    fn over(self, limit_bytes: u64) -> Vec<Step> {
        let going: HashSet<usize> = logs_over(limit_bytes, &self.uses, self.others_bytes)
            .into_iter()
            .collect();
        let steps = self.steps.into_iter().enumerate();
        steps
            .filter(|(place, _)| going.contains(place))
            .map(|(_, step)| step)
            .collect()
    }
}

/// Plans the end of a run's directories, or counts its logs.
fn judge_directory(
    host: &Host,
    asked: &Pruning,
    (node, found): (Node, &Found),
    protected: &[Protected],
    (steps, logs): (&mut Vec<Step>, &mut Logs),
) {
    let held = held(host, &node);
    if directory_fate(&asked.retention, &node.entity, held, host.now()) == Fate::Due {
        let mut step = Step::of(PruneKind::Directories, &node, Some(found)).measured(host, &node);
        if let Some(why) = directories_doubt(host, &node, protected) {
            step.item.outcome = PruneOutcome::Kept(why);
        }
        steps.push(step);
        return;
    }
    let bytes = node.directory(host).logs_bytes();
    if held.is_some() {
        logs.others_bytes += bytes;
        return;
    }
    let mut step = Step::of(PruneKind::Logs, &node, Some(found));
    step.item.bytes = bytes;
    logs.uses.push(LogUse {
        ended_at: step.item.since,
        bytes,
    });
    logs.steps.push(step);
}

/// A directory that the inventory was seen not to name.
fn stray(host: &Host, asked: &Pruning, found: Found, protected: &[Protected]) -> Option<Step> {
    let changed_at = Timestamp::from_ms(found.changed_at_ms);
    let shim = shim(&RunDir::at(found.path.clone()));
    let outcome = match stray_fate(&asked.retention, changed_at, shim, host.now()) {
        Fate::Young => return None,
        Fate::Held(hold) => PruneOutcome::Kept(format!("no row names it, and {}", hold.words())),
        Fate::Due => match run_directory_doubt(&found.path, protected) {
            Some(why) => PruneOutcome::Kept(why),
            None => PruneOutcome::Planned,
        },
    };
    let item = PruneItem {
        kind: PruneKind::Stray,
        reference: None,
        path: Some(found.path.clone()),
        rows: 0,
        bytes: usage(&found.path, |_| true).bytes,
        since: changed_at,
        outcome,
    };
    Some(Step {
        item,
        act: Act::Stray(found),
    })
}

fn journal_steps(
    host: &Host,
    asked: &Pruning,
    (journal, kind): (Journal, PruneKind),
    steps: &mut Vec<Step>,
) -> Result<(), Error> {
    let before = Timestamp::from_ms(host.now().as_ms().saturating_sub(asked.retention.records.as_ms()));
    let mut next = Some(0);
    while let Some(after) = next {
        let page = JournalPage {
            journal,
            after,
            before,
            limit: BATCH_ROWS,
        };
        let old = host.store().journal_page(&page)?;
        next = old.next;
        if old.rows.is_empty() {
            continue;
        }
        let item = PruneItem {
            kind,
            reference: None,
            path: None,
            rows: old.rows.len(),
            bytes: 0,
            since: before,
            outcome: PruneOutcome::Planned,
        };
        steps.push(Step {
            item,
            act: Act::Journal(page, old.rows),
        });
    }
    Ok(())
}
