//! What the components import and export, read from their bytes.

use runwarden_bundled::{Bundled, HANDLERS, POLICIES};
use wasmparser::{ComponentExternalKind, Parser, Payload, Validator, WasmFeatures};

/// A bundled component is smaller than this; one that grows past it has pulled something in.
const SIZE_LIMIT_BYTES: usize = 128 * 1024;

#[test]
fn a_component_imports_diagnostics_and_shared_types_alone() {
    for policy in POLICIES.iter().chain(HANDLERS) {
        for import in names(policy).imports {
            let admitted = ["runwarden:host/diagnostics@0.1.0", "runwarden:types/types@0.1.0"];
            assert!(admitted.contains(&&*import), "{} imports {import}", label(policy));
        }
    }
}

#[test]
fn a_policy_exports_what_its_policy_names_and_nothing_else() {
    for policy in POLICIES {
        let assesses = ["run", "session", "invocation"].contains(&policy.name);
        let mut expected = vec!["runwarden:policy/lifecycle@0.1.0"];
        if assesses {
            expected.insert(0, "runwarden:policy/health@0.1.0");
        }
        let mut found = names(policy).exports;
        found.sort();
        assert_eq!(found, expected, "{}", label(policy));
    }
}

#[test]
fn a_handler_exports_the_notifier_and_nothing_else() {
    for handler in HANDLERS {
        assert_eq!(
            names(handler).exports,
            ["runwarden:notify/notifier@0.1.0"],
            "{}",
            label(handler)
        );
    }
}

#[test]
fn a_component_is_valid_and_small() {
    for policy in POLICIES.iter().chain(HANDLERS) {
        Validator::new_with_features(WasmFeatures::default())
            .validate_all(&policy.component())
            .unwrap_or_else(|error| panic!("{}: {error}", label(policy)));
        let size = policy.component().len();
        assert!(size < SIZE_LIMIT_BYTES, "{} has {size} bytes", label(policy));
    }
}

#[test]
fn a_component_carries_no_path_of_the_machine_that_built_it() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let root = std::fs::canonicalize(root).expect("the workspace exists");
    let needle = root.to_str().expect("the test runs below a readable path");
    for policy in POLICIES.iter().chain(HANDLERS) {
        let component = policy.component();
        let mut windows = component.windows(needle.len());
        assert!(!windows.any(|bytes| bytes == needle.as_bytes()), "{}", label(policy));
    }
}

#[derive(Default)]
struct Names {
    imports: Vec<String>,
    exports: Vec<String>,
}

/// Names at the top of the component: those of nested modules and components are not its own.
fn names(component: &Bundled) -> Names {
    let mut names = Names::default();
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(&component.component()) {
        match payload.expect("the component parses") {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    names.imports.push(import.expect("an import").name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    let export = export.expect("an export");
                    assert_eq!(export.kind, ComponentExternalKind::Instance);
                    names.exports.push(export.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    names
}

fn label(policy: &Bundled) -> String {
    format!("{}@{}", policy.name, policy.version)
}
