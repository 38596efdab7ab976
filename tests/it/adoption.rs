//! What becomes of a run whose shim, starter or machine died: it is adopted and ends as it would have, or it ends as
//! nobody saw it end, and never with an invented code.

use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::crashes::shim_is_gone;
use crate::harness::{Home, answered, lives, opened, until, until_watching};

/// Kills a process that a run of this test started, unless it is gone.
fn ended(pid: &str) {
    let number = pid.parse().ok().and_then(Pid::from_raw).expect("a pid");
    let _ = kill_process(number, Signal::KILL);
    until("it is gone", || !lives(pid));
}

fn shim_of(home: &Home, id: &str) -> String {
    let shown = home.json(&["show", id]);
    let shim = shown["runtime"]["shim_pid"].as_i64();
    shim.expect("a shim").to_string()
}

/// Starts a run whose program tells its pid and waits at a gate, and kills its shim.
fn orphaned(home: &Home, id: &str, text: &str) -> String {
    let gate = home.gate(&format!("{id}.gate"));
    let told = home.path(id);
    let text = format!("gate={}; echo $$ > {}; {text}", gate.display(), told.display());
    home.detach(id, &["--", "sh", "-c", &text]);
    let worker = home.told(id);
    ended(&shim_of(home, id));
    worker
}

fn go(home: &Home, id: &str) -> std::fs::File {
    opened(&home.path(&format!("{id}.gate")))
}

fn codes(home: &Home, id: &str) -> Vec<String> {
    let history = home.json(&["history", id]);
    let rows = history.as_array().expect("history is a list");
    let code = |row: &Value| row["reason"]["code"].as_str().unwrap_or_default().to_owned();
    rows.iter().map(code).collect()
}

#[test]
fn a_run_whose_shim_was_killed_is_adopted_and_ends_with_its_true_code_and_whole_logs() {
    let home = Home::new();
    let worker = orphaned(&home, "one", "echo before; read x < $gate; echo after; exit 42");
    let shown = home.json(&["show", "one"]);
    assert_eq!(
        (&shown["status"], &shown["runtime"]["state"]),
        (&json!("running"), &json!("running"))
    );
    assert_eq!(shown["runtime"]["pid"].to_string(), worker, "the same program");
    let adopted = home.json(&["history", "one", "--admin"]);
    let event = adopted.as_array().and_then(|events| events.last()).cloned();
    let event = event.expect("an audit row");
    assert_eq!(
        (
            &event["action"],
            &event["details"]["repair"],
            &event["details"]["observed"]
        ),
        (
            &json!("runtime_adopted"),
            &json!("adopt"),
            &json!("shim_gone_set_alive")
        )
    );
    let _gate = go(&home, "one");
    let over = home.over("one");
    assert_eq!(
        (&over["status"], &over["fields"]["exit_code"], &over["fields"]["cause"]),
        (&json!("failed"), &json!(42), &json!("exit"))
    );
    assert_eq!(home.done(&["logs", "one"]), "before\nafter");
    assert_eq!(codes(&home, "one").len(), 2, "one end");
}

#[test]
fn a_program_that_writes_while_nobody_reads_waits_and_loses_nothing() {
    let home = Home::new();
    // Far more than a pipe holds; it begins when its shim is gone.
    orphaned(
        &home,
        "one",
        "read x < $gate; head -c 1000000 /dev/zero | tr '\\0' x; echo; exit 3",
    );
    let _gate = go(&home, "one");
    assert_eq!(home.over("one")["fields"]["exit_code"], 3);
    assert_eq!(home.done(&["logs", "one"]).len(), 1_000_000);
}

#[test]
fn a_program_that_died_by_a_signal_after_its_shim_is_told_so() {
    let home = Home::new();
    let worker = orphaned(&home, "one", "read x < $gate");
    home.json(&["show", "one"]);
    ended(&worker);
    let over = home.over("one");
    assert_eq!(
        (
            &over["fields"]["exit_code"],
            &over["fields"]["term_signal"],
            &over["fields"]["cause"]
        ),
        (&Value::Null, &json!(9), &json!("signal"))
    );
}

#[test]
fn an_end_that_nobody_watched_has_its_true_signal_or_none() {
    let home = Home::new();
    let worker = orphaned(&home, "one", "read x < $gate");
    let group = home.json(&["runtime", "ls"])[0]["cgroup"]
        .as_str()
        .map(std::path::PathBuf::from);
    ended(&worker);
    let over = home.over("one");
    // Whoever watches the set to its end removes it, after the end is recorded.
    until("its cgroup is removed", || {
        group.as_ref().is_none_or(|group| !group.exists())
    });
    let fields = &over["fields"];
    assert_eq!(
        (&over["status"], &fields["exit_code"]),
        (&json!("failed"), &Value::Null)
    );
    // Whether it can still be read depends on who reaps it, and when.
    match fields["term_signal"].as_i64() {
        Some(signal) => assert_eq!((signal, &fields["cause"]), (9, &json!("signal"))),
        None => assert_eq!(
            (&over["reason"]["code"], &fields["cause"]),
            (&json!("run.failed.orphaned_parent"), &json!("unobserved"))
        ),
    }
}

#[test]
fn an_adopted_run_is_killed_like_any_other() {
    let home = Home::new();
    let worker = orphaned(&home, "one", "setsid sleep 600 & wait");
    home.json(&["show", "one"]);
    let answer = home.run(&["kill", "one", "--json"]).exits(0);
    let told = &answer.document()["targets"][0];
    assert_eq!(
        (&told["outcome"], &told["stopped"]),
        (&json!("killed"), &json!(true)),
        "{told}"
    );
    assert!(!lives(&worker));
    let over = home.over("one");
    assert_eq!(over["reason"]["code"], "run.cancelled.manual_kill");
    assert_eq!(codes(&home, "one").len(), 2);
}

#[test]
fn what_lingers_is_adopted_and_the_end_that_was_seen_stays() {
    let home = Home::new();
    let gate = home.gate("gate");
    let text = format!("(read x < {}) & exit 5", gate.display());
    home.detach("one", &["--", "sh", "-c", &text]);
    until("it lingers", || {
        home.json(&["show", "one"])["runtime"]["state"] == "lingering"
    });
    let first = shim_of(&home, "one");
    ended(&first);
    assert_ne!(shim_of(&home, "one"), first, "another shim");
    assert_eq!(home.json(&["show", "one"])["runtime"]["state"], "lingering");
    let _gate = opened(&gate);
    let over = home.over("one");
    assert_eq!(
        (&over["fields"]["exit_code"], &over["fields"]["cause"]),
        (&json!(5), &json!("exit"))
    );
    assert_eq!(
        home.exit_record("one")["exit_code"],
        5,
        "the record keeps what was seen"
    );
}

#[test]
fn a_listing_has_what_lingers_adopted_and_records_that_it_is_over() {
    let home = Home::new();
    let gate = home.gate("gate");
    let text = format!(
        "(echo $$ > {0}.x; mv {0}.x {0}; read x < {1}) & exit 5",
        home.path("one").display(),
        gate.display()
    );
    home.detach("one", &["--", "sh", "-c", &text]);
    home.told("one");
    until("it lingers", || {
        home.json(&["show", "one"])["runtime"]["state"] == "lingering"
    });
    let first = shim_of(&home, "one");
    ended(&first);
    let listed = || home.json(&["ls"])[0]["runtime"].clone();
    let adopted = listed();
    assert_eq!(adopted["state"], "lingering");
    assert_ne!(adopted["shim_pid"].to_string(), first, "another shim");
    ended(&adopted["shim_pid"].to_string());
    let _gate = opened(&gate);
    until("it is over", || listed()["state"] == "stopped");
    assert_eq!(home.over("one")["fields"]["exit_code"], 5);
}

#[test]
fn a_command_that_waits_has_the_run_adopted_and_tells_its_true_end() {
    let home = Home::new();
    let gate = home.gate("one.gate");
    let text = format!(
        "echo $$ > {}; read x < {}; exit 9",
        home.path("one").display(),
        gate.display()
    );
    home.detach("one", &["--", "sh", "-c", &text]);
    home.told("one");
    let shim = shim_of(&home, "one");
    let waiting = home.start(&["wait", "one", "--exit-code"]);
    until_watching(&waiting);
    ended(&shim);
    let _gate = opened(&gate);
    answered(waiting, "wait one".to_owned()).exits(9);
}

#[test]
fn a_run_in_the_foreground_outlives_its_shim_and_leaves_with_the_programs_code() {
    let home = Home::new();
    let gate = home.gate("one.gate");
    let text = format!(
        "echo $$ > {}; read x < {}; exit 11",
        home.path("one").display(),
        gate.display()
    );
    let running = home.start(&["run", "--id", "one", "--", "sh", "-c", &text]);
    home.told("one");
    ended(&shim_of(&home, "one"));
    let _gate = opened(&gate);
    answered(running, "run one".to_owned()).exits(11);
    assert_eq!(home.over("one")["fields"]["exit_code"], 11);
}

#[test]
fn a_run_whose_directory_is_gone_too_is_shown_and_can_be_killed() {
    let home = Home::new();
    let worker = orphaned(&home, "one", "exec sleep 600");
    std::fs::remove_dir_all(home.of_run("one", "")).expect("the run directory");
    assert_eq!(home.json(&["show", "one"])["runtime"]["state"], "lost");
    assert_eq!(
        home.run(&["doctor", "--fix", "--json"]).code,
        1,
        "it cannot be taken over"
    );
    home.done(&["kill", "one"]);
    assert!(!lives(&worker));
    assert_eq!(home.json(&["show", "one"])["status"], "cancelled");
}

#[test]
fn a_set_without_a_cgroup_is_found_by_its_marks_watched_to_its_last_member_and_killed() {
    for containment in ["subreaper", "pidns"] {
        let home = Home::new();
        let gate = home.gate("gate");
        let text = format!(
            "(setsid sh -c 'echo $$ > {}; read x < {}') & exit 6",
            home.path("told").display(),
            gate.display()
        );
        home.detach("one", &["--contain", containment, "--", "sh", "-c", &text]);
        home.told("told");
        until("it lingers", || {
            home.json(&["show", "one"])["runtime"]["state"] == "lingering"
        });
        ended(&shim_of(&home, "one"));
        let shown = home.json(&["show", "one"]);
        assert_eq!(shown["runtime"]["state"], "lingering", "{containment}");
        let living = home.json(&["show", "one"])["processes"].as_array().map(Vec::len);
        assert!(living >= Some(1), "{containment}: the member is seen");
        let gate = opened(&gate);
        let over = home.over("one");
        assert_eq!(over["fields"]["exit_code"], 6, "{containment}");
        assert_eq!(home.exit_record("one")["set"]["proof"], "token_scan", "{containment}");
        drop(gate);

        let deaf = format!(
            "trap '' TERM; (setsid sh -c \"trap '' TERM; echo \\$\\$ > {}; while :; do read x < /dev/zero; done\") & wait",
            home.path("deaf").display()
        );
        home.detach("two", &["--contain", containment, "--", "sh", "-c", &deaf]);
        home.told("deaf");
        ended(&shim_of(&home, "two"));
        home.json(&["show", "two"]);
        let answer = home.run(&["kill", "two", "--grace", "100ms", "--json"]).exits(0);
        let told = answer.document()["targets"][0].clone();
        assert_eq!(
            (&told["signal"], &told["stopped"], &told["proof"]),
            (&json!("sigkill"), &json!(true), &json!("token_scan")),
            "{containment}: {told}"
        );
        assert_eq!(
            home.over("two")["reason"]["code"],
            "run.cancelled.force_kill",
            "{containment}"
        );
    }
}

#[test]
fn a_run_started_inside_an_adopted_one_is_below_it_and_is_spared() {
    let home = Home::new();
    let gate = home.gate("outer.gate");
    let inner = format!(
        "{} run -d --id inner -- sh -c 'echo $$ > {}; exec sleep 600'",
        crate::harness::PROGRAM,
        home.path("inner").display()
    );
    let text = format!(
        "echo $$ > {}; read x < {}; {inner}; exec sleep 600",
        home.path("outer").display(),
        gate.display()
    );
    home.detach("outer", &["--contain", "subreaper", "--", "sh", "-c", &text]);
    let worker = home.told("outer");
    ended(&shim_of(&home, "outer"));
    home.json(&["show", "outer"]);
    let _gate = opened(&gate);
    let nested = home.told("inner");
    assert_eq!(home.json(&["show", "inner"])["parents"], json!(["run/outer"]));
    home.run(&["kill", "outer"]).exits(0);
    assert!(!lives(&worker) && lives(&nested), "another run's");
    home.done(&["kill", "inner"]);
    assert!(!lives(&nested));
}

#[test]
fn repairs_at_once_adopt_once() {
    let home = Home::new();
    orphaned(&home, "one", "read x < $gate; exit 7");
    let readers: Vec<_> = (0..6).map(|_| home.start(&["show", "one", "--json"])).collect();
    for reader in readers {
        answered(reader, "show one".to_owned()).exits(0);
    }
    home.json(&["show", "one"]);
    let adopted = home.json(&["history", "one", "--admin"]);
    let events = adopted.as_array().expect("a list").iter();
    let count = events.filter(|event| event["action"] == "runtime_adopted").count();
    assert_eq!(count, 1, "{adopted}");
    let _gate = go(&home, "one");
    assert_eq!(home.over("one")["fields"]["exit_code"], 7);
    assert_eq!(codes(&home, "one").len(), 2);
}

#[test]
fn an_adoption_that_dies_half_way_is_done_by_the_next_reader() {
    for place in ["repair.decided", "adopt.held", "adopt.recorded"] {
        let home = Home::new();
        orphaned(&home, "one", "read x < $gate; exit 8");
        let mut command = home.command(&["show", "one"]);
        command.env("RUNWARDEN_CRASH_AT", place);
        let output = command.output().expect("the program starts");
        assert!(!output.status.success(), "{place}: {output:?}");
        // It would be taken for the one that watches the run, and leave before the program ends.
        until("the shim that was not confirmed has left", || {
            shim_is_gone(&home, "one")
        });
        let shim = shim_of(&home, "one");
        assert!(lives(&shim), "{place}: another one watches");
        let _gate = go(&home, "one");
        assert_eq!(home.over("one")["fields"]["exit_code"], 8, "{place}");
        assert_eq!(codes(&home, "one").len(), 2, "{place}");
    }
}

#[test]
fn a_restart_of_the_machine_ends_what_ran_with_its_own_reason() {
    let home = Home::new();
    let worker = orphaned(&home, "one", "read x < $gate");
    ended(&worker);
    let store = Connection::open(home.home().join("state.db")).expect("the store");
    let earlier = "UPDATE runtimes SET boot_id = '00000000-0000-0000-0000-000000000000'";
    store.execute(earlier, []).expect("a row of an earlier boot");
    drop(store);
    let over = home.over("one");
    assert_eq!(
        (
            &over["reason"]["code"],
            &over["fields"]["cause"],
            &over["fields"]["exit_code"]
        ),
        (
            &json!("run.failed.host_restarted"),
            &json!("host_restarted"),
            &Value::Null
        )
    );
    let evidence = over["reason"]["evidence"].as_array().cloned().unwrap_or_default();
    assert!(
        evidence
            .iter()
            .any(|item| item["observed"] == "earlier_boot" && item["repair"] == "end_host_restarted"),
        "{evidence:?}"
    );
}

#[test]
fn a_row_of_another_machine_is_left_alone() {
    let home = Home::new();
    let worker = orphaned(&home, "one", "read x < $gate");
    ended(&worker);
    let store = Connection::open(home.home().join("state.db")).expect("the store");
    store
        .execute("UPDATE runtimes SET host = host || '-elsewhere'", [])
        .expect("a row of another machine");
    let shown = home.json(&["show", "one"]);
    assert_eq!((&shown["status"], &shown["version"]), (&json!("running"), &json!(1)));
    store
        .execute("UPDATE runtimes SET host = replace(host, '-elsewhere', '')", [])
        .expect("a row of this machine");
    home.over("one");
}

#[test]
fn a_worker_that_lost_its_shim_at_the_gate_executed_nothing() {
    let home = Home::new();
    let told = home.path("told");
    let mut command = home.command(&[
        "run",
        "--detach",
        "--id",
        "one",
        "--",
        "touch",
        &told.display().to_string(),
    ]);
    // The starter stops between recording the identities and opening the gate.
    command.env("RUNWARDEN_CRASH_AT", "run.identities_committed");
    let output = command.output().expect("the program starts");
    assert!(!output.status.success());
    let over = home.over("one");
    assert_eq!(
        (&over["reason"]["code"], &over["fields"]["exit_code"]),
        (&json!("run.failed.spawn_error"), &Value::Null)
    );
    assert!(!told.exists(), "nothing was executed");
}

#[test]
fn an_attempt_without_a_process_is_ended_after_its_grace() {
    let home = Home::new();
    let mut command = home.command(&["run", "--detach", "--id", "one", "--", "true"]);
    command.env("RUNWARDEN_CRASH_AT", "run.intent_committed");
    assert!(!command.output().expect("the program starts").status.success());
    assert_eq!(
        home.json(&["show", "one"])["status"],
        "running",
        "it may be being started"
    );
    let store = Connection::open(home.home().join("state.db")).expect("the store");
    store
        .execute("UPDATE runtimes SET created_at_ms = created_at_ms - 31000", [])
        .expect("an old row");
    drop(store);
    let over = home.over("one");
    assert_eq!(
        (&over["reason"]["code"], &over["fields"]["exit_code"]),
        (&json!("run.failed.spawn_identity_lost"), &Value::Null)
    );
}
