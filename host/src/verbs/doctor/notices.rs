//! Whether notices go where they are to go.

use super::Check;
use crate::error::Error;
use crate::host::Host;
use crate::model::{DISPATCH_KIND, DestinationHealth, DurationMs, Entity, Timestamp, outbox};
use crate::process::is_served;
use crate::store::{DueQuery, EntityQuery, Owed};

/// A notice that is due for longer waits for somebody: whoever enqueued it tried it once.
const OVERDUE_AFTER: DurationMs = DurationMs::from_ms(5 * 60_000);

/// How many of what is counted are counted one by one.
const COUNTED_MAX: usize = 1_000;

/// What was found of the outbox.
struct Found {
    now: Timestamp,
    served: bool,
    overdue: Vec<Entity>,
    unreadable: Option<Entity>,
    dead: usize,
    destinations: Vec<DestinationHealth>,
    owed: Vec<Owed>,
}

/// Judges the outbox; nothing is said of one that nobody uses.
///
/// # Errors
/// The store cannot be read.
pub(super) fn checks(host: &Host) -> Result<Vec<Check>, Error> {
    let now = host.now();
    let query = |terminal| EntityQuery {
        kind: Some(DISPATCH_KIND.to_owned()),
        terminal: Some(terminal),
        success: Some(false),
        limit: Some(COUNTED_MAX),
        ..EntityQuery::default()
    };
    let store = host.store();
    let waiting = store.list(&query(false))?;
    let not_attempted = |entity: &&Entity| entity.reason.summary.as_deref().is_some_and(outbox::is_not_attempted);
    let far = Timestamp::from_ms(i64::MAX);
    let found = Found {
        now,
        served: is_served(&host.config().database_path()),
        overdue: store.due(&DueQuery {
            before: Timestamp::from_ms(now.as_ms() - OVERDUE_AFTER.as_ms()),
            except_targets: Vec::new(),
            limit: COUNTED_MAX,
        })?,
        unreadable: waiting.iter().find(not_attempted).cloned(),
        dead: store.list(&query(true))?.len(),
        destinations: store.destinations()?,
        owed: store.owed(far, COUNTED_MAX)?,
    };
    let is_used = !waiting.is_empty() || found.dead > 0 || !found.owed.is_empty() || found.served;
    if !is_used && found.destinations.is_empty() {
        return Ok(Vec::new());
    }
    Ok(found.told())
}

impl Found {
    fn told(&self) -> Vec<Check> {
        let mut checks = vec![self.delivery()];
        let paused = self.destinations.iter().filter_map(|health| {
            let until = health.paused_until.filter(|until| *until > self.now)?;
            let error = health.last_error.as_deref().unwrap_or("no reason is known");
            let said = format!(
                "{} failed {} times in a row and is paused for {}: {error}",
                health.label,
                health.failures,
                until.since(self.now)
            );
            Some(Check::warn("destination", said).hint("runwarden outbox ls"))
        });
        checks.extend(paused);
        if let Some(entity) = &self.unreadable {
            let error = entity.field("last_error");
            let said = format!(
                "{} cannot be attempted: {}",
                entity.reference,
                error.as_str().unwrap_or("no reason is known")
            );
            checks.push(Check::bad("secret", said).hint(format!("runwarden why {}", entity.reference)));
        }
        if let Some(owed) = self.owed.iter().find(|owed| owed.plan.error.is_some()) {
            let count = self.owed.len();
            let error = owed.plan.error.as_deref().unwrap_or_default();
            let said = format!(
                "{count} plans are owed; that of handler {} for {} failed {} times: {error}",
                owed.plan.handler, owed.reference, owed.plan.tries
            );
            checks.push(Check::bad("plans", said).hint("runwarden policy ls"));
        }
        checks
    }

    fn delivery(&self) -> Check {
        let who = if self.served {
            "a service delivers"
        } else {
            "no service is up"
        };
        let dead = match self.dead {
            0 => String::new(),
            COUNTED_MAX => format!("; {COUNTED_MAX} or more were given up"),
            dead => format!("; {dead} were given up"),
        };
        match self.overdue.len() {
            0 if self.dead == 0 => Check::ok("notices", format!("{who}; none waits for somebody")),
            0 => Check::warn("notices", format!("{who}{dead}")).hint("runwarden outbox ls"),
            overdue => {
                let said = format!("{overdue} are due for more than {OVERDUE_AFTER}, and {who}{dead}");
                Check::bad("notices", said).hint("runwarden outbox deliver")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::doctor::CheckResult;

    fn found() -> Found {
        Found {
            now: Timestamp::from_ms(1_000_000),
            served: false,
            overdue: Vec::new(),
            unreadable: None,
            dead: 0,
            destinations: Vec::new(),
            owed: Vec::new(),
        }
    }

    #[test]
    fn what_was_given_up_is_told_and_what_is_paused_says_why() {
        let quiet = found().told();
        assert_eq!((quiet.len(), quiet[0].result), (1, CheckResult::Ok));
        let paused = DestinationHealth {
            label: "ops/hook (webhook)".to_owned(),
            failures: 7,
            paused_until: Some(Timestamp::from_ms(1_060_000)),
            last_error: Some("HTTP 500".to_owned()),
            ..DestinationHealth::default()
        };
        let over = DestinationHealth {
            paused_until: Some(Timestamp::from_ms(999_999)),
            ..paused.clone()
        };
        let told = Found {
            dead: 2,
            destinations: vec![paused, over],
            ..found()
        }
        .told();
        assert_eq!(told.len(), 2, "a pause that is over is none: {told:?}");
        assert_eq!(told[0].result, CheckResult::Warn);
        assert!(told[0].message.contains("2 were given up"), "{told:?}");
        let said = "ops/hook (webhook) failed 7 times in a row and is paused for 1m 0s: HTTP 500";
        assert_eq!(told[1].message, said);
    }
}
