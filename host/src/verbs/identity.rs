//! Between the inventory's columns and the process layers that the operating system knows.

use crate::host::Host;
use crate::model::{Place, ProcessIdentity, Runtime};
use crate::process;

/// A process as the inventory keeps it.
pub(crate) fn recorded(identity: &process::Identity) -> ProcessIdentity {
    ProcessIdentity {
        pid: i64::from(identity.pid),
        start_ticks: identity.start_ticks.and_then(|ticks| i64::try_from(ticks).ok()),
        pidfs_inode: identity.pidfs_inode.map(u64::cast_signed),
        pidfs_handle: identity.pidfs_handle.clone(),
    }
}

/// Where this process is, as the inventory keeps it.
pub(crate) fn place(host: &Host) -> Place {
    let here = host.place();
    Place {
        host: here.host.clone(),
        boot_id: here.boot_id.clone().unwrap_or_default(),
        pid_namespace: here.pid_namespace.map(u64::cast_signed),
        time_namespace: here.time_namespace.map(u64::cast_signed),
    }
}

/// The shim of a runtime, to be compared with what runs now. None when it was never recorded.
pub(crate) fn shim(runtime: &Runtime) -> Option<process::Identity> {
    identity(runtime, runtime.shim.as_ref()?)
}

/// The worker of a runtime, to be compared with what runs now. None when it was never recorded.
pub(crate) fn worker(runtime: &Runtime) -> Option<process::Identity> {
    identity(runtime, runtime.worker.as_ref()?)
}

fn identity(runtime: &Runtime, process: &ProcessIdentity) -> Option<process::Identity> {
    Some(process::Identity {
        host: runtime.place.host.clone(),
        boot_id: runtime.place.boot_id.clone(),
        pid_namespace: runtime.place.pid_namespace.map(i64::cast_unsigned),
        time_namespace: runtime.place.time_namespace.map(i64::cast_unsigned),
        pid: i32::try_from(process.pid).ok()?,
        start_ticks: process.start_ticks.and_then(|ticks| u64::try_from(ticks).ok()),
        pidfs_inode: process.pidfs_inode.map(i64::cast_unsigned),
        pidfs_handle: process.pidfs_handle.clone(),
        attempt_token: runtime.attempt_token.clone(),
    })
}
