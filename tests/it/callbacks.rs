//! The reference system's handlers and its program adapter as data, as far as they are ours: SEMANTICS 10.19 leaves its
//! registry aside but for filters and for what a broken handler costs the others, and rows that need Python.

use runwarden_test_guests::{Mode, hostile_handler};
use serde_json::{Value, json};

use crate::harness::{Home, lives, vectors};
use crate::outbox::lines;

/// Rows of what our handlers do not have: filters on ids, and handlers that silence others. A name is bound once.
const NOT_OURS: [&str; 6] = [
    "kind and id filter match",
    "id filter excludes",
    "override suppresses the rest",
    "non-matching override suppresses nothing",
    "two matching overrides both run",
    "same name registered twice: last wins",
];

/// Binds a handler that behaves so.
fn bind(home: &Home, handler: &Value, program: &str) {
    let name = handler["name"].as_str().expect("a name");
    let component = match handler["behaviour"].as_str() {
        Some("ok" | "sync") => "exec".to_owned(),
        Some("raise") => installed(home, Mode::PlanPanics),
        Some("slow" | "block") => installed(home, Mode::PlanLoops),
        other => panic!("{other:?} is no behaviour"),
    };
    let kinds: Vec<&str> = handler["kinds"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut options = vec!["--component", &component, "--exec", program];
    if !kinds.is_empty() {
        options.push("--kinds");
        options.extend(&kinds);
    }
    home.bind(name, &options);
}

fn installed(home: &Home, mode: Mode) -> String {
    let file = home.path(&format!("{mode:?}.wasm"));
    std::fs::write(&file, hostile_handler(mode)).expect("a file of the test");
    let installed = home.json(&["policy", "install", &file.to_string_lossy()]);
    installed["digest"].as_str().expect("a digest").to_owned()
}

/// Handlers that were asked: what each planned, or that it failed.
fn asked(home: &Home) -> Vec<String> {
    let planned = home.notices();
    let audit = home.json(&["history", "--admin"]);
    let failed = audit.as_array().expect("a list").iter();
    let failed = failed
        .filter(|row| row["action"] == "handler_failed")
        .map(|row| &row["details"]);
    let mut names: Vec<String> = planned
        .iter()
        .chain(failed)
        .filter_map(|of| of["handler"].as_str().map(str::to_owned))
        .collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn handlers_are_asked_as_in_the_reference_and_a_broken_one_keeps_none_from_it() {
    let vectors = vectors("callbacks.json");
    let mut left_out = Vec::new();
    for row in vectors["registry"].as_array().expect("rows") {
        let case = row["case"].as_str().expect("a name");
        if NOT_OURS.contains(&case) {
            left_out.push(case);
            continue;
        }
        let home = Home::new();
        for handler in row["handlers"].as_array().expect("handlers") {
            bind(&home, handler, "true");
        }
        home.ended_session("s1", &[]);
        home.overdue();
        home.done(&["outbox", "deliver", "--until-empty"]);
        assert_eq!(json!(asked(&home)), row["invoked"], "{case}");
        assert_eq!(home.json(&["show", "s1"])["status"], "completed", "{case}");
    }
    assert_eq!(left_out, NOT_OURS, "each exception is a row");
}

#[test]
fn a_programs_end_is_told_as_in_the_reference() {
    let vectors = vectors("callbacks.json");
    let home = Home::new();
    let pid = home.path("pid");
    for (number, row) in vectors["exec_adapter"].as_array().expect("rows").iter().enumerate() {
        let case = row["case"].as_str().expect("a name");
        if case == "reads stdin json" {
            continue;
        }
        let argv = row["argv"]
            .to_string()
            .replace("/dev/shm/cbpid", &pid.to_string_lossy());
        let name = format!("handler-{number}");
        home.bind(&name, &["--exec", &argv, "--timeout", "1s"]);
        home.run(&["outbox", "send", "--to", &name, "{}"]).exits(0);
        let notices = home.notices();
        let notice = notices.iter().find(|notice| notice["handler"] == name.as_str());
        let notice = notice.expect("it was enqueued");
        let outcome = &row["outcome"][0];
        assert_eq!(
            notice["status"] == "delivered",
            outcome["ok"] == true,
            "{case}: {notice}"
        );
        let error = notice["last_error"].as_str().unwrap_or_default();
        match outcome["exit_code"].as_i64() {
            Some(0) => assert_eq!(error, "", "{case}"),
            Some(code) if code < 0 => assert!(error.contains(&format!("signal {}", -code)), "{case}: {error}"),
            Some(code) => assert!(error.starts_with(&format!("exit {code}")), "{case}: {error}"),
            None => assert!(!error.is_empty() && !error.starts_with("exit"), "{case}: {error}"),
        }
        if let Some(said) = outcome["stderr_text"].as_str() {
            assert!(error.contains(said), "{case}: {error}");
        }
        if row["grandchild_alive_after"] == false {
            let started = lines(&pid);
            assert!(started.len() == 1 && !lives(&started[0]), "{case}: {started:?}");
        }
    }
}
