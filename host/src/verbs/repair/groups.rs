//! Groups that nobody is left to remove: their run is over, and its shim was killed before it could.
//!
//! A group is ours when it has the very name that was chosen for a run of this store, which holds a part of the attempt's
//! token, and the run's row says that it is stopped. The kernel keeps one that is not empty.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use crate::error::Error;
use crate::host::Host;
use crate::model::{Entity, Runtime};
use crate::process::{ShimLock, Surroundings, empty_groups, group_name};
use crate::verbs::settle::run_directory;

/// Runs that are over and of which an empty group is left; each with its row, which names the group.
pub(super) fn left(host: &Host) -> Result<Vec<(Entity, Runtime)>, Error> {
    let mut left = Vec::new();
    for (name, path) in empty_groups(&Surroundings::here()) {
        let Some(entity) = name.rsplit_once('-').map(|(id, _)| host.store().load(id)) else {
            continue;
        };
        let Some(entity) = entity? else { continue };
        let rows = host.store().runtimes(Some(std::slice::from_ref(&entity.reference)))?;
        let is_its = |row: &Runtime| group_name(&entity.reference.id, &row.attempt_token) == name;
        if let Some(mut runtime) = rows.into_iter().find(is_its)
            && runtime.is_stopped()
            && !is_held(&runtime)
        {
            // A shim that was killed at its gate had not told it yet.
            runtime.cgroup = Some(path.into_os_string().into_vec());
            left.push((entity, runtime));
        }
    }
    Ok(left)
}

/// Whether it is gone.
pub(super) fn is_gone(runtime: &Runtime) -> bool {
    let path = runtime
        .cgroup
        .clone()
        .map(|path| PathBuf::from(OsString::from_vec(path)));
    path.is_none_or(|path| !path.exists())
}

/// A shim that lives removes its group itself.
fn is_held(runtime: &Runtime) -> bool {
    let lock = runtime.run_dir.as_deref().map(|path| run_directory(path).shim_lock());
    !matches!(lock, None | Some(Ok(ShimLock::Free | ShimLock::Absent)))
}
