//! kill that cannot be confirmed: it says so, names who lives, and is written as that kill when it comes true.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use runwarden_host::model::{Actor, DurationMs, Reach};
use runwarden_host::process::{Place, machine_name};
use runwarden_host::store::OpenMode;
use runwarden_host::verbs::{Kill, kill};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::harness::{Home, library, lives, process, until};

fn pid(number: i64) -> Pid {
    i32::try_from(number).ok().and_then(Pid::from_raw).expect("a pid")
}

fn shim(home: &Home, id: &str) -> Pid {
    pid(home.json(&["show", id])["runtime"]["shim_pid"]
        .as_i64()
        .expect("a shim"))
}

#[test]
fn an_unconfirmed_kill_names_who_lives_keeps_the_status_and_is_written_as_that_kill_later() {
    let home = Home::new();
    home.done(&["create", "play", "--id", "p"]);
    let text = format!(
        "trap '' TERM; echo $$ > {}; while :; do read x < /dev/zero; done",
        home.path("one").display()
    );
    home.detach("one", &["--parent", "p", "--", "sh", "-c", &text]);
    let worker = home.told("one");
    let shim = shim(&home, "one");
    // A shim that does not move stands for members that do not die: nobody sees the set end.
    kill_process(shim, Signal::STOP).expect("it is ours");
    let answer = home
        .run(&["kill", "p", "--grace", "100ms", "--note", "enough", "--json"])
        .exits(1);
    let told = answer.document()["targets"][0].clone();
    let child = &told["children"][0];
    assert_eq!(
        (&child["outcome"], &child["stopped"], &child["status"]),
        (&json!("incomplete"), &json!(false), &json!("running")),
        "{child}"
    );
    assert_eq!(child["survivors"][0]["pid"].to_string(), worker, "{child}");
    assert_eq!(told["status"], "blocked", "its parent is written");
    let evidence = home.json(&["show", "p"])["reason"]["evidence"][0].clone();
    assert_eq!(evidence["children_not_stopped"], json!(["run/one"]), "{evidence}");
    let shown = home.json(&["show", "one"]);
    assert_eq!(
        (&shown["status"], &shown["runtime"]["stop_unconfirmed"]),
        (&json!("running"), &json!(true))
    );
    assert!(home.done(&["show", "one"]).contains("stop unconfirmed"));
    assert!(home.done(&["ls"]).contains("running, stop unconfirmed"));
    kill_process(shim, Signal::CONT).expect("it is ours");
    let over = home.over("one");
    assert!(!lives(&worker));
    assert_eq!(
        (
            &over["status"],
            &over["reason"]["code"],
            &over["reason"]["evidence"][0]["note"]
        ),
        (
            &json!("cancelled"),
            &json!("run.cancelled.force_kill"),
            &json!("enough")
        )
    );
    assert_eq!(home.json(&["history", "one"]).as_array().map(Vec::len), Some(2));
    let runtime = home.json(&["show", "one"])["runtime"].clone();
    assert_eq!(runtime["stop_unconfirmed"], false, "{runtime}");
}

#[test]
fn a_kill_that_the_kernel_refuses_writes_nothing() {
    /// The user nobody, who may signal no process of root.
    const NOBODY: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        // As an ordinary user there is no process of another user that a test may name without a risk to it.
        return;
    }
    let mut foreign = Command::new("sleep")
        .arg("600")
        .stdin(Stdio::null())
        .spawn()
        .expect("sleep");
    let home = Home::new();
    home.done(&["create", "session", "--id", "one"]);
    let here = Place::here(machine_name());
    let ticks = process(&foreign.id().to_string()).expect("it lives").1;
    let store = rusqlite::Connection::open(home.home().join("state.db")).expect("the store");
    let row = "INSERT INTO runtimes (owner, kind, state, stop_unconfirmed, host, boot_id, pid_namespace, time_namespace, \
               worker_pid, worker_start_ticks, attempt_token, containment, created_at_ms, updated_at_ms) \
               SELECT entity, 'local', 'running', 0, ?1, ?2, ?3, ?4, ?5, ?6, 'a-token-of-the-test', 'none', 0, 0 \
               FROM entity_ids WHERE id = 'one'";
    let values = rusqlite::params![
        here.host,
        here.boot_id.clone().unwrap_or_default(),
        here.pid_namespace.map(u64::cast_signed),
        here.time_namespace.map(u64::cast_signed),
        foreign.id(),
        i64::try_from(ticks).expect("a number")
    ];
    store.execute(row, values).expect("a runtime row");
    drop(store);
    let owned = Command::new("chown")
        .arg("-R")
        .arg(NOBODY.to_string())
        .arg(home.path(""))
        .status();
    assert!(owned.expect("chown").success());
    let program = home.path("runwarden");
    std::fs::copy(crate::harness::PROGRAM, &program).expect("a copy that everybody may execute");
    let output = home
        .command(&["kill", "one", "--grace", "0", "--json"])
        .uid(NOBODY)
        .output()
        .expect("the program starts");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a document");
    let told = &document["targets"][0];
    assert_eq!(
        (output.status.code(), &told["signal"]),
        (Some(1), &json!("permission_denied")),
        "{document}"
    );
    assert_eq!(
        (&told["outcome"], &told["status"]),
        (&json!("refused"), &json!("running"))
    );
    assert!(lives(&foreign.id().to_string()));
    assert_eq!(home.json(&["history", "one"]).as_array().map(Vec::len), Some(1));
    foreign.kill().expect("it is ours");
    foreign.wait().expect("it is ours");
}

#[test]
fn a_store_that_can_only_be_read_keeps_nobody_alive() {
    let home = Home::new();
    home.detach(
        "one",
        &[
            "--",
            "sh",
            "-c",
            &format!("echo $$ > {}; exec sleep 600", home.path("one").display()),
        ],
    );
    let worker = home.told("one");
    let host = library(&home.home(), OpenMode::ReadOnly);
    let target = host.store().load("one").expect("the store").expect("it is there");
    let asked = Kill {
        grace: DurationMs::from_ms(10_000),
        actor: Actor::new("operator", "test"),
        note: None,
        reach: Reach::Policy,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let killing = runtime.block_on(kill(&host, &[target], &asked)).expect("a report");
    assert!(!lives(&worker));
    assert!(killing.targets[0].stopped || killing.is_complete(), "{killing:?}");
    until("the finishing command has recorded it", || {
        home.json(&["show", "one"])["terminal"] == true
    });
    assert_eq!(home.over("one")["status"], "cancelled");
}
