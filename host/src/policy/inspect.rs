//! What a file is, found out without compiling or running any of it.

use wasmparser::{Encoding, Parser, Payload, Validator, WasmFeatures};

use super::fault::InstallError;
use super::limits::Limits;
use super::line::Line;
use crate::model::{Finding, Function, Severity};

/// The interfaces, of every WIT line, that a component may export.
const EXPORTS: [&str; 6] = [
    "runwarden:policy/lifecycle",
    "runwarden:policy/guard",
    "runwarden:policy/execution",
    "runwarden:policy/health",
    "runwarden:policy/migrate",
    "runwarden:notify/notifier",
];

/// What the names of all interfaces of ours begin with.
const OUR_PACKAGES: &str = "runwarden:";

/// The one interface that a component may import.
const IMPORT: &str = "runwarden:host/diagnostics";

/// Packages whose interfaces hold types alone: importing them gives a component nothing.
const TYPE_PACKAGES: [&str; 1] = ["runwarden:types/types"];

/// An exported interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Package and interface, such as `runwarden:policy/guard`.
    pub interface: String,
    /// Its version.
    pub version: String,
}

/// What a component shows from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspected {
    /// Exported interfaces of ours, sorted.
    pub exports: Vec<Export>,
    /// Exported interfaces in our packages that this host does not know, as written.
    pub unknown: Vec<String>,
    /// Every import, as written.
    pub imports: Vec<String>,
}

impl Inspected {
    /// The optional functions of a policy that it has.
    pub fn functions(&self) -> Vec<Function> {
        let exported = |function: &Function| self.exports(function.interface());
        Function::ALL.into_iter().filter(exported).collect()
    }

    /// Whether the interface is exported, `guard` for `runwarden:policy/guard`.
    pub fn exports(&self, interface: &str) -> bool {
        self.exports
            .iter()
            .any(|export| export.interface.rsplit('/').next() == Some(interface))
    }
}

/// Validates bytes as a component and reads its imports and exports.
///
/// # Errors
/// Every problem, each with its place: too large, not WebAssembly, a core module, invalid, forbidden imports, nothing
/// that a policy or handler exports, a WIT version that this host does not speak.
pub fn inspect(bytes: &[u8], limits: Limits) -> Result<Inspected, InstallError> {
    if bytes.len() > limits.component_bytes {
        return Err(InstallError::TooLarge {
            bytes: bytes.len(),
            limit_bytes: limits.component_bytes,
        });
    }
    if wasmtime::Engine::detect_precompiled(bytes).is_some() {
        let message = "compiled code: it would be run unchecked, so only components are admitted";
        return Err(InstallError::problem("header", message));
    }
    if !bytes.starts_with(b"\0asm") {
        let message = "not WebAssembly: build the policy for wasm32 first (a text file or a native library is none)";
        return Err(InstallError::problem("header", message));
    }
    if Parser::is_core_wasm(bytes) {
        let message =
            "a core module, not a component: link it with `wasm-component-ld`, or run `wasm-tools component new`";
        return Err(InstallError::problem("header", message));
    }
    if !Parser::is_component(bytes) {
        let message = "WebAssembly of a version that this runwarden does not know, or the file is cut short";
        return Err(InstallError::problem("header", message));
    }
    let mut validator = Validator::new_with_features(WasmFeatures::default());
    validator
        .validate_all(bytes)
        .map_err(|error| InstallError::problem("component", error.to_string()))?;
    let (imports, exports) = names(bytes).map_err(|error| InstallError::problem("component", error.to_string()))?;
    judge(imports, &exports)
}

/// The interfaces of ours that a component exports, with their versions: names alone, nothing is validated.
pub(crate) fn exported(bytes: &[u8]) -> Option<Vec<String>> {
    let (_, exports) = names(bytes).ok()?;
    Some(
        exports
            .into_iter()
            .filter(|export| EXPORTS.contains(&split(export).0))
            .collect(),
    )
}

/// The names of the outermost component's imports and exports.
fn names(bytes: &[u8]) -> Result<(Vec<String>, Vec<String>), wasmparser::BinaryReaderError> {
    let (mut imports, mut exports, mut depth) = (Vec::new(), Vec::new(), 0_usize);
    for payload in Parser::new(0).parse_all(bytes) {
        match payload? {
            Payload::Version {
                encoding: Encoding::Component | Encoding::Module,
                ..
            } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section {
                    imports.push(import?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section {
                    exports.push(export?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok((imports, exports))
}

fn judge(imports: Vec<String>, exports: &[String]) -> Result<Inspected, InstallError> {
    let mut problems = Vec::new();
    let mut report = |place: String, message: String| {
        problems.push(Finding {
            severity: Severity::Error,
            place,
            message,
        });
    };
    for import in &imports {
        let (interface, version) = split(import);
        let known = interface == IMPORT || TYPE_PACKAGES.contains(&interface);
        if !known {
            let advice = advice(interface);
            report(format!("imports.{import}"), format!("may not be imported: {advice}"));
        } else if Line::of_version(version).is_none() {
            report(format!("imports.{import}"), newer(version));
        }
    }
    let (mut ours, mut unknown) = (Vec::new(), Vec::new());
    for export in exports {
        let (interface, version) = split(export);
        if !EXPORTS.contains(&interface) {
            if interface.starts_with(OUR_PACKAGES) {
                unknown.push(export.clone());
            }
            continue;
        }
        if Line::of_version(version).is_none() {
            report(format!("exports.{export}"), newer(version));
        }
        if ours.iter().any(|known: &Export| known.interface == interface) {
            report(
                format!("exports.{export}"),
                "exported in two versions: which one is meant?".to_owned(),
            );
        }
        ours.push(Export {
            interface: interface.to_owned(),
            version: version.to_owned(),
        });
    }
    let offers = |name: &str| ours.iter().any(|export| export.interface == name);
    if !offers(EXPORTS[0]) && !offers(EXPORTS[5]) {
        let message =
            "exports neither runwarden:policy/lifecycle nor runwarden:notify/notifier: it is no policy and no handler";
        report("exports".to_owned(), message.to_owned());
    }
    ours.sort_by(|a, b| a.interface.cmp(&b.interface));
    if problems.is_empty() {
        Ok(Inspected {
            exports: ours,
            unknown,
            imports,
        })
    } else {
        Err(InstallError::unusable(problems))
    }
}

fn split(name: &str) -> (&str, &str) {
    name.split_once('@').unwrap_or((name, ""))
}

fn newer(version: &str) -> String {
    let version = if version.is_empty() { "no version" } else { version };
    format!(
        "WIT {version}: this runwarden speaks {}; use a later runwarden, or build against the files that `runwarden policy wit DIR` writes",
        Line::all_in_words()
    )
}

fn advice(interface: &str) -> &'static str {
    if interface.starts_with("wasi:") {
        "a policy gets no clock, files, network or entropy; build for wasm32-unknown-unknown, or stub WASI when componentizing"
    } else {
        "the only import is runwarden:host/diagnostics"
    }
}
