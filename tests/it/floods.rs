//! A program that writes without end: bounded logs, bounded memory, and nothing lost to whoever reads along.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;

use crate::harness::{Home, answered, opened, until};

const LINES: u32 = 600_000;
const LIMIT: &str = "1MiB";
const LIMIT_BYTES: usize = 1 << 20;
const COMMAND: [&str; 3] = ["seq", "1", "600000"];

fn everything() -> String {
    (1..=LINES).map(|line| format!("{line}\n")).collect()
}

fn flooded(home: &Home) {
    home.detach("one", &[["--log-limit", LIMIT, "--"].as_slice(), &COMMAND].concat());
    home.over("one");
}

#[test]
fn a_flood_is_kept_at_its_beginning_and_at_its_end() {
    let home = Home::new();
    flooded(&home);
    let log = std::fs::metadata(home.of_run("one", "stdout.log")).expect("a log");
    let all = everything();
    assert_eq!(log.size(), all.len() as u64);
    assert!(
        log.blocks() * 512 <= (LIMIT_BYTES + (256 << 10)) as u64,
        "{} blocks",
        log.blocks()
    );
    let printed = home.run(&["logs", "one"]).exits(0);
    let dropped = home.exit_record("one")["dropped_output_bytes"]
        .as_u64()
        .expect("a number");
    assert_eq!(printed.out.len() as u64 + dropped, all.len() as u64);
    assert!(printed.out.len() > LIMIT_BYTES / 2);
    let (head, tail) = printed.out.split_at(LIMIT_BYTES / 16);
    assert!(all.starts_with(head) && all.ends_with(tail));
    let mark = format!("[{dropped} bytes of stdout were dropped here");
    assert!(printed.err.contains(&mark), "{}", printed.err);
    let documents = home.run(&["logs", "one", "--json"]).exits(0).out;
    let mark = format!(r#""dropped_bytes":{dropped},"#);
    assert_eq!(documents.matches(&mark).count(), 1, "{mark}");
    let last = home.done(&["logs", "one", "--tail", "2"]);
    assert_eq!(last, "599999\n600000");
}

#[test]
fn who_asks_for_more_last_lines_than_are_kept_gets_those_that_are() {
    let home = Home::new();
    flooded(&home);
    let tail = home.run(&["logs", "one", "--tail", "500000"]).exits(0).out;
    assert!(tail.ends_with("\n600000\n") && !tail.starts_with("1\n") && everything().ends_with(&tail));
}

#[test]
fn a_slow_reader_of_a_run_in_the_foreground_misses_nothing() {
    let home = Home::new();
    let arguments = [["run", "--id", "one", "--log-limit", LIMIT, "--"].as_slice(), &COMMAND].concat();
    let mut child = home.start(&arguments);
    let log = home.of_run("one", "stdout.log");
    let length = || std::fs::metadata(&log).map_or(0, |log| log.len());
    // Nobody reads: the program is held up when the log is full.
    until("the log is full", || length() > LIMIT_BYTES as u64);
    assert!(length() < everything().len() as u64);
    let mut out = String::new();
    let mut stdout = child.stdout.take().expect("a pipe");
    stdout.read_to_string(&mut out).expect("text");
    answered(child, "run".to_owned()).exits(0);
    assert!(out == everything(), "{} bytes", out.len());
    home.over("one");
}

#[test]
fn a_flood_is_followed_to_its_end() {
    let home = Home::new();
    let gate = home.gate("gate");
    let script = format!("read x < {}; exec {}", gate.display(), COMMAND.join(" "));
    home.detach("one", &["--log-limit", LIMIT, "--", "sh", "-c", &script]);
    let follower = home.start(&["logs", "-f", "one"]);
    let _open = opened(&gate);
    let followed = answered(follower, "logs -f".to_owned()).exits(0);
    assert!(followed.out.ends_with("\n600000\n"));
    assert!(!followed.out.contains('\0'));
    home.over("one");
}

#[test]
fn two_streams_that_take_turns_are_both_whole() {
    let home = Home::new();
    let script = "i=0; while [ $i -lt 20000 ]; do echo $i; echo $i >&2; i=$((i + 1)); done";
    home.detach("one", &["--log-limit", LIMIT, "--", "sh", "-c", script]);
    home.over("one");
    let printed = home.run(&["logs", "one"]).exits(0);
    assert_eq!(printed.out, printed.err);
}

#[test]
fn a_shim_stays_small_while_a_program_writes_without_end() {
    let home = Home::new();
    home.detach("one", &["--log-limit", LIMIT, "--", "yes"]);
    let shim = home.json(&["show", "one"])["runtime"]["shim_pid"].to_string();
    let log = home.of_run("one", "stdout.log");
    until("a flood", || {
        std::fs::metadata(&log).is_ok_and(|log| log.len() > 64 << 20)
    });
    let status = std::fs::read_to_string(format!("/proc/{shim}/status")).expect("a shim");
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .expect("a peak");
    let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    home.run(&["kill", "one", "--grace", "0"]).exits(0);
    assert!(kilobytes <= 4096, "{kilobytes} KiB at its largest");
    let log = std::fs::metadata(&log).expect("a log");
    assert!(
        log.blocks() * 512 <= (LIMIT_BYTES + (2 << 20)) as u64,
        "{} blocks",
        log.blocks()
    );
    home.over("one");
}

#[test]
fn a_limit_too_small_to_divide_is_refused() {
    let home = Home::new();
    let answer = home
        .run(&["run", "--detach", "--log-limit", "10k", "--", "true"])
        .exits(64);
    assert!(answer.err.contains("1MiB is the least"), "{}", answer.err);
}
