//! What is kept of the calls of guards and verdict functions, and of what was seen of ends, with the row that came of them:
//! the one place where that is written and read again. A decision that cannot be made again from what was stored could not
//! be judged by another version of its policy either.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::{
    Actor, Bytes, DurationMs, EndSeen, Entity, EventId, Fields, HistoryRow, Outcome, PolicyPin, Reads, Reason,
    Reference, Structural, Tags, Timestamp,
};
use crate::policy::{GuardRequest, Surroundings, VerdictRequest, sha256_hex};

/// How large the request of a call may be to be kept whole; of a larger one its digest and size are kept. An entity with a
/// page of fields and its last hundred history rows is well below it.
const REQUEST_BYTES_MAX: usize = 64 << 10;

/// The member under which a row that tells an end keeps what was seen of it.
const ENDING: &str = "ending";

/// A call as it is kept: component, request and decision.
pub(super) fn call(component: &str, request: Value, decision: Value) -> Value {
    let text = request.to_string();
    let digest = sha256_hex(text.as_bytes());
    let kept = if text.len() <= REQUEST_BYTES_MAX {
        request
    } else {
        Value::Null
    };
    json!({
        "component": component,
        "request": kept,
        "request_bytes": text.len(),
        "request_digest": digest,
        "decision": decision,
    })
}

/// An end as it is kept: what was seen, with the call of the verdict function if there was one.
pub(super) fn end(seen: &EndSeen, call: Option<Value>) -> Value {
    let mut kept = call.unwrap_or_else(|| json!({}));
    kept[ENDING] = seen.to_value();
    kept
}

/// What was seen of the end that a row tells; none if it tells none.
pub(super) fn end_of(kept: &Value) -> Option<EndSeen> {
    EndSeen::from_value(kept.get(ENDING)?)
}

/// Why a call is not there to be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// None was made.
    NotAsked,
    /// Its request was too large to be kept.
    TooLarge,
    /// Its request is not in a form that is known.
    Unreadable,
}

/// The request of a kept call.
pub(super) fn request<T: DeserializeOwned>(kept: &Value) -> Result<T, Missing> {
    match kept.get("request") {
        None => Err(Missing::NotAsked),
        Some(Value::Null) => Err(Missing::TooLarge),
        Some(request) => T::deserialize(request).map_err(|_| Missing::Unreadable),
    }
}

/// What a guard is asked, as it is kept: what it saw, no more, keys sorted, times in milliseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct KeptGuard {
    entity: KeptEntity,
    target: String,
    reason: Reason,
    actor: Actor,
    pub(super) patch: Fields,
    pub(super) guards: Fields,
    pub(super) overridden: bool,
    #[serde(flatten)]
    seen: KeptSurroundings,
}

impl KeptGuard {
    /// A request in the form in which it is kept.
    pub(super) fn of(request: &GuardRequest<'_>, reads: &Reads) -> Self {
        Self {
            entity: KeptEntity::of(request.entity, reads),
            target: request.target.to_owned(),
            reason: request.reason.clone(),
            actor: request.actor.clone(),
            patch: request.patch.clone(),
            guards: request.guards.clone(),
            overridden: request.overridden,
            seen: KeptSurroundings::of(request.surroundings, reads),
        }
    }

    /// What it saw, for a policy that reads so much: the entity as pinned to it, and what was around it. None when it reads
    /// what was not kept.
    pub(super) fn sight(&self, pin: &PolicyPin, reads: &Reads) -> Option<(Entity, Surroundings)> {
        self.seen.sight(&self.entity, pin, reads)
    }

    /// Adds what it saw of an entity to what else is known of it.
    pub(super) fn complete(&self, entity: &mut Entity) {
        let seen = self.entity.entity(&entity.policy);
        let (status, terminal) = (std::mem::take(&mut entity.status), entity.terminal);
        *entity = Entity {
            status,
            terminal,
            ..seen
        };
    }

    /// The same question about what it saw.
    pub(super) fn request<'a>(&'a self, entity: &'a Entity, surroundings: &'a Surroundings) -> GuardRequest<'a> {
        GuardRequest {
            entity,
            target: &self.target,
            reason: &self.reason,
            actor: &self.actor,
            patch: &self.patch,
            guards: &self.guards,
            overridden: self.overridden,
            surroundings,
        }
    }
}

/// What was observed of an end that a verdict function may see beside entity and surroundings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Observed {
    pub(super) exit_code: Option<i64>,
    pub(super) signal: Option<i64>,
    pub(super) cause: String,
    /// The reason code of a stop that was wanted before the end.
    pub(super) stop_intent: Option<String>,
    #[serde(rename = "started_at_ms")]
    pub(super) started_at: Timestamp,
    #[serde(rename = "ended_at_ms")]
    pub(super) ended_at: Timestamp,
    #[serde(rename = "duration_ms")]
    pub(super) duration: DurationMs,
    /// Processor time in user and system mode, in milliseconds, and the largest resident size in bytes.
    pub(super) usage: Option<(i64, i64, i64)>,
    pub(super) artifacts: Vec<(String, String)>,
    pub(super) evidence_wanted: bool,
    pub(super) artifacts_missing: Vec<String>,
    /// As much of the end of the output as the policy reads.
    pub(super) last_output: Bytes,
    /// Which start of its row the run is, and how many are left; none for a run of its own.
    #[serde(default)] // calls were kept without it
    pub(super) of_row: Option<(i64, i64)>,
}

impl Observed {
    /// The question about it.
    pub(super) fn request<'a>(
        &'a self,
        entity: &'a Entity,
        by_table: Option<&'a Outcome>,
        surroundings: &'a Surroundings,
    ) -> VerdictRequest<'a> {
        VerdictRequest {
            entity,
            exit_code: self.exit_code,
            signal: self.signal,
            cause: &self.cause,
            stop_intent: self.stop_intent.as_deref(),
            started_at: self.started_at,
            ended_at: self.ended_at,
            duration: self.duration,
            usage: self.usage,
            artifacts: &self.artifacts,
            evidence_wanted: self.evidence_wanted,
            artifacts_missing: &self.artifacts_missing,
            last_output: &self.last_output.0,
            by_table,
            of_row: self.of_row,
            surroundings,
        }
    }
}

/// What a verdict function is asked, as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct KeptVerdict {
    entity: KeptEntity,
    #[serde(flatten)]
    pub(super) observed: Observed,
    /// How much of the output it could see; what is shorter is all of it.
    last_output_limit_bytes: i64,
    by_table: Option<Outcome>,
    #[serde(flatten)]
    seen: KeptSurroundings,
}

impl KeptVerdict {
    /// A question in the form in which it is kept.
    pub(super) fn of(
        observed: &Observed,
        entity: &Entity,
        by_table: Option<&Outcome>,
        (surroundings, reads): (&Surroundings, &Reads),
    ) -> Self {
        Self {
            entity: KeptEntity::of(entity, reads),
            observed: observed.clone(),
            last_output_limit_bytes: reads.last_output_bytes,
            by_table: by_table.cloned(),
            seen: KeptSurroundings::of(surroundings, reads),
        }
    }

    /// As [`KeptGuard::sight`]; the output is cut to what the policy reads.
    pub(super) fn sight(&self, pin: &PolicyPin, reads: &Reads) -> Option<(Entity, Surroundings, Observed)> {
        let mut observed = self.observed.clone();
        let output = &mut observed.last_output.0;
        let wanted = usize::try_from(reads.last_output_bytes).unwrap_or(0);
        let is_all = i64::try_from(output.len()).is_ok_and(|length| length < self.last_output_limit_bytes);
        if wanted > output.len() && !is_all && reads.last_output_bytes > self.last_output_limit_bytes {
            return None;
        }
        output.drain(..output.len().saturating_sub(wanted));
        let (entity, surroundings) = self.seen.sight(&self.entity, pin, reads)?;
        Some((entity, surroundings, observed))
    }
}

/// An entity as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeptEntity {
    #[serde(rename = "ref")]
    reference: String,
    status: String,
    version: i64,
    reason: Reason,
    fields: Fields,
    /// None where the policy does not read them.
    tags: Option<Tags>,
    #[serde(rename = "created_at_ms")]
    created_at: Timestamp,
    #[serde(rename = "updated_at_ms")]
    updated_at: Timestamp,
    root: Option<String>,
    generation: i64,
    chain_parent: Option<String>,
}

impl KeptEntity {
    fn of(entity: &Entity, reads: &Reads) -> Self {
        Self {
            reference: entity.reference.to_string(),
            status: entity.status.clone(),
            version: entity.version,
            reason: entity.reason.clone(),
            fields: entity.all_fields(),
            tags: reads.tags.then(|| entity.tags.clone()),
            created_at: entity.created_at,
            updated_at: entity.updated_at,
            root: entity.root.clone(),
            generation: entity.generation,
            chain_parent: entity.chain_parent.clone(),
        }
    }

    fn entity(&self, pin: &PolicyPin) -> Entity {
        let mut entity = Entity {
            version: self.version,
            reason: self.reason.clone(),
            tags: self.tags.clone().unwrap_or_default(),
            root: self.root.clone(),
            generation: self.generation,
            chain_parent: self.chain_parent.clone(),
            created_at: self.created_at,
            updated_at: self.updated_at,
            ..bare(reference(&self.reference), &self.status, pin)
        };
        for (name, value) in &self.fields {
            entity.set_field(name, value);
        }
        entity
    }
}

/// An entity of which nothing is known but what it is and how it stands.
pub(super) fn bare(reference: Reference, status: &str, pin: &PolicyPin) -> Entity {
    Entity {
        row: 0,
        reference,
        name: None,
        status: status.to_owned(),
        terminal: false,
        success: false,
        version: 1,
        reason: Reason::default(),
        policy: pin.clone(),
        fields: Fields::new(),
        structural: Structural::default(),
        tags: Tags::new(),
        unique_key: None,
        fence: 0,
        queued: None,
        root: None,
        generation: 0,
        chain_parent: None,
        notify: Value::Null,
        created_at: Timestamp::default(),
        updated_at: Timestamp::default(),
    }
}

/// What is written as `kind/id`.
pub(super) fn reference(words: &str) -> Reference {
    let (kind, id) = words.split_once('/').unwrap_or(("", words));
    Reference::new(kind, id)
}

/// What was around an entity, as it is kept; none where the policy does not read it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeptSurroundings {
    #[serde(rename = "now_ms")]
    now: Timestamp,
    parameters: Fields,
    children: Option<Vec<KeptChild>>,
    history: Option<Vec<KeptRow>>,
}

impl KeptSurroundings {
    fn of(surroundings: &Surroundings, reads: &Reads) -> Self {
        Self {
            now: surroundings.now,
            parameters: surroundings.parameters.clone(),
            children: reads
                .children
                .then(|| surroundings.children.iter().map(KeptChild::of).collect()),
            history: (reads.history > 0).then(|| surroundings.history.iter().map(KeptRow::of).collect()),
        }
    }

    /// None when the policy reads what was not kept.
    fn sight(&self, entity: &KeptEntity, pin: &PolicyPin, reads: &Reads) -> Option<(Entity, Surroundings)> {
        if reads.tags && entity.tags.is_none() {
            return None;
        }
        let mut seen = Surroundings {
            now: self.now,
            parameters: self.parameters.clone(),
            ..Surroundings::default()
        };
        if reads.children {
            seen.children = self.children.as_ref()?.iter().map(|child| child.entity(pin)).collect();
        }
        // Of an entity there are as many rows as it has versions, and the newest of them were kept.
        let wanted = usize::try_from(reads.history.min(entity.version)).unwrap_or(0);
        if wanted > 0 {
            let rows = self.history.as_ref().filter(|rows| rows.len() >= wanted)?;
            let reference = reference(&entity.reference);
            seen.history = rows[..wanted].iter().map(|row| row.row(&reference, pin)).collect();
        }
        Some((entity.entity(pin), seen))
    }
}

/// What is linked below, as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeptChild {
    #[serde(rename = "ref")]
    reference: String,
    status: String,
    terminal: bool,
    success: bool,
}

impl KeptChild {
    fn of(child: &Entity) -> Self {
        Self {
            reference: child.reference.to_string(),
            status: child.status.clone(),
            terminal: child.terminal,
            success: child.success,
        }
    }

    fn entity(&self, pin: &PolicyPin) -> Entity {
        Entity {
            terminal: self.terminal,
            success: self.success,
            ..bare(reference(&self.reference), &self.status, pin)
        }
    }
}

/// A history row as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeptRow {
    previous_status: Option<String>,
    status: String,
    version: i64,
    reason: Reason,
    actor: Actor,
    #[serde(rename = "at_ms")]
    at: Timestamp,
}

impl KeptRow {
    fn of(row: &HistoryRow) -> Self {
        Self {
            previous_status: row.previous_status.clone(),
            status: row.status.clone(),
            version: row.version,
            reason: row.reason.clone(),
            actor: row.actor.clone(),
            at: row.at,
        }
    }

    fn row(&self, reference: &Reference, pin: &PolicyPin) -> HistoryRow {
        HistoryRow {
            id: EventId::new("", &reference.id, self.version),
            reference: reference.clone(),
            previous_status: self.previous_status.clone(),
            status: self.status.clone(),
            reason: self.reason.clone(),
            actor: self.actor.clone(),
            at: self.at,
            version: self.version,
            policy_digest: pin.digest.clone(),
            metadata: Value::Null,
            guarded: Value::Null,
        }
    }
}

/// As the JSON that is kept.
pub(super) fn to_value(kept: &impl Serialize) -> Value {
    serde_json::to_value(kept).expect("what is kept has text keys and finite numbers")
}

#[cfg(test)]
mod tests;
