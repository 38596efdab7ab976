//! The main loop: one poll over signals, the control socket, the streams and the clock.

use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};

use libc::c_int;
use runwarden_shim::clock;
use runwarden_shim::message::{FromShim, PACKET_BYTES, Stage, ToShim};
use runwarden_shim::notes::Began;
use runwarden_shim::packet;
use runwarden_shim::slot::{Cause, Slot};
use runwarden_shim::spec::{ParentTie, StopBy};

use crate::ending::{Ending, ExitFile, Proof, SetState};
use crate::finish::Finish;
use crate::members::{Kin, Set};
use crate::memory::Kills;
use crate::output::{Output, Turn};
use crate::stopping::{Step, Stopping};
use crate::sys::{self, Children};
use crate::witness::Witness;
use crate::worker::{End, Failure, Worker};

/// What is kept of the specification.
pub(crate) struct Plan {
    pub(crate) grace_ms: u64,
    pub(crate) timeout_ms: u64,
    pub(crate) stop_by: StopBy,
    pub(crate) parent: ParentTie,
}

/// What has happened so far.
#[derive(Default)]
pub(crate) struct Progress {
    started: Option<Began>,
    failure: Option<Failure>,
    ending: Option<Ending>,
    /// Nobody of the set is left, and what says so. Seen after the worker had ended.
    empty: Option<Proof>,
    /// The set as the exit file tells it.
    told: Option<Told>,
    /// The finishing command is to be started as soon as no stop is going on.
    finish_wanted: bool,
    /// More is known of the set than the exit file says.
    rewrite: bool,
}

impl Progress {
    /// Of a program that began before this shim, or failed to.
    pub(crate) fn adopted(started: Began, failure: Option<Failure>) -> Self {
        Self {
            started: Some(started),
            failure,
            ..Self::default()
        }
    }
}

#[derive(PartialEq, Eq)]
enum Told {
    Living,
    Empty,
}

/// One run and everything that is held for it.
pub(crate) struct Shim {
    pub(crate) control: Option<OwnedFd>,
    pub(crate) signals: OwnedFd,
    #[expect(dead_code, reason = "held, never used: closing it would say that the shim is gone")]
    pub(crate) lock: File,
    pub(crate) slave: Option<OwnedFd>,
    pub(crate) master: Option<OwnedFd>,
    pub(crate) worker: Worker,
    /// `Some` until it is opened.
    pub(crate) gate: Option<OwnedFd>,
    /// `Some` until the program executes or has failed to.
    pub(crate) errors: Option<File>,
    pub(crate) output: Output,
    /// None where memory is not counted.
    pub(crate) kills: Option<Kills>,
    pub(crate) stopping: Stopping,
    pub(crate) set: Set,
    pub(crate) exit: ExitFile,
    pub(crate) finish: Option<Finish>,
    pub(crate) stdin_writer: Option<OwnedFd>,
    /// Set when the worker is another process's child.
    pub(crate) adoption: Option<Witness>,
    pub(crate) plan: Plan,
    pub(crate) progress: Progress,
}

impl Shim {
    /// Lives until the set is empty and its end recorded; the process's exit code.
    pub(crate) fn run(mut self) -> c_int {
        loop {
            self.read_errors();
            self.reap();
            self.watch_timeout();
            self.advance_stop();
            self.record_end();
            self.advance_finish();
            if self.is_over() {
                self.exit.release();
                return 0;
            }
            self.wait();
        }
    }

    fn is_over(&self) -> bool {
        let finishing = self.finish.as_ref().is_some_and(|finish| finish.pending().is_some());
        self.progress.told == Some(Told::Empty) && !self.progress.finish_wanted && !finishing
    }

    fn wait(&mut self) {
        let watch = |fd: RawFd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let watch_changes = |fd: RawFd| libc::pollfd {
            events: libc::POLLPRI,
            ..watch(fd)
        };
        // poll ignores negative descriptors.
        let optional = |fd: Option<RawFd>| watch(fd.unwrap_or(-1));
        let mut fds = vec![
            watch(self.signals.as_raw_fd()),
            optional(self.control.as_ref().map(|control| control.as_raw_fd())),
            optional(self.errors.as_ref().map(|errors| errors.as_raw_fd())),
            optional(self.finish.as_ref().and_then(|finish| Some(finish.pending()?.0))),
            watch_changes(self.set.events().unwrap_or(-1)),
            optional(self.watched()),
        ];
        fds.extend(self.output.sources().map(watch));
        sys::poll(&mut fds, self.timeout_ms());
        let mut grew = Turn::Nothing;
        for source in fds[6..].iter().filter(|source| source.revents != 0) {
            if self.output.read(source.fd) == Turn::Grew {
                grew = Turn::Grew;
            }
        }
        if grew == Turn::Grew {
            self.wake_starter();
        }
        if fds[0].revents != 0 {
            self.read_signals();
        }
        if fds[1].revents != 0 {
            self.read_control();
        }
        if fds[4].revents != 0 {
            self.set.hear_events();
        }
    }

    /// Who of an adopted set reports its end next: the worker, then the others.
    fn watched(&self) -> Option<RawFd> {
        let witness = self.adoption.as_ref()?;
        match &self.worker.pidfd {
            Some(worker) if self.worker.end.is_none() => Some(worker.as_raw_fd()).filter(|_| !witness.is_pending()),
            _ if self.progress.empty.is_none() => self.set.watch(),
            _ => None,
        }
    }

    fn timeout_ms(&self) -> c_int {
        let now_ms = clock::boottime_ms();
        let finish = self.finish.as_ref().and_then(|finish| Some(finish.pending()?.1));
        // Nothing is due of a stop whose set is empty.
        let stop = self.stopping.due_ms().filter(|_| self.progress.empty.is_none());
        let worker_end = self.adoption.as_ref().filter(|_| self.worker.end.is_none());
        let witness = worker_end.and_then(Witness::due_ms);
        let due = [stop, finish, witness]
            .into_iter()
            .flatten()
            .map(|at_ms| at_ms.saturating_sub(now_ms));
        let left = due.chain(self.time_left_ms()).min();
        left.map_or(-1, |left_ms| c_int::try_from(left_ms).unwrap_or(c_int::MAX))
    }

    fn read_signals(&mut self) {
        while let Some(signal) = sys::next_signal(self.signals.as_fd()) {
            match signal {
                libc::SIGTERM => self.stopping.note(Cause::Terminate, self.plan.grace_ms),
                libc::SIGUSR1 => self.stopping.reread(),
                _ => {}
            }
        }
    }

    fn read_control(&mut self) {
        let Some(control) = &self.control else { return };
        let mut bytes = [0; PACKET_BYTES];
        match packet::receive(control.as_fd(), &mut bytes) {
            Ok((0, _)) => self.lose_starter(),
            Ok((length, _)) => {
                // A starter newer than this shim may say things we do not know.
                if let Ok(message) = ToShim::decode(&bytes[..length]) {
                    self.obey(message);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => self.lose_starter(),
        }
    }

    fn obey(&mut self, message: ToShim) {
        match message {
            ToShim::Start(_) => {}
            ToShim::Go => self.open_gate(),
            ToShim::CloseStream(stream) => self.output.close(stream),
            ToShim::Seen { stream, offset } => self.output.note_seen(stream, offset),
            ToShim::CloseStdin => self.stdin_writer = None,
            ToShim::Window(window) => {
                if let Some(master) = &self.master {
                    sys::set_window(master.as_fd(), window);
                }
            }
            ToShim::Stop(slot) => {
                if let Some(slot) = Slot::decode(&slot) {
                    self.stopping.place(&slot);
                }
            }
            ToShim::Detach => {
                self.plan.parent = ParentTie::Survive;
                self.output.forget_reader();
                if self.gate.is_none() {
                    self.control = None;
                }
            }
        }
    }

    fn lose_starter(&mut self) {
        self.control = None;
        self.output.forget_reader();
        if self.gate.is_some() {
            self.refuse(Failure {
                stage: Stage::Gate,
                errno: 0,
            });
        } else if self.plan.parent == ParentTie::DieWithStarter {
            self.stopping.note(Cause::ParentGone, self.plan.grace_ms);
        }
    }

    fn open_gate(&mut self) {
        let Some(gate) = self.gate.take() else { return };
        self.stopping.reread();
        if self.stopping.is_asked() {
            self.gate = Some(gate);
            return;
        }
        self.progress.started = Some(Began::now());
        // Fails when the worker was killed at the gate; its end tells.
        let _ = std::io::Write::write_all(&mut File::from(gate), b"g");
    }

    /// Ends the worker at its gate: it leaves without having executed anything.
    fn refuse(&mut self, failure: Failure) {
        if self.gate.take().is_some() {
            self.progress.failure = Some(failure);
        }
    }

    fn read_errors(&mut self) {
        let Some(errors) = &self.errors else { return };
        let mut fds = [libc::pollfd {
            fd: errors.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        }];
        sys::poll(&mut fds, 0);
        if fds[0].revents == 0 {
            return;
        }
        let failure = Failure::read(errors);
        self.errors = None;
        if self.progress.failure.is_some() {
            return;
        }
        match failure {
            Some(failure) => self.progress.failure = Some(failure),
            // Nobody opened the gate, yet the worker has let go: it was killed there.
            None if self.progress.started.is_none() => {
                self.progress.failure = Some(Failure {
                    stage: Stage::Gate,
                    errno: 0,
                });
            }
            None => self.tell(FromShim::Started),
        }
    }

    fn reap(&mut self) {
        if let Some(witness) = &mut self.adoption {
            if self.worker.end.is_none() {
                self.worker.end = witness.look(self.worker.pidfd.as_ref(), self.worker.pid);
            }
            return self.look_for_members(Kin::Somebody);
        }
        loop {
            match sys::reap_one() {
                Children::Ended(reaped) if reaped.pid == self.worker.pid && self.worker.end.is_none() => {
                    self.worker.end = Some(End {
                        status: Some(reaped.status),
                        usage: Some(reaped.usage),
                    });
                    self.set.release();
                }
                Children::Ended(_) => {}
                Children::Living => return self.look_for_members(Kin::Somebody),
                Children::None => return self.look_for_members(Kin::Nobody),
            }
        }
    }

    /// Looks whether all that lives below us is of other runs. The last member's end is told by SIGCHLD, because its
    /// parent is the shim; and whoever is spared was so before its starter, a member, ended.
    fn look_for_members(&mut self, kin: Kin) {
        if self.worker.end.is_some() && self.progress.empty.is_none() {
            self.progress.empty = self.set.proof(kin);
        }
    }

    /// Time awake that is left to the worker.
    fn time_left_ms(&self) -> Option<u64> {
        let started = self.progress.started?;
        if self.plan.timeout_ms == 0 || self.worker.end.is_some() || self.stopping.is_asked() {
            return None;
        }
        let passed_ms = clock::monotonic_ms().saturating_sub(started.monotonic_ms);
        Some(self.plan.timeout_ms.saturating_sub(passed_ms))
    }

    fn watch_timeout(&mut self) {
        if self.time_left_ms() == Some(0) {
            self.stopping.note(Cause::Timeout, self.plan.grace_ms);
        }
    }

    fn advance_stop(&mut self) {
        if self.progress.empty.is_some() {
            return;
        }
        if self.gate.is_some() {
            if self.stopping.is_asked() {
                self.refuse(Failure {
                    stage: Stage::Stopped,
                    errno: 0,
                });
            }
            return;
        }
        match self.stopping.advance(&mut self.set, &self.worker) {
            Step::Nothing => {}
            Step::Began => self.close_stdin(),
            // Survivors are part of the record.
            Step::GaveUp => self.progress.rewrite = true,
        }
    }

    fn close_stdin(&mut self) {
        if self.plan.stop_by != StopBy::Stdin {
            return;
        }
        self.stdin_writer = None;
        self.tell(FromShim::CloseStdin);
        if let Some(master) = &self.master {
            // The terminal's own way to say it: Ctrl-D.
            let _ = master
                .try_clone()
                .map(|master| std::io::Write::write_all(&mut File::from(master), b"\x04"));
        }
    }

    /// Writes what is known of the end, once when the worker ends and again when more is known of the set.
    fn record_end(&mut self) {
        if self.worker.end.is_none() {
            return;
        }
        if self.progress.ending.is_none() {
            self.read_errors();
            self.note_ending();
        }
        let told = if self.progress.empty.is_some() {
            Told::Empty
        } else {
            Told::Living
        };
        if self.progress.told.as_ref() == Some(&told) && !self.progress.rewrite {
            return;
        }
        self.progress.rewrite = false;
        let first = self.progress.told.is_none();
        self.write_exit();
        self.progress.told = Some(told);
        match self.progress.failure {
            Some(Failure { stage, errno }) => {
                self.tell(FromShim::StartFailed { stage, errno });
                let executed = matches!(stage, Stage::Directory | Stage::Exec);
                // Before the gate nothing began that could end; a starter that was told records the rest itself.
                if executed && self.control.is_none() {
                    self.progress.finish_wanted = true;
                }
            }
            None => {
                if first {
                    self.tell(FromShim::Ended);
                }
                self.progress.finish_wanted = true;
            }
        }
    }

    fn note_ending(&mut self) {
        if self.output.drain() == Turn::Grew {
            self.wake_starter();
        }
        let end = self.worker.end;
        let status = end.as_ref().and_then(|end| end.status);
        let stop = self.stopping.record();
        let oom_kills = self.kills.as_ref().map_or(0, Kills::since);
        let signal = status
            .filter(|status| libc::WIFSIGNALED(*status))
            .map(|status| libc::WTERMSIG(status));
        let killed = signal == Some(libc::SIGKILL);
        let cause = match &stop {
            Some(stop) => stop.cause,
            None if killed && oom_kills > 0 => "oom",
            None if signal.is_some() => "signal",
            None if status.is_none() => "unobserved",
            None => "exit",
        };
        self.progress.ending = Some(Ending {
            end,
            failure: self.progress.failure,
            cause,
            oom_kills,
            stop,
            ended_epoch_ms: clock::epoch_ms(),
            ended_boottime_ms: clock::boottime_ms(),
        });
    }

    fn write_exit(&mut self) {
        let Some(ending) = &mut self.progress.ending else {
            return;
        };
        // A stop that began before the end goes on: its strongest signal may be a later one.
        ending.stop = self.stopping.record();
        let set = match &self.progress.empty {
            Some(proof) => {
                // The last words of the last member; nobody is left who could write more.
                self.slave = None;
                self.output.drain();
                // Before the record: whoever has read that all is over finds nothing left, also if we die after it.
                self.set.let_go();
                SetState::Empty(proof.clone())
            }
            None => SetState::Living(self.set.members()),
        };
        let started = self.progress.started.unwrap_or_else(Began::now);
        let missing = self.output.missing();
        let text = self.exit.text(ending, started, &set, missing);
        // With the space reserved this fails only with the disk itself; the finishing command is started all the
        // same, and says that it found no record.
        let _ = self.exit.write(&text);
    }

    fn advance_finish(&mut self) {
        let busy = self.stopping.is_going_on() && self.progress.empty.is_none();
        if self.progress.finish_wanted && !busy {
            self.progress.finish_wanted = false;
            if let Some(finish) = &mut self.finish {
                finish.start();
            }
        }
        if let Some(finish) = &mut self.finish {
            finish.advance();
        }
    }

    /// Sends a packet that must not be lost: there is always room, because hints are sent to an empty socket only.
    fn tell(&mut self, message: FromShim) {
        if let Some(control) = &self.control {
            let _ = packet::send(control.as_fd(), &message.encode(), &[]);
        }
    }

    /// Says that the logs have grown, unless something the starter has yet to read says so already.
    fn wake_starter(&mut self) {
        if let Some(control) = &self.control
            && !sys::has_unread(control.as_fd())
        {
            let _ = packet::send(control.as_fd(), &FromShim::Output.encode(), &[]);
        }
    }
}
