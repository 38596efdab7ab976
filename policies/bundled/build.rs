//! Builds every policy and handler as a component and writes the tables of their bytes, and the frame of a table's.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Directory below `policies/lifecycle`, kind (also the policy's name), version.
const POLICIES: &[(&str, &str, &str)] = &[
    ("run", "run", "1.0.0"),
    ("session", "session", "1.0.0"),
    ("invocation", "invocation", "1.0.0"),
    ("play", "play", "1.0.0"),
    ("show", "show", "1.0.0"),
    ("team", "team", "1.0.0"),
    ("schedule-run-v1", "schedule_run", "1.0.0"),
    ("schedule-run-v2", "schedule_run", "2.0.0"),
    ("dispatch", "dispatch", "1.0.0"),
];

/// Directory below `policies/notify` (also the handler's name), what a handler is listed as, version.
const HANDLERS: &[(&str, &str, &str)] = &[
    ("exec", "handler", "0.1.0"),
    ("webhook", "handler", "0.1.0"),
    ("file", "handler", "0.1.0"),
];

fn main() {
    let packages = |prefix: &str, table: &[(&str, &str, &str)]| -> Vec<String> {
        let package = |(directory, ..): &(&str, &str, &str)| format!("runwarden-{prefix}-{directory}");
        table.iter().map(package).collect()
    };
    let table = vec!["runwarden-policy-table".to_owned()];
    let packages = [packages("policy", POLICIES), packages("handler", HANDLERS), table].concat();
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    let build = nested_cargo::Build {
        packages: &packages,
        target: Some("wasm32-unknown-unknown"),
        profile: "guest",
        // The linker that comes with the toolchain and makes a component of a module.
        envs: &[("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", "wasm-component-ld")],
        watch: &[Path::new("build.rs")],
    };
    let components = match build.run() {
        Ok(components) => components,
        Err(error) => nested_cargo::fail(&error),
    };
    let (policies, others) = components.split_at(POLICIES.len());
    let (handlers, table) = others.split_at(HANDLERS.len());
    let mut entries = String::new();
    for ((directory, kind, version), component) in POLICIES.iter().zip(policies) {
        entries += &entry(&format!("lifecycle/{directory}"), [kind, kind, version], component);
    }
    write("policies.rs", &entries);
    entries.clear();
    for ((name, kind, version), component) in HANDLERS.iter().zip(handlers) {
        entries += &entry(&format!("notify/{name}"), [name, kind, version], component);
    }
    write("handlers.rs", &entries);
    frame(&std::fs::read(&table[0]).expect("the component was just built"));
}

fn write(file: &str, entries: &str) {
    std::fs::write(out(file), format!("&[\n{entries}]\n")).expect("write the table");
}

fn out(file: &str) -> PathBuf {
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    Path::new(&out).join(file)
}

/// Writes what stands before and after the one core module of a component, without names and other notes.
fn frame(component: &[u8]) {
    const HEADER_BYTES: usize = 8;
    const CUSTOM: u8 = 0;
    const CORE_MODULE: u8 = 1;
    let (header, mut rest) = component.split_at(HEADER_BYTES);
    let mut parts = vec![header.to_vec()];
    while let [kind, after @ ..] = rest {
        let (length, content) = number(after);
        let section = rest.len() - content.len() + length;
        match *kind {
            CUSTOM => {}
            CORE_MODULE => parts.push(Vec::new()),
            _ => parts.last_mut().expect("there is one").extend(&rest[..section]),
        }
        rest = &rest[section..];
    }
    let [before, after] = parts.as_slice() else {
        panic!("the table's component has one core module");
    };
    std::fs::write(out("table_before.bin"), before).expect("write the frame");
    std::fs::write(out("table_after.bin"), after).expect("write the frame");
}

/// A number in seven bits to the byte, the lowest first, and what follows it.
fn number(bytes: &[u8]) -> (usize, &[u8]) {
    let last = bytes.iter().position(|byte| byte & 0x80 == 0).expect("a number ends");
    let digits = bytes[..=last].iter().rev();
    let value = digits.fold(0, |value, byte| value << 7 | usize::from(byte & 0x7F));
    (value, &bytes[last + 1..])
}

/// How hard a component is compressed: what this costs is time at the build.
const LEVEL: u8 = 10;

/// The entry of the component in a directory below `policies`, with its name, kind and version.
fn entry(directory: &str, [name, kind, version]: [&str; 3], component: &Path) -> String {
    let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let descriptor = policies.join(directory).join("descriptor.json");
    let bytes = std::fs::read(component).expect("the component was just built");
    // Most of a component is repeated: the program that carries all of them is smaller by half a megabyte.
    let packed = out(&format!("{name}-{version}.packed"));
    std::fs::write(&packed, miniz_oxide::deflate::compress_to_vec(&bytes, LEVEL)).expect("write the component");
    let digest = Sha256::digest(&bytes)
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    format!(
        "    Bundled {{\n        name: {name:?},\n        version: {version:?},\n        digest: {digest:?},\n        kind: {kind:?},\n        \
         packed: include_bytes!({packed:?}),\n        descriptor: include_str!({descriptor:?}),\n    }},\n"
    )
}
