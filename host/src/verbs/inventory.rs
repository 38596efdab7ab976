//! What an entity has that a removal must account for: processes, directories, and what of others must not be touched.

use std::path::Path;

use crate::error::Error;
use crate::host::Host;
use crate::model::{Entity, Extent, Protected, Reference, Resource, Runtime, RuntimeKind, removal_refusal};
use crate::process::{RunDir, path_of, real_path, working_directory};
use crate::store::Scope;
use crate::verbs::identity;

/// An entity with its part of the inventory.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) entity: Entity,
    pub(crate) runtimes: Vec<Runtime>,
    pub(crate) resources: Vec<Resource>,
    /// An entity outside of what is removed that it is linked below, too.
    pub(crate) also_below: Option<Reference>,
}

impl Node {
    /// Reads what the inventory has of an entity.
    pub(crate) fn read(host: &Host, entity: Entity) -> Result<Self, Error> {
        let owner = std::slice::from_ref(&entity.reference);
        Ok(Self {
            runtimes: host.store().runtimes(Some(owner))?,
            resources: host.store().resources(owner)?,
            entity,
            also_below: None,
        })
    }

    /// Its run directory, whether or not it is there.
    pub(crate) fn directory(&self, host: &Host) -> RunDir {
        RunDir::at(host.run_dir(&self.entity.reference.id))
    }

    /// Whether something of it may be running, or it has not ended.
    pub(crate) fn is_open(&self) -> bool {
        !self.entity.terminal || self.runtimes.iter().any(|runtime| !runtime.is_stopped())
    }
}

/// An entity and everything linked below it, children before their parents: what is below was created later. Nothing when
/// the entity is gone.
pub(crate) fn tree(host: &Host, target: &Entity) -> Result<Vec<Node>, Error> {
    let mut entities = host.store().linked(target, Scope::Descendants)?;
    // As it is now: whoever asks again has seen it change.
    entities.extend(host.store().load(&target.reference.id)?);
    entities.sort_by_key(|entity| entity.row);
    let mut nodes: Vec<Node> = Vec::with_capacity(entities.len());
    for entity in entities {
        let mut node = Node::read(host, entity)?;
        if node.entity.row != target.row {
            let parents = host.store().linked(&node.entity, Scope::Parents)?;
            let goes = |parent: &Entity| nodes.iter().any(|node| node.is(parent) && node.also_below.is_none());
            node.also_below = parents
                .into_iter()
                .find(|parent| !goes(parent))
                .map(|parent| parent.reference);
        }
        nodes.push(node);
    }
    nodes.reverse();
    Ok(nodes)
}

impl Node {
    fn is(&self, entity: &Entity) -> bool {
        self.entity.row == entity.row
    }
}

/// Whether nothing of a runtime can be left, whatever its row says: the machine has been started anew since.
pub(crate) fn is_absent(host: &Host, runtime: &Runtime) -> bool {
    let here = identity::place(host);
    let known = !here.boot_id.is_empty() && !runtime.place.boot_id.is_empty();
    runtime.kind == RuntimeKind::Local
        && runtime.place.host == here.host
        && known
        && runtime.place.boot_id != here.boot_id
}

/// What no removal may touch while `going` are removed: the host's own places, and everything of whatever else may be
/// running. `given` is what the caller knows to be precious.
pub(crate) fn protected(host: &Host, given: &[Protected], going: &[Node]) -> Result<Vec<Protected>, Error> {
    let config = host.config();
    let mut protected = vec![
        Protected::inside(real_path(config.home()), "runwarden keeps its own there"),
        Protected::place(real_path(&config.database_path()), "the store is in it"),
    ];
    for place in given {
        let path = real_path(&place.path);
        protected.push(Protected { path, ..place.clone() });
    }
    let live = host.store().runtimes(None)?;
    let goes = |runtime: &Runtime| going.iter().any(|node| node.entity.reference == runtime.owner);
    for runtime in live.iter().filter(|runtime| !goes(runtime)) {
        let owner = &runtime.owner;
        let mut protect = |path: std::path::PathBuf, what: &str| {
            protected.push(Protected::place(real_path(&path), format!("{owner} {what}")));
        };
        if let Some(directory) = &runtime.cwd {
            protect(path_of(directory), "works in it");
        }
        if let Some(directory) = &runtime.run_dir {
            protect(path_of(directory), "has its run directory in it");
        }
        // Wherever its program has gone since; a number that is another's by now protects too much, not too little.
        if let Some(directory) = runtime.worker.as_ref().and_then(|worker| working_directory(worker.pid)) {
            protect(directory, "works in it");
        }
        for resource in host.store().resources(std::slice::from_ref(owner))? {
            protect(path_of(&resource.directory), "owns it, too");
        }
    }
    Ok(protected)
}

/// Why a directory of an entity must stay, and so the entity; none when all of them may go.
pub(crate) fn directories_doubt(host: &Host, node: &Node, protected: &[Protected]) -> Option<String> {
    run_directory_doubt(node.directory(host).path(), protected).or_else(|| {
        node.resources
            .iter()
            .find_map(|resource| resource_doubt(resource, protected))
    })
}

/// Why a run directory is left alone: it is the host's own, and somebody else may work in it all the same.
pub(crate) fn run_directory_doubt(path: &Path, protected: &[Protected]) -> Option<String> {
    let mut places = protected.to_vec();
    places.retain(|place| place.extent == Extent::Place);
    removal_refusal(&real_path(path), &places).map(|why| format!("{} stays: {why}", path.display()))
}

/// Why a directory that an entity registered is left alone.
fn resource_doubt(resource: &Resource, protected: &[Protected]) -> Option<String> {
    let path = path_of(&resource.directory);
    if let Some(why) = removal_refusal(&path, protected) {
        return Some(format!("{} stays: {why}", path.display()));
    }
    let is_elsewhere = real_path(&path) != path;
    is_elsewhere.then(|| format!("{} stays: a symbolic link is in the way", path.display()))
}
