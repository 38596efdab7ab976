//! Visits every state that can be reached, shortest ways first.
//!
//! Written here rather than taken from a model checker: what matters most is that every state *can* still come to a good
//! end, which is a question about the whole graph, cycles included. `stateright` judges "eventually" on paths without
//! cycles alone, knows states by a hash of 64 bits, and brings an HTTP server into the tests.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;

/// The graph of all states that can be reached.
pub(super) struct Explored<State, Step> {
    pub(super) states: Vec<State>,
    /// From, to, by which step.
    pub(super) steps: Vec<(usize, usize, Step)>,
}

/// A state that must not be, and the way there.
#[derive(Debug)]
pub(super) struct Broken<Step> {
    pub(super) law: &'static str,
    pub(super) way: Vec<Step>,
    /// How many states were seen before it.
    pub(super) states: usize,
}

/// Every state that `next` leads to from the first one, or the nearest that breaks a law.
pub(super) fn explore<State: Clone + Eq + Hash, Step: Clone>(
    first: State,
    next: impl Fn(&State) -> Vec<(Step, State)>,
    broken: impl Fn(&State) -> Option<&'static str>,
) -> Result<Explored<State, Step>, Broken<Step>> {
    let mut numbers = HashMap::from([(first.clone(), 0)]);
    let mut explored = Explored {
        states: vec![first],
        steps: Vec::new(),
    };
    let mut seen = 0;
    while seen < explored.states.len() {
        for (step, state) in next(&explored.states[seen]) {
            let known = explored.states.len();
            let to = *numbers.entry(state).or_insert_with_key(|state| {
                explored.states.push(state.clone());
                known
            });
            explored.steps.push((seen, to, step));
            if to == known
                && let Some(law) = broken(&explored.states[to])
            {
                return Err(Broken {
                    law,
                    way: explored.way(to),
                    states: explored.states.len(),
                });
            }
        }
        seen += 1;
    }
    Ok(explored)
}

impl<State, Step: Clone> Explored<State, Step> {
    /// A shortest way to a state: steps are kept in the order in which they were found.
    pub(super) fn way(&self, mut to: usize) -> Vec<Step> {
        let mut way = Vec::new();
        while to != 0 {
            let (from, _, step) = self
                .steps
                .iter()
                .find(|(_, there, _)| *there == to)
                .expect("it was reached");
            way.push(step.clone());
            to = *from;
        }
        way.reverse();
        way
    }

    /// The first state from which no way leads to a good one by steps that may be counted on.
    pub(super) fn lost(&self, is_good: impl Fn(&State) -> bool, counts: impl Fn(&Step) -> bool) -> Option<usize> {
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); self.states.len()];
        for (from, to, _) in self.steps.iter().filter(|(_, _, step)| counts(step)) {
            before[*to].push(*from);
        }
        let mut reaches: Vec<bool> = self.states.iter().map(is_good).collect();
        let mut open: Vec<usize> = (0..reaches.len()).filter(|state| reaches[*state]).collect();
        while let Some(state) = open.pop() {
            for from in &before[state] {
                if !reaches[*from] {
                    reaches[*from] = true;
                    open.push(*from);
                }
            }
        }
        reaches.iter().position(|reaches| !reaches)
    }
}
