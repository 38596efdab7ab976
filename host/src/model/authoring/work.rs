//! What the host writes for processes and for leased work: outcomes, one after the other.

use super::names::Names;
use super::problem::Reading;
use super::table::{Table, Value, Word};
use crate::model::{DurationMs, ExecutionRule, LeaseRule, Outcome};

/// The key whose outcome stands for every one that is not given.
const DEFAULT: &str = "default";

/// How long a holder of a lease may be silent.
const LEASE: DurationMs = DurationMs::from_ms(300_000);
/// From the lapse of a lease to the fence.
const GRACE: DurationMs = DurationMs::from_ms(20_000);
/// How old the heartbeat of a worker that claims may be.
const HEARTBEAT_LIMIT: DurationMs = DurationMs::from_ms(90_000);
/// How often leased work is started.
const ATTEMPTS: i64 = 3;

/// `[execution]`: an outcome for each thing that can happen to a process, or `default` for those that are not given.
pub(super) fn execution(reading: &mut Reading<'_>, root: &mut Table<'_>, names: &Names) -> Option<ExecutionRule> {
    let mut table = root.table(reading, "execution")?;
    table.is_at(reading, "execution");
    let start = needed_outcome(reading, &mut table, names, "start");
    let default = outcome(reading, &mut table, names, DEFAULT);
    let default_at = table.get(DEFAULT).map(|value| value.span().start);
    let mut missing = Vec::new();
    let mut one = |reading: &mut Reading<'_>, key: &'static str| {
        if let Some(given) = outcome(reading, &mut table, names, key) {
            return given;
        }
        match (&default, default_at) {
            (Some(default), Some(at)) => {
                reading.place(format!("execution.{key}"), at);
                default.clone()
            }
            _ => {
                missing.push(key);
                nothing()
            }
        }
    };
    let rule = ExecutionRule {
        start,
        spawn_failed: one(reading, "spawn_failed"),
        directory_missing: one(reading, "directory_missing"),
        identity_lost: one(reading, "identity_lost"),
        timed_out: one(reading, "timed_out"),
        hung_up: one(reading, "hung_up"),
        interrupted: one(reading, "interrupted"),
        terminated: one(reading, "terminated"),
        parent_gone: one(reading, "parent_gone"),
        host_restarted: one(reading, "host_restarted"),
        ended_unobserved: one(reading, "ended_unobserved"),
        verdict_failed: one(reading, "verdict_failed"),
        ext: Vec::new(),
    };
    if !missing.is_empty() {
        let message = format!(
            "[execution] needs {}, or one `default` for all of them",
            missing.join(", ")
        );
        reading.problem(table.at, message);
    }
    table.finish(reading);
    Some(rule)
}

/// `[lease]`: the status `queued`, the outcomes that the host writes for leased work, and its times.
pub(super) fn lease(reading: &mut Reading<'_>, root: &mut Table<'_>, names: &Names) -> Option<LeaseRule> {
    let mut table = root.table(reading, "lease")?;
    table.is_at(reading, "lease");
    let queued = table.needed(reading, "queued");
    let claimed = needed_outcome(reading, &mut table, names, "claimed");
    let active = table.words(reading, "active");
    let mut active = names.statuses(reading, active);
    if active.is_empty() {
        active.push(claimed.status.clone());
    }
    let rule = LeaseRule {
        queued: names.status(reading, queued),
        claimed,
        active,
        lease: table.duration(reading, "lease").unwrap_or(LEASE),
        grace: table.duration(reading, "grace").unwrap_or(GRACE),
        heartbeat_limit: table.duration(reading, "heartbeat_limit").unwrap_or(HEARTBEAT_LIMIT),
        attempts: table.integer(reading, "attempts").unwrap_or(ATTEMPTS),
        lapsed: needed_outcome(reading, &mut table, names, "lapsed"),
        recovered: outcome(reading, &mut table, names, "recovered"),
        fenced: outcome(reading, &mut table, names, "fenced"),
        exhausted: needed_outcome(reading, &mut table, names, "exhausted"),
        backed_off: outcome(reading, &mut table, names, "backed_off"),
        retry_due: outcome(reading, &mut table, names, "retry_due"),
        handed_back: outcome(reading, &mut table, names, "handed_back"),
        dependency_waiting: outcome(reading, &mut table, names, "dependency_waiting"),
        dependency_met: outcome(reading, &mut table, names, "dependency_met"),
        dependency_failed: outcome(reading, &mut table, names, "dependency_failed"),
        ext: Vec::new(),
    };
    table.finish(reading);
    Some(rule)
}

/// An outcome that must be there.
pub(super) fn needed_outcome(
    reading: &mut Reading<'_>,
    table: &mut Table<'_>,
    names: &Names,
    key: &'static str,
) -> Outcome {
    table.require(reading, key);
    outcome(reading, table, names, key).unwrap_or_else(nothing)
}

/// An outcome: "status code", or `{ status = "…", code = "…" }`.
fn outcome(reading: &mut Reading<'_>, table: &mut Table<'_>, names: &Names, key: &'static str) -> Option<Outcome> {
    let value = table.get(key)?;
    table.place_of(reading, key, value);
    if let Some(mut pair) = Table::of_value(format!("`{key}`"), value) {
        let (status, code) = (pair.needed(reading, "status"), pair.needed(reading, "code"));
        pair.finish(reading);
        return Some(names.outcome(reading, status, code));
    }
    let Some((status, code)) = pair(value) else {
        let message =
            format!("`{key}` is a status and a reason code with a space between: \"failed build.failed.step\"");
        reading.problem(value.span().start, message);
        return None;
    };
    Some(names.outcome(reading, status, code))
}

/// Two words of one string, each with its place.
fn pair(value: &Value<'_>) -> Option<(Word, Word)> {
    let at = value.span().start;
    let words = value.get_ref().as_str()?.split_once(' ')?;
    let (status, code) = (words.0.trim(), words.1.trim());
    let is_word = |word: &str| !word.is_empty() && !word.contains(char::is_whitespace);
    (is_word(status) && is_word(code)).then(|| (Word::of(status, at), Word::of(code, at)))
}

/// What stands for an outcome of which a problem was told.
fn nothing() -> Outcome {
    Outcome {
        status: String::new(),
        code: String::new(),
    }
}
