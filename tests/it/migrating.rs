//! policy migrate: live entities go over to another policy, each in one audited commit, or stay and are told why.

use runwarden_host::model::{Actor, Descriptor, MoveOrders, RaisedLimits, Reason, Timestamp, Transition, sha256_hex};
use runwarden_host::provenance::Trust;
use runwarden_host::store::{Component, ComponentRecord};
use runwarden_host::verbs::{
    Doing, Migration, Replaying, TransitionOutcome, Tried, migrate, replay, resolve, transition,
};
use runwarden_test_guests::REVIEW;
use serde_json::{Value, json};

use crate::harness::{Answer, Home, host, opened};

/// The bundled policy of that kind, as another version of itself.
fn another(kind: &str, version: &str, change: impl FnOnce(&mut Descriptor)) -> Descriptor {
    let mut bundled = runwarden_bundled::POLICIES.iter().filter(|policy| policy.kind == kind);
    let bundled = bundled.next_back().expect("it ships");
    let mut descriptor: Descriptor = serde_json::from_str(bundled.descriptor).expect("a descriptor");
    descriptor.version = version.to_owned();
    change(&mut descriptor);
    descriptor
}

/// Puts a policy that is only a table into the store; its digest.
fn installed(home: &Home, descriptor: &Descriptor) -> String {
    let text = descriptor.canonical();
    let digest = sha256_hex(text.as_bytes());
    let record = ComponentRecord {
        digest: digest.clone(),
        kind: descriptor.kind.clone(),
        name: descriptor.name.clone(),
        version: descriptor.version.clone(),
        source: "installed".to_owned(),
        exports: vec!["runwarden:policy/lifecycle@0.1.0".to_owned()],
        size_bytes: 0,
        installed_at: Timestamp::from_ms(1),
        active: false,
        in_use: 0,
        raised: RaisedLimits::default(),
    };
    let component = Component {
        record,
        descriptor: text,
        // Never run: a table decides by its descriptor.
        bytes: REVIEW.to_vec(),
        signatures: Vec::new(),
    };
    let host = host(&home.home());
    host.ensure_bundled().expect("the store is written");
    host.store()
        .install(&[component], &[], &[])
        .expect("the store is written");
    digest
}

/// How many entities are pinned to a policy.
fn in_use(home: &Home, name: &str, version: &str) -> Value {
    let listed = home.json(&["policy", "ls"]);
    let mut rows = listed.as_array().expect("an array").iter();
    let row = rows.find(|row| row["name"] == name && row["version"] == version);
    row.expect("it is installed")["in_use"].clone()
}

fn pinned(home: &Home, id: &str) -> Value {
    home.json(&["show", id])["policy"]["version"].clone()
}

/// Rows of leased work under 2.0.0, none of them in a queue.
fn rows(home: &Home, ids: &[&str]) {
    for id in ids {
        home.done(&["create", "schedule_run", "--id", id]);
    }
}

const RUNNING: [&str; 3] = ["running", "--reason", "run.started.ok"];

fn go(home: &Home, id: &str, to: &[&str]) {
    home.done(&[&["transition", id], to].concat());
}

#[test]
fn live_entities_go_over_with_their_history_and_what_has_ended_stays() {
    let home = Home::new();
    rows(&home, &["one", "two", "over"]);
    go(&home, "two", &RUNNING);
    go(&home, "over", &["cancelled", "--reason", "run.cancelled.system"]);
    let before = home.json(&["show", "two"]);
    let migrate = ["policy", "migrate", "schedule_run", "--to", "1"];
    let dry = home.json(&[&migrate[..], &["--dry-run"]].concat());
    assert_eq!((&dry["moved"]["count"], &dry["dry_run"]), (&json!(2), &json!(true)));
    assert_eq!(home.json(&["show", "two"]), before, "nothing was written");
    let moved = home.json(&[&migrate[..], &["--reason", "workers are not ready"]].concat());
    assert_eq!(moved["moved"], dry["moved"], "the same as was said before");
    assert_eq!(
        (&moved["to"]["version"], &moved["not_moved"]["count"]),
        (&json!("1.0.0"), &json!(0))
    );
    assert_eq!(
        ["one", "two", "over"].map(|id| pinned(&home, id)),
        ["1.0.0", "1.0.0", "2.0.0"]
    );
    assert_eq!(in_use(&home, "schedule_run", "1.0.0"), json!(2));
    assert_eq!(in_use(&home, "schedule_run", "2.0.0"), json!(1));
    let after = home.json(&["show", "two"]);
    for name in ["status", "reason", "fields", "tags", "notify", "created_at"] {
        assert_eq!(after[name], before[name], "{name}");
    }
    let history = home.json(&["history", "two"]);
    let row = &history[2];
    assert_eq!(
        (&row["reason"]["code"], &row["policy_digest"], &row["actor"]),
        (
            &json!("host.policy.migrated"),
            &moved["to"]["digest"],
            &json!({"kind": "operator", "id": "ada"})
        )
    );
    assert_eq!(row["metadata"]["migration"]["from"], before["policy"]);
    assert_eq!(row["metadata"]["migration"]["reason"], "workers are not ready");
    let audit = home.json(&["history", "--admin"]);
    let audit = audit.as_array().expect("an array").iter();
    let mut targets: Vec<&Value> = audit
        .filter(|event| event["action"] == "policy_migrated")
        .map(|event| &event["target"])
        .collect();
    targets.sort_by_key(|target| target.to_string());
    assert_eq!(targets, ["schedule_run/one", "schedule_run/two"]);
    let again = home.json(&migrate);
    assert_eq!(
        (&again["moved"]["count"], &again["already_there"]),
        (&json!(0), &json!(2))
    );
    home.run(&["policy", "migrate", "schedule_run", "--to", "1", "over"])
        .exits(1);
    // From here on the other policy decides.
    let refused = home.run(&["transition", "two", "supervisor_unknown", "--reason", "run.started.ok"]);
    refused.exits(64);
}

#[test]
fn a_status_without_a_place_keeps_its_entity_until_somebody_says_where_it_goes() {
    let home = Home::new();
    rows(&home, &["well", "lost"]);
    go(&home, "lost", &RUNNING);
    let doubted = ["supervisor_unknown", "--reason", "run.supervisor_unknown.lease_stale"];
    go(&home, "lost", &doubted);
    let migrate = ["policy", "migrate", "schedule_run", "--to", "1"];
    let answer = home.run_with(&migrate, &[("COLUMNS", "40")]).exits(1);
    assert!(
        answer.out.lines().all(|line| line.chars().count() <= 40),
        "{}",
        answer.out
    );
    let words = answer.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = "not moved: 1 of schedule_run@2.0.0: status `supervisor_unknown` of schedule_run@2.0.0 has no place in \
                schedule_run@1.0.0: schedule_run/lost";
    assert!(words.contains(told), "{words}");
    assert!(words.contains("hint: --map OLD=NEW"), "{words}");
    assert_eq!(["well", "lost"].map(|id| pinned(&home, id)), ["1.0.0", "2.0.0"]);
    let mapped = |map: &str| home.run(&[&migrate[..], &["--map", map]].concat());
    mapped("supervisor_unknown=heaven").exits(64).hints("policy show");
    mapped("heaven=running").exits(64).hints("--map OLD=NEW");
    let ends = mapped("supervisor_unknown=failed").exits(1).out;
    assert!(ends.contains("a migration ends nothing"), "{ends}");
    mapped("supervisor_unknown=running").exits(0);
    let row = home.json(&["show", "lost"]);
    assert_eq!(
        (&row["status"], &row["policy"]["version"]),
        (&json!("running"), &json!("1.0.0"))
    );
}

#[test]
fn a_field_that_the_policy_has_not_is_given_up_by_word_and_kept_in_history() {
    let home = Home::new();
    rows(&home, &["one"]);
    go(
        &home,
        "one",
        &[&RUNNING[..], &["--set", "process_identity=\"p7\""]].concat(),
    );
    let migrate = ["policy", "migrate", "schedule_run", "--to", "1"];
    let kept = home.run(&migrate).exits(1).out;
    assert!(
        kept.contains("no field `process_identity`") && kept.contains("--drop FIELD"),
        "{kept}"
    );
    home.run(&[&migrate[..], &["--drop", "exit_code"]].concat()).exits(64);
    home.done(&[&migrate[..], &["--drop", "process_identity"]].concat());
    assert!(home.json(&["show", "one"])["fields"]["process_identity"].is_null());
    let history = home.json(&["history", "one"]);
    assert_eq!(
        history[2]["metadata"]["migration"]["given_up"],
        json!({"process_identity": "p7"})
    );
}

#[test]
fn one_that_is_killed_half_way_is_run_again_and_moves_the_rest() {
    let home = Home::new();
    let ids = ["a", "b", "c"];
    rows(&home, &ids);
    let migrate = ["policy", "migrate", "schedule_run", "--to", "1"];
    let struck = |place| home.run_with(&migrate, &[("RUNWARDEN_CRASH_AT", place)]).exits(-1);
    let there = || ids.iter().filter(|id| pinned(&home, id) == "1.0.0").count();
    struck("migrate.decided");
    assert_eq!(there(), 0);
    struck("migrate.committed");
    assert_eq!(there(), 1);
    assert_eq!(in_use(&home, "schedule_run", "1.0.0"), json!(1));
    let part = home.json(&[&migrate[..], &["--limit", "1"]].concat());
    assert_eq!((&part["moved"]["count"], &part["limited"]), (&json!(1), &json!(true)));
    let rest = home.json(&migrate);
    assert_eq!(
        (&rest["moved"]["count"], &rest["already_there"], &rest["limited"]),
        (&json!(1), &json!(2), &json!(false))
    );
    for id in ids {
        assert_eq!(
            home.json(&["history", id]).as_array().map(Vec::len),
            Some(2),
            "{id} was moved once"
        );
    }
}

#[test]
fn a_live_process_is_not_touched_and_its_end_is_judged_by_the_new_policy() {
    let home = Home::new();
    installed(
        &home,
        &another("run", "1.1.0", |run| {
            // Three is well under this one.
            let mut row = run.verdicts[2].clone();
            row.exit_codes = Some((3, 3));
            run.verdicts.insert(0, row);
        }),
    );
    let gate = home.gate("gate");
    let script = format!("read go < {}; exit 3", gate.display());
    home.detach("old", &["--", "sh", "-c", &script]);
    home.detach("new", &["--", "sh", "-c", &script]);
    let before = home.json(&["show", "new"]);
    home.done(&["policy", "migrate", "run", "--to", "1.1", "new"]);
    let after = home.json(&["show", "new"]);
    assert_eq!(
        (&after["runtime"], &after["status"]),
        (&before["runtime"], &before["status"])
    );
    let _open = opened(&gate);
    let _again = opened(&gate);
    let (old, new) = (home.over("old"), home.over("new"));
    assert_eq!(
        (&old["status"], &old["policy"]["version"]),
        (&json!("failed"), &json!("1.0.0"))
    );
    assert_eq!(
        (&new["status"], &new["policy"]["version"], &new["fields"]["exit_code"]),
        (&json!("completed"), &json!("1.1.0"), &json!(3))
    );
}

#[test]
fn what_a_worker_has_stays_its_own_and_ends_under_the_new_policy() {
    let home = Home::new();
    let gate = home.gate("gate");
    let script = format!("read go < {}", gate.display());
    home.done(&["submit", "--id", "q", "--", "sh", "-c", &script]);
    let worker = home.start(&["worker", "--once"]);
    crate::harness::until("it is taken", || home.json(&["show", "q"])["status"] == "running");
    let before = home.json(&["show", "q"]);
    home.done(&["policy", "migrate", "schedule_run", "--to", "1"]);
    let after = home.json(&["show", "q"]);
    for name in ["leased_by", "lease_attempts"] {
        assert_eq!(after["fields"][name], before["fields"][name], "{name}");
    }
    // Nowhere but in the queue is it ready: what is held stays held.
    let ready = home.run(&[
        "policy",
        "migrate",
        "schedule_run",
        "--to",
        "2",
        "--map",
        "running=queued",
    ]);
    assert!(ready.exits(1).out.contains("its place stays"));
    let _open = opened(&gate);
    crate::harness::answered(worker, "worker".to_owned()).exits(0);
    let ended = home.json(&["show", "q"]);
    assert_eq!(
        (&ended["status"], &ended["policy"]["version"]),
        (&json!("completed"), &json!("1.0.0"))
    );
    let history = home.json(&["history", "q"]);
    let ends = history
        .as_array()
        .expect("an array")
        .iter()
        .filter(|row| row["status"] == "completed");
    assert_eq!(ends.count(), 1);
}

#[test]
fn rows_of_the_policy_say_where_statuses_go_and_its_function_where_none_fits() {
    let home = Home::new();
    let file = home.path("review.wasm");
    std::fs::write(&file, REVIEW).expect("a file");
    home.done(&["policy", "install", &file.to_string_lossy(), "--activate"]);
    let text = home.json(&["policy", "show", "review"])["descriptor"].clone();
    let newest: Descriptor = serde_json::from_value(text).expect("a descriptor");
    // The version before it called `open` something else, and knew a status that is gone.
    let mut older = newest.clone();
    older.version = "0.9.0".to_owned();
    older.statuses[0].name = "reading".to_owned();
    let mut lost = newest.statuses[0].clone();
    lost.name = "lost".to_owned();
    older.statuses.push(lost);
    let older = installed(&home, &older);
    let create = |id: &str, status: &str| {
        home.done(&["create", "review", "--id", id, "--status", status, "--policy", &older]);
    };
    create("r", "reading");
    create("l", "lost");
    let answer: Answer = home.run(&["policy", "migrate", "review", "--to", "2"]).exits(1);
    assert!(
        answer.out.contains("migrate.map") && answer.out.contains("`lost` is not declared"),
        "{}",
        answer.out
    );
    assert_eq!(home.json(&["show", "r"])["status"], "open");
    assert_eq!(home.json(&["show", "l"])["status"], "lost");
    let mut third = newest.clone();
    third.version = "3.0.0".to_owned();
    third.migrations = serde_json::from_value(json!([
        {"from_name": "", "from_version": "0", "statuses": [{"from": "lost", "to": "open"}], "ext": []},
    ]))
    .expect("rows");
    installed(&home, &third);
    let answer = home.json(&["policy", "migrate", "review", "--to", "3", "l"]);
    assert_eq!(answer["moved"]["groups"][0]["status"], "open");
    let other = home.run(&["policy", "migrate", "review", "--to", "3"]).exits(1);
    assert!(
        other.out.contains("status `open` of review@2.0.0 has no place"),
        "no row is for 2.x: {}",
        other.out
    );
}

#[test]
fn a_command_that_loses_against_a_migration_is_decided_again_under_the_new_policy() {
    let home = Home::new();
    rows(&home, &["one"]);
    let host = host(&home.home());
    let stale = resolve(&host, "one", None).expect("it is there");
    let components = host.store().components().expect("the store is read");
    let older = components
        .into_iter()
        .find(|record| record.name == "schedule_run" && record.version == "1.0.0")
        .expect("it ships");
    let actor = Actor::new("operator", "ada");
    let asked = Migration {
        to: older.digest.clone(),
        orders: MoveOrders::default(),
        only: None,
        limit: None,
        trust: Trust::default(),
        actor: actor.clone(),
        doing: Doing::Moving,
    };
    let moved = migrate(&host, &asked, |_| ()).expect("the store is written");
    assert_eq!(moved.moved_count(), 1);
    let command = Transition::new("running", Reason::code("run.started.ok"), actor);
    let outcome = transition(&host, &stale, &command).expect("the store is written");
    let TransitionOutcome::Applied { entity, version, .. } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!((entity.policy.digest.as_str(), version), (older.digest.as_str(), 3));
    let replaying = Replaying {
        candidate: Tried::Installed(&older.digest),
        kind: None,
        since: None,
        limit: None,
    };
    let replayed = replay(&host, &replaying).expect("the store is read");
    assert_eq!(
        replayed.tally.differing(),
        0,
        "a migration is no decision: {replayed:?}"
    );
    let rows = home.json(&["history", "one"]);
    assert_eq!(
        rows[2]["policy_digest"],
        older.digest.as_str(),
        "the policy that decided"
    );
}

#[test]
fn a_sign_of_life_is_understood_by_a_policy_that_does_not_know_the_reason() {
    let home = Home::new();
    let digest = installed(
        &home,
        &another("run", "1.1.0", |run| {
            run.reason_codes[0].code = "run.started.well".to_owned();
            run.statuses[0].creation_code = Some("run.started.well".to_owned());
            run.execution.as_mut().expect("it is run").start.code = "run.started.well".to_owned();
        }),
    );
    home.done(&["create", "run", "--id", "r"]);
    home.done(&["policy", "migrate", "run", "--to", &digest[..12]]);
    let report = home.run_with(&["report", "--progress", "1/2"], &[("RUNWARDEN_ID", "r")]);
    report.exits(0);
    assert_eq!(home.json(&["show", "r"])["reason"]["code"], "run.started.well");
}

#[test]
fn words_that_mean_no_policy_of_the_kind_are_told() {
    let home = Home::new();
    rows(&home, &["one"]);
    home.done(&["create", "play", "--id", "p"]);
    let migrate = |words: &[&str]| home.run(&[&["policy", "migrate"], words].concat());
    migrate(&["schedule_run"]).exits(64);
    migrate(&["schedule_run", "--to", "9"]).exits(2).hints("installed are");
    migrate(&["nokind", "--to", "1"]).exits(2);
    migrate(&["play", "--to", "run@1"]).exits(64).hints("policy ls");
    migrate(&["play", "--to", "1", "one"]).exits(64);
    migrate(&["play", "--to", "1", "absent"]).exits(2);
    migrate(&["plays", "--to", "1"]).exits(0);
}
