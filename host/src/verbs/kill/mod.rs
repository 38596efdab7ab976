//! Stops entities and everything their processes started, and says only what was observed (SEMANTICS 5).
//!
//! ```text
//! walk ──▶ plan ──▶ a round: intents in one commit ─▶ requests in the run directories ─▶ shims woken ─▶ ends recorded
//!   ▲                 │ deepest first, the nodes of a round side by side
//!   └─────────────────┘ until the walk finds nobody new
//! ```
//!
//! The intent is durable first: in the store, and in the run directory, which is what counts while the store cannot be
//! written. The shim, which alone can see the set end, stops it; where it is gone the killer does. Then the end is
//! recorded, by the finishing command or by the killer, whoever comes first: from the same files, so the result is the
//! same. A set that an entity has beside its newest is stopped in a round after it, whatever became of the newest, and
//! its row is settled when it is the newest that is open. If we die half-way the shims go on with what was asked of them, and the next command records it.

mod budget;
mod declare;
mod orphans;
mod record;
mod report;
mod round;
mod stop;
mod walk;

pub use declare::declare_gone;
pub use report::{KillPlan, KillResult, Killed, Killing, Planned};

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use self::budget::Budget;
use self::round::Act;
use self::walk::{Walk, walk};
use crate::error::Error;
use crate::host::Host;
use crate::model::{Actor, DurationMs, Entity, KillRow, KillStep, PlannedKill, Reach, Runtime, Standing, is_killed_by};
use crate::process::{Look, Survivor, living_below};
use crate::verbs::identity;

/// How long after KILL a kill looks for proof, recording included (PROCESS 3).
const PROOF_WITHIN: Duration = Duration::from_secs(5);

/// What a kill asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Kill {
    /// From the first signal to KILL.
    pub grace: DurationMs,
    /// Who asks.
    pub actor: Actor,
    /// Why, in words.
    pub note: Option<String>,
    /// How far down it goes.
    pub reach: Reach,
}

/// What [`kill`] would do with the targets now. Like any other reading it records ends that wait to be recorded, and
/// changes nothing else.
///
/// # Errors
/// The store, a run directory or the process table cannot be read.
pub fn plan(host: &Host, targets: &[Entity], reach: Reach) -> Result<KillPlan, Error> {
    let found = walk(host, targets, reach, &mut Budget::new())?;
    let steps = found.plan().into_iter().map(|planned| describe(host, &found, planned));
    Ok(KillPlan {
        steps: steps.collect::<Result<_, _>>()?,
    })
}

/// Kills the targets and what the kill reaches below them: children before parents. Each round takes at most the grace
/// period and five seconds, whatever the store does. The future may be dropped: what was asked of shims goes on.
///
/// Saying it again changes nothing of what is done, and stops what is left.
///
/// # Errors
/// Nothing could be read, and nothing was signalled. What fails later is in the report.
pub async fn kill(host: &Host, targets: &[Entity], asked: &Kill) -> Result<Killing, Error> {
    let mut act = Act::new(host, asked);
    let mut told = Told::default();
    let mut found = walk(host, targets, asked.reach, &mut act.budget)?;
    loop {
        told.meet(&found);
        let mut open = found.plan();
        open.retain(|planned| !told.knows(&found, planned));
        let Some(round) = open.first().map(|planned| planned.round) else {
            break;
        };
        open.retain(|planned| planned.round == round);
        for (place, outcome) in act.round(&found, &open).await {
            told.add(&found, place, outcome);
        }
        // Whoever was started below meanwhile is found now.
        match walk(host, targets, asked.reach, &mut act.budget) {
            Ok(again) => found = again,
            Err(error) => {
                told.failures.push(("what is linked below".to_owned(), error));
                break;
            }
        }
    }
    Ok(told.whole(targets, act.unrecorded()))
}

/// A step with what it reaches, as one look sees it.
fn describe(host: &Host, found: &Walk, planned: PlannedKill) -> Result<Planned, Error> {
    let node = &found.nodes[planned.node];
    let runtime = found.runtimes[planned.node].as_ref();
    let writes = matches!(
        planned.step,
        KillStep::Stop | KillStep::End | KillStep::EndGone | KillStep::EndUnreached
    );
    Ok(Planned {
        reference: node.entity.reference.to_string(),
        status: node.entity.status.clone(),
        goes_to: node.row.as_ref().filter(|_| writes).map(|row| row.goes_to.clone()),
        runtime: runtime.map(|runtime| runtime.id),
        round: planned.round,
        pid: runtime.and_then(|runtime| Some(runtime.worker.as_ref()?.pid)),
        processes: runtime.map_or_else(|| Ok(Vec::new()), |runtime| reached(host, runtime, &node.standing))?,
        step: planned.step,
    })
}

fn reached(host: &Host, runtime: &Runtime, standing: &Standing) -> Result<Vec<Survivor>, Error> {
    Ok(match standing {
        Standing::Held => match identity::shim(runtime) {
            Some(shim) => members(host, runtime, shim.pid)?,
            None => Vec::new(),
        },
        Standing::Unheld => found(host, runtime)?,
        Standing::Nothing | Standing::Starting | Standing::Gone(_) | Standing::Unjudged(_) => Vec::new(),
    })
}

/// Who lives below a shim, those of runs that were started inside left out: for people, as one look sees them.
fn members(host: &Host, runtime: &Runtime, shim: i32) -> Result<Vec<Survivor>, Error> {
    let living = living_below(shim)?.into_iter().filter(|one| one.run.is_none());
    let named = living.map(|one| Survivor {
        pid: one.pid,
        comm: one.name,
        state: one.state.to_string(),
        uid: one.uid,
    });
    let members: Vec<Survivor> = named.collect();
    // A shim that adopted the set is above nobody.
    if members.is_empty() {
        found(host, runtime)
    } else {
        Ok(members)
    }
}

/// Who is found of a set by what marks its members.
fn found(host: &Host, runtime: &Runtime) -> Result<Vec<Survivor>, Error> {
    Ok(match identity::unheld(host, runtime)?.look() {
        Look::Living(members) => members,
        Look::Empty(_) => Vec::new(),
    })
}

/// What was done so far, by row number of the entity.
#[derive(Default)]
struct Told {
    /// How those stood that had not ended when they were found.
    met: HashMap<i64, (String, KillRow)>,
    reports: HashMap<i64, Killed>,
    /// The one above each, in order of discovery.
    above: Vec<(i64, Option<i64>)>,
    failed: HashSet<i64>,
    /// Runtimes that were acted on.
    runtimes: HashSet<i64>,
    failures: Vec<(String, Error)>,
}

impl Told {
    fn knows(&self, found: &Walk, planned: &PlannedKill) -> bool {
        let row = found.nodes[planned.node].entity.row;
        let runtime = found.runtimes[planned.node].as_ref();
        let is_told = self.reports.contains_key(&row) || self.failed.contains(&row);
        is_told && runtime.is_none_or(|runtime| self.runtimes.contains(&runtime.id))
    }

    /// Notes how they stand before the kill has come to them.
    fn meet(&mut self, found: &Walk) {
        for node in found.nodes.iter().filter(|node| !node.entity.terminal) {
            if let Some(row) = &node.row {
                let met = || (node.entity.status.clone(), row.clone());
                self.met.entry(node.entity.row).or_insert_with(met);
            }
        }
    }

    /// What has no process of its own may end with what is below it, by whoever records that end: as it would by this kill.
    fn as_it_was_met(&self, entity: &Entity, killed: Killed) -> Killed {
        match self.met.get(&entity.row) {
            Some((status, row)) if killed.result == KillResult::Unchanged && is_killed_by(row, entity) => Killed {
                previous_status: status.clone(),
                result: KillResult::Killed,
                signal: "no_process".to_owned(),
                ..killed
            },
            _ => killed,
        }
    }

    fn add(&mut self, found: &Walk, place: usize, outcome: Result<Killed, Error>) {
        let entity = &found.nodes[place].entity;
        let above = found.above[place].map(|above| found.nodes[above].entity.row);
        self.runtimes
            .extend(found.runtimes[place].as_ref().map(|runtime| runtime.id));
        let has_process = found.runtimes[place].is_some();
        let outcome = match outcome {
            Ok(killed) if !has_process => Ok(self.as_it_was_met(entity, killed)),
            outcome => outcome,
        };
        match outcome {
            Ok(killed) => match self.reports.entry(entity.row) {
                Entry::Occupied(told) => told.into_mut().add(killed),
                Entry::Vacant(new) => {
                    new.insert(killed);
                    self.above.push((entity.row, above));
                }
            },
            Err(error) => {
                self.failed.insert(entity.row);
                self.failures.push((entity.reference.to_string(), error));
            }
        }
    }

    /// The report: those below inside the one they were found below. In order of rounds, so that whoever is taken out is
    /// complete.
    fn whole(mut self, targets: &[Entity], unrecorded: bool) -> Killing {
        for (row, above) in std::mem::take(&mut self.above) {
            let Some(above) = above.filter(|above| self.reports.contains_key(above)) else {
                continue;
            };
            if let Some(killed) = self.reports.remove(&row)
                && let Some(parent) = self.reports.get_mut(&above)
            {
                parent.children.push(killed);
            }
        }
        let mut killing = Killing {
            failures: self.failures,
            unrecorded,
            ..Killing::default()
        };
        killing
            .targets
            .extend(targets.iter().filter_map(|target| self.reports.remove(&target.row)));
        // Below one that failed, or found below one that was done before.
        killing.targets.extend(self.reports.into_values());
        killing
    }
}
