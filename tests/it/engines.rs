//! A command that asks no guard, verdict or handler makes no engine (ARCHITECTURE.md, Invariants).

use crate::harness::Home;

const LOG: [(&str, &str); 1] = [("RUNWARDEN_LOG", "runwarden_host=debug")];

#[track_caller]
fn check(home: &Home, arguments: &[&str], engines: usize) {
    let answer = home.run_with(arguments, &LOG).exits(0);
    assert_eq!(
        answer.err.matches("engine made").count(),
        engines,
        "{arguments:?}: {}",
        answer.err
    );
}

#[test]
fn no_engine_is_made_for_what_a_table_answers() {
    let home = Home::new();
    let commands: [&[&str]; 9] = [
        &["run", "--id", "one", "--", "true"],
        &["show", "one"],
        &["ls"],
        &["wait", "one"],
        &["logs", "one"],
        &["history", "one"],
        &["kill", "one"],
        &["policy", "ls"],
        &["policy", "show", "run"],
    ];
    for arguments in commands {
        check(&home, arguments, 0);
    }
    // The finishing command writes its own log.
    let finish = std::fs::read_to_string(home.of_run("one", "finish.log")).unwrap_or_default();
    assert!(!finish.contains("engine made"), "{finish}");
}

#[test]
fn no_engine_is_made_by_the_first_command_on_a_new_home() {
    for arguments in [
        ["create", "session"].as_slice(),
        &["run", "--", "true"],
        &["policy", "ls"],
    ] {
        check(&Home::new(), arguments, 0);
    }
}

#[test]
fn an_engine_is_made_for_health_only_where_a_component_is_asked() {
    let home = Home::new();
    for (kind, engines) in [("team", 0), ("show", 0), ("play", 0), ("session", 1)] {
        home.done(&["create", kind, "--id", kind]);
        check(&home, &["ls", "--health", kind], engines);
        check(&home, &["show", kind], engines);
        check(&home, &["why", kind], engines);
        check(&home, &["ls", kind], 0);
    }
}

#[test]
fn an_engine_is_made_to_look_into_a_component_that_was_never_installed() {
    let home = Home::new();
    let file = home.path("policy.wasm");
    let component = bundled_component();
    std::fs::write(&file, component).expect("a file");
    check(&home, &["policy", "show", file.to_str().expect("a path in UTF-8")], 1);
}

/// The bytes of a policy that ships, as the store keeps them.
fn bundled_component() -> Vec<u8> {
    let home = Home::new();
    home.done(&["create", "session"]);
    let database = rusqlite::Connection::open(home.home().join("state.db")).expect("the store");
    let query = "SELECT bytes FROM component_contents ORDER BY length(bytes) LIMIT 1";
    database.query_row(query, [], |row| row.get(0)).expect("a component")
}
