//! What keeps an entity from its end.

use super::super::{Entity, KillRefusal, Runtime, RuntimeKind, RuntimeState, SeenGone, Unjudged};
use super::{Case, Explanation, Process, REPAIR, START_GRACE, ShimLock, Sight, queued};

/// How many entities below are named.
const NAMED_MAX: usize = 10;

/// Explains an entity that has not ended.
pub(super) fn explain(case: &Case<'_>) -> Explanation {
    if let Some(answer) = case.queued.and_then(|sight| queued::explain(case, sight)) {
        return answer;
    }
    let mut answer = match case.runtime {
        _ if case.end_waits => Explanation::new("its program has ended, and the end waits to be recorded")
            .with(
                "end",
                "it is in the run directory; the next command that can write the store records it",
            )
            .then(REPAIR),
        Some(runtime) if !runtime.is_stopped() => running(case, runtime),
        Some(runtime) => after_its_runtime(case, runtime),
        None => without_process(case),
    };
    let entity = case.entity;
    answer.maybe("leased by", entity.structural.leased_by.clone());
    answer.maybe("due", entity.due_at().map(super::super::Timestamp::to_rfc3339));
    answer
}

/// What is said of a runtime that is not stopped, whether its entity has ended or not.
pub(super) fn running(case: &Case<'_>, runtime: &Runtime) -> Explanation {
    if runtime.kind != RuntimeKind::Local {
        return elsewhere(runtime);
    }
    match case.sight {
        Sight::Nothing => starting(case, runtime),
        Sight::Held(processes) => held(case, runtime, processes),
        Sight::Unheld(processes) => unheld(case, processes),
        Sight::Gone(seen) => gone(case, runtime, *seen),
        Sight::Unjudged(unjudged, lock) => unjudged_by(case, runtime, unjudged, *lock),
    }
}

fn elsewhere(runtime: &Runtime) -> Explanation {
    let handle = runtime.remote_handle.as_deref().unwrap_or("?");
    let headline = format!(
        "it runs elsewhere ({} on {}): whether it lives is never judged from here",
        runtime.kind.word(),
        runtime.place.host
    );
    Explanation::new(headline)
        .with("handle", handle)
        .with("runtime", runtime.id.to_string())
        .then(format!("runwarden runtime release {}", runtime.id))
}

fn unjudged_by(case: &Case<'_>, runtime: &Runtime, unjudged: &Unjudged, lock: ShimLock) -> Explanation {
    let host = &runtime.place.host;
    let headline = match (unjudged.word, lock) {
        (KillRefusal::Remote | KillRefusal::HostMismatch, _) => {
            format!("it runs on the machine {host}: nothing about it can be known here")
        }
        (KillRefusal::NamespaceMismatch, ShimLock::Held) => "it runs in another namespace of this machine".to_owned(),
        (KillRefusal::NamespaceMismatch, ShimLock::Free) => {
            "it ran in another namespace of this machine, and its shim is gone".to_owned()
        }
        (KillRefusal::NamespaceMismatch, ShimLock::Unknown) => {
            "it was started in another namespace of this machine: its processes cannot be seen from here".to_owned()
        }
        (KillRefusal::PermissionDenied, _) => "it belongs to another user, who alone can stop it".to_owned(),
        (KillRefusal::IdentityMismatch | KillRefusal::Unverifiable | KillRefusal::NotKillable, _) => {
            "its processes cannot be told from others here".to_owned()
        }
    };
    let answer = Explanation::new(headline).with("unjudged", unjudged.message.clone());
    let answer = match lock {
        ShimLock::Held => return answer.with("shim's lock", "held: its shim lives").then(REPAIR),
        ShimLock::Free => answer.with("shim's lock", "free: its shim is gone; what it started may live on"),
        ShimLock::Unknown => answer,
    };
    if unjudged.word == KillRefusal::PermissionDenied {
        return answer.then(REPAIR);
    }
    answer
        .with(
            "if it is gone",
            "only somebody who knows can say so, and it is recorded who did",
        )
        .then(format!("{} --declare-gone --note HOW_YOU_KNOW", case.command("kill")))
}

fn starting(case: &Case<'_>, runtime: &Runtime) -> Explanation {
    let age = case.now.since(runtime.created_at);
    if age <= START_GRACE {
        return Explanation::new("it is being started")
            .with("for", age.to_string())
            .then(case.command("why"));
    }
    Explanation::new("its start never came to a process: the command that started it was ended, or is held up")
        .with("for", age.to_string())
        .then(case.command("kill"))
}

fn unheld(case: &Case<'_>, processes: &[Process]) -> Explanation {
    let count = counted(processes.len(), "process of it goes", "processes of it go");
    let headline = format!("its shim was killed, and {count} on with nobody to see its end");
    let mut answer = Explanation::new(headline);
    case.processes(&mut answer);
    answer.then(case.command("logs")).then(case.command("kill"))
}

fn gone(case: &Case<'_>, runtime: &Runtime, seen: SeenGone) -> Explanation {
    match seen {
        SeenGone::EarlierBoot => Explanation::new("this machine was restarted under it, and its end is not recorded")
            .with("boot", format!("{} is over", runtime.place.boot_id)),
        SeenGone::NoSuchProcess | SeenGone::Recycled | SeenGone::Zombie | SeenGone::NoMember => {
            Explanation::new("its shim was killed, everything of it is gone, and nobody saw how it ended")
                .with("program", pid(runtime.worker.as_ref().map(|worker| worker.pid)))
                .with("seen", seen.word())
        }
    }
    .then(case.command("kill"))
}

/// Its shim lives.
fn held(case: &Case<'_>, runtime: &Runtime, processes: &[Process]) -> Explanation {
    let count = counted(of_its_own(processes), "process", "processes");
    let mut answer = if runtime.stop_unconfirmed {
        Explanation::new(format!("its stop is not confirmed: {count} outlived KILL")).then(case.command("kill"))
    } else if runtime.state == RuntimeState::Lingering {
        Explanation::new(format!("its program has ended, and {count} that it started live on"))
            .then(case.command("kill"))
    } else if runtime.state == RuntimeState::Stopping {
        Explanation::new(format!("it is being stopped since {}", case.standing_for()))
            .then(case.command("kill --grace 0"))
    } else {
        stuck(processes)
            .unwrap_or_else(|| fine(case, runtime, processes))
            .then(case.command("kill"))
    };
    if let Some(intent) = &runtime.stop_intent {
        let note = intent.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
        answer.fact("stop", format!("asked for by {}{note}", intent.actor));
        answer.fact("grace", intent.grace.to_string());
    }
    case.processes(&mut answer);
    if processes.iter().any(|process| process.state == 'D') {
        let said =
            "no signal reaches it before the kernel is done with what it waits for: a disk, a network file system";
        answer.fact("uninterruptible", said);
    }
    answer
}

/// What a run that nobody stops is stuck on.
fn stuck(processes: &[Process]) -> Option<Explanation> {
    let program = processes.first()?;
    if let Some(lock) = &program.lock {
        let answer = Explanation::new(format!("its program waits for a lock{}", lock.told()));
        return Some(match lock.holder {
            Some(holder) => answer.then(format!("ps -fp {holder}")),
            None => answer,
        });
    }
    let found = |state: char| processes.iter().find(|process| process.state == state);
    if program.state == 'T' {
        return Some(
            Explanation::new("its program is stopped by a signal, and waits to be continued")
                .then(format!("kill -CONT {}", program.pid)),
        );
    }
    if program.state == 't' {
        return Some(Explanation::new("its program is stopped by a debugger"));
    }
    if let Some(process) = found('D') {
        return Some(Explanation::new(format!(
            "{} waits in the kernel, where no signal reaches it",
            named(process)
        )));
    }
    if let Some(process) = found('T') {
        return Some(
            Explanation::new(format!("{} is stopped by a signal", named(process)))
                .then(format!("kill -CONT {}", process.pid)),
        );
    }
    let process = processes.iter().find(|process| process.lock.is_some())?;
    Some(Explanation::new(format!("{} waits for a lock", named(process))))
}

fn fine(case: &Case<'_>, runtime: &Runtime, processes: &[Process]) -> Explanation {
    let headline = match (processes.len(), runtime.state) {
        (0, RuntimeState::Starting) => "it is being started",
        (0, _) => "its program has just ended, and the end is being recorded",
        _ => "it is running, and nothing holds it up that can be seen from here",
    };
    Explanation::new(headline)
        .with("for", case.now.since(case.entity.created_at).to_string())
        .then(format!("runwarden logs -f {}", case.entity.reference))
}

/// It has not ended, although nothing runs for it any more.
fn after_its_runtime(case: &Case<'_>, runtime: &Runtime) -> Explanation {
    let status = &case.entity.status;
    if runtime.kind != RuntimeKind::Local {
        return ways_out(
            case,
            Explanation::new("what ran for it elsewhere was released: it ends when somebody ends it"),
        );
    }
    let details = case.refusal.map(|refusal| &refusal.details);
    let attempted = |name: &str| details.and_then(|details| details[name].as_str());
    match (attempted("attempted_status"), attempted("reason_code")) {
        (Some(target), Some(code)) => {
            let over = format!(
                "{} --override --override-actor WHO --justification WHY",
                case.move_to(target, code)
            );
            let headline =
                format!("its program has ended, and its policy refused the end: {status} has no way to {target}");
            ways_out(case, Explanation::new(headline))
                .then(over)
                .then(case.command("history --admin"))
        }
        _ => {
            let headline = format!("its program has ended, and its policy knows no end for that while it is {status}");
            ways_out(case, Explanation::new(headline))
        }
    }
}

/// It never had a process: it waits for what is below it, or for somebody.
fn without_process(case: &Case<'_>) -> Explanation {
    let open: Vec<&Entity> = case.children.iter().filter(|child| !child.terminal).collect();
    let total = counted(case.children.len(), "entity that is", "entities that are");
    if let Some(first) = open.first() {
        let headline = format!(
            "{} of the {total} linked below it {} not ended",
            open.len(),
            has(open.len())
        );
        let mut answer = Explanation::new(headline);
        for child in open.iter().take(NAMED_MAX) {
            answer.fact("below", format!("{} {}", child.reference, child.status));
        }
        if open.len() > NAMED_MAX {
            answer.fact("below", format!("and {} more", open.len() - NAMED_MAX));
        }
        return answer
            .then(format!("runwarden why {}", first.reference))
            .then("runwarden ls --live --tree");
    }
    let answer = if case.children.is_empty() {
        Explanation::new("nothing runs for it and nothing is linked below it: it moves when somebody moves it")
            .with("links", "none: a run is linked with `runwarden run --parent`")
    } else {
        let all = if case.children.len() == 1 {
            "what is"
        } else {
            "everything"
        };
        let mut answer = Explanation::new(format!(
            "{all} linked below it has ended: it moves when somebody moves it"
        ));
        for child in case.children.iter().filter(|child| !child.success).take(NAMED_MAX) {
            answer.fact("ended badly", format!("{} {}", child.reference, child.status));
        }
        answer
    };
    ways_out(case, answer)
}

/// Where it can go from here.
fn ways_out(case: &Case<'_>, mut answer: Explanation) -> Explanation {
    let status = &case.entity.status;
    let edges = case
        .lifecycle
        .descriptor()
        .edges
        .iter()
        .filter(|edge| edge.from == *status && edge.to != *status);
    let targets: Vec<&str> = edges.map(|edge| edge.to.as_str()).collect();
    if targets.is_empty() {
        answer.fact("policy", format!("{status} has no way out"));
    } else {
        answer.fact("policy", format!("from {status} it may go to {}", targets.join(", ")));
        answer = answer.then(case.move_to("STATUS", "CODE"));
    }
    if case.lifecycle.kill_row(status).is_some() {
        answer = answer.then(case.command("kill"));
    }
    let kind = &case.entity.reference.kind;
    answer.then(format!("runwarden policy show {kind}"))
}

/// How many are its own: the shim of another run is that run's.
pub(super) fn of_its_own(processes: &[Process]) -> usize {
    processes.iter().filter(|process| process.run.is_none()).count()
}

fn named(process: &Process) -> String {
    format!("pid {} ({})", process.pid, process.name)
}

fn pid(pid: Option<i64>) -> String {
    pid.map_or_else(|| "pid unknown".to_owned(), |pid| format!("pid {pid}"))
}

fn has(count: usize) -> &'static str {
    if count == 1 { "has" } else { "have" }
}

pub(super) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
