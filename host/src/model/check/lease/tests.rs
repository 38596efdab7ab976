//! One row for each fault of a lease rule: a sound table of a generation, one change, and what is said of it where.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

use serde_json::{Value, json};

use crate::model::{Finding, Severity, check};

fn sound(version: &str) -> Value {
    let is_asked = |policy: &&runwarden_bundled::Bundled| policy.kind == "schedule_run" && policy.version == version;
    let bundled = runwarden_bundled::POLICIES.iter().find(is_asked).unwrap();
    serde_json::from_str(bundled.descriptor).unwrap()
}

fn found(table: Value) -> Vec<Finding> {
    check(&serde_json::from_value(table).unwrap())
}

fn said(findings: &[Finding], place: &str, words: &str) -> bool {
    let is_it = |finding: &Finding| {
        finding.severity == Severity::Error && finding.place == place && finding.message.contains(words)
    };
    findings.iter().any(is_it)
}

/// Sets the value at a JSON pointer below the lease rule of a generation. The finding must be there.
fn refused(version: &str, pointer: &str, value: Value, place: &str, words: &str) {
    let mut table = sound(version);
    *table["lease"].pointer_mut(pointer).unwrap() = value;
    let findings = found(table);
    assert!(
        said(&findings, place, words),
        "{pointer}: no error at {place} with `{words}` in {findings:?}"
    );
}

/// Takes an edge away, or changes it. The finding must be there.
fn edge_refused(version: &str, (from, to): (&str, &str), change: Option<(&str, Value)>, place: &str, words: &str) {
    let mut table = sound(version);
    let edges = table["edges"].as_array_mut().unwrap();
    let at = edges
        .iter()
        .position(|edge| edge["from"] == from && edge["to"] == to)
        .unwrap();
    match change {
        None => drop(edges.remove(at)),
        Some((member, value)) => edges[at][member] = value,
    }
    let findings = found(table);
    assert!(
        said(&findings, place, words),
        "{from} -> {to}: no error at {place} with `{words}` in {findings:?}"
    );
}

#[test]
fn a_rule_that_doubts_knows_how_a_holder_comes_back_and_how_it_is_shut_out() {
    refused(
        "2.0.0",
        "/recovered",
        json!(null),
        "lease.recovered",
        "nothing leads on",
    );
    refused("2.0.0", "/fenced", json!(null), "lease.fenced", "nothing leads on");
    assert_eq!(found(sound("1.0.0")), [], "one that puts back needs neither");
}

#[test]
fn every_way_that_the_host_takes_by_itself_is_an_open_edge() {
    let ways = [
        ("1.0.0", ("queued", "running"), "lease.claimed"),
        ("1.0.0", ("running", "queued"), "lease.lapsed"),
        ("1.0.0", ("running", "failed"), "lease.exhausted"),
        ("1.0.0", ("running", "retry_wait"), "lease.handed_back"),
        ("1.0.0", ("retry_wait", "queued"), "lease.retry_due"),
        ("2.0.0", ("running", "supervisor_unknown"), "lease.lapsed"),
        ("2.0.0", ("supervisor_unknown", "running"), "lease.recovered"),
        ("2.0.0", ("supervisor_unknown", "orphaned"), "lease.fenced"),
        ("2.0.0", ("supervisor_unknown", "failed"), "lease.exhausted"),
        ("2.0.0", ("running", "retry_wait"), "lease.backed_off"),
        ("2.0.0", ("queued", "waiting_dependency"), "lease.dependency_waiting"),
        ("2.0.0", ("waiting_dependency", "queued"), "lease.dependency_met"),
        ("2.0.0", ("waiting_dependency", "skipped"), "lease.dependency_failed"),
        ("2.0.0", ("queued", "skipped"), "lease.dependency_failed"),
    ];
    for (version, edge, place) in ways {
        edge_refused(version, edge, None, place, "which is not declared");
        edge_refused(version, edge, Some(("guarded", json!(true))), place, "is guarded");
        edge_refused(
            version,
            edge,
            Some(("actors", json!(["operator"]))),
            place,
            "restricts actors",
        );
        edge_refused(
            version,
            edge,
            Some(("required_patch", json!(["error_detail"]))),
            place,
            "requires a patch",
        );
    }
    for to in ["completed", "failed", "timed_out", "cancelled", "retry_wait"] {
        let guarding = Some(("required_guards", json!(["leased_by"])));
        edge_refused("2.0.0", ("running", to), guarding, "lease", "requires a guard");
    }
}

#[test]
fn outcomes_are_of_declared_statuses_and_admitted_codes() {
    for outcome in [
        "claimed",
        "lapsed",
        "exhausted",
        "recovered",
        "fenced",
        "backed_off",
        "retry_due",
        "handed_back",
    ] {
        let place = format!("lease.{outcome}");
        refused(
            "2.0.0",
            &format!("/{outcome}/code"),
            json!("a.b.c"),
            &place,
            "reason code `a.b.c` is not declared",
        );
        refused(
            "2.0.0",
            &format!("/{outcome}/status"),
            json!("lost"),
            &place,
            "status `lost` is not declared",
        );
    }
    refused("2.0.0", "/queued", json!("lost"), "lease.queued", "is not declared");
}

/// The same of the second generation, where the place is that of the outcome.
fn outcome_refused(pointer: &str, value: Value, words: &str) {
    let outcome = pointer.split('/').nth(1).unwrap();
    refused("2.0.0", pointer, value, &format!("lease.{outcome}"), words);
}

#[test]
fn ends_are_ends_and_ways_back_lead_back() {
    let leads = |pointer: &str, status: &str, words: &str| outcome_refused(pointer, json!(status), words);
    leads("/exhausted/status", "running", "is not terminal");
    leads("/fenced/status", "running", "is not terminal");
    leads("/dependency_failed/status", "running", "is not terminal");
    leads("/retry_due/status", "cancelled", "no worker would take it");
    leads("/dependency_met/status", "skipped", "no worker would take it");
    leads("/recovered/status", "orphaned", "would not have it back");
    leads("/handed_back/status", "cancelled", "is terminal");
    leads("/lapsed/status", "failed", "is terminal");
    outcome_refused("/retry_due", json!(null), "nothing leads back");
    outcome_refused("/dependency_met", json!(null), "nothing leads on");
    outcome_refused("/dependency_failed", json!(null), "nothing leads on");
}

#[test]
fn a_status_tells_where_a_row_stands() {
    let means_two = |pointer: &str, status: &str| outcome_refused(pointer, json!(status), "could not be told");
    means_two("/lapsed/status", "running");
    means_two("/lapsed/status", "retry_wait");
    means_two("/claimed/status", "queued");
    means_two("/dependency_waiting/status", "retry_wait");
}

#[test]
fn work_can_be_submitted_come_due_and_be_judged() {
    outcome_refused("/queued", json!("retry_wait"), "nothing could be submitted");
    let mut table = sound("2.0.0");
    table["same_status"] = json!("reject");
    assert!(said(&found(table), "lease.queued", "would never come due"));
    let mut table = sound("2.0.0");
    table["execution"] = json!(null);
    assert!(said(&found(table), "lease", "no execution rule"));
}

#[test]
fn a_lease_is_long_enough_to_be_renewed_in_time() {
    outcome_refused("/lease", json!(499), "500 or more");
    let mut table = sound("2.0.0");
    table["lease"]["lease"] = json!(500);
    assert_eq!(found(table), []);
}
