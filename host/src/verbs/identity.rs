//! Between the inventory's columns and the process layers that the operating system knows, and what the two together say of
//! a set of processes.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use crate::error::Error;
use crate::host::Host;
use crate::model::{
    KillRefusal, Place, ProcessIdentity, Runtime, RuntimeKind, RuntimeState, SeenGone, Standing, Unjudged,
};
use crate::process::{self, Gone, Liveness, Look, Sent, ShimLock, Traces, UnheldSet, Unknown};
use crate::verbs::settle::run_directory;

/// How often a set that shows no member is looked at before that is left open.
const LOOKS_MAX: usize = 3;

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

fn identity(runtime: &Runtime, process: &ProcessIdentity) -> Option<process::Identity> {
    identity_at(&runtime.place, process, &runtime.attempt_token)
}

/// Whether a process that was recorded there is positively gone; what cannot be known is not.
pub(crate) fn is_gone(host: &Host, (place, process): (&Place, &ProcessIdentity)) -> bool {
    let identity = identity_at(place, process, "");
    identity.is_some_and(|identity| matches!(process::classify(&identity, host.place()), Liveness::Gone { .. }))
}

fn identity_at(place: &Place, process: &ProcessIdentity, attempt_token: &str) -> Option<process::Identity> {
    Some(process::Identity {
        host: place.host.clone(),
        boot_id: place.boot_id.clone(),
        pid_namespace: place.pid_namespace.map(i64::cast_unsigned),
        time_namespace: place.time_namespace.map(i64::cast_unsigned),
        pid: i32::try_from(process.pid).ok()?,
        start_ticks: process.start_ticks.and_then(|ticks| u64::try_from(ticks).ok()),
        pidfs_inode: process.pidfs_inode.map(i64::cast_unsigned),
        pidfs_handle: process.pidfs_handle.clone(),
        attempt_token: attempt_token.to_owned(),
    })
}

/// What is known of the processes of a runtime that is not stopped; looks at them, signals none.
pub(crate) fn standing(host: &Host, runtime: &Runtime) -> Result<Standing, Error> {
    if runtime.kind != RuntimeKind::Local {
        let handle = runtime.remote_handle.as_deref().unwrap_or("its own name there");
        let message = format!("it runs elsewhere as {handle}: stop it there");
        return Ok(unjudged(KillRefusal::Remote, message));
    }
    let (shim, worker) = (shim(runtime), worker(runtime));
    match &shim {
        None if worker.is_none() && runtime.state == RuntimeState::Starting => Ok(of_place(host, runtime)),
        None => of_worker(host, runtime, worker.as_ref()),
        Some(shim) => match process::classify(shim, host.place()) {
            Liveness::Alive(process) => Ok(match process::may_signal(&process)? {
                Sent::Denied => unjudged(KillRefusal::PermissionDenied, "it belongs to another user".to_owned()),
                Sent::Sent | Sent::AlreadyDead => Standing::Held,
            }),
            Liveness::Unknown { why } => Ok(unknown(runtime, why)),
            Liveness::Gone { .. } if is_locked(runtime)? => {
                let message = "a shim holds its run directory, yet the one that was recorded is gone".to_owned();
                Ok(unjudged(KillRefusal::IdentityMismatch, message))
            }
            Liveness::Gone { why: Gone::EarlierBoot } => Ok(Standing::Gone(SeenGone::EarlierBoot)),
            Liveness::Gone { .. } => of_worker(host, runtime, worker.as_ref()),
        },
    }
}

/// Whether a shim is just taking the set over: it holds the run directory, and the row names another that is gone.
///
/// # Errors
/// The lock of the run directory cannot be read.
pub(crate) fn is_changing_hands(host: &Host, runtime: &Runtime) -> Result<bool, Error> {
    let is_gone = |shim: process::Identity| matches!(process::classify(&shim, host.place()), Liveness::Gone { .. });
    Ok(shim(runtime).is_some_and(is_gone) && is_locked(runtime)?)
}

/// What is known of processes that could not be looked at.
pub(crate) fn unreadable(error: &Error) -> Standing {
    unjudged(KillRefusal::Unverifiable, format!("it cannot be looked at: {error}"))
}

/// A set without a shim, to be looked for.
pub(crate) fn unheld(host: &Host, runtime: &Runtime) -> Result<UnheldSet, Error> {
    let others = host.store().runtimes(None)?;
    let spared = others.iter().filter(|other| other.id != runtime.id).filter_map(shim);
    let traces = Traces {
        worker: worker(runtime),
        cgroup: runtime
            .cgroup
            .clone()
            .map(|path| PathBuf::from(OsString::from_vec(path))),
        token: runtime.attempt_token.clone(),
        spared: spared.collect(),
    };
    Ok(UnheldSet::new(&traces, host.place()))
}

/// Who is found of a set by what marks its members; none for one whose shim is their parent and has none.
pub(crate) fn found(host: &Host, runtime: &Runtime) -> Result<Vec<i32>, Error> {
    Ok(match unheld(host, runtime)?.look() {
        Look::Living(members) => members.into_iter().map(|member| member.pid).collect(),
        Look::Empty(_) => Vec::new(),
    })
}

/// The worker of a runtime, to be compared with what runs now. None when it was never recorded.
pub(crate) fn worker(runtime: &Runtime) -> Option<process::Identity> {
    identity(runtime, runtime.worker.as_ref()?)
}

/// One that is being started: machine, boot and namespace are all that is known.
fn of_place(host: &Host, runtime: &Runtime) -> Standing {
    let nobody = ProcessIdentity {
        pid: 0,
        start_ticks: None,
        pidfs_inode: None,
        pidfs_handle: None,
    };
    let place = identity(runtime, &nobody).and_then(|place| process::classify_place(&place, host.place()));
    match place {
        None | Some(Liveness::Alive(_)) => Standing::Starting,
        Some(Liveness::Gone { why }) => Standing::Gone(seen_gone(why)),
        Some(Liveness::Unknown { why }) => unknown(runtime, why),
    }
}

/// One whose shim is gone, or never was: the worker is judged, then the rest is looked for.
fn of_worker(host: &Host, runtime: &Runtime, worker: Option<&process::Identity>) -> Result<Standing, Error> {
    let seen = match worker.map(|worker| process::classify(worker, host.place())) {
        None => SeenGone::NoMember,
        Some(Liveness::Unknown { why }) => return Ok(unknown(runtime, why)),
        Some(Liveness::Gone { why: Gone::EarlierBoot }) => return Ok(Standing::Gone(SeenGone::EarlierBoot)),
        Some(Liveness::Gone { why }) => seen_gone(why),
        Some(Liveness::Alive(process)) if process::may_signal(&process)? == Sent::Denied => {
            let message = "it belongs to another user".to_owned();
            return Ok(unjudged(KillRefusal::PermissionDenied, message));
        }
        Some(Liveness::Alive(_)) => return Ok(Standing::Unheld),
    };
    let mut set = unheld(host, runtime)?;
    for _ in 0..LOOKS_MAX {
        match set.look() {
            Look::Empty(_) => return Ok(Standing::Gone(seen)),
            // It could not catch up with what starts meanwhile.
            Look::Living(members) if members.is_empty() => {}
            Look::Living(_) => break,
        }
    }
    Ok(Standing::Unheld)
}

const fn seen_gone(why: Gone) -> SeenGone {
    match why {
        Gone::EarlierBoot => SeenGone::EarlierBoot,
        Gone::NoSuchProcess | Gone::Vanished => SeenGone::NoSuchProcess,
        Gone::Recycled => SeenGone::Recycled,
        Gone::Zombie => SeenGone::Zombie,
    }
}

/// Whether a shim holds the lock of the run directory: it lives, whatever its recorded identity says.
fn is_locked(runtime: &Runtime) -> Result<bool, Error> {
    let Some(run_dir) = &runtime.run_dir else {
        return Ok(false);
    };
    Ok(run_directory(run_dir).shim_lock()? == ShimLock::Held)
}

fn unjudged(word: KillRefusal, message: String) -> Standing {
    Standing::Unjudged(Unjudged { word, message })
}

fn unknown(runtime: &Runtime, why: Unknown) -> Standing {
    let (word, message) = match why {
        Unknown::OtherHost => (
            KillRefusal::HostMismatch,
            format!("it was started on {}: kill it there", runtime.place.host),
        ),
        Unknown::OtherPidNamespace => (
            KillRefusal::NamespaceMismatch,
            "it was started in another pid namespace: kill it there".to_owned(),
        ),
        Unknown::OtherTimeNamespace => (
            KillRefusal::NamespaceMismatch,
            "it was started in another time namespace, and only its start time tells it from others".to_owned(),
        ),
        Unknown::Contradiction => (
            KillRefusal::IdentityMismatch,
            "the process that has its number is it by one layer and another by the next".to_owned(),
        ),
        Unknown::Incomplete | Unknown::Denied | Unknown::Unsupported => (
            KillRefusal::Unverifiable,
            "nothing durable tells its process from others here".to_owned(),
        ),
    };
    unjudged(word, message)
}
