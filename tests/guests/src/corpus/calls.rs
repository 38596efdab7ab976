//! Components that install, or would, and misbehave in a call: each trap, each way never to end, each answer that is none.

use super::stub::{Stub, data, words};
use super::{Asked, Case, install};

/// Never ends.
const LOOP: &str = "(loop $l (br $l)) unreachable";

pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![install("the least policy that is one", Stub::policy().component())];
    cases.extend(traps());
    cases.extend(endless());
    cases.extend(holding());
    cases.extend(descriptors());
    cases.extend(answers());
    cases.extend(diagnostics());
    cases
}

/// A policy whose `describe` is this.
fn describing(name: &str, describe: &str) -> Case {
    let stub = Stub {
        describe: describe.to_owned(),
        ..Stub::policy()
    };
    install(name, stub.component())
}

/// A policy of which this is asked, with this for its answer.
fn answering(name: &str, asked: Asked, answer: &str) -> Case {
    let stub = match asked {
        Asked::Plan => Stub::handler(),
        _ => Stub::policy(),
    };
    let stub = Stub {
        answer: answer.to_owned(),
        ..stub
    };
    called(name, asked, &stub)
}

fn called(name: &str, asked: Asked, stub: &Stub) -> Case {
    Case {
        name: name.to_owned(),
        asked,
        bytes: stub.component(),
    }
}

fn traps() -> Vec<Case> {
    let address = "(i32.const 1024)";
    let check = |name: &str, step: &str| describing(&format!("trap: {name}"), &format!("{step} {address}"));
    vec![
        check("unreachable", "unreachable"),
        check("a read beyond memory", "(drop (i32.load (i32.const -4)))"),
        check("a write beyond memory", "(i64.store (i32.const 65535) (i64.const 1))"),
        check(
            "a fill beyond memory",
            "(memory.fill (i32.const 65535) (i32.const 1) (i32.const 2))",
        ),
        check("a division by zero", "(drop (i32.div_u (i32.const 1) (i32.const 0)))"),
        check(
            "an integer overflow",
            "(drop (i32.div_s (i32.const 0x80000000) (i32.const -1)))",
        ),
        check(
            "a number that is no integer",
            "(drop (i32.trunc_f64_s (f64.const nan)))",
        ),
        check(
            "an indirect call of another type",
            "(call_indirect (type $other) (i64.const 1) (i32.const 0))",
        ),
        check(
            "an indirect call of a null entry",
            "(call_indirect (type $nothing) (i32.const 1))",
        ),
        check(
            "an indirect call beyond the table",
            "(call_indirect (type $nothing) (i32.const 99))",
        ),
        check(
            "a table entry beyond the table",
            "(table.set $table (i32.const 99) (ref.null func))",
        ),
        check("a recursion without end", "(drop (call $describe))"),
        called(
            "trap: a recursion through the table without end",
            Asked::Guard,
            &Stub {
                answer: "(call_indirect (type $nothing) (i32.const 2)) (i32.const 512)".to_owned(),
                ..Stub::policy().with(
                    "(elem (table $table) (i32.const 2) func $deeper)
                    (func $deeper (call_indirect (type $nothing) (i32.const 2)) (call $idle))",
                )
            },
        ),
        install(
            "trap: in the start function",
            Stub::policy().with("(func $s unreachable) (start $s)").component(),
        ),
        called("trap: in realloc", Asked::Guard, &reallocating("unreachable")),
        install("trap: after the answer", after("unreachable")),
    ]
}

fn reallocating(realloc: &str) -> Stub {
    Stub {
        realloc: realloc.to_owned(),
        ..Stub::policy()
    }
}

fn after(post_describe: &str) -> Vec<u8> {
    let stub = Stub {
        post_describe: post_describe.to_owned(),
        ..Stub::policy()
    };
    stub.component()
}

fn endless() -> Vec<Case> {
    let started = "(func $s (loop $l (br $l))) (start $s)";
    vec![
        describing("no end: describe", LOOP),
        answering("no end: evaluate", Asked::Guard, LOOP),
        answering("no end: verdict", Asked::Verdict, LOOP),
        answering("no end: assess", Asked::Assess, LOOP),
        answering("no end: plan", Asked::Plan, LOOP),
        install("no end: the start function", Stub::policy().with(started).component()),
        called("no end: realloc", Asked::Guard, &reallocating(LOOP)),
        install("no end: after the answer", after("(loop $l (br $l))")),
        describing(
            "no end: 64 KiB filled again and again",
            "(loop $l (memory.fill (i32.const 0) (i32.const 1) (i32.const 65536)) (br $l)) unreachable",
        ),
    ]
}

fn holding() -> Vec<Case> {
    let memory = |memory: &str| Stub {
        memory: memory.to_owned(),
        ..Stub::policy()
    };
    vec![
        describing(
            "memory page by page",
            "(loop $l (drop (memory.grow (i32.const 1))) (br $l)) unreachable",
        ),
        describing(
            "memory at once",
            "(drop (memory.grow (i32.const 65535))) (i32.const 1024)",
        ),
        install(
            "memory to begin with",
            memory(r#"(memory (export "memory") 257)"#).component(),
        ),
        called(
            "memory for what it is told",
            Asked::Guard,
            &reallocating("(drop (memory.grow (i32.const 1000))) (i32.const 8192)"),
        ),
        describing(
            "table elements without end",
            "(loop $l (drop (table.grow $table (ref.null func) (i32.const 1000))) (br $l)) unreachable",
        ),
        install(
            "no memory that it may have, and it sees so",
            Stub {
                describe:
                    "(if (i32.ne (memory.grow (i32.const 1)) (i32.const -1)) (then unreachable)) (i32.const 1024)"
                        .to_owned(),
                ..memory(r#"(memory (export "memory") 1 1)"#)
            }
            .component(),
        ),
    ]
}

/// Descriptors as bytes: an address and a length for each text and list, whatever they say.
fn descriptors() -> Vec<Case> {
    const STATUSES_AT: usize = 32;
    let spoiled = |name: &str, at: usize, pair: [u32; 2]| {
        install(name, Stub::policy().with(&data(1024 + at, &words(&pair))).component())
    };
    let kind_at = |name: &str, pair: [u32; 2]| spoiled(name, 0, pair);
    let text = data(600, b"\xff\xfe\xfd");
    vec![
        describing("descriptor: at an odd address", "(i32.const 1025)"),
        describing("descriptor: beyond memory", "(i32.const -8)"),
        describing("descriptor: half beyond memory", "(i32.const 65528)"),
        describing("descriptor: zeros", "(i32.const 49152)"),
        kind_at("descriptor: a text beyond memory", [0xfff0, 0x1000]),
        kind_at("descriptor: a text of 2 GiB", [0, 0x7fff_ffff]),
        kind_at("descriptor: a text whose end wraps around", [0xffff_fff0, 0x20]),
        install(
            "descriptor: a text that is not UTF-8",
            Stub::policy()
                .with(&text)
                .with(&data(1024, &words(&[600, 3])))
                .component(),
        ),
        spoiled("descriptor: a list beyond memory", STATUSES_AT, [0xfff0, 1_000]),
        spoiled("descriptor: a list of 2^28 rows", STATUSES_AT, [0, 1 << 28]),
        spoiled("descriptor: a list at an odd address", STATUSES_AT, [1025, 1]),
        spoiled("descriptor: a thousand rows of zeros", STATUSES_AT, [12_288, 1_000]),
        kind_at("descriptor: its own memory for a name", [0, 0xffff]),
        spoiled(
            "descriptor: a thousand rows made of one another",
            STATUSES_AT,
            [1024, 1_000],
        ),
        describing(
            "descriptor: another one with every call, as far as its memory reaches",
            "(global.set $next (i32.add (global.get $next) (i32.const 1)))
            (i32.store (i32.const 1028) (i32.sub (global.get $next) (i32.const 8187)))
            (i32.const 1024)",
        ),
    ]
}

/// Answers as bytes: the first says whether it is an answer or a fault.
fn answers() -> Vec<Case> {
    let given = |name: &str, asked: Asked, answer: &[u32]| {
        let stub = match asked {
            Asked::Plan => Stub::handler(),
            _ => Stub::policy(),
        };
        called(
            &format!("answer: {name}"),
            asked,
            &stub.with(&data(512, &words(answer))),
        )
    };
    vec![
        given("zeros", Asked::Guard, &[0]),
        given("neither an answer nor a fault", Asked::Guard, &[7]),
        given("a fault without words", Asked::Guard, &[1]),
        given("admitted, by a number that is no truth value", Asked::Guard, &[0, 0xff]),
        given("a text beyond memory", Asked::Guard, &[0, 0, 0xfff0, 0x1000]),
        given("a verdict of zeros", Asked::Verdict, &[0]),
        given(
            "a verdict with half a memory for its summary",
            Asked::Verdict,
            &[0, 0, 0, 0, 0, 0, 1, 0, 0x8000],
        ),
        given("a health of zeros", Asked::Assess, &[0]),
        given("a plan of 2^28 dispatches", Asked::Plan, &[0, 8192, 1 << 28]),
        given("a plan beyond memory", Asked::Plan, &[0, 0xfff0, 100]),
        given("a plan of zeros", Asked::Plan, &[0, 12_288, 3]),
        answering("answer: at an odd address", Asked::Guard, "(i32.const 513)"),
        answering("answer: beyond memory", Asked::Guard, "(i32.const -4)"),
        answering("answer: what it was asked", Asked::Guard, "(local.get $asked)"),
        called("realloc: beyond memory", Asked::Guard, &reallocating("(i32.const -8)")),
        called(
            "realloc: an odd address",
            Asked::Guard,
            &reallocating("(i32.const 8193)"),
        ),
        called(
            "realloc: the same place for everything",
            Asked::Guard,
            &reallocating("(i32.const 8192)"),
        ),
    ]
}

fn diagnostics() -> Vec<Case> {
    let log = |address: &str, length: &str| {
        format!("(call $log (i32.const {address}) (i32.const {length}) (i32.const 0) (i32.const 0)) (i32.const 1024)")
    };
    let calling = "(call $log (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))";
    vec![
        describing("diagnostics: a text beyond memory", &log("0xfff0", "0x1000")),
        describing("diagnostics: a text of 2 GiB", &log("0", "0x7fffffff")),
        install(
            "diagnostics: a text that is not UTF-8",
            Stub {
                describe: log("600", "2"),
                ..Stub::policy().with(&data(600, b"\xff\xfe"))
            }
            .component(),
        ),
        describing(
            "diagnostics: without end",
            &format!("(loop $l {calling} (br $l)) unreachable"),
        ),
        describing(
            "diagnostics: a panic that paints the terminal, then none",
            "(i32.store (i32.const 600) (i32.const 0x5b1b)) (i32.store8 (i32.const 602) (i32.const 0x4a))
            (call $panic (i32.const 600) (i32.const 3) (i32.const 0) (i32.const 0) (i64.const -1) (i64.const -1))
            (i32.const 1024)",
        ),
        describing(
            "diagnostics: a panic that paints the terminal",
            "(i32.store (i32.const 600) (i32.const 0x5b1b)) (i32.store8 (i32.const 602) (i32.const 0x4a))
            (call $panic (i32.const 600) (i32.const 3) (i32.const 0) (i32.const 0) (i64.const -1) (i64.const -1))
            unreachable",
        ),
        called(
            "diagnostics: out of realloc",
            Asked::Guard,
            &reallocating(&format!("{calling} (i32.const 8192)")),
        ),
        install("diagnostics: after the answer", after(calling)),
        install(
            "diagnostics: from the start function, when there are none yet",
            Stub::policy()
                .with(&format!("(func $s {calling}) (start $s)"))
                .component(),
        ),
    ]
}
