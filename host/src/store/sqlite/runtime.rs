//! The inventory: runtime rows and work specifications.

use std::collections::{BTreeMap, HashMap};

use rusqlite::types::Value as Parameter;
use rusqlite::{Row, params_from_iter};

use super::columns::Columns;
use super::connection::Db;
use crate::model::{
    Actor, Containment, DurationMs, Entity, Place, ProcessIdentity, Reference, Runtime, RuntimeKind, RuntimeState,
    StopIntent,
};
use crate::store::{RuntimeAdded, RuntimeUpdate, Work};

const SELECT: &str = "SELECT r.runtime, i.kind, i.id, r.kind, r.state, r.stop_unconfirmed, r.host, r.boot_id, \
         r.pid_namespace, r.time_namespace, r.worker_pid, r.worker_start_ticks, r.worker_pidfs_inode, \
         r.worker_pidfs_handle, r.shim_pid, r.shim_start_ticks, r.shim_pidfs_inode, r.shim_pidfs_handle, \
         r.attempt_token, r.level, r.containment, r.process_group, r.cgroup, r.cwd, r.run_dir, r.remote_handle, \
         r.resume_token, r.stop_actor_kind, r.stop_actor_id, r.stop_note, r.stop_grace_ms, r.stop_at_ms, \
         r.created_at_ms, r.updated_at_ms";

fn decode(row: &Row<'_>) -> rusqlite::Result<Runtime> {
    let mut columns = Columns::of(row, "runtimes");
    Ok(Runtime {
        id: columns.take()?,
        owner: Reference {
            kind: columns.take()?,
            id: columns.take()?,
        },
        kind: columns.word(RuntimeKind::from_word)?,
        state: columns.word(RuntimeState::from_word)?,
        stop_unconfirmed: columns.take()?,
        place: Place {
            host: columns.take()?,
            boot_id: columns.take()?,
            pid_namespace: columns.take()?,
            time_namespace: columns.take()?,
        },
        worker: identity(&mut columns)?,
        shim: identity(&mut columns)?,
        attempt_token: columns.take()?,
        level: columns.take()?,
        containment: columns.word(Containment::from_word)?,
        process_group: columns.take()?,
        cgroup: columns.take()?,
        cwd: columns.take()?,
        run_dir: columns.take()?,
        remote_handle: columns.take()?,
        resume_token: columns.take()?,
        stop_intent: intent(&mut columns)?,
        created_at: columns.moment()?,
        updated_at: columns.moment()?,
    })
}

fn identity(columns: &mut Columns<'_, '_>) -> rusqlite::Result<Option<ProcessIdentity>> {
    let (pid, start_ticks): (Option<i64>, Option<i64>) = (columns.take()?, columns.take()?);
    let (pidfs_inode, pidfs_handle) = (columns.take()?, columns.take()?);
    Ok(pid.map(|pid| ProcessIdentity {
        pid,
        start_ticks,
        pidfs_inode,
        pidfs_handle,
    }))
}

fn intent(columns: &mut Columns<'_, '_>) -> rusqlite::Result<Option<StopIntent>> {
    let (kind, id): (Option<String>, Option<String>) = (columns.take()?, columns.take()?);
    let (note, grace, at) = (columns.take()?, columns.take::<Option<i64>>()?, columns.maybe_moment()?);
    let whole = kind.zip(id).zip(grace.zip(at));
    Ok(whole.map(|((kind, id), (grace, at))| StopIntent {
        actor: Actor { kind, id },
        note,
        grace: DurationMs::from_ms(grace),
        at,
    }))
}

/// What is written of a runtime row, in the order of [`NAMES`].
fn values(runtime: &Runtime) -> Vec<Parameter> {
    fn identity(of: Option<&ProcessIdentity>) -> [Parameter; 4] {
        [
            of.map(|identity| identity.pid).into(),
            of.and_then(|identity| identity.start_ticks).into(),
            of.and_then(|identity| identity.pidfs_inode).into(),
            of.and_then(|identity| identity.pidfs_handle.clone()).into(),
        ]
    }
    let intent = runtime.stop_intent.as_ref();
    let place = &runtime.place;
    let mut values = vec![
        runtime.kind.word().to_owned().into(),
        runtime.state.word().to_owned().into(),
        i64::from(runtime.stop_unconfirmed).into(),
        place.host.clone().into(),
        place.boot_id.clone().into(),
        place.pid_namespace.into(),
        place.time_namespace.into(),
    ];
    values.extend(identity(runtime.worker.as_ref()));
    values.extend(identity(runtime.shim.as_ref()));
    values.extend([
        runtime.attempt_token.clone().into(),
        runtime.level.clone().into(),
        runtime.containment.word().to_owned().into(),
        runtime.process_group.into(),
        runtime.cgroup.clone().into(),
        runtime.cwd.clone().into(),
        runtime.run_dir.clone().into(),
        runtime.remote_handle.clone().into(),
        runtime.resume_token.clone().into(),
        intent.map(|intent| intent.actor.kind.clone()).into(),
        intent.map(|intent| intent.actor.id.clone()).into(),
        intent.and_then(|intent| intent.note.clone()).into(),
        intent.map(|intent| intent.grace.as_ms()).into(),
        intent.map(|intent| intent.at.as_ms()).into(),
        runtime.updated_at.as_ms().into(),
    ]);
    values
}

/// The columns [`values`] fills.
const NAMES: &str = "kind, state, stop_unconfirmed, host, boot_id, pid_namespace, time_namespace, worker_pid, \
     worker_start_ticks, worker_pidfs_inode, worker_pidfs_handle, shim_pid, shim_start_ticks, shim_pidfs_inode, \
     shim_pidfs_handle, attempt_token, level, containment, process_group, cgroup, cwd, run_dir, remote_handle, \
     resume_token, stop_actor_kind, stop_actor_id, stop_note, stop_grace_ms, stop_at_ms, updated_at_ms";

/// Places for the values of [`NAMES`].
const PLACES: &str = "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, \
     ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30";

/// Adds a runtime row for the entity of number `owner`; the row's number.
pub(super) fn insert(db: &Db, owner: i64, runtime: &Runtime) -> rusqlite::Result<i64> {
    let sql = format!("INSERT INTO runtimes ({NAMES}, created_at_ms, owner) VALUES ({PLACES}, ?31, ?32)");
    let mut values = values(runtime);
    values.extend([runtime.created_at.as_ms().into(), owner.into()]);
    db.write(&sql, params_from_iter(values))?;
    Ok(db.inserted())
}

/// Adds a runtime row to the entity that it names, which must be there, not have ended, and have nothing else that may
/// be running.
pub(super) fn add(db: &Db, runtime: &Runtime) -> rusqlite::Result<RuntimeAdded> {
    let owner = &runtime.owner;
    let sql = "SELECT e.entity, e.terminal FROM entity_ids i JOIN entities e ON e.entity = i.entity \
               WHERE i.id = ?1 AND i.kind = ?2";
    let found = db.row(sql, [&owner.id, &owner.kind], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?))
    })?;
    let Some((entity, is_terminal)) = found else {
        return Ok(RuntimeAdded::OwnerMissing);
    };
    if is_terminal {
        return Ok(RuntimeAdded::OwnerEnded);
    }
    let sql = "SELECT runtime FROM runtimes WHERE owner = ?1 AND state <> 'stopped' LIMIT 1";
    if let Some(other) = db.row(sql, [entity], |row| row.get(0))? {
        return Ok(RuntimeAdded::InUse(other));
    }
    insert(db, entity, runtime).map(RuntimeAdded::New)
}

/// Writes runtime rows, those that are there and in a state that their update admits; whether there was one.
pub(super) fn update(db: &Db, updates: &[RuntimeUpdate]) -> rusqlite::Result<bool> {
    let mut wrote = false;
    for update in updates {
        wrote |= update_one(db, update)?;
    }
    Ok(wrote)
}

/// The runtime row of that number.
pub(super) fn runtime(db: &Db, id: i64) -> rusqlite::Result<Option<Runtime>> {
    let sql = format!("{SELECT} FROM runtimes r {OWNER} WHERE r.runtime = ?1");
    db.row(&sql, [id], decode)
}

fn update_one(db: &Db, update: &RuntimeUpdate) -> rusqlite::Result<bool> {
    let Some(mut runtime) = runtime(db, update.id)? else {
        return Ok(false);
    };
    let changed = update.change(&mut runtime);
    if changed {
        let sql = format!("UPDATE runtimes SET ({NAMES}) = ({PLACES}) WHERE runtime = ?31");
        let mut values = values(&runtime);
        values.push(update.id.into());
        db.write(&sql, params_from_iter(values))?;
    }
    Ok(changed)
}

const OWNER: &str = "CROSS JOIN entity_ids i ON i.entity = r.owner";

/// Runtime rows of these entities, or those that are not stopped; by number.
pub(super) fn runtimes(db: &Db, owners: Option<&[Reference]>) -> rusqlite::Result<Vec<Runtime>> {
    let Some(owners) = owners else {
        let sql = format!(
            "{SELECT} FROM runtimes r INDEXED BY runtimes_not_stopped {OWNER} \
             WHERE r.state <> 'stopped' ORDER BY r.runtime"
        );
        return db.rows(&sql, [], decode);
    };
    let sql = format!(
        "{SELECT} FROM entity_ids i CROSS JOIN runtimes r ON r.owner = i.entity WHERE i.id = ?1 AND i.kind = ?2"
    );
    let mut found = BTreeMap::new();
    for owner in owners {
        let rows = db.rows(&sql, [&owner.id, &owner.kind], decode)?;
        found.extend(rows.into_iter().map(|runtime| (runtime.id, runtime)));
    }
    Ok(found.into_values().collect())
}

/// The newest runtime row of each of these entities, whose numbers come as a JSON array.
pub(super) fn newest(db: &Db, entities: &str) -> rusqlite::Result<HashMap<String, Runtime>> {
    let sql = format!(
        "{SELECT} FROM json_each(?1) n CROSS JOIN runtimes r INDEXED BY runtimes_by_owner ON r.owner = n.value {OWNER}"
    );
    let mut newest: HashMap<String, Runtime> = HashMap::new();
    for runtime in db.rows(&sql, [entities], decode)? {
        let known = newest.get(&runtime.owner.id);
        if known.is_none_or(|known| known.id < runtime.id) {
            newest.insert(runtime.owner.id.clone(), runtime);
        }
    }
    Ok(newest)
}

/// The work specification of a run.
pub(super) fn work(db: &Db, entity: &Entity) -> rusqlite::Result<Option<Work>> {
    let sql = "SELECT entity, work FROM works WHERE entity = ?1";
    Ok(db.row(sql, [entity.row], decode_work)?.map(|(_, work)| work))
}

/// The work specifications of these entities, whose numbers come as a JSON array; by number.
pub(super) fn works(db: &Db, entities: &str) -> rusqlite::Result<HashMap<i64, Work>> {
    let sql = "SELECT w.entity, w.work FROM json_each(?1) n CROSS JOIN works w ON w.entity = n.value";
    Ok(db.rows(sql, [entities], decode_work)?.into_iter().collect())
}

fn decode_work(row: &Row<'_>) -> rusqlite::Result<(i64, Work)> {
    let mut columns = Columns::of(row, "works");
    Ok((columns.take()?, Work(columns.json()?)))
}
