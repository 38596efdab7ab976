//! Rows of entities: read and changed.

use rusqlite::{Row, params};

use super::columns::{Columns, json};
use super::connection::Db;
use super::failure::Fault;
use super::history::{self, Outline};
use super::{judging, outbox, queue, runtime, waiting};
use crate::model::{Change, Entity, Fields, HistoryRow, PolicyPin, Queued, Reason, Reference, Stage, Structural};
use crate::store::{Applied, EffectSet, StoreError};

/// The columns [`decode`] takes, of `entities e`, `entity_ids i` and `components c`.
pub(super) const COLUMNS: &str = "e.entity, e.kind, i.id, e.name, e.status, e.terminal, e.success, e.version, \
     e.reason_code, e.reason_summary, e.reason_evidence, c.name, c.version, c.digest, e.fields, e.ended_at_ms, \
     e.exit_code, e.term_signal, e.cause, e.attempt, e.next_attempt_at_ms, e.leased_by, e.lease_expires_at_ms, \
     e.lease_attempts, e.unknown_since_ms, e.tags, e.unique_key, e.fence, e.root, e.generation, e.chain_parent, \
     e.notify, e.created_at_ms, e.updated_at_ms, e.parameters, e.queue, e.priority, e.stage";

/// The tables beside `entities e` that [`COLUMNS`] names. CROSS JOIN keeps the order: the entity is found first.
pub(super) const JOINS: &str = "CROSS JOIN entity_ids i ON i.entity = e.entity \
     CROSS JOIN components c ON c.component = e.component";

/// An entity out of a row of [`COLUMNS`].
pub(super) fn decode(row: &Row<'_>) -> rusqlite::Result<Entity> {
    let mut columns = Columns::of(row, "entities");
    let mut entity = Entity {
        row: columns.take()?,
        reference: Reference {
            kind: columns.take()?,
            id: columns.take()?,
        },
        name: columns.take()?,
        status: columns.take()?,
        terminal: columns.take()?,
        success: columns.take()?,
        version: columns.take()?,
        reason: Reason {
            code: columns.take()?,
            summary: columns.take()?,
            evidence: columns.json()?,
        },
        policy: PolicyPin {
            name: columns.take()?,
            version: columns.take()?,
            digest: columns.take()?,
            parameters: Fields::new(),
        },
        fields: columns.json()?,
        structural: Structural {
            ended_at: columns.maybe_moment()?,
            exit_code: columns.take()?,
            term_signal: columns.take()?,
            cause: columns.take()?,
            attempt: columns.take()?,
            next_attempt_at: columns.maybe_moment()?,
            leased_by: columns.take()?,
            lease_expires_at: columns.maybe_moment()?,
            lease_attempts: columns.take()?,
            unknown_since: columns.maybe_moment()?,
        },
        tags: columns.json()?,
        unique_key: columns.take()?,
        fence: columns.take()?,
        queued: None,
        root: columns.take()?,
        generation: columns.take()?,
        chain_parent: columns.take()?,
        notify: columns.json()?,
        created_at: columns.moment()?,
        updated_at: columns.moment()?,
    };
    entity.policy.parameters = columns.json()?;
    if let Some(queue) = columns.take()? {
        entity.queued = Some(Queued {
            queue,
            priority: columns.take()?,
            stage: columns.take::<Option<i64>>()?.and_then(Stage::from_number),
        });
    }
    Ok(entity)
}

/// The entity of that id, when it is there.
pub(super) fn load(db: &Db, id: &str) -> rusqlite::Result<Option<Entity>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM entity_ids i CROSS JOIN entities e ON e.entity = i.entity \
         CROSS JOIN components c ON c.component = e.component WHERE i.id = ?1"
    );
    db.row(&sql, [id], decode)
}

/// The entity of that number, when it is there.
pub(super) fn load_row(db: &Db, row: i64) -> rusqlite::Result<Option<Entity>> {
    db.row(
        &format!("SELECT {COLUMNS} FROM entities e {JOINS} WHERE e.entity = ?1"),
        [row],
        decode,
    )
}

/// The entities of these numbers, in their order.
pub(super) fn load_rows(db: &Db, rows: impl IntoIterator<Item = i64>) -> rusqlite::Result<Vec<Entity>> {
    let loaded = rows.into_iter().map(|row| load_row(db, row));
    loaded.filter_map(Result::transpose).collect()
}

/// The number of an installed component.
pub(super) fn component(db: &Db, digest: &str) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT component FROM components WHERE digest = ?1 AND removed_at_ms IS NULL";
    db.row(sql, [digest], |row| row.get(0))
}

/// The number of the component an entity or a history row names; naming one that is not installed is refused.
pub(super) fn pinned(db: &Db, digest: &str) -> Result<i64, Fault> {
    component(db, digest)?.ok_or_else(|| Fault::Refused(not_installed(digest)))
}

/// The number of the component that admitted a history row of an entity pinned to `pin`.
pub(super) fn admitted(db: &Db, pin: i64, entity: &Entity, row: &HistoryRow) -> Result<i64, Fault> {
    if row.policy_digest == entity.policy.digest {
        Ok(pin)
    } else {
        pinned(db, &row.policy_digest)
    }
}

/// The error of naming a component that is not installed.
pub(crate) fn not_installed(digest: &str) -> StoreError {
    let source = format!("the component {digest} is not installed").into();
    StoreError::Failed {
        doing: "pinning to a policy",
        source,
    }
}

/// Counts an entity in or out at its component: the only place that writes `in_use`.
pub(super) fn count_pin(db: &Db, component: i64, change: i64) -> rusqlite::Result<()> {
    db.write(
        "UPDATE components SET in_use = in_use + ?2 WHERE component = ?1",
        params![component, change],
    )?;
    Ok(())
}

/// The number of an id that is or was in use.
pub(super) fn number(db: &Db, id: &str) -> rusqlite::Result<Option<i64>> {
    db.row("SELECT entity FROM entity_ids WHERE id = ?1", [id], |row| row.get(0))
}

/// Whether an id is or was in use.
pub(super) fn id_is_taken(db: &Db, id: &str) -> rusqlite::Result<bool> {
    Ok(number(db, id)?.is_some())
}

/// The stage of an entity as a column keeps it.
pub(super) fn stage(entity: &Entity) -> Option<i64> {
    entity.queued.as_ref()?.stage.map(Stage::number)
}

/// What was set for the policy of an entity as a column keeps it.
pub(super) fn parameters(entity: &Entity) -> Option<String> {
    let set = &entity.policy.parameters;
    (!set.is_empty()).then(|| json(set))
}

/// The evidence of a reason as a column keeps it.
pub(super) fn evidence(reason: &Reason) -> Option<String> {
    (!reason.evidence.is_empty()).then(|| json(&reason.evidence))
}

/// Applies a change; see [`crate::store::Store::apply`].
pub(super) fn apply(db: &Db, effects: &EffectSet) -> Result<Applied, Fault> {
    let change = &effects.change;
    let (row, after) = (change.after.row, &change.after);
    let lost = || Ok(Applied::Lost(load(db, &after.reference.id)?.map(Box::new)));
    let found = before(db, change)?.filter(|before| effects.shadow.fits(before.shadow.as_deref()));
    let Some(before) = found else {
        return lost();
    };
    if let Some(key) = &change.key {
        // The version still fits, so whoever used the key did so before the entity was read: read again and see it.
        let sql = "SELECT 1 FROM keys WHERE scope = ?1 AND key = ?2";
        if db.row(sql, params![row, key.key], |_| Ok(()))?.is_some() {
            return lost();
        }
    }
    let pin = before
        .pin
        .ok_or_else(|| Fault::Refused(not_installed(&after.policy.digest)))?;
    if let Some(queue) = before.queue_to_admit(after)
        && let Some(why) = queue::refused(db, queue)?
    {
        return Ok(Applied::NoRoom(why));
    }
    if update(db, pin, change)? == 0 {
        return lost();
    }
    if pin != before.component {
        count_pin(db, before.component, -1)?;
        count_pin(db, pin, 1)?;
    }
    if let Some(held) = before.held {
        outbox::hold_or_release(db, after, held)?;
    }
    record(db, effects, pin)?;
    if after.terminal && !before.terminal {
        match &effects.successor {
            Some(successor) => waiting::succeed(db, row, successor)?,
            None => waiting::note_end(db, row, after.success)?,
        }
        if before.queue.is_some() {
            waiting::wait_no_more(db, row)?;
        }
    }
    Ok(Applied::Written)
}

/// Writes what goes with a change: history, notices, audit rows, key and runtime rows.
fn record(db: &Db, effects: &EffectSet, pin: i64) -> Result<(), Fault> {
    let change = &effects.change;
    let row = change.after.row;
    history::append(
        db,
        &Outline {
            entity: row,
            component: admitted(db, pin, &change.after, &change.row)?,
            row: &change.row,
            event: change.event.as_ref(),
        },
    )?;
    outbox::plan(db, row, change.row.version, &change.planned)?;
    if let Some(health) = &effects.destination {
        outbox::note_health(db, health)?;
    }
    for event in &change.admin {
        history::record(db, event)?;
    }
    if let Some(key) = &change.key {
        let sql = "INSERT INTO keys (scope, key, entity, version, command_digest) VALUES (?1, ?2, ?1, ?3, ?4)";
        db.write(sql, params![row, key.key, change.row.version, key.command_digest])?;
    }
    if let Some(judged) = effects.shadow.judged() {
        judging::count(db, judged)?;
    }
    runtime::update(db, &effects.runtimes)?;
    Ok(())
}

/// What a change finds.
struct Before {
    /// The component the entity is pinned to.
    component: i64,
    /// The component it is to be pinned to, if it is installed.
    pin: Option<i64>,
    /// Whether it holds a deduplication key, when it is a dispatch.
    held: Option<bool>,
    terminal: bool,
    queue: Option<String>,
    stage: Option<Stage>,
    /// The digest of the policy that judges its kind beside others.
    shadow: Option<String>,
}

impl Before {
    /// The queue that has to have room, when somebody takes the row.
    fn queue_to_admit(&self, after: &Entity) -> Option<&str> {
        let is_held = |stage: Option<Stage>| stage.is_some_and(Stage::is_held);
        let stage = after.queued.as_ref().and_then(|queued| queued.stage);
        self.queue.as_deref().filter(|_| is_held(stage) && !is_held(self.stage))
    }
}

/// The row that a change is about, when it has the version that the change was decided on.
fn before(db: &Db, change: &Change) -> rusqlite::Result<Option<Before>> {
    let sql = "SELECT e.component, c.component, d.held, e.terminal, e.queue, e.stage, \
                   (SELECT k.digest FROM shadows s CROSS JOIN components k ON k.component = s.component \
                    WHERE s.kind = e.kind) \
               FROM entities e \
               LEFT JOIN components c ON c.digest = ?3 AND c.removed_at_ms IS NULL \
               LEFT JOIN dispatches d ON d.entity = e.entity WHERE e.entity = ?1 AND e.version = ?2";
    let values = params![change.after.row, change.expected_version, change.after.policy.digest];
    db.row(sql, values, |found| {
        Ok(Before {
            component: found.get(0)?,
            pin: found.get(1)?,
            held: found.get(2)?,
            terminal: found.get(3)?,
            queue: found.get(4)?,
            stage: found.get::<_, Option<i64>>(5)?.and_then(Stage::from_number),
            shadow: found.get(6)?,
        })
    })
}

/// The compare-and-set. What is fixed at creation (kind, id, name, tags, lineage, notify settings) is not written.
fn update(db: &Db, component: i64, change: &Change) -> rusqlite::Result<usize> {
    let sql = "UPDATE entities SET status = ?3, terminal = ?4, success = ?5, version = ?6, reason_code = ?7, \
                   reason_summary = ?8, reason_evidence = ?9, component = ?10, fields = ?11, ended_at_ms = ?12, \
                   exit_code = ?13, term_signal = ?14, cause = ?15, attempt = ?16, next_attempt_at_ms = ?17, \
                   leased_by = ?18, lease_expires_at_ms = ?19, lease_attempts = ?20, unknown_since_ms = ?21, \
                   unique_key = ?22, fence = ?23, updated_at_ms = ?24, due_at_ms = ?25, \
                   stage = CASE WHEN queue IS NULL THEN NULL ELSE ?26 END, parameters = ?27 \
               WHERE entity = ?1 AND version = ?2";
    let after = &change.after;
    let structural = &after.structural;
    db.write(
        sql,
        params![
            after.row,
            change.expected_version,
            after.status,
            after.terminal,
            after.success,
            after.version,
            after.reason.code,
            after.reason.summary,
            evidence(&after.reason),
            component,
            (!after.fields.is_empty()).then(|| json(&after.fields)),
            structural.ended_at.map(|at| at.as_ms()),
            structural.exit_code,
            structural.term_signal,
            structural.cause,
            structural.attempt,
            structural.next_attempt_at.map(|at| at.as_ms()),
            structural.leased_by,
            structural.lease_expires_at.map(|at| at.as_ms()),
            structural.lease_attempts,
            structural.unknown_since.map(|at| at.as_ms()),
            after.unique_key,
            after.fence,
            after.updated_at.as_ms(),
            after.due_at().map(|at| at.as_ms()),
            stage(after),
            parameters(after),
        ],
    )
}
