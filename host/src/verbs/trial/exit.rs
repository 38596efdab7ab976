//! `[[exit]]`: what an end means.

use super::cases::{NOW, Tester};
use super::expect::{Came, Expected};
use super::moves::entity;
use crate::model::{
    Bytes, Cause, DurationMs, Ended, Ending, Entity, Evidence, Fields, Function, Lifecycle, Outcome, Tags, Timestamp,
    judge,
};
use crate::policy::{Judged, PolicyFault};
use crate::verbs::kept::Observed;
use crate::verbs::settle::Meaning;

/// An end, and what it is to mean.
#[derive(Clone, Debug)]
pub(super) struct ExitCase {
    pub(super) from: Option<String>,
    pub(super) exit_code: Option<i64>,
    pub(super) signal: Option<i64>,
    pub(super) cause: Option<Cause>,
    pub(super) evidence: Option<Evidence>,
    pub(super) last_output: String,
    pub(super) duration: Option<DurationMs>,
    pub(super) attempt: i64,
    pub(super) fields: Fields,
    pub(super) tags: Tags,
    pub(super) expected: Expected,
}

impl ExitCase {
    /// An end of no particular sort.
    pub(super) fn failure() -> Self {
        Self {
            from: None,
            exit_code: Some(1),
            signal: None,
            cause: None,
            evidence: None,
            last_output: String::new(),
            duration: None,
            attempt: 1,
            fields: Fields::new(),
            tags: Tags::new(),
            expected: Expected::default(),
        }
    }

    pub(super) fn described(&self) -> String {
        let how = match (self.exit_code, self.signal) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "an end that nobody observed".to_owned(),
        };
        let cause = self.cause.map(|cause| format!(", cause {}", cause.word()));
        let evidence = self
            .evidence
            .and_then(Evidence::word)
            .map(|word| format!(", evidence {word}"));
        format!("{how}{}{}", cause.unwrap_or_default(), evidence.unwrap_or_default())
    }

    /// How it ended.
    ///
    /// # Errors
    /// No process ends so.
    pub(super) fn ending(&self) -> Result<(Ending, Ended), String> {
        let ended = match (self.exit_code, self.signal) {
            (Some(_), Some(_)) => return Err("`exit_code` and `signal` at once: no end has both".to_owned()),
            (Some(code), None) => Ended::Exited(code),
            (None, Some(signal)) => Ended::Signalled(signal),
            (None, None) => Ended::Unobserved,
        };
        let ending = self.cause.map_or(Ending::Natural, Cause::ending);
        match self.cause {
            Some(cause) if ending.cause(ended) != cause => {
                let found = ending.cause(ended).word();
                Err(format!("`cause` is {}, and what was seen is {found}", cause.word()))
            }
            _ => Ok((ending, ended)),
        }
    }

    pub(super) fn asked(&self, tester: &Tester<'_>) -> Result<Came, String> {
        let lifecycle = tester.lifecycle();
        let (from, entity) = self.entity(tester)?;
        let mut meaning = Meaning {
            outcome: self.by_table(lifecycle, &from),
            summary: None,
            patch: Fields::new(),
            retry_after: None,
        };
        if self.is_its_own() && tester.exported.contains(&Function::Verdict) {
            let answer = self.put_to_verdict(tester, &entity, meaning.outcome.as_ref());
            meaning.take(lifecycle, answer);
        }
        let Some(outcome) = meaning.outcome else {
            return Err(format!("the policy has no rule for it from `{from}`"));
        };
        let mut came = Came::new(
            &outcome.status,
            Some(&outcome.code),
            meaning.summary.unwrap_or_default(),
        );
        came.sets = meaning.patch;
        came.retry_after = meaning.retry_after;
        Ok(came)
    }

    fn evidence(&self) -> Evidence {
        self.evidence.unwrap_or(Evidence::NotWanted)
    }

    /// Whether no stop of ours led to it: only such an end is put to a verdict function.
    pub(super) fn is_its_own(&self) -> bool {
        self.ending().is_ok_and(|(ending, _)| ending.is_its_own())
    }

    /// What the verdict table and the execution rule say.
    pub(super) fn by_table(&self, lifecycle: &Lifecycle, from: &str) -> Option<Outcome> {
        let (ending, ended) = self.ending().ok()?;
        judge(lifecycle, from, ending, ended, self.evidence())
    }

    /// Who ended, and in which status it stood.
    pub(super) fn entity(&self, tester: &Tester<'_>) -> Result<(String, Entity), String> {
        let Some(rule) = &tester.lifecycle().descriptor().execution else {
            return Err("the policy has no execution rule: nothing is run under it".to_owned());
        };
        let from = self.from.as_ref().unwrap_or(&rule.start.status);
        let mut entity = entity(tester, from, (&self.fields, &self.tags), NOW)?;
        entity.structural.attempt = Some(self.attempt);
        if tester.lifecycle().descriptor().lease.is_some() {
            entity.structural.lease_attempts = Some(self.attempt);
        }
        Ok((from.clone(), entity))
    }

    pub(super) fn put_to_verdict(
        &self,
        tester: &Tester<'_>,
        entity: &Entity,
        by_table: Option<&Outcome>,
    ) -> Result<Judged, PolicyFault> {
        tester
            .ready
            .verdict(&self.observed(tester).request(entity, by_table, &tester.surroundings()))
    }

    /// What a verdict function may see of it.
    fn observed(&self, tester: &Tester<'_>) -> Observed {
        let (ending, ended) = self.ending().unwrap_or((Ending::Natural, Ended::Unobserved));
        let duration = self.duration.unwrap_or(DurationMs::from_ms(1_000));
        let evidence = self.evidence();
        let artifact = ("file".to_owned(), "artifacts/evidence".to_owned());
        let bytes = usize::try_from(tester.lifecycle().descriptor().reads.last_output_bytes).unwrap_or_default();
        let output = self.last_output.as_bytes();
        Observed {
            exit_code: self.exit_code,
            signal: self.signal,
            cause: ending.cause(ended).word().to_owned(),
            stop_intent: None,
            started_at: Timestamp::from_ms(NOW.as_ms().saturating_sub(duration.as_ms())),
            ended_at: NOW,
            duration,
            usage: None,
            artifacts: if evidence == Evidence::Present {
                vec![artifact]
            } else {
                Vec::new()
            },
            evidence_wanted: evidence != Evidence::NotWanted,
            artifacts_missing: if evidence == Evidence::ArtifactMissing {
                vec!["expected".to_owned()]
            } else {
                Vec::new()
            },
            last_output: Bytes(output[output.len().saturating_sub(bytes)..].to_vec()),
            of_row: None,
        }
    }
}
