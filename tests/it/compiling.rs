//! What a component may cost the compiler: more than the limits ends the compiler, and nothing else.

use std::path::Path;
use std::time::Duration;

use runwarden_host::model::{Actor, RaisedLimits};
use runwarden_host::policy::{InstallError, Limits, PolicyFault};
use runwarden_host::provenance::Trust;
use runwarden_host::store::OpenMode;
use runwarden_host::verbs::{Installing, Offer, examine, install};
use runwarden_host::{Clock, Config, Error, Host};

use crate::harness::{Home, PROGRAM};

/// Loops in loops around locals that all change: each loop carries each local, so the product is what it costs.
#[derive(Clone, Copy)]
struct Costly {
    depth: u32,
    locals: u32,
}

/// Tens of kilobytes that take gigabytes, at once.
const TAKES_MEMORY: Costly = Costly {
    depth: 3_000,
    locals: 10_000,
};

/// Takes its time before it takes as much memory: many seconds on any machine.
const TAKES_TIME: Costly = Costly {
    depth: 1_000,
    locals: 5_000,
};

impl Costly {
    /// A policy that ships, with this function in one more module, which is compiled like the others.
    fn component(self) -> Vec<u8> {
        let body = self.body();
        let mut code = number(1);
        code.extend(number(length(&body)));
        code.extend(body);
        let mut module = b"\0asm\x01\0\0\0".to_vec();
        // One type without parameters and results, one function of it, its code.
        for (id, contents) in [(1, vec![1, 0x60, 0, 0]), (3, vec![1, 0]), (10, code)] {
            module.extend(section(id, &contents));
        }
        let mut component = runwarden_bundled::POLICIES[0].component();
        component.extend(section(1, &module));
        component
    }

    fn body(self) -> Vec<u8> {
        const I32: u8 = 0x7f;
        let mut body = number(1);
        body.extend(number(self.locals));
        body.push(I32);
        let times = |instructions: &[u8]| instructions.repeat(usize::try_from(self.depth).expect("a small number"));
        body.extend(times(&[0x03, 0x40])); // loop
        for local in 0..self.locals {
            body.push(0x20); // local.get, i32.const 1, i32.add, local.set
            body.extend(number(local));
            body.extend([0x41, 1, 0x6a, 0x21]);
            body.extend(number(local));
        }
        body.extend(times(&[0x20, 0, 0x0d, 0, 0x0b])); // local.get 0, br_if 0, end
        body.push(0x0b); // end
        body
    }
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("less than a component may have")
}

fn section(id: u8, contents: &[u8]) -> Vec<u8> {
    let mut section = vec![id];
    section.extend(number(length(contents)));
    section.extend(contents);
    section
}

/// A number in LEB128.
fn number(mut value: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let byte = value.to_le_bytes()[0] & 0x7f;
        value >>= 7;
        if value == 0 {
            bytes.push(byte);
            return bytes;
        }
        bytes.push(byte | 0x80);
    }
}

fn host(home: &Path, compiler: &str, limits: Limits) -> Host {
    let config = Config {
        home: home.to_owned(),
        database: None,
        limits,
        clock: Clock::System,
        compiler: Some(compiler.into()),
        program: Path::new("/nonexistent").to_owned(),
        shim: &[],
        variable: |_| None,
    };
    Host::open(config, OpenMode::Create).expect("a new store")
}

#[test]
fn a_component_too_costly_to_compile_is_refused_and_the_next_is_installed() {
    let home = Home::new();
    let file = |name: &str, bytes: &[u8]| -> String {
        let path = home.path(name);
        std::fs::write(&path, bytes).expect("a file");
        path.to_string_lossy().into_owned()
    };
    let costly = file("costly.wasm", &TAKES_MEMORY.component());
    let before = home.json(&["policy", "ls"]);
    for command in ["install", "show"] {
        let answer = home.run(&["policy", command, &costly]).exits(65);
        assert!(
            answer
                .err
                .contains("more than 1073741824 bytes of memory in compilation"),
            "{}",
            answer.err
        );
    }
    assert_eq!(home.json(&["policy", "ls"]), before);
    let modest = Costly { depth: 1, locals: 1 };
    let modest = file("modest.wasm", &modest.component());
    let installed = home.json(&["policy", "install", &modest]);
    assert_eq!(installed["was_present"], false);
}

#[test]
fn a_compiler_at_its_bound_of_processor_time_is_out_of_time() {
    let home = Home::new();
    let mut limits = Limits::DEFAULT;
    limits.compile.processor = Duration::from_secs(1);
    limits.compile.memory_bytes = 8 << 30;
    let host = host(&home.home(), PROGRAM, limits);
    let refused = examine(&host, &TAKES_TIME.component(), &RaisedLimits::default());
    assert!(
        matches!(
            refused,
            Err(Error::Install(InstallError::Fault(PolicyFault::OutOfTime {
                limit_ms: 1_000,
                function: "compilation",
                ..
            })))
        ),
        "{refused:?}"
    );
    let modest = Costly { depth: 1, locals: 1 }.component();
    let offer = Offer {
        bytes: &modest,
        signatures: &[],
    };
    let tester = Actor::new("operator", "tests");
    install(&host, &offer, &Installing::default(), &Trust::default(), &tester).expect("the host is well");
}

#[test]
fn a_compiler_that_does_not_answer_is_ended_by_the_clock() {
    let home = Home::new();
    let mut limits = Limits::DEFAULT;
    limits.compile.wall = Duration::ZERO;
    let refused = examine(
        &host(&home.home(), PROGRAM, limits),
        &TAKES_TIME.component(),
        &RaisedLimits::default(),
    );
    assert!(
        matches!(
            refused,
            Err(Error::Install(InstallError::Fault(PolicyFault::OutOfTime { .. })))
        ),
        "{refused:?}"
    );
}

#[test]
fn a_compiler_that_cannot_be_started_is_no_fault_of_the_component() {
    let home = Home::new();
    let host = host(&home.home(), "/nonexistent", Limits::DEFAULT);
    let refused = examine(
        &host,
        &runwarden_bundled::POLICIES[0].component(),
        &RaisedLimits::default(),
    );
    assert!(matches!(refused, Err(Error::Process(_))), "{refused:?}");
}

#[test]
fn the_limits_of_compilation_are_told_among_the_others() {
    let home = Home::new();
    let shown = home.json(&["policy", "show", "run"]);
    let expected = serde_json::json!({"processor_ms": 60_000, "wall_ms": 180_000, "memory_bytes": 1 << 30});
    assert_eq!(shown["limits"]["compile"], expected);
    let words = home.done(&["policy", "show", "run"]);
    assert!(
        words.contains("compiling it: 60 s of processor time, 1024 MiB"),
        "{words}"
    );
}
