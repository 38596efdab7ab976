//! One candidate, one thing: the rules that decide, the candidate's guard and its verdict function.

use std::borrow::Cow;
use std::time::Duration;

use crate::error::Error;
use crate::host::Host;
use crate::model::{Answer, Decision, EndSeen, Entity, Fields, Outcome, Timestamp, Transition, decide, filled};
use crate::policy::{GuardRequest, Selected, Surroundings};
use crate::verbs::guarded::surroundings_under;
use crate::verbs::kept::{KeptGuard, KeptVerdict, Missing, Observed};
use crate::verbs::verdict::last_output;

/// A policy that judges.
pub(super) struct Judge {
    /// The policy, with its parameters as set.
    pub(super) selected: Selected,
    /// Whether it has a verdict function.
    pub(super) has_verdict: bool,
    /// How long one of its functions may take.
    pub(super) wall: Duration,
}

/// Something to be judged.
pub(super) struct Case<'a> {
    /// The entity before it.
    pub(super) entity: &'a Entity,
    /// What was asked for.
    pub(super) command: &'a Transition,
    /// The end that it tells.
    pub(super) end: Option<&'a EndSeen>,
    /// What functions may see.
    pub(super) sight: Sight<'a>,
}

/// What functions may see.
#[derive(Clone, Copy)]
pub(super) enum Sight<'a> {
    /// It happens now: they see what is there, and this of an end.
    Now(Option<&'a Observed>),
    /// It happened: they see what was kept.
    Then(&'a Record),
}

/// What was kept of the calls made when something happened.
pub(super) struct Record {
    pub(super) guard: Result<KeptGuard, Missing>,
    pub(super) verdict: Result<KeptVerdict, Missing>,
}

/// What a candidate says.
#[derive(Debug, PartialEq)]
pub(super) enum Opinion {
    /// This, in words where it refuses.
    Says(Answer, Option<String>),
    /// It cannot be asked, and why.
    Unknown(&'static str),
}

/// What a verdict function makes of an end.
enum Verdict {
    /// It is written so, with these fields set.
    Judges(Outcome, Fields),
    /// It fails: the host writes the rule's "verdict failed".
    Fails,
    /// It cannot be asked, and why.
    Unknown(&'static str),
}

/// What was set or guarded is not told by the history, and the candidate wants something of it.
const PATCH_NOT_KEPT: &str = "it must set or guard a field, and what was set and guarded was not recorded";
const GUARD_NOT_ASKED: &str = "its guard would be asked, and none was asked then";
const VERDICT_NOT_ASKED: &str = "its verdict function would be asked, and none was asked then";
const TOO_LARGE: &str = "what its function would be asked was too large to be kept";
const UNREADABLE: &str = "what was kept of the call cannot be read";
const READS_MORE: &str = "its functions read more than was kept";
const NOT_COMPILED: &str = "its code is not compiled on this machine; `policy shadow` compiles it";

impl Judge {
    /// What it says.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(super) fn opinion(&self, host: &Host, case: &Case<'_>) -> Result<Opinion, Error> {
        let command = match case.end {
            None => Cow::Borrowed(case.command),
            Some(end) => match self.end_command(host, case, end)? {
                Ok(command) => Cow::Owned(command),
                Err(opinion) => return Ok(opinion),
            },
        };
        let lifecycle = &self.selected.lifecycle;
        // No answer depends on the moment.
        match decide(
            lifecycle,
            case.entity,
            &command,
            host.store().name(),
            Timestamp::default(),
        ) {
            Decision::Apply(_) => {}
            Decision::Conflict(conflict) => return Ok(rejected(conflict.code, conflict.message)),
            Decision::Rejected(refusal) => return Ok(rejected(&refusal.code, refusal.message)),
            Decision::Invalid(invalid) if case.is_in_part() && matches!(invalid.code, "patch" | "guard") => {
                return Ok(Opinion::Unknown(PATCH_NOT_KEPT));
            }
            Decision::Invalid(invalid) => {
                let code = invalid.code.to_owned();
                return Ok(Opinion::Says(Answer::Invalid { code }, Some(invalid.message)));
            }
        }
        let edge = lifecycle.edge(&case.entity.status, &command.target);
        if edge.is_some_and(|edge| edge.guarded)
            && let Some(opinion) = self.refused(host, case, &command)?
        {
            return Ok(opinion);
        }
        let applied = Answer::Applied {
            status: command.target.clone(),
            code: command.reason.code.clone(),
        };
        Ok(Opinion::Says(applied, None))
    }

    /// The end as it would be written under this policy; an opinion where it would be written in no way, or that cannot be
    /// told.
    fn end_command(&self, host: &Host, case: &Case<'_>, end: &EndSeen) -> Result<Result<Transition, Opinion>, Error> {
        let lifecycle = &self.selected.lifecycle;
        let mut outcome = end.by_table(lifecycle, &case.entity.status);
        let mut patch = Fields::new();
        if self.has_verdict && end.is_its_own() {
            match self.verdict(host, case, outcome.as_ref())? {
                Verdict::Judges(by_function, set) => (outcome, patch) = (Some(by_function), set),
                Verdict::Fails => {
                    let rule = lifecycle.descriptor().execution.as_ref();
                    outcome = rule.map(|rule| rule.verdict_failed.clone());
                }
                Verdict::Unknown(why) => return Ok(Err(Opinion::Unknown(why))),
            }
        }
        let Some(outcome) = outcome else {
            return Ok(Err(rejected("no_meaning", "it has no rule for this end")));
        };
        let mut command = case.command.clone();
        command.target = outcome.status;
        command.reason.code = outcome.code;
        command.patch = patch;
        Ok(Ok(command))
    }

    /// What the verdict function makes of an end.
    fn verdict(&self, host: &Host, case: &Case<'_>, by_table: Option<&Outcome>) -> Result<Verdict, Error> {
        let lifecycle = &self.selected.lifecycle;
        let (entity, surroundings, observed) = match case.sight {
            Sight::Now(None) => return Ok(Verdict::Unknown(VERDICT_NOT_ASKED)),
            Sight::Now(Some(observed)) => {
                let mut observed = observed.clone();
                observed.last_output = last_output(host, case.entity, lifecycle)?;
                (
                    Cow::Borrowed(case.entity),
                    self.surroundings(host, case.entity)?,
                    observed,
                )
            }
            Sight::Then(record) => {
                let kept = match &record.verdict {
                    Ok(kept) => kept,
                    Err(missing) => return Ok(Verdict::Unknown(not_kept(*missing, VERDICT_NOT_ASKED))),
                };
                let sight = kept.sight(&self.selected.pin, &lifecycle.descriptor().reads);
                let Some((entity, surroundings, observed)) = sight else {
                    return Ok(Verdict::Unknown(READS_MORE));
                };
                (Cow::Owned(entity), self.under_own_parameters(surroundings), observed)
            }
        };
        if !self.is_ready(host, case) {
            return Ok(Verdict::Unknown(NOT_COMPILED));
        }
        let request = observed.request(&entity, by_table, &surroundings);
        let answer = host.policies().verdict_within(self.wall, &self.selected.pin, &request);
        Ok(match answer {
            Ok(judged) => Verdict::Judges(judged.outcome, judged.patch),
            Err(_) => Verdict::Fails,
        })
    }

    /// What keeps its guard from admitting a command; none when it admits.
    fn refused(&self, host: &Host, case: &Case<'_>, command: &Transition) -> Result<Option<Opinion>, Error> {
        let pin = &self.selected.pin;
        let answer = match case.sight {
            Sight::Now(_) if !self.is_ready(host, case) => return Ok(Some(Opinion::Unknown(NOT_COMPILED))),
            Sight::Now(_) => {
                let surroundings = self.surroundings(host, case.entity)?;
                let request = GuardRequest {
                    entity: case.entity,
                    target: &command.target,
                    reason: &command.reason,
                    actor: &command.actor,
                    patch: &command.patch,
                    guards: &command.guards,
                    overridden: command.overriding.is_some(),
                    surroundings: &surroundings,
                };
                host.policies().guard_within(self.wall, pin, request)
            }
            Sight::Then(record) => {
                let kept = match &record.guard {
                    Ok(kept) => kept,
                    Err(missing) => return Ok(Some(Opinion::Unknown(not_kept(*missing, GUARD_NOT_ASKED)))),
                };
                let sight = kept.sight(pin, &self.selected.lifecycle.descriptor().reads);
                let Some((entity, surroundings)) = sight else {
                    return Ok(Some(Opinion::Unknown(READS_MORE)));
                };
                let surroundings = self.under_own_parameters(surroundings);
                let request = kept.request(&entity, &surroundings);
                host.policies().guard_within(self.wall, pin, request)
            }
        };
        Ok(match answer {
            Ok(None) => None,
            Ok(Some((code, message))) => Some(rejected(&code, message)),
            Err(fault) => {
                let why = fault.in_brief();
                Some(Opinion::Says(Answer::Fault { why }, Some(fault.to_string())))
            }
        })
    }

    /// What its functions may see now.
    fn surroundings(&self, host: &Host, entity: &Entity) -> Result<Surroundings, Error> {
        let lifecycle = &self.selected.lifecycle;
        let parameters = filled(&lifecycle.descriptor().parameters, &self.selected.pin.parameters);
        surroundings_under(host, lifecycle, entity, parameters)
    }

    /// What was seen, with values for the parameters that only this policy has.
    fn under_own_parameters(&self, mut seen: Surroundings) -> Surroundings {
        let declared = &self.selected.lifecycle.descriptor().parameters;
        let own = filled(declared, &seen.parameters);
        seen.parameters.extend(own);
        seen
    }

    /// Nobody who writes waits for a compiler.
    fn is_ready(&self, host: &Host, case: &Case<'_>) -> bool {
        matches!(case.sight, Sight::Then(_)) || host.policies().is_compiled(&self.selected.pin.digest)
    }
}

impl Case<'_> {
    /// Whether what was set and guarded is not known.
    fn is_in_part(&self) -> bool {
        match self.sight {
            Sight::Now(_) => false,
            Sight::Then(record) => record.guard.is_err() && self.end.is_none(),
        }
    }
}

fn rejected(code: &str, message: impl Into<String>) -> Opinion {
    let code = code.to_owned();
    Opinion::Says(Answer::Rejected { code }, Some(message.into()))
}

const fn not_kept(missing: Missing, not_asked: &'static str) -> &'static str {
    match missing {
        Missing::NotAsked => not_asked,
        Missing::TooLarge => TOO_LARGE,
        Missing::Unreadable => UNREADABLE,
    }
}
