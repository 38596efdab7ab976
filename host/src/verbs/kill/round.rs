//! One round of a kill: entities that do not wait for each other are stopped side by side.

use std::time::Duration;

use tokio::time::Instant;

use super::budget::Budget;
use super::record::{self, End};
use super::report::{KillResult, Killed};
use super::stop::Stop;
use super::walk::Walk;
use super::{Kill, PROOF_WITHIN};
use crate::crash;
use crate::error::Error;
use crate::host::Host;
use crate::model::{
    Entity, KillNode, KillRefusal, KillSet, KillStep, PlannedKill, Runtime, RuntimeState, Standing, StopIntent,
    Unjudged,
};
use crate::store::RuntimeUpdate;
use crate::verbs::identity;
use crate::verbs::settle::settle;
use crate::wake::Watch;

/// What is left of the time for recording when proof did not come.
const RECORDING: Duration = Duration::from_millis(500);

/// What a kill works with.
pub(super) struct Act<'a> {
    pub(super) host: &'a Host,
    pub(super) asked: &'a Kill,
    pub(super) budget: Budget,
    watch: Watch,
    /// When the round began, what was read for it included.
    since: Instant,
    unrecorded: bool,
}

impl<'a> Act<'a> {
    pub(super) fn new(host: &'a Host, asked: &'a Kill) -> Self {
        Self {
            host,
            asked,
            budget: Budget::new(),
            watch: host.wake_file().watch(),
            since: Instant::now(),
            unrecorded: false,
        }
    }

    /// Whether something was stopped whose end is not in the store.
    pub(super) const fn unrecorded(&self) -> bool {
        self.unrecorded
    }

    /// The grace period.
    pub(super) fn grace(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.asked.grace.as_ms()).unwrap_or(0))
    }

    /// Carries out the steps; what came of each, by the place of its node.
    pub(super) async fn round(&mut self, found: &Walk, planned: &[PlannedKill]) -> Vec<(usize, Result<Killed, Error>)> {
        let until = self.since + (self.grace() + PROOF_WITHIN).saturating_sub(RECORDING);
        let mut outcomes = Vec::new();
        let mut stops: Vec<Stop> = Vec::new();
        for step in planned {
            let stops_set = matches!(step.step, KillStep::Stop | KillStep::StopLingering);
            if let Some(runtime) = found.runtimes[step.node].clone().filter(|_| stops_set) {
                stops.push(Stop::new(step.node, &found.nodes[step.node], runtime));
            }
        }
        self.record_intents(&stops);
        crash::point("kill.intent_recorded");
        stops.iter_mut().for_each(|stop| stop.begin(self));
        crash::point("kill.asked");
        for step in planned {
            if !stops.iter().any(|stop| stop.place == step.node) {
                outcomes.push((step.node, self.without_stop(found, step)));
            }
        }
        while stops.iter().any(Stop::is_open) {
            let pause = stops
                .iter_mut()
                .filter(|stop| stop.is_open())
                .map(|stop| stop.look(self));
            let pause = pause.min().unwrap_or_default();
            if Instant::now() >= until {
                break;
            }
            let pause = pause.min(until.saturating_duration_since(Instant::now()));
            if stops.iter().any(Stop::is_open) {
                // A pause that is over is as good as a change: everybody is looked at either way.
                let _ = tokio::time::timeout(pause, self.watch.changed()).await;
            }
        }
        outcomes.extend(stops.into_iter().map(|stop| (stop.place, stop.told(self))));
        self.since = Instant::now();
        outcomes
    }

    /// Notes that something was stopped and is not recorded.
    pub(super) fn note_unrecorded(&mut self) {
        self.unrecorded = true;
    }

    /// The intents of a round in the store, in one commit. A store that cannot be written does not keep a process alive:
    /// the run directory counts.
    fn record_intents(&mut self, stops: &[Stop]) {
        let at = self.host.now();
        let intent = StopIntent {
            actor: self.asked.actor.clone(),
            note: self.asked.note.clone(),
            grace: self.asked.grace,
            at,
        };
        let update = |stop: &Stop| RuntimeUpdate {
            id: stop.runtime.id,
            only_from: vec![
                RuntimeState::Starting,
                RuntimeState::Running,
                RuntimeState::Stopping,
                RuntimeState::Lingering,
                RuntimeState::Lost,
            ],
            state: (stop.runtime.state != RuntimeState::Starting).then_some(RuntimeState::Stopping),
            stop_intent: Some(intent.clone()),
            at,
            ..RuntimeUpdate::default()
        };
        let updates: Vec<RuntimeUpdate> = stops.iter().map(update).collect();
        if updates.is_empty() {
            return;
        }
        let host = self.host;
        let written = self.budget.write(|| Ok(host.store().update_runtimes(&updates)?));
        if let Err(error) = written {
            tracing::warn!(%error, "the intent to stop is in the run directories alone");
        }
    }

    /// Steps that signal nobody.
    fn without_stop(&mut self, found: &Walk, planned: &PlannedKill) -> Result<Killed, Error> {
        let node = &found.nodes[planned.node];
        let runtime = found.runtimes[planned.node].as_ref();
        let (entity, host, asked) = (&node.entity, self.host, self.asked);
        let (signal, summary) = match (&planned.step, &node.row) {
            (KillStep::Refused(why), _) if found.is_one_of_several(planned.node) => {
                return refused_of_several(self.host, (entity, runtime), why);
            }
            (KillStep::Refused(why), _) => return Ok(refused(entity, runtime.map(|r| r.worker.is_some()), why)),
            (KillStep::EndGone, _) => ("already_dead", "killed; its processes were gone already"),
            (KillStep::End | KillStep::EndUnreached, Some(_)) => ("no_process", "killed; it had no process"),
            (
                KillStep::Stop | KillStep::StopLingering | KillStep::Unchanged | KillStep::End | KillStep::EndUnreached,
                _,
            ) => {
                // While its entity has not ended the end of this set may be what will tell how it did.
                let is_to_tell = node.set == KillSet::Older && !entity.terminal;
                if let Some(runtime) = runtime.filter(|_| !is_to_tell) {
                    self.budget.write(|| record::release(host, runtime))?;
                    identity::unheld(host, runtime)?.remove_cgroup();
                }
                let report = Killed::of(entity, runtime, "already_dead");
                return Ok(Killed {
                    result: KillResult::Unchanged,
                    ..report
                });
            }
        };
        if planned.step == KillStep::EndGone {
            // Its exit file, if it left one, tells the true end.
            let settled = self.budget.write(|| settle(host, entity.clone()))?;
            if settled.terminal {
                let report = Killed::of(&settled, runtime, "already_dead");
                return Ok(Killed {
                    result: KillResult::Unchanged,
                    ..report
                });
            }
        }
        let row = node.row.as_ref().expect("a step that ends an entity has a row");
        let end = End {
            signal,
            summary,
            proof: None,
            seen: match node.standing {
                Standing::Gone(seen) => Some(seen),
                _ => None,
            },
            forced: runtime.is_some_and(|runtime| runtime.stop_unconfirmed),
        };
        if let Some(runtime) = runtime {
            // Before the end is told: nobody looks again then.
            identity::unheld(host, runtime)?.remove_cgroup();
        }
        let killed = self
            .budget
            .write(|| record::end(host, entity, (row, runtime), asked, &end))?;
        Ok(with_words(killed, planned, node))
    }
}

fn with_words(killed: Killed, planned: &PlannedKill, node: &KillNode) -> Killed {
    if killed.result != KillResult::Killed {
        return killed;
    }
    match &planned.step {
        KillStep::EndUnreached => Killed {
            result: KillResult::Incomplete,
            ..killed
        }
        .saying(
            "no process was stopped: no run is linked below it. `runwarden ls --live` shows the runs that are alive; kill \
             those that are its own",
        ),
        KillStep::End if node.below.is_empty() => killed.saying("it had no process: no process was stopped"),
        KillStep::End => killed.saying("it had no process of its own"),
        _ => killed,
    }
}

/// One of the sets of an entity that has others; who is seen to live of it is named.
fn refused_of_several(
    host: &Host,
    (entity, runtime): (&Entity, Option<&Runtime>),
    why: &Unjudged,
) -> Result<Killed, Error> {
    let named = runtime.map_or_else(String::new, |runtime| format!("runtime {}: ", runtime.id));
    let survivors = match runtime {
        Some(runtime) if why.word == KillRefusal::PermissionDenied => super::found(host, runtime)?,
        Some(_) | None => Vec::new(),
    };
    let report = Killed {
        result: KillResult::Refused,
        survivors,
        ..Killed::of(entity, None, why.word.word())
    };
    Ok(report.saying(format!("{named}{}; nothing of it was signalled", why.message)))
}

fn refused(entity: &Entity, had_process: Option<bool>, why: &Unjudged) -> Killed {
    let report = Killed::of(entity, None, why.word.word());
    let message = match had_process {
        Some(true) => format!("{}; nothing was signalled, nothing written", why.message),
        Some(false) | None => why.message.clone(),
    };
    Killed {
        result: KillResult::Refused,
        ..report
    }
    .saying(message)
}
