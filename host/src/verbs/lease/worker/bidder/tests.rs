//! What a bidder does when its store fails it in the middle.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

use crate::model::Stage;
use crate::store::{PlannedFault, When};
use crate::verbs::lease::faults::{Bench, error, stage};

use super::*;

#[test]
fn a_row_whose_start_failed_while_it_could_not_be_given_back_is_given_back_later() {
    let bench = Bench::new("schedule_run@2");
    bench.submit(3, &[]).unwrap();
    let working = Working::new();
    let options = WorkerOptions {
        name: "worker".to_owned(),
        slots: 1,
        queues: Vec::new(),
        until: Until::Stopped,
        grace: None,
        environment: Vec::new(),
    };
    let worker = super::super::introduce(&bench.host, &options).unwrap();
    let bidder = Bidder {
        host: &bench.host,
        worker: &worker,
        options: &options,
        working: &working,
        tell: &|_| {},
    };
    let taken = bench.claim().unwrap().unwrap();
    bidder.hold(&taken);
    let (first, failing) = (bench.store.calls() + 1, 20);
    for call in first..first + failing {
        bench.store.plan(PlannedFault {
            call,
            when: When::Before,
            error,
        });
    }
    assert!(bidder.start(&taken).is_err());
    assert_eq!(stage(&bench.last()), Some(Stage::Active));
    while bench.store.calls() < first + failing {
        drop(bench.host.store().load("row"));
    }
    bidder.see_ends();
    assert!(working.holdings().is_empty(), "nobody runs it, and nobody else may");
    assert_eq!(stage(&bench.last()), Some(Stage::Later));
    bench.assert_whole("it is given back");
}
