//! kill of a run whose shim was killed: what is left is found and stopped, nobody else is, and no exit code is invented.

use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Home, lives, process, until};

/// Starts a run whose script tells its pids, then kills its shim by the pid of its record.
fn orphaned(home: &Home, id: &str, options: &[&str], text: &str) -> Vec<String> {
    let text = format!("told={}; {text}", home.path(id).display());
    home.detach(id, &[options, &["--", "sh", "-c", &text]].concat());
    let pids = home.told(id);
    kill_shim(home, id);
    pids.split_whitespace().map(str::to_owned).collect()
}

/// Kills the shim of a run, a process that the run of this test started.
fn kill_shim(home: &Home, id: &str) {
    let shown = home.json(&["show", id]);
    let shim = shown["runtime"]["shim_pid"].as_i64().expect("a shim");
    ended(&shim.to_string());
}

/// Kills a process that a run of this test started, unless it is gone.
fn ended(pid: &str) {
    let number = pid.parse().ok().and_then(Pid::from_raw).expect("a pid");
    let _ = kill_process(number, Signal::KILL);
    until("it is gone", || !lives(pid));
}

#[track_caller]
fn check(text: &str, grace: &str, signal: &str, code: &str) {
    let home = Home::new();
    let pids = orphaned(&home, "one", &["--contain", "subreaper"], text);
    let living: Vec<&String> = pids.iter().filter(|pid| lives(pid)).collect();
    assert!(!living.is_empty(), "something outlives the shim of `{text}`");
    let answer = home.run(&["kill", "one", "--grace", grace, "--json"]).exits(0);
    assert!(pids.iter().all(|pid| !lives(pid)), "{pids:?} of `{text}`");
    let told = &answer.document()["targets"][0];
    assert_eq!(
        (&told["outcome"], &told["signal"], &told["stopped"], &told["proof"]),
        (&json!("killed"), &json!(signal), &json!(true), &json!("token_scan")),
        "{told}"
    );
    let shown = home.json(&["show", "one"]);
    assert_eq!(
        (&shown["status"], &shown["reason"]["code"], &shown["runtime"]["state"]),
        (&json!("cancelled"), &json!(code), &json!("stopped")),
        "{shown}"
    );
    let fields = &shown["fields"];
    assert_eq!(
        (&fields["exit_code"], &fields["term_signal"]),
        (&Value::Null, &Value::Null),
        "none is invented"
    );
    assert_eq!(home.json(&["history", "one"]).as_array().map(Vec::len), Some(2));
}

#[test]
fn a_worker_without_its_shim_is_found_and_asked() {
    check(
        "sleep 600 & echo $$ $! > $told; wait",
        "20s",
        "sigterm",
        "run.cancelled.manual_kill",
    );
}

#[test]
fn one_deaf_to_term_is_killed_without_its_shim() {
    let deaf = r#"(trap "" TERM; exec sh -c 'echo $$ > $0; while :; do read x < /dev/zero; done' $told) & wait"#;
    check(deaf, "300ms", "sigkill", "run.cancelled.force_kill");
}

#[test]
fn a_session_of_its_own_and_a_stopped_process_do_not_escape_without_the_shim() {
    let text = "setsid sleep 600 & a=$!; sleep 600 & b=$!; kill -STOP $b; echo $a $b > $told; wait";
    check(text, "20s", "sigterm", "run.cancelled.manual_kill");
}

#[test]
fn a_bystander_with_the_same_parents_and_name_is_not_touched() {
    let home = Home::new();
    let mut bystander = Command::new("sleep")
        .arg("600")
        .stdin(Stdio::null())
        .spawn()
        .expect("sleep");
    let before = process(&bystander.id().to_string());
    let other = {
        home.detach(
            "other",
            &[
                "--",
                "sh",
                "-c",
                &format!("echo $$ > {}; exec sleep 600", home.path("other").display()),
            ],
        );
        home.told("other")
    };
    orphaned(&home, "one", &[], "sleep 600 & echo $! > $told; wait");
    home.done(&["kill", "one"]);
    assert_eq!(
        process(&bystander.id().to_string()).map(|seen| seen.1),
        before.map(|seen| seen.1)
    );
    assert!(
        lives(&bystander.id().to_string()) && lives(&other),
        "neither was a member"
    );
    home.done(&["kill", "other"]);
    bystander.kill().expect("it is ours");
    bystander.wait().expect("it is ours");
}

/// What is gone already can be cancelled: nothing stays running because nobody is left to be asked.
#[test]
fn a_run_with_nothing_left_is_already_dead_and_ended() {
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
    let pid = home.told("one");
    kill_shim(&home, "one");
    ended(&pid);
    let answer = home.run(&["kill", "one", "--json"]).exits(0);
    let told = &answer.document()["targets"][0];
    assert_eq!(
        (&told["outcome"], &told["signal"], &told["stopped"]),
        (&json!("killed"), &json!("already_dead"), &json!(false)),
        "{told}"
    );
    let shown = home.json(&["show", "one"]);
    assert_eq!(
        (
            &shown["status"],
            &shown["fields"]["exit_code"],
            &shown["fields"]["cause"]
        ),
        (&json!("cancelled"), &Value::Null, &json!("unobserved"))
    );
}

#[test]
fn two_killers_without_a_shim_write_one_end_and_the_shorter_grace_counts() {
    let home = Home::new();
    let deaf = r#"(trap "" TERM; exec sh -c 'echo $$ > $0; while :; do read x < /dev/zero; done' $told) & wait"#;
    let pids = orphaned(&home, "one", &[], deaf);
    let patient = home.start(&["kill", "one", "--grace", "10m", "--json"]);
    until("the first has asked", || {
        home.json(&["show", "one"])["runtime"]["state"] == "stopping"
    });
    home.run(&["kill", "one", "--grace", "0"]).exits(0);
    crate::harness::answered(patient, "kill one".to_owned()).exits(0);
    assert!(!lives(&pids[0]));
    assert_eq!(home.json(&["history", "one"]).as_array().map(Vec::len), Some(2));
}

#[test]
fn a_run_started_inside_is_spared_when_the_outer_one_has_no_shim() {
    let home = Home::new();
    let program = crate::harness::PROGRAM;
    let inner = home.path("inner");
    let text = format!(
        "{program} run -d --id inner -- sh -c 'echo $$ > {}; exec sleep 600'; sleep 600 & echo $! > $told; wait",
        inner.display()
    );
    let pids = orphaned(&home, "outer", &[], &text);
    let nested = home.told("inner");
    home.done(&["kill", "outer"]);
    assert!(!lives(&pids[0]), "the outer run's own");
    assert!(lives(&nested), "another run's");
    assert_eq!(home.json(&["show", "inner"])["status"], "running");
    home.done(&["kill", "inner"]);
    assert!(!lives(&nested));
}

#[test]
fn a_process_that_hops_from_pid_to_pid_is_caught_without_its_shim() {
    let home = Home::new();
    let hopper = home.path("hopper");
    // It ends by itself when it is removed with the test's directory.
    std::fs::write(&hopper, "#!/bin/sh\nsetsid \"$0\" &\n").expect("a script");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&hopper, mode).expect("a script of ours");
    let text = format!("{} & echo $$ > $told; exec sleep 600", hopper.display());
    orphaned(&home, "one", &[], &text);
    let answer = home.run(&["kill", "one", "--grace", "0", "--json"]).exits(0);
    assert_eq!(answer.document()["targets"][0]["stopped"], true);
    let name = hopper.file_name().expect("a name").to_string_lossy().into_owned();
    let hoppers = std::fs::read_dir("/proc").expect("/proc").flatten().filter(|entry| {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(&format!("{}", home.path(&name).display()))
    });
    assert_eq!(hoppers.count(), 0, "none hops on");
}

#[test]
fn a_cgroup_holds_without_its_shim_whom_nothing_else_tells() {
    let home = Home::new();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let find = |name: &str| {
        let found = std::env::split_paths(&path)
            .map(|directory| directory.join(name))
            .find(|file| file.exists());
        found.expect("a program of every system").display().to_string()
    };
    // No token, no group, and no parent that is a member.
    let scrubbed = format!(
        "env -i {} {} -c 'echo $$ > {}; exec {} 600' & exec sleep 600",
        find("setsid"),
        find("sh"),
        home.path("told").display(),
        find("sleep"),
    );
    home.detach("one", &["--", "sh", "-c", &scrubbed]);
    let pid = home.told("told");
    let runtime = home.json(&["show", "one"])["runtime"].clone();
    if runtime["containment"] == "cgroup" {
        kill_shim(&home, "one");
        ended(&runtime["pid"].to_string());
        let answer = home.run(&["kill", "one", "--json"]).exits(0);
        assert_eq!(answer.document()["targets"][0]["proof"], "cgroup_empty");
        let group = runtime["cgroup"].as_str().expect("its path");
        assert!(!std::path::Path::new(group).exists(), "{group} is left");
    } else {
        home.done(&["kill", "one"]);
    }
    assert!(!lives(&pid));
}
