//! From the text of a case file to its table; every problem is kept with its line.

use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::cases::{Asks, Case, CaseTable, NOW};
use super::exit::ExitCase;
use super::expect::Expected;
use super::health::HealthCase;
use super::moves::{Child, GuardCase, MoveCase, Situation, Was};
use super::plan::PlanCase;
use super::row::{Lines, Problem, Row, object};
use crate::model::{Actor, Cause, Evidence, HealthLevel};

/// What a section's rows become.
type Reader = fn(&mut Row<'_>) -> Asks;

const SECTIONS: [(&str, &str, Reader); 5] = [
    ("case", "[[case]]", read_move),
    ("exit", "[[exit]]", read_exit),
    ("guard", "[[guard]]", read_guard),
    ("health", "[[health]]", read_health),
    ("plan", "[[plan]]", read_plan),
];

/// The table, as far as it could be read, and what is wrong with it.
pub(super) fn read(text: &str) -> (CaseTable, Vec<Problem>) {
    let lines = Lines::of(text);
    let (document, errors) = DeTable::parse_recoverable(text);
    let syntax = errors.iter().map(|error| Problem {
        line: error.span().map_or(1, |span| lines.line(&span)),
        message: format!("no TOML: {}", error.message()),
    });
    let mut problems: Vec<Problem> = syntax.collect();
    if !problems.is_empty() {
        // What comes after is guesswork of the parser's.
        return (CaseTable::default(), problems);
    }
    let document = document.get_ref();
    let mut top = Row::new("the file", document, &lines, 1);
    let mut table = CaseTable {
        parameters: parameters(document, &lines),
        cases: Vec::new(),
    };
    top.fields("parameters");
    for (key, what, reader) in SECTIONS {
        table.cases.extend(top.rows(key, what, |row| {
            let name = row.text("name");
            let line = row.line();
            let asks = reader(row);
            Case { name, line, asks }
        }));
    }
    table.cases.sort_by_key(|case| case.line);
    problems.extend(top.finish());
    (table, problems)
}

fn parameters(document: &DeTable<'_>, lines: &Lines) -> Vec<(String, Value, usize)> {
    let section = document.iter().find(|(name, _)| name.get_ref() == "parameters");
    let Some(table) = section.and_then(|(_, value)| DeValue::as_table(value.get_ref())) else {
        return Vec::new();
    };
    let lines_of = table.iter().map(|(name, _)| lines.line(&name.span()));
    let values = object(table);
    let in_order = table.iter().map(|(name, _)| name.get_ref().to_string());
    let value = |name: &String| values.get(name).cloned().unwrap_or(Value::Null);
    in_order
        .zip(lines_of)
        .map(|(name, line)| (name.clone(), value(&name), line))
        .collect()
}

fn situation(row: &mut Row<'_>) -> Situation {
    let now = row.moment("now").unwrap_or(NOW);
    Situation {
        from: row.required("from"),
        to: row.required("to"),
        actor: row.actor("actor").unwrap_or_else(|| Actor::new("operator", "cases")),
        reason: row.text("reason"),
        set: row.fields("set"),
        guards: row.fields("guards"),
        fields: row.fields("fields"),
        tags: row.tags("tags"),
        now,
        history: row.rows("history", "history", |row| Was {
            status: row.required("status"),
            actor: row.actor("actor").unwrap_or_else(|| Actor::new("operator", "cases")),
            reason: row.text("reason"),
            at: row.moment("at").unwrap_or(now),
        }),
        children: row.rows("children", "children", |row| Child {
            kind: row.required("kind"),
            id: row.text("id"),
            status: row.required("status"),
            terminal: row.boolean("terminal").unwrap_or_default(),
            success: row.boolean("success").unwrap_or_default(),
        }),
    }
}

/// An outcome out of some words, the first of which is what is expected when nothing is said, and the code of another one.
fn outcome(row: &mut Row<'_>, words: &[&'static str]) -> Expected {
    let word = row.word("expect", words).unwrap_or(words[0]);
    let code = row.text("code");
    if word == words[0] && code.is_some() {
        row.wrong(format!("`code` is that of a refusal, and `{word}` is expected"));
    }
    Expected {
        word: word.to_owned(),
        code,
        ..Expected::default()
    }
}

fn read_move(row: &mut Row<'_>) -> Asks {
    Asks::Move(MoveCase {
        situation: situation(row),
        expected: outcome(row, &["applied", "rejected", "invalid", "conflict"]),
    })
}

fn read_guard(row: &mut Row<'_>) -> Asks {
    Asks::Guard(GuardCase {
        situation: situation(row),
        expected: outcome(row, &["admitted", "refused", "fault"]),
    })
}

fn read_exit(row: &mut Row<'_>) -> Asks {
    const CAUSES: [&str; 8] = [
        "exit",
        "signal",
        "oom",
        "timeout",
        "kill",
        "hangup",
        "host_restarted",
        "unobserved",
    ];
    const EVIDENCE: [&str; 3] = ["present", "wanted_and_absent", "artifact_missing"];
    let case = ExitCase {
        from: row.text("from"),
        exit_code: row.integer("exit_code"),
        signal: row.integer("signal"),
        cause: row.word("cause", &CAUSES).and_then(Cause::from_word),
        evidence: row.word("evidence", &EVIDENCE).and_then(Evidence::from_word),
        last_output: row.text("last_output").unwrap_or_default(),
        duration: row.duration("duration"),
        attempt: row.integer("attempt").unwrap_or(1),
        fields: row.fields("fields"),
        tags: row.tags("tags"),
        expected: Expected {
            word: row.required("expect"),
            code: row.text("code"),
            sets: row.fields("sets"),
            retry_after: row.duration("retry_after"),
            ..Expected::default()
        },
    };
    if let Err(why) = case.ending() {
        row.wrong(why);
    }
    Asks::Exit(case)
}

fn read_health(row: &mut Row<'_>) -> Asks {
    let levels = HealthLevel::ALL.map(HealthLevel::word);
    let words: Vec<&'static str> = levels.into_iter().chain(["unknown"]).collect();
    let status = row.required("status");
    let process = row
        .word("process", &["alive", "gone", "unknown", "none"])
        .unwrap_or("none");
    let quiet = row.duration("quiet");
    let case = HealthCase {
        status,
        process,
        quiet,
        messages: row.integer("messages").unwrap_or_default(),
        has_artifacts: row.boolean("has_artifacts").unwrap_or_default(),
        has_stale_locks: row.boolean("has_stale_locks").unwrap_or_default(),
        spawn_kind: row.text("spawn_kind"),
        fields: row.fields("fields"),
        tags: row.tags("tags"),
        expected: Expected {
            word: row.word("expect", &words).unwrap_or_default().to_owned(),
            ..Expected::default()
        },
    };
    if case.expected.word.is_empty() {
        row.wrong("`expect` is missing: the level of health");
    }
    Asks::Health(case)
}

fn read_plan(row: &mut Row<'_>) -> Asks {
    let mut expected = Expected {
        word: row
            .word("expect", &["planned", "nothing", "fault"])
            .unwrap_or("planned")
            .to_owned(),
        count: row.integer("count"),
        contains: row.text("contains"),
        ..Expected::default()
    };
    if expected.word != "planned" && (expected.count.is_some() || expected.contains.is_some()) {
        row.wrong("`count` and `contains` are of what is planned");
        expected.count = None;
    }
    let success = row.boolean("success").unwrap_or_default();
    Asks::Plan(PlanCase {
        kind: row.text("kind").unwrap_or_else(|| "run".to_owned()),
        status: row.required("status"),
        success,
        terminal: row.boolean("terminal").unwrap_or(true),
        reason: row.text("reason"),
        tags: row.tags("tags"),
        config: row.fields("config"),
        destinations: row.texts("destinations").unwrap_or_else(|| vec!["here".to_owned()]),
        expected,
    })
}
