//! Whoever of ours is killed at whatever moment (the starting command, the shim, the finishing command): afterwards no
//! process is without a row, no row says "running" without a process, and no exit code is invented.

use std::fs;
use std::process::Child;

use rusqlite::Connection;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::time::Timespec;
use serde_json::Value;

use crate::harness::{Home, lives, until};

/// Whom a round strikes.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Starter,
    Shim,
    Finisher,
}

const VICTIMS: [Victim; 3] = [Victim::Starter, Victim::Shim, Victim::Finisher];
/// The longest a round waits before it strikes.
const STRIKE_WITHIN_MS: u64 = 400;

#[test]
fn whoever_is_killed_at_a_random_moment_no_child_and_no_code_is_lost() {
    strike_many(50);
}

#[test]
#[ignore = "ten times as many rounds, for a long run"]
fn whoever_is_killed_at_a_random_moment_no_child_and_no_code_is_lost_in_five_hundred_rounds() {
    strike_many(500);
}

fn strike_many(rounds: u64) {
    let home = Home::new();
    home.done(&["create", "session", "--id", "seed"]);
    let seed = u64::from(std::process::id());
    let mut random = Random(seed);
    for round in 0..rounds {
        let victim = VICTIMS[usize::try_from(round % 3).expect("a small number")];
        let what = format!("round {round} of seed {seed}, {victim:?}");
        strike(&home, &format!("r{round}"), victim, &mut random, &what);
    }
    assert_eq!(
        strays(&home),
        Vec::<String>::new(),
        "processes without a row (seed {seed})"
    );
    // Groups of those that were struck before they could remove them.
    home.run(&["doctor", "--fix"]).exits(0);
}

fn strike(home: &Home, id: &str, victim: Victim, random: &mut Random, what: &str) {
    let code = 1 + random.below(99);
    let turns = random.below(60_000);
    let script = format!("i=0; while [ $i -lt {turns} ]; do i=$((i+1)); done; exit {code}");
    let mut child = home.start(&["run", "--detach", "--id", id, "--", "sh", "-c", &script]);
    let after_ms = random.below(STRIKE_WITHIN_MS);
    match victim {
        Victim::Starter => {
            if !ended_within(&child, after_ms) {
                let _ = child.kill();
            }
        }
        Victim::Shim => {
            ended_within(&child, after_ms);
            kill_all(|command| matches!(command, [_, reference, ..] if *reference == format!("run/{id}")));
        }
        Victim::Finisher => {
            let mut is_struck = false;
            for _ in 0..after_ms.max(1) {
                pause(1);
                is_struck |= kill_all(|command| command.ends_with(&["finish".to_owned(), id.to_owned()])) > 0;
                if is_struck {
                    break;
                }
            }
        }
    }
    child.wait().expect("our own child");
    check(home, id, code, what);
}

/// The state that everything comes to, and what it says.
fn check(home: &Home, id: &str, code: u64, what: &str) {
    if home.run(&["show", id]).code == 2 {
        assert!(!carries(id), "{what}: a process runs of which nothing was recorded");
        return;
    }
    let mut shown = Value::Null;
    until(&format!("{what}: it is over"), || {
        age_attempts(home, id);
        shown = home.json(&["show", id]);
        shown["terminal"] == true && shown["runtime"]["state"] == "stopped"
    });
    assert!(!carries(id), "{what}: stopped, and a process runs");
    let fields = &shown["fields"];
    let told = (fields["exit_code"].as_u64(), fields["term_signal"].as_u64());
    let reason = shown["reason"]["code"].as_str().unwrap_or_default();
    match told {
        (Some(seen), None) => assert_eq!((seen, reason), (code, "run.failed.exit_nonzero"), "{what}: {shown}"),
        // A copy of the shim that was to become the program.
        (None, Some(signal)) => assert_eq!(signal, 9, "{what}: {shown}"),
        (None, None) => assert!(
            [
                "run.failed.orphaned_parent",
                "run.failed.spawn_error",
                "run.failed.spawn_identity_lost"
            ]
            .contains(&reason),
            "{what}: {shown}"
        ),
        (Some(_), Some(_)) => panic!("{what}: code and signal: {shown}"),
    }
    let history = home.json(&["history", id]);
    assert_eq!(history.as_array().map(Vec::len), Some(2), "{what}: one end");
}

/// An attempt whose start died gets the age at which it is given up, once nobody of it lives.
fn age_attempts(home: &Home, id: &str) {
    if carries(id) {
        return;
    }
    let store = Connection::open(home.home().join("state.db")).expect("the store");
    let aged = "UPDATE runtimes SET created_at_ms = created_at_ms - 31000 WHERE state = 'starting'
        AND owner = (SELECT entity FROM entity_ids WHERE id = ?1)";
    store.busy_timeout(std::time::Duration::from_secs(5)).expect("a time");
    store.execute(aged, [id]).expect("a row of ours");
}

/// Every process but ourselves, with its words.
fn processes() -> Vec<(String, Vec<String>)> {
    let directory = fs::read_dir("/proc").expect("/proc").flatten();
    directory
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.to_owned();
            pid.parse::<u32>().ok()?;
            let words = fs::read(entry.path().join("cmdline")).ok()?;
            let words = words.split(|byte| *byte == 0).filter(|word| !word.is_empty());
            Some((
                pid,
                words.map(|word| String::from_utf8_lossy(word).into_owned()).collect(),
            ))
        })
        .collect()
}

/// Kills those that the words show to be of this test's run; how many.
fn kill_all(is_meant: impl Fn(&[String]) -> bool) -> usize {
    let meant = |pid: &str, words: &[String]| {
        let number = Pid::from_raw(pid.parse().ok()?)?;
        // Held first, then read again: the descriptor's process is the one whose words these are.
        let process = pidfd_open(number, PidfdFlags::empty()).ok()?;
        let again = processes()
            .into_iter()
            .any(|(other, found)| other == pid && found == words);
        (again && is_meant(words)).then_some(process)
    };
    let found = processes();
    let found = found.iter().filter(|(_, words)| is_meant(words));
    found
        .filter_map(|(pid, words)| meant(pid, words))
        .filter(|process| pidfd_send_signal(process, Signal::KILL).is_ok())
        .count()
}

/// Whether a live program of the run is there.
fn carries(id: &str) -> bool {
    let mark = format!("RUNWARDEN_ID={id}");
    processes().iter().any(|(pid, words)| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let is_marked = environment.split(|byte| *byte == 0).any(|one| one == mark.as_bytes());
        is_marked && lives(pid) && !words.iter().any(|word| word == "finish")
    })
}

/// Programs and shims of this home that live although nothing runs.
fn strays(home: &Home) -> Vec<String> {
    let mark = format!("RUNWARDEN_HOME={}", home.home().display());
    let found = processes().into_iter().filter(|(pid, words)| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let is_program = words.iter().any(|word| word.contains("while [ $i -lt"));
        is_program && lives(pid) && environment.split(|byte| *byte == 0).any(|one| one == mark.as_bytes())
    });
    found.map(|(pid, words)| format!("{pid} {words:?}")).collect()
}

/// Waits for the end of a child, at most so long; whether it has ended.
fn ended_within(child: &Child, at_most_ms: u64) -> bool {
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).expect("our own child");
    let mut ready = [PollFd::new(&process, PollFlags::IN)];
    poll(&mut ready, Some(&milliseconds(at_most_ms))).expect("waiting for our own child") > 0
}

/// The moments of a strike are what is random.
fn pause(ms: u64) {
    let _ = poll(&mut [], Some(&milliseconds(ms)));
}

fn milliseconds(ms: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(ms / 1_000).unwrap_or(0),
        tv_nsec: i64::try_from(ms % 1_000 * 1_000_000).unwrap_or(0),
    }
}

/// A small generator, so that a failure can be repeated from its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}
