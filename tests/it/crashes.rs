//! Dying at any moment leaves a store in one of the promised states: every named place, and random ones.

use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Child;
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::harness::{Home, lives, until};

/// Runs the program, which must die at the place named.
pub(crate) fn dies_at(home: &Home, place: &str, arguments: &[&str]) {
    let mut command = home.command(arguments);
    command.env("RUNWARDEN_CRASH_AT", place);
    let output = command.output().expect("the program starts");
    assert_eq!(
        output.status.signal(),
        Some(9),
        "{place}: {arguments:?} did not come there: {output:?}"
    );
}

fn statuses(home: &Home, reference: &str) -> Vec<String> {
    let history = home.json(&["history", reference]);
    let rows = history.as_array().expect("history is a list");
    rows.iter()
        .map(|row| row["status"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn a_creation_is_whole_or_absent() {
    let home = Home::new();
    home.done(&["create", "session", "--id", "first"]);
    dies_at(&home, "create.decided", &["create", "session", "--id", "before"]);
    home.run(&["show", "before"]).exits(2);
    dies_at(&home, "create.committed", &["create", "session", "--id", "after"]);
    assert_eq!(home.json(&["show", "after"])["version"], 1);
    assert_eq!(statuses(&home, "after"), ["running"]);
    home.run(&["create", "session", "--id", "before"]).exits(0);
    home.run(&["create", "session", "--id", "after"]).exits(4);
}

#[test]
fn a_new_home_is_whole_or_absent() {
    for place in ["make.written", "make.named", "create.decided"] {
        let home = Home::new();
        dies_at(&home, place, &["create", "session", "--id", "s"]);
        let left: Vec<String> = std::fs::read_dir(home.home())
            .expect("the home was made")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with("state.db"))
            .collect();
        assert_eq!(left.is_empty(), place == "make.written", "{place}: {left:?}");
        home.run(&["show", "s"]).exits(2);
        home.done(&["create", "session", "--id", "s"]);
        let policies = home.json(&["policy", "ls"]);
        assert_eq!(active_sessions(&policies).len(), 1, "{place}: {policies}");
    }
}

#[test]
fn commands_that_make_a_home_at_once_make_one() {
    let home = Home::new();
    let ids: Vec<String> = (0..6).map(|number| format!("s{number}")).collect();
    let made: Vec<_> = ids
        .iter()
        .map(|id| home.start(&["create", "session", "--id", id]))
        .collect();
    for child in made {
        let output = child.wait_with_output().expect("our own child");
        assert!(output.status.success(), "{output:?}");
    }
    for id in &ids {
        assert_eq!(statuses(&home, id), ["running"]);
    }
}

/// A terminal status is never seen without its end: both are of one commit.
#[test]
fn a_transition_is_whole_or_absent_and_its_key_with_it() {
    let home = Home::new();
    home.done(&["create", "session", "--id", "s"]);
    let end = [
        "transition",
        "s",
        "completed",
        "--reason",
        "run.completed.ok",
        "--idempotency-key",
        "k",
    ];
    dies_at(&home, "transition.decided", &end);
    assert_eq!(statuses(&home, "s"), ["running"]);
    dies_at(&home, "transition.committed", &end);
    assert_eq!(statuses(&home, "s"), ["running", "completed"]);
    let again = home.json(&end);
    assert_eq!((&again["replayed"], &again["version"]), (&json!(true), &json!(2)));
    assert!(
        again["event_id"].is_string(),
        "the event is in the same commit: {again}"
    );
}

#[test]
fn an_installation_is_whole_or_absent_and_what_is_in_force_stays() {
    let home = Home::new();
    let before = home.json(&["policy", "ls"]);
    let component = home.path("session.wasm");
    let session = runwarden_bundled::POLICIES
        .iter()
        .find(|policy| policy.kind == "session");
    // The same component with one byte more in a custom section has another digest.
    let mut bytes = session.expect("a bundled policy").component();
    bytes.extend([0, 3, 1, b'x', b'y']);
    std::fs::write(&component, bytes).expect("a file in the home's directory");
    let file = component.to_str().expect("the path is text");
    let install = ["policy", "install", file, "--activate", "--reason", "test"];
    dies_at(&home, "install.checked", &install);
    assert_eq!(home.json(&["policy", "ls"]), before);
    dies_at(&home, "install.committed", &install);
    let after = home.json(&["policy", "ls"]);
    let active: Vec<&Value> = active_sessions(&after);
    assert_eq!(active.len(), 1, "{after}");
    assert_eq!(active[0]["source"], "installed");
}

fn active_sessions(components: &Value) -> Vec<&Value> {
    let components = components.as_array().expect("a list");
    components
        .iter()
        .filter(|c| c["kind"] == "session" && c["active"] == true)
        .collect()
}

#[test]
fn nothing_is_executed_before_the_gate_is_opened() {
    for place in ["run.intent_committed", "run.held", "run.identities_committed"] {
        let home = Home::new();
        let marker = home.path("marker");
        let touch = format!("echo ran > {}", marker.display());
        dies_at(
            &home,
            place,
            &["run", "--detach", "--id", "r", "--", "sh", "-c", &touch],
        );
        let entity = home.json(&["show", "r"]);
        assert_eq!(
            statuses(&home, "r")[0],
            "running",
            "{place}: the intent is recorded: {entity}"
        );
        until("the shim to be gone", || shim_is_gone(&home, "r"));
        assert!(!marker.exists(), "{place}: the program was executed");
    }
}

/// Nobody holds the lock that a shim holds for as long as it lives.
pub(crate) fn shim_is_gone(home: &Home, id: &str) -> bool {
    use runwarden_host::process::{RunDir, ShimLock};
    let lock = RunDir::at(home.home().join("runs").join(id)).shim_lock();
    matches!(lock, Ok(ShimLock::Free | ShimLock::Absent))
}

/// Who was started is recorded before it begins, so the next command concludes what became of it.
#[test]
fn a_starter_that_dies_after_the_gate_loses_nothing() {
    let home = Home::new();
    dies_at(
        &home,
        "run.gate_opened",
        &["run", "--detach", "--id", "r", "--", "sh", "-c", "exit 7"],
    );
    home.run(&["wait", "r"]).exits(1);
    let entity = home.json(&["show", "r"]);
    assert_eq!(entity["fields"]["exit_code"], 7);
    assert_eq!(statuses(&home, "r"), ["running", "failed"]);
}

#[test]
fn a_finishing_command_that_dies_leaves_the_end_to_the_next_reader() {
    let home = Home::new();
    let mut start = home.command(&["run", "--detach", "--id", "r", "--", "sh", "-c", "exit 3"]);
    // The shim hands the variable on to the finishing command, and the starter never comes to the place.
    start.env("RUNWARDEN_CRASH_AT", "settle.judged");
    assert!(start.output().expect("the program starts").status.success());
    until("the exit record to be there", || {
        home.home().join("runs/r/exit.json").exists()
    });
    until("the shim to be gone", || shim_is_gone(&home, "r"));
    assert_eq!(home.json(&["show", "r"])["fields"]["exit_code"], 3);
    assert_eq!(statuses(&home, "r"), ["running", "failed"]);
}

#[test]
fn runs_that_end_at_once_are_recorded_without_a_reader_also_when_one_finishing_command_dies() {
    const RUNS: u32 = 12;
    let home = Home::new();
    let gate = home.gate("gate");
    // Open for both, so that no program waits to open it; closing it is the end for all of them.
    let holder = std::fs::OpenOptions::new().read(true).write(true).open(&gate);
    let holder = holder.expect("the gate is there");
    let script = format!("echo >> ready; read x < {}; exit 4", gate.display());
    for number in 0..RUNS {
        let id = format!("r{number}");
        let mut start = home.command(&["run", "--detach", "--id", &id, "--", "sh", "-c", &script]);
        if number == 0 {
            start.env("RUNWARDEN_CRASH_AT", "settle.judged");
        }
        assert!(start.output().expect("the program starts").status.success());
    }
    // A line each, of nothing but its end.
    let ready = home.path("ready");
    until("every program runs", || {
        std::fs::read_to_string(&ready).is_ok_and(|lines| lines.len() == RUNS as usize)
    });
    drop(holder);
    let store = rusqlite::Connection::open(home.home().join("state.db")).expect("the store is a database");
    // Another's command may record the end of the dead command's run, and come before or after the others.
    let ended = |but_for: &str| {
        let sql = "SELECT count(*) FROM entities JOIN entity_ids USING (entity) \
                   WHERE terminal = 1 AND exit_code = 4 AND entity_ids.id <> ?1";
        store.query_row(sql, [but_for], |row| row.get::<_, u32>(0)).unwrap_or(0)
    };
    until("all ends but that of the dead command are recorded", || {
        ended("r0") == RUNS - 1
    });
    home.run(&["wait", "r0"]).exits(1);
    assert_eq!(ended(""), RUNS);
    for number in 0..RUNS {
        assert_eq!(statuses(&home, &format!("r{number}")), ["running", "failed"]);
        home.over(&format!("r{number}"));
    }
}

/// What is known of one command whose process was killed at a random moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Journal {
    InFlight,
    Acknowledged,
}

#[test]
fn what_was_acknowledged_is_present_and_what_is_present_was_asked_for() {
    const ROUNDS: u64 = 60;
    let home = Home::new();
    home.done(&["create", "session", "--id", "seed"]);
    let journal: Mutex<HashMap<String, Journal>> = Mutex::new(HashMap::new());
    let seed = u64::from(std::process::id());
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let (home, journal) = (&home, &journal);
            scope.spawn(move || {
                let mut random = Random(seed.wrapping_mul(31).wrapping_add(worker));
                // Struck at any moment of about twice the time that an answer takes, whatever else the machine does.
                let mut answer_ms = 20;
                for round in 0..ROUNDS {
                    let id = format!("e{worker}-{round}");
                    match struck_creation(home, journal, &id, random.below(2 * answer_ms)) {
                        Struck::Answered { after_ms } => answer_ms = after_ms.max(1),
                        Struck::Killed => answer_ms = (answer_ms + answer_ms / 2 + 1).min(10_000),
                    }
                }
            });
        }
    });
    let journal = journal.into_inner().expect("no worker panicked");
    let acknowledged = journal
        .values()
        .filter(|state| **state == Journal::Acknowledged)
        .count();
    for (id, state) in &journal {
        let present = home.run(&["show", id]).code == 0;
        assert!(
            present || *state == Journal::InFlight,
            "{id} was acknowledged and is gone (seed {seed})"
        );
        if present {
            assert_eq!(statuses(&home, id), ["running"], "{id} is whole (seed {seed})");
        }
    }
    let listed = home.json(&["ls", "session", "--all"]);
    for entity in listed.as_array().expect("a list") {
        let id = entity["id"].as_str().unwrap_or_default();
        assert!(
            id == "seed" || journal.contains_key(id),
            "{id} was never asked for (seed {seed})"
        );
    }
    assert!(
        acknowledged > 0,
        "every process was killed before it could answer (seed {seed})"
    );
}

/// Which came first, the answer or the signal.
enum Struck {
    Answered { after_ms: u64 },
    Killed,
}

/// Starts a creation and kills its process after some milliseconds, unless it has answered by then.
fn struck_creation(home: &Home, journal: &Mutex<HashMap<String, Journal>>, id: &str, after_ms: u64) -> Struck {
    let note = |state| journal.lock().expect("no worker panicked").insert(id.to_owned(), state);
    note(Journal::InFlight);
    let mut child = home.start(&["create", "session", "--id", id]);
    let since = std::time::Instant::now();
    strike(&mut child, after_ms);
    let output = child.wait_with_output().expect("our own child");
    if output.status.success() && output.stdout == format!("session/{id}\n").as_bytes() {
        note(Journal::Acknowledged);
        return Struck::Answered {
            after_ms: u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
    }
    Struck::Killed
}

/// Kills a process of ours after some milliseconds, unless it has ended by then.
pub(crate) fn strike(child: &mut Child, after_ms: u64) {
    let pid = rustix::process::Pid::from_child(child);
    let process = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).expect("our own child");
    let mut ready = [rustix::event::PollFd::new(&process, rustix::event::PollFlags::IN)];
    let timeout = rustix::time::Timespec {
        tv_sec: i64::try_from(after_ms / 1_000).unwrap_or(0),
        tv_nsec: i64::try_from(after_ms % 1_000 * 1_000_000).unwrap_or(0),
    };
    let ended = rustix::event::poll(&mut ready, Some(&timeout)).expect("waiting for our own child");
    if ended == 0 {
        // It may have ended since: then the signal finds nobody.
        let _ = child.kill();
    }
}

/// A small generator, so that a failure can be repeated from its seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below the limit.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Starts a run that tells its pid.
fn sleeper(home: &Home, id: &str) -> String {
    let text = format!("echo $$ > {}; exec sleep 600", home.path(id).display());
    home.detach(id, &["--", "sh", "-c", &text]);
    home.told(id)
}

#[test]
fn a_killer_that_dies_after_its_intent_leaves_the_run_to_the_next_kill() {
    let home = Home::new();
    let pid = sleeper(&home, "one");
    dies_at(&home, "kill.intent_recorded", &["kill", "one", "--note", "first"]);
    assert!(lives(&pid));
    assert_eq!(statuses(&home, "one"), ["running"]);
    home.done(&["kill", "one", "--note", "second"]);
    assert!(!lives(&pid));
    assert_eq!(statuses(&home, "one"), ["running", "cancelled"]);
    assert_eq!(
        home.json(&["show", "one"])["reason"]["evidence"][0]["note"],
        "first",
        "the first intent stays"
    );
}

#[test]
fn a_killer_that_dies_after_it_asked_is_not_needed_any_more() {
    let home = Home::new();
    let pid = sleeper(&home, "one");
    dies_at(&home, "kill.asked", &["kill", "one"]);
    home.over("one");
    assert!(!lives(&pid));
    assert_eq!(statuses(&home, "one"), ["running", "cancelled"]);
}

#[test]
fn a_process_that_ends_by_itself_after_a_kill_was_wanted_is_recorded_as_that_kill() {
    let home = Home::new();
    let gate = home.gate("gate");
    let text = format!(
        "echo $$ > {}; read x < {}; exit 3",
        home.path("one").display(),
        gate.display()
    );
    home.detach("one", &["--", "sh", "-c", &text]);
    home.told("one");
    dies_at(&home, "kill.intent_recorded", &["kill", "one", "--note", "wanted"]);
    let held = crate::harness::opened(&gate);
    let shown = home.over("one");
    drop(held);
    assert_eq!(
        (
            &shown["status"],
            &shown["reason"]["code"],
            &shown["fields"]["exit_code"],
            &shown["fields"]["cause"]
        ),
        (
            &json!("cancelled"),
            &json!("run.cancelled.manual_kill"),
            &json!(3),
            &json!("exit")
        ),
        "{shown}"
    );
}

#[test]
fn a_killer_that_dies_when_it_has_stopped_a_set_without_a_shim_loses_nothing() {
    let home = Home::new();
    let pid = sleeper(&home, "one");
    let shim = home.json(&["show", "one"])["runtime"]["shim_pid"]
        .as_i64()
        .expect("a shim");
    let number = i32::try_from(shim)
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .expect("a pid");
    rustix::process::kill_process(number, rustix::process::Signal::KILL).expect("it is ours");
    until("the shim is gone", || !lives(&shim.to_string()));
    dies_at(&home, "kill.record_left", &["kill", "one"]);
    assert!(!lives(&pid));
    assert_eq!(home.over("one")["status"], "cancelled");
    assert_eq!(statuses(&home, "one"), ["running", "cancelled"]);
}

#[test]
fn a_start_that_died_before_anything_was_executed_can_be_killed() {
    let home = Home::new();
    let start = ["run", "--detach", "--id", "one", "--", "sleep", "600"];
    dies_at(&home, "run.intent_committed", &start);
    let told = home.json(&["kill", "one"])["targets"][0].clone();
    assert_eq!(
        (&told["outcome"], &told["signal"]),
        (&json!("killed"), &json!("no_process")),
        "{told}"
    );
    assert_eq!(statuses(&home, "one"), ["running", "cancelled"]);
    assert_eq!(home.json(&["show", "one"])["runtime"]["state"], "stopped");
}
