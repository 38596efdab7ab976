//! The work specification: what a run is to do and within what bounds. It is stored with the run, shown by
//! `show --command`, and serves every way of starting one.

use serde::{Deserialize, Serialize};

use crate::model::{Bytes, DurationMs, Timestamp};
pub use crate::process::Contain;
use crate::store::HeldLease;

/// The grace period when none is given (SEMANTICS 10.20): from the first signal to KILL.
pub const GRACE_DEFAULT: DurationMs = DurationMs::from_ms(10_000);

/// How much of a run's output is kept when nothing is said (SEMANTICS 9).
pub const LOG_LIMIT_DEFAULT_BYTES: u64 = 256 << 20;
/// The least that can be asked for: below it the parts that are dropped would be as large as what is kept.
pub const LOG_LIMIT_MIN_BYTES: u64 = 1 << 20;

/// What a run is to do and within what bounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Program and arguments, executed as they are: no shell.
    pub argv: Vec<Bytes>,
    /// The working directory.
    pub cwd: Bytes,
    /// Environment variables beside the inherited ones.
    #[serde(default)]
    pub env: Vec<Variable>,
    /// Nothing is inherited.
    #[serde(default)]
    pub clear_env: bool,
    /// Time awake after which it is stopped; none is never.
    pub timeout_ms: Option<DurationMs>,
    /// From the first signal of a stop to KILL.
    pub grace_ms: DurationMs,
    /// What a stop tries first.
    #[serde(default)]
    pub stop_by: StopBy,
    /// Patterns of files that must exist at the end: absolute, or below `artifacts/` or the working directory.
    #[serde(default)]
    pub expect_artifacts: Vec<String>,
    /// How much of its output is kept, all logs together: the beginning, and the end without what is between. None is
    /// [`LOG_LIMIT_DEFAULT_BYTES`].
    #[serde(default)]
    pub log_limit_bytes: Option<u64>,
    /// What holds together everything it starts.
    #[serde(default)]
    pub contain: Contain,
    /// At least one piece of evidence is wanted.
    #[serde(default)]
    pub want_evidence: bool,
    /// Directories that belong to the run and are removed with it.
    #[serde(default)]
    pub own_dirs: Vec<Bytes>,
    /// What the program needs to take up its work again.
    #[serde(default)]
    pub resume_token: Option<String>,
    /// How it was spawned, for health thresholds and envelopes.
    #[serde(default)]
    pub spawn_kind: Option<String>,
    /// How it is queued, for work that waits for a worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueTerms>,
    /// The lease that it is run for, when a worker runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<HeldLease>,
}

/// How work is queued, beside what its row says: fixed when it is submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueTerms {
    /// The kind of the run that a worker makes for each attempt.
    pub run_kind: String,
    /// Length of a lease; none: as its policy says.
    #[serde(default)]
    pub lease_ms: Option<DurationMs>,
    /// How many starts; none: as its policy says.
    #[serde(default)]
    pub attempts: Option<i64>,
    /// Not to be begun before, in wall time.
    #[serde(default)]
    pub not_before: Option<Timestamp>,
}

/// One environment variable of a specification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Variable {
    /// Passed on from whoever starts it; only its name is stored.
    Inherited {
        /// The name.
        name: Bytes,
    },
    /// Given with its value, which is stored.
    Given {
        /// The name.
        name: Bytes,
        /// The value.
        value: Bytes,
    },
}

/// What a stop tries before KILL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopBy {
    /// SIGTERM to every member of the set.
    #[default]
    Term,
    /// This signal to every member of the set.
    Signal(i32),
    /// The end of standard input, then SIGTERM after half of the grace period.
    Stdin,
}

impl Work {
    /// A bare specification: no bounds but the default grace period.
    pub fn new(argv: Vec<Bytes>, cwd: Bytes) -> Self {
        Self {
            argv,
            cwd,
            env: Vec::new(),
            clear_env: false,
            timeout_ms: None,
            grace_ms: GRACE_DEFAULT,
            stop_by: StopBy::Term,
            expect_artifacts: Vec::new(),
            log_limit_bytes: None,
            contain: Contain::Auto,
            want_evidence: false,
            own_dirs: Vec::new(),
            resume_token: None,
            spawn_kind: None,
            queue: None,
            lease: None,
        }
    }

    /// The environment for the program as `NAME=value`: what `inherited` has (unless it is cleared), what the
    /// specification adds, and `ours` last. A later value of a name replaces an earlier one.
    pub fn environment(&self, inherited: &[(Bytes, Bytes)], ours: &[(Bytes, Bytes)]) -> Vec<Vec<u8>> {
        let passed_on = |name: &Bytes| inherited.iter().find(|(known, _)| known == name).cloned();
        let added = self.env.iter().filter_map(|variable| match variable {
            Variable::Inherited { name } => passed_on(name),
            Variable::Given { name, value } => Some((name.clone(), value.clone())),
        });
        let base = if self.clear_env { &[] } else { inherited };
        let mut variables: Vec<(Bytes, Bytes)> = Vec::new();
        for (name, value) in base.iter().cloned().chain(added).chain(ours.iter().cloned()) {
            match variables.iter_mut().find(|(known, _)| *known == name) {
                Some(known) => known.1 = value,
                None => variables.push((name, value)),
            }
        }
        variables
            .into_iter()
            .map(|(name, value)| [name.0.as_slice(), b"=", value.0.as_slice()].concat())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, value: &str) -> (Bytes, Bytes) {
        (Bytes::from(name), Bytes::from(value))
    }

    fn check(work: &Work, expected: &[&str]) {
        let inherited = [pair("PATH", "/bin"), pair("SECRET", "s"), pair("RUNWARDEN_ID", "outer")];
        let environment = work.environment(&inherited, &[pair("RUNWARDEN_ID", "inner")]);
        let shown: Vec<String> = environment.into_iter().map(|bytes| Bytes(bytes).lossy()).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_variable_given_later_replaces_an_earlier_one_and_ours_are_last() {
        let mut work = Work::new(vec![Bytes::from("true")], Bytes::from("/"));
        check(&work, &["PATH=/bin", "SECRET=s", "RUNWARDEN_ID=inner"]);
        work.env = vec![
            Variable::Given {
                name: Bytes::from("PATH"),
                value: Bytes::from("/usr/bin"),
            },
            Variable::Inherited {
                name: Bytes::from("ABSENT"),
            },
        ];
        check(&work, &["PATH=/usr/bin", "SECRET=s", "RUNWARDEN_ID=inner"]);
        work.clear_env = true;
        work.env = vec![Variable::Inherited {
            name: Bytes::from("SECRET"),
        }];
        check(&work, &["SECRET=s", "RUNWARDEN_ID=inner"]);
    }
}
