//! Compiled code that is kept: private, never trusted by its name, and worth nothing but time.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::policy::cache::Cache;
use crate::policy::engine::engine;

const ONE: &str = "1111";
const OTHER: &str = "2222";

/// Loads a component and tells whether it had to be compiled.
fn compiles(directory: &Path, digest: &str) -> bool {
    let cache = Cache::new(directory);
    let text = format!(r#"(component (core module (func (export "{digest}"))))"#);
    cache
        .component(engine().unwrap(), digest, || Ok(wat::parse_str(text)?))
        .unwrap();
    cache.compiled() == 1
}

fn kept() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("code");
    assert!(compiles(&directory, ONE));
    (home, directory)
}

fn entry(directory: &Path, digest: &str) -> PathBuf {
    let files = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
    files
        .into_iter()
        .find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(digest))
        .unwrap()
}

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn the_second_load_compiles_nothing() {
    let (_home, directory) = kept();
    assert!(!compiles(&directory, ONE));
    assert!(compiles(&directory, OTHER));
    assert!(!compiles(&directory, OTHER));
}

#[test]
fn code_that_was_compiled_for_a_check_is_not_compiled_again() {
    let home = tempfile::tempdir().unwrap();
    let cache = Cache::new(&home.path().join("code"));
    let bytes = wat::parse_str("(component)").unwrap();
    cache.keep(engine().unwrap(), ONE, &crate::policy::compile(&bytes).unwrap());
    let never = || -> wasmtime::Result<Vec<u8>> { panic!("its code is there") };
    cache.component(engine().unwrap(), ONE, never).unwrap();
    assert_eq!(cache.compiled(), 0);
}

#[test]
fn the_directory_and_its_files_are_private() {
    let (_home, directory) = kept();
    assert_eq!(mode_of(&directory), 0o700);
    let files: Vec<PathBuf> = fs::read_dir(&directory)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    assert_eq!(files.len(), 2, "a key and an entry, nothing half-written: {files:?}");
    assert!(files.iter().all(|file| mode_of(file) == 0o600));
}

#[test]
fn an_entry_with_a_changed_byte_is_compiled_again_and_mended() {
    let (_home, directory) = kept();
    let path = entry(&directory, ONE);
    let whole = fs::read(&path).unwrap();
    for at in [0, 31, 32, whole.len() / 2, whole.len() - 1] {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(&path, changed).unwrap();
        assert!(compiles(&directory, ONE), "byte {at}");
        assert!(!compiles(&directory, ONE), "byte {at}");
    }
    for length in [0, 31, 32, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(compiles(&directory, ONE), "{length} bytes");
    }
}

#[test]
fn the_code_of_one_component_never_stands_in_for_anothers() {
    let (_home, directory) = kept();
    assert!(compiles(&directory, OTHER));
    fs::copy(entry(&directory, OTHER), entry(&directory, ONE)).unwrap();
    assert!(compiles(&directory, ONE));
}

#[test]
fn another_key_or_none_compiles_again() {
    let (_home, directory) = kept();
    let key = directory.join("key");
    fs::write(&key, [7; 32]).unwrap();
    assert!(compiles(&directory, ONE));
    assert!(!compiles(&directory, ONE));
    fs::write(&key, b"short").unwrap();
    assert!(compiles(&directory, ONE));
    fs::remove_file(&key).unwrap();
    assert!(compiles(&directory, ONE));
    assert!(!compiles(&directory, ONE));
}

#[test]
fn a_key_that_others_could_read_is_replaced() {
    let (_home, directory) = kept();
    set_mode(&directory.join("key"), 0o644);
    assert!(compiles(&directory, ONE));
    assert_eq!(mode_of(&directory.join("key")), 0o600);
    assert!(!compiles(&directory, ONE));
}

#[test]
fn a_directory_that_others_can_write_is_not_used() {
    let (_home, directory) = kept();
    for mode in [0o777, 0o770, 0o722] {
        set_mode(&directory, mode);
        assert!(compiles(&directory, ONE), "{mode:o}");
    }
}

#[test]
fn a_directory_that_others_can_only_read_is_closed_to_them() {
    let (_home, directory) = kept();
    set_mode(&directory, 0o755);
    assert!(!compiles(&directory, ONE));
    assert_eq!(mode_of(&directory), 0o700);
}

#[test]
fn a_directory_that_cannot_be_made_costs_time_only() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "no directory").unwrap();
    for directory in [file.join("code"), file, PathBuf::from("/proc/runwarden/code")] {
        assert!(compiles(&directory, ONE));
        assert!(compiles(&directory, ONE));
    }
}
