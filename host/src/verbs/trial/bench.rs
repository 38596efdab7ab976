//! How long decisions of a component take here: measured, never promised.

use std::time::{Duration, Instant};

use super::cases::{Asks, CaseTable, NOW, Tester};
use super::exit::ExitCase;
use super::health::HealthCase;
use super::moves::{Situation, request};
use super::plan::PlanCase;
use crate::model::{Actor, Edge, Fields, Function, HandlerDescriptor, Tags, decide};
use crate::policy::{Candidate, HealthRequest, PolicyFault, Ready, Trial, Usage};

/// How many times the first call of a process is measured.
const COLD_TIMES: usize = 15;

/// How many times a later call is.
const WARM_TIMES: usize = 501;

/// How many decisions are made between two looks at the clock: one takes less than the clock tells apart.
const DECISIONS_AT_ONCE: u32 = 1_000;

/// What was measured: medians.
#[derive(Clone, Debug)]
pub struct Bench {
    /// One decision on a declared edge, without a component.
    pub decision: Option<Duration>,
    /// One call of the component.
    pub call: Option<Timed>,
}

/// A call of a component, by its medians.
#[derive(Clone, Debug)]
pub struct Timed {
    /// Which function was called.
    pub function: &'static str,
    /// The first call of a process: an engine is made, compiled code is loaded, an instance is made and called.
    pub cold: Duration,
    /// A later call: an instance is made and called.
    pub warm: Duration,
    /// What it used; the same every time.
    pub used: Usage,
}

/// Measures a component with what its cases ask first, or with a bare entity where they ask nothing of the sort.
///
/// # Errors
/// The component cannot be loaded, or the call fails.
pub fn bench(candidate: &Candidate, table: &CaseTable) -> Result<Bench, PolicyFault> {
    let warm = candidate.on_trial()?;
    let decision = match &warm {
        Trial::Policy(ready) => decision(&Tester::new(ready, candidate, &[], table)),
        Trial::Handler(_) => None,
    };
    let Some(first) = call_once(&warm, candidate, table)? else {
        return Ok(Bench { decision, call: None });
    };
    let mut cold = Vec::with_capacity(COLD_TIMES);
    for _ in 0..COLD_TIMES {
        let begun = Instant::now();
        let trial = candidate.on_trial_cold()?;
        let ready_after = begun.elapsed();
        cold.extend(call_once(&trial, candidate, table)?.map(|called| ready_after + called.took));
    }
    let mut again = Vec::with_capacity(WARM_TIMES);
    for _ in 0..WARM_TIMES {
        again.extend(call_once(&warm, candidate, table)?.map(|called| called.took));
    }
    let call = Some(Timed {
        function: first.function,
        cold: median(cold),
        warm: median(again),
        used: first.used,
    });
    Ok(Bench { decision, call })
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn decision(tester: &Tester<'_>) -> Option<Duration> {
    let lifecycle = tester.lifecycle();
    let edges = &lifecycle.descriptor().edges;
    let edge = edges
        .iter()
        .find(|edge| edge.required_patch.is_empty() && edge.required_guards.is_empty())?;
    let situation = bare(edge);
    let (entity, command) = (situation.entity(tester).ok()?, situation.command(tester));
    let batch = |_| {
        let begun = Instant::now();
        for _ in 0..DECISIONS_AT_ONCE {
            std::hint::black_box(decide(lifecycle, &entity, std::hint::black_box(&command), "bench", NOW));
        }
        begun.elapsed() / DECISIONS_AT_ONCE
    };
    Some(median((0..COLD_TIMES).map(batch).collect()))
}

/// A command of whoever may take an edge, that meets a bare entity.
fn bare(edge: &Edge) -> Situation {
    let kind = edge.actors.first().map_or("operator", String::as_str);
    Situation {
        from: edge.from.clone(),
        to: edge.to.clone(),
        actor: Actor::new(kind, "bench"),
        reason: None,
        set: Fields::new(),
        guards: Fields::new(),
        fields: Fields::new(),
        tags: Tags::new(),
        now: NOW,
        history: Vec::new(),
        children: Vec::new(),
    }
}

/// One call.
struct Called {
    function: &'static str,
    took: Duration,
    used: Usage,
}

/// Calls the first function that the component has of guard, verdict, health and plan; none when it has none, or when no
/// case of the table could be put to it.
fn call_once(trial: &Trial, candidate: &Candidate, table: &CaseTable) -> Result<Option<Called>, PolicyFault> {
    match trial {
        Trial::Policy(ready) => {
            let exported = candidate.inspected.functions();
            let tester = Tester::new(ready, candidate, &exported, table);
            match exported.first() {
                Some(Function::Guard) => guard(&tester, table),
                Some(Function::Verdict) => verdict(&tester, table),
                Some(Function::Health) => health(&tester, table),
                Some(Function::Migrate) | None => Ok(None),
            }
        }
        Trial::Handler(ready) => plan(ready, candidate, table).map(Some),
    }
}

/// Times one call, and tells what it used.
fn timed<Said, Answer>(
    function: &'static str,
    ready: &Ready<Said>,
    call: impl FnOnce() -> Result<Answer, PolicyFault>,
) -> Result<Called, PolicyFault> {
    let begun = Instant::now();
    call()?;
    Ok(Called {
        function,
        took: begun.elapsed(),
        used: ready.used(),
    })
}

/// The first case of the table that `pick` takes.
fn first<T>(table: &CaseTable, pick: impl Fn(&Asks) -> Option<T>) -> Option<T> {
    table.cases.iter().find_map(|case| pick(&case.asks))
}

fn guard(tester: &Tester<'_>, table: &CaseTable) -> Result<Option<Called>, PolicyFault> {
    let case = first(table, |asks| match asks {
        Asks::Guard(case) => Some(case.situation.clone()),
        _ => None,
    });
    let edges = &tester.lifecycle().descriptor().edges;
    let situation = case.or_else(|| edges.iter().find(|edge| edge.guarded).map(bare));
    let Some((situation, entity)) = situation.and_then(|it| it.entity(tester).ok().map(|entity| (it, entity))) else {
        return Ok(None);
    };
    let (command, surroundings) = (situation.command(tester), situation.surroundings(tester, &entity));
    let asked = request(&entity, &command, &surroundings);
    timed("guard.evaluate", tester.ready, || tester.ready.guard(asked)).map(Some)
}

fn verdict(tester: &Tester<'_>, table: &CaseTable) -> Result<Option<Called>, PolicyFault> {
    let case = first(table, |asks| match asks {
        Asks::Exit(case) => case.is_its_own().then(|| case.clone()),
        _ => None,
    });
    let case = case.unwrap_or_else(ExitCase::failure);
    let Some((from, entity)) = case.entity(tester).ok() else {
        return Ok(None);
    };
    let by_table = case.by_table(tester.lifecycle(), &from);
    timed("execution.verdict", tester.ready, || {
        case.put_to_verdict(tester, &entity, by_table.as_ref())
    })
    .map(Some)
}

fn health(tester: &Tester<'_>, table: &CaseTable) -> Result<Option<Called>, PolicyFault> {
    let case = first(table, |asks| match asks {
        Asks::Health(case) => Some(case.clone()),
        _ => None,
    });
    let initial = tester.lifecycle().first_initial().map(|status| status.name.clone());
    let case = case.or_else(|| initial.map(|status| HealthCase::quiet(&status)));
    let Some((case, entity)) = case.and_then(|it| it.entity(tester).ok().map(|entity| (it, entity))) else {
        return Ok(None);
    };
    let (signs, surroundings) = (case.signs(&entity), tester.surroundings());
    let asked = HealthRequest {
        entity: &entity,
        signs: &signs,
        surroundings: &surroundings,
    };
    timed("health.assess", tester.ready, || tester.ready.assess(asked)).map(Some)
}

fn plan(ready: &Ready<HandlerDescriptor>, candidate: &Candidate, table: &CaseTable) -> Result<Called, PolicyFault> {
    let case = first(table, |asks| match asks {
        Asks::Plan(case) => Some(case.clone()),
        _ => None,
    });
    let case = case.unwrap_or_else(PlanCase::failed_run);
    let (binding, envelope) = (
        case.binding(ready.said(), &candidate.digest),
        case.envelope(&candidate.digest),
    );
    timed("notifier.plan", ready, || ready.plan(&binding, &envelope))
}
