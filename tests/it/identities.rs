//! kill and who a process is: a record that another process could be taken for signals nobody.

use std::process::{Child, Command, Stdio};

use runwarden_host::process::{RunDir, ShimLock};
use serde_json::json;

use crate::harness::{Home, lives, process, until};

/// A process of the test's own that a kill must not touch.
struct Bystander(Child);

impl Bystander {
    fn new() -> Self {
        let started = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn();
        Self(started.expect("sleep"))
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn ticks(&self) -> u64 {
        process(&self.pid()).expect("it lives").1
    }

    #[track_caller]
    fn is_untouched(&mut self) {
        assert!(lives(&self.pid()), "a bystander was signalled");
        assert!(matches!(self.0.try_wait(), Ok(None)), "a bystander was signalled");
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn database(home: &Home) -> rusqlite::Connection {
    rusqlite::Connection::open(home.home().join("state.db")).expect("the store")
}

/// A run of the test whose record is changed while it lives; the real one is stopped in the end.
struct Changed {
    home: Home,
    pid: String,
    kept: Vec<(&'static str, rusqlite::types::Value)>,
}

impl Changed {
    /// Starts a run, then sets columns of its runtime row to what these say.
    fn new(columns: &[(&'static str, rusqlite::types::Value)]) -> Self {
        let home = Home::new();
        let text = format!("echo $$ > {}; exec sleep 600", home.path("one").display());
        home.detach("one", &["--", "sh", "-c", &text]);
        let pid = home.told("one");
        let store = database(&home);
        let mut kept = Vec::new();
        for (column, value) in columns {
            let before = store.query_row(&format!("SELECT {column} FROM runtimes"), [], |row| row.get(0));
            kept.push((*column, before.expect("a column")));
            store
                .execute(&format!("UPDATE runtimes SET {column} = ?1"), [value])
                .expect("a changed row");
        }
        Self { home, pid, kept }
    }

    /// Kills it: nothing is signalled, nothing written, exit 1 and this word.
    #[track_caller]
    fn is_refused(&self, word: &str) {
        for arguments in [
            &["kill", "one", "--grace", "0", "--json"][..],
            &["kill", "one", "--dry-run", "--json"],
        ] {
            let before = self.home.json(&["history", "one", "--admin"]);
            let answer = self.home.run(arguments).exits(1);
            let document = answer.document();
            let told = if document["plan"].is_array() {
                &document["plan"][0]
            } else {
                &document["targets"][0]
            };
            assert_eq!(told["signal"], word, "{told}");
            assert!(lives(&self.pid), "nothing is signalled");
            assert_eq!(self.home.json(&["show", "one"])["status"], "running");
            assert_eq!(self.home.json(&["history", "one"]).as_array().map(Vec::len), Some(1));
            assert_eq!(self.home.json(&["history", "one", "--admin"]), before);
            let wanted = "SELECT count(stop_at_ms) FROM runtimes";
            let wanted: i64 = database(&self.home)
                .query_row(wanted, [], |row| row.get(0))
                .expect("a count");
            assert_eq!(wanted, 0, "no intent is written");
        }
    }

    /// Puts the record back and stops the run.
    fn ends(&self) {
        let store = database(&self.home);
        for (column, value) in &self.kept {
            store
                .execute(&format!("UPDATE runtimes SET {column} = ?1"), [value])
                .expect("a row put back");
        }
        self.home.done(&["kill", "one", "--grace", "0"]);
        assert!(!lives(&self.pid));
    }
}

fn text(value: &str) -> rusqlite::types::Value {
    value.to_owned().into()
}

fn number(value: impl TryInto<i64>) -> rusqlite::types::Value {
    value.try_into().unwrap_or_default().into()
}

fn nothing() -> rusqlite::types::Value {
    rusqlite::types::Value::Null
}

#[test]
fn kill_of_a_record_from_another_host_signals_nothing() {
    let changed = Changed::new(&[("host", text("elsewhere"))]);
    changed.is_refused("host_mismatch");
    changed.ends();
}

#[test]
fn kill_of_a_record_from_another_pid_namespace_signals_nothing() {
    let changed = Changed::new(&[("pid_namespace", number(1_i64))]);
    changed.is_refused("namespace_mismatch");
    changed.ends();
}

#[test]
fn kill_of_a_record_that_only_ticks_of_another_time_namespace_tell_signals_nothing() {
    let changed = Changed::new(&[
        ("time_namespace", number(1_i64)),
        ("shim_pidfs_inode", nothing()),
        ("shim_pidfs_handle", nothing()),
        ("worker_pidfs_inode", nothing()),
        ("worker_pidfs_handle", nothing()),
    ]);
    changed.is_refused("namespace_mismatch");
    changed.ends();
}

#[test]
fn kill_of_a_run_in_a_container_or_on_another_system_signals_nothing() {
    for kind in ["container", "ssh", "other"] {
        let changed = Changed::new(&[("kind", text(kind))]);
        changed.is_refused("remote");
        changed.ends();
    }
}

#[test]
fn kill_of_a_living_run_whose_record_names_another_signals_nothing() {
    let mut bystander = Bystander::new();
    let pid = number(bystander.0.id());
    let changed = Changed::new(&[
        ("shim_pid", pid.clone()),
        ("worker_pid", pid),
        ("shim_pidfs_handle", nothing()),
        ("worker_pidfs_handle", nothing()),
    ]);
    changed.is_refused("identity_mismatch");
    bystander.is_untouched();
    changed.ends();
}

#[test]
fn kill_of_layers_that_contradict_each_other_signals_nothing() {
    let changed = Changed::new(&[("shim_start_ticks", number(1_i64))]);
    changed.is_refused("identity_mismatch");
    changed.ends();
}

#[test]
fn kill_of_a_bare_number_signals_nothing() {
    let changed = Changed::new(&[
        ("shim_pidfs_inode", nothing()),
        ("shim_pidfs_handle", nothing()),
        ("shim_start_ticks", nothing()),
    ]);
    changed.is_refused("unverifiable");
    changed.ends();
}

/// Waits until the shim of the run is gone: as long as it lives, it and its finishing command may write once more.
fn until_alone(home: &Home) {
    let directory = RunDir::at(home.home().join("runs/one"));
    until("the shim is gone", || {
        matches!(directory.shim_lock(), Ok(ShimLock::Free))
    });
}

/// A run that never was, in the store: its record names a process of the test.
fn recorded(home: &Home, columns: &[(&'static str, rusqlite::types::Value)]) {
    home.done(&["run", "--id", "one", "--", "true"]);
    home.over("one");
    let store = database(home);
    let directory = home.home().join("runs/one");
    until_alone(home);
    std::fs::remove_file(directory.join("exit.json")).expect("an exit record");
    store
        .execute_batch(
            "UPDATE runtimes SET state = 'running', shim_pid = NULL, shim_start_ticks = NULL, shim_pidfs_inode = NULL, \
             shim_pidfs_handle = NULL, worker_pidfs_inode = NULL, worker_pidfs_handle = NULL;",
        )
        .expect("a changed row");
    for (column, value) in columns {
        store
            .execute(&format!("UPDATE runtimes SET {column} = ?1"), [value])
            .expect("a changed row");
    }
    let reason = ["--reason", "run.started.ok", "--override", "--override-actor", "test"];
    let back = [
        &["transition", "one", "running"][..],
        &reason,
        &["--justification", "put back"],
    ]
    .concat();
    home.done(&back);
}

#[track_caller]
fn is_already_dead(home: &Home, cause: &str, observed: &str) {
    let answer = home.run(&["kill", "one", "--json"]).exits(0);
    let told = answer.document()["targets"][0].clone();
    assert_eq!(
        (&told["outcome"], &told["signal"], &told["stopped"]),
        (&json!("killed"), &json!("already_dead"), &json!(false)),
        "{told}"
    );
    let shown = home.json(&["show", "one"]);
    assert_eq!(
        (&shown["status"], &shown["reason"]["code"], &shown["fields"]["cause"]),
        (&json!("cancelled"), &json!("run.cancelled.manual_kill"), &json!(cause)),
        "{shown}"
    );
    assert_eq!(shown["runtime"]["state"], "stopped");
    assert_eq!(shown["reason"]["evidence"][0]["observed"], observed, "{shown}");
}

#[test]
fn kill_of_a_reused_pid_signals_nothing_and_ends_the_run() {
    let mut bystander = Bystander::new();
    let home = Home::new();
    let ticks = number(bystander.ticks().saturating_sub(1));
    recorded(
        &home,
        &[("worker_pid", number(bystander.0.id())), ("worker_start_ticks", ticks)],
    );
    is_already_dead(&home, "unobserved", "recycled");
    bystander.is_untouched();
}

#[test]
fn kill_of_a_pid_from_before_the_restart_signals_nothing_and_ends_the_run() {
    let mut bystander = Bystander::new();
    let home = Home::new();
    let ticks = number(bystander.ticks());
    recorded(
        &home,
        &[
            ("worker_pid", number(bystander.0.id())),
            ("worker_start_ticks", ticks),
            ("boot_id", text("00000000-0000-0000-0000-000000000000")),
        ],
    );
    is_already_dead(&home, "host_restarted", "earlier_boot");
    bystander.is_untouched();
}

#[test]
fn kill_of_a_bare_number_that_somebody_has_leaves_the_run_as_it_is() {
    let mut bystander = Bystander::new();
    let home = Home::new();
    recorded(
        &home,
        &[
            ("worker_pid", number(bystander.0.id())),
            ("worker_start_ticks", nothing()),
        ],
    );
    let answer = home.run(&["kill", "one", "--json"]).exits(1);
    assert_eq!(answer.document()["targets"][0]["signal"], "unverifiable");
    assert_eq!(home.json(&["show", "one"])["status"], "running");
    bystander.is_untouched();
}

/// A zombie takes every signal and is not alive.
#[test]
fn a_zombie_is_already_dead_and_kill_does_not_wait_for_it() {
    let mut zombie = Command::new("true").stdin(Stdio::null()).spawn().expect("true");
    let pid = zombie.id().to_string();
    until("it has ended", || process(&pid).is_some_and(|seen| seen.0 == 'Z'));
    let home = Home::new();
    let ticks = number(process(&pid).expect("nobody reaped it").1);
    recorded(
        &home,
        &[("worker_pid", number(zombie.id())), ("worker_start_ticks", ticks)],
    );
    is_already_dead(&home, "unobserved", "zombie");
    zombie.wait().expect("it is ours");
}

#[test]
fn a_record_that_tells_the_true_end_comes_before_the_kill() {
    let home = Home::new();
    home.run(&["run", "--id", "one", "--", "sh", "-c", "exit 7"]);
    home.over("one");
    until_alone(&home);
    let store = database(&home);
    store
        .execute_batch("UPDATE runtimes SET state = 'running'")
        .expect("a changed row");
    let reason = ["--reason", "run.started.ok", "--override", "--override-actor", "test"];
    home.done(
        &[
            &["transition", "one", "running"][..],
            &reason,
            &["--justification", "put back"],
        ]
        .concat(),
    );
    let answer = home.run(&["kill", "one", "--json"]).exits(0);
    assert_eq!(answer.document()["targets"][0]["outcome"], "unchanged");
    let shown = home.json(&["show", "one"]);
    assert_eq!(
        (&shown["status"], &shown["fields"]["exit_code"]),
        (&json!("failed"), &json!(7))
    );
}

#[test]
fn a_child_on_another_host_is_left_and_its_parent_is_still_written() {
    let home = Home::new();
    home.done(&["create", "play", "--id", "p"]);
    let text = format!("echo $$ > {}; exec sleep 600", home.path("one").display());
    home.detach("one", &["--parent", "p", "--", "sh", "-c", &text]);
    let pid = home.told("one");
    let store = database(&home);
    let here: String = store
        .query_row("SELECT host FROM runtimes", [], |row| row.get(0))
        .expect("a host");
    store
        .execute_batch("UPDATE runtimes SET host = 'elsewhere'")
        .expect("a changed row");
    let answer = home.run(&["kill", "p", "--json"]).exits(1);
    let told = &answer.document()["targets"][0];
    assert_eq!(
        (
            &told["status"],
            &told["children"][0]["signal"],
            &told["children"][0]["status"]
        ),
        (&json!("blocked"), &json!("host_mismatch"), &json!("running")),
        "{told}"
    );
    assert!(lives(&pid));
    let evidence = home.json(&["show", "p"])["reason"]["evidence"][0].clone();
    assert_eq!(evidence["children_not_stopped"], json!(["run/one"]), "{evidence}");
    store
        .execute("UPDATE runtimes SET host = ?1", [&here])
        .expect("a row put back");
    home.done(&["kill", "p"]);
    assert!(!lives(&pid), "saying it again stops what was left");
}
