//! Stopping a set whose shim is gone: the killer does what the shim would, and leaves the exit record that the shim cannot.

use crate::error::Error;
use crate::host::Host;
use crate::model::{Runtime, Timestamp};
use crate::process::{
    self, ExitFile, ExitRecord, Look, RunDir, SetRecord, Signal, StopRecord, Survivor, UnheldSet, boottime_ms,
};
use crate::verbs::identity;
use crate::verbs::settle::run_directory;

/// Between two looks while members have their grace period, and while they are being killed.
const PAUSE_MS: (u64, u64) = (50, 5);

/// A set that the killer stops itself.
#[derive(Debug)]
pub(super) struct Orphans {
    set: UnheldSet,
    directory: Option<RunDir>,
    slot: usize,
    asked_at_ms: u64,
    kill_at_ms: u64,
    signal: Option<&'static str>,
    refused: bool,
}

/// How far the stop has come.
#[derive(Debug)]
pub(super) enum Progress {
    /// Members live; look again after so many milliseconds.
    Living(Vec<Survivor>, u64),
    /// Nobody is left, by this proof.
    Empty(&'static str),
    /// The kernel refused every signal.
    Denied,
}

impl Orphans {
    /// Begins; signals nobody yet. `slot` is where the request to stop was noted.
    pub(super) fn new(host: &Host, runtime: &Runtime, slot: usize, grace_ms: u64) -> Result<Self, Error> {
        let now_ms = boottime_ms();
        Ok(Self {
            set: identity::unheld(host, runtime)?,
            directory: runtime.run_dir.as_deref().map(run_directory),
            slot,
            asked_at_ms: now_ms,
            kill_at_ms: now_ms.saturating_add(grace_ms),
            signal: None,
            refused: false,
        })
    }

    /// The strongest signal that reached somebody.
    pub(super) const fn signal(&self) -> Option<&'static str> {
        self.signal
    }

    /// Looks, and does what is due.
    pub(super) fn step(&mut self) -> Progress {
        let members = match self.set.look() {
            Look::Empty(proof) => {
                self.set.remove_cgroup();
                return Progress::Empty(proof);
            }
            Look::Living(members) => members,
        };
        self.heed_others();
        let is_over = boottime_ms() >= self.kill_at_ms;
        let (signalled, word) = if is_over {
            (self.set.kill(), "sigkill")
        } else {
            (self.set.ask(Signal::TERM), "sigterm")
        };
        if signalled.sent > 0 {
            self.signal = Some(word);
        }
        self.refused = self.signal.is_none() && signalled.denied > 0;
        if self.refused {
            return Progress::Denied;
        }
        let pause_ms = if is_over { PAUSE_MS.1 } else { PAUSE_MS.0 };
        Progress::Living(members, pause_ms)
    }

    /// The earliest KILL of all who asked counts.
    fn heed_others(&mut self) {
        let requests = self.directory.as_ref().and_then(|run| run.stop_requests().ok());
        let earliest = requests
            .unwrap_or_default()
            .into_iter()
            .filter(|(_, slot)| slot.cause == process::Cause::Kill)
            .map(|(_, slot)| slot.at_ms.saturating_add(slot.patience.grace_ms()))
            .min();
        self.kill_at_ms = self.kill_at_ms.min(earliest.unwrap_or(u64::MAX));
    }

    /// Leaves what the shim would have left: that the set is empty, and nothing of what only a parent sees. False where it
    /// cannot be left.
    pub(super) fn leave_record(&self, runtime: &Runtime, proof: &str, now: Timestamp) -> bool {
        let Some(directory) = &self.directory else {
            return false;
        };
        let set = SetRecord {
            empty: true,
            proof: Some(proof.to_owned()),
            spared: Vec::new(),
            survivors: Vec::new(),
            survivors_total: 0,
        };
        let stop = self.signal.map(|signal| StopRecord {
            cause: process::Cause::Kill.text().to_owned(),
            slot: self.slot,
            at_ms: self.asked_at_ms,
            signal: signal.to_owned(),
            forced: signal == "sigkill",
            given_up: false,
        });
        let record = match directory.read_exit(&runtime.attempt_token) {
            // The shim saw the worker end; it was killed while the rest of the set lived on.
            Ok(ExitFile::Recorded(seen)) => ExitRecord { set, stop, ..*seen },
            Ok(ExitFile::Absent | ExitFile::OtherAttempt) | Err(_) => unseen(runtime, stop, set, now),
        };
        let left = directory.write_exit(&record);
        if let Err(error) = &left {
            tracing::warn!(%error, "the end is in the store alone");
        }
        left.is_ok()
    }
}

/// The record of a worker that nobody saw end.
fn unseen(runtime: &Runtime, stop: Option<StopRecord>, set: SetRecord, now: Timestamp) -> ExitRecord {
    let ms = |at: Timestamp| u64::try_from(at.as_ms()).unwrap_or(0);
    let worker = runtime
        .worker
        .as_ref()
        .and_then(|worker| i32::try_from(worker.pid).ok());
    let cause = if stop.is_some() { "kill" } else { "unobserved" };
    ExitRecord {
        v: 1,
        token: runtime.attempt_token.clone(),
        worker_pid: worker.unwrap_or(0),
        raw_status: None,
        exit_code: None,
        term_signal: None,
        core_dumped: false,
        cause: cause.to_owned(),
        stop,
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
        written_by: Some("killer".to_owned()),
    }
}
