//! The reference system's answers to "does it live?" as data, put to real processes. Where this host differs on purpose, the
//! table names why. What may end a run is positive evidence alone: that holds in every row.

use std::process::{Child, Command, Stdio};

use runwarden_host::process::{Identity, Liveness, Place, capture, classify, machine_name};
use serde_json::Value;

use crate::harness::{Home, lives, process, until, vectors};

const EXACT: &str = "start ticks are compared exactly: a number that changed hands is told without a tolerance";
const BARE: &str = "a number, a word in the environment or in the command line is no identity: unknown, never alive";
const BOOT: &str = "a boot has an id: a step of the clock is none";

/// What is recorded of a process.
#[derive(Clone, Copy, Debug)]
enum Recorded {
    /// A living one, as it is.
    Exactly,
    /// A living one by its number alone.
    BareNumber,
    /// A number that no process has.
    Number(i32),
    /// A living one, started so many ticks later.
    Later(u64),
    /// A living one, read from another time namespace, by ticks alone.
    OtherClock,
    /// A living one, of another machine.
    OtherHost,
    /// A living one, of another boot.
    OtherBoot,
    /// One that has ended and was reaped.
    Reaped,
    /// One that has ended and was not.
    Zombie,
}

/// How a row is put here: what is recorded, and the answer where it is not the reference's.
enum Row {
    Same(Recorded),
    Other(Recorded, &'static str, &'static str),
    /// Not to be put: a column of integers holds no such thing, or there is no such kind of run here.
    NotHere,
}

fn row(part: &str, case: &Value) -> Row {
    use Recorded::{BareNumber, Exactly, Later, Number, OtherBoot, OtherClock, OtherHost, Reaped, Zombie};
    let words = case["case"].as_str().unwrap_or_default();
    match (part, words) {
        ("run_conclusion", "askability of pid") => match case["pid"].as_i64() {
            Some(1) => Row::Same(BareNumber),
            Some(pid) => i32::try_from(pid).map_or(Row::NotHere, |pid| Row::Same(Number(pid))),
            None => Row::NotHere,
        },
        ("run_conclusion", "pid absent" | "vanished between probes") => Row::Same(Reaped),
        ("run_conclusion", "no record" | "create_time not recorded") => Row::Other(BareNumber, "unknown", BARE),
        ("run_conclusion", "recorded create_time unusable?") => Row::Other(BareNumber, "unknown", BARE),
        ("run_conclusion", "create_time unreadable now") => Row::Same(OtherClock),
        ("run_conclusion", "start time delta") => match case["live_create_time"].as_f64() {
            Some(100.0) => Row::Same(Exactly),
            Some(live) if live > 100.0 && live < 100.1 => Row::Other(Later(9), "gone", EXACT),
            Some(_) => Row::Same(Later(11)),
            None => Row::NotHere,
        },
        ("studio_tristate", "no metadata, no process text match" | "metadata is unparsable text") => {
            Row::Same(Number(0))
        }
        ("studio_tristate", "pid not numeric" | "boot recorded but no pid") => Row::Same(Number(0)),
        ("studio_tristate", "no metadata, id found in process listing" | "live pid, no create_time") => {
            Row::Other(BareNumber, "unknown", BARE)
        }
        ("studio_tristate", words) if words.starts_with("live pid, create_time +0.5") => {
            Row::Other(Later(50), "gone", EXACT)
        }
        ("studio_tristate", "live pid, create_time +1.5") => Row::Same(Later(150)),
        ("studio_tristate", "dead pid") => Row::Same(Reaped),
        ("studio_tristate", "zombie") => Row::Same(Zombie),
        ("studio_tristate", words) if words.starts_with("other host") => Row::Same(OtherHost),
        ("studio_tristate", "boot differs 10 s") => Row::Same(OtherBoot),
        ("studio_tristate", "boot differs 4 s") => Row::Other(Exactly, "alive", BOOT),
        ("kandev_row_liveness", _) => match (&case["row"]["runtime"], &case["row"]["local_pid"]) {
            (Value::String(kind), Value::Number(pid)) if kind == "standalone" => Row::Same(Number(
                pid.as_i64().and_then(|pid| i32::try_from(pid).ok()).unwrap_or(0),
            )),
            (Value::String(kind), Value::String(pid)) if kind == "standalone" && pid == "live" => Row::Same(Exactly),
            (Value::String(kind), Value::String(pid)) if kind == "standalone" && pid == "gone" => Row::Same(Reaped),
            _ => Row::NotHere,
        },
        _ => Row::NotHere,
    }
}

/// A process of the test, ended with it.
struct Sleeper(Child);

impl Sleeper {
    fn new() -> Self {
        let sleeper = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn();
        Self(sleeper.expect("sleep"))
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What is recorded, with the process itself, which lives as long as it is held.
fn recorded(wanted: Recorded, place: &Place) -> (Identity, Sleeper) {
    let mut sleeper = Sleeper::new();
    let pid = i32::try_from(sleeper.0.id()).expect("a pid");
    let mut identity = capture(pid, place, "token").expect("it lives");
    let ticks_alone = |identity: &mut Identity| (identity.pidfs_inode, identity.pidfs_handle) = (None, None);
    match wanted {
        Recorded::Exactly => {}
        Recorded::BareNumber => {
            ticks_alone(&mut identity);
            identity.start_ticks = None;
        }
        Recorded::Number(pid) => {
            ticks_alone(&mut identity);
            identity.pid = pid;
        }
        Recorded::Later(ticks) => {
            ticks_alone(&mut identity);
            identity.start_ticks = identity.start_ticks.map(|start| start + ticks);
        }
        Recorded::OtherClock => {
            ticks_alone(&mut identity);
            identity.time_namespace = Some(1);
        }
        Recorded::OtherHost => identity.host = "elsewhere".to_owned(),
        Recorded::OtherBoot => identity.boot_id = "earlier".to_owned(),
        Recorded::Reaped => {
            sleeper.0.kill().expect("it is ours");
            sleeper.0.wait().expect("it is ours");
        }
        Recorded::Zombie => {
            sleeper.0.kill().expect("it is ours");
            until("it is a zombie", || {
                process(&pid.to_string()).is_some_and(|(state, _)| state == 'Z')
            });
        }
    }
    (identity, sleeper)
}

#[test]
fn only_positive_evidence_says_gone_and_the_reference_agrees_but_for_named_exceptions() {
    let place = Place::here(machine_name());
    let vectors = vectors("liveness.json");
    let mut put = 0;
    for part in ["run_conclusion", "studio_tristate", "kandev_row_liveness"] {
        for case in vectors[part].as_array().expect("cases") {
            let said = [&case["conclusion"], &case["liveness"]]
                .into_iter()
                .find_map(Value::as_str);
            let said = match said.expect("an answer") {
                "process_gone" | "dead" => "gone",
                other => other,
            };
            let (wanted, expected, why) = match row(part, case) {
                Row::Same(wanted) => (wanted, said, "the reference's own answer"),
                Row::Other(wanted, expected, why) => (wanted, expected, why),
                Row::NotHere => continue,
            };
            let (identity, _sleeper) = recorded(wanted, &place);
            let answer = match classify(&identity, &place) {
                Liveness::Alive(_) => "alive",
                Liveness::Gone { .. } => "gone",
                Liveness::Unknown { .. } => "unknown",
            };
            assert_eq!(answer, expected, "{part}, {wanted:?}, {case}: {why}");
            put += 1;
        }
    }
    assert!(put > 35, "most rows are put: {put}");
}

const FOUND: &str = "a set that its keeper does not know is found by what marks it, and stopped";
const GONE: &str = "what is positively gone needs no stop, whatever a stop would say";

/// A run as a stop and a look at it find it, and whether it was removed then.
fn is_removed(stop: &str, liveness: &str) -> bool {
    let home = Home::new();
    let script = format!("echo $$ > {}; exec sleep 600", home.path("one").display());
    home.detach("one", &["--contain", "subreaper", "--", "sh", "-c", &script]);
    let worker = home.told("one");
    let shim = home.json(&["show", "one"])["runtime"]["shim_pid"].to_string();
    if stop == "runtime_not_found" || liveness == "dead" {
        ended(&shim);
    }
    if liveness == "dead" {
        ended(&worker);
    }
    let change = |sql: &str| {
        let store = rusqlite::Connection::open(home.home().join("state.db")).expect("the store");
        store.execute(sql, []).expect("a row of ours");
    };
    if liveness == "unknown" {
        change("UPDATE runtimes SET host = 'far-' || host");
    }
    let (there, away) = (home.home().join("runs/one"), home.path("away"));
    if stop == "other_error" {
        std::fs::rename(&there, &away).expect("a directory of ours");
    }
    let removed = home.run(&["rm", "one"]).code == 0;
    let is_there = home.run(&["show", "one", "--command"]).code == 0;
    assert_ne!(
        removed, is_there,
        "{stop}, {liveness}: what was removed is gone, what was not is there"
    );
    assert!(removed || liveness == "dead" || lives(&worker), "{stop}, {liveness}");
    if stop == "other_error" && !removed {
        std::fs::rename(&away, &there).expect("a directory of ours");
    }
    if liveness == "unknown" {
        change("UPDATE runtimes SET host = substr(host, 5)");
    }
    home.run(&["kill", "one", "--grace", "0"]);
    assert!(!lives(&worker));
    removed
}

/// Kills a process that a run of this test started, unless it is gone.
fn ended(pid: &str) {
    let number = pid
        .parse()
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .expect("a pid");
    let _ = rustix::process::kill_process(number, rustix::process::Signal::KILL);
    until("it is gone", || !lives(pid));
}

#[test]
fn a_cleanup_goes_on_where_the_references_does_but_for_named_exceptions() {
    let vectors = vectors("liveness.json");
    let mut put = 0;
    for case in vectors["kandev_startup_cleanup"].as_array().expect("cases") {
        let word = |name: &str| case[name].as_str().expect("a word");
        let (stop, liveness) = (word("stop_result"), word("liveness"));
        let proceeds = case["cleanup_proceeds"] == true;
        let (expected, why) = match (stop, liveness) {
            // Nobody is stopped here of whom nothing is known.
            ("ok", "unknown") => continue,
            ("runtime_not_found", "alive") => (true, FOUND),
            ("other_error", "dead") => (true, GONE),
            _ => (proceeds, "the reference's own answer"),
        };
        assert_eq!(is_removed(stop, liveness), expected, "{case}: {why}");
        put += 1;
    }
    assert_eq!(put, 8);
}
