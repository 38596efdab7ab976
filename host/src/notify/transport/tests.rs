//! What holds for every transport.

use super::bench::{SHORT_MS, dispatch, error_of, sent};
use super::*;

#[test]
fn an_attempt_can_be_made_by_any_task() {
    fn check<T: Send>(_: fn(&'static Attempt<'static>) -> T) {}
    check(send);
}

#[tokio::test]
async fn whatever_is_told_is_one_line_of_bounded_length() {
    let name = format!("/nonexistent/\u{1b}[2J\n{}", "long".repeat(1_000));
    for transport in [
        Transport::File { path: name.clone() },
        Transport::Exec {
            argv: vec![name],
            env: Vec::new(),
        },
    ] {
        let sent = sent(&dispatch(transport, b"{}", SHORT_MS)).await;
        let error = error_of(&sent);
        assert!(error.chars().count() <= 2_000, "{error}");
        assert!(!error.chars().any(char::is_control), "{error}");
    }
}
