//! The workers of a chaos test, and what is done to them.

use std::fs::OpenOptions;
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::time::Timespec;

use crate::crashes::Random;
use crate::harness::{Home, PROGRAM, until};

/// Workers with the clocks of the machine; one more is where the boot clock says something else, if that can be had.
const PLAIN: usize = 3;

/// What a worker is started with.
const WORKER: [&str; 6] = ["worker", "--quiet", "--slots", "2", "--lease-grace", "300ms"];

/// The longest pause between two strikes, in milliseconds.
const PAUSE_MAX_MS: u64 = 250;

/// A worker that was started.
struct Worker {
    child: Child,
    /// The worker itself, which is a child of ours or of `unshare`.
    process: OwnedFd,
    is_stopped: bool,
    is_shifted: bool,
}

/// All of them. None outlives the test.
pub(super) struct Workers<'a> {
    home: &'a Home,
    all: Vec<Worker>,
}

impl<'a> Workers<'a> {
    pub(super) const fn new(home: &'a Home) -> Self {
        Self { home, all: Vec::new() }
    }

    pub(super) fn start_all(&mut self, random: &mut Random) {
        self.all = (0..PLAIN).map(|_| self.started(None)).collect();
        if clocks_can_be_shifted() {
            let shifted = self.started(Some(random));
            self.all.push(shifted);
        }
    }

    /// Starts one; with a random, where the boot clock is that far ahead.
    fn started(&self, shifted: Option<&mut Random>) -> Worker {
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.home.path("workers.log"))
            .expect("a file of ours");
        let mut command = self.home.command(&WORKER);
        let is_shifted = shifted.is_some();
        if let Some(random) = shifted {
            let ahead = random.below(10_000_000).to_string();
            let variables: Vec<_> = command
                .get_envs()
                .map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)))
                .collect();
            let mut inside = Command::new("unshare");
            inside.args(["--time", "--fork", "--kill-child", "--boottime", &ahead, PROGRAM]);
            inside.args(WORKER).args(["--queue", "default"]);
            inside.env_clear().stdin(Stdio::null()).current_dir(self.home.path("."));
            inside.envs(variables.into_iter().filter_map(|(name, value)| Some((name, value?))));
            command = inside;
        }
        command.stdout(Stdio::null()).stderr(log);
        let child = command.spawn().expect("the program starts");
        let pid = if is_shifted {
            only_child(&child)
        } else {
            Pid::from_child(&child)
        };
        let process = pidfd_open(pid, PidfdFlags::empty()).expect("it was just started");
        Worker {
            child,
            process,
            is_stopped: false,
            is_shifted,
        }
    }

    /// Does something to one of them, and lets some time pass in which it shows.
    pub(super) fn strike(&mut self, random: &mut Random) {
        let place = usize::try_from(random.below(self.all.len() as u64)).expect("a few");
        match random.below(10) {
            0..=3 => self.all[place].stop(),
            4..=6 => self.all[place].go_on(),
            7 | 8 => self.all[place].signal(Signal::KILL),
            _ => self.all[place].tell_to_end(),
        }
        self.all[place].pause(random.below(PAUSE_MAX_MS));
        for place in 0..self.all.len() {
            if self.all[place].has_ended() {
                self.replace(place, random);
            }
        }
        // Somebody always works.
        if self.all.iter().all(|worker| worker.is_stopped) {
            self.all[place].go_on();
        }
    }

    fn replace(&mut self, place: usize, random: &mut Random) {
        let random = self.all[place].is_shifted.then_some(random);
        self.all[place] = self.started(random);
    }

    /// Lets all of them work that are stopped.
    pub(super) fn go_on(&mut self) {
        self.all.iter_mut().for_each(Worker::go_on);
    }

    /// Kills all of them, and starts as many.
    pub(super) fn kill_all(&mut self, random: &mut Random) {
        self.all.iter().for_each(|worker| worker.signal(Signal::KILL));
        for place in 0..self.all.len() {
            self.all[place].child.wait().expect("our own child");
            self.replace(place, random);
        }
    }

    /// Tells all of them to end, which they do: they have nothing any more.
    pub(super) fn end(&mut self) {
        for worker in &mut self.all {
            worker.go_on();
            worker.signal(Signal::TERM);
        }
        for worker in &mut self.all {
            until("a worker that has nothing ends when it is told to", || {
                worker.has_ended()
            });
        }
    }
}

impl Drop for Workers<'_> {
    fn drop(&mut self) {
        for worker in &mut self.all {
            if worker.has_ended() {
                continue;
            }
            worker.signal(Signal::KILL);
            let _ = worker.child.wait();
        }
        if std::thread::panicking() {
            self.tell();
        }
    }
}

impl Workers<'_> {
    /// What a failure is understood from: what the workers said last, and why what is open is.
    fn tell(&self) {
        let log = std::fs::read_to_string(self.home.path("workers.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let mut told = lines[lines.len().saturating_sub(20)..].join("\n");
        let listed = self.home.run(&["ls", "--all", "--json"]).out;
        let listed: Vec<serde_json::Value> = serde_json::from_str(&listed).unwrap_or_default();
        for open in listed.iter().filter(|entity| entity["terminal"] == false) {
            let id = open["id"].as_str().unwrap_or_default();
            for words in [["why", id], ["history", id]] {
                told += &format!("\n{words:?}\n{}", self.home.run(&words).out);
            }
        }
        let _ = std::io::Write::write_all(&mut std::io::stderr(), told.as_bytes()); // the failure itself is told anyhow
    }
}

impl Worker {
    fn signal(&self, signal: Signal) {
        // It may have ended: then this reaches nobody.
        let _ = pidfd_send_signal(&self.process, signal);
    }

    fn stop(&mut self) {
        self.signal(Signal::STOP);
        self.is_stopped = true;
    }

    fn go_on(&mut self) {
        self.signal(Signal::CONT);
        self.is_stopped = false;
    }

    /// Once: it takes nothing more; twice: it gives back what it has.
    fn tell_to_end(&mut self) {
        self.go_on();
        self.signal(Signal::TERM);
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("our own child").is_some()
    }

    /// Waits until it ends, at most so long.
    fn pause(&self, most_ms: u64) {
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: i64::try_from(most_ms * 1_000_000).expect("less than a second"),
        };
        let _ = poll(&mut [PollFd::new(&self.process, PollFlags::IN)], Some(&timeout));
    }
}

fn clocks_can_be_shifted() -> bool {
    let tried = Command::new("unshare")
        .args(["--time", "--fork", "--boottime", "864000", "true"])
        .output();
    tried.is_ok_and(|tried| tried.status.success())
}

/// The one child of `unshare`.
fn only_child(parent: &Child) -> Pid {
    let path = format!("/proc/{0}/task/{0}/children", parent.id());
    let mut found = None;
    until("unshare has started its program", || {
        let children = std::fs::read_to_string(&path).unwrap_or_default();
        found = children
            .split_whitespace()
            .next()
            .and_then(|pid| pid.parse().ok())
            .and_then(Pid::from_raw);
        found.is_some()
    });
    found.expect("it was found")
}
