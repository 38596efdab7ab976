//! Each kind admits what the reference system admits, and what this host adds.

use std::collections::BTreeSet;

use crate::policies;

const OF_RUNS: &[&str] = &[
    "run.failed.orphaned_parent",
    "run.failed.host_restarted",
    "run.cancelled.hangup",
    "run.failed.spawn_identity_lost",
    "run.failed.spawn_error",
    "run.failed.policy_fault",
    "run.failed.dependency_failed",
    "run.retry_wait.backoff",
    "run.retry_wait.handed_back",
    "run.queued.retry_due",
];

const OF_KILLS: &[&str] = &[
    "run.cancelled.manual_kill",
    "run.cancelled.force_kill",
    "run.cancelled.stale_auto",
];

const OF_DOUBT: &[&str] = &[
    "run.supervisor_unknown.lease_stale",
    "run.orphaned.fence_committed",
    "run.running.recovered_same_holder",
];

#[test]
fn each_kind_admits_the_recorded_codes_and_the_hosts_additions() {
    let recorded = policies::vectors("reason_codes.json");
    for (directory, table) in policies::all() {
        let kind = if table.kind == "run" { "session" } else { &table.kind };
        let listed = &recorded["allowed_on_strict_path_by_entity"][kind];
        let listed = listed.as_array().expect("the kind is recorded");
        let mut expected: BTreeSet<&str> = listed.iter().filter_map(|code| code.as_str()).collect();
        for additions in additions(directory) {
            expected.extend(*additions);
        }
        let found: BTreeSet<&str> = table.reason_codes.iter().map(|row| &*row.code).collect();
        assert_eq!(found, expected, "{directory}");
    }
}

fn additions(directory: &str) -> &'static [&'static [&'static str]] {
    match directory {
        "run" | "session" | "invocation" | "schedule-run-v1" => &[OF_RUNS],
        "schedule-run-v2" => &[OF_RUNS, OF_DOUBT],
        "play" => &[OF_KILLS, &["play.blocked.runner_orphaned"]],
        "show" => &[OF_KILLS, &["show.imported.created"]],
        "team" => &[&["team.active.created"]],
        _ => &[&["dispatch.dead_letter.refused"]],
    }
}
