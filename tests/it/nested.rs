//! Runs inside runs: each has its own set, its own end, its own finishing command.

use serde_json::{Value, json};

use crate::harness::{Home, PROGRAM, lives, opened, until};

/// A detached run whose shell script may use `$rw` for the program and `$told` for the file it tells in.
fn start(home: &Home, id: &str, contain: &str, script: &str) -> String {
    let text = format!("rw={PROGRAM}; told={}; {script}", home.path(id).display());
    home.detach(id, &["--contain", contain, "--", "sh", "-c", &text]);
    home.told(id)
}

/// What starts a run `id` from inside another; the program tells its pid in the file `id`.
fn inner(home: &Home, id: &str, program: &str) -> String {
    let told = home.path(id);
    format!(
        "$rw run --detach --id {id} -- sh -c 'rw={PROGRAM}; told={}; {program}' > /dev/null",
        told.display()
    )
}

#[track_caller]
fn check_killed(home: &Home, id: &str, grace: &str) {
    home.run(&["kill", id, "--grace", grace]).exits(0);
    let shown = home.over(id);
    assert_eq!(shown["status"], "cancelled", "{shown}");
}

fn spared(record: &Value) -> Vec<&str> {
    let list = record["set"]["spared"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    list.iter().filter_map(|entry| entry["ref"].as_str()).collect()
}

#[track_caller]
fn check_kill_of_the_outer(grace: &str, contain: &str) {
    let home = Home::new();
    let gate = home.gate("gate");
    let program = format!("echo $$ > $told; read x < {}; exit 7", gate.display());
    let begin = inner(&home, "inner", &program);
    let outer = start(
        &home,
        "outer",
        contain,
        &format!("{begin}; echo $$ > $told; exec sleep 600"),
    );
    let pid = home.told("inner");
    check_killed(&home, "outer", grace);
    assert!(!lives(&outer) && lives(&pid));
    let record = home.exit_record("outer");
    assert_eq!(record["set"]["empty"], true);
    if contain == "subreaper" {
        assert_eq!(record["set"]["proof"], "subreaper_but_for_spared");
    }
    assert_eq!(spared(&record), ["run/inner"]);
    let _open = opened(&gate);
    let ended = home.over("inner");
    assert_eq!(
        (&ended["status"], &ended["fields"]["exit_code"]),
        (&json!("failed"), &json!(7))
    );
}

#[test]
fn a_kill_of_the_outer_run_leaves_the_inner_one_to_its_own_end() {
    check_kill_of_the_outer("20s", "auto");
    check_kill_of_the_outer("20s", "subreaper");
}

#[test]
fn a_kill_by_force_of_the_outer_run_leaves_the_inner_one_to_its_own_end() {
    check_kill_of_the_outer("0", "auto");
    check_kill_of_the_outer("0", "subreaper");
}

#[test]
fn of_three_runs_in_each_other_each_is_killed_alone() {
    let home = Home::new();
    let gate = home.gate("gate");
    let third = inner(
        &home,
        "third",
        &format!("echo $$ > $told; read x < {}; exit 3", gate.display()),
    );
    // One quoting deeper: the second run's script starts the third.
    let script = home.path("second.sh");
    let text = format!(
        "rw={PROGRAM}; {third}; echo $$ > {}; exec sleep 600",
        home.path("second").display()
    );
    std::fs::write(&script, text).expect("a script");
    let second = format!("$rw run --detach --id second -- sh {} > /dev/null", script.display());
    let first = start(
        &home,
        "first",
        "subreaper",
        &format!("{second}; echo $$ > $told; exec sleep 600"),
    );
    let (second, third) = (home.told("second"), home.told("third"));
    check_killed(&home, "second", "0");
    assert!(lives(&first) && !lives(&second) && lives(&third));
    assert_eq!(spared(&home.exit_record("second")), ["run/third"]);
    check_killed(&home, "first", "0");
    assert!(!lives(&first) && lives(&third));
    assert_eq!(spared(&home.exit_record("first")), ["run/third"]);
    let _open = opened(&gate);
    assert_eq!(home.over("third")["fields"]["exit_code"], 3);
}

#[test]
fn an_inner_run_in_the_foreground_shares_a_group_and_is_spared_all_the_same() {
    let home = Home::new();
    let gate = home.gate("gate");
    let told = home.path("inner");
    let program = format!("echo $$ > {}; read x < {}; exit 5", told.display(), gate.display());
    let script = format!("echo $$ > $told; $rw run --id inner -- sh -c '{program}'; echo never");
    let outer = start(&home, "outer", "subreaper", &script);
    let pid = home.told("inner");
    check_killed(&home, "outer", "0");
    assert!(!lives(&outer) && lives(&pid));
    let _open = opened(&gate);
    assert_eq!(home.over("inner")["fields"]["exit_code"], 5);
}

#[test]
fn an_outer_run_is_over_when_only_inner_ones_are_left() {
    let home = Home::new();
    let gate = home.gate("gate");
    let begin = inner(&home, "inner", &format!("echo $$ > $told; read x < {}", gate.display()));
    start(&home, "outer", "auto", &format!("{begin}; echo $$ > $told"));
    let outer = home.over("outer");
    assert_eq!(outer["status"], "completed");
    assert!(lives(&home.told("inner")));
    let _open = opened(&gate);
    assert_eq!(home.over("inner")["status"], "completed");
}

#[test]
fn an_inner_run_of_another_home_and_without_variables_is_spared() {
    let home = Home::new();
    let other = Home::new();
    let gate = home.gate("gate");
    let program = format!(
        "echo $$ > {}; read x < {}",
        home.path("inner").display(),
        gate.display()
    );
    let begin = format!(
        "env -i $rw --home {} run --detach --id inner -- sh -c '{program}'",
        other.home().display()
    );
    let outer = start(
        &home,
        "outer",
        "auto",
        &format!("{begin} > /dev/null; echo $$ > $told; exec sleep 600"),
    );
    let pid = home.told("inner");
    check_killed(&home, "outer", "0");
    assert!(!lives(&outer) && lives(&pid));
    let _open = opened(&gate);
    assert_eq!(other.over("inner")["status"], "completed");
}

#[test]
fn a_hopper_beside_an_inner_run_is_stopped_and_the_inner_run_is_not() {
    if !std::path::Path::new("/usr/bin/python3").exists() {
        return;
    }
    let home = Home::new();
    let gate = home.gate("gate");
    let begin = inner(
        &home,
        "inner",
        &format!("echo $$ > $told; read x < {}; exit 4", gate.display()),
    );
    let hop = home.path("hop.py");
    let text = "import os\nwhile True:\n  if os.fork(): os._exit(0)\n  os.setsid()\n";
    std::fs::write(&hop, text).expect("a script");
    start(
        &home,
        "outer",
        "subreaper",
        &format!("{begin}; echo $$ > $told; exec python3 {}", hop.display()),
    );
    let pid = home.told("inner");
    until("the hopper lingers", || {
        home.json(&["show", "outer"])["runtime"]["state"] == "lingering"
    });
    home.run(&["kill", "outer", "--grace", "0"]).exits(0);
    assert!(lives(&pid));
    let record = home.exit_record("outer");
    assert_eq!(
        (&record["set"]["empty"], spared(&record)),
        (&json!(true), vec!["run/inner"])
    );
    let _open = opened(&gate);
    assert_eq!(home.over("inner")["fields"]["exit_code"], 4);
}
