//! Retention: takes away what has been kept long enough, and nothing that is alive or can be taken up again.
//!
//! A plan is made first, from what is seen; `--dry-run` shows it. Then each of its steps looks again and goes through the
//! code of `rm`: whatever changed meanwhile stays. What a step takes is written to the audit rows before it is touched, or
//! in the same commit. If we die half-way, the next plan has the rest.

use std::collections::HashSet;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::crash;
use crate::error::Error;
use crate::host::Host;
use crate::model::{
    Actor, AdminEvent, Bytes, Entity, Fate, Hold, LogUse, Protected, Retention, Shim, Timestamp, directory_fate,
    ended_at, hold, logs_over, record_fate, stray_fate,
};
use crate::process::{Emptied, Found, RunDir, ShimLock, directories_below, remove_tree};
use crate::store::{Journal, JournalPage, Scope};
use crate::verbs::inventory::{Node, directory_doubt, protected};
use crate::verbs::remove::{ClearResult, Keep, Removing, in_words, remove_node};
use crate::verbs::settle::settle;

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

/// What is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PruneKind {
    /// The directories of a run; its record stays.
    Directories,
    /// The logs of a run.
    Logs,
    /// The record of an entity, with all it has.
    Record,
    /// A run directory that no row names.
    Stray,
    /// History rows of entities that are gone.
    History,
    /// Audit rows.
    Audit,
}

impl PruneKind {
    /// The word used in output.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Directories => "directories",
            Self::Logs => "logs",
            Self::Record => "record",
            Self::Stray => "stray",
            Self::History => "history",
            Self::Audit => "audit",
        }
    }
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PruneOutcome {
    /// It would be taken.
    Planned,
    /// It is gone.
    Done,
    /// It stays, and why.
    Kept(String),
}

/// One step of a retention.
#[derive(Clone, Debug, PartialEq)]
pub struct PruneItem {
    /// What.
    pub kind: PruneKind,
    /// Of which entity; none for strays and journals.
    pub reference: Option<String>,
    /// Which directory; none for records without one, and journals.
    pub path: Option<PathBuf>,
    /// Rows of a journal; 0 for all else.
    pub rows: usize,
    /// What its files take as far as that was looked at, in bytes.
    pub bytes: u64,
    /// When its age began.
    pub since: Timestamp,
    /// What came of it.
    pub outcome: PruneOutcome,
}

/// What a retention did, or would do.
#[derive(Clone, Debug, PartialEq)]
pub struct PruneReport {
    /// The steps, in order.
    pub items: Vec<PruneItem>,
    /// What was left unjudged, in words.
    pub notes: Vec<String>,
}

/// A step with what it acts on.
struct Step {
    item: PruneItem,
    act: Act,
}

enum Act {
    Entity(Box<Entity>),
    Stray(Found),
    Journal(JournalPage, Vec<i64>),
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
/// As for the plan, with nothing done; or the store failed in between: what is left comes again.
pub fn prune(host: &Host, asked: &Pruning) -> Result<PruneReport, Error> {
    let (steps, notes) = plan(host, asked)?;
    crash::point("prune.planned");
    let mut items = Vec::with_capacity(steps.len());
    for step in steps {
        let mut item = step.item;
        if item.outcome == PruneOutcome::Planned {
            item.outcome = act(host, asked, &item, step.act)?;
            crash::point("prune.step");
        }
        items.push(item);
    }
    host.wake();
    Ok(PruneReport { items, notes })
}

fn plan(host: &Host, asked: &Pruning) -> Result<(Vec<Step>, Vec<String>), Error> {
    let (runs, strays) = runs(host)?;
    // After the ends that waited were recorded: what ended protects nothing any more.
    let protected = protected(host, &asked.protected, &[])?;
    let mut steps = records(host, asked, &protected)?;
    let records: HashSet<i64> = steps.iter().filter_map(Step::row).collect();
    let mut notes = Vec::new();
    let mut logs = Logs::default();
    for (node, found) in runs {
        if !records.contains(&node.entity.row) {
            judge_directory(host, asked, (node, &found), &protected, (&mut steps, &mut logs));
        }
    }
    steps.extend(logs.over(asked.retention.logs_bytes));
    if host.config().database.is_none() {
        steps.extend(strays.into_iter().filter_map(|found| stray(host, asked, found)));
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

/// The directories of runs with whose they are, and those that no row names.
fn runs(host: &Host) -> Result<(Vec<(Node, Found)>, Vec<Found>), Error> {
    let (mut runs, mut strays) = (Vec::new(), Vec::new());
    for found in directories_below(&host.config().home().join("runs"))? {
        let id = String::from_utf8_lossy(&found.name).into_owned();
        match host.store().load(&id)? {
            Some(entity) => runs.push((Node::read(host, settle(host, entity)?)?, found)),
            None => strays.push(found),
        }
    }
    Ok((runs, strays))
}

impl Step {
    fn of(kind: PruneKind, node: &Node, found: Option<&Found>) -> Self {
        let item = PruneItem {
            kind,
            reference: Some(node.entity.reference.to_string()),
            path: found.map(|found| found.path.clone()),
            rows: 0,
            bytes: found.map_or(0, |found| found.bytes),
            since: ended_at(&node.entity),
            outcome: PruneOutcome::Planned,
        };
        let act = Act::Entity(Box::new(node.entity.clone()));
        Self { item, act }
    }

    /// The entity whose record goes.
    fn row(&self) -> Option<i64> {
        match &self.act {
            Act::Entity(entity) if self.item.kind == PruneKind::Record => Some(entity.row),
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
        old.extend(page.into_iter().filter(|entity| entity.terminal));
        if is_past {
            break;
        }
    }
    let mut going: HashSet<i64> = HashSet::new();
    let mut steps = Vec::new();
    for entity in old.into_iter().rev() {
        if record_fate(&asked.retention, &entity, None, now) != Fate::Due {
            continue;
        }
        let children = host.store().linked(&entity, Scope::Children)?;
        let stays = children.iter().any(|child| !going.contains(&child.row));
        let node = Node::read(host, entity)?;
        let held = held(host, &node).or(stays.then_some(Hold::ChildStays));
        if record_fate(&asked.retention, &node.entity, held, now) != Fate::Due {
            continue;
        }
        let mut step = Step::of(PruneKind::Record, &node, None);
        match doubt(&node, protected) {
            Some(why) => step.item.outcome = PruneOutcome::Kept(why),
            None => _ = going.insert(node.entity.row),
        }
        steps.push(step);
    }
    Ok(steps)
}

fn held(host: &Host, node: &Node) -> Option<Hold> {
    hold(&node.entity, &node.runtimes, shim(&node.directory(host)))
}

fn shim(directory: &RunDir) -> Shim {
    match directory.shim_lock() {
        Ok(ShimLock::Absent | ShimLock::Free) => Shim::Gone,
        Ok(ShimLock::Held) | Err(_) => Shim::MayLive,
    }
}

fn doubt(node: &Node, protected: &[Protected]) -> Option<String> {
    node.resources
        .iter()
        .find_map(|resource| directory_doubt(resource, protected))
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
        let mut step = Step::of(PruneKind::Directories, &node, Some(found));
        if let Some(why) = doubt(&node, protected) {
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
fn stray(host: &Host, asked: &Pruning, found: Found) -> Option<Step> {
    let changed_at = Timestamp::from_ms(found.changed_at_ms);
    let shim = shim(&RunDir::at(found.path.clone()));
    let item = PruneItem {
        kind: PruneKind::Stray,
        reference: None,
        path: Some(found.path.clone()),
        rows: 0,
        bytes: found.bytes,
        since: changed_at,
        outcome: PruneOutcome::Planned,
    };
    match stray_fate(&asked.retention, changed_at, shim, host.now()) {
        Fate::Due => Some(Step {
            item,
            act: Act::Stray(found),
        }),
        Fate::Young => None,
        Fate::Held(hold) => Some(Step {
            item: PruneItem {
                outcome: PruneOutcome::Kept(format!("no row names it, and {}", hold.words())),
                ..item
            },
            act: Act::Stray(found),
        }),
    }
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

fn act(host: &Host, asked: &Pruning, item: &PruneItem, act: Act) -> Result<PruneOutcome, Error> {
    match act {
        Act::Entity(entity) => act_on_entity(host, asked, item, &entity),
        Act::Stray(found) => remove_stray(host, asked, &found),
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
fn act_on_entity(host: &Host, asked: &Pruning, item: &PruneItem, planned: &Entity) -> Result<PruneOutcome, Error> {
    let Some(entity) = host.store().load(&planned.reference.id)? else {
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
    if let Some(why) = doubt(&node, &protected) {
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
        .record(&[event(host, asked, ("logs_pruned", target), details)])?;
    crash::point("prune.audited");
    Ok(match node.directory(host).remove_logs() {
        Ok(()) => PruneOutcome::Done,
        Err(error) => PruneOutcome::Kept(in_words(&error)),
    })
}

/// Removes a directory that the inventory still does not name.
fn remove_stray(host: &Host, asked: &Pruning, found: &Found) -> Result<PruneOutcome, Error> {
    let id = String::from_utf8_lossy(&found.name).into_owned();
    if host.store().load(&id)?.is_some() || shim(&RunDir::at(found.path.clone())) == Shim::MayLive {
        return Ok(PruneOutcome::Kept("something was started in it since".to_owned()));
    }
    let path = Bytes::from(found.path.as_os_str());
    let details = json!({"path": path, "bytes": found.bytes});
    host.store()
        .record(&[event(host, asked, ("stray_pruned", None), details)])?;
    crash::point("prune.audited");
    Ok(match remove_tree(&found.path) {
        Ok(Emptied::Removed { .. } | Emptied::Absent) => PruneOutcome::Done,
        Err(error) => PruneOutcome::Kept(in_words(&error)),
    })
}

impl PruneReport {
    /// Whether nothing that was to go stays.
    pub fn is_complete(&self) -> bool {
        let stays = |item: &PruneItem| matches!(item.outcome, PruneOutcome::Kept(_));
        !self.items.iter().any(stays)
    }

    /// What the steps take, in bytes: those that are planned or done.
    pub fn bytes(&self) -> u64 {
        let goes = |item: &&PruneItem| !matches!(item.outcome, PruneOutcome::Kept(_));
        self.items.iter().filter(goes).map(|item| item.bytes).sum()
    }

    /// The JSON document.
    pub fn json(&self) -> Value {
        let items: Vec<Value> = self.items.iter().map(PruneItem::json).collect();
        json!({"items": items, "bytes": self.bytes(), "notes": self.notes, "complete": self.is_complete()})
    }
}

impl PruneItem {
    fn json(&self) -> Value {
        let (outcome, message) = match &self.outcome {
            PruneOutcome::Planned => ("planned", None),
            PruneOutcome::Done => ("done", None),
            PruneOutcome::Kept(why) => ("kept", Some(why)),
        };
        json!({
            "what": self.kind.word(),
            "ref": self.reference,
            "path": self.path.as_ref().map(|path| Bytes::from(path.as_os_str())),
            "rows": self.rows,
            "bytes": self.bytes,
            "since": self.since.to_rfc3339(),
            "outcome": outcome,
            "message": message,
        })
    }
}
