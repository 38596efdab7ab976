//! Where live entities go, and what keeps them.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

use super::super::samples;
use super::*;
use crate::model::{Descriptor, Field, FieldKind, Fields, Queued, Stage};

/// The bundled policy of leased work, of that version.
fn descriptor(version: &str) -> Descriptor {
    let is_asked = |policy: &&runwarden_bundled::Bundled| policy.kind == "schedule_run" && policy.version == version;
    let bundled = runwarden_bundled::POLICIES.iter().find(is_asked).unwrap();
    serde_json::from_str(bundled.descriptor).unwrap()
}

fn pin(version: &str) -> PolicyPin {
    PolicyPin {
        name: "schedule_run".to_owned(),
        version: version.to_owned(),
        digest: format!("digest of {version}"),
        parameters: Fields::new(),
    }
}

fn entity(version: &str, status: &str) -> Entity {
    let mut entity = samples::entity("schedule_run", status);
    entity.policy = pin(version);
    entity
}

fn row(from_version: &str, statuses: &[(&str, &str)]) -> Migration {
    Migration {
        from_name: String::new(),
        from_version: from_version.to_owned(),
        statuses: mappings(statuses),
        ext: Vec::new(),
    }
}

fn mappings(pairs: &[(&str, &str)]) -> Vec<StatusMapping> {
    let mapping = |(from, to): &(&str, &str)| StatusMapping {
        from: (*from).to_owned(),
        to: (*to).to_owned(),
    };
    pairs.iter().map(mapping).collect()
}

fn ordered(statuses: &[(&str, &str)], dropped: &[&str]) -> MoveOrders {
    MoveOrders {
        statuses: mappings(statuses),
        dropped: dropped.iter().map(|name| (*name).to_owned()).collect(),
        reason: None,
    }
}

/// Where a status of `from` goes under a policy with these rows.
#[track_caller]
fn check_way(rows: &[Migration], function: MapFunction, from: (&str, &str), expected: Way) {
    let mut descriptor = descriptor("2.0.0");
    descriptor.migrations = rows.to_vec();
    let (lifecycle, to) = (Lifecycle::new(descriptor), pin("2.0.0"));
    let to = NewPolicy {
        pin: &to,
        lifecycle: &lifecycle,
    };
    let orders = ordered(&[("ordered", "queued")], &[]);
    let (version, status) = from;
    assert_eq!(way(&pin(version), status, to, &orders, function), expected, "{from:?}");
}

fn to(status: &str) -> Way {
    Way::To(status.to_owned())
}

#[test]
fn what_was_ordered_goes_before_rows_and_rows_go_before_the_function() {
    let (absent, exported) = (MapFunction::Absent, MapFunction::Exported);
    let rows = [
        row("1.0", &[("ordered", "running"), ("pending", "queued")]),
        row("1", &[]),
    ];
    check_way(&rows, exported, ("1.0.0", "ordered"), to("queued"));
    check_way(&rows, exported, ("1.0.0", "pending"), to("queued"));
    check_way(&rows, exported, ("1.0.0", "running"), to("running"));
    check_way(&rows, exported, ("1.0.0", "elsewhere"), Way::Nowhere);
    check_way(&rows, absent, ("1.1.0", "running"), to("running"));
    check_way(&rows, absent, ("1.1.0", "pending"), Way::Nowhere);
    // A version begins at a dot: 10 is no 1.x.
    check_way(&rows, absent, ("10.0.0", "running"), Way::Nowhere);
    check_way(&rows, exported, ("10.0.0", "running"), Way::Ask);
    check_way(&[], exported, ("1.0.0", "running"), Way::Ask);
    check_way(&[], absent, ("1.0.0", "running"), to("running"));
    check_way(&[], absent, ("1.0.0", "elsewhere"), Way::Nowhere);
}

#[test]
fn a_row_is_about_its_own_policy_unless_it_names_another() {
    let rows = [Migration {
        from_name: "queue_item".to_owned(),
        ..row("1", &[("running", "queued")])
    }];
    check_way(&rows, MapFunction::Absent, ("1.0.0", "running"), Way::Nowhere);
    let (lifecycle, new) = (Lifecycle::new(descriptor("2.0.0")), pin("2.0.0"));
    let to = NewPolicy {
        pin: &new,
        lifecycle: &lifecycle,
    };
    let other = PolicyPin {
        name: "queue_item".to_owned(),
        ..pin("1.4.2")
    };
    assert!(fits(&rows[0], &other, to.pin));
}

/// What becomes of an entity that goes to that status of 2.0.0, or of 1.0.0.
fn moved(
    version: &str,
    (entity, carried): (&Entity, Carried),
    status: &str,
    orders: &MoveOrders,
) -> Result<Change, NotMoved> {
    let (lifecycle, to) = (Lifecycle::new(descriptor(version)), pin(version));
    let to = NewPolicy {
        pin: &to,
        lifecycle: &lifecycle,
    };
    let mapped = Mapped {
        status: status.to_owned(),
        patch: Fields::new(),
    };
    let actor = Actor::new("operator", "ada");
    let by = (&actor, "store", Timestamp::from_ms(5));
    migrate(to, (entity, carried), &mapped, orders, by)
}

#[track_caller]
fn check_kept(result: Result<Change, NotMoved>, code: &str, words: &str) {
    let kept = result.unwrap_err();
    assert_eq!(kept.code, code, "{}", kept.message);
    assert!(kept.message.contains(words), "{}", kept.message);
}

#[test]
fn the_pin_the_status_and_the_history_move_and_nothing_else_does() {
    let mut before = entity("1.0.0", "running");
    before.fields.insert("error_detail".to_owned(), json!("none yet"));
    before.structural.leased_by = Some("w".to_owned());
    before.structural.lease_expires_at = Some(Timestamp::from_ms(900));
    before.fence = 3;
    before.reason = Reason::code("schedule_run.running.claimed");
    before.queued = Some(Queued {
        queue: "nights".to_owned(),
        priority: 4,
        stage: Some(Stage::Active),
    });
    let orders = MoveOrders {
        reason: Some("for the weekend".to_owned()),
        ..MoveOrders::default()
    };
    let change = moved("2.0.0", (&before, Carried::Nothing), "running", &orders).unwrap();
    let expected = Entity {
        policy: pin("2.0.0"),
        version: 2,
        updated_at: Timestamp::from_ms(5),
        ..before.clone()
    };
    assert_eq!(change.after, expected);
    assert_eq!((change.expected_version, change.event.is_none()), (1, true));
    assert_eq!(
        (change.row.policy_digest.as_str(), change.row.reason.code.as_str()),
        ("digest of 2.0.0", MIGRATED)
    );
    let words = "moved from schedule_run@1.0.0 to schedule_run@2.0.0: for the weekend";
    assert_eq!(change.row.reason.summary.as_deref(), Some(words));
    let migration = &change.row.metadata["migration"];
    assert_eq!(
        (&migration["from"]["version"], &migration["to"]["digest"]),
        (&json!("1.0.0"), &json!("digest of 2.0.0"))
    );
    let [audit] = &change.admin[..] else {
        panic!("one audit row")
    };
    assert_eq!(
        (audit.action.as_str(), audit.target.as_deref(), audit.actor.as_str()),
        ("policy_migrated", Some("schedule_run/one"), "operator:ada")
    );
    assert_eq!(audit.details["new_status"], "running");
}

#[test]
fn no_entity_goes_where_it_has_no_place_and_none_ends_or_wakes_by_being_moved() {
    let orders = MoveOrders::default();
    let nothing = Carried::Nothing;
    let doubted = entity("2.0.0", "supervisor_unknown");
    check_kept(
        moved("1.0.0", (&doubted, nothing), "supervisor_unknown", &orders),
        "no_place",
        "status `supervisor_unknown` of schedule_run@2.0.0 has no place in schedule_run@1.0.0",
    );
    let running = entity("1.0.0", "running");
    check_kept(
        moved("2.0.0", (&running, nothing), "failed", &orders),
        "would_end",
        "`failed`",
    );
    let mut ended = entity("1.0.0", "failed");
    ended.terminal = true;
    check_kept(
        moved("2.0.0", (&ended, nothing), "running", &orders),
        "ended",
        "has ended",
    );
}

#[test]
fn a_place_in_a_queue_stays_or_the_entity_does() {
    let orders = MoveOrders::default();
    let queued = |version, status, stage| {
        let mut entity = entity(version, status);
        entity.queued = Some(Queued {
            queue: "nights".to_owned(),
            priority: 0,
            stage,
        });
        entity
    };
    let ready = queued("1.0.0", "queued", Some(Stage::Ready));
    assert!(moved("2.0.0", (&ready, Carried::Nothing), "queued", &orders).is_ok());
    // Taken by nobody, and nobody would have what looks taken.
    check_kept(
        moved("2.0.0", (&ready, Carried::Nothing), "running", &orders),
        "queue",
        "active in its queue, and is ready",
    );
    // Held, and everybody might take it: there would be two.
    let held = queued("1.0.0", "running", Some(Stage::Active));
    check_kept(
        moved("2.0.0", (&held, Carried::Nothing), "queued", &orders),
        "queue",
        "ready in its queue, and is active",
    );
}

#[test]
fn what_is_run_goes_only_where_its_end_means_something() {
    let mut descriptor = descriptor("2.0.0");
    descriptor.execution = None;
    let (lifecycle, new) = (Lifecycle::new(descriptor), pin("2.0.0"));
    let to = NewPolicy {
        pin: &new,
        lifecycle: &lifecycle,
    };
    let running = entity("1.0.0", "running");
    let mapped = Mapped {
        status: "running".to_owned(),
        patch: Fields::new(),
    };
    let orders = MoveOrders::default();
    let by = (&Actor::new("operator", "ada"), "store", Timestamp::from_ms(5));
    check_kept(
        migrate(to, (&running, Carried::Runtime), &mapped, &orders, by),
        "execution",
        "an end",
    );
    assert!(migrate(to, (&running, Carried::Nothing), &mapped, &orders, by).is_ok());
}

#[test]
fn fields_are_fitted_given_up_by_word_or_keep_the_entity() {
    let mut descriptor = descriptor("2.0.0");
    descriptor.fields.push(Field {
        name: "words".to_owned(),
        kind: FieldKind::Integer,
        summary: "How many.".to_owned(),
        ext: Vec::new(),
    });
    let (lifecycle, new) = (Lifecycle::new(descriptor), pin("2.0.0"));
    let to = NewPolicy {
        pin: &new,
        lifecycle: &lifecycle,
    };
    let with = |fields: Value, patch: Value, orders: &MoveOrders| {
        let mut before = entity("1.0.0", "running");
        before.fields = fields.as_object().unwrap().clone();
        before.structural.exit_code = Some(3);
        let mapped = Mapped {
            status: "running".to_owned(),
            patch: patch.as_object().unwrap().clone(),
        };
        let by = (&Actor::new("operator", "ada"), "store", Timestamp::from_ms(5));
        migrate(to, (&before, Carried::Nothing), &mapped, orders, by)
    };
    let kept = MoveOrders::default();
    check_kept(
        with(json!({"mood": "good"}), json!({}), &kept),
        "field",
        "no field `mood`",
    );
    check_kept(
        with(json!({"words": "many"}), json!({}), &kept),
        "field",
        "a whole number",
    );
    let change = with(json!({"words": 900.0}), json!({}), &kept).unwrap();
    assert_eq!(change.after.fields["words"], json!(900));
    let drops = ordered(&[], &["mood", "exit_code"]);
    for (fields, patch, orders) in [
        (json!({"mood": "good"}), json!({}), &drops),
        (json!({"mood": "good"}), json!({"mood": null}), &kept),
    ] {
        let change = with(fields, patch, orders).unwrap();
        assert_eq!(change.after.fields, Fields::new());
        assert_eq!(change.after.structural.exit_code, Some(3), "a column is the host's");
        assert_eq!(change.row.metadata["migration"]["given_up"], json!({"mood": "good"}));
    }
    let change = with(json!({"words": "many"}), json!({"words": 12}), &kept).unwrap();
    assert_eq!(change.after.fields["words"], json!(12));
}
