//! What ARCHITECTURE.md says must stay absent, and what STYLE asks of every file.

use std::path::{Path, PathBuf};

/// A source file without its comments and its tests.
struct Source {
    /// From the root of the repository.
    path: String,
    code: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .expect("the repository")
}

/// Files with this end below a directory.
fn files(below: &str, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(below)];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.ends_with("target") && !path.ends_with(".git") {
                open.push(path);
            } else if path.to_string_lossy().ends_with(end) {
                found.push(path);
            }
        }
    }
    assert!(!found.is_empty(), "no {end} below {below}");
    found.sort();
    found
}

/// Where a module of a file lies: its file, or the directory of its files.
fn places(file: &Path, module: &str) -> [PathBuf; 2] {
    let is_root = ["mod.rs", "lib.rs", "main.rs"].iter().any(|name| file.ends_with(name));
    let directory = if is_root {
        file.with_file_name("")
    } else {
        file.with_extension("")
    };
    [directory.join(format!("{module}.rs")), directory.join(module)]
}

/// The module that a line declares, if it lies in a file of its own.
fn declared(line: &str) -> Option<&str> {
    let (visibility, name) = line.strip_suffix(';')?.split_once("mod ")?;
    (visibility.is_empty() || visibility.starts_with("pub")).then_some(name)
}

/// The sources below a directory, tests left out, and what is compiled for tests alone.
fn sources(below: &str) -> Vec<Source> {
    let all = files(below, ".rs");
    let mut tests: Vec<PathBuf> = Vec::new();
    for path in &all {
        let text = std::fs::read_to_string(path).expect("a source");
        let lines: Vec<&str> = text.lines().collect();
        let pairs = lines
            .windows(2)
            .filter(|pair| pair[0].starts_with("#[cfg(") && pair[0].contains("test"));
        tests.extend(
            pairs
                .filter_map(|pair| declared(pair[1]))
                .flat_map(|module| places(path, module)),
        );
    }
    let is_test = |path: &PathBuf| {
        let inner = path.strip_prefix(root()).expect("a file of the repository");
        tests.iter().any(|test| path.starts_with(test)) || inner.iter().any(|part| part == "tests")
    };
    all.iter()
        .filter(|path| !is_test(path))
        .map(|path| source(path))
        .collect()
}

/// A source without comments, up to the tests at its end.
fn source(path: &Path) -> Source {
    let text = std::fs::read_to_string(path).expect("a source");
    let lines: Vec<&str> = text.lines().collect();
    let begins_tests = |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].ends_with('{');
    let end = lines.windows(2).position(begins_tests).unwrap_or(lines.len());
    let path = path.strip_prefix(root()).expect("a file of the repository");
    Source {
        path: path.to_string_lossy().into_owned(),
        code: lines[..end].iter().map(|line| without_comment(line)).collect(),
    }
}

fn without_comment(line: &str) -> String {
    let comment = line.find("//").filter(|at| !line[..*at].ends_with(':'));
    line[..comment.unwrap_or(line.len())].to_owned()
}

/// Lines that hold one of these words.
fn lines_with(sources: &[Source], words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        let lines = source
            .code
            .iter()
            .filter(|line| words.iter().any(|word| line.contains(word)));
        found.extend(lines.map(|line| format!("{}: {}", source.path, line.trim())));
    }
    found
}

#[track_caller]
fn check_absent(below: &str, except: &[&str], words: &[&str]) {
    let mut sources = sources(below);
    sources.retain(|source| !except.iter().any(|path| source.path.starts_with(path)));
    let found = lines_with(&sources, words);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn wasmtime_is_known_to_the_policy_module_alone() {
    check_absent("host/src", &["host/src/policy"], &["wasmtime"]);
    check_absent("cli", &[], &["wasmtime"]);
}

#[test]
fn sql_is_known_to_the_store_alone() {
    check_absent("host/src", &["host/src/store"], &["rusqlite"]);
    check_absent("cli", &[], &["rusqlite"]);
}

#[test]
fn system_calls_are_made_by_processes_the_shim_and_the_terminal_alone() {
    let calls = ["rustix::", "libc::"];
    check_absent("host/src/model", &[], &calls);
    check_absent("host/src/policy", &[], &calls);
    check_absent("host/src/verbs", &[], &calls);
    check_absent("host/src/notify", &[], &calls);
}

#[test]
fn http_and_tls_are_known_to_notices_alone() {
    check_absent("host/src", &["host/src/notify"], &["hyper", "rustls"]);
}

#[test]
fn a_guest_gets_its_store_in_one_place() {
    let found = lines_with(&sources("host/src/policy"), &["Store::new("]);
    assert_eq!(found.len(), 1, "{}", found.join("\n"));
}

#[test]
fn a_status_is_written_in_one_place() {
    let mut sources = sources("host/src");
    sources.retain(|source| !source.path.starts_with("host/src/store"));
    let found = lines_with(&sources, &[".apply("]);
    assert!(
        matches!(found.as_slice(), [one] if one.starts_with("host/src/verbs/transition.rs")),
        "{}",
        found.join("\n")
    );
}

#[test]
fn trees_are_deleted_and_journals_pruned_in_one_place_each() {
    check_absent("host/src", &["host/src/process/tree.rs"], &["remove_dir_all"]);
    check_absent("cli/src", &["cli/src/commands/demo.rs"], &["remove_dir_all"]);
    let except = ["host/src/store", "host/src/verbs/prune.rs"];
    check_absent("host/src", &except, &["prune_journal("]);
    check_absent("cli/src", &[], &["prune_journal("]);
}

#[test]
fn the_host_knows_no_kind_and_no_status() {
    // A dispatch is of the mechanism: what the outbox delivers. So are words
    // "timed_out", "running", "stopped", "delivered", "queued" and "orphaned" are words of the mechanism too: of the rules a policy
    // fills in, of runtime rows, of health.
    let words = [
        "session",
        "sessions",
        "invocation",
        "play",
        "show",
        "team",
        "schedule_run",
        "completed",
        "completed_empty",
        "aborted",
        "cancelled",
        "dead_letter",
        "supervisor_unknown",
        "waiting_dependency",
        "retry_wait",
        "merged",
        "escalated",
        "gate_failed",
        "gated",
        "redoing",
        "prepared",
        "archived",
        "imported",
        "delivering",
        "acked",
        "skipped",
    ];
    let rust: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    check_absent("host/src", &[], &rust.iter().map(String::as_str).collect::<Vec<_>>());
    for path in files("host/src", ".sql") {
        let text = std::fs::read_to_string(&path).expect("a source");
        for line in text.lines().map(|line| line.split("--").next().unwrap_or_default()) {
            let word = words.iter().find(|word| line.contains(&format!("'{word}'")));
            assert_eq!(word, None, "{}: {line}", path.display());
        }
    }
}

#[test]
fn the_host_prints_nothing_and_reads_no_environment() {
    let words = [
        "println!",
        "print!(",
        "eprint!",
        "dbg!",
        "env::var",
        "env::args",
        "env::current",
        "env::temp",
        "home_dir",
    ];
    check_absent("host/src", &[], &words);
}

#[test]
fn dependencies_point_one_way() {
    let above: [(&str, &[&str]); 6] = [
        (
            "model",
            &[
                "policy", "process", "store", "notify", "verbs", "host", "clock", "wake", "work", "error",
            ],
        ),
        (
            "process",
            &[
                "model", "policy", "store", "notify", "verbs", "host", "clock", "wake", "error",
            ],
        ),
        (
            "store",
            &[
                "policy", "process", "notify", "verbs", "host", "clock", "wake", "work", "error",
            ],
        ),
        (
            "policy",
            &["process", "notify", "verbs", "host", "clock", "wake", "work", "error"],
        ),
        (
            "provenance",
            &[
                "policy", "process", "store", "notify", "verbs", "host", "clock", "wake", "work", "error",
            ],
        ),
        (
            "notify",
            &["policy", "store", "verbs", "host", "clock", "wake", "work", "error"],
        ),
    ];
    for (module, forbidden) in above {
        for name in forbidden {
            let paths = [format!("crate::{name}::"), format!("super::super::{name}::")];
            check_absent(
                &format!("host/src/{module}"),
                &[],
                &paths.each_ref().map(String::as_str),
            );
        }
    }
}

#[test]
fn sysinfo_is_neither_identity_nor_signal() {
    check_absent("host/src/verbs", &[], &["sysinfo"]);
    let files =
        ["identity", "pidfd", "control", "stop", "spawn", "exit"].map(|name| format!("host/src/process/{name}.rs"));
    for file in files {
        let source = source(&root().join(file));
        let found = lines_with(&[source], &["sysinfo"]);
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}

#[test]
fn nothing_is_left_to_be_done() {
    // The words are put together here, so that this file does not hold them.
    let words = ["TO DO", "FIX ME", "XX X", "un implemented!", "to do!("].map(|word| word.replace(' ', ""));
    for below in ["host", "cli", "policies", "tests", "benches"] {
        for path in files(below, ".rs") {
            let text = std::fs::read_to_string(&path).expect("a source");
            let word = words.iter().find(|word| text.contains(word.as_str()));
            assert_eq!(word, None, "{}", path.display());
        }
    }
}

#[test]
fn a_file_is_at_most_500_lines_without_its_tests() {
    for below in ["host/src", "cli", "policies"] {
        for source in sources(below) {
            let is_generated = source.path.contains("bindings") || source.path.contains("generated");
            assert!(
                is_generated || source.code.len() <= 500,
                "{} has {} lines",
                source.path,
                source.code.len()
            );
        }
    }
}

#[test]
fn no_test_sleeps_to_let_time_pass() {
    let mut sources: Vec<Source> = files("tests", ".rs").iter().map(|path| source(path)).collect();
    sources.retain(|source| !source.path.ends_with("harness.rs") && !source.path.ends_with("tidy.rs"));
    let found = lines_with(&sources, &["thread::sleep", "time::sleep("]);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_dependency_says_why_it_is_there() {
    for path in files("", "Cargo.toml") {
        let text = std::fs::read_to_string(&path).expect("a manifest");
        let mut in_dependencies = false;
        for line in text.lines() {
            if line.starts_with('[') {
                in_dependencies = line.contains("dependencies");
                continue;
            }
            let names_one = in_dependencies && line.contains('=') && !line.contains("path =");
            let is_explained = line.split_once(" #").is_some_and(|(_, why)| !why.trim().is_empty());
            assert!(!names_one || is_explained, "{}: {line}", path.display());
        }
    }
}
