//! What `describe` answers in each mode.

use runwarden_kit::table::{always, codes, edge, edges, field, kill, on_exit, outcome, parameter, policy, status};
use runwarden_kit::{Descriptor, ExecutionRule, ExtField, Level, log};

use crate::{Mode, harm};

pub(crate) fn describe(mode: Mode) -> Descriptor {
    let text = |words: &str| words.to_owned();
    let mut table = honest();
    match mode {
        Mode::DescribeLoops => harm::run_forever(),
        Mode::DescribeTakesMemory => harm::take_memory(),
        Mode::DescribePanics => panic!("the table is lost"),
        Mode::DescribeRecurses => table.reads.history = harm::recurse(0).cast_signed(),
        Mode::DescribeIsEnormous => table.summary = harm::enormous_text(),
        Mode::DescribeHasProblems => spoil(&mut table),
        Mode::DescribeIsNoJson => table.parameters[0].default = text("{no json"),
        Mode::DescribeFloodsLog => (0..10_000).for_each(|line| log(Level::Info, &format!("line {line}"))),
        Mode::DescribeNestsDeep => table.parameters[0].default = harm::deep_json(),
        Mode::DescribeHasManyStatuses => table.statuses.extend((0..1_000).map(|n| status(&format!("s{n}"), ""))),
        Mode::DescribeSpeaksUnknownWords => {
            table.same_status = text("noop");
            table.fields[0].kind = text("date");
            table.kill[0].cascade = text("never");
        }
        Mode::DescribeIsCritical => {
            table.ext.push(ExtField {
                key: text("from-the-future"),
                json: text("1"),
                critical: true,
            });
        }
        Mode::DescribePanicsAtLength => panic!("{}", harm::enormous_text()),
        Mode::DescribePaintsTerminals => table.statuses.push(status("\u{1b}[31mred\u{7}", "")),
        Mode::DescribeLogsAtLength => log(Level::Info, &harm::enormous_text()),
        _ => {}
    }
    table
}

fn honest() -> Descriptor {
    policy("gadget", "1.0.0", "A gadget, for tests.")
        .statuses([
            status("working", "It works.").initial("gadget.working.made"),
            status("held", "Somebody asked for a pause."),
            status("shelved", "It was put away, and only an operator takes it up again."),
            status("done", "It worked.").success(),
            status("spoiled", "It did not.").terminal(),
            status("scrapped", "An operator gave it up.").terminal(),
        ])
        .edges(edges("working", &["done", "spoiled"]))
        .edges(edges("held", &["working", "spoiled"]))
        .edges([
            edge("working", "held").guarded(),
            edge("working", "shelved"),
            edge("shelved", "scrapped").only(&["operator"]),
            edge("working", "scrapped").only(&["operator"]),
        ])
        .fields([
            field("ended_at", "timestamp", "When it ended."),
            field("exit_code", "integer", "The code it exited with."),
            field("term_signal", "integer", "The signal it died by."),
            field("cause", "text", "How it ended."),
            field("note", "text", "What was noted."),
            field("size", "integer", "How large it is."),
        ])
        .codes(codes(&[
            ("gadget.working.made", "Was made."),
            ("gadget.working.resumed", "Goes on."),
            ("gadget.held.asked", "A pause was asked for."),
            ("gadget.done.ok", "Worked."),
            ("gadget.done.rescued", "Worked after all."),
            ("gadget.shelved.put", "Was put away."),
            ("gadget.spoiled.bad", "Did not work."),
            ("gadget.spoiled.policy_fault", "Nobody could judge it."),
            ("gadget.scrapped.operator", "Given up."),
        ]))
        .execution(execution())
        .verdicts([on_exit(0, outcome("done", "gadget.done.ok")), always(spoiled())])
        .kill(kill(
            &["working"],
            "spoiled",
            "gadget.spoiled.bad",
            "gadget.spoiled.bad",
            "gadget.spoiled.bad",
        ))
        .parameters([parameter("patience", "integer", "3", "How often to look again.")])
}

fn spoiled() -> runwarden_kit::Outcome {
    outcome("spoiled", "gadget.spoiled.bad")
}

fn execution() -> ExecutionRule {
    ExecutionRule {
        start: outcome("working", "gadget.working.made"),
        spawn_failed: spoiled(),
        directory_missing: spoiled(),
        identity_lost: spoiled(),
        timed_out: spoiled(),
        hung_up: spoiled(),
        interrupted: spoiled(),
        terminated: spoiled(),
        parent_gone: spoiled(),
        host_restarted: spoiled(),
        ended_unobserved: spoiled(),
        verdict_failed: outcome("spoiled", "gadget.spoiled.policy_fault"),
        ext: Vec::new(),
    }
}

/// One problem of each of several sorts.
fn spoil(table: &mut Descriptor) {
    table.version = "one".to_owned();
    table.statuses.push(status("Working Hard", "No name."));
    table.edges.push(edge("done", "working"));
    table.edges.push(edge("working", "heaven"));
    table.fields.push(field("note", "text", "Declared twice."));
    table.reads.history = 1_000_000;
}
