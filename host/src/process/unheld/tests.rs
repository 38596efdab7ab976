//! Sets without a shim, with real processes.

use std::cell::Cell;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use runwarden_shim::executable::Executable;

use super::*;
use crate::process::capture;
use crate::process::leader::start_leader;

const BOUND: Duration = Duration::from_secs(20);

fn place() -> Place {
    Place::here("test-machine")
}

/// A token of this test alone.
fn token(of: &str) -> String {
    format!("{:08x}-{of}", std::process::id())
}

/// A process of the test; ended with it.
struct Sleeper(Child);

impl Sleeper {
    fn new(environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new("/bin/sleep");
        command.arg("600").env_clear().envs(environment.iter().copied());
        Self(command.stdin(Stdio::null()).spawn().expect("sleep"))
    }

    fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }

    fn lives(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Kills until nobody is left; the proof.
#[track_caller]
fn killed(set: &mut UnheldSet) -> &'static str {
    let since = Instant::now();
    loop {
        match set.look() {
            Look::Empty(proof) => return proof,
            Look::Living(_) => drop(set.kill()),
        }
        assert!(since.elapsed() < BOUND, "not within {BOUND:?}");
    }
}

fn pids(look: &Look) -> Vec<i32> {
    match look {
        Look::Empty(_) => Vec::new(),
        Look::Living(members) => members.iter().map(|member| member.pid).collect(),
    }
}

thread_local! {
    /// The process that ends when it is asked for the second time whether it has.
    static FLEETING: Cell<(i32, usize)> = const { Cell::new((0, 0)) };
}

/// A process that may be the one in [`FLEETING`].
struct Fleeting(PidFd);

impl Held for Fleeting {
    fn open(pid: i32) -> io::Result<Self> {
        PidFd::open(pid).map(Self)
    }

    fn is_over(&self) -> bool {
        let (fleeting, asked) = FLEETING.get();
        if self.0.pid() == fleeting {
            FLEETING.set((fleeting, asked + 1));
            if asked == 1 {
                signal(&self.0, Signal::KILL).expect("it is ours");
                assert!(self.0.wait_for_exit(BOUND).expect("an end"));
            }
        }
        self.0.is_over()
    }

    fn leads_somebody(&self) -> bool {
        false
    }
}

#[test]
fn a_process_whose_parent_ends_while_it_is_looked_at_is_a_member_still() {
    let program = "/bin/sh -c '/bin/sleep 600 & echo; wait' & wait; exec /bin/sleep 600";
    let words = ["/bin/sh", "-c", program].map(|word| word.as_bytes().to_vec());
    let executable = Executable::new(&words, &[]).expect("a program");
    let (mut reader, writer) = io::pipe().expect("a pipe");
    let null = fs::File::open("/dev/null").expect("a device");
    let leader = start_leader(&executable, null, &writer).expect("a leader");
    reader.read_exact(&mut [0]).expect("a line");
    let pid = leader.pid();
    let child_of = |pid: i32| -> Option<i32> {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        text.trim().parse().ok()
    };
    let parent = child_of(pid).expect("it runs");
    let child = child_of(parent).expect("it runs");
    let mut search = Search::new(Some(Fleeting(leader.try_clone().expect("a descriptor"))), pid, b"token");
    let marks = Marks {
        listed: &Vec::new,
        is_other: &|_, _| false,
    };
    FLEETING.set((parent, 0));
    search.take_in(&[pid, parent, child], &marks);
    assert!(!search.holds(parent), "it was ended");
    let found = search.holds(child);
    let mut set = UnheldSet::led_by(leader, "token");
    assert_eq!(set.end_within(BOUND), []);
    assert!(found, "it was not taken for a member");
}

#[test]
fn a_member_that_ends_during_a_look_is_told_of_until_the_next() {
    let own = token("ending");
    let member = Sleeper::new(&[(TOKEN_VARIABLE, &own)]);
    let mut search: Search<Fleeting> = Search::new(None, 0, own.as_bytes());
    let marks = Marks {
        listed: &Vec::new,
        is_other: &|_, _| false,
    };
    let seen = |search: &Search<Fleeting>| search.members().map(|(pid, _)| pid).collect::<Vec<_>>();
    FLEETING.set((member.pid(), 0));
    search.look(&marks);
    assert!(search.members().all(|(_, member)| member.process.is_over()), "by now");
    assert_eq!(seen(&search), [member.pid()], "what it started last may be missing");
    search.look(&marks);
    assert!(seen(&search).is_empty(), "it was looked for again");
}

#[test]
fn who_carries_the_token_is_a_member_and_nobody_else_is() {
    let own = token("own");
    let mut member = Sleeper::new(&[(TOKEN_VARIABLE, &own)]);
    let longer = format!("{own}-and-more");
    let mut others = [
        Sleeper::new(&[]),
        Sleeper::new(&[(TOKEN_VARIABLE, &longer)]),
        Sleeper::new(&[("OTHER", &own)]),
    ];
    let traces = Traces {
        token: own,
        ..Traces::default()
    };
    let mut set = UnheldSet::new(&traces, &place());
    assert_eq!(pids(&set.look()), [member.pid()]);
    assert_eq!(killed(&mut set), PROOF_SCAN);
    assert!(!member.lives());
    assert!(others.iter_mut().all(Sleeper::lives), "a stranger was signalled");
}

#[test]
fn a_worker_is_known_by_its_identity_without_any_token() {
    let mut worker = Sleeper::new(&[]);
    let identity = capture(worker.pid(), &place(), "").expect("it lives");
    let traces = Traces {
        worker: Some(identity),
        token: token("none"),
        ..Traces::default()
    };
    let mut set = UnheldSet::new(&traces, &place());
    assert_eq!(pids(&set.look()), [worker.pid()]);
    assert_eq!(killed(&mut set), PROOF_SCAN);
    assert!(!worker.lives());
}

#[test]
fn what_is_spared_is_no_member_whatever_it_carries() {
    let own = token("spared");
    let mut spared = Sleeper::new(&[(TOKEN_VARIABLE, &own)]);
    let identity = capture(spared.pid(), &place(), "").expect("it lives");
    let traces = Traces {
        token: own,
        spared: vec![identity],
        ..Traces::default()
    };
    let mut set = UnheldSet::new(&traces, &place());
    assert_eq!(killed(&mut set), PROOF_SCAN);
    assert!(spared.lives());
}

#[test]
fn each_member_is_asked_once() {
    let own = token("asked");
    // A zombie of this test would be looked at again: only what lives is a member.
    let _member = Sleeper::new(&[(TOKEN_VARIABLE, &own)]);
    let traces = Traces {
        token: own,
        ..Traces::default()
    };
    let mut set = UnheldSet::new(&traces, &place());
    set.look();
    assert_eq!(set.ask(Signal::CONT), Signalled { sent: 1, denied: 0 });
    assert_eq!(set.ask(Signal::CONT), Signalled::default());
}

#[test]
fn whoever_is_killed_with_its_group_counts_as_signalled() {
    use std::os::unix::process::CommandExt as _;
    let in_group = |group: i32| {
        let mut command = Command::new("/bin/sleep");
        command.arg("600").env_clear().process_group(group);
        Sleeper(command.stdin(Stdio::null()).spawn().expect("sleep"))
    };
    for _ in 0..50 {
        let leader = in_group(0);
        let _member = in_group(leader.pid());
        let traces = Traces {
            worker: capture(leader.pid(), &place(), "").ok(),
            token: token("counted"),
            ..Traces::default()
        };
        let mut set = UnheldSet::new(&traces, &place());
        set.look();
        assert_eq!(set.kill(), Signalled { sent: 2, denied: 0 });
    }
}

/// A cgroup of the test, where it may make one; removed with it.
struct Group(PathBuf);

impl Group {
    fn new(name: &str) -> Option<Self> {
        let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
        let root = roots
            .into_iter()
            .map(Path::new)
            .find(|root| root.join("cgroup.procs").exists() && root.join("cgroup.controllers").exists())?;
        let path = root.join(name);
        fs::create_dir(&path).ok()?;
        let group = Self(path);
        (group.0.join("cgroup.kill").exists() && group.0.join("cgroup.events").exists()).then_some(group)
    }

    fn takes(&self, sleeper: &Sleeper) -> bool {
        fs::write(self.0.join("cgroup.procs"), sleeper.pid().to_string()).is_ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let since = Instant::now();
        while fs::remove_dir(&self.0).is_err() && since.elapsed() < BOUND {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_cgroup_holds_whom_nothing_else_tells_and_proves_that_it_is_empty() {
    let own = token("group");
    let mut member = Sleeper::new(&[]);
    let Some(group) = Group::new(&format!("runwarden-test-{own}")) else {
        return;
    };
    if !group.takes(&member) {
        return;
    }
    let traces = Traces {
        cgroup: Some(group.0.clone()),
        token: own,
        ..Traces::default()
    };
    let mut set = UnheldSet::new(&traces, &place());
    assert_eq!(pids(&set.look()), [member.pid()]);
    assert_eq!(killed(&mut set), PROOF_CGROUP);
    assert!(!member.lives());
}

#[test]
fn a_cgroup_that_was_not_made_for_the_attempt_is_nobodys_trace() {
    let mut stranger = Sleeper::new(&[]);
    let Some(group) = Group::new(&format!("runwarden-test-{}", token("strange"))) else {
        return;
    };
    if group.takes(&stranger) {
        let traces = Traces {
            cgroup: Some(group.0.clone()),
            token: "0123456789abcdef".to_owned(),
            ..Traces::default()
        };
        let mut set = UnheldSet::new(&traces, &place());
        assert_eq!(killed(&mut set), PROOF_SCAN);
        assert!(stranger.lives());
    }
    drop(stranger);
}
