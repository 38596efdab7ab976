//! A policy or handler of one's own: begun, built, installed, and used.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use runwarden_host::model::{Problem, Severity, author};
use serde_json::{Value, json};

use crate::harness::{Answer, Home, answered};

#[test]
fn a_table_is_begun_built_installed_and_obeyed_without_a_compiler() {
    let home = Home::new();
    let begun = home.json(&["policy", "new", "post"]);
    assert_eq!(begun["next"], "runwarden policy build post");
    let without_tools = [("PATH", "/nonexistent")];
    let built = home.run_with(&["policy", "build", "post", "--json"], &without_tools);
    let built = built.exits(0).document();
    assert_eq!(built["path"], "post/post.wasm");
    assert_eq!(
        built["imports"],
        json!(["runwarden:types/types@0.1.0"]),
        "types, and nothing that acts"
    );
    let size = built["size_bytes"].as_u64().expect("a size");
    assert!(size < 16 << 10, "{size}");
    assert_eq!(built["next"], "runwarden policy test ./post/post.wasm");
    assert!(!home.home().exists(), "no home is needed");
    home.done(&["policy", "test", "post"]);
    let shown = home.json(&["policy", "show", "post/post.wasm"]);
    assert_eq!(shown["digest"], built["digest"]);
    home.done(&["policy", "install", "post/post.wasm"]);
    home.done(&["policy", "activate", "post@1", "--reason", "first version"]);
    home.done(&["create", "post", "--id", "hello"]);
    home.done(&["transition", "hello", "review", "--reason", "post.review.asked"]);
    let done = ["transition", "hello", "done", "--reason", "post.done.ok"];
    home.run(&done).exits(64);
    home.run(&[&done[..], &["--set", "reviewer=\"ann\"", "--actor", "agent:a"]].concat())
        .exits(5);
    home.done(&[&done[..], &["--set", "reviewer=\"ann\""]].concat());
    assert_eq!(home.json(&["show", "hello"])["success"], true);
}

#[test]
fn what_does_not_change_keeps_its_digest_and_a_failed_build_leaves_the_one_before() {
    let home = Home::new();
    home.done(&["policy", "new", "post"]);
    let digest = || home.json(&["policy", "build", "post"])["digest"].clone();
    let first = digest();
    assert_eq!(first, digest());
    let (table, component) = (home.path("post/lifecycle.toml"), home.path("post/post.wasm"));
    let text = std::fs::read_to_string(&table).expect("the table is there");
    std::fs::write(&table, format!("{text}\n# a remark says nothing\n")).expect("a file of ours");
    assert_eq!(first, digest());
    std::fs::write(&table, text.replace("to = \"done\"", "to = \"dome\"")).expect("a file of ours");
    let before = std::fs::read(&component).expect("it was built");
    let answer = home.run(&["policy", "build", "post"]).exits(65);
    insta::assert_snapshot!("a_table_that_is_wrong", answer.err);
    assert_eq!(before, std::fs::read(&component).expect("it is there"));
    std::fs::write(&table, text.replace("1.0.0", "1.1.0")).expect("a file of ours");
    assert_ne!(first, digest());
    assert_eq!(
        names_in(&home.path("post")),
        ["README.md", "cases.toml", "lifecycle.toml", "post.wasm", ".gitignore"]
    );
}

/// What a directory holds, hidden files last.
fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let name =
        |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").file_name().to_string_lossy().into_owned();
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort_by_key(|name| (name.starts_with('.'), name.clone()));
    names
}

#[test]
fn nothing_is_begun_over_what_is_there_or_under_a_name_that_is_none() {
    let home = Home::new();
    std::fs::create_dir(home.path("empty")).expect("a directory of ours");
    home.done(&["policy", "new", "empty"]);
    home.run(&["policy", "new", "empty"]).exits(4).hints("another name");
    std::fs::write(home.path("file"), "x").expect("a file of ours");
    home.run(&["policy", "new", "file"]).exits(4);
    for name in [
        "Post",
        "9",
        "",
        "a/b",
        "..",
        ".hidden",
        "a b",
        "handler",
        &"a".repeat(65),
    ] {
        home.run(&["policy", "new", name]).exits(64);
    }
    home.run(&["policy", "new", "mail", "--handler"])
        .exits(64)
        .hints("--lang rust");
    assert_eq!(
        names_in(&home.path(".")),
        ["empty", "file"],
        "nothing is left half-written"
    );
    assert_eq!(std::fs::read(home.path("file")).expect("it is there"), b"x");
}

#[test]
fn a_directory_that_is_no_project_is_told_and_so_is_one_of_two_languages() {
    let home = Home::new();
    home.run(&["policy", "build"]).exits(65).hints("policy new");
    home.done(&["policy", "new", "post"]);
    std::fs::write(home.path("post/Cargo.toml"), "").expect("a file of ours");
    home.run(&["policy", "build", "post"]).exits(65).hints("--lang");
    home.done(&["policy", "build", "post", "--lang", "toml"]);
    let nothing = [("PATH", "/nonexistent")];
    home.run_with(&["policy", "build", "post", "--lang", "rust"], &nothing)
        .exits(65)
        .hints("https://rustup.rs");
}

/// A project in Rust, built with what the registry has already given. All of them share a target directory.
fn with_rust(home: &Home, directory: &str, arguments: &[&str]) -> Answer {
    let command = home.command(arguments);
    rust(command, &home.path(directory), arguments)
}

fn rust(mut command: Command, directory: &Path, words: &[&str]) -> Answer {
    command.current_dir(directory).envs(of_the_toolchain());
    answered(command.spawn().expect("it starts"), words.join(" "))
}

/// The toolchain of this workspace, wherever it is kept, and one target directory for all projects of tests.
pub(crate) fn of_the_toolchain() -> Vec<(&'static str, OsString)> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("authored");
    let mut variables = vec![
        ("CARGO_TARGET_DIR", target.into_os_string()),
        ("CARGO_NET_OFFLINE", "true".into()),
    ];
    let own = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    for (variable, place) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        let given = std::env::var_os(variable);
        variables.push((variable, given.unwrap_or_else(|| own.join(place).into())));
    }
    if let Some(toolchain) = std::env::var_os("RUSTUP_TOOLCHAIN") {
        variables.push(("RUSTUP_TOOLCHAIN", toolchain));
    }
    variables
}

#[test]
fn a_policy_in_rust_is_begun_tested_built_installed_and_asked() {
    let home = Home::new();
    home.done(&["policy", "new", "essay", "--lang", "rust"]);
    let mut cargo = Command::new("cargo");
    cargo
        .args(["test", "--quiet"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let tested = rust(cargo, &home.path("essay"), &["cargo", "test"]).exits(0);
    assert!(!tested.err.contains("warning"), "{}", tested.err);
    let built = with_rust(&home, "essay", &["policy", "build", "--json"]).exits(0);
    assert!(
        built.err.contains("Compiling essay"),
        "what cargo says is shown: {}",
        built.err
    );
    let built = built.document();
    assert_eq!(
        built["exports"],
        json!(["runwarden:policy/guard@0.1.0", "runwarden:policy/lifecycle@0.1.0"])
    );
    home.done(&["policy", "test", "essay"]);
    home.done(&["policy", "install", "essay/essay.wasm", "--activate"]);
    home.done(&["create", "essay", "--id", "first", "--field", "author=\"ann\""]);
    home.done(&["transition", "first", "review", "--reason", "essay.review.asked"]);
    let done = ["transition", "first", "done", "--reason", "essay.done.ok", "--set"];
    let refused = home
        .run(&[&done[..], &["reviewer=\"ann\"", "--json"]].concat())
        .exits(5);
    assert_eq!(refused.document()["code"], "same_person");
    home.done(&[&done[..], &["reviewer=\"bob\""]].concat());
    let again = with_rust(&home, "essay", &["policy", "build", "--json"])
        .exits(0)
        .document();
    assert_eq!(again["digest"], built["digest"]);
    let source = home.path("essay/src/lib.rs");
    std::fs::write(&source, "not Rust").expect("a file of ours");
    let failed = with_rust(&home, "essay", &["policy", "build"]).exits(65);
    assert!(failed.err.contains("error: cargo ended with 101"), "{}", failed.err);
}

#[test]
fn a_handler_in_rust_is_begun_built_and_bound() {
    let home = Home::new();
    home.done(&["policy", "new", "mail", "--lang", "rust", "--handler"]);
    with_rust(&home, "mail", &["policy", "build"]).exits(0);
    home.done(&["policy", "test", "mail"]);
    home.done(&["policy", "install", "mail/mail.wasm"]);
    let journal = home.path("ends.jsonl");
    home.done(&[
        "notify",
        "add",
        "people",
        "--component",
        "mail@1",
        "--file",
        &journal.to_string_lossy(),
    ]);
    home.run(&["run", "--", "false"]).exits(1);
    crate::harness::until("the end is told", || journal.exists());
    let line = std::fs::read_to_string(&journal).expect("it is there");
    let told: Value = serde_json::from_str(&line).expect("one line of JSON");
    assert!(told.as_str().is_some_and(|told| told.contains("is failed")), "{line}");
}

/// Every key of the guide, and nothing that it does not name, makes a table.
#[test]
fn the_table_of_the_guide_is_sound() {
    let guide = include_str!("../../docs/lifecycle-toml.md");
    let (_, after) = guide.split_once("```toml\n").expect("the guide has a table");
    let (table, _) = after.split_once("```").expect("it ends");
    let authored = author(table).unwrap_or_else(|problems| panic!("{}", told(&problems)));
    let is_note = |problem: &Problem| problem.severity == Severity::Note;
    assert!(authored.warnings.iter().all(is_note), "{}", told(&authored.warnings));
    assert_eq!(authored.descriptor.migrations[0].statuses[0].to, "building");
}

fn told(problems: &[Problem]) -> String {
    let line = |Problem {
                    severity,
                    line,
                    column,
                    message,
                }: &Problem| format!("{line}:{column} {severity:?}: {message}\n");
    problems.iter().map(line).collect()
}

/// A table that is sound, for mistakes to be made in.
const SOUND: &str = r#"kind = "post"
version = "1.0.0"
summary = "A post."

[[status]]
name = "draft"
initial = "post.draft.created"

[[status]]
name = "running"
initial = "post.running.started"

[[status]]
name = "done"
success = true

[[status]]
name = "gone"
terminal = true

[[edge]]
from = ["draft", "running"]
to = "done"
actors = ["agent", "operator"]
guards = "words"

[[edge]]
from = ["draft", "running"]
to = "gone"

[[edge]]
from = "running"
to = "draft"

[fields]
words = "integer"
ended_at = "timestamp"
exit_code = "integer"
term_signal = "integer"
cause = "text"

[codes]
post.draft.created = "Was begun."
post.draft.back = "Is begun again."
post.running.started = "Is written by a program."
post.done.ok = "Is good."
post.gone.kill = "Was stopped."

[execution]
start = "running post.running.started"
default = "draft post.draft.back"

[[verdict]]
exit = 0
outcome = "draft post.draft.back"

[[verdict]]
signals = "any"
outcome = "draft post.draft.back"

[[verdict]]
outcome = "draft post.draft.back"

[[kill]]
from = ["running", "draft"]
to = "gone"
term = "post.gone.kill"
force = "post.gone.kill"
stale = "post.gone.kill"

[retry]
base = "30s"
cap = "30m"
attempts = 3

[[migrate]]
from = "0"
statuses = { old = "draft" }
"#;

/// A text of the sound table, and what stands in its place.
const MISTAKES: &[(&str, &str)] = &[
    // What is no TOML.
    ("kind = \"post\"", "kind = post"),
    ("[[status]]\nname = \"draft\"", "[[status]\nname = \"draft\""),
    ("version = \"1.0.0\"", "kind = \"other\""),
    // Keys that are unknown, missing, or of another type.
    ("kind = \"post\"\n", ""),
    ("summary", "sumary"),
    ("[[edge]]", "[[edges]]"),
    ("initial = \"post.draft.created\"", "inital = \"post.draft.created\""),
    ("initial = \"post.draft.created\"", "initial = 1"),
    ("success = true", "success = \"yes\""),
    ("[[status]]\nname = \"draft\"", "[status]\nname = \"draft\""),
    ("to = \"done\"\n", ""),
    ("to = \"done\"", "to = 1"),
    ("words = \"integer\"", "words = \"int\""),
    ("words = \"integer\"", "words = { kind = \"text\", default = 3 }"),
    ("words = \"integer\"", "words = 1"),
    ("post.done.ok = \"Is good.\"", "post.done.ok = true"),
    ("base = \"30s\"", "base = \"soon\""),
    ("base = \"30s\"", "base = -1"),
    ("attempts = 3", "attempts = \"3\""),
    ("attempts = 3", "attempts = 99999999999999999999"),
    ("exit = 0", "exit = \"1-9\""),
    ("signals = \"any\"", "signals = [\"KIL\", 9, 99]"),
    ("outcome = \"draft post.draft.back\"", "outcome = \"draft\""),
    ("default = \"draft post.draft.back\"\n", ""),
    (
        "default = \"draft post.draft.back\"",
        "defualt = \"draft post.draft.back\"",
    ),
    // Names that nothing bears.
    ("from = [\"draft\", \"running\"]", "from = [\"draft\", \"runing\"]"),
    ("\"agent\", \"operator\"", "\"agent\", \"operater\""),
    ("guards = \"words\"", "guards = [\"word\", \"pages\"]"),
    ("initial = \"post.draft.created\"", "initial = \"post.draft.made\""),
    (
        "start = \"running post.running.started\"",
        "start = \"running post.running.begun\"",
    ),
    ("statuses = { old = \"draft\" }", "statuses = { old = \"lost\" }"),
    // What a table cannot have.
    ("guards = \"words\"", "guarded = true"),
    ("[retry]", "[reads]\nchildren = true\n[retry]"),
    ("[retry]", "[[parameter]]\nname = \"quorum\"\n[retry]"),
    ("[retry]", "[delivery]\n[retry]"),
    // What can be read and does not fit.
    ("kind = \"post\"", "kind = \"Post\""),
    ("version = \"1.0.0\"", "version = \"1\""),
    ("exit = 0", "exit = 0\nsignals = \"any\""),
    ("words = \"integer\"", "Words = \"integer\""),
    ("post.done.ok = \"Is good.\"", "post.done = \"Is good.\""),
    (
        "[[status]]\nname = \"running\"",
        "[[status]]\nname = \"draft\"\nterminal = true\n[[status]]\nname = \"running\"",
    ),
    ("success = true", "success = true\nannounced = true"),
    (
        "name = \"done\"",
        "name = \"done\"\ninitial = true\n[[status]]\nname = \"lost\"",
    ),
    (
        "from = \"running\"\nto = \"draft\"",
        "from = \"done\"\nto = \"running\"",
    ),
    ("cause = \"text\"\n", ""),
    (
        "start = \"running post.running.started\"",
        "start = \"done post.done.ok\"",
    ),
    ("[[verdict]]\noutcome", "[[verdict]]\nexit = \"9..1\"\noutcome"),
    ("attempts = 3", "attempts = 0"),
    ("from = \"0\"", "from = \"\""),
];

#[test]
fn every_mistake_in_a_table_is_told_where_it_stands() {
    let sound = author(SOUND).unwrap_or_else(|problems| panic!("{}", told(&problems)));
    assert_eq!(told(&sound.warnings), "");
    let mut all = String::new();
    for (from, to) in MISTAKES {
        assert!(SOUND.contains(from), "{from}");
        let problems = match author(&SOUND.replacen(from, to, 1)) {
            Ok(authored) => authored.warnings,
            Err(problems) => problems,
        };
        assert!(!problems.is_empty(), "{from} -> {to}");
        let shown = to.replace('\n', " ⏎ ");
        write!(all, "{} -> {shown}\n{}\n", from.replace('\n', " ⏎ "), told(&problems)).expect("a string has room");
    }
    insta::assert_snapshot!("mistakes_in_a_table", all);
}

#[test]
fn all_mistakes_of_a_table_are_told_at_once() {
    let text = SOUND
        .replace("\"operator\"", "\"operater\"")
        .replace("base = \"30s\"", "base = \"soon\"")
        .replace("to = \"draft\"", "to = \"drafts\"")
        .replace("summary", "sumary");
    let problems = author(&text).expect_err("it is wrong");
    let lines: BTreeSet<usize> = problems.iter().map(|problem| problem.line).collect();
    assert_eq!((problems.len(), lines.len()), (5, 5), "{}", told(&problems));
}
