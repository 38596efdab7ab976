//! What two policies say of the same thing, and how differences are told.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// What a policy says of a command.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// It is written.
    Applied {
        /// The status.
        status: String,
        /// The reason code.
        code: String,
    },
    /// It is refused.
    Rejected {
        /// Why: `no_edge`, `terminal`, `actor`, a guard's own code, ….
        code: String,
    },
    /// The command is wrong: the policy does not know a word of it.
    Invalid {
        /// What is wrong: `status`, `reason`, `patch`, ….
        code: String,
    },
    /// A function of the policy failed.
    Fault {
        /// In words, without what differs from call to call.
        why: String,
    },
}

impl Answer {
    /// Whether a candidate comes to the same as what was recorded: the same is written, or nothing is. A function of the
    /// candidate that fails is told wherever none failed before, though nothing is written either.
    pub fn agrees_with(&self, candidate: &Self) -> bool {
        match (self, candidate) {
            (Self::Applied { .. }, _) | (_, Self::Applied { .. }) => self == candidate,
            (Self::Fault { .. }, _) => true,
            (Self::Rejected { .. } | Self::Invalid { .. }, candidate) => !matches!(candidate, Self::Fault { .. }),
        }
    }

    /// `applied`, `rejected`, `invalid` or `fault`.
    pub const fn outcome(&self) -> &'static str {
        match self {
            Self::Applied { .. } => "applied",
            Self::Rejected { .. } => "rejected",
            Self::Invalid { .. } => "invalid",
            Self::Fault { .. } => "fault",
        }
    }

    /// As JSON.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Applied { status, code } => json!({"outcome": "applied", "status": status, "code": code}),
            Self::Rejected { code } | Self::Invalid { code } => json!({"outcome": self.outcome(), "code": code}),
            Self::Fault { why } => json!({"outcome": "fault", "code": "policy_fault", "message": why}),
        }
    }

    /// What [`Answer::to_value`] gave; none for anything else.
    pub fn from_value(value: &Value) -> Option<Self> {
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        Some(match value["outcome"].as_str()? {
            "applied" => Self::Applied {
                status: text("status")?,
                code: text("code")?,
            },
            "rejected" => Self::Rejected { code: text("code")? },
            "invalid" => Self::Invalid { code: text("code")? },
            "fault" => Self::Fault { why: text("message")? },
            _ => return None,
        })
    }
}

/// One way of differing: differences that are alike in all of this are told together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// The status left; none for a creation.
    pub from: Option<String>,
    /// The status asked for, or entered.
    pub to: String,
    /// The kind of who asked.
    pub actor: String,
    /// What was recorded.
    pub recorded: Answer,
    /// What the candidate says.
    pub candidate: Answer,
}

impl Difference {
    /// As JSON.
    pub fn to_value(&self) -> Value {
        json!({
            "from": self.from,
            "to": self.to,
            "actor": self.actor,
            "recorded": self.recorded.to_value(),
            "candidate": self.candidate.to_value(),
        })
    }

    /// What [`Difference::to_value`] gave; none for anything else.
    pub fn from_value(value: &Value) -> Option<Self> {
        Some(Self {
            from: value["from"].as_str().map(str::to_owned),
            to: value["to"].as_str()?.to_owned(),
            actor: value["actor"].as_str()?.to_owned(),
            recorded: Answer::from_value(&value["recorded"])?,
            candidate: Answer::from_value(&value["candidate"])?,
        })
    }
}

/// How often something was seen, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// How often.
    pub count: u64,
    /// Entities it was seen at, at most [`EXAMPLES_MAX`], each once.
    pub examples: Vec<String>,
}

/// How many examples a group names.
pub const EXAMPLES_MAX: usize = 3;

impl Group {
    /// Counts one more, of the entity of that reference.
    pub fn add(&mut self, reference: &str) {
        self.count += 1;
        if self.examples.len() < EXAMPLES_MAX && !self.examples.iter().any(|known| known == reference) {
            self.examples.push(reference.to_owned());
        }
    }
}

/// What a policy came to that judged many things again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Judged alike.
    pub same: u64,
    /// Judged otherwise, by how.
    pub different: BTreeMap<Difference, Group>,
    /// Not judged, by why.
    pub unjudged: BTreeMap<String, Group>,
}

impl Tally {
    /// Notes one that was judged; `reference` names its entity.
    pub fn judged(&mut self, reference: &str, difference: Difference) {
        if difference.recorded.agrees_with(&difference.candidate) {
            self.same += 1;
        } else {
            self.differs(reference, difference);
        }
    }

    /// Notes a difference.
    pub fn differs(&mut self, reference: &str, difference: Difference) {
        self.different.entry(difference).or_default().add(reference);
    }

    /// Notes one that could not be judged.
    pub fn unjudged(&mut self, reference: &str, why: &str) {
        self.unjudged.entry(why.to_owned()).or_default().add(reference);
    }

    /// How many were judged otherwise.
    pub fn differing(&self) -> u64 {
        self.different.values().map(|group| group.count).sum()
    }

    /// How many were judged.
    pub fn judged_in_all(&self) -> u64 {
        self.same + self.differing()
    }

    /// The differences, the most frequent first; those of the same number in their own order.
    pub fn groups(&self) -> Vec<(&Difference, &Group)> {
        let mut groups: Vec<_> = self.different.iter().collect();
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.count));
        groups
    }

    /// As JSON: `judged`, `same`, `different`, `not_judged`, `groups`.
    pub fn to_value(&self) -> Value {
        let groups = self.groups().into_iter().map(|(difference, group)| {
            let mut value = difference.to_value();
            value["count"] = json!(group.count);
            value["examples"] = json!(group.examples);
            value
        });
        let unjudged = self.unjudged.iter();
        json!({
            "judged": self.judged_in_all(),
            "same": self.same,
            "different": self.differing(),
            "not_judged": unjudged
                .map(|(why, group)| json!({"why": why, "count": group.count, "examples": group.examples}))
                .collect::<Vec<_>>(),
            "groups": groups.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(status: &str, code: &str) -> Answer {
        Answer::Applied {
            status: status.to_owned(),
            code: code.to_owned(),
        }
    }

    fn rejected(code: &str) -> Answer {
        Answer::Rejected { code: code.to_owned() }
    }

    fn every_answer() -> [Answer; 6] {
        [
            applied("done", "a.done.ok"),
            applied("done", "a.done.late"),
            applied("failed", "a.done.ok"),
            rejected("no_edge"),
            Answer::Invalid {
                code: "status".to_owned(),
            },
            Answer::Fault {
                why: "it trapped".to_owned(),
            },
        ]
    }

    #[test]
    fn a_candidate_agrees_if_the_same_is_written_or_nothing_is_and_nothing_fails_newly() {
        let all = every_answer();
        for (place, one) in all.iter().enumerate() {
            for (other_place, other) in all.iter().enumerate() {
                let neither_writes = place >= 3 && other_place >= 3;
                let fails_newly = other_place == 5 && place != 5;
                assert_eq!(
                    one.agrees_with(other),
                    place == other_place || (neither_writes && !fails_newly),
                    "{one:?} {other:?}"
                );
            }
        }
        assert!(rejected("no_edge").agrees_with(&rejected("too_early")));
    }

    fn difference(from: Option<&str>, candidate: Answer) -> Difference {
        Difference {
            from: from.map(str::to_owned),
            to: "done".to_owned(),
            actor: "agent".to_owned(),
            recorded: applied("done", "a.done.ok"),
            candidate,
        }
    }

    #[test]
    fn a_difference_is_read_as_it_was_kept() {
        for answer in every_answer() {
            for from in [None, Some("open")] {
                let difference = difference(from, answer.clone());
                assert_eq!(Difference::from_value(&difference.to_value()), Some(difference));
            }
        }
        assert_eq!(Difference::from_value(&json!({"to": "done"})), None);
    }

    #[test]
    fn a_tally_groups_what_differs_alike_and_names_three_examples() {
        let mut tally = Tally::default();
        tally.judged("a/0", difference(Some("open"), applied("done", "a.done.ok")));
        for number in 0..5 {
            tally.judged(&format!("a/{number}"), difference(Some("open"), rejected("no_edge")));
        }
        tally.judged("a/9", difference(Some("open"), rejected("actor")));
        tally.judged("a/9", difference(Some("open"), rejected("actor")));
        tally.unjudged("a/7", "too large");
        let value = tally.to_value();
        assert_eq!(
            (&value["judged"], &value["same"], &value["different"]),
            (&json!(8), &json!(1), &json!(7))
        );
        let groups = value["groups"].as_array().map(Vec::as_slice).unwrap_or_default();
        let told: Vec<_> = groups
            .iter()
            .map(|group| (&group["count"], &group["examples"]))
            .collect();
        assert_eq!(
            told,
            [(&json!(5), &json!(["a/0", "a/1", "a/2"])), (&json!(2), &json!(["a/9"]))]
        );
        assert_eq!(
            value["not_judged"],
            json!([{"why": "too large", "count": 1, "examples": ["a/7"]}])
        );
    }
}
