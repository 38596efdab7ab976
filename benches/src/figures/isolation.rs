//! Transitions beside a policy that never answers, and beside a thread of our own that does nothing but work: what an
//! endless loop of a stranger costs everybody else.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result};
use runwarden_host::Host;
use runwarden_host::model::{Actor, Entity, Fields, Reason};
use runwarden_host::policy::{GuardRequest, PolicyFault, Surroundings, sha256_hex};
use runwarden_test_guests::{Mode, hostile};

use super::ping;
use crate::harness::{Effort, Home, Row, Sample, Target, interleave, measured, median};

const RATIO_MIN: f64 = 0.9;

/// Speed of transitions of one kind while the guard of another loops.
pub(super) fn figure(effort: Effort) -> Result<Vec<Row>> {
    let home = Home::new()?;
    let host = home.open()?;
    ping::install(&host)?;
    let strange = Home::new()?;
    let strange = strange.open()?;
    let bytes = hostile(Mode::GuardLoops);
    ping::install_as(&strange, &sha256_hex(&bytes), &bytes)?;
    // The first call compiles it.
    let asked = ping::make(&strange, "asked")?;
    ask(&strange, &asked)?;
    let mut entity = ping::make(&host, "one")?;
    let count = effort.choose(300, 3_000);
    let operations = u64::try_from(count)?;
    let mut steps = || {
        measured(operations, || {
            for _ in 0..count {
                entity = ping::step(&host, &entity)?;
            }
            Ok(())
        })
    };
    let steps = std::cell::RefCell::new(&mut steps);
    let ours = || beside(|| ask(&strange, &asked), || (steps.borrow_mut())());
    let floor = || beside(work, || (steps.borrow_mut())());
    let (ours, floor) = interleave(effort.choose(3, 15), ours, floor)?;
    let speed = |samples: &[Sample]| format!("{:.0}/s", 1.0 / median(samples.iter().map(Sample::each)));
    let ratio = median(ours.iter().zip(&floor).map(|(ours, floor)| floor.each() / ours.each()));
    let what = "transitions beside a guard that loops / beside a busy thread";
    Ok(vec![Row::ratio(
        what,
        speed(&ours),
        speed(&floor),
        ratio,
        Target::AtLeast(RATIO_MIN),
    )])
}

/// Does something again and again on a thread of its own while something else is measured.
fn beside(again: impl Fn() -> Result<()> + Send + Sync, measure: impl FnOnce() -> Result<Sample>) -> Result<Sample> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                again()?;
            }
            anyhow::Ok(())
        });
        let sample = measure();
        is_over.store(true, Ordering::Relaxed);
        busy.join().ok().context("the busy thread does not panic")??;
        sample
    })
}

/// Asks the guard that loops: it uses up what it has.
fn ask(host: &Host, entity: &Entity) -> Result<()> {
    let asked = GuardRequest {
        entity,
        target: "right",
        reason: &Reason::code("ping.moved"),
        actor: &Actor::new("operator", "bench"),
        patch: &Fields::new(),
        guards: &Fields::new(),
        overridden: false,
        surroundings: &Surroundings::default(),
    };
    match host.policies().guard(&entity.policy, asked) {
        Err(PolicyFault::OutOfFuel { .. } | PolicyFault::OutOfTime { .. }) => Ok(()),
        other => None.with_context(|| format!("a loop has no answer: {other:?}")),
    }
}

/// About as long as the guard takes.
fn work() -> Result<()> {
    const STEPS: u64 = 50_000_000;
    let mut sum = 0_u64;
    for step in 0..STEPS {
        sum = black_box(sum.wrapping_add(step));
    }
    black_box(sum);
    Ok(())
}
