//! What a component answered, judged like input from a stranger. Nothing of an answer is used unless all of it may be.

use super::calls::Judged;
use super::fault::PolicyFault;
use super::text::line;
use super::unjudged::{Answered, Assessment, Decision, Judgement, Mapping, Reported};
use crate::model::{DurationMs, Fields, Health, HealthLevel, Lifecycle, Mapped, Outcome, Structural, coerce};

/// Fields that say what the host observed of an ending; a verdict says what it means, not what it was.
const OBSERVED: [&str; 4] = ["ended_at", "exit_code", "term_signal", "cause"];

/// How long a code in an answer may be.
const CODE_BYTES_MAX: usize = 64;

/// Whose answer it is, and to what.
pub(super) struct Answer<'a> {
    pub(super) policy: &'a str,
    pub(super) function: &'static str,
    pub(super) limit_bytes: usize,
}

impl Answer<'_> {
    /// A guard's: none when it admits, else its code and words.
    pub(super) fn decision(&self, answer: Answered<Decision>) -> Result<Option<(String, String)>, PolicyFault> {
        let decision = answer.map_err(|fault| self.reported(&fault))?;
        self.understood(decision.unknown.as_deref())?;
        self.weigh([decision.code.as_str(), &decision.message])?;
        if decision.admitted {
            let contradicts = !decision.code.is_empty();
            return if contradicts {
                Err(self.bad("it admits, and gives a code for a refusal"))
            } else {
                Ok(None)
            };
        }
        let code = if decision.code.is_empty() {
            "guard".to_owned()
        } else {
            decision.code
        };
        if !is_code(&code) {
            let why = format!("`{}` is no code: lower-case words joined by underscores", line(&code));
            return Err(self.bad(why));
        }
        Ok(Some((code, line(&decision.message))))
    }

    /// A verdict's: an edge that the host can take from `status`, declared words and fields alone.
    pub(super) fn judgement(
        &self,
        answer: Answered<Judgement>,
        lifecycle: &Lifecycle,
        status: &str,
    ) -> Result<Judged, PolicyFault> {
        let judgement = answer.map_err(|fault| self.reported(&fault))?;
        self.understood(judgement.unknown.as_deref())?;
        let patched = judgement
            .patch
            .iter()
            .flat_map(|(name, json)| [name.as_str(), json.as_str()]);
        let texts = [
            judgement.status.as_str(),
            &judgement.code,
            judgement.summary.as_deref().unwrap_or_default(),
        ];
        self.weigh(texts.into_iter().chain(patched))?;
        let patch = self.patch(judgement.patch, lifecycle)?;
        self.edge(lifecycle, status, &judgement.status, &patch)?;
        if !lifecycle.admits_reason(&judgement.code) {
            return Err(self.bad(format!("reason code `{}` is not declared", line(&judgement.code))));
        }
        if judgement.retry_after_ms.is_some_and(|delay| delay < 0) {
            return Err(self.bad("it wants another attempt in the past"));
        }
        Ok(Judged {
            outcome: Outcome {
                status: judgement.status,
                code: judgement.code,
            },
            summary: judgement.summary.as_deref().map(line),
            patch,
            retry_after: judgement.retry_after_ms.map(DurationMs::from_ms),
        })
    }

    /// A health.
    pub(super) fn assessment(&self, answer: Answered<Assessment>) -> Result<Health, PolicyFault> {
        let assessment = answer.map_err(|fault| self.reported(&fault))?;
        self.understood(assessment.unknown.as_deref())?;
        self.weigh([assessment.level.as_str(), &assessment.message])?;
        let Some(level) = HealthLevel::from_word(&assessment.level) else {
            return Err(self.bad(format!("`{}` is no level of health", line(&assessment.level))));
        };
        Ok(Health {
            level,
            message: line(&assessment.message),
        })
    }

    /// A mapping's: a declared status; fields that the host does not keep, declared unless they are given up.
    pub(super) fn mapping(&self, answer: Answered<Mapping>, lifecycle: &Lifecycle) -> Result<Mapped, PolicyFault> {
        let mapping = answer.map_err(|fault| self.reported(&fault))?;
        self.understood(mapping.unknown.as_deref())?;
        let patched = mapping.patch.iter();
        let patched = patched.flat_map(|(name, json)| [name.as_str(), json.as_str()]);
        self.weigh(std::iter::once(mapping.status.as_str()).chain(patched))?;
        if lifecycle.status(&mapping.status).is_none() {
            return Err(self.bad(format!("status `{}` is not declared", line(&mapping.status))));
        }
        let mut patch = fields(mapping.patch).map_err(|why| self.bad(line(&why)))?;
        let columns = Structural::default();
        for (name, value) in &mut patch {
            if columns.get(name).is_some() {
                return Err(self.bad(format!(
                    "field `{name}` is kept by the host: a mapping cannot change it"
                )));
            }
            let Some(field) = lifecycle.field(name) else {
                if value.is_null() {
                    continue;
                }
                return Err(self.bad(format!("field `{}` is not declared", line(name))));
            };
            *value = coerce(name, field.kind, value).map_err(|error| self.bad(line(&error.to_string())))?;
        }
        Ok(Mapped {
            status: mapping.status,
            patch,
        })
    }

    /// Texts, or other bytes, that together are within the limit.
    pub(super) fn weigh(&self, parts: impl IntoIterator<Item: AsRef<[u8]>>) -> Result<(), PolicyFault> {
        let bytes: usize = parts.into_iter().map(|part| part.as_ref().len()).sum();
        if bytes <= self.limit_bytes {
            return Ok(());
        }
        Err(self.bad(format!(
            "it has {bytes} bytes, at most {} are admitted",
            self.limit_bytes
        )))
    }

    /// Values that fit their fields, in the form in which fields are kept.
    fn patch(&self, raw: Vec<(String, String)>, lifecycle: &Lifecycle) -> Result<Fields, PolicyFault> {
        let mut patch = fields(raw).map_err(|why| self.bad(line(&why)))?;
        for (name, value) in &mut patch {
            let Some(field) = lifecycle.field(name) else {
                return Err(self.bad(format!("field `{}` is not declared", line(name))));
            };
            if OBSERVED.contains(&name.as_str()) {
                return Err(self.bad(format!(
                    "field `{name}` says what was observed: a verdict cannot change it"
                )));
            }
            *value = coerce(name, field.kind, value).map_err(|error| self.bad(line(&error.to_string())))?;
        }
        Ok(patch)
    }

    /// The edge is declared, and nobody but the host is needed to take it.
    fn edge(&self, lifecycle: &Lifecycle, from: &str, to: &str, patch: &Fields) -> Result<(), PolicyFault> {
        let Some(edge) = lifecycle.edge(from, to) else {
            return Err(self.bad(format!("no edge {from} -> {}", line(to))));
        };
        let missing = edge.required_patch.iter().any(|name| !patch.contains_key(name));
        let obstacles = [
            (edge.guarded, "is guarded"),
            (!edge.actors.is_empty(), "restricts actors"),
            (missing, "requires a patch"),
        ];
        match obstacles.iter().find(|(holds, _)| *holds) {
            Some((_, why)) => Err(self.bad(format!("the edge {from} -> {to} {why}: a verdict cannot take it"))),
            None => Ok(()),
        }
    }

    /// An answer with a critical part that this host does not know must not be used in part.
    pub(super) fn understood(&self, unknown: Option<&str>) -> Result<(), PolicyFault> {
        match unknown {
            Some(key) => Err(self.bad(format!("critical extension `{}` is not known to this host", line(key)))),
            None => Ok(()),
        }
    }

    pub(super) fn reported(&self, fault: &Reported) -> PolicyFault {
        let said = |words: &str, otherwise: &str| line(if words.is_empty() { otherwise } else { words });
        PolicyFault::Reported {
            policy: self.policy.to_owned(),
            function: self.function,
            code: said(&fault.code, "no code"),
            message: said(&fault.message, "it does not say why"),
            hint: fault.hint.as_deref().map(|hint| line(hint).into()),
        }
    }

    pub(super) fn bad(&self, why: impl Into<String>) -> PolicyFault {
        PolicyFault::BadAnswer {
            policy: self.policy.to_owned(),
            function: self.function,
            why: why.into(),
        }
    }
}

/// Fields as a component wrote them.
///
/// # Errors
/// The name of the first value that is no JSON.
fn fields(written: Vec<(String, String)>) -> Result<Fields, String> {
    let pair = |(name, json): (String, String)| match serde_json::from_str(&json) {
        Ok(value) => Ok((name, value)),
        Err(error) => Err(format!("field `{name}` is no JSON value: {error}")),
    };
    written.into_iter().map(pair).collect()
}

/// Lower-case words joined by underscores.
fn is_code(code: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    code.len() <= CODE_BYTES_MAX && code.starts_with(|c: char| c.is_ascii_lowercase()) && code.bytes().all(fits)
}
