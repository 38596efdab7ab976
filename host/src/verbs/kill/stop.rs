//! The stop of one set: asked for, watched, recorded.
//!
//! ```text
//! Starting ──identity──▶ Shim ──its shim dies──▶ Orphans
//!     │                    │                        │
//!     └──── nothing ───────┴── proof ───────────────┴──▶ settled, reported
//! ```

use std::time::Duration;

use super::members;
use super::orphans::{Orphans, Progress};
use super::record::{self, End};
use super::report::{KillResult, Killed};
use super::round::Act;
use crate::crash;
use crate::error::Error;
use crate::host::Host;
use crate::model::{Entity, KillNode, KillRow, KillSet, Runtime, RuntimeState, Standing};
use crate::process::{self, ExitRecord, Liveness, Patience, Slot, Survivor, Wake};
use crate::store::RuntimeUpdate;
use crate::verbs::identity;
use crate::verbs::settle::{by_kill, exit_record, run_directory, settle, signal_word};

/// How long a look may wait for the next when only others can change something; the wake file comes before.
const PAUSE: Duration = Duration::from_millis(250);

/// Who does the stopping.
#[derive(Debug)]
enum Hold {
    /// Nobody yet: no identity was recorded when it was looked at.
    Starting,
    /// Its shim.
    Shim,
    /// We do.
    Orphans(Box<Orphans>),
}

/// One set on its way to its end.
#[derive(Debug)]
pub(super) struct Stop {
    /// The place of its node.
    pub(super) place: usize,
    /// Its runtime, as it was found.
    pub(super) runtime: Runtime,
    before: Entity,
    set: KillSet,
    row: Option<KillRow>,
    hold: Hold,
    survivors: Vec<Survivor>,
    outcome: Option<Result<Killed, Error>>,
    /// The set was seen to be empty, and the store could not be told.
    unwritten: Option<Error>,
}

impl Stop {
    pub(super) fn new(place: usize, node: &KillNode, runtime: Runtime) -> Self {
        let hold = match node.standing {
            Standing::Starting => Hold::Starting,
            _ => Hold::Shim,
        };
        Self {
            place,
            runtime,
            before: node.entity.clone(),
            set: node.set,
            row: node.row.clone(),
            hold,
            survivors: Vec::new(),
            outcome: None,
            unwritten: None,
        }
    }

    pub(super) const fn is_open(&self) -> bool {
        self.outcome.is_none()
    }

    /// Asks for the stop, once the intent is recorded as far as it can be.
    pub(super) fn begin(&mut self, act: &mut Act<'_>) {
        if let Err(error) = self.try_begin(act) {
            self.outcome = Some(Err(error));
        }
    }

    fn try_begin(&mut self, act: &mut Act<'_>) -> Result<(), Error> {
        if matches!(self.hold, Hold::Starting) {
            // Looked at again: it has its identity since, or its starter finds the intent.
            let Some(runtime) = self.row_now(act)? else {
                return Ok(());
            };
            self.runtime = runtime;
            if self.runtime.shim.is_none() {
                return self.begin_unborn(act);
            }
        }
        let slot = slot(act);
        let Some(run_dir) = self.runtime.run_dir.clone() else {
            return self.take_over(act, 0);
        };
        let directory = run_directory(&run_dir);
        let Some(shim) = identity::shim(&self.runtime) else {
            // Where the request cannot be noted the set is stopped all the same.
            return self.take_over(act, directory.append_stop(&slot).unwrap_or_default());
        };
        let asked = match process::ask_stop(&directory, &slot, &shim, act.host.place()) {
            Err(_) if is_gone(&shim, act) => return self.take_over(act, 0),
            asked => asked?,
        };
        match asked.wake {
            Wake::Woken => self.hold = Hold::Shim,
            Wake::ShimGone(_) if self.is_empty()? => self.hold = Hold::Shim,
            Wake::ShimGone(_) => self.take_over(act, asked.slot)?,
            Wake::ShimUnknown(_) => self.close(
                KillResult::Refused,
                "unverifiable",
                "its shim cannot be told from others",
            ),
            Wake::Denied => self.close(KillResult::Refused, "permission_denied", "it belongs to another user"),
        }
        Ok(())
    }

    /// One that has no process: from the intent on it will never have one, because its starter looks before the gate
    /// opens. Without the intent in the store, the request in its run directory keeps the gate closed.
    fn begin_unborn(&mut self, act: &mut Act<'_>) -> Result<(), Error> {
        if self.runtime.stop_intent.is_none() {
            if let Some(run_dir) = &self.runtime.run_dir {
                let _ = run_directory(run_dir).append_stop(&slot(act));
            }
            return Ok(());
        }
        let Some(row) = self.row.clone() else { return Ok(()) };
        let end = End {
            signal: "no_process",
            summary: "killed before it began: nothing was executed",
            proof: None,
            seen: None,
            forced: false,
        };
        let (host, asked, entity, runtime) = (act.host, act.asked, &self.before, &self.runtime);
        let ended = act
            .budget
            .write(|| record::end(host, entity, (&row, Some(runtime)), asked, &end));
        match ended {
            // Its starter was as quick: looked at again.
            Ok(killed) if killed.result != KillResult::Killed => {}
            Ok(killed) => self.outcome = Some(Ok(killed.saying("it had not begun: nothing was executed"))),
            Err(error) => self.unwritten = Some(error),
        }
        Ok(())
    }

    fn take_over(&mut self, act: &Act<'_>, slot: usize) -> Result<(), Error> {
        let grace_ms = u64::try_from(act.grace().as_millis()).unwrap_or(u64::MAX);
        self.hold = Hold::Orphans(Box::new(Orphans::new(act.host, &self.runtime, slot, grace_ms)?));
        Ok(())
    }

    /// Looks how far it has come; how long until the next look.
    pub(super) fn look(&mut self, act: &mut Act<'_>) -> Duration {
        self.try_look(act).unwrap_or_else(|error| {
            self.outcome = Some(Err(error));
            Duration::ZERO
        })
    }

    fn try_look(&mut self, act: &mut Act<'_>) -> Result<Duration, Error> {
        if self.is_empty()? {
            self.settle(act)?;
            return Ok(PAUSE);
        }
        if self.row_now(act)?.is_none() {
            self.settle(act)?;
            return Ok(PAUSE);
        }
        match &mut self.hold {
            Hold::Starting => self.try_begin(act)?,
            Hold::Shim => {
                if identity::shim(&self.runtime).is_some_and(|shim| is_gone(&shim, act)) && !self.is_empty()? {
                    self.take_over(act, 0)?;
                    return Ok(Duration::ZERO);
                }
            }
            Hold::Orphans(orphans) => match orphans.step() {
                Progress::Living(members, pause_ms) => {
                    self.survivors = members;
                    return Ok(Duration::from_millis(pause_ms));
                }
                Progress::Empty(proof) => {
                    self.survivors.clear();
                    if !orphans.leave_record(&self.runtime, proof, act.host.now()) {
                        self.end_without_record(act, proof)?;
                    }
                    crash::point("kill.record_left");
                    return Ok(Duration::ZERO);
                }
                Progress::Denied => self.close(KillResult::Refused, "permission_denied", "the kernel refused"),
            },
        }
        Ok(PAUSE)
    }

    /// The row of the set, unless somebody recorded that it is stopped.
    fn row_now(&self, act: &Act<'_>) -> Result<Option<Runtime>, Error> {
        let row = act.host.store().runtime(self.runtime.id)?;
        Ok(row.filter(|runtime| !runtime.is_stopped()))
    }

    /// Whether an exit record says that nothing of the set is left.
    fn is_empty(&self) -> Result<bool, Error> {
        Ok(exit_record(&self.runtime)?.is_some_and(|record| record.set.empty))
    }

    /// Records what the exit record tells, unless somebody did; reports.
    fn settle(&mut self, act: &mut Act<'_>) -> Result<(), Error> {
        let (host, before) = (act.host, &self.before);
        let settled = act.budget.write(|| {
            let current = host.store().load(&before.reference.id)?;
            let settled = settle(host, current.unwrap_or_else(|| before.clone()))?;
            if self.set == KillSet::Older && settled.terminal {
                record::release(host, &self.runtime)?;
            }
            Ok(settled)
        });
        match settled {
            Ok(now) => self.outcome = Some(self.observed(&now)),
            Err(error @ Error::Store(_)) if act.budget.allows_again(&error) => self.unwritten = Some(error),
            Err(error @ Error::Store(_)) => {
                self.unwritten = Some(error);
                self.outcome = Some(Ok(self.unrecorded(act)));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// A set whose run directory holds no record: its end is written at once.
    fn end_without_record(&mut self, act: &mut Act<'_>, proof: &'static str) -> Result<(), Error> {
        let Hold::Orphans(orphans) = &self.hold else {
            return Ok(());
        };
        let signal = orphans.signal().unwrap_or("already_dead");
        let Some(row) = self.row.clone().filter(|_| !self.before.terminal) else {
            record::release(act.host, &self.runtime)?;
            self.close(KillResult::Unchanged, signal, self.words_of_stopped());
            return Ok(());
        };
        let end = End {
            signal,
            summary: "killed; ended unobserved",
            proof: Some(proof),
            seen: None,
            forced: signal == "sigkill",
        };
        let (host, asked, entity, runtime) = (act.host, act.asked, &self.before, &self.runtime);
        let ended = act
            .budget
            .write(|| record::end(host, entity, (&row, Some(runtime)), asked, &end));
        self.outcome = Some(Ok(match ended {
            Ok(killed) => killed,
            Err(error) => {
                act.note_unrecorded();
                Killed {
                    result: KillResult::Incomplete,
                    stopped: true,
                    proof: Some(proof.to_owned()),
                    ..Killed::of(&self.before, Some(&self.runtime), signal)
                }
                .saying(format!(
                    "stopped, and not recorded: {error}; kill it again to have it recorded"
                ))
            }
        }));
        Ok(())
    }

    /// The report, from what was observed.
    fn observed(&self, now: &Entity) -> Result<Killed, Error> {
        let record = exit_record(&self.runtime)?;
        let killed = self.report(now, record.as_ref());
        let Some(record) = record else {
            // Its starter closed the gate, or somebody recorded it from elsewhere.
            return Ok(killed.saying("it had not begun: nothing was executed"));
        };
        let before = &self.before;
        Ok(match (before.terminal, now.terminal, by_kill(&self.runtime, &record)) {
            (true, ..) => Killed {
                result: KillResult::Unchanged,
                ..killed
            }
            .saying(self.words_of_stopped()),
            (false, ..) if self.set == KillSet::Older => killed.saying(self.words_of_stopped()),
            (false, true, true) if !record.set.spared.is_empty() => killed.saying(spared(&record)),
            (false, true, true) => killed,
            (false, true, false) => Killed {
                result: KillResult::Unchanged,
                ..killed
            }
            .saying("it ended by itself before the kill reached it"),
            (false, false, _) => Killed {
                result: KillResult::Incomplete,
                ..killed
            }
            .saying("nothing of it is left, and its policy has no kill from its status"),
        })
    }

    /// What is told of a set that was stopped and does not tell how its entity ends.
    const fn words_of_stopped(&self) -> &'static str {
        match self.set {
            KillSet::Older if !self.before.terminal => "one of its sets of processes was stopped",
            KillSet::Older | KillSet::Newest => "it had ended; what lived on of it was stopped",
        }
    }

    fn report(&self, now: &Entity, record: Option<&ExitRecord>) -> Killed {
        let signal = record.map_or("no_process", signal_word);
        Killed {
            previous_status: self.before.status.clone(),
            stopped: record.is_some_and(|record| record.set.empty),
            proof: record.and_then(|record| record.set.proof.clone()),
            ..Killed::of(now, Some(&self.runtime), signal)
        }
    }

    fn unrecorded(&self, act: &mut Act<'_>) -> Killed {
        act.note_unrecorded();
        let record = exit_record(&self.runtime).ok().flatten();
        let why = self.unwritten.as_ref().map(ToString::to_string).unwrap_or_default();
        Killed {
            result: KillResult::Incomplete,
            ..self.report(&self.before, record.as_ref())
        }
        .saying(format!(
            "stopped, and not recorded: {why}; the next command that reads it records it"
        ))
    }

    fn close(&mut self, result: KillResult, signal: &str, message: &str) {
        let killed = Killed::of(&self.before, Some(&self.runtime), signal).saying(message);
        self.outcome = Some(Ok(Killed { result, ..killed }));
    }

    /// What is told in the end; without an outcome, the time was up.
    pub(super) fn told(mut self, act: &mut Act<'_>) -> Result<Killed, Error> {
        if let Some(outcome) = self.outcome.take() {
            return outcome;
        }
        if self.unwritten.is_some() && self.is_empty()? {
            return Ok(self.unrecorded(act));
        }
        self.mark_unconfirmed(act);
        let signal = match &self.hold {
            Hold::Starting => "no_process",
            Hold::Shim => "sigkill",
            Hold::Orphans(orphans) => orphans.signal().unwrap_or("unverifiable"),
        };
        let shim = self.runtime.shim.as_ref().and_then(|shim| i32::try_from(shim.pid).ok());
        let survivors = match (&self.hold, shim) {
            (Hold::Shim, Some(shim)) => members(act.host, &self.runtime, shim)?,
            _ => self.survivors,
        };
        let killed = Killed::of(&self.before, Some(&self.runtime), signal);
        Ok(Killed {
            result: KillResult::Incomplete,
            survivors,
            ..killed
        }
        .saying("not everything it started was seen to end in time"))
    }

    /// The row says that a stop is not confirmed, so that it is tried again.
    fn mark_unconfirmed(&self, act: &mut Act<'_>) {
        let lost = matches!(self.hold, Hold::Orphans(_)).then_some(RuntimeState::Lost);
        let host: &Host = act.host;
        let update = RuntimeUpdate {
            id: self.runtime.id,
            only_from: vec![RuntimeState::Running, RuntimeState::Stopping, RuntimeState::Lingering],
            state: lost,
            stop_unconfirmed: Some(true),
            at: host.now(),
            ..RuntimeUpdate::default()
        };
        let marked = act.budget.write(|| Ok(host.store().update_runtimes(&[update])?));
        if let Err(error) = marked {
            tracing::warn!(%error, "that the stop is not confirmed could not be recorded");
        }
        host.wake();
    }
}

/// Which runs go on that were started inside.
fn spared(record: &ExitRecord) -> String {
    let mut names: Vec<&str> = record
        .set
        .spared
        .iter()
        .map(|spared| spared.reference.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    format!("started inside, and spared: {}", names.join(", "))
}

fn is_gone(shim: &process::Identity, act: &Act<'_>) -> bool {
    matches!(process::classify(shim, act.host.place()), Liveness::Gone { .. })
}

/// The request as the run directory keeps it.
fn slot(act: &Act<'_>) -> Slot {
    Slot {
        cause: process::Cause::Kill,
        patience: Patience::Grace {
            ms: u64::try_from(act.grace().as_millis()).unwrap_or(u64::MAX),
        },
        at_ms: process::boottime_ms(),
        code: String::new(),
        actor: act.asked.actor.to_string(),
        note: act.asked.note.clone().unwrap_or_default(),
    }
}
