//! Keys in real directories.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

#[test]
fn a_token_is_the_same_each_time_and_is_that_of_its_dispatch_alone() {
    let home = tempfile::tempdir().unwrap();
    let first = token(home.path(), "d1").unwrap();
    assert_eq!(first.len(), 64);
    assert_eq!(token(home.path(), "d1").unwrap(), first);
    assert!(verifies(home.path(), "d1", &first).unwrap());
    assert!(verifies(home.path(), "d1", &first.to_uppercase()).unwrap());
    let cut = &first[..62];
    for (id, wrong) in [
        ("d2", first.as_str()),
        ("d1", cut),
        ("d1", ""),
        ("d1", "zz"),
        ("d1", "é"),
    ] {
        assert!(!verifies(home.path(), id, wrong).unwrap(), "{id} {wrong}");
    }
}

#[test]
fn all_who_make_the_key_at_once_agree() {
    let home = tempfile::tempdir().unwrap();
    let tokens: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| token(home.path(), "d1").unwrap()))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(tokens.iter().all(|token| *token == tokens[0]), "{tokens:?}");
    let names: Vec<_> = fs::read_dir(home.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, [KEY_FILE]);
}

#[test]
fn the_key_is_its_owners_alone_and_counts_for_nothing_otherwise() {
    let home = tempfile::tempdir().unwrap();
    let token = token(home.path(), "d1").unwrap();
    let path = home.path().join(KEY_FILE);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    let told = verifies(home.path(), "d1", &token).unwrap_err();
    assert!(matches!(told, KeyError::Exposed { .. }), "{told}");
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    fs::write(&path, "short").unwrap();
    let told = super::token(home.path(), "d1").unwrap_err();
    assert!(matches!(told, KeyError::Damaged { .. }), "{told}");
}

#[test]
fn a_home_without_a_key_gave_no_token_and_gets_no_key_by_a_check() {
    let home = tempfile::tempdir().unwrap();
    assert!(!verifies(home.path(), "d1", "00").unwrap());
    assert!(!home.path().join(KEY_FILE).exists());
}
