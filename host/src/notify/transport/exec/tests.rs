//! Real programs.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;

use crate::model::{Dispatch, Sent, Transport};
use crate::notify::outline;
use crate::notify::transport::bench::{AMPLE_MS, SECRET, SHORT_MS, TOKEN, dispatch, error_of, sent};

const BODY: &[u8] = b"{\"event\":\"$(touch /tmp/x); `id` | cat > y & ' \\\" *\"}";

fn to(argv: &[&str], env: &[&str], timeout_ms: i64) -> Dispatch {
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    let (argv, env) = (owned(argv), owned(env));
    dispatch(Transport::Exec { argv, env }, BODY, timeout_ms)
}

async fn shell(script: &str) -> Sent {
    sent(&to(&["/bin/sh", "-c", script], &[], AMPLE_MS)).await
}

fn delivered() -> Sent {
    Sent::Delivered("exit 0".to_owned())
}

#[tokio::test]
async fn no_field_reaches_a_shell() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out");
    // The program itself shows what it was given: three words, and a variable.
    let script = "printf '%s\\n' \"$1\" \"$2\" \"$SHELL_LIKE\" > \"$3\"";
    let out_text = out.to_str().unwrap();
    let argv = [
        "/bin/sh",
        "-c",
        script,
        "sh",
        "{payload}",
        "a;b $(id) {payload}",
        out_text,
    ];
    assert_eq!(sent(&to(&argv, &["SHELL_LIKE"], AMPLE_MS)).await, delivered());
    let body = std::str::from_utf8(BODY).unwrap();
    let expected = format!("{body}\na;b $(id) {{payload}}\n$(exit 9); `exit 9` | & ' \"\n");
    assert_eq!(fs::read_to_string(&out).unwrap(), expected);
    for program in ["true; exit 3", "true && true", "$PATH", "true | cat"] {
        let sent = sent(&to(&[program], &[], AMPLE_MS)).await;
        assert!(error_of(&sent).contains("cannot start"), "{sent:?}");
    }
}

#[tokio::test]
async fn the_body_is_on_standard_input_when_no_argument_takes_it() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out");
    assert_eq!(shell(&format!("cat > {}", out.display())).await, delivered());
    assert_eq!(fs::read(&out).unwrap(), BODY);
}

#[tokio::test]
async fn a_program_that_does_not_read_is_no_error() {
    let body = vec![b'x'; 1 << 20];
    let mut unread = to(&["/bin/true"], &[], AMPLE_MS);
    unread.body = body;
    assert_eq!(sent(&unread).await, delivered());
}

#[tokio::test]
async fn the_environment_is_what_is_documented_and_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out");
    let argv = ["/bin/sh", "-c", "exec env > \"$0\"", out.to_str().unwrap()];
    assert_eq!(
        sent(&to(&argv, &["OPS_SECRET", "NOT_SET"], AMPLE_MS)).await,
        delivered()
    );
    let text = fs::read_to_string(&out).unwrap();
    let mut names: Vec<&str> = text.lines().filter_map(|line| line.split('=').next()).collect();
    // What the shell makes of its own accord.
    names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name));
    names.sort_unstable();
    let expected = [
        "HOME",
        "LANG",
        "OPS_SECRET",
        "PATH",
        "RUNWARDEN_ACK_TOKEN",
        "RUNWARDEN_ATTEMPT_NUMBER",
        "RUNWARDEN_ATTEMPT_TOKEN",
        "RUNWARDEN_DISPATCH_ID",
        "RUNWARDEN_EVENT_ID",
        "RUNWARDEN_HOME",
    ];
    assert_eq!(names, expected);
    let told = outline(&to(&argv, &[], AMPLE_MS).target, true).environment;
    names.retain(|name| name.starts_with("RUNWARDEN_"));
    assert_eq!(names, told.into_keys().collect::<Vec<_>>(), "as it is told beforehand");
    assert!(text.contains("RUNWARDEN_DISPATCH_ID=d7kq2m3vxhc\n"), "{text}");
    assert!(text.contains("RUNWARDEN_ATTEMPT_NUMBER=3\n"), "{text}");
    assert!(text.contains("RUNWARDEN_EVENT_ID=store:r1:2\n"), "{text}");
}

#[tokio::test]
async fn a_failure_tells_the_end_of_what_was_written_on_one_line() {
    let sent = shell("printf 'first\\nno \\033[31mroom'; echo ' left' >&2; exit 4").await;
    assert_eq!(error_of(&sent), "exit 4: first\\nno \\u{1b}[31mroom left");
    let sent = shell("kill -9 $$").await;
    assert_eq!(error_of(&sent), "ended by signal 9");
}

#[tokio::test]
async fn a_flood_of_output_costs_neither_memory_nor_the_attempt() {
    let sent = shell("head -c 20000000 /dev/zero | tr '\\0' x; echo the end; exit 1").await;
    let error = error_of(&sent);
    assert!(error.chars().count() <= 2_000, "{} characters", error.chars().count());
    assert!(error.ends_with("xxx") || error.ends_with("the end"), "{error}");
}

#[tokio::test]
async fn neither_the_token_nor_a_named_variable_is_told() {
    let argv = ["/bin/sh", "-c", "echo \"$RUNWARDEN_ACK_TOKEN $OPS_SECRET\"; exit 1"];
    let sent = sent(&to(&argv, &["OPS_SECRET"], AMPLE_MS)).await;
    let error = error_of(&sent);
    assert_eq!(error, "exit 1: [hidden] [hidden]");
    assert!(!error.contains(TOKEN) && !error.contains(SECRET));
}

#[tokio::test]
async fn a_program_that_ignores_everything_is_killed_at_its_time() {
    let argv = [
        "/bin/sh",
        "-c",
        "trap '' TERM INT HUP; echo waiting; while :; do sleep 600; done",
    ];
    let sent = sent(&to(&argv, &[], SHORT_MS)).await;
    let error = error_of(&sent);
    assert!(error.starts_with("had not ended after 1.0s and was killed"), "{error}");
}

#[tokio::test]
async fn a_missing_program_may_come_back() {
    let sent = sent(&to(&["/nonexistent/notify"], &[], AMPLE_MS)).await;
    assert!(error_of(&sent).contains("/nonexistent/notify"), "{sent:?}");
}

#[tokio::test]
async fn a_destination_that_no_process_can_be_given_is_refused() {
    for (argv, env) in [
        (&[][..], &[][..]),
        (&[""], &[]),
        (&["/bin/true", "a\0b"], &[]),
        (&["/bin/true"], &["A=B"]),
        (&["/bin/true"], &[""]),
    ] {
        let sent = sent(&to(argv, env, AMPLE_MS)).await;
        assert!(matches!(sent, Sent::Refused(_)), "{argv:?} {env:?}: {sent:?}");
    }
    let mut long = to(&["/bin/true", "{payload}"], &[], AMPLE_MS);
    long.body = vec![b'x'; 200_000];
    assert!(matches!(sent(&long).await, Sent::Refused(_)));
}
