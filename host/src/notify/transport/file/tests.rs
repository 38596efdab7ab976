//! Lines in real files.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::model::{Dispatch, Sent, Transport};
use crate::notify::transport::bench::{AMPLE_MS, SHORT_MS, dispatch, error_of, sent};

fn to(path: &Path, body: &[u8], timeout_ms: i64) -> Dispatch {
    let path = path.to_str().unwrap().to_owned();
    dispatch(Transport::File { path }, body, timeout_ms)
}

async fn append(path: &Path, body: &str) -> Sent {
    sent(&to(path, body.as_bytes(), AMPLE_MS)).await
}

#[tokio::test]
async fn a_line_is_appended_to_a_file_for_its_owner_alone() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("notices");
    for body in ["{\"a\":1}", "{\"b\":\"$(touch x)\"}"] {
        assert_eq!(append(&path, body).await, Sent::Delivered("appended".to_owned()));
    }
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "{\"a\":1}\n{\"b\":\"$(touch x)\"}\n"
    );
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn what_a_writer_left_half_written_is_no_part_of_the_next_line() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("notices");
    fs::write(&path, "{\"half").unwrap();
    append(&path, "{}").await;
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"half\n{}\n");
}

#[tokio::test]
async fn a_destination_that_is_no_file_is_refused_and_never_waited_for() {
    let home = tempfile::tempdir().unwrap();
    let pipe = home.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let socket = home.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for path in [
        &pipe,
        &socket,
        home.path(),
        Path::new("/dev/null"),
        Path::new("relative"),
    ] {
        let sent = append(path, "{}").await;
        assert!(matches!(sent, Sent::Refused(_)), "{}: {sent:?}", path.display());
    }
}

#[tokio::test]
async fn a_directory_that_is_not_there_may_come() {
    let home = tempfile::tempdir().unwrap();
    let sent = append(&home.path().join("later/notices"), "{}").await;
    assert!(error_of(&sent).contains("later/notices"), "{sent:?}");
}

#[tokio::test]
async fn a_body_of_several_lines_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("notices");
    let sent = append(&path, "{}\n{}").await;
    assert!(matches!(sent, Sent::Refused(_)), "{sent:?}");
    assert!(!path.exists());
}

#[tokio::test]
async fn a_lock_that_somebody_keeps_costs_the_time_limit_and_nothing_is_written_afterwards() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("notices");
    let held = fs::File::create(&path).unwrap();
    held.lock().unwrap();
    let sent = sent(&to(&path, b"{\"late\":true}", SHORT_MS)).await;
    assert!(error_of(&sent).contains("1.0s"), "{sent:?}");
    drop(held);
    append(&path, "{}").await;
    assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n");
}
