//! How a run is, from what was observed of it.

use runwarden_kit::table::threshold;
use runwarden_kit::{Assessment, Fault, HealthThreshold, Observation};

const HOUR_MS: i64 = 3_600_000;
const IDLE_MS: i64 = HOUR_MS;

/// Spawn kinds that may be quiet for longer: they wait for other work.
const PATIENT: &[&str] = &["flow", "fanout", "show-play", "engine"];

/// How quiet each spawn kind may be; the last row is for every other.
pub fn thresholds() -> Vec<HealthThreshold> {
    let mut rows = vec![
        threshold("agent", IDLE_MS, 6 * HOUR_MS),
        threshold("play", IDLE_MS, 6 * HOUR_MS),
    ];
    rows.extend(PATIENT.iter().map(|kind| threshold(kind, IDLE_MS, 12 * HOUR_MS)));
    rows.push(threshold("", IDLE_MS, 6 * HOUR_MS));
    rows
}

/// Judges an entity: a pure function of the observation.
///
/// # Errors
/// None today; the signature is the interface's.
pub fn assess(seen: &Observation) -> Result<Assessment, Fault> {
    let (level, message) = judge(seen);
    Ok(Assessment::new(level, message))
}

fn judge(seen: &Observation) -> (&'static str, &'static str) {
    if seen.entity.status != "running" {
        return if seen.has_stale_locks {
            ("zombie", "it has ended, and its locks were left")
        } else {
            ("healthy", "it has ended")
        };
    }
    let traceless = seen.messages == 0 && !seen.has_artifacts;
    match seen.process.as_str() {
        "alive" => match quiet(seen) {
            Quiet::TooLong => ("unresponsive", "its process lives, and it is quiet for too long"),
            Quiet::AWhile => ("idle", "it is quiet for a while"),
            Quiet::Not => ("healthy", "its process lives, and it is active"),
        },
        "gone" if traceless => ("orphaned", "its process is gone and left no traces"),
        "gone" => ("stale", "its process is gone, and no end is recorded"),
        _ if traceless => ("orphaned", "no process is known, and there are no traces"),
        _ => match quiet(seen) {
            Quiet::TooLong => ("stale", "no process is known, and it is quiet for too long"),
            Quiet::AWhile => ("idle", "no process is known, and it is quiet for a while"),
            Quiet::Not => ("healthy", "no process is known, and it is active"),
        },
    }
}

enum Quiet {
    Not,
    AWhile,
    TooLong,
}

/// Strictly older than a limit; exactly at it is still within.
fn quiet(seen: &Observation) -> Quiet {
    let age = seen.surroundings.now.saturating_sub(seen.last_activity_at);
    let limits = limits(&seen.spawn_kind);
    if age > limits.stale {
        Quiet::TooLong
    } else if age > limits.idle {
        Quiet::AWhile
    } else {
        Quiet::Not
    }
}

fn limits(spawn_kind: &str) -> HealthThreshold {
    let mut rows = thresholds();
    let found = rows.iter().position(|row| row.spawn_kind == spawn_kind);
    rows.swap_remove(found.unwrap_or(rows.len() - 1))
}
