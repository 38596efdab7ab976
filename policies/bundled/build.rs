//! Builds every policy and handler as a component and writes the tables of their bytes.

use std::path::Path;

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
    let packages = [packages("policy", POLICIES), packages("handler", HANDLERS)].concat();
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
    let (policies, handlers) = components.split_at(POLICIES.len());
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
}

fn write(file: &str, entries: &str) {
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(Path::new(&out).join(file), format!("&[\n{entries}]\n")).expect("write the table");
}

/// The entry of the component in a directory below `policies`, with its name, kind and version.
fn entry(directory: &str, [name, kind, version]: [&str; 3], component: &Path) -> String {
    let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let descriptor = policies.join(directory).join("descriptor.json");
    let bytes = std::fs::read(component).expect("the component was just built");
    let digest = Sha256::digest(&bytes)
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    format!(
        "    Bundled {{\n        name: {name:?},\n        version: {version:?},\n        digest: {digest:?},\n        kind: {kind:?},\n        \
         component: include_bytes!({component:?}),\n        descriptor: include_str!({descriptor:?}),\n    }},\n"
    )
}
