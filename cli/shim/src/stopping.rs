//! The stop loop: ask, wait for the set to empty, kill, wait for proof, report who is left.
//!
//! ```text
//! Idle ──request──▶ Asked ──grace over──▶ Killing ──5 s──▶ GaveUp (tries again, ever more slowly)
//!                     └───────────── ECHILD at any point: the set is empty ─────────────┘
//! ```

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use libc::{c_int, pid_t};
use runwarden_shim::clock;
use runwarden_shim::slot::{self, Cause, Patience, Slot};
use runwarden_shim::spec::StopBy;

use crate::ending::{Forced, Progress, StopRecord};
use crate::members::{Set, Spares};
use crate::worker::Worker;

/// From the first SIGKILL to giving up on proof.
const PROOF_WITHIN_MS: u64 = 5_000;
/// In the first moments of killing there is no pause: a fork that is raced must be lost by the fork.
const RUSH_MS: u64 = 50;
/// Between strokes afterwards.
const STROKE_EVERY_MS: u64 = 5;
/// Probes for the newest processes in one stroke.
const PROBES: usize = 16;
/// First and longest pause between tries after giving up.
const RETRY_MS: (u64, u64) = (1_000, 30_000);
/// A request's own time is believed if it is at most this old; a clock of another time namespace is not ours.
const TIME_BELIEVED_MS: u64 = 60_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Asked,
    Killing { since_ms: u64, next_ms: u64 },
    GaveUp { next_ms: u64, pause_ms: u64 },
}

/// What a step of the stop loop led to.
#[derive(PartialEq, Eq)]
pub(crate) enum Step {
    Nothing,
    /// A stop began just now.
    Began,
    /// The proof did not come in time: survivors are to be recorded.
    GaveUp,
}

/// The state of stopping one run.
pub(crate) struct Stopping {
    file: File,
    by: StopBy,
    phase: Phase,
    /// Which slots have been taken into account.
    seen: [Option<u64>; slot::COUNT],
    first: Option<StopRecord>,
    kill_at_ms: u64,
    /// With [`StopBy::Stdin`]: when SIGTERM follows.
    term_at_ms: Option<u64>,
}

impl Stopping {
    pub(crate) fn new(file: File, by: StopBy) -> Self {
        Self {
            file,
            by,
            phase: Phase::Idle,
            seen: [None; slot::COUNT],
            first: None,
            kill_at_ms: u64::MAX,
            term_at_ms: None,
        }
    }

    /// The stop to write into the record.
    pub(crate) fn record(&self) -> Option<StopRecord> {
        let progress = match self.phase {
            Phase::GaveUp { .. } => Progress::GivenUp,
            Phase::Idle | Phase::Asked | Phase::Killing { .. } => Progress::AtWork,
        };
        self.first.clone().map(|first| StopRecord { progress, ..first })
    }

    /// Whether a stop is at work (not yet given up).
    pub(crate) fn is_going_on(&self) -> bool {
        matches!(self.phase, Phase::Asked | Phase::Killing { .. })
    }

    /// Writes a request of the shim's own into the stop file. Best effort: the file's space is reserved, and a stop
    /// is obeyed even if it could not be noted.
    pub(crate) fn note(&mut self, cause: Cause, grace_ms: u64) {
        let slot = Slot {
            cause,
            patience: Patience::Grace { ms: grace_ms },
            at_ms: clock::boottime_ms(),
            code: String::new(),
            actor: "system:shim".to_owned(),
            note: String::new(),
        };
        self.place(&slot);
    }

    /// Puts a request into the first free slot of the shim's own, the last one if none is free.
    pub(crate) fn place(&mut self, slot: &Slot) {
        let content = self.content();
        let free = (slot::SHIM_FIRST..slot::COUNT).find(|index| slot::at(&content, *index).is_none());
        let index = free.unwrap_or(slot::COUNT - 1);
        let offset = (index * slot::BYTES) as u64;
        if self.file.write_all_at(&slot.padded(), offset).is_ok() {
            let _ = self.file.sync_data();
        }
        self.take(index, slot);
    }

    /// Takes requests into account that have come since.
    pub(crate) fn reread(&mut self) {
        let content = self.content();
        for index in 0..slot::COUNT {
            if let Some(slot) = slot::at(&content, index) {
                self.take(index, &slot);
            }
        }
    }

    /// Whether anybody has asked.
    pub(crate) fn is_asked(&self) -> bool {
        self.first.is_some()
    }

    fn content(&self) -> Vec<u8> {
        let mut content = vec![0; slot::BYTES * slot::COUNT];
        let mut filled = 0;
        while let Ok(length @ 1..) = self.file.read_at(&mut content[filled..], filled as u64) {
            filled += length;
        }
        content
    }

    fn take(&mut self, index: usize, slot: &Slot) {
        let now_ms = clock::boottime_ms();
        let believed = now_ms.saturating_sub(TIME_BELIEVED_MS)..=now_ms;
        let from_ms = if believed.contains(&slot.at_ms) {
            slot.at_ms
        } else {
            now_ms
        };
        let kill_at_ms = from_ms.saturating_add(slot.patience.grace_ms());
        if self.seen[index].replace(slot.at_ms) == Some(slot.at_ms) {
            return;
        }
        self.kill_at_ms = self.kill_at_ms.min(kill_at_ms);
        if self.first.is_none() {
            self.first = Some(StopRecord {
                cause: slot.cause.text(),
                slot: index,
                at_ms: slot.at_ms,
                signal: "none".to_owned(),
                forced: Forced::No,
                progress: Progress::AtWork,
            });
        }
    }

    /// Does what is due.
    pub(crate) fn advance(&mut self, set: &mut Set, worker: &Worker) -> Step {
        let now_ms = clock::boottime_ms();
        match self.phase {
            Phase::Idle if self.is_asked() => {
                self.ask(set, worker, now_ms);
                Step::Began
            }
            Phase::Asked if now_ms >= self.kill_at_ms => {
                self.strike(set, worker);
                self.phase = Phase::Killing {
                    since_ms: now_ms,
                    next_ms: now_ms,
                };
                Step::Nothing
            }
            Phase::Asked => {
                if self.term_at_ms.is_some_and(|at_ms| now_ms >= at_ms) {
                    self.term_at_ms = None;
                    self.send(set, worker, libc::SIGTERM);
                }
                Step::Nothing
            }
            Phase::Killing { since_ms, .. } if now_ms >= since_ms + PROOF_WITHIN_MS => {
                self.phase = Phase::GaveUp {
                    next_ms: now_ms + RETRY_MS.0,
                    pause_ms: RETRY_MS.0,
                };
                Step::GaveUp
            }
            Phase::Killing { since_ms, next_ms } if now_ms >= next_ms => {
                self.strike(set, worker);
                let pause_ms = if now_ms - since_ms < RUSH_MS {
                    0
                } else {
                    STROKE_EVERY_MS
                };
                self.phase = Phase::Killing {
                    since_ms,
                    next_ms: now_ms + pause_ms,
                };
                Step::Nothing
            }
            Phase::GaveUp { next_ms, pause_ms } if now_ms >= next_ms => {
                self.strike(set, worker);
                let pause_ms = (pause_ms * 2).min(RETRY_MS.1);
                self.phase = Phase::GaveUp {
                    next_ms: now_ms + pause_ms,
                    pause_ms,
                };
                Step::Nothing
            }
            Phase::Idle | Phase::Killing { .. } | Phase::GaveUp { .. } => Step::Nothing,
        }
    }

    /// When something is due next, on the clock that counts from boot.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        match self.phase {
            Phase::Idle => None,
            Phase::Asked => Some(self.kill_at_ms.min(self.term_at_ms.unwrap_or(u64::MAX))),
            Phase::Killing { next_ms, .. } | Phase::GaveUp { next_ms, .. } => Some(next_ms),
        }
    }

    fn ask(&mut self, set: &mut Set, worker: &Worker, now_ms: u64) {
        self.phase = Phase::Asked;
        match self.by {
            _ if self.kill_at_ms <= now_ms => {}
            StopBy::Signal(signal) => self.send(set, worker, signal),
            // The caller of `advance` closes the stream when a stop begins.
            StopBy::Stdin => self.term_at_ms = Some(now_ms + (self.kill_at_ms - now_ms) / 2),
        }
    }

    /// The polite signal, then CONT: a stopped process keeps the first pending and wakes with it.
    fn send(&mut self, set: &mut Set, worker: &Worker, signal: c_int) {
        let reached = signal_group(set, worker, signal);
        signal_group(set, worker, libc::SIGCONT);
        set.signal(&[signal, libc::SIGCONT], reached);
        if let Some(first) = &mut self.first {
            first.signal = signal_name(signal);
        }
    }

    fn strike(&mut self, set: &mut Set, worker: &Worker) {
        if let Some(first) = &mut self.first {
            first.signal = signal_name(libc::SIGKILL);
            first.forced = Forced::Yes;
        }
        set.kill_group();
        signal_group(set, worker, libc::SIGKILL);
        set.signal(&[libc::SIGKILL], None);
        for _ in 0..PROBES {
            set.kill_newest();
        }
    }
}

/// Signals the worker's group, unless a process of another run may be in it: a run that was started in the foreground of
/// this one shares its group.
fn signal_group(set: &mut Set, worker: &Worker, signal: c_int) -> Option<pid_t> {
    match set.spares() {
        Spares::Nobody => worker.signal_group(signal),
        Spares::Somebody => None,
    }
}

fn signal_name(signal: c_int) -> String {
    let names = [
        (libc::SIGHUP, "sighup"),
        (libc::SIGINT, "sigint"),
        (libc::SIGQUIT, "sigquit"),
        (libc::SIGKILL, "sigkill"),
        (libc::SIGUSR1, "sigusr1"),
        (libc::SIGUSR2, "sigusr2"),
        (libc::SIGTERM, "sigterm"),
    ];
    let known = names.iter().find(|name| name.0 == signal);
    known.map_or_else(|| format!("signal {signal}"), |name| name.1.to_owned())
}
