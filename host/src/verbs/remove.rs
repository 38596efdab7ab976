//! Removes entities with everything linked below them, and fails closed (SEMANTICS 9).
//!
//! ```text
//! inventory read ─▶ every runtime stopped, by the code of `kill` ─▶ each confirmed ─▶ children before parents:
//!     empty cgroups ─▶ runtime rows ─▶ its directories, each with its row ─▶ run directory ─▶ the entity, with the audit row
//! ```
//!
//! What may be running is asked of the inventory, never of a status. As long as one of a tree is not confirmed to be
//! stopped, nothing of the tree is removed. If we die half-way, whatever is left is left with a row that leads to it,
//! because the entity goes last: the same command again goes on.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::crash;
use crate::error::Error;
use crate::host::Host;
use crate::model::{Actor, AdminEvent, Bytes, DurationMs, Entity, Protected, Reach, RuntimeKind, RuntimeState};
use crate::process::{Emptied, ShimLock, Survivor, path_of, remove_own_cgroup, remove_tree, remove_tree_without_links};
use crate::store::{Removed, Rows, RuntimeUpdate};
use crate::verbs::inventory::{Node, directories_doubt, is_absent, protected, tree};
use crate::verbs::kill::{Kill, Killed, kill};

/// A shim that saw its set end records it and leaves; nobody waits longer for that.
const SHIM_WAIT: Duration = Duration::from_secs(5);

/// What stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// History and audit rows alone.
    Nothing,
    /// The entity too; its directories go.
    Record,
}

/// What a removal asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Clearing {
    /// What stays.
    pub keep: Keep,
    /// From the first signal to KILL, for what has to be stopped.
    pub grace: DurationMs,
    /// Who asks.
    pub actor: Actor,
    /// Places that must not be removed, beside those the host knows.
    pub protected: Vec<Protected>,
}

/// What came of one entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClearResult {
    /// It is gone.
    Removed,
    /// Its directories are gone, the record stays.
    Cleared,
    /// It stays: it is linked below another that stays.
    Shared,
    /// It stays, to be tried again.
    Kept,
}

impl ClearResult {
    /// The word used in output.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Removed => "removed",
            Self::Cleared => "cleared",
            Self::Shared => "shared",
            Self::Kept => "kept",
        }
    }
}

/// The report of a removal: what was observed of one entity.
#[derive(Clone, Debug, PartialEq)]
pub struct Cleared {
    /// The entity.
    pub reference: String,
    /// Its status, the last one if it is gone.
    pub status: String,
    /// What came of it.
    pub result: ClearResult,
    /// Directories that are gone, in the order in which they went.
    pub directories: Vec<Vec<u8>>,
    /// What they took, in bytes.
    pub freed_bytes: u64,
    /// The strongest signal sent to it, or the word that says why none was.
    pub signal: Option<String>,
    /// What lives on.
    pub survivors: Vec<Survivor>,
    /// In words, where something has to be said.
    pub message: Option<String>,
}

/// What came of a removal.
#[derive(Debug, Default)]
pub struct Clearance {
    /// Entities, children before their parents.
    pub cleared: Vec<Cleared>,
    /// What failed, by the reference of the target whose removal it ended.
    pub failures: Vec<(String, Error)>,
}

/// Removes these entities and everything linked below them.
///
/// # Errors
/// The inventory of one of them could not be read: nothing was done.
pub async fn clear(host: &Host, targets: &[Entity], asked: &Clearing) -> Result<Clearance, Error> {
    for target in targets {
        tree(host, target)?;
    }
    let mut clearance = Clearance::default();
    for target in targets {
        match clear_tree(host, target, asked).await {
            Ok(cleared) => clearance.cleared.extend(cleared),
            Err(error) => clearance.failures.push((target.reference.to_string(), error)),
        }
    }
    host.wake();
    Ok(clearance)
}

async fn clear_tree(host: &Host, target: &Entity, asked: &Clearing) -> Result<Vec<Cleared>, Error> {
    let mut stops = stop_all(host, target, asked).await?;
    crash::point("remove.stopped");
    // None, when it went with a tree that was removed before it.
    let nodes = tree(host, target)?;
    let (shared, going): (Vec<Node>, Vec<Node>) = nodes.into_iter().partition(|node| node.also_below.is_some());
    let protected = protected(host, &asked.protected, &going)?;
    let doubts: Vec<Option<String>> = going.iter().map(|node| doubt(host, node, &protected)).collect();
    let is_confirmed = doubts.iter().all(Option::is_none);
    let mut cleared: Vec<Cleared> = shared.iter().map(stays_shared).collect();
    let mut is_held_up = false;
    for (node, doubt) in going.iter().zip(doubts) {
        let one = if !is_confirmed {
            let others = || "something of what is removed with it is not confirmed to be stopped, or stays".to_owned();
            kept(node, doubt.unwrap_or_else(others))
        } else if is_held_up {
            kept(node, "something linked below it stays".to_owned())
        } else {
            let removing = Removing::asked(asked);
            remove_node(host, node, &removing)?
        };
        is_held_up |= one.result == ClearResult::Kept;
        cleared.push(one);
    }
    for one in &mut cleared {
        if let Some(killed) = stops.remove(&one.reference) {
            one.tell(killed);
        }
    }
    Ok(cleared)
}

/// Stops whatever of a tree may be running and has not ended, by the code of `kill`, children first, until its walk finds
/// nobody new; what was observed of each, by reference. A tree of which nothing is open is not touched.
async fn stop_all(host: &Host, target: &Entity, asked: &Clearing) -> Result<HashMap<String, Killed>, Error> {
    if !tree(host, target)?.iter().any(Node::is_open) {
        return Ok(HashMap::new());
    }
    let asked = Kill {
        grace: asked.grace,
        actor: asked.actor.clone(),
        note: Some(format!("{target} is removed", target = target.reference)),
        reach: Reach::Everything,
    };
    let killing = kill(host, std::slice::from_ref(target), &asked).await?;
    if let Some((_, error)) = killing.failures.into_iter().next() {
        return Err(error);
    }
    let mut stops = HashMap::new();
    let mut open = killing.targets;
    while let Some(mut killed) = open.pop() {
        open.append(&mut killed.children);
        stops.insert(killed.reference.clone(), killed);
    }
    Ok(stops)
}

/// What speaks against removing an entity; none when everything of it is confirmed to be stopped or absent, and its
/// directories may go.
fn doubt(host: &Host, node: &Node, protected: &[Protected]) -> Option<String> {
    let may_run = |runtime: &&crate::model::Runtime| !runtime.is_stopped() && !is_absent(host, runtime);
    if let Some(runtime) = node.runtimes.iter().find(may_run) {
        return Some(match runtime.kind {
            RuntimeKind::Local => "it is not confirmed to be stopped".to_owned(),
            RuntimeKind::Container | RuntimeKind::Ssh | RuntimeKind::Other => {
                let id = runtime.id;
                format!("it is not confirmed to be stopped (`runwarden runtime release {id}` says so when it is)")
            }
        });
    }
    if !node.entity.terminal {
        return Some(format!("it is still {}: end it first", node.entity.status));
    }
    match node.directory(host).shim_lock_within(SHIM_WAIT) {
        Ok(ShimLock::Absent | ShimLock::Free) => {}
        Ok(ShimLock::Held) => return Some("its shim lives".to_owned()),
        Err(error) => return Some(format!("whether its shim lives cannot be seen: {error}")),
    }
    directories_doubt(host, node, protected)
}

fn report(node: &Node, result: ClearResult) -> Cleared {
    Cleared {
        reference: node.entity.reference.to_string(),
        status: node.entity.status.clone(),
        result,
        directories: Vec::new(),
        freed_bytes: 0,
        signal: None,
        survivors: Vec::new(),
        message: None,
    }
}

fn kept(node: &Node, why: String) -> Cleared {
    Cleared {
        message: Some(why),
        ..report(node, ClearResult::Kept)
    }
}

fn stays_shared(node: &Node) -> Cleared {
    let other = node.also_below.as_ref().map(ToString::to_string).unwrap_or_default();
    Cleared {
        message: Some(format!("it is linked below {other}, too: it was not removed")),
        ..report(node, ClearResult::Shared)
    }
}

/// How entities are removed that are confirmed to be stopped.
pub(crate) struct Removing<'a> {
    pub(crate) keep: Keep,
    /// What the audit row calls it.
    pub(crate) action: &'static str,
    pub(crate) actor: &'a Actor,
}

impl<'a> Removing<'a> {
    fn asked(asked: &'a Clearing) -> Self {
        Self {
            keep: asked.keep,
            action: match asked.keep {
                Keep::Nothing => "entity_removed",
                Keep::Record => "entity_cleared",
            },
            actor: &asked.actor,
        }
    }

    fn event(&self, host: &Host, node: &Node) -> AdminEvent {
        let entity = &node.entity;
        let directories = node.resources.iter().map(|resource| Bytes(resource.directory.clone()));
        AdminEvent {
            id: 0,
            at: host.now(),
            action: self.action.to_owned(),
            target: Some(entity.reference.to_string()),
            actor: self.actor.to_string(),
            details: json!({
                "status": entity.status,
                "version": entity.version,
                "reason": entity.reason.code,
                "directories": directories.collect::<Vec<_>>(),
            }),
        }
    }
}

/// Removes one entity of which nothing runs: step by step, each of them repeatable.
///
/// # Errors
/// The store failed; what is left still has its row.
pub(crate) fn remove_node(host: &Host, node: &Node, how: &Removing<'_>) -> Result<Cleared, Error> {
    let store = host.store();
    let entity = &node.entity;
    let event = how.event(host, node);
    let absent = node.runtimes.iter().filter(|runtime| !runtime.is_stopped());
    let stopped = absent.map(|runtime| RuntimeUpdate {
        id: runtime.id,
        only_from: vec![runtime.state],
        state: Some(RuntimeState::Stopped),
        at: host.now(),
        ..RuntimeUpdate::default()
    });
    let stopped: Vec<RuntimeUpdate> = stopped.collect();
    if !stopped.is_empty() {
        store.update_runtimes(&stopped)?;
    }
    remove_cgroups(node);
    let dropped = match how.keep {
        Keep::Nothing => store.drop_runtimes(entity, Rows::All, &[])?,
        Keep::Record => store.drop_runtimes(entity, Rows::WithoutToken, std::slice::from_ref(&event))?,
    };
    if !dropped {
        return Ok(kept(node, "something of it was started meanwhile".to_owned()));
    }
    crash::point("remove.inventory");
    let mut cleared = report(node, ClearResult::Cleared);
    if let Err(why) = remove_directories(host, node, &mut cleared)? {
        cleared.result = ClearResult::Kept;
        cleared.message = Some(why);
        return Ok(cleared);
    }
    if how.keep == Keep::Record {
        return Ok(cleared);
    }
    cleared.result = ClearResult::Removed;
    match store.remove(entity, &event)? {
        Removed::Gone | Removed::Changed(None) => {}
        Removed::Changed(Some(_)) | Removed::Holding => {
            cleared.result = ClearResult::Kept;
            cleared.message = Some("it changed while it was being removed: remove it again".to_owned());
        }
    }
    crash::point("remove.committed");
    Ok(cleared)
}

/// Removes the empty cgroups that are left of its sets, while rows lead to them: a shim that was killed had not.
fn remove_cgroups(node: &Node) {
    for runtime in &node.runtimes {
        if let Some(cgroup) = &runtime.cgroup {
            remove_own_cgroup(&path_of(cgroup), &runtime.attempt_token);
        }
    }
}

/// Removes what an entity registered, each with its row, and its run directory; the inner error is the words for what
/// could not be removed.
fn remove_directories(host: &Host, node: &Node, cleared: &mut Cleared) -> Result<Result<(), String>, Error> {
    let mut note = |path: Vec<u8>, emptied| {
        if let Emptied::Removed { bytes } = emptied {
            cleared.directories.push(path);
            cleared.freed_bytes += bytes;
        }
    };
    for resource in &node.resources {
        match remove_tree_without_links(&path_of(&resource.directory)) {
            Ok(emptied) => note(resource.directory.clone(), emptied),
            Err(error) => return Ok(Err(in_words(&error))),
        }
        crash::point("remove.directory");
        host.store().drop_resource(resource.id)?;
        crash::point("remove.resource");
    }
    let run = node.directory(host);
    match remove_tree(run.path()) {
        Ok(emptied) => note(run.path().as_os_str().as_encoded_bytes().to_vec(), emptied),
        Err(error) => return Ok(Err(in_words(&error))),
    }
    crash::point("remove.run_directory");
    Ok(Ok(()))
}

/// An error with its cause, on one line.
pub(crate) fn in_words(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

impl Clearance {
    /// Whether everything that was to go is gone.
    pub fn is_complete(&self) -> bool {
        self.failures.is_empty() && self.cleared.iter().all(|one| one.result != ClearResult::Kept)
    }

    /// The JSON document.
    pub fn json(&self) -> Value {
        let entities: Vec<Value> = self.cleared.iter().map(Cleared::json).collect();
        json!({"entities": entities, "complete": self.is_complete()})
    }
}

impl Cleared {
    /// Adds what was observed of its stop.
    fn tell(&mut self, killed: Killed) {
        self.signal = Some(killed.signal);
        self.survivors = killed.survivors;
        if let (ClearResult::Kept, Some(doubt), Some(said)) = (self.result, &self.message, killed.message) {
            self.message = Some(format!("{doubt}: {said}"));
        }
    }

    fn json(&self) -> Value {
        let directories = self.directories.iter().map(|path| Bytes(path.clone()));
        let survivors = self
            .survivors
            .iter()
            .map(|s| json!({"pid": s.pid, "comm": s.comm, "state": s.state, "uid": s.uid}));
        json!({
            "ref": self.reference,
            "status": self.status,
            "outcome": self.result.word(),
            "directories": directories.collect::<Vec<_>>(),
            "freed_bytes": self.freed_bytes,
            "signal": self.signal,
            "survivors": survivors.collect::<Vec<_>>(),
            "message": self.message,
        })
    }
}
