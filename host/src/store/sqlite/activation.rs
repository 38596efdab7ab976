//! Components: installed, made active, removed.

use rusqlite::params;

use super::columns::{Columns, json};
use super::connection::Db;
use super::entity::{component, not_installed};
use super::failure::Fault;
use super::{history, judging};
use crate::model::{AdminEvent, RaisedLimits, Timestamp};
use crate::store::{Activation, Component, ComponentRecord, Installation, Signed};

/// Adds a component; see [`crate::store::Store::install`].
pub(super) fn install(db: &Db, installation: &Installation) -> Result<(), Fault> {
    for component in &installation.components {
        add(db, component)?;
    }
    for activation in &installation.activations {
        if !activate(db, activation)? {
            return Err(Fault::Refused(not_installed(&activation.digest)));
        }
    }
    for event in &installation.events {
        history::record(db, event)?;
    }
    Ok(())
}

/// Adds a component that is not there; one that is there gets the limits that are raised, where any is.
fn add(db: &Db, new: &Component) -> Result<(), Fault> {
    let record = &new.record;
    let raised = (!record.raised.is_empty()).then(|| json(&record.raised));
    let present = component(db, &record.digest)?;
    if let (Some(number), Some(_)) = (present, &raised) {
        let sql = "UPDATE components SET limits = ?2 WHERE component = ?1";
        db.write(sql, params![number, raised])?;
    }
    if present.is_none() {
        let sql = "INSERT INTO components (digest, kind, name, version, source, exports, size_bytes, installed_at_ms, \
                       limits) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) \
                   ON CONFLICT (digest) DO UPDATE SET kind = excluded.kind, name = excluded.name, \
                       version = excluded.version, source = excluded.source, exports = excluded.exports, \
                       size_bytes = excluded.size_bytes, installed_at_ms = excluded.installed_at_ms, \
                       limits = excluded.limits, removed_at_ms = NULL";
        db.write(
            sql,
            params![
                record.digest,
                record.kind,
                record.name,
                record.version,
                record.source,
                json(&record.exports),
                record.size_bytes,
                record.installed_at.as_ms(),
                raised,
            ],
        )?;
        let number = component(db, &record.digest)?.expect("it was installed in this transaction");
        let sql = "INSERT INTO component_contents (component, descriptor, bytes) VALUES (?1, ?2, ?3)";
        db.write(sql, params![number, new.descriptor, new.bytes])?;
    }
    sign(db, new)
}

/// Adds the signatures that a component has not.
fn sign(db: &Db, new: &Component) -> Result<(), Fault> {
    for signed in &new.signatures {
        let number = component(db, &new.record.digest)?.expect("it was installed in this transaction");
        let sql = "INSERT INTO signatures (component, public_key, key_id, signature, at_ms) VALUES (?1, ?2, ?3, ?4, ?5) \
                   ON CONFLICT (component, public_key) DO NOTHING";
        let Signed {
            public_key,
            key_id,
            signature,
            at,
        } = signed;
        db.write(sql, params![number, public_key, key_id, signature, at.as_ms()])?;
    }
    Ok(())
}

/// Adds an activation; false when its component is not installed.
pub(super) fn activate(db: &Db, activation: &Activation) -> Result<bool, Fault> {
    let Some(number) = component(db, &activation.digest)? else {
        return Ok(false);
    };
    let sql = "INSERT INTO activations (kind, component, parameters, at_ms, actor, reason) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let parameters = (!activation.parameters.is_empty()).then(|| json(&activation.parameters));
    let Activation {
        kind,
        at,
        actor,
        reason,
        ..
    } = activation;
    db.write(sql, params![kind, number, parameters, at.as_ms(), actor, reason])?;
    judging::in_force(db, kind, number)?;
    Ok(true)
}

/// Removes a component; false when it is pinned to, active, a shadow, or not there.
pub(super) fn remove(db: &Db, digest: &str, event: &AdminEvent) -> Result<bool, Fault> {
    let sql = format!(
        "SELECT c.component FROM components c \
         WHERE c.digest = ?1 AND c.removed_at_ms IS NULL AND c.in_use = 0 AND NOT coalesce({ACTIVE}, 0) \
           AND NOT EXISTS (SELECT 1 FROM shadows s WHERE s.component = c.component)"
    );
    let Some(number) = db.row(&sql, [digest], |row| row.get::<_, i64>(0))? else {
        return Ok(false);
    };
    db.write("DELETE FROM component_contents WHERE component = ?1", [number])?;
    db.write("DELETE FROM signatures WHERE component = ?1", [number])?;
    let sql = "UPDATE components SET removed_at_ms = ?2 WHERE component = ?1";
    db.write(sql, params![number, event.at.as_ms()])?;
    history::record(db, event)?;
    Ok(true)
}

/// Whether `components c` is the one for entities of its kind created now; NULL when none ever was.
const ACTIVE: &str = "(SELECT a.component = c.component FROM activations a WHERE a.kind = c.kind \
     ORDER BY a.activation DESC LIMIT 1)";

/// All components, in the order in which they were first installed.
pub(super) fn components(db: &Db) -> rusqlite::Result<Vec<ComponentRecord>> {
    let sql = format!(
        "SELECT c.component, c.digest, c.kind, c.name, c.version, c.source, c.exports, c.size_bytes, \
             c.installed_at_ms, coalesce({ACTIVE}, 0), c.in_use, c.limits \
         FROM components c WHERE c.removed_at_ms IS NULL ORDER BY c.component"
    );
    db.rows(&sql, [], |row| {
        let mut columns = Columns::of(row, "components");
        let _number: i64 = columns.take()?;
        Ok(ComponentRecord {
            digest: columns.take()?,
            kind: columns.take()?,
            name: columns.take()?,
            version: columns.take()?,
            source: columns.take()?,
            exports: columns.json()?,
            size_bytes: columns.take()?,
            installed_at: columns.moment()?,
            active: columns.take()?,
            in_use: columns.take()?,
            raised: columns.json()?,
        })
    })
}

/// How many live entities each component has.
pub(super) fn live_pins(db: &Db) -> rusqlite::Result<Vec<(String, i64)>> {
    let sql = "SELECT c.digest, count(*) FROM entities e INDEXED BY entities_live \
               CROSS JOIN components c ON c.component = e.component WHERE e.terminal = 0 GROUP BY c.component";
    db.rows(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Who signed which component.
pub(super) fn signatures(db: &Db) -> rusqlite::Result<Vec<(String, Signed)>> {
    let sql = "SELECT c.digest, s.public_key, s.key_id, s.signature, s.at_ms FROM signatures s \
               CROSS JOIN components c ON c.component = s.component ORDER BY s.component, s.at_ms, s.public_key";
    db.rows(sql, [], |row| {
        let signed = Signed {
            public_key: row.get(1)?,
            key_id: row.get(2)?,
            signature: row.get(3)?,
            at: Timestamp::from_ms(row.get(4)?),
        };
        Ok((row.get(0)?, signed))
    })
}

/// The limits that were raised for a component.
pub(super) fn raised_limits(db: &Db, digest: &str) -> rusqlite::Result<RaisedLimits> {
    let sql = "SELECT component, limits FROM components WHERE digest = ?1 AND removed_at_ms IS NULL";
    let found = db.row(sql, [digest], |row| {
        let mut columns = Columns::of(row, "components");
        let _number: i64 = columns.take()?;
        columns.json()
    })?;
    Ok(found.unwrap_or_default())
}

/// The canonical descriptor of a component.
pub(super) fn descriptor(db: &Db, digest: &str) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT o.descriptor FROM components c CROSS JOIN component_contents o ON o.component = c.component \
               WHERE c.digest = ?1";
    db.row(sql, [digest], |row| row.get(0))
}

/// The bytes of a component.
pub(super) fn bytes(db: &Db, digest: &str) -> rusqlite::Result<Option<Vec<u8>>> {
    let sql = "SELECT o.bytes FROM components c CROSS JOIN component_contents o ON o.component = c.component \
               WHERE c.digest = ?1";
    db.row(sql, [digest], |row| row.get(0))
}

/// The activations of a kind, newest first.
pub(super) fn activations(db: &Db, kind: &str) -> rusqlite::Result<Vec<Activation>> {
    let sql = "SELECT a.activation, a.kind, c.digest, a.parameters, a.at_ms, a.actor, a.reason \
               FROM activations a CROSS JOIN components c ON c.component = a.component \
               WHERE a.kind = ?1 ORDER BY a.activation DESC";
    db.rows(sql, [kind], |row| {
        let mut columns = Columns::of(row, "activations");
        let _number: i64 = columns.take()?;
        Ok(Activation {
            kind: columns.take()?,
            digest: columns.take()?,
            parameters: columns.json()?,
            at: columns.moment()?,
            actor: columns.take()?,
            reason: columns.take()?,
        })
    })
}
