//! What queued work waits for, who has it, and what becomes of it when its worker is not heard of.

use super::super::{DurationMs, Reference, Stage, Timestamp};
use super::{Case, Explanation};

/// What is known of queued work beside its row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueSight {
    /// Where it stands; none when it has ended.
    pub stage: Option<Stage>,
    /// Its queue.
    pub queue: String,
    /// Why its queue is paused; empty when nobody said. None: it is not paused.
    pub paused: Option<String>,
    /// How much of its queue is held, and the limit.
    pub held: (u64, Option<i64>),
    /// Workers that take from its queue: how many, and how much they may do at once.
    pub workers: (usize, i64),
    /// What it waits for, and whether that ended.
    pub awaited: Vec<(Reference, Option<bool>)>,
    /// The run of its last attempt.
    pub run: Option<Reference>,
    /// The attempt that follows it.
    pub successor: Option<Reference>,
    /// It was given up without proof that its last attempt is stopped, and nothing follows before that is confirmed.
    pub waits_for_confirmation: bool,
    /// How many starts it may have.
    pub attempts: i64,
    /// Now, in steady time: what leases are measured by.
    pub steady: Timestamp,
}

/// Explains queued work that has not ended; none when its stage says nothing.
pub(super) fn explain(case: &Case<'_>, sight: &QueueSight) -> Option<Explanation> {
    let entity = case.entity;
    let made = entity.structural.lease_attempts.unwrap_or(0);
    let mut answer = match sight.stage? {
        Stage::Waiting => waiting(sight),
        Stage::Later => later(case, made),
        Stage::Ready => ready(sight),
        Stage::Active => held(case, sight),
        Stage::Doubted => doubted(case, sight),
    };
    answer.fact("queue", sight.queue.clone());
    answer.fact("attempt", format!("{made} of {} made", sight.attempts));
    Some(answer.then(case.command("kill")))
}

/// What follows from queued work that has ended.
pub(super) fn after(case: &Case<'_>, sight: &QueueSight, mut answer: Explanation) -> Explanation {
    answer.maybe("run", sight.run.as_ref().map(ToString::to_string));
    if let Some(successor) = &sight.successor {
        answer.fact("goes on as", successor.to_string());
        return answer.then(format!("runwarden why {successor}"));
    }
    if sight.waits_for_confirmation {
        let said = "no attempt follows before an operator says that nothing of this one lives";
        answer.fact("waits", said);
        return answer.then(case.command("queue confirm"));
    }
    answer
}

fn waiting(sight: &QueueSight) -> Explanation {
    let open = |(_, ended): &&(Reference, Option<bool>)| ended.is_none();
    let first = sight.awaited.iter().find(open).map(|(reference, _)| reference);
    let mut answer = match first {
        Some(reference) => Explanation::new(format!("it waits for {reference} to end with success"))
            .then(format!("runwarden why {reference}")),
        None => {
            Explanation::new("what it waited for has ended, and nobody has looked since").then("runwarden doctor --fix")
        }
    };
    for (reference, ended) in &sight.awaited {
        let how = match ended {
            None => "goes on",
            Some(true) => "ended with success",
            Some(false) => "ended without success",
        };
        answer.fact("waits for", format!("{reference}, which {how}"));
    }
    answer
}

fn later(case: &Case<'_>, made: i64) -> Explanation {
    let due = case.entity.structural.next_attempt_at;
    let left = due.map_or(DurationMs::default(), |due| due.since(case.now));
    let headline = match (made, left.as_ms()) {
        (_, 0) => "it is due, and nobody has looked since".to_owned(),
        (0, _) => format!("it is not to begin before {left} from now"),
        (_, _) => format!("its next attempt is due in {left}"),
    };
    let answer = Explanation::new(headline);
    if left.as_ms() == 0 {
        answer.then("runwarden doctor --fix")
    } else {
        answer
    }
}

fn ready(sight: &QueueSight) -> Explanation {
    let queue = &sight.queue;
    if let Some(note) = &sight.paused {
        let note = if note.is_empty() {
            String::new()
        } else {
            format!(": {note}")
        };
        return Explanation::new(format!("its queue is paused{note}")).then(format!("runwarden queue resume {queue}"));
    }
    let (held, limit) = sight.held;
    if limit.is_some_and(|limit| u64::try_from(limit).is_ok_and(|limit| held >= limit)) {
        return Explanation::new(format!("as many as may of its queue are held: {held}"))
            .then("runwarden queue ls")
            .then(format!("runwarden queue limit {queue} N"));
    }
    match sight.workers {
        (0, _) => Explanation::new("it waits for a worker, and none takes from its queue")
            .then(format!("runwarden worker --queue {queue}"))
            .then("runwarden serve --slots 1"),
        (count, slots) => {
            let words = if count == 1 {
                "one worker takes".to_owned()
            } else {
                format!("{count} workers take")
            };
            Explanation::new(format!(
                "it waits for a worker: {words} from its queue, {slots} at once"
            ))
            .then("runwarden queue ls")
        }
    }
}

fn held(case: &Case<'_>, sight: &QueueSight) -> Explanation {
    let lease = &case.entity.structural;
    let holder = lease.leased_by.as_deref().unwrap_or("somebody");
    let left = lease.lease_expires_at.map(|end| end.since(sight.steady));
    let overdue = left.is_some_and(|left| left.as_ms() == 0);
    let answer = match (&sight.run, overdue) {
        (_, true) => Explanation::new(format!(
            "the lease of {holder} has run out, and nobody has looked since"
        ))
        .then("runwarden doctor --fix"),
        (Some(run), false) => {
            Explanation::new(format!("it runs as {run}, held by {holder}")).then(format!("runwarden why {run}"))
        }
        (None, false) => Explanation::new(format!("it was taken by {holder}, and its run is not made yet")),
    };
    let held = left.map(|left| format!("for {left} more, unless it is renewed"));
    match held {
        Some(held) => answer.with("lease", held),
        None => answer,
    }
}

fn doubted(case: &Case<'_>, sight: &QueueSight) -> Explanation {
    let lease = &case.entity.structural;
    let holder = lease.leased_by.as_deref().unwrap_or("its worker");
    let silent = lease
        .lease_expires_at
        .map_or(DurationMs::default(), |end| sight.steady.since(end));
    let left = lease
        .next_attempt_at
        .map_or(DurationMs::default(), |until| until.since(sight.steady));
    let headline = if left.as_ms() > 0 {
        format!("its worker {holder} is not heard of; unless it comes back it is judged in {left}")
    } else {
        format!("its worker {holder} is not heard of, and it could not be confirmed that nothing of it lives")
    };
    let mut answer = Explanation::new(headline).with("silent", format!("for {silent} after the end of its lease"));
    if let Some(run) = &sight.run {
        answer = answer.with("run", run.to_string()).then(format!("runwarden why {run}"));
    }
    if left.as_ms() == 0 {
        answer = answer
            .then("runwarden doctor --fix")
            .then(case.command("queue confirm"));
    }
    answer
}
