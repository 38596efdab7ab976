//! A component around a few lines of WebAssembly text, with the types of the contract.

use std::sync::OnceLock;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{PackageId, Resolve};

/// What the component is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum World {
    /// A policy with guard, verdict and health functions.
    Policy,
    /// A handler.
    Handler,
}

/// Texts of a component's one core module. Every function that the host calls leaves an address in it.
#[derive(Clone, Debug)]
pub struct Stub {
    /// What it is.
    pub world: World,
    /// Its memory, exported as `memory`.
    pub memory: String,
    /// Whatever else is to stand in the module: data, tables, a start function.
    pub extra: String,
    /// Gives `$size` bytes at a multiple of `$align`.
    pub realloc: String,
    /// Gives the address of the descriptor.
    pub describe: String,
    /// Runs when the descriptor was read.
    pub post_describe: String,
    /// Gives the address of the answer of `evaluate`, `verdict`, `assess` or `plan`; what is asked lies at `$asked`.
    pub answer: String,
}

/// Where the descriptor lies.
const DESCRIPTOR: usize = 1024;

/// What every module has: a table for indirect calls and the one import.
const PRELUDE: &str = r#"
    (import "runwarden:host/diagnostics@0.1.0" "log" (func $log (param i32 i32 i32 i32)))
    (import "runwarden:host/diagnostics@0.1.0" "report-panic" (func $panic (param i32 i32 i32 i32 i64 i64)))
    (type $nothing (func))
    (type $other (func (param i64)))
    (table $table 4 funcref)
    (elem (table $table) (i32.const 0) func $idle)
    (func $idle)
    (global $next (mut i32) (i32.const 8192))
"#;

impl Stub {
    /// A policy that can be installed and answers zeros: a guard that refuses.
    pub fn policy() -> Self {
        Self {
            world: World::Policy,
            memory: r#"(memory (export "memory") 1)"#.to_owned(),
            extra: data(DESCRIPTOR, &descriptor()),
            realloc: "(global.set $next (i32.and
                    (i32.add (global.get $next) (i32.sub (local.get $align) (i32.const 1)))
                    (i32.sub (i32.const 0) (local.get $align))))
                (global.get $next)
                (global.set $next (i32.add (global.get $next) (local.get $size)))"
                .to_owned(),
            describe: format!("(i32.const {DESCRIPTOR})"),
            post_describe: String::new(),
            answer: "(i32.const 512)".to_owned(),
        }
    }

    /// A handler that answers an empty plan. What it says of itself cannot be installed.
    pub fn handler() -> Self {
        Self {
            world: World::Handler,
            extra: String::new(),
            ..Self::policy()
        }
    }

    /// Adds to the module.
    #[must_use]
    pub fn with(mut self, extra: &str) -> Self {
        self.extra += extra;
        self
    }

    /// The component.
    ///
    /// # Panics
    /// The text is no module, or not one of its world.
    pub fn component(&self) -> Vec<u8> {
        static CONTRACT: OnceLock<(Resolve, PackageId)> = OnceLock::new();
        let (resolve, package) = CONTRACT.get_or_init(contract);
        let mut module = wat::parse_str(self.text()).unwrap_or_else(|error| panic!("{error}\n{}", self.text()));
        let world = match self.world {
            World::Policy => "policy",
            World::Handler => "handler",
        };
        let world = resolve.packages[*package].worlds[world];
        embed_component_metadata(&mut module, resolve, world, StringEncoding::UTF8).expect("a world of ours");
        let encoder = ComponentEncoder::default().module(&module);
        encoder
            .and_then(|mut encoder| encoder.encode())
            .expect("a module of the world")
    }

    fn text(&self) -> String {
        let (describe, functions): (_, &[&str]) = match self.world {
            World::Policy => (
                "runwarden:policy/lifecycle@0.1.0#describe",
                &[
                    "runwarden:policy/guard@0.1.0#evaluate",
                    "runwarden:policy/execution@0.1.0#verdict",
                    "runwarden:policy/health@0.1.0#assess",
                ],
            ),
            World::Handler => (
                "runwarden:notify/notifier@0.1.0#describe",
                &["runwarden:notify/notifier@0.1.0#plan"],
            ),
        };
        let exports: String = functions.iter().map(|name| format!(r#"(export "{name}")"#)).collect();
        let Self {
            memory,
            extra,
            realloc,
            post_describe,
            answer,
            ..
        } = self;
        let body = &self.describe;
        format!(
            r#"(module {PRELUDE} {memory}
                (func $realloc (export "cabi_realloc")
                    (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32) {realloc})
                (func $describe (export "{describe}") (result i32) {body})
                (func (export "cabi_post_{describe}") (param i32) {post_describe})
                (func $answer {exports} (param $asked i32) (result i32) {answer})
                {extra})"#
        )
    }
}

/// The packages of the contract, and two worlds that export what one component may.
fn contract() -> (Resolve, PackageId) {
    const TEXTS: [&str; 5] = [
        include_str!("../../../../wit/types/types.wit"),
        include_str!("../../../../wit/host/host.wit"),
        concat!(
            include_str!("../../../../wit/policy/lifecycle.wit"),
            include_str!("../../../../wit/policy/guard.wit"),
            include_str!("../../../../wit/policy/execution.wit"),
        ),
        include_str!("../../../../wit/notify/notify.wit"),
        "package runwarden:corpus;
        world policy {
            import runwarden:host/diagnostics@0.1.0;
            export runwarden:policy/lifecycle@0.1.0;
            export runwarden:policy/guard@0.1.0;
            export runwarden:policy/execution@0.1.0;
            export runwarden:policy/health@0.1.0;
        }
        world handler {
            import runwarden:host/diagnostics@0.1.0;
            export runwarden:notify/notifier@0.1.0;
        }",
    ];
    let mut resolve = Resolve::default();
    let mut last = None;
    for text in TEXTS {
        last = Some(resolve.push_str("contract.wit", text).expect("tools understand it"));
    }
    (resolve, last.expect("a package of ours"))
}

/// Bytes at an address of the memory.
pub(super) fn data(address: usize, bytes: &[u8]) -> String {
    let text: String = bytes.iter().map(|byte| format!("\\{byte:02x}")).collect();
    format!(r#"(data (i32.const {address}) "{text}")"#)
}

/// The bytes of words, one after the other.
pub(super) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The least descriptor that can be installed, as the canonical ABI has it at [`DESCRIPTOR`].
fn descriptor() -> Vec<u8> {
    /// The size of a descriptor is below this.
    const TEXTS_AT: u32 = 3072;
    let mut texts: Vec<u8> = Vec::new();
    let mut text = |words: &str| {
        let address = TEXTS_AT + u32::try_from(texts.len()).expect("a few bytes");
        texts.extend(words.as_bytes());
        [address, u32::try_from(words.len()).expect("a few bytes")]
    };
    let [kind, version, append] = [text("gadget"), text("1.0.0"), text("append")];
    let [open, closed, code] = [text("working"), text("spoiled"), text("gadget.working.made")];
    let statuses_at = (TEXTS_AT + u32::try_from(texts.len()).expect("a few bytes")).next_multiple_of(8);
    let is_initial = 1;
    let is_terminal = 1;
    let status = |name: [u32; 2], initial, terminal| [name[0], name[1], 0, 0, initial, 0, 0, 0, terminal, 0, 0];
    let statuses = [status(open, is_initial, 0), status(closed, 0, is_terminal)].concat();
    let edges_at = statuses_at + 4 * u32::try_from(statuses.len()).expect("a few words");
    let edge = [open[0], open[1], closed[0], closed[1], 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let codes_at = edges_at + 4 * u32::try_from(edge.len()).expect("a few words");
    let codes = [code[0], code[1], 0, 0];
    let head = [
        kind[0],
        kind[1],
        kind[0],
        kind[1],
        version[0],
        version[1],
        0,
        0,
        statuses_at,
        2,
        edges_at,
        1,
        append[0],
        append[1],
        0,
        0,
        codes_at,
        1,
    ];
    let mut bytes = words(&head);
    bytes.resize((TEXTS_AT as usize) - DESCRIPTOR, 0);
    bytes.extend(texts);
    bytes.resize(statuses_at as usize - DESCRIPTOR, 0);
    bytes.extend(words(&statuses));
    bytes.extend(words(&edge));
    bytes.extend(words(&codes));
    bytes
}
