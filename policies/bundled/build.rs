//! Builds every policy as a component and writes the table of their bytes.

use std::fmt::Write as _;
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

fn main() {
    let packages: Vec<String> = POLICIES
        .iter()
        .map(|(directory, ..)| format!("runwarden-policy-{directory}"))
        .collect();
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
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let table = table(&components);
    std::fs::write(Path::new(&out).join("policies.rs"), table).expect("write the table");
}

fn table(components: &[PathBuf]) -> String {
    let lifecycle = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lifecycle");
    let mut table = String::from("&[\n");
    for ((directory, kind, version), component) in POLICIES.iter().zip(components) {
        let descriptor = lifecycle.join(directory).join("descriptor.json");
        let bytes = std::fs::read(component).expect("the component was just built");
        let digest = Sha256::digest(&bytes)
            .iter()
            .fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        write!(
            table,
            "    Bundled {{\n        name: {kind:?},\n        version: {version:?},\n        digest: {digest:?},\n        kind: {kind:?},\n        \
             component: include_bytes!({component:?}),\n        descriptor: include_str!({descriptor:?}),\n    }},\n"
        )
        .expect("writing to a string cannot fail");
    }
    table.push_str("]\n");
    table
}
