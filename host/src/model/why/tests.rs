//! Every case that an explanation tells apart, as a row: what is known, the headline, the first command to type.
#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};

use super::super::{
    Actor, Containment, Create, Destination, DestinationHealth, Dispatch, Fields, KillRefusal, Place, PolicyPin,
    Reason, Reference, RuntimeKind, RuntimeState, Stage, StopIntent, Transport, create,
};
use super::*;

/// What is known, to be changed by each row.
struct Known {
    lifecycle: Lifecycle,
    entity: Entity,
    runtime: Option<Runtime>,
    sight: Sight,
    health: Option<Condition>,
    end_waits: bool,
    children: Vec<Entity>,
    refusal: Option<AdminEvent>,
    entered: Option<HistoryRow>,
    notice: Option<Notice>,
    queued: Option<QueueSight>,
    is_attempt: bool,
    notices: Vec<Entity>,
    now: Timestamp,
}

const BEGAN: Timestamp = Timestamp::from_ms(1_700_000_000_000);

fn lifecycle(kind: &str) -> Lifecycle {
    let bundled = runwarden_bundled::POLICIES
        .iter()
        .find(|policy| policy.kind == kind)
        .unwrap();
    Lifecycle::new(serde_json::from_str(bundled.descriptor).unwrap())
}

/// An entity of that kind as it is created, with nothing beside it, a minute ago.
fn known(kind: &str) -> Known {
    let lifecycle = lifecycle(kind);
    let pin = PolicyPin {
        name: kind.to_owned(),
        version: "1.0.0".to_owned(),
        digest: "d".to_owned(),
        parameters: Fields::new(),
    };
    let command = Create::new(kind, "one", Actor::new("operator", "ada"));
    let made = create(&lifecycle, &pin, &command, "store", BEGAN).unwrap();
    Known {
        lifecycle,
        entity: made.entity,
        runtime: None,
        sight: Sight::Nothing,
        health: None,
        end_waits: false,
        children: Vec::new(),
        refusal: None,
        entered: Some(made.row),
        notice: None,
        queued: None,
        is_attempt: false,
        notices: Vec::new(),
        now: BEGAN.plus(DurationMs::from_ms(60_000)),
    }
}

fn runtime(owner: &Entity, state: RuntimeState) -> Runtime {
    Runtime {
        id: 7,
        owner: owner.reference.clone(),
        kind: RuntimeKind::Local,
        state,
        stop_unconfirmed: false,
        place: Place {
            host: "here".to_owned(),
            ..Place::default()
        },
        worker: None,
        shim: None,
        attempt_token: "t".to_owned(),
        level: None,
        containment: Containment::Subreaper,
        process_group: None,
        cgroup: None,
        cwd: None,
        run_dir: None,
        remote_handle: None,
        resume_token: None,
        stop_intent: None,
        created_at: BEGAN,
        updated_at: BEGAN,
    }
}

/// A run that is alive, with these processes.
fn alive(processes: &[Process]) -> Known {
    let mut known = known("run");
    known.runtime = Some(runtime(&known.entity, RuntimeState::Running));
    known.sight = Sight::Held(processes.to_vec());
    known
}

fn process(pid: i64, state: char) -> Process {
    Process {
        pid,
        name: "sleep".to_owned(),
        state,
        waits_in: None,
        lock: None,
        run: None,
    }
}

/// A run that ended with this status and code, by somebody.
fn over(status: &str, code: &str, evidence: Value) -> Known {
    let mut known = known("run");
    known.runtime = Some(runtime(&known.entity, RuntimeState::Stopped));
    known.entity.enter(&known.lifecycle, status);
    known.entity.reason = Reason::code(code).evidence(evidence);
    if let Some(row) = &mut known.entered {
        row.previous_status = Some("running".to_owned());
        row.status = status.to_owned();
        row.actor = Actor::new("executor", "shim");
    }
    known
}

fn exited(status: &str, code: &str, exit_code: i64) -> Known {
    let mut known = over(status, code, Value::Null);
    known.entity.structural.cause = Some("exit".to_owned());
    known.entity.structural.exit_code = Some(exit_code);
    known
}

fn died(signal: i64) -> Known {
    let mut known = over(
        "failed",
        "run.failed.exit_nonzero",
        json!({"max_resident_bytes": 64 << 20}),
    );
    known.entity.structural.cause = Some("signal".to_owned());
    known.entity.structural.term_signal = Some(signal);
    known
}

impl Known {
    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn state(self, state: RuntimeState) -> Self {
        self.with(|known| known.runtime.as_mut().unwrap().state = state)
    }

    fn sight(self, sight: Sight) -> Self {
        self.with(|known| known.sight = sight)
    }

    fn cause(self, word: &str) -> Self {
        self.with(|known| known.entity.structural.cause = Some(word.to_owned()))
    }

    fn explained(&self) -> Explanation {
        explain(&Case {
            entity: &self.entity,
            lifecycle: &self.lifecycle,
            runtime: self.runtime.as_ref(),
            sight: &self.sight,
            health: self.health.as_ref(),
            end_waits: self.end_waits,
            children: &self.children,
            refusal: self.refusal.as_ref(),
            entered: self.entered.as_ref(),
            notice: self.notice.as_ref(),
            queued: self.queued.as_ref(),
            is_attempt: self.is_attempt,
            notices: &self.notices,
            now: self.now,
        })
    }

    /// Its headline says this, and the first command to type begins so.
    #[track_caller]
    fn says(&self, headline: &str, next: &str) {
        let told = self.explained();
        assert!(told.headline.contains(headline), "{told:#?}");
        assert!(
            told.next.first().is_some_and(|command| command.starts_with(next)),
            "{told:#?}"
        );
    }

    /// One of its facts says this.
    #[track_caller]
    fn knows(&self, what: &str, value: &str) {
        let told = self.explained();
        let is_it = |fact: &&Fact| fact.what == what && fact.value.contains(value);
        assert!(told.facts.iter().any(|fact| is_it(&fact)), "{what} {value}: {told:#?}");
    }
}

#[test]
fn what_runs_well_is_told_so() {
    let fine = alive(&[process(5, 'S')]);
    fine.says("it is running, and nothing holds it up", "runwarden logs -f run/one");
    fine.knows("for", "1m 0s");
    fine.knows("process", "pid 5, sleep");
    alive(&[]).says("has just ended", "runwarden logs");
    alive(&[])
        .state(RuntimeState::Starting)
        .says("it is being started", "runwarden logs");
}

#[test]
fn what_its_policy_says_of_its_health_is_a_fact() {
    let fails = Condition::Unknown("it trapped".to_owned());
    let told = alive(&[process(5, 'S')]).with(|known| known.health = Some(fails));
    told.knows("health", "unknown: it trapped");
    let facts = alive(&[process(5, 'S')]).explained().facts;
    assert!(facts.iter().all(|fact| fact.what != "health"), "nobody asked");
}

#[test]
fn what_is_stopped_or_waits_in_the_kernel_is_named() {
    alive(&[process(5, 'T'), process(6, 'S')]).says("its program is stopped by a signal", "kill -CONT 5");
    alive(&[process(5, 't')]).says("stopped by a debugger", "runwarden kill run/one");
    alive(&[process(5, 'S'), process(6, 'T')]).says("pid 6 (sleep) is stopped", "kill -CONT 6");
    let deep = Process {
        waits_in: Some("nfs_wait".to_owned()),
        ..process(5, 'D')
    };
    let deep = alive(&[deep]);
    deep.says("pid 5 (sleep) waits in the kernel", "runwarden kill");
    deep.knows("process", "uninterruptible in nfs_wait");
    deep.knows("uninterruptible", "no signal reaches it");
}

#[test]
fn a_lock_that_is_waited_for_is_named_with_its_holder() {
    let lock = |holder| LockSeen {
        holder,
        file: Some("/var/lock/x".to_owned()),
    };
    let waiting = |holder| Process {
        lock: Some(lock(holder)),
        ..process(5, 'S')
    };
    alive(&[waiting(Some(9))]).says("waits for a lock on /var/lock/x, held by pid 9", "ps -fp 9");
    alive(&[waiting(None)]).says("waits for a lock on /var/lock/x", "runwarden kill");
    let child = alive(&[process(4, 'S'), waiting(Some(9))]);
    child.says("pid 5 (sleep) waits for a lock", "runwarden kill");
    child.knows("process", "held by pid 9");
}

#[test]
fn a_stop_that_goes_on_or_came_to_nothing_is_told_with_who_asked() {
    let intent = StopIntent {
        actor: Actor::new("operator", "ada"),
        note: Some("too slow".to_owned()),
        grace: DurationMs::from_ms(10_000),
        at: BEGAN,
    };
    let stopping = alive(&[process(5, 'S')])
        .state(RuntimeState::Stopping)
        .with(|known| known.runtime.as_mut().unwrap().stop_intent = Some(intent));
    stopping.says("it is being stopped since 1m 0s", "runwarden kill --grace 0 run/one");
    stopping.knows("stop", "operator:ada: too slow");
    let unconfirmed = stopping.with(|known| known.runtime.as_mut().unwrap().stop_unconfirmed = true);
    unconfirmed.says(
        "its stop is not confirmed: 1 process outlived KILL",
        "runwarden kill run/one",
    );
}

#[test]
fn a_start_without_a_process_is_stuck_after_its_grace() {
    let starting = |ms| {
        let mut known = known("run").with(|known| known.now = BEGAN.plus(DurationMs::from_ms(ms)));
        known.runtime = Some(runtime(&known.entity, RuntimeState::Starting));
        known
    };
    starting(30_000).says("it is being started", "runwarden why");
    starting(30_001).says("its start never came to a process", "runwarden kill");
}

#[test]
fn a_run_without_its_shim_is_told_by_what_is_left_of_it() {
    let left = alive(&[]).sight(Sight::Unheld(vec![process(5, 'S'), process(6, 'S')]));
    left.says("2 processes of it go on with nobody to see its end", "runwarden logs");
    left.knows("process", "pid 6");
    let gone = |seen| alive(&[]).sight(Sight::Gone(seen));
    gone(SeenGone::Recycled).says("nobody saw how it ended", "runwarden kill");
    gone(SeenGone::Recycled).knows("seen", "recycled");
    gone(SeenGone::EarlierBoot).says("this machine was restarted under it", "runwarden kill");
}

#[test]
fn what_cannot_be_seen_from_here_is_unknown_and_never_dead() {
    let unjudged = |word, lock| {
        let message = "said the judge".to_owned();
        alive(&[]).sight(Sight::Unjudged(Unjudged { word, message }, lock))
    };
    for (word, lock, headline) in [
        (
            KillRefusal::HostMismatch,
            ShimLock::Unknown,
            "it runs on the machine here",
        ),
        (
            KillRefusal::NamespaceMismatch,
            ShimLock::Held,
            "it runs in another namespace",
        ),
        (KillRefusal::NamespaceMismatch, ShimLock::Free, "its shim is gone"),
        (
            KillRefusal::NamespaceMismatch,
            ShimLock::Unknown,
            "cannot be seen from here",
        ),
        (KillRefusal::PermissionDenied, ShimLock::Held, "belongs to another user"),
        (
            KillRefusal::IdentityMismatch,
            ShimLock::Held,
            "cannot be told from others",
        ),
        (
            KillRefusal::Unverifiable,
            ShimLock::Unknown,
            "cannot be told from others",
        ),
    ] {
        let known = unjudged(word, lock);
        let next = match (word, lock) {
            (KillRefusal::PermissionDenied, _) | (_, ShimLock::Held) => REPAIR,
            _ => "runwarden kill",
        };
        known.says(headline, next);
        let declared = known.explained().next[0].contains("--declare-gone");
        assert_eq!(declared, next != REPAIR, "{headline}");
        known.knows("unjudged", "said the judge");
    }
    let remote = alive(&[]).sight(Sight::Nothing).with(|known| {
        let runtime = known.runtime.as_mut().unwrap();
        (runtime.kind, runtime.remote_handle) = (RuntimeKind::Ssh, Some("4711".to_owned()));
    });
    remote.says("it runs elsewhere (ssh on here)", "runwarden runtime release 7");
    remote.knows("handle", "4711");
}

#[test]
fn an_end_that_waits_is_no_life() {
    let waits = alive(&[]).with(|known| known.end_waits = true);
    waits.says("its program has ended, and the end waits to be recorded", REPAIR);
}

#[test]
fn a_start_that_failed_is_told_by_its_stage() {
    let failed = |stage, errno| {
        let told = json!({"stage": stage, "errno": errno});
        [told.clone(), json!({"spawn_error": told})]
    };
    for (stage, errno, headline) in [
        ("directory", 2, "its working directory does not exist"),
        ("directory", 13, "cannot be entered"),
        ("exec", 2, "its program is not found"),
        ("exec", 13, "may not be executed"),
        ("exec", 8, "neither a binary"),
        ("exec", 7, "too long"),
        ("exec", 12, "could not be executed"),
        ("terminal", 28, "the disk is full"),
        ("terminal", 5, "no pseudo-terminal"),
        ("gate", 0, "before its program was let go"),
        ("fork", 11, "a step of its start failed"),
    ] {
        for evidence in failed(stage, errno) {
            let next = if errno == 28 {
                "runwarden doctor"
            } else {
                "runwarden show run/one --command"
            };
            over("failed", "run.failed.spawn_error", evidence).says(headline, next);
        }
    }
    let [full, _] = failed("reserve", 28);
    over("failed", "run.failed.spawn_error", full).says("no room for the record of its end", "runwarden doctor");
}

#[test]
fn an_exit_code_is_told_with_what_it_means_to_shells() {
    exited("completed", "run.completed.ok", 0).says("it ended well", "runwarden logs run/one");
    for (code, headline) in [
        (1, "its program exited with 1"),
        (124, "a limit has passed"),
        (126, "may not be executed"),
        (127, "a command in it is not found"),
        (137, "died by SIGKILL"),
        (143, "died by SIGTERM"),
    ] {
        exited("failed", "run.failed.exit_nonzero", code).says(headline, "runwarden logs");
    }
    exited("completed", "run.completed.ok", 3).says("which its policy counts as completed", "runwarden logs");
}

#[test]
fn an_end_whose_verdict_asked_for_another_attempt_says_where_one_is_made() {
    let asked = exited("failed", "run.failed.provider_retryable", 1).with(|known| {
        let entered = known.entered.as_mut().unwrap();
        entered.reason = Reason::code("run.failed.provider_retryable").evidence(json!({"retry_after_ms": 90_000}));
    });
    let told = asked.explained();
    let fact = |told: &Explanation| {
        let fact = told.facts.iter().find(|fact| fact.what == "try again");
        fact.map(|fact| fact.value.clone()).unwrap_or_default()
    };
    assert_eq!(
        fact(&told),
        "its policy would, after 1m 30s; submit it to the queue for that"
    );
    assert!(
        told.next
            .iter()
            .any(|command| command.starts_with("runwarden submit --run-kind run"))
    );
    let attempt = asked.with(|known| known.is_attempt = true).explained();
    assert!(
        fact(&attempt).ends_with("what it was queued as decides"),
        "{attempt:#?}"
    );
    assert!(!attempt.next.iter().any(|command| command.contains("submit")));
}

#[test]
fn an_exit_with_0_that_was_not_enough_says_what_was_missing() {
    exited("failed", "run.failed.missing_artifact", 0).says("a file that was expected", "runwarden show");
    exited("completed_empty", "run.completed_empty.no_evidence", 0).says("no evidence of its work", "runwarden show");
    exited("failed", "run.failed.escalated", 0).says("judged that as failed", "runwarden policy show run");
}

#[test]
fn a_signal_is_told_with_who_sends_it() {
    for (signal, headline, next) in [
        (9, "often the kernel, out of memory", "journalctl -k"),
        (1, "SIGHUP", "runwarden logs"),
        (15, "SIGTERM", "runwarden logs"),
        (13, "a reader that had gone", "runwarden logs"),
        (11, "crashed (SIGSEGV)", "runwarden logs"),
        (24, "processor time", "ulimit -t"),
        (25, "larger file", "ulimit -f"),
        (10, "died by SIGUSR1", "runwarden logs"),
    ] {
        died(signal).says(headline, next);
    }
    died(9).knows("memory", "64 MiB");
    over("failed", "run.failed.exit_nonzero", Value::Null)
        .cause("oom")
        .says("want of memory", "journalctl -k");
}

#[test]
fn what_the_host_wrote_is_told_by_its_rule() {
    for (status, code, headline) in [
        ("timed_out", "run.timed_out.deadline", "at its time limit"),
        ("cancelled", "run.cancelled.hangup", "its terminal went away"),
        ("cancelled", "run.cancelled.sigint", "interrupted from its terminal"),
        ("cancelled", "run.cancelled.sigterm", "told to end"),
        ("cancelled", "run.cancelled.system", "it was to die with it"),
        ("failed", "run.failed.policy_fault", "its policy failed to judge"),
        ("failed", "run.failed.host_restarted", "the machine restarted"),
        ("failed", "run.failed.orphaned_parent", "nobody could see how"),
        (
            "failed",
            "run.failed.spawn_identity_lost",
            "nobody learned which process",
        ),
    ] {
        over(status, code, Value::Null)
            .cause("kill")
            .says(headline, "runwarden");
    }
}

#[test]
fn a_kill_is_told_with_who_and_why() {
    let evidence = json!({"note": "too slow", "stop": {"signal": "sigkill"}, "proof": "subreaper_echild"});
    let killed = over("cancelled", "run.cancelled.force_kill", evidence)
        .cause("kill")
        .with(|known| known.entered.as_mut().unwrap().actor = Actor::new("operator", "bob"));
    killed.says("it was killed by operator:bob: too slow", "runwarden history run/one");
    killed.knows("strongest signal", "sigkill");
    let bare = over(
        "cancelled",
        "run.cancelled.manual_kill",
        json!({"signal": "no_process"}),
    );
    bare.says("it was killed by executor:shim", "runwarden history");
    bare.knows("processes", "none");
}

#[test]
fn an_end_that_somebody_recorded_is_told_by_whom() {
    let moved = over("failed", "run.failed.exception", Value::Null)
        .with(|known| known.entered.as_mut().unwrap().actor = Actor::new("agent", "self"));
    moved.says("from running to failed by agent:self", "runwarden history");
    moved.knows("reason", "run.failed.exception: Broke down.");
    let imported = moved.with(|known| known.entered.as_mut().unwrap().previous_status = None);
    imported.says("recorded as failed from the beginning by", "runwarden history");
}

#[test]
fn an_end_whose_processes_go_on_says_so() {
    let lingering = exited("completed", "run.completed.ok", 0)
        .state(RuntimeState::Lingering)
        .sight(Sight::Held(vec![process(5, 'S'), process(6, 'S')]));
    lingering.says("it ended well; 2 processes of it live on", "runwarden kill run/one");
    lingering.knows("process", "pid 6");
    let far = exited("completed", "run.completed.ok", 0)
        .state(RuntimeState::Running)
        .sight(Sight::Gone(SeenGone::EarlierBoot));
    far.says("it ended well; this machine was restarted", "runwarden kill");
    let inner = Process {
        run: Some("run/inner".to_owned()),
        ..process(7, 'S')
    };
    let spared = exited("completed", "run.completed.ok", 0)
        .state(RuntimeState::Lingering)
        .sight(Sight::Held(vec![process(5, 'S'), inner]));
    spared.says("1 process of it lives on", "runwarden kill run/one");
    spared.knows("process", "run/inner, a run of its own");
    let open = alive(&[process(5, 'S')]).state(RuntimeState::Lingering);
    open.says(
        "its program has ended, and 1 process that it started live on",
        "runwarden kill",
    );
}

fn refused(to: &str, code: &str) -> AdminEvent {
    AdminEvent {
        id: 1,
        at: BEGAN,
        action: "status_transition_rejected".to_owned(),
        target: None,
        actor: "shim".to_owned(),
        details: json!({"previous_status": "running", "attempted_status": to, "reason_code": code, "message": "no such edge"}),
    }
}

#[test]
fn an_end_that_the_policy_refused_names_the_way_to_force_it() {
    let stopped = alive(&[]).state(RuntimeState::Stopped).sight(Sight::Nothing);
    let mut unended = stopped;
    unended.says(
        "its policy knows no end for that",
        "runwarden transition run/one STATUS",
    );
    unended.refusal = Some(refused("failed", "run.failed.exit_nonzero"));
    let told = unended.explained();
    assert!(told.headline.contains("running has no way to failed"), "{told:#?}");
    let over = "runwarden transition run/one failed --reason run.failed.exit_nonzero --override";
    assert!(told.next.iter().any(|command| command.starts_with(over)), "{told:#?}");
    unended.knows("refused", "no such edge");
    unended.runtime.as_mut().unwrap().kind = RuntimeKind::Container;
    unended.says("was released", "runwarden transition");
}

#[test]
fn what_has_no_process_waits_for_what_is_below_it_or_for_somebody() {
    let bare = known("play");
    bare.says("nothing is linked below it", "runwarden transition play/one STATUS");
    bare.knows("links", "none");
    bare.knows("policy", "from pending it may go to");
    let child = |id: &str, status: &str| {
        let mut child = alive(&[]).entity;
        child.reference.id = id.to_owned();
        child.enter(&lifecycle("run"), status);
        child
    };
    let waiting = known("play").with(|known| known.children = vec![child("a", "completed"), child("b", "running")]);
    waiting.says(
        "1 of the 2 entities that are linked below it has not ended",
        "runwarden why run/b",
    );
    waiting.knows("below", "run/b running");
    let done = known("play").with(|known| known.children = vec![child("a", "completed"), child("b", "failed")]);
    done.says("everything linked below it has ended", "runwarden transition");
    done.knows("ended badly", "run/b failed");
}

#[test]
fn no_headline_is_a_sentence_of_its_own_and_no_command_is_told_twice() {
    for known in [
        alive(&[process(5, 'D'), process(6, 'T')]),
        died(9),
        known("play"),
        exited("failed", "x.y.z", 2),
    ] {
        let told = known.explained();
        assert!(
            !told.headline.ends_with('.') && told.headline.starts_with(char::is_lowercase),
            "{told:#?}"
        );
        let mut distinct = told.next.clone();
        distinct.dedup();
        assert_eq!(distinct, told.next);
    }
}

/// A dispatch as it is enqueued, a minute ago, with what it delivers.
fn dispatched() -> Known {
    let mut known = known("dispatch");
    known.entity.set_field("attempt", &json!(0));
    known.notice = Some(Notice {
        dispatch: Dispatch {
            event_id: None,
            handler: Some("ops".to_owned()),
            destination: "hook".to_owned(),
            target: Destination {
                transport: Transport::File { path: "/f".to_owned() },
                timeout_ms: DurationMs::from_ms(10_000),
            },
            target_digest: "t".to_owned(),
            body: Vec::new(),
            dedup_key: "k".to_owned(),
            deadline: None,
            wants_acknowledgement: false,
        },
        health: None,
        served: false,
    });
    known
}

impl Known {
    fn delivery(self, status: &str, code: &str, due_in_ms: i64) -> Self {
        let now = self.now;
        self.with(|known| {
            known.entity.enter(&known.lifecycle, status);
            known.entity.reason = Reason::code(code).summary("why it is so");
            known.entity.set_field("last_error", &json!("HTTP 500"));
            known.entity.structural.next_attempt_at = Some(now.plus(DurationMs::from_ms(due_in_ms)));
        })
    }

    fn notice(self, change: impl FnOnce(&mut Notice)) -> Self {
        self.with(|known| change(known.notice.as_mut().unwrap()))
    }
}

#[test]
fn a_notice_says_what_it_waits_for_or_what_became_of_it() {
    let retry = "runwarden outbox retry one";
    let due = dispatched().delivery("pending", "dispatch.pending.enqueued", 0);
    due.says("nobody delivers", "runwarden outbox deliver");
    due.notice(|notice| notice.served = true)
        .says("the service delivers it", "runwarden outbox show one");
    let later = || dispatched().delivery("pending", "dispatch.pending.retry_backoff", 30_000);
    later().says("the next is in 30s: HTTP 500", retry);
    later().knows("to", "ops/hook (file)");
    let now = later().now;
    let paused = DestinationHealth {
        failures: 6,
        paused_until: Some(now.plus(DurationMs::from_ms(60_000))),
        last_error: Some("refused".to_owned()),
        ..DestinationHealth::default()
    };
    let held_up = later().notice(|notice| notice.health = Some(paused));
    held_up.says(
        "failed 6 times in a row and is paused for 1m 0s more: refused",
        "runwarden outbox show one",
    );
    later()
        .with(|known| known.entity.reason.summary = Some("not attempted: $S is not set".to_owned()))
        .says("it cannot be attempted, and no attempt is counted", retry);
    dispatched()
        .delivery("pending", "dispatch.delivered.transport_ok", 30_000)
        .says("has not acknowledged it", "runwarden outbox show one");
    let claimed = |due| dispatched().delivery("delivering", "dispatch.delivering.attempt", due);
    claimed(5_000).says("an attempt is under way", "runwarden outbox show one");
    claimed(-1).says("died before its outcome was written", "runwarden outbox deliver");
    for (status, code, headline, next) in [
        (
            "delivered",
            "dispatch.delivered.transport_ok",
            "took it",
            "runwarden outbox show",
        ),
        ("acked", "dispatch.acked.consumer", "said so", "runwarden outbox show"),
        (
            "dead_letter",
            "dispatch.dead_letter.refused",
            "given up: why it is so",
            retry,
        ),
        ("expired", "dispatch.expired.deadline", "its deadline passed", retry),
    ] {
        dispatched().delivery(status, code, 0).says(headline, next);
    }
}

#[test]
fn an_end_says_what_became_of_its_notices() {
    let notice = |status: &str, error: Value| {
        let mut notice = dispatched().delivery(status, "c", 0).entity;
        notice.set_field("last_error", &error);
        notice
    };
    let ended = known("session").with(|known| {
        known.notices = vec![
            notice("dead_letter", json!("HTTP 410")),
            notice("pending", Value::Null),
            notice("delivered", Value::Null),
        ];
    });
    ended.knows("notice", "one is dead_letter: HTTP 410");
    ended.knows("notice", "one is pending");
    ended.knows("told", "1 of its notices arrived");
    assert!(
        ended
            .explained()
            .next
            .contains(&"runwarden why dispatch/one".to_owned())
    );
}

/// Queued work that stands there, in a queue with a worker, after one attempt.
fn queued(stage: Stage) -> Known {
    let steady = BEGAN.plus(DurationMs::from_ms(60_000));
    known("schedule_run").with(|known| {
        known.queued = Some(QueueSight {
            stage: Some(stage),
            queue: "q".to_owned(),
            workers: (1, 2),
            attempts: 3,
            steady,
            ..QueueSight::default()
        });
        known.entity.structural.leased_by = Some("w-1".to_owned());
        known.entity.structural.lease_attempts = Some(1);
    })
}

fn sight(known: Known, change: impl FnOnce(&mut QueueSight)) -> Known {
    known.with(|known| change(known.queued.as_mut().unwrap()))
}

fn at(seconds: i64) -> Option<Timestamp> {
    Some(BEGAN.plus(DurationMs::from_ms(seconds * 1_000)))
}

#[test]
fn queued_work_says_what_it_waits_for() {
    let ready = || queued(Stage::Ready);
    ready().says("one worker takes from its queue, 2 at once", "runwarden queue ls");
    ready().knows("attempt", "1 of 3 made");
    ready().knows("queue", "q");
    sight(ready(), |sight| sight.workers = (0, 0)).says("none takes from its queue", "runwarden worker --queue q");
    sight(ready(), |sight| sight.paused = Some("the disk is full".to_owned()))
        .says("its queue is paused: the disk is full", "runwarden queue resume q");
    sight(ready(), |sight| sight.held = (2, Some(2)))
        .says("as many as may of its queue are held: 2", "runwarden queue ls");
    let later = |due| queued(Stage::Later).with(|known| known.entity.structural.next_attempt_at = due);
    later(at(90)).says("its next attempt is due in 30s", "runwarden kill");
    later(at(60)).says("it is due, and nobody has looked since", "runwarden doctor --fix");
    let first = later(at(90)).with(|known| known.entity.structural.lease_attempts = None);
    first.says("it is not to begin before 30s from now", "runwarden kill");
    let awaited = |ended| {
        let other = Reference::new("run", "other");
        sight(queued(Stage::Waiting), |sight| sight.awaited = vec![(other, ended)])
    };
    awaited(None).says("it waits for run/other to end with success", "runwarden why run/other");
    awaited(Some(true)).says("what it waited for has ended", "runwarden doctor --fix");
    awaited(Some(false)).knows("waits for", "run/other, which ended without success");
}

#[test]
fn held_work_says_by_whom_and_what_comes_when_it_is_not_heard_of() {
    let held = |end| queued(Stage::Active).with(|known| known.entity.structural.lease_expires_at = end);
    let run = |known| sight(known, |sight| sight.run = Some(Reference::new("session", "s")));
    run(held(at(90))).says("it runs as session/s, held by w-1", "runwarden why session/s");
    run(held(at(90))).knows("lease", "for 30s more");
    held(at(90)).says("its run is not made yet", "runwarden kill");
    held(at(60)).says("the lease of w-1 has run out", "runwarden doctor --fix");
    let doubted = |until| {
        queued(Stage::Doubted).with(|known| {
            known.entity.structural.lease_expires_at = at(30);
            known.entity.structural.next_attempt_at = until;
        })
    };
    doubted(at(70)).says("unless it comes back it is judged in 10s", "runwarden kill");
    doubted(at(70)).knows("silent", "for 30s");
    doubted(at(60)).says(
        "could not be confirmed that nothing of it lives",
        "runwarden doctor --fix",
    );
}

#[test]
fn work_that_was_given_up_says_what_follows() {
    let over = |change: fn(&mut QueueSight)| {
        let known = queued(Stage::Doubted).with(|known| {
            known.entity.status = "orphaned".to_owned();
            known.entity.terminal = true;
            known.entity.reason = Reason::code("run.orphaned.fence_committed");
        });
        sight(known, change)
    };
    over(|sight| sight.successor = Some(Reference::new("schedule_run", "next")))
        .knows("goes on as", "schedule_run/next");
    let waits = over(|sight| sight.waits_for_confirmation = true).explained();
    assert!(
        waits
            .next
            .iter()
            .any(|command| command == "runwarden queue confirm schedule_run/one"),
        "{waits:#?}"
    );
}
