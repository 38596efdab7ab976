//! Whether queued work gets on.

use super::Check;
use crate::error::Error;
use crate::host::Host;
use crate::model::{DurationMs, Stage, Timestamp};
use crate::process::is_served;
use crate::store::QueueState;
use crate::verbs::lease::at_work;

/// A lease that ended so long ago and was not judged says that nobody keeps the queue: several passes of whoever would.
const UNJUDGED_AFTER: DurationMs = DurationMs::from_ms(60_000);

/// Work that is in doubt for so long waits for somebody: several times the bundled grace.
const DOUBTED_AFTER: DurationMs = DurationMs::from_ms(120_000);

/// What was found of the queues.
struct Found {
    queues: Vec<QueueState>,
    workers: usize,
    late_writes: u64,
    served: bool,
    steady: Timestamp,
}

/// Judges the queues; nothing is said of a store that has none.
///
/// # Errors
/// The store cannot be read.
pub(super) fn checks(host: &Host) -> Result<Vec<Check>, Error> {
    let store = host.store();
    let found = Found {
        queues: store.queues()?,
        workers: at_work(host)?.len(),
        late_writes: store.late_writes()?,
        served: is_served(&host.config().database_path()),
        steady: host.steady_now()?,
    };
    if found.queues.is_empty() {
        return Ok(Vec::new());
    }
    Ok(judged(&found))
}

fn judged(found: &Found) -> Vec<Check> {
    let count = |stage| -> u64 {
        let counts = found.queues.iter().flat_map(|queue| &queue.counts);
        counts
            .filter(|(counted, _)| *counted == stage)
            .map(|(_, count)| count)
            .sum()
    };
    let since = |moment: fn(&QueueState) -> Option<Timestamp>| {
        let first = found.queues.iter().filter_map(moment).min();
        first.map_or(DurationMs::default(), |first| found.steady.since(first))
    };
    let mut checks = vec![doubted(count(Stage::Doubted), since(|queue| queue.doubted_since))];
    let unjudged = since(|queue| queue.lease_ends_first);
    if unjudged > UNJUDGED_AFTER {
        let said = format!("a lease ended {unjudged} ago and was not judged: nobody keeps the queues");
        checks.push(Check::bad("leases", said).hint("runwarden doctor --fix; runwarden serve does it all the time"));
    }
    let (ready, paused) = (
        count(Stage::Ready),
        found.queues.iter().filter(|queue| queue.setup.paused_at.is_some()),
    );
    let paused: Vec<&str> = paused.map(|queue| queue.setup.name.as_str()).collect();
    if !paused.is_empty() {
        let said = format!("paused: {}", paused.join(", "));
        checks.push(Check::warn("paused queues", said).hint("runwarden queue resume Q"));
    }
    if ready > 0 && found.workers == 0 {
        let said = format!("{ready} ready, and no worker is at work");
        let command = if found.served {
            "runwarden worker"
        } else {
            "runwarden serve --slots 1"
        };
        checks.push(Check::warn("workers", said).hint(command));
    }
    if found.late_writes > 0 {
        let said = format!(
            "{} writes came from workers that had lost their lease; all were refused",
            found.late_writes
        );
        checks.push(Check::warn("late writes", said).hint("runwarden history --admin"));
    }
    checks
}

fn doubted(count: u64, longest: DurationMs) -> Check {
    let said = match count {
        0 => return Check::ok("queues", "every worker that holds something is heard of"),
        1 => format!("the worker of 1 piece of work is not heard of, for {longest}"),
        many => format!("the workers of {many} pieces of work are not heard of, the longest for {longest}"),
    };
    let hint = "runwarden queue ls; runwarden why REF";
    if longest > DOUBTED_AFTER {
        Check::bad("queues", said).hint(hint)
    } else {
        Check::warn("queues", said).hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::super::CheckResult;
    use super::*;
    use crate::store::QueueSetup;

    fn found(change: impl FnOnce(&mut Found)) -> Vec<(&'static str, CheckResult)> {
        let mut found = Found {
            queues: vec![QueueState::default()],
            workers: 1,
            late_writes: 0,
            served: false,
            steady: Timestamp::from_ms(1_000_000),
        };
        change(&mut found);
        judged(&found)
            .into_iter()
            .map(|check| (check.name, check.result))
            .collect()
    }

    fn ago(ms: i64) -> Option<Timestamp> {
        Some(Timestamp::from_ms(1_000_000 - ms))
    }

    /// Row 3: a sweep that nobody makes is seen by the age of the oldest lease that nobody judged.
    #[test]
    fn each_fault_is_told_and_nothing_else() {
        let sound = [("queues", CheckResult::Ok)];
        assert_eq!(found(|_| {}), sound);
        assert_eq!(found(|found| found.queues[0].counts = vec![(Stage::Ready, 3)]), sound);
        let doubted = |ms| {
            found(|found| {
                found.queues[0].counts = vec![(Stage::Doubted, 1)];
                found.queues[0].doubted_since = ago(ms);
            })
        };
        assert_eq!(doubted(120_000), [("queues", CheckResult::Warn)]);
        assert_eq!(doubted(120_001), [("queues", CheckResult::Bad)]);
        let told = |check, change: fn(&mut Found)| assert_eq!(found(change), [sound[0], check]);
        told(("leases", CheckResult::Bad), |found| {
            found.queues[0].lease_ends_first = ago(60_001)
        });
        told(("paused queues", CheckResult::Warn), |found| {
            found.queues[0].setup = QueueSetup {
                paused_at: ago(5),
                ..QueueSetup::default()
            };
        });
        told(("workers", CheckResult::Warn), |found| {
            found.workers = 0;
            found.queues[0].counts = vec![(Stage::Ready, 3)];
        });
        told(("late writes", CheckResult::Warn), |found| found.late_writes = 2);
    }
}
