//! `BLESS=1 cargo test -p runwarden-bundled` writes the committed descriptors anew.

use std::path::PathBuf;

use runwarden_bundled::POLICIES;

use crate::{json, policies};

#[test]
fn the_committed_descriptors_are_what_the_policies_describe() {
    let bless = std::env::var_os("BLESS").is_some_and(|value| value == "1");
    let mut stale = Vec::new();
    for (directory, table) in policies::all() {
        let path = path(directory);
        let made = json::pretty(&table);
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
fn the_bundled_table_names_what_the_policies_describe() {
    let tables = policies::all();
    assert_eq!(POLICIES.len(), tables.len());
    for (bundled, (directory, table)) in POLICIES.iter().zip(tables) {
        assert_eq!(
            (bundled.name, bundled.version, bundled.kind),
            (&*table.name, &*table.version, &*table.kind)
        );
        let committed = std::fs::read_to_string(path(directory)).expect("it is committed");
        assert_eq!(bundled.descriptor, committed, "{directory}");
    }
}

fn path(directory: &str) -> PathBuf {
    let lifecycle = concat!(env!("CARGO_MANIFEST_DIR"), "/../lifecycle");
    PathBuf::from(lifecycle).join(directory).join("descriptor.json")
}
