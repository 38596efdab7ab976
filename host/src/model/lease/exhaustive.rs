//! Every order in which three workers, whoever keeps the queue, clocks that are off, crashes and stalls can meet over two
//! pieces of leased work. What is written is what the rules of this module and `decide` answer; what the rest of the host
//! promises is stated in `world`. Any look at a clock may find any moment ahead or past, whatever was found before: that
//! contains every skew, and a lease that was just renewed may be taken to have run out. The states are finitely many, and
//! all of them are visited.

#![expect(
    clippy::print_stdout,
    reason = "how many states were seen, and the ways to what is wrong"
)]

mod explore;
mod rows;
mod world;

use super::Next;
use super::tests::lifecycle;
use crate::model::Stage;
use explore::{Broken, Explored, explore};
use rows::{Holder, Rules, Sight};
use world::{Chain, Fault, Host, Phase, Step, Worker, World};

const TWO_AT_ONCE: &str = "two programs of one piece of work run at once";

fn host(version: &str, fault: Fault) -> Host {
    Host {
        rules: Rules::new(lifecycle(version)),
        fault,
    }
}

fn explored(host: &Host) -> Result<Explored<World, Step>, Broken<Step>> {
    explore(host.first(), |world| host.next(world), broken)
}

/// The law that a state breaks. That a terminal row stays, that the fence never shrinks, and that whatever was decided on
/// an older version or under an older fence is refused, is checked with each write (`rows`).
fn broken(world: &World) -> Option<&'static str> {
    (0..world.chains.len()).find_map(|at| broken_by(world, at, &world.chains[at]))
}

fn broken_by(world: &World, at: usize, chain: &Chain) -> Option<&'static str> {
    if chain.runs.iter().filter(|run| run.phase == Phase::Live).count() > 1 {
        return Some(TWO_AT_ONCE);
    }
    let is_holder = |worker: &usize| {
        let held = world.workers[*worker];
        matches!(held, Worker::Holds { chain, is_current: true, .. } if chain == at)
    };
    let holders: Vec<usize> = (0..world.workers.len()).filter(is_holder).collect();
    let is_held = chain.row.is(Stage::Active) || chain.row.is(Stage::Doubted);
    let laws = [
        (holders.len() > 1, "two workers hold one piece of work"),
        (
            is_held != chain.row.holder.is_some(),
            "a row is held by somebody, or by nobody and is not held",
        ),
        (
            is_held
                && holders
                    .first()
                    .is_some_and(|worker| chain.row.holder != Some(Holder::Worker(*worker))),
            "a worker holds what the row says is another's",
        ),
        (
            chain.row.is(Stage::Ready) && !holders.is_empty(),
            "what may be taken is held",
        ),
        (
            chain.awaits_word && !chain.row.terminal,
            "a word is awaited for what goes on",
        ),
    ];
    laws.into_iter().find(|(is_broken, _)| *is_broken).map(|(_, law)| law)
}

fn has_ended(chain: &Chain) -> bool {
    chain.row.terminal && !chain.awaits_word
}

fn found(version: &str, fault: Fault, law: &str) -> Broken<Step> {
    let Err(broken) = explored(&host(version, fault)) else {
        panic!("{fault:?} under {version} breaks nothing")
    };
    assert_eq!(broken.law, law, "{:?}", broken.way);
    broken
}

/// Row 10 among others: a worker may stall between its claim and its start for as long as anything.
#[test]
fn under_the_second_generation_nothing_runs_twice_at_once_and_nothing_is_lost() {
    let host = host("2.0.0", Fault::None);
    let explored = explored(&host).unwrap_or_else(|broken| panic!("{}: {:#?}", broken.law, broken.way));
    println!("{} states, {} steps", explored.states.len(), explored.steps.len());
    // Nothing has to crash for it.
    let counts = |step: &Step| !matches!(step, Step::Crash(_));
    let is_over = |world: &World| world.chains.iter().all(has_ended);
    if let Some(lost) = explored.lost(is_over, counts) {
        panic!("no way leads to an end from {:#?}", explored.way(lost));
    }
    // The laws are not kept by doing nothing: each of these was done.
    let is_done = |wanted: &dyn Fn(&Step) -> bool| explored.steps.iter().any(|(_, _, step)| wanted(step));
    for next in [Next::Successor, Next::OnceConfirmed, Next::None] {
        assert!(is_done(&|step| *step == Step::Fence(0, next)), "{next:?}");
    }
    for sight in [Sight::Stopped, Sight::Elsewhere] {
        assert!(is_done(&|step| *step == Step::Look(0, sight)), "{sight:?}");
    }
    for step in [
        Step::Recover(0),
        Step::RecoverToRecord(0),
        Step::LoseStart(0),
        Step::Die(0),
    ] {
        assert!(is_done(&|done| *done == step), "{step:?}");
    }
    for step in [
        Step::Notice(0),
        Step::HandBack(0),
        Step::GiveUp(0),
        Step::Confirm(0),
        Step::Record(0),
    ] {
        assert!(is_done(&|done| *done == step), "{step:?}");
    }
}

#[test]
fn under_the_first_generation_a_stalled_worker_leads_to_two_at_once() {
    let broken = found("1.0.0", Fault::None, TWO_AT_ONCE);
    println!("{:?} after {} states", broken.way, broken.states);
    let claims = broken.way.iter().filter(|step| matches!(step, Step::Claim(..)));
    assert_eq!(claims.count(), 2, "{:?}", broken.way);
    assert!(
        broken.way.iter().any(|step| matches!(step, Step::Due(_))),
        "a lapse that nobody confirmed"
    );
}

#[test]
fn a_host_with_a_fault_is_found_out() {
    for fault in [
        Fault::StartsWhileDoubted,
        Fault::TakesAskedForStopped,
        Fault::OperatorErrs,
    ] {
        let broken = found("2.0.0", fault, TWO_AT_ONCE);
        println!("{fault:?}: {:?} after {} states", broken.way, broken.states);
    }
}
