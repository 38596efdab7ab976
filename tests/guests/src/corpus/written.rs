//! Components written as text that are refused for what they import, export or are made of.

use super::{Case, install};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = imports();
    cases.extend(exports());
    cases.extend(features());
    cases
}

fn component(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A component with one core function, exported under these names in instances with these functions.
fn exporting(before: &str, exports: &[(&str, &str)]) -> Vec<u8> {
    let mut text = format!(
        r#"(component {before}
            (core module $m (func (export "f")))
            (core instance $i (instantiate $m))
            (func $f (canon lift (core func $i "f")))"#
    );
    for (number, (name, function)) in exports.iter().enumerate() {
        text += &format!(r#"(instance $n{number} (export "{function}" (func $f)))"#);
        text += &format!(r#"(export "{name}" (instance $n{number}))"#);
    }
    component(&(text + ")"))
}

const LIFECYCLE: (&str, &str) = ("runwarden:policy/lifecycle@0.1.0", "describe");

fn imports() -> Vec<Case> {
    let importing = |import: &str| exporting(import, &[LIFECYCLE]);
    let many: String = (0..1_000)
        .map(|n| format!(r#"(import "acme:tools/t{n}@1.0.0" (instance))"#))
        .collect();
    vec![
        install(
            "a policy imported",
            importing(r#"(import "runwarden:policy/guard@0.1.0" (instance))"#),
        ),
        install(
            "a store imported",
            importing(r#"(import "runwarden:host/store@0.1.0" (instance))"#),
        ),
        install(
            "a foreign interface imported",
            importing(r#"(import "acme:tools/hammer@1.0.0" (instance))"#),
        ),
        install("a bare function imported", importing(r#"(import "hammer" (func))"#)),
        install("a component imported", importing(r#"(import "parts" (component))"#)),
        install("a core module imported", importing(r#"(import "parts" (core module))"#)),
        install(
            "diagnostics of a later line",
            importing(r#"(import "runwarden:host/diagnostics@0.2.0" (instance))"#),
        ),
        install(
            "diagnostics without a version",
            importing(r#"(import "runwarden:host/diagnostics" (instance))"#),
        ),
        install(
            "diagnostics with a function that there is none of",
            importing(
                r#"(import "runwarden:host/diagnostics@0.1.0"
                    (instance (export "read-store" (func (result (list u8))))))"#,
            ),
        ),
        install(
            "diagnostics with another type",
            importing(
                r#"(import "runwarden:host/diagnostics@0.1.0"
                    (instance (export "log" (func (param "level" u32) (result string)))))"#,
            ),
        ),
        install(
            "a function among types",
            importing(r#"(import "runwarden:types/types@0.1.0" (instance (export "now" (func (result u64)))))"#),
        ),
        install("a thousand imports", importing(&many)),
        install(
            "a name that paints the terminal",
            importing("(import \"acme:tools/x@1.0.0-a\" (instance))"),
        ),
    ]
}

fn exports() -> Vec<Case> {
    let plain = |exports: &[(&str, &str)]| exporting("", exports);
    let guard = ("runwarden:policy/guard@0.1.0", "evaluate");
    vec![
        install(
            "nothing of ours exported",
            plain(&[("acme:tools/hammer@1.0.0", "strike")]),
        ),
        install("a guard and no descriptor", plain(&[guard])),
        install(
            "policy and handler at once",
            plain(&[LIFECYCLE, ("runwarden:notify/notifier@0.1.0", "describe")]),
        ),
        install("functions of another type", plain(&[LIFECYCLE, guard])),
        install(
            "functions of another name",
            plain(&[("runwarden:policy/lifecycle@0.1.0", "description")]),
        ),
        install(
            "two versions at once",
            plain(&[LIFECYCLE, ("runwarden:policy/lifecycle@0.1.1", "describe")]),
        ),
        install(
            "a later line",
            plain(&[("runwarden:policy/lifecycle@0.2.0", "describe")]),
        ),
        install(
            "an earlier line",
            plain(&[("runwarden:policy/lifecycle@0.0.9", "describe")]),
        ),
        install(
            "a prerelease",
            plain(&[("runwarden:policy/lifecycle@0.1.0-rc.1", "describe")]),
        ),
        install("no version", plain(&[("runwarden:policy/lifecycle", "describe")])),
        install(
            "a component under the name of an interface",
            component(r#"(component (component $c) (export "runwarden:policy/lifecycle@0.1.0" (component $c)))"#),
        ),
        install(
            "an empty instance under the name of an interface",
            component(r#"(component (instance $i) (export "runwarden:policy/lifecycle@0.1.0" (instance $i)))"#),
        ),
    ]
}

/// What WebAssembly has and this host has not.
fn features() -> Vec<Case> {
    let module = |inside: &str| {
        component(&format!(
            r#"(component (core module $x {inside}) (core instance (instantiate $x))
                (core module $m (func (export "f")))
                (core instance $i (instantiate $m))
                (func $f (canon lift (core func $i "f")))
                (instance $n (export "describe" (func $f)))
                (export "runwarden:policy/lifecycle@0.1.0" (instance $n)))"#
        ))
    };
    let many: String = (0..100)
        .map(|n| format!("(core instance $i{n} (instantiate $x))"))
        .collect();
    let instances = component(&format!(
        r#"(component (core module $x (memory 0)) {many}
            (instance $i) (export "runwarden:policy/lifecycle@0.1.0" (instance $i)))"#
    ));
    vec![
        install("memory that threads share", module("(memory 1 1 shared)")),
        install("memory of 64 bits", module("(memory i64 1)")),
        install("relaxed vector instructions", module(RELAXED)),
        install("garbage-collected types", module("(type (struct (field i32)))")),
        install("exceptions", module("(tag) (func (throw 0))")),
        install("memory of 4 GiB from the start", module("(memory 65536)")),
        install(
            "a table of a thousand million elements",
            module("(table 1000000000 funcref)"),
        ),
        install(
            "data beyond its memory",
            module(r#"(memory 1) (data (i32.const 65535) "xx")"#),
        ),
        install(
            "elements beyond their table",
            module("(table 1 funcref) (elem (i32.const 1) func $f) (func $f)"),
        ),
        install("a hundred instances with a memory each", instances),
    ]
}

const RELAXED: &str = "(func (param v128) (result v128)
    (i32x4.relaxed_trunc_f32x4_s (local.get 0)))";
