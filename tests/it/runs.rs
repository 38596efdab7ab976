//! run: what is said where, how it is left, and what is recorded.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{Answer, Home, PROGRAM, answered, lives, opened, until};

/// A shell script as the program of a run, with these options.
fn script<'a>(options: &[&'a str], text: &'a str) -> Vec<&'a str> {
    [&["run"], options, &["--", "sh", "-c", text]].concat()
}

fn executable(path: &Path, text: &str) {
    std::fs::write(path, text).expect("a file");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("its mode");
}

#[test]
fn output_arrives_byte_for_byte_on_the_stream_it_was_written_to() {
    let home = Home::new();
    let text = r"printf 'a\000\377\n'; printf '\376b' >&2";
    let output = home.command(&script(&[], text)).output().expect("the program ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout, b"a\0\xff\n");
    assert_eq!(output.stderr, b"\xfeb");
}

#[test]
fn more_output_than_any_pipe_holds_arrives_whole() {
    let home = Home::new();
    let output = home
        .command(&["run", "--", "head", "-c", "5000000", "/dev/zero"])
        .output();
    assert_eq!(output.expect("the program ends").stdout.len(), 5_000_000);
}

#[test]
fn the_program_reads_the_standard_input_of_the_caller() {
    let home = Home::new();
    let mut command = home.command(&["run", "--", "cat"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the program starts");
    let mut input = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut input, b"typed").expect("the pipe has room");
    drop(input);
    assert_eq!(answered(child, "run -- cat".to_owned()).exits(0).out, "typed");
}

/// A run in a script: its options and program after `run`, its exit code, and words of its line on standard error.
#[track_caller]
fn check_end(home: &Home, run: &str, code: i32, words: &[&str]) {
    let run: Vec<&str> = run.split(' ').collect();
    let answer = home.run(&[&["run", "--id"], run.as_slice()].concat()).exits(code);
    assert_eq!(answer.out, "", "{run:?}");
    assert_eq!(answer.err.lines().count(), usize::from(!words.is_empty()), "{answer:?}");
    for word in words {
        assert!(answer.err.contains(word), "{word}: {answer:?}");
    }
    if !words.is_empty() {
        let directory = home.home().join("runs").join(run[0]);
        assert!(answer.err.starts_with(&format!("run/{} ", run[0])), "{answer:?}");
        assert!(
            answer.err.contains(directory.to_str().expect("a path in UTF-8")),
            "{answer:?}"
        );
    }
    let quiet = home.run(&[&["run", "--quiet"], &run[1..]].concat()).exits(code);
    assert_eq!(quiet.err, "", "{run:?} --quiet");
}

#[test]
fn a_script_hears_one_line_about_a_failure_and_none_about_a_success() {
    let home = Home::new();
    std::fs::write(home.path("plain"), "data").expect("a file");
    executable(&home.path("seven"), "#!/bin/sh\nexit 7\n");
    executable(&home.path("nine"), "#!/bin/sh\nkill -9 $$\n");
    check_end(&home, "good -- true", 0, &[]);
    check_end(
        &home,
        "seven -- ./seven",
        7,
        &["failed (run.failed.exit_nonzero): exited with 7"],
    );
    check_end(&home, "nine -- ./nine", 137, &["failed", "died by signal 9"]);
    check_end(
        &home,
        "late --timeout 50ms -- sleep 600",
        124,
        &["timed_out (run.timed_out.deadline)"],
    );
    check_end(
        &home,
        "poor --expect-artifact no.tar -- true",
        1,
        &["run.failed.missing_artifact", "no.tar"],
    );
    check_end(&home, "empty --want-evidence -- true", 1, &["completed_empty"]);
    check_end(
        &home,
        "nowhere --cwd /no/dir -- true",
        125,
        &["run.failed.missing_cwd", "working directory"],
    );
    check_end(
        &home,
        "absent -- /no/such",
        127,
        &["run.failed.spawn_error", "cannot execute"],
    );
    check_end(
        &home,
        "data -- ./plain",
        126,
        &["run.failed.spawn_error", "cannot execute"],
    );
    check_end(
        &home,
        "word --env PATH=/usr/bin:/bin -- no-such-word",
        127,
        &["run.failed.spawn_error"],
    );
}

#[test]
fn every_failure_of_ours_is_125_in_the_foreground() {
    let home = Home::new();
    home.done(&["create", "session", "--id", "taken"]);
    let cases: [&[&str]; 6] = [
        &["--nonsense"],
        &["--timeout", "-1"],
        &["--kind", "nonsense"],
        &["--kind", "team"],
        &["--id", "taken"],
        &["--parent", "nobody"],
    ];
    for options in cases {
        let answer = home.run(&[&["run"], options, &["--", "true"]].concat()).exits(125);
        assert!(answer.err.starts_with("error: ") && answer.out.is_empty(), "{answer:?}");
    }
    home.run(&["run", "--"]).exits(125);
    let answer = home.run(&["run", "--json", "--", "true"]).exits(125);
    assert_eq!(answer.document()["error"]["code"], "usage");
}

#[test]
fn a_detached_run_answers_with_its_reference_alone() {
    let home = Home::new();
    let answer = home
        .run(&[
            "run",
            "-d",
            "--id",
            "far",
            "--",
            "sh",
            "-c",
            "echo heard; echo said >&2",
        ])
        .exits(0);
    assert_eq!((answer.out.as_str(), answer.err.as_str()), ("run/far\n", ""));
    let over = home.over("far");
    assert_eq!(over["status"], "completed");
    let drawn = home.done(&["run", "-d", "--", "true"]);
    let id = drawn.strip_prefix("run/").expect("a reference");
    assert!(
        id.len() >= 4 && id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()),
        "{id}"
    );
    home.over(id);
}

#[test]
fn a_detached_start_that_fails_answers_with_its_reference_too() {
    let home = Home::new();
    for (id, program, cwd, code) in [
        ("a", "/no/such", "/", 127),
        ("b", "/etc", "/", 126),
        ("c", "true", "/no/dir", 125),
    ] {
        let answer = home
            .run(&["run", "-d", "--id", id, "--cwd", cwd, "--", program])
            .exits(code);
        assert_eq!(answer.out, format!("run/{id}\n"));
        assert!(answer.err.starts_with(&format!("error: run/{id}: ")), "{}", answer.err);
        let shown = home.json(&["show", id]);
        assert_eq!(
            (&shown["status"], &shown["fields"]["exit_code"]),
            (&json!("failed"), &Value::Null),
            "{shown}"
        );
    }
}

/// Each start that fails is an end with a reason.
#[test]
fn a_start_that_fails_names_its_stage_and_leaves_nothing_alive() {
    let home = Home::new();
    for (id, options, program, code, stage) in [
        ("program", ["--cwd", "/"], "/no/such", "run.failed.spawn_error", "exec"),
        (
            "directory",
            ["--cwd", "/no/dir"],
            "true",
            "run.failed.missing_cwd",
            "directory",
        ),
        ("empty", ["--cwd", "/"], "", "run.failed.spawn_error", "command"),
    ] {
        home.run(&[&["run", "--id", id], options.as_slice(), &["--", program]].concat());
        let shown = home.json(&["show", id]);
        assert_eq!(shown["reason"]["code"], code, "{shown}");
        assert_eq!(shown["reason"]["evidence"][0]["stage"], stage, "{shown}");
        assert_eq!(shown["runtime"]["state"], "stopped", "{shown}");
    }
    assert_eq!(home.json(&["ls", "--live"]), json!([]));
}

#[test]
fn an_entity_tells_its_command_its_process_and_its_directory() {
    let home = Home::new();
    let gate = home.gate("gate");
    let options = [
        "--name",
        "nightly",
        "--tag",
        "team=core",
        "--resume-token",
        "t",
        "--spawn-kind",
        "flow",
        "--json",
    ];
    let read = format!("read x < {}", gate.display());
    let arguments = [
        &["run", "-d", "--id", "one"],
        options.as_slice(),
        &["--", "sh", "-c", &read],
    ]
    .concat();
    let shown = home.run(&arguments).exits(0).document();
    let here = std::fs::canonicalize(home.path(".")).expect("a directory");
    let expected = json!({
        "ref": "run/one", "kind": "run", "id": "one", "name": "nightly", "status": "running",
        "terminal": false, "success": false, "tags": {"team": "core"}, "parents": [], "children": [], "ended_at": null,
        "command": {"argv": ["sh", "-c", read], "cwd": here.to_str()},
        "run_dir": home.home().join("runs/one").to_str(),
    });
    for (name, value) in expected.as_object().expect("an object") {
        assert_eq!(&shown[name], value, "{name}");
    }
    let runtime = &shown["runtime"];
    assert_eq!(
        (&runtime["state"], &runtime["kind"]),
        (&json!("running"), &json!("local"))
    );
    assert_eq!(runtime["resume_token"], true);
    assert_eq!(shown["fields"]["spawn_kind"], "flow");
    assert!(lives(&runtime["pid"].to_string()), "{runtime}");
    for name in ["run.json", "stdout.log", "stderr.log", "artifacts"] {
        assert!(home.of_run("one", name).exists(), "{name}");
    }
    let _held = opened(&gate);
    let over = home.over("one");
    assert_eq!(
        (&over["fields"]["exit_code"], &over["fields"]["cause"]),
        (&json!(0), &json!("exit"))
    );
    assert!(home.of_run("one", "exit.json").exists());
}

#[test]
fn names_and_signs_mean_the_newest_run_they_fit() {
    let home = Home::new();
    home.done(&["run", "--id", "old", "--name", "job", "--", "true"]);
    home.run(&["run", "--id", "bad", "--", "false"]).exits(1);
    home.done(&["run", "--id", "new", "--name", "job", "--", "true"]);
    for (word, id) in [("job", "new"), ("@", "new"), ("@failed", "bad"), ("run/old", "old")] {
        assert_eq!(home.json(&["show", word])["id"], id, "{word}");
    }
    let text = format!("{PROGRAM} show @self --json");
    let inside = home.run(&script(&["--id", "me"], &text)).exits(0);
    assert_eq!(inside.document()["id"], "me");
    home.run(&["show", "@self"]).exits(2);
}

#[test]
fn a_program_finds_its_own_run_in_its_environment() {
    let home = Home::new();
    let answer = home.run(&["run", "--id", "env", "--", "env"]).exits(0);
    let directory = home.home().join("runs/env");
    for line in [
        "RUNWARDEN_REF=run/env".to_owned(),
        "RUNWARDEN_ID=env".to_owned(),
        "RUNWARDEN_ATTEMPT=1".to_owned(),
        format!("RUNWARDEN_RUN_DIR={}", directory.display()),
        format!("RUNWARDEN_HOME={}", home.home().display()),
        "USER=ada".to_owned(),
    ] {
        assert!(answer.out.lines().any(|found| found == line), "{line}: {}", answer.out);
    }
}

#[test]
fn a_cleared_environment_holds_what_was_given_and_what_is_ours() {
    let home = Home::new();
    let options = [
        "--id",
        "bare",
        "--clear-env",
        "--env",
        "A=b=c",
        "--env",
        "PASSED",
        "--env",
        "ABSENT",
    ];
    let arguments = [&["run"], options.as_slice(), &["--", "/usr/bin/env"]].concat();
    let answer = home
        .run_with(&arguments, &[("PASSED", "secret-value"), ("OTHER", "x")])
        .exits(0);
    let mut names: Vec<&str> = answer
        .out
        .lines()
        .filter(|line| !line.starts_with("RUNWARDEN_"))
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["A=b=c", "PASSED=secret-value"]);
    let stored = home.json(&["show", "bare", "--command"]).to_string();
    assert!(stored.contains("b=c") && stored.contains("PASSED"), "{stored}");
    assert!(!stored.contains("secret-value"), "{stored}");
}

#[test]
fn a_relative_program_is_looked_up_from_its_working_directory() {
    let home = Home::new();
    std::fs::create_dir(home.path("there")).expect("a directory");
    executable(&home.path("there/tool"), "#!/bin/sh\npwd\n");
    let answer = home.run(&["run", "--cwd", "there", "--", "./tool"]).exits(0);
    let there = std::fs::canonicalize(home.path("there")).expect("a directory");
    assert_eq!(answer.out.trim_end(), there.to_str().expect("a path in UTF-8"));
    home.run(&["run", "--", "./tool"]).exits(127);
}

#[test]
fn arguments_and_directories_may_be_any_bytes() {
    let home = Home::new();
    let odd = OsString::from_vec(b"a\xff\n b\t'$x".to_vec());
    let directory = home.path("").join(&odd);
    std::fs::create_dir(&directory).expect("a directory");
    let words = ["run", "--id", "odd", "--cwd"].map(OsStr::new);
    let program = ["--", "sh", "-c", r#"printf %s "$1"; pwd >&2"#, "sh"].map(OsStr::new);
    let arguments = [words.as_slice(), &[directory.as_os_str()], &program, &[odd.as_os_str()]].concat();
    let output = home.command(&arguments).output().expect("the program ends");
    assert_eq!(output.stdout, odd.as_bytes());
    let there = std::fs::canonicalize(&directory).expect("a directory");
    assert_eq!(output.stderr, [there.as_os_str().as_bytes(), b"\n"].concat());
    let shown = home.json(&["show", "odd"]);
    assert!(shown["command"]["argv"][4]["base64"].is_string(), "{shown}");
    assert!(shown["command"]["cwd"]["base64"].is_string(), "{shown}");
}

#[test]
fn a_program_deaf_to_term_is_killed_when_its_time_and_grace_are_over() {
    let home = Home::new();
    let text = r#"trap "" TERM; while :; do read x < /dev/zero; done"#;
    home.run(&script(
        &["--id", "deaf", "--timeout", "700ms", "--grace", "300ms"],
        text,
    ))
    .exits(124);
    let shown = home.over("deaf");
    assert_eq!(shown["status"], "timed_out");
    assert_eq!(
        (&shown["fields"]["term_signal"], &shown["fields"]["cause"]),
        (&json!(9), &json!("timeout"))
    );
    let record = home.exit_record("deaf");
    assert_eq!(
        (&record["stop"]["forced"], &record["set"]["empty"]),
        (&json!(true), &json!(true)),
        "{record}"
    );
    assert!(record["duration_ms"].as_u64() >= Some(1000), "{record}");
}

#[test]
fn a_stop_begins_with_the_signal_that_was_chosen() {
    let home = Home::new();
    let told = home.path("told");
    let text = format!(
        "trap 'echo interrupted; exit 3' INT; echo ready > {}; sleep 600",
        told.display()
    );
    home.detach("int", &["--stop-by", "INT", "--", "sh", "-c", &text]);
    home.told("told");
    home.done(&["kill", "int"]);
    let shown = home.over("int");
    assert_eq!(
        (&shown["status"], &shown["fields"]["exit_code"]),
        (&json!("cancelled"), &json!(3)),
        "{shown}"
    );
    assert_eq!(home.exit_record("int")["stop"]["signal"], "sigint");
    assert_eq!(home.done(&["logs", "int"]), "interrupted");
}

#[test]
fn a_stop_by_standard_input_ends_it_while_the_caller_holds_its_own() {
    let home = Home::new();
    let options = [
        "run",
        "--id",
        "in",
        "--stop-by",
        "stdin",
        "--timeout",
        "100ms",
        "--",
        "cat",
    ];
    let mut command = home.command(&options);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the program starts");
    let held = child.stdin.take().expect("a pipe");
    answered(child, options.join(" ")).exits(124);
    drop(held);
    let record = home.exit_record("in");
    assert_eq!(
        (&record["exit_code"], &record["stop"]["signal"]),
        (&json!(0), &json!("none")),
        "{record}"
    );
}

#[test]
fn a_run_is_linked_below_the_run_it_was_started_inside() {
    let home = Home::new();
    home.done(&["create", "session", "--id", "chosen"]);
    let text = format!(
        "{PROGRAM} run -d --id inner -- true; {PROGRAM} run -d --no-parent --id free -- true;
         {PROGRAM} run -d --parent chosen --id given -- true"
    );
    let answer = home.run(&script(&["--id", "outer"], &text)).exits(0);
    assert_eq!((answer.out.lines().count(), answer.err.as_str()), (3, ""));
    for (id, parents) in [
        ("inner", json!(["run/outer"])),
        ("free", json!([])),
        ("given", json!(["session/chosen"])),
        ("outer", json!([])),
    ] {
        assert_eq!(home.over(id)["parents"], parents, "{id}");
    }
}

#[test]
fn a_claim_to_be_inside_a_run_is_not_believed_without_proof() {
    let home = Home::new();
    let gate = home.gate("gate");
    home.detach("outer", &["--", "sh", "-c", &format!("read x < {}", gate.display())]);
    for (id, claim) in [("one", "outer"), ("two", "nobody")] {
        let arguments = ["run", "-d", "--id", id, "--", "true"];
        let answer = home
            .run_with(&arguments, &[("RUNWARDEN_ID", claim), ("RUNWARDEN_REF", claim)])
            .exits(0);
        assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
        assert!(answer.err.starts_with("warning:"), "{}", answer.err);
        assert_eq!(home.over(id)["parents"], json!([]));
    }
    let _held = opened(&gate);
    home.over("outer");
}

#[test]
fn what_is_wrong_before_the_start_leaves_no_run() {
    let home = Home::new();
    home.done(&["run", "--id", "taken", "--", "true"]);
    for (options, code) in [
        (["--id", "taken"], 4),
        (["--parent", "nobody"], 2),
        (["--parent", "taken"], 5),
        (["--kind", "team"], 64),
        (["--timeout", "soon"], 64),
    ] {
        home.run(&[&["run", "-d"], options.as_slice(), &["--", "true"]].concat())
            .exits(code);
    }
    assert_eq!(home.json(&["ls"]).as_array().map(Vec::len), Some(1));
}

#[test]
fn an_expected_artifact_is_found_in_either_place_and_by_pattern() {
    let home = Home::new();
    let cases = [
        (
            "in-run",
            "out/*.txt",
            r#"mkdir "$RUNWARDEN_RUN_DIR/artifacts/out"; : > "$RUNWARDEN_RUN_DIR/artifacts/out/a.txt""#,
            0,
        ),
        ("in-cwd", "here.txt", ": > here.txt", 0),
        ("in-none", "nowhere-*.txt", "true", 1),
        ("in-bad", "here.txt", "exit 4", 4),
    ];
    for (id, pattern, text, code) in cases {
        home.run(&script(&["--id", id, "--expect-artifact", pattern], text))
            .exits(code);
    }
    assert_eq!(
        home.json(&["show", "in-none"])["reason"]["code"],
        "run.failed.missing_artifact"
    );
    assert_eq!(
        home.json(&["show", "in-bad"])["reason"]["code"],
        "run.failed.exit_nonzero"
    );
}

#[test]
fn wanted_evidence_is_a_report_s_or_any_file_left() {
    let home = Home::new();
    let report = format!(": > proof; {PROGRAM} report --evidence proof >&2");
    let progress = format!("{PROGRAM} report --progress 1/2 --message half >&2");
    let cases = [
        ("none", "true", 1, "completed_empty"),
        ("alive", progress.as_str(), 1, "completed_empty"),
        ("reported", report.as_str(), 0, "completed"),
        ("left", r#": > "$RUNWARDEN_RUN_DIR/artifacts/x""#, 0, "completed"),
        ("bad", "exit 2", 2, "failed"),
    ];
    for (id, text, code, status) in cases {
        home.run(&script(&["--id", id, "--want-evidence"], text)).exits(code);
        assert_eq!(home.json(&["show", id])["status"], status, "{id}");
    }
}

#[test]
fn each_end_is_one_row_of_history_and_one_event_by_the_one_who_ended_it() {
    let home = Home::new();
    home.run(&["run", "--id", "seven", "--", "sh", "-c", "exit 7"]).exits(7);
    home.run(&["run", "--id", "late", "--timeout", "50ms", "--", "sleep", "600"])
        .exits(124);
    home.run(&["run", "--id", "absent", "--", "/no/such"]).exits(127);
    home.detach("killed", &["--", "sleep", "600"]);
    home.done(&["kill", "killed"]);
    for (id, status, actor) in [
        ("seven", "failed", json!({"kind": "executor", "id": "shim"})),
        ("late", "timed_out", json!({"kind": "executor", "id": "shim"})),
        ("absent", "failed", json!({"kind": "executor", "id": "run"})),
        ("killed", "cancelled", json!({"kind": "operator", "id": "ada"})),
    ] {
        home.over(id);
        let history = home.json(&["history", id]);
        let statuses: Vec<&Value> = history
            .as_array()
            .expect("rows")
            .iter()
            .map(|row| &row["status"])
            .collect();
        assert_eq!(statuses, ["running", status], "{id}");
        assert_eq!(history[1]["actor"], actor, "{id}");
        assert_eq!(history[0]["actor"]["kind"], "operator");
        let envelopes = envelopes(&home, id);
        assert_eq!(envelopes.len(), 1, "{id}");
        let envelope = &envelopes[0];
        assert_eq!(envelope["event_id"], history[1]["id"], "{id}: {envelope}");
        assert_eq!(envelope["terminal_status"], status, "{id}");
    }
}

/// The envelopes stored for an entity.
fn envelopes(home: &Home, id: &str) -> Vec<Value> {
    let database = rusqlite::Connection::open(home.home().join("state.db")).expect("the store");
    let query = "SELECT envelope FROM transitions WHERE envelope IS NOT NULL";
    let mut statement = database.prepare(query).expect("the query fits");
    let rows = statement.query_map([], |row| row.get::<_, String>(0)).expect("rows");
    rows.map(|text| serde_json::from_str::<Value>(&text.expect("text")).expect("JSON"))
        .filter(|envelope| envelope["entity"]["id"] == id)
        .collect()
}

#[test]
fn a_run_that_told_its_own_end_keeps_it_and_gains_its_exit_code() {
    let home = Home::new();
    let text = format!("{PROGRAM} report failed --reason run.failed.exception --message why >&2; exit 0");
    home.run(&script(&["--id", "told"], &text)).exits(1);
    let shown = home.over("told");
    assert_eq!(
        (&shown["status"], &shown["reason"]["code"]),
        (&json!("failed"), &json!("run.failed.exception"))
    );
    assert_eq!(shown["fields"]["exit_code"], 0, "{shown}");
    assert_eq!(envelopes(&home, "told").len(), 1);
}

/// A detached run that waits at a gate, started by a copy of the program.
fn by_a_copy(home: &Home) -> (std::path::PathBuf, std::path::PathBuf) {
    let copy = home.path("copy");
    std::fs::copy(PROGRAM, &copy).expect("a copy");
    let gate = home.gate("gate");
    let mut command = std::process::Command::new(&copy);
    command.args([
        "run",
        "-d",
        "--id",
        "one",
        "--",
        "sh",
        "-c",
        &format!("read x < {}; exit 5", gate.display()),
    ]);
    command
        .env("RUNWARDEN_HOME", home.home())
        .env("USER", "ada")
        .stdin(Stdio::null());
    let output = command.output().expect("the copy starts");
    assert!(output.status.success(), "{output:?}");
    (copy, gate)
}

/// What the store says, without a command that would record anything.
fn stored_status(home: &Home) -> String {
    let database = rusqlite::Connection::open(home.home().join("state.db")).expect("the store");
    let query = "SELECT status FROM transitions ORDER BY transition DESC LIMIT 1";
    database.query_row(query, [], |row| row.get(0)).expect("a row")
}

#[test]
fn an_end_is_recorded_by_the_kept_image_when_the_program_is_removed() {
    let home = Home::new();
    let (copy, gate) = by_a_copy(&home);
    std::fs::remove_file(copy).expect("the copy is there");
    let _held = opened(&gate);
    until("the end is recorded", || stored_status(&home) == "failed");
    assert_eq!(home.over("one")["fields"]["exit_code"], 5);
}

#[test]
fn an_end_that_nobody_could_record_is_recorded_by_the_next_command_that_reads_the_run() {
    let home = Home::new();
    let (copy, gate) = by_a_copy(&home);
    let other = home.path("other");
    executable(&other, "#!/bin/sh\necho tried >> \"$0.tried\"\nexit 1\n");
    std::fs::rename(other, &copy).expect("the copy is replaced");
    let _held = opened(&gate);
    assert_eq!(home.told("copy.tried"), "tried");
    assert_eq!(stored_status(&home), "running");
    let shown = home.json(&["show", "one"]);
    assert_eq!(
        (&shown["status"], &shown["fields"]["exit_code"]),
        (&json!("failed"), &json!(5)),
        "{shown}"
    );
    assert_eq!(envelopes(&home, "one").len(), 1);
}

#[test]
fn other_kinds_are_run_under_their_own_policy() {
    let home = Home::new();
    for kind in ["session", "invocation", "sessions"] {
        let answer: Answer = home.run(&["run", "-d", "--kind", kind, "--", "true"]).exits(0);
        let id = answer.out.trim_end().split_once('/').expect("a reference").1.to_owned();
        let over = home.over(&id);
        assert_eq!(
            (&over["status"], &over["kind"]),
            (&json!("completed"), &json!(kind.trim_end_matches('s')))
        );
    }
}
