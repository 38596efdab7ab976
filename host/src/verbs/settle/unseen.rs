//! Records in place of those that shims write: of ends that nobody saw.

use crate::model::{Runtime, Timestamp};
use crate::process::{ExitRecord, SetRecord};

/// The cause of an end by a restart of the machine.
pub(crate) const HOST_RESTARTED: &str = "host_restarted";

/// A set without members, by this proof.
pub(crate) fn nobody(proof: &str) -> SetRecord {
    SetRecord {
        empty: true,
        proof: Some(proof.to_owned()),
        spared: Vec::new(),
        survivors: Vec::new(),
        survivors_total: 0,
    }
}

/// The record of a worker that nobody saw end: no exit code, no signal, no usage.
pub(crate) fn unseen(runtime: &Runtime, cause: &str, set: SetRecord, now: Timestamp) -> ExitRecord {
    let ms = |at: Timestamp| u64::try_from(at.as_ms()).unwrap_or(0);
    let worker = runtime
        .worker
        .as_ref()
        .and_then(|worker| i32::try_from(worker.pid).ok());
    ExitRecord {
        v: 1,
        token: runtime.attempt_token.clone(),
        worker_pid: worker.unwrap_or(0),
        raw_status: None,
        exit_code: None,
        term_signal: None,
        core_dumped: false,
        cause: cause.to_owned(),
        stop: None,
        started_at_ms: ms(runtime.created_at),
        ended_at_ms: ms(now),
        duration_ms: ms(now).saturating_sub(ms(runtime.created_at)),
        user_ms: 0,
        system_ms: 0,
        max_rss_bytes: 0,
        boot_id: runtime.place.boot_id.clone(),
        oom_kills: 0,
        lost_output_bytes: 0,
        dropped_output_bytes: 0,
        spawn_error: None,
        set,
        written_by: Some("repair".to_owned()),
    }
}
