//! What must stay absent from the sources.

use std::fs;
use std::path::{Path, PathBuf};

/// Every Rust file of the host.
fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}

/// The files in which a word of wasmtime's stands, tests excepted.
fn with(word: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let holds = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let stands = |(at, _): (usize, &str)| !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        text.match_indices(word).any(stands)
    };
    let mut files: Vec<String> = sources()
        .into_iter()
        .filter(holds)
        .map(|path| path.strip_prefix(&root).unwrap().to_string_lossy().into_owned())
        .filter(|path| !path.starts_with("policy/tests/"))
        .collect();
    files.sort();
    files
}

#[test]
fn one_function_makes_every_store_of_components() {
    assert_eq!(with("Store::new("), ["policy/instance.rs"]);
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/policy/instance.rs")).unwrap();
    assert_eq!(text.matches("Store::new(").count(), 1);
}

#[test]
fn one_module_knows_wasmtime() {
    assert!(with("wasmtime::").iter().all(|path| path.starts_with("policy/")));
    assert_eq!(with("Component::deserialize("), ["policy/code.rs"]);
    assert_eq!(with("Engine::new("), ["policy/engine.rs"]);
}

#[test]
fn each_line_of_the_wit_is_known_to_its_own_directory_alone() {
    let mut named = with("bindings::exports::");
    named.extend(with("bindings::runwarden::"));
    assert!(
        !named.is_empty() && named.iter().all(|path| path.starts_with("policy/wit_0_1/")),
        "{named:?}"
    );
}
