//! What may be running, and which of it waits for somebody.

use super::{Check, CheckResult};
use crate::error::Error;
use crate::host::Host;
use crate::model::{Runtime, RuntimeKind, RuntimeState, START_GRACE, Sight, Timestamp};
use crate::verbs::settle::exit_record;
use crate::verbs::why::look;

/// How many runs are named.
const NAMED_MAX: usize = 5;

/// What is the matter with a runtime that is not stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Matter {
    /// Nothing.
    None,
    /// Its shim is gone and left no record.
    Orphan,
    /// It was being started for longer than a start takes.
    StuckStart,
    /// What it started outlived KILL.
    Unconfirmed,
    /// Its program has ended, what it started lives on.
    Lingering,
    /// Its end is in its run directory and not in the store.
    EndWaits,
    /// There is a record of its end, and it cannot be read.
    Unreadable,
    /// It belongs to another machine or namespace, or cannot be told from others.
    Unseen,
    /// It runs elsewhere and is never judged from here.
    Elsewhere,
}

/// Whether a run directory holds the record of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recorded {
    Yes,
    No,
    /// It holds something that is none.
    Unreadable,
}

/// Judges every runtime that is not stopped.
///
/// # Errors
/// The store or the list of processes cannot be read.
pub(super) fn checks(host: &Host) -> Result<Vec<Check>, Error> {
    let runtimes = host.store().runtimes(None)?;
    let mut found = Vec::with_capacity(runtimes.len());
    for runtime in &runtimes {
        let recorded = match exit_record(runtime) {
            Ok(Some(_)) => Recorded::Yes,
            Ok(None) => Recorded::No,
            Err(_) => Recorded::Unreadable,
        };
        let matter = matter(runtime, &look(host, runtime)?, recorded, host.now());
        found.push((runtime.owner.to_string(), matter));
    }
    Ok(told(&found))
}

fn matter(runtime: &Runtime, sight: &Sight, recorded: Recorded, now: Timestamp) -> Matter {
    let ended = matches!(runtime.state, RuntimeState::Lingering | RuntimeState::Stopped);
    match sight {
        _ if runtime.kind != RuntimeKind::Local => Matter::Elsewhere,
        _ if runtime.stop_unconfirmed => Matter::Unconfirmed,
        _ if recorded == Recorded::Unreadable => Matter::Unreadable,
        _ if recorded == Recorded::Yes && !ended => Matter::EndWaits,
        Sight::Unheld(_) | Sight::Gone(_) => Matter::Orphan,
        // Without its shim too: what it started may live on where nobody can look from here, and nothing repairs that.
        Sight::Unjudged(..) => Matter::Unseen,
        Sight::Held(_) if runtime.state == RuntimeState::Lingering => Matter::Lingering,
        Sight::Held(_) => Matter::None,
        Sight::Nothing if now.since(runtime.created_at) > START_GRACE => Matter::StuckStart,
        Sight::Nothing => Matter::None,
    }
}

/// What a matter comes to: its check's name and result, what is said of the runs, and the command for the first of them.
struct Row(Matter, &'static str, CheckResult, &'static str, &'static str);

const FIX: &str = "runwarden doctor --fix";

const ROWS: [Row; 7] = {
    use CheckResult::{Bad, Warn};
    const KILL: &str = "runwarden kill";
    const LOOK: &str = "runwarden why";
    const READ: &str = "runwarden show";
    [
        Row(
            Matter::Orphan,
            "orphans",
            Bad,
            "the shim is gone and left no record",
            FIX,
        ),
        Row(
            Matter::StuckStart,
            "starts",
            Bad,
            "started over 30 s ago, and no process came of it",
            FIX,
        ),
        Row(
            Matter::Unconfirmed,
            "stops",
            Bad,
            "not everything could be stopped",
            KILL,
        ),
        Row(
            Matter::Unreadable,
            "records",
            Bad,
            "the record of the end cannot be read",
            READ,
        ),
        Row(
            Matter::Lingering,
            "lingering",
            Warn,
            "ended, and what they started lives on",
            KILL,
        ),
        Row(
            Matter::EndWaits,
            "ends",
            Warn,
            "ended, and the end waits to be recorded",
            FIX,
        ),
        Row(Matter::Unseen, "unseen", Warn, "not to be seen from here", LOOK),
    ]
};

/// A check that counts all, and one for each matter.
fn told(found: &[(String, Matter)]) -> Vec<Check> {
    let of = |wanted: Matter| -> Vec<&str> {
        let these = found.iter().filter(|(_, matter)| *matter == wanted);
        these.map(|(reference, _)| reference.as_str()).collect()
    };
    let mut checks = vec![Check::ok("runs", count(found.len(), of(Matter::None).len()))];
    for Row(matter, name, result, said, command) in ROWS {
        let references = of(matter);
        let mut check = Check::ok(name, "none");
        if let Some(first) = references.first() {
            check.result = result;
            check.message = format!("{said}: {}", named(&references));
            check.hint = Some(match command {
                // It repairs all of them.
                FIX => command.to_owned(),
                _ => format!("{command} {first}"),
            });
        }
        checks.push(check);
    }
    let elsewhere = of(Matter::Elsewhere);
    if !elsewhere.is_empty() {
        let said = format!("registered, and never judged from here: {}", named(&elsewhere));
        checks.push(Check::ok("elsewhere", said));
    }
    checks
}

fn count(all: usize, well: usize) -> String {
    match (all, all - well) {
        (0, _) => "none is running".to_owned(),
        (_, 0) => format!("{all} running, as they should be"),
        (_, others) => format!("{well} running as they should be, {others} told below"),
    }
}

fn named(references: &[&str]) -> String {
    let mut said = references
        .iter()
        .take(NAMED_MAX)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    if references.len() > NAMED_MAX {
        said.push_str(&format!(" and {} more", references.len() - NAMED_MAX));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DurationMs, KillRefusal, Reference, SeenGone, ShimLock, Unjudged};
    use crate::store::samples::{moment, new_runtime};

    fn runtime(state: RuntimeState) -> Runtime {
        Runtime {
            state,
            ..new_runtime(&Reference::new("run", "one"))
        }
    }

    #[test]
    fn each_matter_is_told_by_what_was_seen() {
        let held = || Sight::Held(Vec::new());
        let gone = || Sight::Gone(SeenGone::NoSuchProcess);
        let unjudged = |lock| {
            let message = String::new();
            let word = KillRefusal::NamespaceMismatch;
            Sight::Unjudged(Unjudged { word, message }, lock)
        };
        let (running, lingering) = (RuntimeState::Running, RuntimeState::Lingering);
        let rows = [
            (running, held(), Recorded::No, Matter::None),
            (lingering, held(), Recorded::Yes, Matter::Lingering),
            (running, held(), Recorded::Yes, Matter::EndWaits),
            (running, gone(), Recorded::Yes, Matter::EndWaits),
            (running, gone(), Recorded::No, Matter::Orphan),
            (running, Sight::Unheld(Vec::new()), Recorded::No, Matter::Orphan),
            (lingering, gone(), Recorded::Yes, Matter::Orphan),
            (running, unjudged(ShimLock::Free), Recorded::No, Matter::Unseen),
            (running, unjudged(ShimLock::Held), Recorded::No, Matter::Unseen),
            (running, unjudged(ShimLock::Unknown), Recorded::No, Matter::Unseen),
        ];
        for (state, sight, recorded, expected) in rows {
            assert_eq!(
                matter(&runtime(state), &sight, recorded, moment(10)),
                expected,
                "{state:?} {sight:?}"
            );
        }
        let unread = matter(
            &runtime(RuntimeState::Running),
            &held(),
            Recorded::Unreadable,
            moment(10),
        );
        assert_eq!(unread, Matter::Unreadable);
        let mut unconfirmed = runtime(RuntimeState::Stopping);
        unconfirmed.stop_unconfirmed = true;
        assert_eq!(
            matter(&unconfirmed, &held(), Recorded::Yes, moment(10)),
            Matter::Unconfirmed
        );
        let mut remote = runtime(RuntimeState::Running);
        remote.kind = RuntimeKind::Ssh;
        assert_eq!(
            matter(&remote, &Sight::Nothing, Recorded::No, moment(1 << 40)),
            Matter::Elsewhere
        );
    }

    #[test]
    fn a_start_is_stuck_only_after_its_grace() {
        let starting = runtime(RuntimeState::Starting);
        let at = |ms| starting.created_at.plus(DurationMs::from_ms(ms));
        let judged = |now| matter(&starting, &Sight::Nothing, Recorded::No, now);
        assert_eq!(judged(at(30_000)), Matter::None);
        assert_eq!(judged(at(30_001)), Matter::StuckStart);
    }

    #[test]
    fn what_is_bad_is_named_with_a_command() {
        let row = |name: &str, matter| (format!("run/{name}"), matter);
        let all = told(&[
            row("a", Matter::None),
            row("b", Matter::Orphan),
            row("c", Matter::Elsewhere),
        ]);
        let find = |name| all.iter().find(|check| check.name == name).expect("it is checked");
        assert_eq!(find("runs").message, "1 running as they should be, 2 told below");
        assert_eq!(find("orphans").result, CheckResult::Bad);
        assert_eq!(find("orphans").hint.as_deref(), Some(FIX));
        assert!(find("elsewhere").message.contains("run/c"));
        assert_eq!(find("lingering").result, CheckResult::Ok);
    }
}
