//! What holds a set together: the cgroup where one is to be had, the shim alone otherwise, recorded either way.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use runwarden_host::Contain;
use runwarden_host::process::{Surroundings, choose};
use serde_json::json;

use crate::crashes::shim_is_gone;
use crate::harness::{Home, PROGRAM, lives, opened, until};

/// Whether runs of this process get a cgroup; elsewhere there is nothing to be tested here.
fn cgroups_are_to_be_had() -> bool {
    choose(Contain::Cgroup, &Surroundings::here(), "test").is_ok()
}

fn start(home: &Home, id: &str, options: &[&str], script: &str) -> String {
    let text = format!("rw={PROGRAM}; told={}; {script}", home.path(id).display());
    home.detach(id, &[options, &["--", "sh", "-c", &text]].concat());
    home.told(id)
}

fn cgroup(home: &Home, id: &str) -> PathBuf {
    let shown = home.json(&["show", id]);
    assert_eq!(shown["runtime"]["containment"], "cgroup");
    PathBuf::from(shown["runtime"]["cgroup"].as_str().expect("a path"))
}

fn is_in(pid: &str, cgroup: &Path) -> bool {
    let procs = std::fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
    procs.lines().any(|line| line == pid)
}

#[test]
fn a_run_has_a_cgroup_of_its_own_and_leaves_none() {
    if !cgroups_are_to_be_had() {
        return;
    }
    let home = Home::new();
    let pid = start(&home, "one", &[], "echo $$ > $told; exec sleep 600");
    let group = cgroup(&home, "one");
    assert!(is_in(&pid, &group));
    let shim = home.json(&["show", "one"])["runtime"]["shim_pid"].to_string();
    assert!(!is_in(&shim, &group));
    home.run(&["kill", "one"]).exits(0);
    home.over("one");
    assert_eq!(home.exit_record("one")["set"]["proof"], "cgroup_empty");
    assert!(!group.exists(), "it goes before its end is recorded");
}

#[test]
fn the_shim_alone_holds_what_is_to_be_held_that_way() {
    let home = Home::new();
    home.done(&["run", "--id", "one", "--contain", "subreaper", "--", "true"]);
    let shown = home.over("one");
    assert_eq!(shown["runtime"]["containment"], "subreaper");
    assert_eq!(shown["runtime"]["cgroup"], json!(null));
    assert_eq!(home.exit_record("one")["set"]["proof"], "subreaper_echild");
}

#[test]
fn a_way_that_does_not_exist_is_refused() {
    let home = Home::new();
    let answer = home.run(&["run", "--contain", "magic", "--", "true"]).exits(125);
    assert!(answer.err.contains("auto, cgroup, subreaper, pidns"), "{}", answer.err);
}

#[test]
fn a_cgroup_that_cannot_be_had_is_told_before_anything_is_made() {
    if cgroups_are_to_be_had() {
        return;
    }
    let home = Home::new();
    let answer = home
        .run(&["run", "--detach", "--contain", "cgroup", "--", "true"])
        .exits(64);
    assert!(answer.err.contains("no cgroup can be had"), "{}", answer.err);
    assert_eq!(home.json(&["ls"]), json!([]));
}

#[test]
fn whoever_was_put_into_the_cgroup_is_stopped_with_it() {
    if !cgroups_are_to_be_had() {
        return;
    }
    let home = Home::new();
    let gate = home.gate("gate");
    start(
        &home,
        "one",
        &[],
        &format!("echo $$ > $told; read x < {}", gate.display()),
    );
    let group = cgroup(&home, "one");
    let mut foreign = Command::new("sleep");
    let mut foreign = foreign.arg("600").stdin(Stdio::null()).spawn().expect("a process");
    let pid = foreign.id().to_string();
    std::fs::write(group.join("cgroup.procs"), &pid).expect("a process is moved");
    let _open = opened(&gate);
    until("the foreigner lingers", || {
        home.json(&["show", "one"])["runtime"]["state"] == "lingering"
    });
    home.run(&["kill", "one", "--grace", "0"]).exits(0);
    let ended = foreign.wait().expect("the foreigner ends");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(9));
    home.over("one");
    until("the group is removed", || !group.exists());
}

#[test]
fn whoever_is_in_the_cgroup_of_a_run_is_inside_it() {
    if !cgroups_are_to_be_had() {
        return;
    }
    let home = Home::new();
    start(&home, "one", &[], "echo $$ > $told; exec sleep 600");
    let group = cgroup(&home, "one");
    let claim = |id: &str, join: &str| {
        let text = format!("{join} exec {PROGRAM} run --detach --id {id} -- true");
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", &text]).env("RUNWARDEN_HOME", home.home());
        let output = shell.env("RUNWARDEN_ID", "one").output().expect("a shell");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        home.over(id)["parents"].clone()
    };
    assert_eq!(claim("outside", ""), json!([]));
    let join = format!("echo $$ > {}/cgroup.procs;", group.display());
    assert_eq!(claim("inside", &join), json!(["run/one"]));
    home.run(&["kill", "one", "--grace", "0"]).exits(0);
    home.over("one");
}

#[test]
fn a_frozen_cgroup_is_killed_all_the_same() {
    if !cgroups_are_to_be_had() {
        return;
    }
    let home = Home::new();
    let pid = start(&home, "one", &[], "trap '' TERM; echo $$ > $told; exec sleep 600");
    let group = cgroup(&home, "one");
    std::fs::write(group.join("cgroup.freeze"), "1").expect("a group to be frozen");
    home.run(&["kill", "one", "--grace", "100ms"]).exits(0);
    assert!(!lives(&pid));
    assert_eq!(home.over("one")["reason"]["code"], "run.cancelled.force_kill");
    until("the group is removed", || !group.exists());
}

#[test]
fn groups_made_below_the_groups_of_a_run_go_with_it() {
    if !cgroups_are_to_be_had() {
        return;
    }
    let home = Home::new();
    let pid = start(&home, "one", &[], "echo $$ > $told; exec sleep 600");
    let group = cgroup(&home, "one");
    let deeper = group.join("deeper");
    std::fs::create_dir(&deeper).expect("a group");
    std::fs::write(deeper.join("cgroup.procs"), &pid).expect("a process is moved");
    home.run(&["kill", "one", "--grace", "0"]).exits(0);
    home.over("one");
    assert!(!lives(&pid));
    until("the groups are removed", || !group.exists());
}

#[test]
fn runs_inside_each_other_have_groups_side_by_side() {
    if !cgroups_are_to_be_had() {
        return;
    }
    let home = Home::new();
    let gate = home.gate("gate");
    let told = home.path("inner");
    let begin = |id: &str, options: &str, told: &Path| {
        let program = format!("echo $$ > {}; read x < {}", told.display(), gate.display());
        format!("$rw run --detach --id {id} {options} -- sh -c '{program}' > /dev/null")
    };
    let bare = home.path("bare");
    let script = format!(
        "{}; {}; echo $$ > $told; exec sleep 600",
        begin("inner", "", &told),
        begin("bare", "--contain subreaper", &bare)
    );
    start(&home, "outer", &[], &script);
    let (inner, alone) = (home.told("inner"), home.told("bare"));
    let group = cgroup(&home, "outer");
    assert_eq!(cgroup(&home, "inner").parent(), group.parent());
    assert!(!is_in(&inner, &group) && !is_in(&alone, &group));
    home.run(&["kill", "outer", "--grace", "0"]).exits(0);
    assert!(lives(&inner) && lives(&alone));
    assert_eq!(home.exit_record("outer")["set"]["proof"], "cgroup_empty");
    // A line for each of them.
    let _open = (opened(&gate), opened(&gate));
    assert_eq!(home.over("inner")["status"], "completed");
    assert_eq!(home.over("bare")["status"], "completed");
}

/// A group that the test made; gone with it.
struct Made(PathBuf);

impl Made {
    fn at(path: PathBuf) -> Self {
        std::fs::create_dir(&path).expect("a group");
        Self(path)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn the_group_of_a_run_that_nobody_watched_is_gone_before_its_end_is_told() {
    if !cgroups_are_to_be_had() {
        return;
    }
    let finders: [&[&str]; 3] = [
        &["show", "one"],
        &["kill", "one"],
        &["kill", "--all-stale", "--older-than", "0"],
    ];
    for finder in finders {
        let home = Home::new();
        start(&home, "one", &[], "echo $$ > $told; exec sleep 600");
        let group = cgroup(&home, "one");
        let runtime = home.json(&["show", "one"])["runtime"].clone();
        for who in ["shim_pid", "pid"] {
            let pid = runtime[who].as_i64().and_then(|pid| i32::try_from(pid).ok());
            let pid = pid.expect("a pid");
            let number = rustix::process::Pid::from_raw(pid).expect("a pid");
            rustix::process::kill_process(number, rustix::process::Signal::KILL).expect("it is ours");
            until("it is gone", || !lives(&pid.to_string()));
        }
        let place = [("RUNWARDEN_CRASH_AT", "transition.committed")];
        // It comes to that place itself, or leaves the end to a shim that it starts.
        let _ = home.run_with(finder, &place);
        home.over("one");
        assert!(!group.exists(), "{finder:?}: {} is left", group.display());
    }
}

/// No more than the beginning of the name of a run's group; of this process of tests alone.
fn strange(id: &str) -> String {
    format!("runwarden-{id}-{:08x}", std::process::id())
}

#[test]
fn an_empty_group_that_is_left_of_what_is_over_is_removed_by_a_repair_and_no_other() {
    if !cgroups_are_to_be_had() {
        return;
    }
    let home = Home::new();
    let told = ["one", "two"].map(|id| {
        start(&home, id, &[], "echo $$ > $told; exec sleep 600");
        cgroup(&home, id)
    });
    home.done(&["kill", "one", "--grace", "0"]);
    until("its shim is gone", || shim_is_gone(&home, "one"));
    // As a shim leaves it that is killed at the wrong moment; and one that has no more than the beginning of its name.
    let left = Made::at(told[0].clone());
    let strange = Made::at(told[0].with_file_name(strange("one")));
    for (words, stays) in [
        (&["doctor", "--fix", "--dry-run", "--json"][..], true),
        (&["doctor", "--fix", "--json"], false),
    ] {
        let repaired = home.run(words).exits(0).document()["repaired"].clone();
        assert_eq!(
            (&repaired[0]["ref"], &repaired[0]["decision"], &repaired[1]),
            (&json!("run/one"), &json!("remove_group"), &json!(null)),
            "{repaired}"
        );
        assert_eq!(left.0.exists(), stays, "{words:?}");
    }
    assert!(strange.0.exists() && told[1].exists(), "others' groups stay");
    assert_eq!(home.json(&["doctor", "--fix"])["repaired"], json!([]));
    home.done(&["kill", "two", "--grace", "0"]);
}

#[test]
fn an_empty_group_that_is_left_of_a_run_goes_when_the_run_is_removed_and_no_other() {
    if !cgroups_are_to_be_had() {
        return;
    }
    let home = Home::new();
    let told = ["three", "four"].map(|id| {
        start(&home, id, &[], "echo $$ > $told; exec sleep 600");
        let group = cgroup(&home, id);
        home.done(&["kill", id, "--grace", "0"]);
        until("its shim is gone", || shim_is_gone(&home, id));
        group
    });
    let left = told.map(Made::at);
    let strange = Made::at(left[0].0.with_file_name(strange("three")));
    home.done(&["rm", "three"]);
    assert!(!left[0].0.exists(), "it was of that run");
    assert!(left[1].0.exists() && strange.0.exists(), "others' groups stay");
    home.done(&["rm", "four", "--keep-record"]);
    assert!(!left[1].0.exists(), "it was of that run");
}

/// Whether this process may make a pid namespace, with a user namespace around it if need be.
fn namespaces_are_to_be_had() -> bool {
    let made = |flags: &str| {
        let mut unshare = Command::new("unshare");
        let unshare = unshare.args([flags, "--mount-proc", "true"]).stderr(Stdio::null());
        unshare.status().is_ok_and(|status| status.success())
    };
    made("-pf") || made("-Urpf")
}

/// Processes with this word in their command line.
fn with_word(word: &str) -> usize {
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines
        .filter(|line| line.split(|byte| *byte == 0).any(|found| found == word.as_bytes()))
        .count()
}

#[test]
fn a_run_in_a_namespace_sees_itself_alone_and_ends_with_its_own_code() {
    if !namespaces_are_to_be_had() {
        return;
    }
    let home = Home::new();
    let script = "echo $$ $(cat /proc/1/comm) $(id -u); exit 9";
    let answer = home.run(&["run", "--id", "one", "--contain", "pidns", "--", "sh", "-c", script]);
    let own = rustix::process::geteuid().as_raw();
    assert_eq!(
        (answer.code, answer.out.as_str()),
        (9, format!("2 runwarden-init {own}\n").as_str()),
        "{}",
        answer.err
    );
    let shown = home.over("one");
    assert_eq!(shown["runtime"]["containment"], "pid_namespace");
    assert_eq!(home.exit_record("one")["set"]["proof"], "namespace_ended");
}

#[test]
fn who_is_left_in_a_namespace_lingers_until_it_ends() {
    if !namespaces_are_to_be_had() {
        return;
    }
    let home = Home::new();
    let gate = home.gate("gate");
    let script = format!("(setsid sh -c 'read x < {}' &) ; exit 0", gate.display());
    home.detach("one", &["--contain", "pidns", "--", "sh", "-c", &script]);
    until("it lingers", || {
        home.json(&["show", "one"])["runtime"]["state"] == "lingering"
    });
    assert_eq!(home.json(&["show", "one"])["status"], "completed");
    let _open = opened(&gate);
    home.over("one");
    assert_eq!(home.exit_record("one")["set"]["proof"], "namespace_ended");
}

#[test]
fn a_kill_of_a_namespace_leaves_nobody() {
    if !namespaces_are_to_be_had() {
        return;
    }
    let home = Home::new();
    let word = format!("61{:05}", std::process::id() % 100_000);
    for grace in ["0", "200ms"] {
        let id = format!("grace-{grace}");
        let script = format!(
            "trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep {word}; sleep {word}' &); sleep {word} & \
             echo told > {}; wait; sleep {word}",
            home.path(&id).display()
        );
        home.detach(&id, &["--contain", "pidns", "--", "sh", "-c", &script]);
        home.told(&id);
        until("both sleep", || with_word(&word) == 2);
        home.run(&["kill", &id, "--grace", grace]).exits(0);
        assert_eq!(with_word(&word), 0);
        let shown = home.over(&id);
        assert_eq!(shown["reason"]["code"], "run.cancelled.force_kill");
        assert_eq!(shown["reason"]["evidence"][0]["proof"], "namespace_ended");
    }
}

#[test]
fn a_program_that_is_not_there_is_told_from_inside_a_namespace_too() {
    if !namespaces_are_to_be_had() {
        return;
    }
    let home = Home::new();
    home.run(&["run", "--contain", "pidns", "--", "/nowhere/to/be/found"])
        .exits(127);
}
