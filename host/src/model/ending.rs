//! What the end of a process means, by a policy's data alone.

use super::{Lifecycle, Outcome, VerdictRow};

/// How a process ended: observed, never guessed (SEMANTICS 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It exited by itself.
    Exit,
    /// A signal that was not ours.
    Signal,
    /// The kernel ended it for want of memory.
    Oom,
    /// Its deadline: we stopped it.
    Timeout,
    /// We stopped it because somebody asked.
    Kill,
    /// We stopped it because its terminal went away.
    Hangup,
    /// The machine restarted under it.
    HostRestarted,
    /// Nobody observed it.
    Unobserved,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 8] = [
        Self::Exit,
        Self::Signal,
        Self::Oom,
        Self::Timeout,
        Self::Kill,
        Self::Hangup,
        Self::HostRestarted,
        Self::Unobserved,
    ];

    /// The word kept in the field `cause`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Exit => "exit",
            Self::Signal => "signal",
            Self::Oom => "oom",
            Self::Timeout => "timeout",
            Self::Kill => "kill",
            Self::Hangup => "hangup",
            Self::HostRestarted => "host_restarted",
            Self::Unobserved => "unobserved",
        }
    }

    /// The cause a word names.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.word() == word)
    }
}

impl Cause {
    /// The ending that has this cause, as far as a cause tells it: of a kill, the gentler one.
    pub const fn ending(self) -> Ending {
        match self {
            Self::Kill => Ending::Killed,
            Self::Timeout => Ending::TimedOut,
            Self::Hangup => Ending::HungUp,
            Self::Oom => Ending::OutOfMemory,
            Self::HostRestarted => Ending::HostRestarted,
            Self::Exit | Self::Signal | Self::Unobserved => Ending::Natural,
        }
    }
}

/// What became of the evidence a run was to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// None was wanted.
    NotWanted,
    /// It is there.
    Present,
    /// It was wanted and is absent.
    WantedAndAbsent,
    /// An expected artifact is absent.
    ArtifactMissing,
}

impl Evidence {
    /// What verdict rows can ask for.
    pub const ASKED: [Self; 3] = [Self::Present, Self::WantedAndAbsent, Self::ArtifactMissing];

    /// The word that verdict rows use; none for "not wanted", which no row can ask for.
    pub const fn word(self) -> Option<&'static str> {
        match self {
            Self::NotWanted => None,
            Self::Present => Some("present"),
            Self::WantedAndAbsent => Some("wanted_and_absent"),
            Self::ArtifactMissing => Some("artifact_missing"),
        }
    }

    /// The evidence a verdict row's word names.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ASKED.into_iter().find(|e| e.word() == Some(word))
    }
}

/// What was seen of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this code.
    Exited(i64),
    /// It died by this signal.
    Signalled(i64),
    /// Nothing was seen.
    Unobserved,
}

/// Why a stop of ours was going on when the process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// No stop was going on: the end is the program's own.
    Natural,
    /// No stop was going on, and the kernel killed it for want of memory.
    OutOfMemory,
    /// The deadline had passed.
    TimedOut,
    /// The terminal had gone.
    HungUp,
    /// The user had interrupted it.
    Interrupted,
    /// The supervising command, or the shim, was told to end.
    Terminated,
    /// The parent it was to die with had gone.
    ParentGone,
    /// A kill was going on; it ended before force was used.
    Killed,
    /// A kill was going on; force was used.
    KilledByForce,
    /// The machine restarted.
    HostRestarted,
}

impl Ending {
    /// The word kept with the row that tells the end.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Natural => "natural",
            Self::OutOfMemory => "oom",
            Self::TimedOut => "timed_out",
            Self::HungUp => "hung_up",
            Self::Interrupted => "interrupted",
            Self::Terminated => "terminated",
            Self::ParentGone => "parent_gone",
            Self::Killed => "killed",
            Self::KilledByForce => "killed_by_force",
            Self::HostRestarted => "host_restarted",
        }
    }

    /// The ending that a word names.
    pub fn from_word(word: &str) -> Option<Self> {
        let all = [
            Self::Natural,
            Self::OutOfMemory,
            Self::TimedOut,
            Self::HungUp,
            Self::Interrupted,
            Self::Terminated,
            Self::ParentGone,
            Self::Killed,
            Self::KilledByForce,
            Self::HostRestarted,
        ];
        all.into_iter().find(|ending| ending.word() == word)
    }

    /// Whether no stop of ours led to it.
    pub const fn is_its_own(self) -> bool {
        matches!(self, Self::Natural | Self::OutOfMemory)
    }

    /// The cause kept in the field: how the process ended.
    pub const fn cause(self, ended: Ended) -> Cause {
        match (self, ended) {
            (Self::Natural, Ended::Exited(_)) => Cause::Exit,
            (Self::Natural, Ended::Signalled(_)) => Cause::Signal,
            (Self::Natural, Ended::Unobserved) => Cause::Unobserved,
            (Self::OutOfMemory, _) => Cause::Oom,
            (Self::TimedOut, _) => Cause::Timeout,
            (Self::HungUp, _) => Cause::Hangup,
            (Self::HostRestarted, _) => Cause::HostRestarted,
            (Self::Interrupted | Self::Terminated | Self::ParentGone | Self::Killed | Self::KilledByForce, _) => {
                Cause::Kill
            }
        }
    }
}

/// The status and reason an ending is written with: pure data, no component.
///
/// None when the kind has no rule for it: it is not run, or cannot be killed from the status it has.
pub fn judge(lifecycle: &Lifecycle, status: &str, ending: Ending, ended: Ended, evidence: Evidence) -> Option<Outcome> {
    let rule = lifecycle.descriptor().execution.as_ref()?;
    let cause = ending.cause(ended);
    let by_row = |row: &&VerdictRow| matches(row, cause, ended, evidence);
    let rows = &lifecycle.descriptor().verdicts;
    let named = rows
        .iter()
        .filter(|row| row.causes.iter().any(|word| word == cause.word()))
        .find(by_row);
    let by_rule = |outcome: &Outcome| Some(named.map_or_else(|| outcome.clone(), |row| row.outcome.clone()));
    match ending {
        Ending::Natural | Ending::OutOfMemory => rows.iter().find(by_row).map(|row| row.outcome.clone()),
        Ending::TimedOut => by_rule(&rule.timed_out),
        Ending::HungUp => by_rule(&rule.hung_up),
        Ending::Interrupted => by_rule(&rule.interrupted),
        Ending::Terminated => by_rule(&rule.terminated),
        Ending::ParentGone => by_rule(&rule.parent_gone),
        Ending::HostRestarted => by_rule(&rule.host_restarted),
        Ending::Killed | Ending::KilledByForce => {
            let row = lifecycle.kill_row(status)?;
            let code = if ending == Ending::Killed {
                &row.term_code
            } else {
                &row.force_code
            };
            Some(Outcome {
                status: row.goes_to.clone(),
                code: code.clone(),
            })
        }
    }
}

fn matches(row: &VerdictRow, cause: Cause, ended: Ended, evidence: Evidence) -> bool {
    let code_fits = match (row.exit_codes, ended) {
        (None, _) => true,
        (Some((first, last)), Ended::Exited(code)) => (first..=last).contains(&code),
        (Some(_), Ended::Signalled(_) | Ended::Unobserved) => false,
    };
    let signal_fits = match (&row.signals, ended) {
        (None, _) => true,
        (Some(signals), Ended::Signalled(signal)) => signals.is_empty() || signals.contains(&signal),
        (Some(_), Ended::Exited(_) | Ended::Unobserved) => false,
    };
    let cause_fits = row.causes.is_empty() || row.causes.iter().any(|word| word == cause.word());
    let evidence_fits = row.evidence.is_none() || row.evidence.as_deref() == evidence.word();
    code_fits && signal_fits && cause_fits && evidence_fits
}
