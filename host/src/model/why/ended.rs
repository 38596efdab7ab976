//! How an entity ended, and what that means.

use serde_json::Value;

use super::super::lease::kept_wish;
use super::super::{Cause, DurationMs, Evidence, ExecutionRule, Outcome, RuntimeKind, signal_name};
use super::live::{counted, of_its_own, running};
use super::{Case, Explanation, Sight};

/// Error numbers of a start, as Linux has them.
const NOT_THERE: i64 = 2;
const NOT_PERMITTED: i64 = 1;
const TOO_LONG: i64 = 7;
const NO_FORMAT: i64 = 8;
const NO_ACCESS: i64 = 13;
const NO_ROOM: i64 = 28;

/// Signals that have a meaning of their own here, as Linux has them.
const HUP: i64 = 1;
const KILL: i64 = 9;
const PIPE: i64 = 13;
const TERM: i64 = 15;
const XCPU: i64 = 24;
const XFSZ: i64 = 25;
const CRASHES: [i64; 6] = [4, 5, 6, 7, 8, 11];

/// Explains an entity that has ended, and what of it goes on.
pub(super) fn explain(case: &Case<'_>) -> Explanation {
    let mut answer = death(case);
    answer.facts.insert(
        0,
        super::Fact {
            what: "reason",
            value: case.code(),
        },
    );
    let summary = case.entity.reason.summary.as_ref();
    let is_said = |summary: &&String| {
        answer.headline.contains(summary.as_str()) || answer.facts.iter().any(|fact| fact.value == **summary)
    };
    let news = summary.filter(|summary| !is_said(summary)).cloned();
    answer.maybe("in words", news);
    let wish = case.entered.and_then(|row| kept_wish(&row.reason));
    if let Some(wish) = wish {
        answer = try_again(case, answer, wish);
    }
    if let Some(runtime) = case.runtime.filter(|runtime| !runtime.is_stopped()) {
        let goes_on = match case.sight {
            Sight::Held(processes) if runtime.kind == RuntimeKind::Local => counted(
                of_its_own(processes),
                "process of it lives on",
                "processes of it live on",
            ),
            _ => running(case, runtime).headline,
        };
        answer.headline = format!("{}; {goes_on}", answer.headline);
        case.processes(&mut answer);
        answer.next.insert(0, case.command("kill"));
    }
    answer
}

/// Its verdict asked for another attempt: only a queue makes one.
fn try_again(case: &Case<'_>, answer: Explanation, wish: DurationMs) -> Explanation {
    if case.is_attempt {
        return answer.with(
            "try again",
            format!("its policy would, after {wish}; what it was queued as decides"),
        );
    }
    let kind = &case.entity.reference.kind;
    answer
        .with(
            "try again",
            format!("its policy would, after {wish}; submit it to the queue for that"),
        )
        .then(format!("runwarden submit --run-kind {kind} -- PROGRAM"))
}

fn death(case: &Case<'_>) -> Explanation {
    let evidence = case.entity.reason.evidence.first().unwrap_or(&Value::Null);
    if let Some(answer) = never_began(case, evidence) {
        return answer;
    }
    let rule = case.lifecycle.descriptor().execution.as_ref();
    if let Some(answer) = rule.and_then(|rule| by_rule(case, rule)) {
        return answer;
    }
    let word = case.entity.structural.cause.as_deref().and_then(Cause::from_word);
    match word {
        Some(Cause::Kill) => killed(case, evidence),
        Some(Cause::Oom) => Explanation::new("the kernel killed its program for want of memory")
            .with("memory", most_memory(evidence))
            .then("journalctl -k --grep oom")
            .then(case.command("logs")),
        Some(Cause::Signal) => signalled(case, evidence),
        Some(Cause::Exit) => exited(case),
        // The rule's own outcomes tell these; a policy of one's own may name others.
        Some(Cause::Timeout) => Explanation::new("it was stopped at its time limit").then(case.command("logs")),
        Some(Cause::Hangup) => Explanation::new("it was stopped because its terminal went away"),
        Some(Cause::HostRestarted) => Explanation::new("the machine restarted under it"),
        Some(Cause::Unobserved) => unobserved(case),
        None if evidence["signal"] == "no_process" => killed(case, evidence),
        None => moved(case),
    }
}

/// A start that failed, by its stage.
fn never_began(case: &Case<'_>, evidence: &Value) -> Option<Explanation> {
    let error = [&evidence["spawn_error"], evidence]
        .into_iter()
        .find(|error| error["stage"].is_string())?;
    let (stage, errno) = (error["stage"].as_str()?, error["errno"].as_i64().unwrap_or(0));
    let headline = match (stage, errno) {
        ("directory", NOT_THERE) => "it never began: its working directory does not exist",
        ("directory", _) => "it never began: its working directory cannot be entered",
        ("exec", NOT_THERE) => "it never began: its program is not found, or the interpreter in its first line is not",
        ("exec", NO_ACCESS | NOT_PERMITTED) => {
            "it never began: its program may not be executed (its mode, or a file system mounted noexec)"
        }
        ("exec", NO_FORMAT) => "it never began: its program is neither a binary of this machine nor a script with #!",
        ("exec", TOO_LONG) => "it never began: its arguments and environment are too long",
        ("exec", _) => "it never began: its program could not be executed",
        ("reserve", _) => "it never began: no room for the record of its end",
        (_, NO_ROOM) => "it never began: the disk is full",
        ("terminal", _) => "it never began: no pseudo-terminal was to be had",
        ("stopped" | "gate", _) => {
            "it never began: it was stopped, or its starter ended, before its program was let go"
        }
        _ => "it never began: a step of its start failed",
    };
    let mut answer = Explanation::new(headline).with("stage", stage);
    if let Some(errno) = i32::try_from(errno).ok().filter(|errno| *errno != 0) {
        answer.fact("error", std::io::Error::from_raw_os_error(errno).to_string());
    }
    Some(if errno == NO_ROOM || stage == "reserve" {
        answer.then("runwarden doctor")
    } else {
        answer.then(case.work())
    })
}

/// What the host itself wrote, by the outcomes that the policy names for it.
fn by_rule(case: &Case<'_>, rule: &ExecutionRule) -> Option<Explanation> {
    let is = |outcome: &Outcome| case.entity.reason.code == outcome.code && case.entity.status == outcome.status;
    let logs = case.command("logs");
    let how = ended_with(case);
    Some(if is(&rule.verdict_failed) {
        Explanation::new("its policy failed to judge its end, which counts as a failure")
            .with("program", how)
            .then(case.command("history --admin"))
            .then(format!("runwarden policy rollback {}", case.entity.reference.kind))
    } else if is(&rule.identity_lost) {
        Explanation::new("nobody learned which process was started: its start was cut off").then(logs)
    } else if is(&rule.host_restarted) {
        Explanation::new("the machine restarted under it, and no end was seen before").then(logs)
    } else if is(&rule.ended_unobserved) {
        unobserved(case)
    } else if is(&rule.timed_out) {
        Explanation::new("it was stopped at its time limit")
            .with("program", how)
            .then(logs)
            .then(case.work())
    } else if is(&rule.hung_up) {
        Explanation::new("it was stopped because its terminal went away; `run --on-hangup detach` lets it go on")
            .with("program", how)
            .then(logs)
    } else if is(&rule.interrupted) {
        Explanation::new("it was interrupted from its terminal")
            .with("program", how)
            .then(logs)
    } else if is(&rule.terminated) {
        Explanation::new(
            "the command or the shim that held it was told to end: a logout, a shutdown, a kill from outside",
        )
        .with("program", how)
        .then(logs)
    } else if is(&rule.parent_gone) {
        Explanation::new("the command that started it ended, and it was to die with it")
            .with("program", how)
            .then(logs)
    } else {
        return None;
    })
}

fn unobserved(case: &Case<'_>) -> Explanation {
    Explanation::new("it ended, and nobody could see how: its shim was killed before it")
        .with("exit code", "unknown, and none is invented")
        .then(case.command("logs"))
        .then("journalctl -k --grep oom")
}

fn killed(case: &Case<'_>, evidence: &Value) -> Explanation {
    let who = case
        .entered
        .map_or_else(|| "somebody".to_owned(), |row| row.actor.to_string());
    let note = evidence["note"]
        .as_str()
        .map(|note| format!(": {note}"))
        .unwrap_or_default();
    let mut answer = Explanation::new(format!("it was killed by {who}{note}"));
    if evidence["signal"] == "no_process" {
        answer.fact("processes", "none: it never had one, or none was left");
    } else {
        answer.fact("program", ended_with(case));
    }
    let stop = &evidence["stop"];
    answer.maybe("strongest signal", stop["signal"].as_str());
    answer.maybe("proof that nothing is left", evidence["proof"].as_str());
    answer.then(case.command("history"))
}

fn signalled(case: &Case<'_>, evidence: &Value) -> Explanation {
    let number = case.entity.structural.term_signal.unwrap_or(0);
    let name = signal_name(number);
    let logs = case.command("logs");
    let answer = match number {
        KILL => Explanation::new(
            "something else than Runwarden killed its program with SIGKILL: often the kernel, out of memory",
        )
        .with("memory", most_memory(evidence))
        .then("journalctl -k --grep oom")
        .then(logs),
        HUP => Explanation::new("its program died by SIGHUP: its terminal or session went away").then(logs),
        TERM => Explanation::new("something else than Runwarden told its program to end (SIGTERM)").then(logs),
        PIPE => Explanation::new("its program wrote to a reader that had gone (SIGPIPE)").then(logs),
        XCPU => Explanation::new("its program used up its limit of processor time (SIGXCPU)").then("ulimit -t"),
        XFSZ => Explanation::new("its program wrote a larger file than its limit admits (SIGXFSZ)").then("ulimit -f"),
        _ if CRASHES.contains(&number) => Explanation::new(format!("its program crashed ({name})"))
            .then(logs)
            .then("coredumpctl info"),
        _ => Explanation::new(format!("its program died by {name}, which Runwarden did not send")).then(logs),
    };
    let core = if evidence["core_dumped"] == Value::Bool(true) {
        ", core dumped"
    } else {
        ""
    };
    answer.with("program", format!("died by signal {number}{core}"))
}

fn exited(case: &Case<'_>) -> Explanation {
    let code = case.entity.structural.exit_code.unwrap_or(0);
    let (logs, status) = (case.command("logs"), &case.entity.status);
    match (code, case.entity.success) {
        (0, true) => Explanation::new("it ended well")
            .with("program", "exited with 0")
            .then(logs),
        (0, false) => exited_in_vain(case),
        (code, true) => Explanation::new(format!(
            "its program exited with {code}, which its policy counts as {status}"
        ))
        .then(logs),
        (code, false) => {
            let meaning = meaning(code).map(|meaning| format!(": {meaning}")).unwrap_or_default();
            let answer = Explanation::new(format!("its program exited with {code}{meaning}"));
            answer.then(logs).then(case.work())
        }
    }
}

/// It exited with 0, and that was not enough.
fn exited_in_vain(case: &Case<'_>) -> Explanation {
    let rows = case.lifecycle.descriptor().verdicts.iter();
    let mut wanted = rows
        .filter(|row| row.outcome.code == case.entity.reason.code)
        .filter_map(|row| Evidence::from_word(row.evidence.as_deref()?));
    let show = case.work();
    let answer = match wanted.next() {
        Some(Evidence::ArtifactMissing) => {
            Explanation::new("its program exited with 0, but a file that was expected of it is missing").then(show)
        }
        Some(Evidence::WantedAndAbsent) => {
            Explanation::new("its program exited with 0 and left no evidence of its work, which was wanted").then(show)
        }
        Some(Evidence::NotWanted | Evidence::Present) | None => Explanation::new(format!(
            "its program exited with 0, and its policy judged that as {}",
            case.entity.status
        ))
        .then(format!("runwarden policy show {}", case.entity.reference.kind)),
    };
    answer.then(case.command("logs"))
}

/// What a code means to shells and to programs that start programs.
fn meaning(code: i64) -> Option<String> {
    Some(match code {
        124 => "a limit has passed, as `timeout` tells it".to_owned(),
        125 => "what was to start a program failed itself, as such programs tell it".to_owned(),
        126 => "a command in it may not be executed, as shells tell it".to_owned(),
        127 => "a command in it is not found, as shells tell it".to_owned(),
        129..=192 => format!("a command in it died by {}, as shells tell it", signal_name(code - 128)),
        _ => return None,
    })
}

/// Somebody brought it there; no process ended.
fn moved(case: &Case<'_>) -> Explanation {
    let (status, history) = (&case.entity.status, case.command("history"));
    let Some(row) = case.entered else {
        return Explanation::new(format!("it is {status}")).then(history);
    };
    match &row.previous_status {
        Some(previous) => Explanation::new(format!("it was brought from {previous} to {status} by {}", row.actor)),
        None => Explanation::new(format!(
            "it was recorded as {status} from the beginning by {}",
            row.actor
        )),
    }
    .then(history)
}

/// How its program ended, in words.
fn ended_with(case: &Case<'_>) -> String {
    let fields = &case.entity.structural;
    match (fields.exit_code, fields.term_signal) {
        (Some(code), _) => format!("exited with {code}"),
        (None, Some(signal)) => format!("died by {}", signal_name(signal)),
        (None, None) => "nobody saw how it ended".to_owned(),
    }
}

fn most_memory(evidence: &Value) -> String {
    evidence["max_resident_bytes"]
        .as_i64()
        .filter(|bytes| *bytes > 0)
        .map_or_else(
            || "not measured".to_owned(),
            |bytes| format!("at most {} MiB at once", bytes >> 20),
        )
}
