//! Rust: cargo builds the component, the linker that comes with the toolchain makes it one.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::super::find::read;
use super::super::template::Source;
use super::Built;
use super::tool::Tool;
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;

/// The manifest.
pub(super) const MARK: &str = "Cargo.toml";

/// What a new policy is made of.
pub(super) const POLICY: &[Source] = &project("rust/policy");

/// What a new handler is made of.
pub(super) const HANDLER: &[Source] = &project("rust/handler");

const fn project(from: &'static str) -> [Source; 4] {
    [
        Source { from, to: "" },
        Source {
            from: "rust/kit",
            to: "kit",
        },
        Source { from: "kit", to: "kit" },
        Source { from: "wit", to: "wit" },
    ]
}

const CARGO: Tool = Tool {
    program: "cargo",
    install: "install Rust: https://rustup.rs",
};

const RUSTC: Tool = Tool {
    program: "rustc",
    install: CARGO.install,
};

const TARGET: &str = "wasm32-unknown-unknown";

/// Builds the project in a directory.
pub(super) fn build(project: &Path) -> Outcome<Built> {
    demand_target(project)?;
    let arguments = [
        "build",
        "--release",
        "--target",
        TARGET,
        "--message-format",
        "json-render-diagnostics",
    ];
    let mut command = CARGO.command(project, &arguments);
    command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", "wasm-component-ld");
    let messages = CARGO.answer(&mut command)?;
    let component = component(project, &String::from_utf8_lossy(&messages))?;
    Ok(Built {
        component: read(&component)?,
        table: None,
    })
}

/// The standard library of the target is installed.
fn demand_target(project: &Path) -> Outcome<()> {
    let sysroot = RUSTC.answer(&mut RUSTC.command(project, &["--print", "sysroot"]))?;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&sysroot).trim());
    if sysroot.join("lib/rustlib").join(TARGET).is_dir() {
        return Ok(());
    }
    let message = format!("Rust cannot build for {TARGET} here");
    Err(Failure::new(Exit::UNUSABLE, "tool_missing", message).hint(format!("rustup target add {TARGET}")))
}

/// The component that cargo made of the package in a directory, by what it told: one JSON object a line.
fn component(project: &Path, messages: &str) -> Outcome<PathBuf> {
    let manifest = project.join(MARK);
    let manifest = manifest
        .canonicalize()
        .map_err(|error| Failure::file("read", &manifest, &error))?;
    let artefacts = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| {
            let of = message["manifest_path"].as_str().map(Path::new);
            message["reason"] == "compiler-artifact"
                && of.and_then(|path| path.canonicalize().ok()).as_ref() == Some(&manifest)
        });
    let files: Vec<String> = artefacts
        .filter_map(|message| serde_json::from_value::<Vec<String>>(message["filenames"].clone()).ok())
        .flatten()
        .collect();
    let component = files.into_iter().find(|file| file.ends_with(".wasm"));
    component.map(PathBuf::from).ok_or_else(|| {
        let message = format!("{} makes no component", manifest.display());
        Failure::new(Exit::UNUSABLE, "build_failed", message)
            .hint("its library is a `cdylib`: [lib] crate-type = [\"cdylib\", \"rlib\"]")
    })
}
