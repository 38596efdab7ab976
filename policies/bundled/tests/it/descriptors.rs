//! `BLESS=1 cargo test -p runwarden-bundled` writes the committed descriptors anew.

use std::path::PathBuf;

use runwarden_bundled::{HANDLERS, POLICIES};

use crate::{json, policies};

/// Path below `policies` and text of every descriptor.
fn described() -> Vec<(PathBuf, String)> {
    let tables = policies::all().into_iter();
    let tables = tables.map(|(directory, table)| (path("lifecycle", directory), json::pretty(&table)));
    let handlers = policies::handlers().into_iter();
    let handlers = handlers.map(|(directory, handler)| (path("notify", directory), json::pretty(&handler)));
    tables.chain(handlers).collect()
}

#[test]
fn the_committed_descriptors_are_what_the_components_describe() {
    let bless = std::env::var_os("BLESS").is_some_and(|value| value == "1");
    let mut stale = Vec::new();
    for (path, made) in described() {
        if std::fs::read_to_string(&path).unwrap_or_default() == made {
            continue;
        }
        if bless {
            std::fs::write(&path, made).expect("write the descriptor");
        } else {
            stale.push(path);
        }
    }
    assert!(
        stale.is_empty(),
        "stale: {stale:?}; run `BLESS=1 cargo test -p runwarden-bundled`"
    );
}

#[test]
fn the_bundled_tables_name_what_the_components_describe() {
    let tables = policies::all().map(|(_, table)| (table.name, table.version, table.kind));
    let handlers = policies::handlers().map(|(_, handler)| (handler.name, handler.version, "handler".to_owned()));
    let described: Vec<_> = tables.into_iter().chain(handlers).collect();
    let bundled = POLICIES.iter().chain(HANDLERS);
    let listed: Vec<_> = bundled
        .map(|bundled| [bundled.name, bundled.version, bundled.kind].map(str::to_owned))
        .map(|[name, version, kind]| (name, version, kind))
        .collect();
    assert_eq!(listed, described);
}

#[test]
fn the_bundled_descriptors_are_the_committed_ones() {
    let bundled = POLICIES.iter().chain(HANDLERS);
    for (bundled, (path, _)) in bundled.zip(described()) {
        let committed = std::fs::read_to_string(&path).expect("it is committed");
        assert_eq!(bundled.descriptor, committed, "{}", path.display());
    }
}

fn path(family: &str, directory: &str) -> PathBuf {
    let policies = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    PathBuf::from(policies)
        .join(family)
        .join(directory)
        .join("descriptor.json")
}
