//! Builds the guests of tests as components.

use std::path::Path;

/// Packages, each with the name of the constant that holds its bytes.
const GUESTS: &[(&str, &str)] = &[
    ("runwarden-guest-hostile", "HOSTILE"),
    ("runwarden-guest-hostile-handler", "HOSTILE_HANDLER"),
    ("runwarden-example-agent", "AGENT"),
    ("runwarden-example-ci-job", "CI_JOB"),
    ("runwarden-example-cost-budget", "COST_BUDGET"),
    ("runwarden-example-session-paused", "SESSION_PAUSED"),
    ("runwarden-example-strict-play", "STRICT_PLAY"),
    ("runwarden-example-ticket", "TICKET"),
    ("runwarden-example-two-person-approval", "TWO_PERSON_APPROVAL"),
    ("runwarden-guest-review", "REVIEW"),
];

fn main() {
    let packages: Vec<&str> = GUESTS.iter().map(|(package, _)| *package).collect();
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
    let line = |((_, name), path): (&(&str, &str), &std::path::PathBuf)| {
        format!("/// A component.\npub const {name}: &[u8] = include_bytes!({path:?});\n")
    };
    let text: String = GUESTS.iter().zip(&components).map(line).collect();
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(Path::new(&out).join("guests.rs"), text).expect("write the constants");
}
