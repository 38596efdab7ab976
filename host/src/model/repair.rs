//! What is to be done with a run that nobody watches any more, or may not: pure, so that a look (`doctor --fix --dry-run`)
//! shows the very decision that is carried out.
//!
//! ```text
//! unknown ─▶ leave          held ─▶ leave            set lives, no shim ─▶ adopt
//! gone ────▶ the end that was seen; else: the machine restarted, never begun, ended unobserved
//! ```
//!
//! Nothing destructive follows from what is unknown, and no age alone ends anything: an attempt without an identity is
//! given up only when nobody carries its token either.

use serde_json::{Value, json};

use super::{Entity, Runtime, RuntimeState, START_GRACE, SeenGone, Standing, Timestamp};

/// What an exit record tells of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// There is none.
    Nothing,
    /// How the worker ended; others lived when it was written.
    WorkerOnly,
    /// All of it, to the last member.
    Whole,
}

/// Whether the program ever began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Began {
    /// It was executed, as far as anybody can tell.
    Yes,
    /// It positively was not: its shim noted the attempt, and its worker never got through the gate.
    No,
}

/// Who carries the token of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carriers {
    /// Nobody was looked for, or not everybody could be looked at.
    Unknown,
    /// Positively nobody.
    Nobody,
    /// Somebody.
    Somebody,
}

/// What was observed of a run whose runtime row is not stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// What is known of its processes.
    pub standing: Standing,
    /// What its exit record tells. Looked at after the processes: a shim that is gone had written it.
    pub record: Recorded,
    /// Whether its program began.
    pub began: Began,
    /// Who carries its token; looked for when no process is recorded.
    pub carriers: Carriers,
}

/// Why nothing is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Its shim lives and sees to it.
    Held,
    /// It is being started.
    Starting,
    /// Its liveness cannot be known from here.
    Unknown,
    /// It has no process.
    Nothing,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Nothing.
    Leave(Left),
    /// What its exit record tells is recorded.
    Record,
    /// A new shim takes the set over.
    Adopt,
    /// Its end was told; the rest of the set is positively gone as well.
    Complete,
    /// It ends, in place of an exit record, as this.
    End(Unseen),
    /// It had ended; its row says that nothing of it runs.
    MarkStopped,
    /// It is over; the empty group that is left of it is removed.
    RemoveGroup,
}

/// An end that nobody saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unseen {
    /// The machine restarted.
    HostRestarted,
    /// Its processes are gone.
    Unobserved,
    /// Its gate never opened.
    NeverBegan,
    /// Its start died before a process was recorded, and nobody carries its token.
    IdentityLost,
}

impl Repair {
    /// The word in evidence and reports.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Leave(Left::Held) => "held",
            Self::Leave(Left::Starting) => "starting",
            Self::Leave(Left::Unknown) => "unknown",
            Self::Leave(Left::Nothing) => "nothing",
            Self::Record => "record",
            Self::Adopt => "adopt",
            Self::Complete => "complete",
            Self::End(Unseen::HostRestarted) => "end_host_restarted",
            Self::End(Unseen::Unobserved) => "end_unobserved",
            Self::End(Unseen::NeverBegan) => "end_never_began",
            Self::End(Unseen::IdentityLost) => "end_identity_lost",
            Self::MarkStopped => "mark_stopped",
            Self::RemoveGroup => "remove_group",
        }
    }

    /// What is done, for people.
    pub const fn said(self) -> &'static str {
        match self {
            Self::Leave(Left::Held) => "its shim lives",
            Self::Leave(Left::Starting) => "it is being started",
            Self::Leave(Left::Unknown) => "it cannot be known from here",
            Self::Leave(Left::Nothing) => "it has no process",
            Self::Record => "its end is recorded from its exit file",
            Self::Adopt => "another shim takes it over",
            Self::Complete => "the last of it is gone, and its end is recorded",
            Self::End(Unseen::HostRestarted) => "the machine restarted, and its end was not seen",
            Self::End(Unseen::Unobserved) => "its processes are gone, and its end was not seen",
            Self::End(Unseen::NeverBegan) => "its gate never opened: nothing was executed",
            Self::End(Unseen::IdentityLost) => "its start died, and nobody carries its token",
            Self::MarkStopped => "it had ended, and nothing of it runs",
            Self::RemoveGroup => "it is over, and the empty cgroup that was left of it is removed",
        }
    }

    /// Whether something is done.
    pub const fn acts(self) -> bool {
        !matches!(self, Self::Leave(_))
    }
}

/// Decides.
pub fn repair(entity: &Entity, runtime: &Runtime, observed: &Observed, now: Timestamp) -> Repair {
    if runtime.state == RuntimeState::Stopped {
        return Repair::Leave(Left::Nothing);
    }
    match (&observed.standing, observed.record) {
        // Whatever else is known: the record is the truth, and whoever wrote it saw everybody gone.
        (_, Recorded::Whole) => Repair::Record,
        (Standing::Unjudged(_), Recorded::WorkerOnly) if !entity.terminal => Repair::Record,
        (Standing::Unjudged(_), _) => Repair::Leave(Left::Unknown),
        (Standing::Held, Recorded::WorkerOnly) if !entity.terminal => Repair::Record,
        (Standing::Held, _) => Repair::Leave(Left::Held),
        (Standing::Nothing, _) => Repair::Leave(Left::Nothing),
        (Standing::Starting, Recorded::WorkerOnly) => Repair::Record,
        (Standing::Starting, Recorded::Nothing) => unborn(entity, runtime, observed.carriers, now),
        (Standing::Unheld, _) => Repair::Adopt,
        (Standing::Gone(_), Recorded::WorkerOnly) => Repair::Complete,
        (Standing::Gone(_), Recorded::Nothing) if entity.terminal => Repair::MarkStopped,
        (Standing::Gone(_), Recorded::Nothing) if observed.began == Began::No => Repair::End(Unseen::NeverBegan),
        (Standing::Gone(SeenGone::EarlierBoot), Recorded::Nothing) => Repair::End(Unseen::HostRestarted),
        // Its status can still be read.
        (Standing::Gone(SeenGone::Zombie), Recorded::Nothing) => Repair::Adopt,
        (Standing::Gone(SeenGone::NoSuchProcess | SeenGone::Recycled | SeenGone::NoMember), Recorded::Nothing) => {
            Repair::End(Unseen::Unobserved)
        }
    }
}

/// One of which no process is recorded.
fn unborn(entity: &Entity, runtime: &Runtime, carriers: Carriers, now: Timestamp) -> Repair {
    match carriers {
        Carriers::Somebody => Repair::Adopt,
        Carriers::Nobody if is_overdue(runtime, now) && entity.terminal => Repair::MarkStopped,
        Carriers::Nobody if is_overdue(runtime, now) => Repair::End(Unseen::IdentityLost),
        Carriers::Nobody | Carriers::Unknown => Repair::Leave(Left::Starting),
    }
}

/// Whether an attempt had the time to record its process.
pub fn is_overdue(runtime: &Runtime, now: Timestamp) -> bool {
    now.as_ms().saturating_sub(runtime.created_at.as_ms()) > START_GRACE.as_ms()
}

/// What a decision acted on, as it is stored with what it writes.
pub fn repair_evidence(
    (runtime, entity): (&Runtime, &Entity),
    observed: &Observed,
    decided: Repair,
    now: Timestamp,
) -> Value {
    let standing = match &observed.standing {
        Standing::Gone(seen) => seen.word(),
        Standing::Unjudged(why) => why.word.word(),
        Standing::Nothing => "nothing",
        Standing::Starting => "no_identity",
        Standing::Held => "shim_alive",
        Standing::Unheld => "shim_gone_set_alive",
    };
    let pid = |process: &Option<super::ProcessIdentity>| process.as_ref().map(|process| process.pid);
    json!({
        "repair": decided.word(),
        "observed": standing,
        "shim_pid": pid(&runtime.shim),
        "pid": pid(&runtime.worker),
        "identity_level": runtime.level,
        "boot_id": runtime.place.boot_id,
        "runtime_state": runtime.state.word(),
        "token_carriers": match observed.carriers {
            Carriers::Unknown => Value::Null,
            Carriers::Nobody => json!("nobody"),
            Carriers::Somebody => json!("somebody"),
        },
        "age_ms": now.as_ms().saturating_sub(runtime.created_at.as_ms()),
        "spawn_grace_ms": START_GRACE.as_ms(),
        "policy_digest": entity.policy.digest,
    })
}

#[cfg(test)]
mod tests;
