//! Every end is heard: planned in its own commit whoever wrote it, told once as long as nothing dies, never lost.

use std::path::Path;

use serde_json::{Value, json};

use crate::crashes::dies_at;
use crate::harness::{Home, lives, until};

/// A handler that adds a line to a file: the dispatch's id, a space, the body.
pub(crate) fn sink(file: &Path) -> String {
    let script = format!(
        r#"printf '%s %s\n' "$RUNWARDEN_DISPATCH_ID" "$(cat)" >> {}"#,
        file.display()
    );
    json!(["sh", "-c", script]).to_string()
}

/// What a sink was told: dispatch and envelope, in the order of arrival.
pub(crate) fn told(file: &Path) -> Vec<(String, Value)> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = |line: &str| {
        let (id, body) = line.split_once(' ').expect("an id and a body");
        (id.to_owned(), serde_json::from_str(body).expect("the body is JSON"))
    };
    text.lines().map(line).collect()
}

fn told_of(file: &Path, id: &str) -> Vec<Value> {
    let of = |(_, envelope): (String, Value)| (envelope["entity"]["id"] == id).then_some(envelope);
    told(file).into_iter().filter_map(of).collect()
}

/// Waits for the events of an entity, and sees that there are no more of them: dispatches as well as deliveries.
#[track_caller]
fn heard(home: &Home, file: &Path, id: &str, statuses: &[&str]) -> Vec<Value> {
    until(&format!("{id} is told"), || told_of(file, id).len() >= statuses.len());
    let envelopes = told_of(file, id);
    let terminal: Vec<&Value> = envelopes.iter().map(|envelope| &envelope["terminal_status"]).collect();
    assert_eq!(terminal, statuses, "{id}");
    let history = home.json(&["history", id]);
    let rows = history.as_array().expect("history is a list");
    for envelope in &envelopes {
        let row = rows.iter().find(|row| row["id"] == envelope["event_id"]);
        let row = row.unwrap_or_else(|| panic!("{} is the id of no history row", envelope["event_id"]));
        assert_eq!(row["status"], envelope["terminal_status"]);
        assert_eq!(row["reason"]["code"], envelope["reason"]["code"]);
    }
    let listed = home.json(&["outbox", "ls", "--limit", "1000"]);
    let listed = listed.as_array().expect("notices are a list");
    let of = |notice: &&Value| {
        envelopes
            .iter()
            .any(|envelope| envelope["event_id"] == notice["event_id"])
    };
    assert_eq!(listed.iter().filter(of).count(), statuses.len(), "one notice an event");
    envelopes
}

#[test]
fn every_way_to_end_is_told_once_with_the_true_status() {
    let home = Home::new();
    let file = home.path("heard");
    let notify = sink(&file);
    let detach = |id: &str, options: &[&str], program: &[&str]| {
        let arguments = [&["--notify", &notify], options, &["--"], program].concat();
        home.detach(id, &arguments);
    };
    detach("exited", &[], &["sh", "-c", "exit 3"]);
    let end = heard(&home, &file, "exited", &["failed"]);
    assert_eq!(
        (
            &end[0]["schema"],
            &end[0]["success"],
            &end[0]["exit_code"],
            &end[0]["durable"]
        ),
        (&json!("runwarden.run-terminal"), &json!(false), &json!(3), &json!(true))
    );
    detach("killed", &[], &["sleep", "600"]);
    home.done(&["kill", "killed", "--grace", "1"]);
    heard(&home, &file, "killed", &["cancelled"]);
    detach("late", &["--timeout", "200ms"], &["sleep", "600"]);
    heard(&home, &file, "late", &["timed_out"]);
    detach(
        "reported",
        &[],
        &[
            crate::harness::PROGRAM,
            "report",
            "completed",
            "--reason",
            "run.completed.ok",
            "--message",
            "done",
        ],
    );
    heard(&home, &file, "reported", &["completed"]);
    home.run(&[
        "run",
        "--detach",
        "--id",
        "absent",
        "--notify",
        &notify,
        "--",
        "/no/such/program",
    ])
    .exits(127);
    heard(&home, &file, "absent", &["failed"]);
}

#[test]
fn what_is_no_process_is_told_too() {
    let home = Home::new();
    let file = home.path("heard");
    let notify = sink(&file);
    home.done(&["create", "session", "--id", "s", "--notify", &notify]);
    home.done(&["transition", "s", "completed", "--reason", "run.completed.ok"]);
    heard(&home, &file, "s", &["completed"]);
    home.done(&[
        "transition",
        "s",
        "completed",
        "--reason",
        "run.completed.ok",
        "--summary",
        "again",
    ]);
    let moved = ["transition", "s", "failed", "--reason", "run.failed.exit_nonzero"];
    let moved = [
        &moved[..],
        &[
            "--override",
            "--override-actor",
            "ada",
            "--justification",
            "it was wrong",
        ],
    ]
    .concat();
    home.done(&moved);
    heard(&home, &file, "s", &["completed", "failed"]);
    let skipped = [
        "create",
        "schedule_run",
        "--id",
        "q",
        "--status",
        "failed",
        "--reason",
        "run.failed.spawn_error",
    ];
    home.done(&[&skipped[..], &["--notify", &notify]].concat());
    heard(&home, &file, "q", &["failed"]);
    home.done(&["create", "play", "--id", "p", "--notify", &notify]);
    home.run(&["kill", "p"]).exits(1);
    heard(&home, &file, "p", &["blocked"]);
}

#[test]
fn an_end_that_nobody_saw_is_told_by_whoever_records_it() {
    let home = Home::new();
    let file = home.path("heard");
    home.detach("one", &["--notify", &sink(&file), "--", "sleep", "600"]);
    let shown = home.json(&["show", "one"]);
    for who in ["shim_pid", "pid"] {
        let pid = shown["runtime"][who].as_i64().expect("a pid");
        let number = rustix::process::Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
        let _ = rustix::process::kill_process(number, rustix::process::Signal::KILL);
        until("it is gone", || !lives(&pid.to_string()));
    }
    home.over("one");
    heard(&home, &file, "one", &["failed"]);
}

#[test]
fn an_end_and_its_notices_are_one_commit() {
    let home = Home::new();
    let file = home.path("heard");
    home.done(&["create", "session", "--id", "s", "--notify", &sink(&file)]);
    let end = ["transition", "s", "completed", "--reason", "run.completed.ok"];
    dies_at(&home, "transition.decided", &end);
    assert_eq!(home.json(&["show", "s"])["status"], "running");
    assert_eq!(
        home.json(&["outbox", "ls"]),
        json!([]),
        "nothing is told of what did not happen"
    );
    dies_at(&home, "transition.committed", &end);
    let notices = home.json(&["outbox", "ls"]);
    assert_eq!(notices.as_array().map(Vec::len), Some(1), "{notices}");
    assert_eq!(notices[0]["status"], "pending");
    assert_eq!(told(&file), [], "who wrote it died before it told");
    home.done(&["outbox", "deliver", "--once"]);
    heard(&home, &file, "s", &["completed"]);
    home.done(&["outbox", "deliver", "--until-empty"]);
    assert_eq!(told(&file).len(), 1, "told once");
}

#[test]
fn dying_around_an_attempt_repeats_it_under_the_same_id_with_the_same_bytes() {
    for (place, told_before) in [("deliver.claimed", 0), ("deliver.sent", 1), ("deliver.settled", 1)] {
        let home = Home::new();
        let file = home.path("heard");
        home.done(&["create", "session", "--id", "s", "--notify", &sink(&file)]);
        let end = ["transition", "s", "completed", "--reason", "run.completed.ok"];
        dies_at(&home, place, &end);
        assert_eq!(told(&file).len(), told_before, "{place}");
        let notice = home.json(&["outbox", "ls"])[0].clone();
        let id = notice["id"].as_str().expect("an id").to_owned();
        if place == "deliver.settled" {
            assert_eq!(notice["status"], "delivered", "{place}");
            continue;
        }
        assert_eq!(
            (&notice["status"], &notice["attempt"]),
            (&json!("delivering"), &json!(1)),
            "{place}"
        );
        // Its claim lapses by itself; an operator who knows that its holder is gone need not wait for that.
        home.done(&["outbox", "retry", &id]);
        home.run(&["outbox", "deliver", "--once"]).exits(0);
        let told = told(&file);
        assert_eq!(told.len(), told_before + 1, "{place}");
        assert!(
            told.iter().all(|one| one == &told[0] && one.0 == id),
            "{place}: {told:?}"
        );
        assert_eq!(home.json(&["outbox", "show", &id])["status"], "delivered");
    }
}

#[test]
fn a_notice_that_fails_waits_visibly_and_an_operator_revives_it() {
    let home = Home::new();
    let file = home.path("heard");
    let gate = home.path("open");
    let script = format!("test -e {} && cat >> {}", gate.display(), file.display());
    let notify = json!(["sh", "-c", script]).to_string();
    home.done(&["create", "session", "--id", "s", "--notify", &notify]);
    home.done(&["transition", "s", "completed", "--reason", "run.completed.ok"]);
    let notice = home.json(&["outbox", "ls"])[0].clone();
    assert_eq!((&notice["status"], &notice["attempt"]), (&json!("pending"), &json!(1)));
    assert!(
        notice["last_error"].as_str().is_some_and(|error| error.contains('1')),
        "{notice}"
    );
    home.done(&["outbox", "deliver", "--once"]);
    let id = notice["id"].as_str().expect("an id");
    assert_eq!(
        home.json(&["outbox", "show", id])["attempt"],
        1,
        "it waits for its next attempt"
    );
    std::fs::write(&gate, "").expect("a file in the test's directory");
    home.done(&["outbox", "retry", id]);
    home.done(&["outbox", "deliver", "--once"]);
    let shown = home.json(&["outbox", "show", id]);
    assert_eq!((&shown["status"], &shown["attempt"]), (&json!("delivered"), &json!(2)));
    let sent: Value = serde_json::from_str(&std::fs::read_to_string(&file).expect("it was told")).expect("JSON");
    assert_eq!(sent["entity"]["id"], "s");
    home.run(&["outbox", "retry", id]).exits(5).hints("outbox show");
}

#[test]
fn a_token_is_taken_once_it_is_right_and_only_then() {
    let home = Home::new();
    let token = home.path("token");
    let script = format!("printf %s \"$RUNWARDEN_ACK_TOKEN\" > {}", token.display());
    let notify = json!(["sh", "-c", script]).to_string();
    home.done(&[
        "notify",
        "add",
        "asks",
        "--exec",
        &notify,
        "--config",
        "wants_acknowledgement=true",
    ]);
    home.done(&["create", "session", "--id", "s"]);
    home.done(&["transition", "s", "completed", "--reason", "run.completed.ok"]);
    let notice = home.json(&["outbox", "ls"])[0].clone();
    assert_eq!(
        notice["status"], "pending",
        "it was sent and is owed an answer: {notice}"
    );
    let id = notice["id"].as_str().expect("an id");
    let right = std::fs::read_to_string(&token).expect("the program was given one");
    assert_eq!(right.len(), 64);
    let shown = home.run(&["outbox", "show", id]);
    assert!(!shown.out.contains(&right), "a token is never shown");
    home.run(&["outbox", "ack", id, &right.replace(|c| c != '0', "0")])
        .exits(64)
        .hints("RUNWARDEN_ACK_TOKEN");
    home.done(&["outbox", "ack", id, &right]);
    home.done(&["outbox", "ack", id, &right]);
    assert_eq!(home.json(&["outbox", "show", id])["status"], "acked");
}

#[test]
fn what_is_still_to_be_delivered_is_purged_by_force_alone_and_audited() {
    let home = Home::new();
    let notify = json!(["false"]).to_string();
    home.done(&["create", "session", "--id", "s", "--notify", &notify]);
    home.done(&["transition", "s", "completed", "--reason", "run.completed.ok"]);
    let id = home.json(&["outbox", "ls"])[0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    home.run(&["outbox", "purge", &id]).exits(1).hints("--force");
    home.done(&["outbox", "purge", &id, "--force"]);
    assert_eq!(home.json(&["outbox", "ls"]), json!([]));
    let audit = home.json(&["history", &format!("dispatch/{id}"), "--admin"]);
    let purged = audit.as_array().and_then(|rows| rows.last()).expect("an audit row");
    assert_eq!(
        (&purged["action"], &purged["details"]["forced"]),
        (&json!("dispatch_purged"), &json!(true))
    );
}

#[test]
fn a_consumer_is_owed_each_event_until_it_says_that_it_has_it() {
    let home = Home::new();
    home.done(&["create", "session", "--id", "early"]);
    home.done(&["transition", "early", "completed", "--reason", "run.completed.ok"]);
    home.done(&["outbox", "consumer", "add", "billing"]);
    home.done(&["outbox", "consumer", "add", "audit", "--all"]);
    home.run(&["outbox", "consumer", "add", "billing"]).exits(4);
    for id in ["one", "two"] {
        home.done(&["create", "session", "--id", id]);
        home.done(&["transition", id, "completed", "--reason", "run.completed.ok"]);
    }
    let owed = |name: &str| -> Vec<String> {
        let pending = home.json(&["outbox", "consumer", "pending", name]);
        let ids = pending.as_array().expect("a list").iter();
        ids.map(|envelope| envelope["entity"]["id"].as_str().expect("an id").to_owned())
            .collect()
    };
    assert_eq!(owed("billing"), ["one", "two"]);
    assert_eq!(owed("audit"), ["early", "one", "two"]);
    let first = home.json(&["outbox", "consumer", "pending", "billing"])[0]["event_id"].clone();
    let first = first.as_str().expect("an event id");
    home.done(&["outbox", "consumer", "ack", "billing", first]);
    assert_eq!(
        home.json(&["outbox", "consumer", "ack", "billing", first])[0]["again"],
        true
    );
    assert_eq!(owed("billing"), ["two"]);
    assert_eq!(owed("audit").len(), 3, "each for himself");
    home.run(&["outbox", "consumer", "ack", "billing", "no:such:1"])
        .exits(2);
    home.done(&["outbox", "consumer", "retire", "billing"]);
    home.run(&["outbox", "consumer", "pending", "billing"]).exits(2);
}

#[test]
fn a_notice_is_made_by_the_outbox_alone() {
    let home = Home::new();
    home.run(&["create", "dispatch"]).exits(64).hints("outbox send");
    home.done(&[
        "create",
        "session",
        "--id",
        "s",
        "--notify",
        &json!(["true"]).to_string(),
    ]);
    home.done(&["transition", "s", "completed", "--reason", "run.completed.ok"]);
    let listed = home.json(&["ls", "--all"]);
    assert_eq!(
        listed.as_array().map(Vec::len),
        Some(1),
        "notices are no work: {listed}"
    );
    assert_eq!(home.json(&["ls", "dispatches"]).as_array().map(Vec::len), Some(1));
}

#[test]
fn doctor_names_a_secret_that_cannot_be_read_and_nothing_is_attempted() {
    let home = Home::new();
    assert_eq!(named(&home, "notices"), None, "nobody uses the outbox");
    let bind = [
        "notify",
        "add",
        "ops",
        "--url",
        "https://127.0.0.1:1/",
        "--secret-env",
        "NOT_SET",
        "--allow-private",
    ];
    home.done(&bind);
    home.done(&["create", "session", "--id", "s"]);
    home.done(&["transition", "s", "completed", "--reason", "run.completed.ok"]);
    let notice = home.json(&["outbox", "ls"])[0].clone();
    assert_eq!((&notice["status"], &notice["attempt"]), (&json!("pending"), &json!(0)));
    let check = named(&home, "secret").expect("a check of that name");
    assert_eq!(check["result"], "bad");
    assert!(
        check["message"].as_str().is_some_and(|said| said.contains("NOT_SET")),
        "{check}"
    );
    let why = home.json(&["why", &format!("dispatch/{}", notice["id"].as_str().expect("an id"))]);
    assert!(
        why["headline"].as_str().is_some_and(|said| said.contains("NOT_SET")),
        "{why}"
    );
    let end = home.json(&["why", "s"]);
    assert!(
        end["facts"].to_string().contains("NOT_SET"),
        "an end says what became of its notices: {end}"
    );
}

fn named(home: &Home, name: &str) -> Option<Value> {
    let checks = home.run(&["doctor", "--json"]).document();
    let checks = checks["checks"].as_array().expect("checks are a list").iter();
    checks.clone().find(|check| check["name"] == name).cloned()
}

#[test]
fn an_end_whose_settings_another_version_wrote_is_owed_until_one_can_read_them() {
    let home = Home::new();
    let file = home.path("heard");
    home.done(&["create", "session", "--id", "s", "--notify", &sink(&file)]);
    let store = || rusqlite::Connection::open(home.home().join("state.db")).expect("the store");
    let change = |sql: &str| assert_eq!(store().execute(sql, []).expect("a statement of ours"), 1, "{sql}");
    // A way to reach a destination that this version does not know.
    change(r#"UPDATE entities SET notify = replace(notify, '"exec"', '"pigeon"') WHERE notify IS NOT NULL"#);
    home.done(&["transition", "s", "completed", "--reason", "run.completed.ok"]);
    for _ in 0..2 {
        home.done(&["outbox", "deliver", "--once"]);
        change("UPDATE owed_plans SET due_at_ms = 0");
        assert_eq!(home.json(&["outbox", "ls"]), json!([]));
        let check = named(&home, "plans").expect("a check of that name");
        let said = check["message"].as_str().expect("words");
        assert!(check["result"] == "bad" && said.contains("another version"), "{check}");
    }
    change(r#"UPDATE owed_plans SET settings = replace(settings, '"pigeon"', '"exec"')"#);
    home.done(&["outbox", "deliver", "--once"]);
    heard(&home, &file, "s", &["completed"]);
    assert_eq!(named(&home, "plans"), None);
}
