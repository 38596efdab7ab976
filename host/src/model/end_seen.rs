//! What was seen of an end, in the form kept with the history row that tells it.

use serde_json::{Value, json};

use super::{Ended, Ending, Evidence, Lifecycle, Outcome, judge};

/// The step of a start at which nobody learned which process was started.
pub const IDENTITY_STAGE: &str = "identity";

/// What was seen of an end: all that a policy's table needs to say what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndSeen {
    /// Its program was not started.
    NotStarted {
        /// The step that failed.
        stage: String,
    },
    /// Its process ended.
    Ended {
        /// Which stop of ours was going on.
        ending: Ending,
        /// What the process did.
        ended: Ended,
        /// What became of the evidence it was to leave.
        evidence: Evidence,
    },
}

impl EndSeen {
    /// What the table of a policy says of it; none when it has no rule for it.
    pub fn by_table(&self, lifecycle: &Lifecycle, status: &str) -> Option<Outcome> {
        match self {
            Self::NotStarted { stage } => spawn_outcome(lifecycle, stage),
            Self::Ended {
                ending,
                ended,
                evidence,
            } => judge(lifecycle, status, *ending, *ended, *evidence),
        }
    }

    /// Whether a verdict function is asked: the end was the program's own.
    pub const fn is_its_own(&self) -> bool {
        match self {
            Self::NotStarted { .. } => false,
            Self::Ended { ending, .. } => ending.is_its_own(),
        }
    }

    /// As JSON; what is not known is left out.
    pub fn to_value(&self) -> Value {
        match self {
            Self::NotStarted { stage } => json!({"stage": stage}),
            Self::Ended {
                ending,
                ended,
                evidence,
            } => {
                let mut value = json!({"how": ending.word()});
                match ended {
                    Ended::Exited(code) => value["exit_code"] = json!(code),
                    Ended::Signalled(signal) => value["signal"] = json!(signal),
                    Ended::Unobserved => {}
                }
                if let Some(word) = evidence.word() {
                    value["evidence"] = json!(word);
                }
                value
            }
        }
    }

    /// What [`EndSeen::to_value`] gave; none for anything else.
    pub fn from_value(value: &Value) -> Option<Self> {
        if let Some(stage) = value["stage"].as_str() {
            return Some(Self::NotStarted {
                stage: stage.to_owned(),
            });
        }
        let ended = match (value["exit_code"].as_i64(), value["signal"].as_i64()) {
            (Some(code), _) => Ended::Exited(code),
            (None, Some(signal)) => Ended::Signalled(signal),
            (None, None) => Ended::Unobserved,
        };
        Some(Self::Ended {
            ending: Ending::from_word(value["how"].as_str()?)?,
            ended,
            evidence: match value["evidence"].as_str() {
                Some(word) => Evidence::from_word(word)?,
                None => Evidence::NotWanted,
            },
        })
    }
}

/// Which outcome a start that failed is written with.
pub fn spawn_outcome(lifecycle: &Lifecycle, stage: &str) -> Option<Outcome> {
    let rule = lifecycle.descriptor().execution.as_ref()?;
    Some(match stage {
        "directory" => rule.directory_missing.clone(),
        IDENTITY_STAGE => rule.identity_lost.clone(),
        _ => rule.spawn_failed.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_read_as_it_was_kept() {
        let seen = |ending, ended, evidence| EndSeen::Ended {
            ending,
            ended,
            evidence,
        };
        let all = [
            EndSeen::NotStarted {
                stage: "exec".to_owned(),
            },
            seen(Ending::Natural, Ended::Exited(0), Evidence::NotWanted),
            seen(Ending::OutOfMemory, Ended::Signalled(9), Evidence::Present),
            seen(Ending::KilledByForce, Ended::Unobserved, Evidence::ArtifactMissing),
        ];
        for one in all {
            assert_eq!(EndSeen::from_value(&one.to_value()), Some(one));
        }
        assert_eq!(EndSeen::from_value(&json!({"how": "somehow"})), None);
        assert_eq!(EndSeen::from_value(&Value::Null), None);
    }
}
