//! What of a run is running now, as far as it can be seen from here.

use serde_json::{Value, json};

use crate::error::Error;
use crate::host::Host;
use crate::model::{Bytes, Runtime, RuntimeKind};
use crate::process::{Liveness, Living, classify, living_below};
use crate::verbs::identity;

/// What was seen of a runtime's processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// These live, parents before children. None: it has not started, or is ending.
    Processes(Vec<Living>),
    /// Its shim is gone, and with it the sight of what is left.
    ShimGone,
    /// It cannot be seen from here.
    Unknown,
}

/// Looks at the processes of a runtime. For people: a look is old when it is read, and decides nothing.
///
/// # Errors
/// The list of processes cannot be read.
pub fn living(host: &Host, runtime: &Runtime) -> Result<Seen, Error> {
    if runtime.kind != RuntimeKind::Local {
        return Ok(Seen::Unknown);
    }
    let Some(shim) = identity::shim(runtime) else {
        return Ok(Seen::Processes(Vec::new()));
    };
    let alive = match classify(&shim, host.place()) {
        Liveness::Alive(process) => process,
        Liveness::Gone { .. } => return Ok(Seen::ShimGone),
        Liveness::Unknown { .. } => return Ok(Seen::Unknown),
    };
    let seen = living_below(shim.pid)?;
    // Its number was its own all along only if it still runs.
    Ok(if alive.has_exited()? {
        Seen::ShimGone
    } else {
        Seen::Processes(seen)
    })
}

/// The JSON document of a process.
pub fn living_json(living: &Living) -> Value {
    let words = living.command.iter().map(|word| Bytes(word.clone()));
    json!({
        "pid": living.pid,
        "parent": living.parent,
        "name": living.name,
        "command": words.collect::<Vec<_>>(),
        "state": living.state.to_string(),
        "uid": living.uid,
        "memory_bytes": living.memory_bytes,
        "age_ms": living.age_seconds.saturating_mul(1000),
        "run": living.run,
    })
}
