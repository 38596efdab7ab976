//! The descriptor: everything about a kind that is data, in the form the store keeps it.
//!
//! The fields mirror the WIT record of the same name (`wit/policy/lifecycle.wit`), which documents each of them; this
//! form is canonical: its JSON, in declaration order, is what is hashed, stored and shipped beside bundled components.

mod words;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::DurationMs;
pub use words::{Cascade, FieldKind, SameStatus};

/// A value added after a WIT version was released.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extension {
    /// Which value.
    pub key: String,
    /// The value.
    pub json: Value,
    /// A reader that does not know the key must refuse what carries it.
    pub critical: bool,
}

/// One word of a kind's vocabulary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "a row of a table, as the WIT declares it")]
pub struct Status {
    /// The word.
    pub name: String,
    /// What it means.
    pub summary: String,
    /// An entity may be created in it.
    pub initial: bool,
    /// The reason code of a creation when none is given.
    pub creation_code: Option<String>,
    /// Nothing ordinary leads out of it.
    pub terminal: bool,
    /// `wait` counts it as a success.
    pub success: bool,
    /// Entering it makes an event although it is not terminal.
    pub announced: bool,
    /// Later additions.
    pub ext: Vec<Extension>,
}

/// A move that is allowed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edge {
    /// The status left.
    pub from: String,
    /// The status entered.
    pub to: String,
    /// Actor kinds admitted; empty admits all.
    pub actors: Vec<String>,
    /// Fields the command must patch.
    pub required_patch: Vec<String>,
    /// Fields the command must guard; an expected version satisfies all of them.
    pub required_guards: Vec<String>,
    /// The guard function is asked before the write.
    pub guarded: bool,
    /// Later additions.
    pub ext: Vec<Extension>,
}

/// A companion field that a transition may patch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: FieldKind,
    /// What it means.
    pub summary: String,
    /// Later additions.
    pub ext: Vec<Extension>,
}

/// A reason code that the kind admits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReasonCode {
    /// Three lower-case dotted segments.
    pub code: String,
    /// What it means.
    pub summary: String,
}

/// A status and the reason code it is written with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// The status.
    pub status: String,
    /// The reason code.
    pub code: String,
}

/// What the host writes for a process that it runs as this kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutionRule {
    /// Written at creation.
    pub start: Outcome,
    /// The program could not be started.
    pub spawn_failed: Outcome,
    /// The working directory does not exist.
    pub directory_missing: Outcome,
    /// Nobody learned which process was started.
    pub identity_lost: Outcome,
    /// The deadline ended it.
    pub timed_out: Outcome,
    /// The terminal went away.
    pub hung_up: Outcome,
    /// The user interrupted it.
    pub interrupted: Outcome,
    /// The supervising command was told to end.
    pub terminated: Outcome,
    /// The parent it was to die with is gone.
    pub parent_gone: Outcome,
    /// The machine restarted under it.
    pub host_restarted: Outcome,
    /// It ended and nobody could observe how.
    pub ended_unobserved: Outcome,
    /// The verdict function failed.
    pub verdict_failed: Outcome,
    /// Later additions.
    pub ext: Vec<Extension>,
}

impl ExecutionRule {
    /// Every outcome the rule may write, with the name of its place.
    pub fn outcomes(&self) -> [(&'static str, &Outcome); 12] {
        [
            ("start", &self.start),
            ("spawn_failed", &self.spawn_failed),
            ("directory_missing", &self.directory_missing),
            ("identity_lost", &self.identity_lost),
            ("timed_out", &self.timed_out),
            ("hung_up", &self.hung_up),
            ("interrupted", &self.interrupted),
            ("terminated", &self.terminated),
            ("parent_gone", &self.parent_gone),
            ("host_restarted", &self.host_restarted),
            ("ended_unobserved", &self.ended_unobserved),
            ("verdict_failed", &self.verdict_failed),
        ]
    }
}

/// What an ending means; the first row that matches decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerdictRow {
    /// An inclusive range of exit codes.
    pub exit_codes: Option<(i64, i64)>,
    /// Signals; an empty list is any.
    pub signals: Option<Vec<i64>>,
    /// Causes; empty is any.
    pub causes: Vec<String>,
    /// present, wanted_and_absent or artifact_missing; none is any.
    pub evidence: Option<String>,
    /// What is written.
    pub outcome: Outcome,
    /// Later additions.
    pub ext: Vec<Extension>,
}

/// What a kill writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KillRow {
    /// Statuses it applies to.
    pub killable: Vec<String>,
    /// The status written.
    pub goes_to: String,
    /// Whether children are killed too.
    pub cascade: Cascade,
    /// Ended within the grace period.
    pub term_code: String,
    /// Ended by force.
    pub force_code: String,
    /// Ended by the sweep of what is positively gone.
    pub stale_code: String,
    /// Later additions.
    pub ext: Vec<Extension>,
}

/// How leased work is claimed, lost, found again and given up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseRule {
    /// The status that waits for a worker.
    pub queued: String,
    /// A worker has it.
    pub claimed: Outcome,
    /// Statuses that count against the limit of running work.
    pub active: Vec<String>,
    /// Length of a lease.
    pub lease: DurationMs,
    /// From the lapse to the fence.
    pub grace: DurationMs,
    /// A worker whose heartbeat is older may not claim.
    pub heartbeat_limit: DurationMs,
    /// How many starts.
    pub attempts: i64,
    /// The lease ran out with attempts left.
    pub lapsed: Outcome,
    /// The same holder came back in time.
    pub recovered: Option<Outcome>,
    /// The holder is shut out.
    pub fenced: Option<Outcome>,
    /// The lease ran out with no attempts left.
    pub exhausted: Outcome,
    /// Failed, another attempt is due later.
    pub backed_off: Option<Outcome>,
    /// The later attempt is due.
    pub retry_due: Option<Outcome>,
    /// Given back unharmed.
    pub handed_back: Option<Outcome>,
    /// Waits for another run.
    pub dependency_waiting: Option<Outcome>,
    /// The other run ended well.
    pub dependency_met: Option<Outcome>,
    /// The other run ended otherwise.
    pub dependency_failed: Option<Outcome>,
    /// Later additions.
    pub ext: Vec<Extension>,
}

impl LeaseRule {
    /// Every outcome the rule may write, with the name of its place.
    pub fn outcomes(&self) -> Vec<(&'static str, &Outcome)> {
        let optional = [
            ("recovered", &self.recovered),
            ("fenced", &self.fenced),
            ("backed_off", &self.backed_off),
            ("retry_due", &self.retry_due),
            ("handed_back", &self.handed_back),
            ("dependency_waiting", &self.dependency_waiting),
            ("dependency_met", &self.dependency_met),
            ("dependency_failed", &self.dependency_failed),
        ];
        let always = [
            ("claimed", &self.claimed),
            ("lapsed", &self.lapsed),
            ("exhausted", &self.exhausted),
        ];
        let given = optional
            .into_iter()
            .filter_map(|(place, outcome)| Some((place, outcome.as_ref()?)));
        always.into_iter().chain(given).collect()
    }
}

/// How a dispatch moves through its delivery.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliveryRule {
    /// Written at creation.
    pub enqueued: Outcome,
    /// Statuses from which a due dispatch may be claimed.
    pub claimable: Vec<String>,
    /// An attempt is being made.
    pub claimed: Outcome,
    /// The transport succeeded.
    pub delivered: Outcome,
    /// The transport succeeded, an acknowledgement is owed.
    pub awaiting_acknowledgement: Outcome,
    /// The consumer acknowledged.
    pub acknowledged: Outcome,
    /// No acknowledgement came.
    pub acknowledgement_missed: Outcome,
    /// Failed, tried again later.
    pub backed_off: Outcome,
    /// Failed for the last time.
    pub exhausted: Outcome,
    /// Permanently refused.
    pub refused: Outcome,
    /// Past its deadline.
    pub expired: Outcome,
    /// An operator asks for another round.
    pub revived: Outcome,
    /// Later additions.
    pub ext: Vec<Extension>,
}

impl DeliveryRule {
    /// Every outcome the rule may write, with the name of its place.
    pub fn outcomes(&self) -> [(&'static str, &Outcome); 11] {
        [
            ("enqueued", &self.enqueued),
            ("claimed", &self.claimed),
            ("delivered", &self.delivered),
            ("awaiting_acknowledgement", &self.awaiting_acknowledgement),
            ("acknowledged", &self.acknowledged),
            ("acknowledgement_missed", &self.acknowledgement_missed),
            ("backed_off", &self.backed_off),
            ("exhausted", &self.exhausted),
            ("refused", &self.refused),
            ("expired", &self.expired),
            ("revived", &self.revived),
        ]
    }
}

/// When a failed attempt is tried again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetrySchedule {
    /// Doubled per attempt made.
    pub base: DurationMs,
    /// Never longer.
    pub cap: DurationMs,
    /// How many attempts.
    pub attempts: i64,
    /// At most this share is added.
    pub jitter_percent: i64,
    /// Later additions.
    pub ext: Vec<Extension>,
}

/// How quiet an entity may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HealthThreshold {
    /// Which `spawn_kind`; empty is every other.
    pub spawn_kind: String,
    /// Idle when quiet for longer.
    pub idle: DurationMs,
    /// Stale when quiet for longer.
    pub stale: DurationMs,
}

/// A value that the operator sets at activation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: FieldKind,
    /// Used when nothing is set.
    pub default: Value,
    /// The only values admitted; empty admits all.
    pub choices: Vec<Value>,
    /// What it means.
    pub summary: String,
    /// Later additions.
    pub ext: Vec<Extension>,
}

/// What functions of the policy may see beside the entity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reads {
    /// Entities linked below.
    pub children: bool,
    /// How many of the newest history rows.
    pub history: i64,
    /// Tags.
    pub tags: bool,
    /// How many bytes of the end of the output.
    pub last_output_bytes: i64,
    /// Later additions.
    pub ext: Vec<Extension>,
}

/// A status of another version and the one that takes its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusMapping {
    /// The status left.
    pub from: String,
    /// The status entered.
    pub to: String,
}

/// How entities of another version are carried over. A status that is not listed keeps its name if this version has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Migration {
    /// The name of the policy they are under; empty is this policy's own.
    pub from_name: String,
    /// The version they are under, or its beginning: `1` is every 1.x.
    pub from_version: String,
    /// Statuses whose names differ.
    pub statuses: Vec<StatusMapping>,
    /// Later additions.
    pub ext: Vec<Extension>,
}

/// Everything about a kind that is data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Descriptor {
    /// The kind it governs.
    pub kind: String,
    /// The policy's name.
    pub name: String,
    /// Semantic version.
    pub version: String,
    /// What it is.
    pub summary: String,
    /// The vocabulary.
    pub statuses: Vec<Status>,
    /// The moves.
    pub edges: Vec<Edge>,
    /// Whether a status may be written again.
    pub same_status: SameStatus,
    /// Companion fields.
    pub fields: Vec<Field>,
    /// Reason codes admitted.
    pub reason_codes: Vec<ReasonCode>,
    /// Terminal statuses make events.
    pub emits_events: bool,
    /// The host fills `ended_at` and `duration_ms` at a terminal status.
    pub measures_end: bool,
    /// For kinds that are run.
    pub execution: Option<ExecutionRule>,
    /// What endings mean.
    pub verdicts: Vec<VerdictRow>,
    /// What kills write.
    pub kill: Vec<KillRow>,
    /// For leased kinds.
    pub lease: Option<LeaseRule>,
    /// For dispatches.
    pub delivery: Option<DeliveryRule>,
    /// For what is tried again.
    pub retry: Option<RetrySchedule>,
    /// How quiet is too quiet.
    pub health: Vec<HealthThreshold>,
    /// Set at activation.
    pub parameters: Vec<Parameter>,
    /// What functions may see.
    pub reads: Reads,
    /// How entities of other versions are carried over; the first that fits decides.
    #[serde(default)] // absent in what stores of earlier builds hold
    pub migrations: Vec<Migration>,
    /// Later additions.
    pub ext: Vec<Extension>,
}

impl Descriptor {
    /// The canonical JSON text: what is hashed, stored and compared.
    pub fn canonical(&self) -> String {
        serde_json::to_string(self).expect("a descriptor holds only JSON values and string keys")
    }

    /// `name@version`.
    pub fn label(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}
