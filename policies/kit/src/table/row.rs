use crate::{Field, HealthThreshold, Migration, Outcome, Parameter, ReasonCode, StatusMapping, VerdictRow};

/// A companion field. Kinds: integer, number, text, boolean, timestamp, json.
pub fn field(name: &str, kind: &str, summary: &str) -> Field {
    Field {
        name: name.to_owned(),
        kind: kind.to_owned(),
        summary: summary.to_owned(),
        ext: Vec::new(),
    }
}

/// A reason code that the kind admits.
pub fn code(code: &str, summary: &str) -> ReasonCode {
    ReasonCode {
        code: code.to_owned(),
        summary: summary.to_owned(),
    }
}

/// Reason codes that the kind admits, each with its meaning.
pub fn codes(rows: &[(&str, &str)]) -> Vec<ReasonCode> {
    rows.iter().map(|(name, why)| code(name, why)).collect()
}

/// A status and the reason code it is written with.
pub fn outcome(status: &str, code: &str) -> Outcome {
    Outcome {
        status: status.to_owned(),
        code: code.to_owned(),
    }
}

/// A parameter whose default is given as JSON text.
pub fn parameter(name: &str, kind: &str, default: &str, summary: &str) -> Parameter {
    Parameter::new(name, kind, default, summary)
}

/// How quiet an entity of one spawn kind may be, in milliseconds; an empty kind is every other.
pub fn threshold(spawn_kind: &str, idle_ms: i64, stale_ms: i64) -> HealthThreshold {
    HealthThreshold {
        spawn_kind: spawn_kind.to_owned(),
        idle: idle_ms,
        stale: stale_ms,
    }
}

/// Entities of this policy's version, or of all versions that begin so, are carried over: each status listed to the one
/// beside it, every other to its own name.
pub fn migration(from_version: &str, statuses: &[(&str, &str)]) -> Migration {
    let mapping = |(from, to): &(&str, &str)| StatusMapping {
        from: (*from).to_owned(),
        to: (*to).to_owned(),
    };
    Migration {
        from_name: String::new(),
        from_version: from_version.to_owned(),
        statuses: statuses.iter().map(mapping).collect(),
        ext: Vec::new(),
    }
}

/// A verdict for an exit with this code.
pub fn on_exit(exit_code: i64, outcome: Outcome) -> VerdictRow {
    exit_codes(exit_code, exit_code, outcome)
}

/// A verdict for an exit with a code in this inclusive range.
pub fn exit_codes(first: i64, last: i64, outcome: Outcome) -> VerdictRow {
    VerdictRow {
        exit_codes: Some((first, last)),
        ..always(outcome)
    }
}

/// A verdict for an end by one of these signals; none given is any signal.
pub fn on_signal(signals: &[i64], outcome: Outcome) -> VerdictRow {
    VerdictRow {
        signals: Some(signals.to_vec()),
        ..always(outcome)
    }
}

/// A verdict for every end that no earlier row matched.
pub fn always(outcome: Outcome) -> VerdictRow {
    VerdictRow {
        exit_codes: None,
        signals: None,
        causes: Vec::new(),
        evidence: None,
        outcome,
        ext: Vec::new(),
    }
}

impl VerdictRow {
    /// Only for these causes.
    #[must_use]
    pub fn because(mut self, causes: &[&str]) -> Self {
        self.causes = texts(causes);
        self
    }

    /// Only with this evidence: present, wanted_and_absent or artifact_missing.
    #[must_use]
    pub fn evidence(mut self, evidence: &str) -> Self {
        self.evidence = Some(evidence.to_owned());
        self
    }
}

/// Words as the bindings want them.
pub(crate) fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
