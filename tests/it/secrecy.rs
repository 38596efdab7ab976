//! Secrets are named and never held, and no field of a notice reaches a shell.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Answer, Home};
use crate::receiver::{Receiver, answer};

/// Nothing else in a home has these letters.
const SECRET: &str = "tr0ub4dor-and-3-of-correct-horse";
const OTHER: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Every file below a directory.
fn files(below: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(below).expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

fn holds(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|part| part == word.as_bytes())
}

/// Neither the home nor what a command said has a secret in it.
#[track_caller]
fn is_kept_nowhere(home: &Home, answers: &[Answer], secrets: &[&str]) {
    for path in files(&home.home()) {
        let bytes = std::fs::read(&path).unwrap_or_default();
        for secret in secrets {
            assert!(!holds(&bytes, secret), "{} holds a secret", path.display());
        }
    }
    for answer in answers {
        for secret in secrets {
            let said = format!("{}{}", answer.out, answer.err);
            assert!(!said.contains(secret), "a secret is told: {said}");
        }
    }
}

/// Everything that shows a notice, with everything that is logged.
fn shown(home: &Home) -> Vec<Answer> {
    let id = home.notice()["id"].as_str().expect("an id").to_owned();
    let reference = format!("dispatch/{id}");
    let commands: [&[&str]; 8] = [
        &["outbox", "ls", "--json"],
        &["outbox", "ls"],
        &["outbox", "show", &id, "--json"],
        &["outbox", "show", &id],
        &["notify", "show", "--json"],
        &["notify", "test", "ops", "--ref", "one", "--json"],
        &["history", &reference, "--json"],
        &["history", "--admin", "--json"],
    ];
    let variables = [("OPS_SECRET", SECRET), ("OPS_URL", URL), ("RUNWARDEN_LOG", "trace")];
    commands
        .iter()
        .map(|command| home.run_with(command, &variables))
        .collect()
}

const URL: &str = "https://127.0.0.1:1/tr0ub4dor-path";

#[test]
fn a_secret_is_kept_and_told_nowhere_whatever_becomes_of_the_attempt() {
    let home = Home::new();
    // The receiver says back what it was sent, which is nobody's to read.
    let receiver = Receiver::new(|request| {
        let rotated = if request.headers["runwarden-attempt"] == "1" {
            &OTHER[6..]
        } else {
            ""
        };
        let said = format!("{SECRET} {:?} {rotated}", request.headers);
        let head = answer("500 Oh", "").replace("content-length: 0", &format!("content-length: {}", said.len()));
        Some(head + &said)
    });
    let url = receiver.url("/hook");
    let secret = home.path("secret");
    let secret_file = secret.to_string_lossy().into_owned();
    let options = [
        "--url",
        &url,
        "--allow-private",
        "--secret-env",
        "OPS_SECRET",
        "--secret-file",
        &secret_file,
    ];
    home.bind("ops", &options);
    let log = ("RUNWARDEN_LOG", "trace");
    let mut answers = Vec::new();
    let end = ["transition", "one", "completed", "--reason", "run.completed.ok"];
    home.done(&["create", "session", "--id", "one"]);
    // Not there: not attempted, and no attempt is counted.
    answers.push(home.run_with(&end, &[("OPS_SECRET", SECRET), log]));
    let notice = home.notice();
    assert_eq!(
        (&notice["status"], &notice["attempt"]),
        (&json!("pending"), &json!(0)),
        "{notice}"
    );
    let error = notice["last_error"].as_str().unwrap_or_default();
    assert!(error.contains(&secret_file), "{error}");
    answers.extend(shown(&home));
    // No base64, empty, rotated, right.
    for (text, attempts) in [("whsec_!!!tr0ub4dor", 0), ("\n", 0), (OTHER, 1), (SECRET, 2)] {
        std::fs::write(&secret, text).expect("a file of the test");
        home.overdue();
        answers.push(home.run_with(
            &["outbox", "deliver", "--once", "--json"],
            &[("OPS_SECRET", SECRET), log],
        ));
        assert_eq!(home.notice()["attempt"], attempts, "{text}");
        answers.extend(shown(&home));
    }
    assert_eq!(receiver.seen().len(), 2);
    home.overdue();
    answers.push(home.run_with(&["outbox", "deliver", "--once"], &[log]));
    let notice = home.notice();
    let error = notice["last_error"].as_str().unwrap_or_default();
    assert!(error.contains("OPS_SECRET is not set"), "{error}");
    assert_eq!(notice["attempt"], 2);
    is_kept_nowhere(&home, &answers, &["tr0ub4dor", OTHER, &OTHER[6..]]);
}

#[test]
fn a_url_that_is_a_secret_is_kept_and_told_nowhere() {
    let home = Home::new();
    home.bind("ops", &["--url-env", "OPS_URL", "--allow-private"]);
    let variables = [("OPS_URL", URL), ("RUNWARDEN_LOG", "trace")];
    home.done(&["create", "session", "--id", "one"]);
    let end = ["transition", "one", "completed", "--reason", "run.completed.ok"];
    let mut answers = vec![home.run_with(&end, &variables)];
    assert_eq!(home.notice()["attempt"], 1, "it was tried");
    answers.extend(shown(&home));
    is_kept_nowhere(&home, &answers, &["tr0ub4dor"]);
}

#[test]
fn a_token_is_in_the_environment_of_its_receiver_alone() {
    let home = Home::new();
    let token = home.path("token");
    let arguments = home.path("arguments");
    let script = format!(
        r#"printf %s "$RUNWARDEN_ACK_TOKEN" > {}; cat /proc/self/cmdline /proc/$$/cmdline > {}; echo "$RUNWARDEN_ACK_TOKEN" >&2; exit 1"#,
        token.display(),
        arguments.display()
    );
    let program = json!(["sh", "-c", script, "{payload}"]).to_string();
    home.bind("ops", &["--exec", &program, "--config", "wants_acknowledgement=true"]);
    home.ended_session("one", &[]);
    let token = std::fs::read_to_string(&token).expect("the program was started");
    assert_eq!(token.len(), 64);
    let seen = std::fs::read(&arguments).expect("the program was started");
    assert!(holds(&seen, "terminal_status") && !holds(&seen, &token));
    let answers = shown(&home);
    is_kept_nowhere(&home, &answers, &[&token]);
}

/// What a shell would act on, wherever somebody may write it.
const HOSTILE: &str = "$(touch owned) `touch owned` ; touch owned | touch owned && touch owned > owned \n '\"\\ *";

#[test]
fn no_field_of_a_notice_reaches_a_shell() {
    let home = Home::new();
    let program = home.path("$(touch owned);prog `x` *");
    let heard = home.path("heard");
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >> {}\n", heard.display());
    std::fs::write(&program, script).expect("a file of the test");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&program, mode).expect("it belongs to the test");
    let argv = json!([program.to_string_lossy(), "{payload}", HOSTILE, "x{payload}"]).to_string();
    let file = home.path("$(touch owned);ends > *").to_string_lossy().into_owned();
    let settings = format!(
        "[notify]\nmetadata_tags = [\"team\"]\n[notify.handlers.exec-1]\nargv = {argv}\n\
         [notify.handlers.file-1]\ncomponent = \"file\"\n[notify.handlers.file-1.destinations.\"a-b.c\"]\n\
         transport = \"file\"\npath = {}\n",
        json!(file)
    );
    std::fs::create_dir_all(home.path(".config/runwarden")).expect("a directory of the test");
    std::fs::write(home.path(".config/runwarden/settings.toml"), settings).expect("a file of the test");
    let tag = format!("team={HOSTILE}");
    let run = [
        "run", "--id", "one", "--name", HOSTILE, "--tag", &tag, "--", "true", HOSTILE,
    ];
    home.run(&run).exits(0);
    home.done(&["create", "session", "--id", "two", "--tag", &tag]);
    let end = [
        "transition",
        "two",
        "failed",
        "--reason",
        "run.failed.exit_nonzero",
        "--summary",
        HOSTILE,
    ];
    home.done(&end);
    home.overdue();
    home.done(&["outbox", "deliver", "--until-empty"]);
    for directory in [home.path(""), home.home(), Path::new("/").to_owned()] {
        assert!(!directory.join("owned").exists(), "{}", directory.display());
    }
    let said = std::fs::read_to_string(&heard).expect("the program was started");
    let literal = format!("{HOSTILE}\nx{{payload}}\n");
    assert_eq!(
        said.matches(&literal).count(),
        2,
        "arguments are as they were written: {said}"
    );
    let ends = crate::outbox::lines(Path::new(&file));
    let told: Vec<Value> = ends
        .iter()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(told.len(), 2);
    assert_eq!(told[0]["metadata"], json!({"team": HOSTILE}));
    let two = told
        .iter()
        .find(|event| event["entity"]["id"] == "two")
        .expect("it is told");
    assert_eq!(two["reason"]["summary"], HOSTILE);
}

#[test]
fn a_name_with_something_for_a_shell_is_no_name() {
    let home = Home::new();
    for name in ["$(touch owned)", "a;b", "a b", "../a", "a|b", "`a`"] {
        home.run(&["notify", "add", name, "--exec", "true"]).exits(64);
        home.run(&["create", "session", "--id", name]).exits(64);
    }
    for command in [
        "true; touch owned",
        "true $(touch owned)",
        "true `touch owned`",
        "true > owned",
        "true | x",
    ] {
        let refused = home.run(&["notify", "add", "ops", "--exec", command]).exits(64).err;
        assert!(refused.contains("shell"), "{refused}");
    }
    assert!(!home.path("owned").exists());
}
