//! The way that an entity took through its graph.

use runwarden_host::model::{Actor, HistoryRow, Timestamp};

/// The statuses that an entity had, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Route {
    pub(crate) steps: Vec<Step>,
}

/// A status that it entered.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) status: String,
    pub(crate) code: String,
    pub(crate) at: Timestamp,
    pub(crate) actor: Actor,
    /// How often the status was written again before the next one.
    pub(crate) again: usize,
    /// It was carried over to another policy by that step.
    pub(crate) carried: bool,
}

impl Route {
    /// The route of an entity's history, oldest row first.
    pub(crate) fn of(history: &[HistoryRow]) -> Self {
        let mut steps: Vec<Step> = Vec::new();
        let mut policy: Option<&str> = None;
        for row in history {
            let carried = policy.is_some_and(|before| before != row.policy_digest);
            policy = Some(&row.policy_digest);
            match steps.last_mut() {
                Some(last) if last.status == row.status => last.again += 1,
                _ => steps.push(Step {
                    carried,
                    status: row.status.clone(),
                    code: row.reason.code.clone(),
                    at: row.at,
                    actor: row.actor.clone(),
                    again: 0,
                }),
            }
        }
        Self { steps }
    }

    /// The status that it has.
    pub(crate) fn present(&self) -> Option<&str> {
        self.steps.last().map(|step| step.status.as_str())
    }

    /// The numbers, from 1, at which it entered a status.
    pub(super) fn visits(&self, status: &str) -> Vec<usize> {
        let entered = self.steps.iter().enumerate().filter(|(_, step)| step.status == status);
        entered.map(|(place, _)| place + 1).collect()
    }

    /// The numbers of the steps that led from one status to another.
    pub(super) fn taken(&self, from: &str, to: &str) -> Vec<usize> {
        let pairs = self.steps.windows(2).enumerate();
        let led = pairs.filter(|(_, pair)| pair[0].status == from && pair[1].status == to);
        led.map(|(place, _)| place + 2).collect()
    }
}

/// Numbers as they stand beside a status or an edge: `2, 5`.
pub(super) fn numbers(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}
