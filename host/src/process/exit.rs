//! The exit record: what the shim saw of a run's end.

use serde::{Deserialize, Serialize};

/// What is in a run directory in place of an exit record.
#[derive(Debug, Clone, PartialEq)]
pub enum ExitFile {
    /// Nothing: the run has not ended, or nobody saw it.
    Absent,
    /// The record of another attempt. It is never this run's.
    OtherAttempt,
    /// The record.
    Recorded(Box<ExitRecord>),
}

/// How a run ended. Exit code and signal exclude each other; both are absent when the program never executed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// Version of the format: 1.
    pub v: u32,
    /// The attempt this is the record of.
    pub token: String,
    /// The worker's pid.
    pub worker_pid: i32,
    /// The status as `wait4` gave it.
    pub raw_status: Option<i32>,
    /// The exit code.
    pub exit_code: Option<i32>,
    /// The signal it died by.
    pub term_signal: Option<i32>,
    /// Whether it left a core.
    pub core_dumped: bool,
    /// `exit`, `signal`, `oom` (a SIGKILL that was not ours, while the kernel killed in the memory cgroup the worker was
    /// in), or the cause of the stop that was going on when the worker ended.
    pub cause: String,
    /// The stop, if there was one, before or after the worker's end.
    pub stop: Option<StopRecord>,
    /// When the gate opened, UTC.
    pub started_at_ms: u64,
    /// When the worker ended, UTC.
    pub ended_at_ms: u64,
    /// Between the two, by a clock nobody sets.
    pub duration_ms: u64,
    /// Processor time in user mode, of the worker and the children it waited for.
    pub user_ms: u64,
    /// Processor time in the kernel.
    pub system_ms: u64,
    /// The most memory it held.
    pub max_rss_bytes: u64,
    /// The boot it ended in.
    pub boot_id: String,
    /// How many processes the kernel killed for want of memory in the worker's memory cgroup while it ran.
    #[serde(default)]
    pub oom_kills: u64,
    /// Output that could not be written to a log.
    pub lost_output_bytes: u64,
    /// Output that was dropped again, so that the logs stay within their limit.
    #[serde(default)]
    pub dropped_output_bytes: u64,
    /// Set when the program never executed.
    pub spawn_error: Option<SpawnErrorRecord>,
    /// What is known of everything the run started.
    pub set: SetRecord,
    /// Who wrote it in place of a shim that is gone: what only a parent sees (status, times, usage) is not known then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_by: Option<String>,
}

/// A stop as the shim carried it out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopRecord {
    /// The first request's cause.
    pub cause: String,
    /// The first request's slot in the stop file.
    pub slot: usize,
    /// When it was made, on the clock that counts from boot.
    pub at_ms: u64,
    /// The strongest signal sent; `none` if none was.
    pub signal: String,
    /// Whether it came to SIGKILL.
    pub forced: bool,
    /// Whether it ended without proof; members of the set live on.
    #[serde(default)]
    pub given_up: bool,
}

/// A start that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnErrorRecord {
    /// The word of a [`super::Stage`].
    pub stage: String,
    /// The error number, 0 if there is none.
    pub errno: i32,
}

/// Everything a run started, as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetRecord {
    /// Whether it was seen empty.
    pub empty: bool,
    /// What proves it: `namespace_ended` or `cgroup_empty` where the set has one, else `subreaper_echild`, or
    /// `subreaper_but_for_spared` when runs that were started inside live on.
    pub proof: Option<String>,
    /// Shims and finishing commands of other runs that lived below the shim and were spared.
    #[serde(default)]
    pub spared: Vec<Spared>,
    /// Who lived when this was written; as many as there was room for.
    pub survivors: Vec<Survivor>,
    /// How many lived.
    pub survivors_total: usize,
}

/// A process of a run that was started from inside this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spared {
    /// The run it belongs to; another home's, perhaps.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Its number.
    pub pid: i32,
}

/// A process that lives on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivor {
    /// Its number.
    pub pid: i32,
    /// Its name.
    pub comm: String,
    /// Its state letter.
    pub state: String,
    /// Its real user, if it can be read.
    pub uid: Option<u32>,
}
