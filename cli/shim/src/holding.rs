//! What holds a set together beside the shim.

use std::os::fd::AsFd as _;

use libc::pid_t;
use runwarden_shim::message::Stage;
use runwarden_shim::spec::{Containment, Need, Spec};

use crate::cgroup::Cgroup;
use crate::namespace::Namespace;
use crate::sys::{self, Errno};
use crate::worker::{self, Failure};

/// What holds a set together beside the shim.
pub(crate) enum Holding {
    Nothing,
    Cgroup(Cgroup),
    Namespace(Namespace),
}

impl Holding {
    /// Makes what the specification asks for; nothing where a cgroup is only wanted and cannot be had.
    pub(crate) fn make(spec: &Spec) -> Result<Self, Failure> {
        if spec.namespace == runwarden_shim::spec::Namespace::Own {
            let namespace = Namespace::make().map_err(Failure::at(Stage::Containment))?;
            return Ok(Self::Namespace(namespace));
        }
        let Some(group) = &spec.cgroup else {
            return Ok(Self::Nothing);
        };
        match Cgroup::make(worker::path(&group.path)) {
            Ok(cgroup) => Ok(Self::Cgroup(cgroup)),
            Err(errno) => allow_without(spec, errno).map(|()| Self::Nothing),
        }
    }

    /// Copies this process into it: 0 in the copy. Becomes nothing where a cgroup is only wanted and takes nobody.
    pub(crate) fn fork_inside(&mut self, spec: &Spec) -> Result<pid_t, Failure> {
        let fork = Failure::at(Stage::Fork);
        match self {
            Self::Nothing => {}
            Self::Namespace(namespace) => return namespace.fork_inside().map_err(fork),
            Self::Cgroup(cgroup) => match sys::fork_into(Some(cgroup.as_fd())) {
                Ok(pid) => {
                    cgroup.learn_name(pid);
                    return Ok(pid);
                }
                Err(errno) => {
                    allow_without(spec, errno)?;
                    *self = Self::Nothing;
                }
            },
        }
        sys::fork().map_err(fork)
    }

    pub(crate) fn containment(&self) -> Containment {
        match self {
            Self::Nothing => Containment::Subreaper,
            Self::Cgroup(_) => Containment::Cgroup,
            Self::Namespace(_) => Containment::PidNamespace,
        }
    }

    pub(crate) fn cgroup(&self) -> Option<&Cgroup> {
        match self {
            Self::Cgroup(cgroup) => Some(cgroup),
            Self::Nothing | Self::Namespace(_) => None,
        }
    }

    /// The init of the set's namespace: below the shim, and no member.
    pub(crate) fn init(&self) -> Option<pid_t> {
        match self {
            Self::Namespace(namespace) => Some(namespace.init()),
            Self::Nothing | Self::Cgroup(_) => None,
        }
    }
}

/// Whether a run may start though its cgroup cannot be had.
fn allow_without(spec: &Spec, errno: Errno) -> Result<(), Failure> {
    match &spec.cgroup {
        Some(group) if group.need == Need::Required => Err(Failure {
            stage: Stage::Containment,
            errno,
        }),
        _ => Ok(()),
    }
}
