//! why: what an entity waits for or how it ended, and commands that can be typed.

use runwarden_test_guests::{Mode, hostile};
use serde_json::{Value, json};

use crate::harness::{Home, PROGRAM, lives, until};

/// What `why` says of an entity. Every command of ours that it names is one that there is.
#[track_caller]
fn why(home: &Home, id: &str) -> Value {
    let told = home.json(&["why", id]);
    let members: Vec<&String> = told.as_object().expect("an object").keys().collect();
    assert_eq!(members, ["facts", "headline", "next", "ref", "status"]);
    for command in told["next"].as_array().expect("a list") {
        let words: Vec<&str> = command.as_str().expect("a command").split(' ').collect();
        if words[0] == "runwarden" {
            let path: Vec<&str> = match words[1] {
                "runtime" | "policy" | "outbox" | "notify" => words[1..3].to_vec(),
                verb => vec![verb],
            };
            let help = home.done(&[path.as_slice(), &["--help"]].concat());
            let options = words.iter().filter(|word| word.starts_with("--"));
            options.for_each(|option| assert!(help.contains(option), "{command}: {help}"));
        }
    }
    told
}

#[track_caller]
fn check(home: &Home, id: &str, headline: &str, next: &str) {
    let told = why(home, id);
    assert!(
        told["headline"].as_str().is_some_and(|said| said.contains(headline)),
        "{told:#}"
    );
    assert!(
        told["next"][0]
            .as_str()
            .is_some_and(|command| command.starts_with(next)),
        "{told:#}"
    );
}

#[track_caller]
fn knows(told: &Value, what: &str, value: &str) {
    let mut facts = told["facts"].as_array().expect("a list").iter();
    let is_it = |fact: &Value| fact["what"] == what && fact["value"].as_str().is_some_and(|said| said.contains(value));
    assert!(facts.any(is_it), "{what} {value}: {told:#}");
}

#[test]
fn an_end_is_told_with_its_cause_and_what_it_means() {
    let home = Home::new();
    let rows: [(&[&str], &str, &str); 10] = [
        (&["--", "true"], "it ended well", "runwarden logs"),
        (
            &["--", "sh", "-c", "exit 7"],
            "its program exited with 7",
            "runwarden logs",
        ),
        (
            &["--", "sh", "-c", "no-such-word"],
            "a command in it is not found",
            "runwarden logs",
        ),
        (
            &["--", "/no/such/program"],
            "its program is not found",
            "runwarden show",
        ),
        (&["--", "/"], "may not be executed", "runwarden show"),
        (
            &["--cwd", "/no/such/place", "--", "true"],
            "working directory does not exist",
            "runwarden show",
        ),
        (
            &["--", "sh", "-c", "kill -9 $$"],
            "often the kernel, out of memory",
            "journalctl",
        ),
        (
            &["--timeout", "50ms", "--", "sleep", "600"],
            "at its time limit",
            "runwarden logs",
        ),
        (
            &["--want-evidence", "--", "true"],
            "no evidence of its work",
            "runwarden show",
        ),
        (
            &["--expect-artifact", "*.tar", "--", "true"],
            "a file that was expected",
            "runwarden show",
        ),
    ];
    for (number, (arguments, headline, next)) in rows.into_iter().enumerate() {
        let id = format!("n{number}");
        home.run(&[&["run", "--quiet", "--id", &id], arguments].concat());
        check(&home, &id, headline, next);
    }
}

#[test]
fn a_kill_is_told_with_who_asked_for_it() {
    let home = Home::new();
    home.detach("one", &["--", "sleep", "600"]);
    check(
        &home,
        "one",
        "it is running, and nothing holds it up",
        "runwarden logs -f run/one",
    );
    home.done(&["kill", "one", "--note", "too slow"]);
    check(
        &home,
        "one",
        "it was killed by operator:ada: too slow",
        "runwarden history",
    );
    home.done(&["create", "session", "--id", "bare"]);
    home.done(&["kill", "bare"]);
    check(&home, "bare", "it was killed by operator:ada", "runwarden history");
    knows(&why(&home, "bare"), "processes", "none");
}

#[test]
fn a_stopped_program_is_told_with_the_way_to_continue_it() {
    let home = Home::new();
    home.detach("one", &["--", "sh", "-c", "kill -STOP $$; sleep 600"]);
    until("the program is stopped", || {
        home.json(&["why", "one"])["headline"]
            .as_str()
            .is_some_and(|said| said.contains("stopped by a signal"))
    });
    let pid = home.json(&["show", "one"])["runtime"]["pid"].to_string();
    check(&home, "one", "waits to be continued", &format!("kill -CONT {pid}"));
    home.done(&["kill", "one"]);
}

#[test]
fn a_lock_that_a_program_waits_for_is_told_with_its_holder() {
    let home = Home::new();
    let lock = home.path("the.lock");
    let file = std::fs::File::create(&lock).expect("a file");
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).expect("nobody else has it");
    home.detach("one", &["--", "flock", &lock.to_string_lossy(), "true"]);
    until("the program waits", || {
        home.json(&["why", "one"])["headline"]
            .as_str()
            .is_some_and(|said| said.contains("waits for a lock"))
    });
    let holder = std::process::id();
    check(
        &home,
        "one",
        &format!("the.lock, held by pid {holder}"),
        &format!("ps -fp {holder}"),
    );
    drop(file);
    home.over("one");
}

#[test]
fn what_outlives_its_program_is_told() {
    let home = Home::new();
    let told = home.path("child");
    let script = format!("setsid sleep 600 & echo $! > {}", told.display());
    home.detach("one", &["--", "sh", "-c", &script]);
    home.told("child");
    until("the end is recorded", || {
        home.json(&["show", "one"])["terminal"] == true
    });
    check(
        &home,
        "one",
        "it ended well; 1 process of it lives on",
        "runwarden kill run/one",
    );
    knows(&why(&home, "one"), "process", "sleep 600");
    home.done(&["kill", "one", "--grace", "1s"]);
    check(&home, "one", "it ended well", "runwarden logs");
}

#[test]
fn a_run_whose_shim_was_killed_is_taken_over_by_whoever_asks_and_its_end_is_told() {
    let home = Home::new();
    home.detach("one", &["--", "sleep", "600"]);
    let shown = home.json(&["show", "one"]);
    let (shim, pid) = (
        shown["runtime"]["shim_pid"].to_string(),
        shown["runtime"]["pid"].to_string(),
    );
    let end = |pid: &str| {
        let number = rustix::process::Pid::from_raw(pid.parse().expect("a number")).expect("it is not 0");
        rustix::process::kill_process(number, rustix::process::Signal::KILL).expect("it is ours");
        until("it is gone", || !lives(pid));
    };
    end(&shim);
    check(&home, "one", "it is running", "runwarden logs -f");
    assert_ne!(home.json(&["show", "one"])["runtime"]["shim_pid"].to_string(), shim);
    end(&pid);
    home.over("one");
    check(&home, "one", "killed its program with SIGKILL", "journalctl");
}

/// Changes the one runtime row that there is.
fn change(home: &Home, set: &str) {
    let store = rusqlite::Connection::open(home.home().join("state.db")).expect("the store");
    let changed = store.execute(&format!("UPDATE runtimes SET {set}"), []);
    assert_eq!(changed.expect("a column"), 1);
}

#[test]
fn what_cannot_be_seen_from_here_is_never_called_dead() {
    let home = Home::new();
    home.detach("one", &["--", "sleep", "600"]);
    let place = home.json(&["runtime", "ls"])[0]["host"]
        .as_str()
        .expect("a name")
        .to_owned();
    change(&home, "host = 'elsewhere'");
    check(&home, "one", "it runs on the machine elsewhere", "runwarden");
    change(&home, &format!("host = '{place}', pid_namespace = pid_namespace + 1"));
    check(
        &home,
        "one",
        "it runs in another namespace of this machine",
        "runwarden",
    );
    knows(&why(&home, "one"), "shim's lock", "held: its shim lives");
    change(
        &home,
        "pid_namespace = pid_namespace - 1, shim_pidfs_inode = shim_pidfs_inode + 1, shim_pidfs_handle = NULL",
    );
    check(&home, "one", "cannot be told from others", "runwarden");
    change(&home, "shim_pidfs_inode = shim_pidfs_inode - 1");
    check(&home, "one", "it is running", "runwarden logs -f");
    home.done(&["kill", "one"]);
}

#[test]
fn what_waits_for_others_names_them() {
    let home = Home::new();
    home.done(&["create", "play", "--id", "all"]);
    check(
        &home,
        "all",
        "nothing runs for it and nothing is linked below it",
        "runwarden transition play/all",
    );
    home.detach("leaf", &["--parent", "all", "--", "sleep", "600"]);
    check(
        &home,
        "all",
        "1 of the 1 entity that is linked below it has not ended",
        "runwarden why run/leaf",
    );
    home.done(&["kill", "leaf"]);
    check(
        &home,
        "all",
        "linked below it has ended",
        "runwarden transition play/all",
    );
    knows(&why(&home, "all"), "ended badly", "run/leaf cancelled");
}

#[test]
fn an_end_that_the_policy_refused_is_told_with_the_way_to_force_it() {
    let home = Home::new();
    let file = home.path("gadget.wasm");
    std::fs::write(&file, hostile(Mode::Honest)).expect("a file");
    home.done(&["policy", "install", &file.to_string_lossy(), "--activate"]);
    let script = format!("{PROGRAM} report shelved --reason gadget.shelved.put");
    home.run(&[
        "run", "--detach", "--kind", "gadget", "--id", "g", "--", "sh", "-c", &script,
    ])
    .exits(0);
    until("the process is known to have ended", || {
        home.json(&["show", "g"])["runtime"]["state"] == "stopped"
    });
    check(
        &home,
        "g",
        "shelved has no way to spoiled",
        "runwarden transition gadget/g STATUS",
    );
    let told = why(&home, "g");
    let forced = told["next"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str);
    assert!(
        forced
            .into_iter()
            .any(|command| command.contains("gadget/g spoiled --reason") && command.contains("--override"))
    );
    knows(&told, "refused", "shelved to spoiled");
}

#[test]
fn people_are_told_in_lines_that_fit_their_page() {
    let home = Home::new();
    home.run(&["run", "--quiet", "--id", "one", "--", "sh", "-c", "exit 126"])
        .exits(126);
    let told = home.run_with(&["why", "one"], &[("COLUMNS", "40")]).exits(0).out;
    let wide = told
        .lines()
        .filter(|line| line.chars().count() > 40 && !line.contains("runwarden "))
        .count();
    assert_eq!(wide, 0, "{told}");
    assert!(
        told.starts_with("run/one  failed\nIts program exited with 126"),
        "{told}"
    );
    assert!(told.contains("\nnext: runwarden logs run/one\n"), "{told}");
    home.run(&["why", "nobody"]).exits(2);
    home.run(&["why"]).exits(64);
    assert_eq!(home.json(&["why", "@failed"])["ref"], json!("run/one"));
}
