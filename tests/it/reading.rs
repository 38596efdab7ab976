//! logs and wait: what a run wrote, and that it ended, as it comes.

use std::process::Stdio;
use std::time::Duration;

use runwarden_host::POLL;
use serde_json::{Value, json};

use crate::harness::{Home, answered, host, lives, opened, until};

/// A shell script as a run in the foreground, its output dropped.
fn ran(home: &Home, id: &str, text: &str) {
    home.run(&["run", "--quiet", "--id", id, "--", "sh", "-c", text]);
}

/// A script that writes parts so that they arrive one by one: each is in its log before the next is written.
fn in_parts(home: &Home, id: &str, parts: &[(&str, &str)]) {
    let (gate, done) = (home.gate(&format!("{id}-gate")), home.of_run(id, "order.log"));
    let writes: Vec<String> = parts
        .iter()
        .map(|(text, stream)| format!("read x; printf '{text}' >&{stream}"))
        .collect();
    let text = format!(
        "exec 3< {}; {}",
        gate.display(),
        writes.join(" <&3; ").replace("read x;", "read x <&3;")
    );
    home.detach(id, &["--", "sh", "-c", &text]);
    let mut held = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&gate)
        .expect("the gate");
    for (index, _) in parts.iter().enumerate() {
        std::io::Write::write_all(&mut held, b"go\n").expect("a pipe has room");
        until("the part has arrived", || {
            let logs = ["stdout.log", "stderr.log"]
                .map(|log| std::fs::metadata(home.of_run(id, log)).map_or(0, |log| log.len()));
            let wanted: usize = parts[..=index]
                .iter()
                .map(|(text, _)| text.replace("\\n", "\n").len())
                .sum();
            logs.iter().sum::<u64>() == u64::try_from(wanted).unwrap_or(0) && done.exists()
        });
    }
    home.over(id);
}

#[test]
fn logs_are_told_in_the_order_in_which_they_arrived() {
    let home = Home::new();
    in_parts(
        &home,
        "one",
        &[("a\\n", "1"), ("b\\n", "2"), ("c\\n", "1"), ("d\\n", "2")],
    );
    let mut command = home.command(&["logs", "one"]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    command.stdout(writer.try_clone().expect("a copy")).stderr(writer);
    let mut child = command.spawn().expect("the program starts");
    drop(command);
    assert_eq!(std::io::read_to_string(reader).expect("text"), "a\nb\nc\nd\n");
    assert!(child.wait().expect("it ends").success());
    let answer = home.run(&["logs", "one"]).exits(0);
    assert_eq!((answer.out.as_str(), answer.err.as_str()), ("a\nc\n", "b\nd\n"));
    assert_eq!(home.run(&["logs", "one", "--stdout"]).exits(0).err, "");
    assert_eq!(home.run(&["logs", "one", "--stderr"]).exits(0).out, "");
}

#[test]
fn a_tail_counts_whole_lines_over_both_streams() {
    let home = Home::new();
    let parts = [
        ("one\\nt", "1"),
        ("err\\n", "2"),
        ("wo\\n", "1"),
        ("x", "2"),
        ("three\\n", "1"),
        ("y\\n", "2"),
    ];
    in_parts(&home, "parts", &parts);
    for (lines, out, err) in [
        ("0", "", ""),
        ("1", "three\n", ""),
        ("2", "three\n", "xy\n"),
        ("3", "three\n", "err\nxy\n"),
        ("4", "two\nthree\n", "err\nxy\n"),
        ("5", "one\ntwo\nthree\n", "err\nxy\n"),
        ("99", "one\ntwo\nthree\n", "err\nxy\n"),
    ] {
        let answer = home.run(&["logs", "parts", "--tail", lines]).exits(0);
        assert_eq!((answer.out.as_str(), answer.err.as_str()), (out, err), "--tail {lines}");
    }
}

#[test]
fn a_line_of_json_is_a_line_of_the_program_though_it_arrived_in_parts() {
    let home = Home::new();
    in_parts(&home, "parts", &[("on", "1"), ("err\\n", "2"), ("e\\nrest", "1")]);
    let found = json_lines(&home.run(&["logs", "parts", "--json"]).exits(0).out);
    let told: Vec<(&Value, &Value)> = found.iter().map(|line| (&line["stream"], &line["line"])).collect();
    let expected = [("stderr", "err\n"), ("stdout", "one\n"), ("stdout", "rest")].map(|(s, l)| (json!(s), json!(l)));
    let expected: Vec<(&Value, &Value)> = expected.iter().map(|(stream, line)| (stream, line)).collect();
    assert_eq!(told, expected);
    assert!(found.iter().all(|line| line["at"].is_string()), "{found:?}");
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a document on each line"))
        .collect()
}

#[test]
fn bytes_that_are_not_text_are_printed_as_they_are_and_coded_in_json() {
    let home = Home::new();
    ran(&home, "odd", r"printf 'a\377\000\n'");
    let output = home.command(&["logs", "odd"]).output().expect("the program ends");
    assert_eq!(output.stdout, b"a\xff\0\n");
    let found = json_lines(&home.run(&["logs", "odd", "--json"]).exits(0).out);
    assert_eq!(found[0]["line"], json!({"base64": "Yf8ACg=="}));
}

#[test]
fn a_follower_sees_all_of_it_and_leaves_when_it_is_over() {
    let home = Home::new();
    let gate = home.gate("gate");
    home.detach(
        "one",
        &[
            "--",
            "sh",
            "-c",
            &format!("echo first; read x < {}; echo last", gate.display()),
        ],
    );
    let follower = home.start(&["logs", "-f", "one"]);
    let late = home.start(&["logs", "-f", "one", "--tail", "1"]);
    until("the first line is there", || !home.done(&["logs", "one"]).is_empty());
    let _held = opened(&gate);
    assert_eq!(answered(follower, "logs -f".to_owned()).exits(0).out, "first\nlast\n");
    assert!(
        answered(late, "logs -f --tail 1".to_owned())
            .exits(0)
            .out
            .ends_with("last\n")
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let home = Home::new();
    ran(&home, "long", "head -c 2000000 /dev/zero");
    let mut child = home.start(&["logs", "long"]);
    drop(child.stdout.take());
    let answer = answered(child, "logs long".to_owned()).exits(0);
    assert_eq!(answer.err, "");
}

#[test]
fn a_program_learns_that_its_reader_went_away() {
    let home = Home::new();
    let mut child = home.start(&["run", "--id", "yes", "--", "yes"]);
    drop(child.stdout.take());
    answered(child, "run -- yes".to_owned()).exits(141);
    assert_eq!(home.over("yes")["fields"]["term_signal"], 13);
}

#[test]
fn only_what_was_run_has_logs() {
    let home = Home::new();
    home.done(&["create", "session", "--id", "bare"]);
    home.run(&["logs", "bare"]).exits(2).hints("runwarden ls run");
    home.run(&["logs", "nobody"]).exits(2);
    home.run(&["logs"]).exits(2);
    ran(&home, "new", "echo newest");
    assert_eq!(home.done(&["logs"]), "newest");
}

#[test]
fn a_commit_of_another_process_wakes_who_waits_before_a_poll_would() {
    let home = Home::new();
    home.done(&["create", "session", "--id", "one"]);
    let host = host(&home.home());
    let watch = host.wake_file().watch();
    home.done(&["transition", "one", "completed", "--reason", "run.completed.ok"]);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    // The commit is over: its event is there, or on its way, and the poll is a whole period off.
    let woken =
        runtime.block_on(async { tokio::time::timeout(POLL - Duration::from_millis(100), watch.changed()).await });
    assert!(woken.is_ok(), "the poll woke it");
}

#[test]
fn fifty_runs_are_waited_for_at_once() {
    let home = Home::new();
    let gate = home.gate("gate");
    let ids: Vec<String> = (0..50).map(|number| format!("run-{number}")).collect();
    let text = format!("read x < {}", gate.display());
    for id in &ids {
        home.detach(id, &["--tag", "batch=7", "--", "sh", "-c", &text]);
    }
    let waiter = home.start(&["wait", "--tag", "batch=7"]);
    crate::harness::until_watching(&waiter);
    // Each reads a byte at a time: nothing but the end of the pipe is one line for all of them.
    drop(
        std::fs::OpenOptions::new()
            .write(true)
            .open(&gate)
            .expect("somebody waits at the gate"),
    );
    until("everybody is through", || {
        drop(
            std::fs::OpenOptions::new()
                .read(true)
                .write(true)
                .open(&gate)
                .expect("the gate"),
        );
        ids.iter().all(|id| home.of_run(id, "exit.json").exists())
    });
    let answer = answered(waiter, "wait --tag batch=7".to_owned());
    let mut told: Vec<&str> = answer.out.lines().filter_map(|line| line.split('\t').next()).collect();
    told.sort_unstable();
    let mut expected: Vec<&str> = ids.iter().map(String::as_str).collect();
    expected.sort_unstable();
    assert_eq!(told, expected);
    assert!(
        answer.out.lines().all(|line| line.contains("\tstatus=")),
        "{}",
        answer.out
    );
}

#[test]
fn a_line_is_told_as_each_ends() {
    let home = Home::new();
    let gates = ["one", "two"].map(|id| {
        let gate = home.gate(&format!("gate-{id}"));
        home.detach(id, &["--", "sh", "-c", &format!("read x < {}; exit 3", gate.display())]);
        gate
    });
    let mut command = home.command(&["wait", "one", "two"]);
    let mut waiter = command.stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(waiter.stdout.take().expect("a pipe")));
    let mut next = || lines.next().expect("a line").expect("text");
    let held = opened(&gates[1]);
    let line = next();
    let directory = home.home().join("runs/two");
    let expected = format!(
        "two\tstatus=failed\treason=run.failed.exit_nonzero\tartifact_dir={}\texit_code=3",
        directory.display()
    );
    assert_eq!(line, expected);
    assert!(waiter.try_wait().expect("a child").is_none(), "one is waited for still");
    drop((held, opened(&gates[0])));
    assert!(next().starts_with("one\t"));
    assert_eq!(waiter.wait().expect("it ends").code(), Some(1));
}

#[test]
fn wait_leaves_with_the_program_s_code_and_tells_a_signal_as_a_negative_number() {
    let home = Home::new();
    ran(&home, "seven", "exit 7");
    ran(&home, "nine", "kill -9 $$");
    assert!(
        home.run(&["wait", "seven", "--exit-code"])
            .exits(7)
            .out
            .ends_with("\texit_code=7\n")
    );
    assert!(
        home.run(&["wait", "nine", "--exit-code"])
            .exits(137)
            .out
            .ends_with("\texit_code=-9\n")
    );
}

#[test]
fn the_end_of_a_program_is_told_though_a_descendant_holds_its_output() {
    let home = Home::new();
    let text = format!("sleep 600 & echo $! > {}; echo said", home.path("pid").display());
    let answer = home.run(&["run", "--id", "one", "--", "sh", "-c", &text]).exits(0);
    assert_eq!(answer.out, "said\n");
    let pid = home.told("pid");
    assert!(lives(&pid), "it goes on");
    home.done(&["kill", "one", "--grace", "0"]);
    assert!(!lives(&pid));
}
