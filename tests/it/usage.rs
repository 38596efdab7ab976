//! The command line itself: help, errors, exit codes, streams.

use std::process::Stdio;

use crate::harness::{Home, answered};

#[test]
fn the_first_page_of_help_fits_a_terminal_and_names_daily_words_first() {
    let home = Home::new();
    let help = home.done(&["-h"]);
    assert!(help.lines().count() <= 40, "{help}");
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    let place = |word: &str| {
        help.find(&format!("\n  {word} "))
            .unwrap_or_else(|| panic!("{word}: {help}"))
    };
    assert!(
        place("run") < place("ls")
            && place("kill") < place("why")
            && place("why") < place("doctor")
            && place("doctor") < place("create")
            && place("create") < place("policy")
            && place("policy") < place("man")
    );
}

#[test]
fn the_version_is_told() {
    let version = Home::new().done(&["--version"]);
    assert_eq!(version, format!("runwarden {}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn every_command_ends_its_help_with_examples_that_name_it() {
    let home = Home::new();
    for words in [
        "run",
        "logs",
        "kill",
        "rm",
        "prune",
        "ls",
        "why",
        "doctor",
        "runtime ls",
        "runtime register",
        "runtime release",
        "show",
        "wait",
        "create",
        "transition",
        "report",
        "history",
        "completions",
        "man",
        "schedule add",
        "schedule ls",
        "schedule show",
        "schedule pause",
        "schedule resume",
        "schedule rm",
        "notify ls",
        "notify show",
        "notify add",
        "notify rm",
        "notify test",
        "serve",
        "policy ls",
        "policy show",
        "policy matrix",
        "policy install",
        "policy activate",
        "policy rollback",
        "policy rm",
        "policy new",
        "policy build",
        "policy wit",
    ] {
        let mut arguments: Vec<&str> = words.split(' ').collect();
        arguments.push("--help");
        let help = home.done(&arguments);
        let (_, examples) = help
            .split_once("\nEXAMPLES\n")
            .unwrap_or_else(|| panic!("{words}: {help}"));
        assert!(examples.contains(&format!("runwarden {words}")), "{words}: {examples}");
    }
}

#[test]
fn a_wrong_command_line_exits_64_and_says_what_to_type() {
    let home = Home::new();
    let cases: [(&[&str], &str); 12] = [
        (&[], "--help"),
        (&["trnsition"], "did you mean `transition`?"),
        (&["ls", "--liv"], "did you mean `--live`?"),
        (&["ls", "--nonsense"], "runwarden ls --help"),
        (&["policy"], "runwarden policy --help"),
        (&["policy", "show", "play", "--as", "svgg"], "svg"),
        (&["transition", "x", "completed"], "runwarden transition --help"),
        (&["create", "session", "--field", "a=b"], "runwarden create --help"),
        (&["wait"], "runwarden wait @"),
        (&["wait", "x", "--timeout", "5x"], "runwarden wait --help"),
        (&["--store", "postgres://x/y", "ls"], "sqlite:"),
        (&["--store", "nonsense", "ls"], "sqlite:"),
    ];
    for (arguments, hint) in cases {
        let answer = home.run(arguments).exits(64).hints(hint);
        assert_eq!(answer.out, "", "{arguments:?}");
    }
    assert!(!home.home().exists(), "a wrong command line makes nothing");
}

#[test]
fn a_run_in_the_foreground_has_a_code_of_its_own_for_a_wrong_command_line() {
    let home = Home::new();
    home.run(&["run", "--nonsense", "--", "true"])
        .exits(125)
        .hints("runwarden run --help");
    home.run(&["run", "--detach", "--nonsense", "--", "true"]).exits(64);
}

#[test]
fn what_is_not_built_is_absent() {
    let home = Home::new();
    let commands: [&[&str]; 3] = [
        &["serve", "--socket", "x"],
        &["policy", "new", "x", "--lang", "cobol"],
        &["notify", "nonsense"],
    ];
    for arguments in commands {
        home.run(arguments).exits(64);
    }
}

#[test]
fn a_length_of_time_that_is_none_is_named() {
    let home = Home::new();
    for word in ["-1", "nan", "inf", "1e309", "99999999999999999999", "5x", "abc", ""] {
        let answer = home.run(&["wait", "x", "--timeout", word]).exits(64);
        assert!(answer.err.contains(&format!("'{word}'")), "{word}: {}", answer.err);
    }
}

#[test]
fn with_json_an_error_is_a_document_and_words_for_people_too() {
    let home = Home::new();
    let answer = home.run(&["show", "nope", "--json"]).exits(2);
    let error = &answer.document()["error"];
    assert_eq!(error["code"], "no_store");
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|message| message.contains("state.db")),
        "{error}"
    );
    assert!(error["causes"].is_array() && error["hints"].is_array());
    assert!(answer.err.starts_with("error: "));
    let usage = home.run(&["ls", "--nonsense", "--json"]).exits(64).document();
    assert_eq!(usage["error"]["code"], "usage");
}

#[test]
fn a_reader_that_went_away_is_no_error() {
    let home = Home::new();
    for arguments in [
        &["policy", "show", "play"][..],
        &["ls", "--help"],
        &["completions", "bash"],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let child = home
            .command(arguments)
            .stdout(Stdio::from(writer))
            .spawn()
            .expect("the program starts");
        let answer = answered(child, arguments.join(" ")).exits(0);
        assert_eq!(answer.err, "", "{arguments:?}");
    }
}

#[test]
fn colours_are_for_terminals_or_on_request() {
    let home = Home::new();
    home.done(&["create", "session"]);
    assert!(!home.done(&["ls"]).contains('\u{1b}'));
    assert!(home.done(&["ls", "--color", "always"]).contains('\u{1b}'));
    assert!(!home.done(&["ls", "--color", "never"]).contains('\u{1b}'));
}

#[test]
fn words_from_outside_have_no_power_over_a_terminal() {
    let home = Home::new();
    let evil = "a\u{1b}[2Jb\u{9b}c\u{202e}d\ne";
    home.done(&[
        "create",
        "session",
        "--id",
        "evil",
        "--summary",
        evil,
        "--tag",
        &format!("t={evil}"),
    ]);
    for arguments in [&["show", "evil"][..], &["ls"], &["history", "evil"]] {
        let out = home.done(arguments);
        assert!(
            out.chars().all(|c| c == '\n' || !(c.is_control() || c == '\u{202e}')),
            "{out:?}"
        );
    }
    let document = home.run(&["show", "evil", "--json"]).exits(0);
    assert!(
        document
            .out
            .chars()
            .all(|c| c == '\n' || !(c.is_control() || c == '\u{202e}'))
    );
    assert_eq!(document.document()["reason"]["summary"], evil);
}

#[test]
fn a_log_is_written_only_when_it_is_asked_for() {
    let home = Home::new();
    assert_eq!(home.run(&["create", "session"]).exits(0).err, "");
    home.run_with(&["ls"], &[("RUNWARDEN_LOG", "debug")]).exits(0);
    home.run_with(&["ls"], &[("RUNWARDEN_LOG", "a=b=c")])
        .exits(64)
        .hints("RUNWARDEN_LOG");
}

#[test]
fn completions_and_manual_are_complete() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(home.done(&["completions", shell]).contains("transition"), "{shell}");
    }
    home.run(&["completions", "nosh"]).exits(64);
    let directory = home.path("man");
    let written = home.json(&["man", &directory.to_string_lossy()]);
    for page in ["runwarden.1", "runwarden-wait.1", "runwarden-policy-show.1"] {
        let text = std::fs::read_to_string(directory.join(page)).unwrap_or_else(|_| panic!("{page}: {written}"));
        assert!(text.contains(".SH"), "{page}");
    }
}

#[test]
fn the_store_may_be_elsewhere() {
    let home = Home::new();
    let url = format!("sqlite:{}", home.path("other.db").display());
    home.done(&["create", "session", "--id", "there", "--store", &url]);
    home.run(&["show", "there"]).exits(2);
    assert_eq!(
        home.run_with(&["show", "there", "--json"], &[("RUNWARDEN_STORE", &url)])
            .exits(0)
            .document()["id"],
        "there"
    );
}
