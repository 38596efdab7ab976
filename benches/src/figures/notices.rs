//! An end that tells of itself: the commit of a terminal status with one planned dispatch.

use anyhow::{Context as _, Result, ensure};
use runwarden_host::Host;
use runwarden_host::model::{
    Actor, Change, Destination, Dispatch, Entity, Event, EventId, HistoryRow, NewDispatch, Planned, Reason, Reference,
    TIMEOUT_DEFAULT, Transport, sha256_hex,
};
use runwarden_host::store::{Applied, EffectSet};
use rusqlite::params;
use serde_json::{Value, json};

use super::raw::Raw;
use super::{ping, time, transitions};
use crate::harness::{Effort, Home, Row, Sample, Target, interleave, measured, median};

/// The store's method beside a bare program that writes the same rows.
pub(super) fn figure(effort: Effort) -> Result<Vec<Row>> {
    let (home, raw_home) = (Home::new()?, Home::new()?);
    let host = transitions::prepared(&home)?;
    let other = transitions::prepared(&raw_home)?;
    let count = effort.choose(20, 200);
    let rounds = effort.choose(3, 11);
    let all = count * (rounds + 1); // one round is made before any is counted
    for (home, host) in [(&home, &host), (&raw_home, &other)] {
        ping::make(host, "first")?; // so that the components are in the log before anything is measured
        fill(&Raw::open(&home.database())?, all)?;
    }
    drop(other);
    let raw = Raw::open(&raw_home.database())?;
    let operations = u64::try_from(count)?;
    let mut next = 0;
    let ours = || {
        let from = next;
        next += count;
        let ends = (from..next)
            .map(|number| end(&host, number))
            .collect::<Result<Vec<_>>>()?;
        measured(operations, || {
            ends.iter().try_for_each(|effects| {
                ensure!(
                    host.store().apply(effects)? == Applied::Written,
                    "nobody else writes it"
                );
                Ok(())
            })
        })
    };
    let mut next = 0;
    let floor = || {
        let from = next;
        next += count;
        measured(operations, || (from..next).try_for_each(|number| raw_end(&raw, number)))
    };
    let (ours, floor) = interleave(rounds, ours, floor)?;
    let each = |samples: &[Sample]| time(median(samples.iter().map(Sample::each)));
    let cpu = |samples: &[Sample]| time(median(samples.iter().map(Sample::each_cpu)));
    let ratio = median(ours.iter().zip(&floor).map(|(ours, floor)| ours.each() / floor.each()));
    Ok(vec![
        Row::ratio(
            "an end with one dispatch / raw rusqlite, the same rows",
            each(&ours),
            each(&floor),
            ratio,
            Target::AtMost(1.2),
        ),
        Row::fact("processor time of each", cpu(&ours), cpu(&floor)),
    ])
}

/// So many entities that are alive, numbered from 2.
fn fill(raw: &Raw, count: usize) -> Result<()> {
    let sql = "BEGIN IMMEDIATE;
        CREATE TEMP TABLE n AS WITH RECURSIVE n(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM n WHERE n < :last)
            SELECT n FROM n;
        INSERT INTO entity_ids (entity, id, kind) SELECT n, 'e' || (n - 2), 'ping' FROM n;
        INSERT INTO entities (entity, kind, status, terminal, success, version, reason_code, component, fence,
                generation, created_at_ms, updated_at_ms)
            SELECT n, 'ping', 'left', 0, 0, 1, 'ping.made', component, 0, 0, n, n FROM n, entities WHERE entity = 1;
        INSERT INTO transitions (entity, version, status, reason_code, actor_kind, actor_id, at_ms, component)
            SELECT n, 1, 'left', 'ping.made', 'operator', 'bench', n, component FROM n, entities WHERE entity = 1;
        UPDATE components SET in_use = (SELECT count(*) FROM entities WHERE entities.component = components.component);
        COMMIT;";
    let last = (count + 1).to_string();
    Ok(raw.connection.execute_batch(&sql.replace(":last", &last))?)
}

fn body(number: usize) -> String {
    let told = json!({"entity": {"kind": "ping", "id": format!("e{number}")}, "terminal_status": "right"});
    told.to_string()
}

fn target() -> Destination {
    Destination {
        transport: Transport::File {
            path: "/var/log/ends".to_owned(),
        },
        timeout_ms: TIMEOUT_DEFAULT,
    }
}

/// The end of an entity, decided and planned in full.
fn end(host: &Host, number: usize) -> Result<EffectSet> {
    let before = host.store().load(&format!("e{number}"))?.context("it was filled in")?;
    let id = EventId::new(host.store().name(), &before.reference.id, 2);
    let mut after = before.clone();
    "right".clone_into(&mut after.status);
    (after.terminal, after.success, after.version) = (true, true, 2);
    after.reason = Reason::code("ping.moved");
    let row = HistoryRow {
        id: id.clone(),
        reference: before.reference.clone(),
        previous_status: Some(before.status.clone()),
        status: after.status.clone(),
        reason: after.reason.clone(),
        actor: Actor::new("operator", "bench"),
        at: after.updated_at,
        version: 2,
        policy_digest: after.policy.digest.clone(),
        metadata: Value::Null,
        guarded: Value::Null,
    };
    let planned = Planned {
        dispatches: vec![dispatch(host, &before, &row, number)],
        owed: Vec::new(),
    };
    let envelope = serde_json::from_str(&body(number))?;
    Ok(EffectSet {
        change: Change {
            after,
            expected_version: 1,
            event: Some(Event { id, envelope }),
            row,
            planned,
            admin: Vec::new(),
            key: None,
        },
        runtimes: Vec::new(),
        destination: None,
        successor: None,
        shadow: runwarden_host::store::ShadowSeen::Unasked,
    })
}

/// A dispatch that tells of that history row.
fn dispatch(host: &Host, like: &Entity, told: &HistoryRow, number: usize) -> NewDispatch {
    let mut entity = like.clone();
    entity.row = 0;
    entity.reference = Reference::new("dispatch", &format!("d{number}"));
    entity.reason = Reason::code("ping.made");
    entity.structural.attempt = Some(0);
    entity.structural.next_attempt_at = Some(like.updated_at);
    let row = HistoryRow {
        id: EventId::new(host.store().name(), &entity.reference.id, 1),
        reference: entity.reference.clone(),
        previous_status: None,
        status: entity.status.clone(),
        reason: entity.reason.clone(),
        version: 1,
        ..told.clone()
    };
    NewDispatch {
        entity,
        row,
        dispatch: Dispatch {
            dedup_key: format!("{}/tell/0", told.id),
            event_id: Some(told.id.clone()),
            handler: Some("tell".to_owned()),
            destination: "ends".to_owned(),
            target: target(),
            target_digest: sha256_hex(json!(target()).to_string().as_bytes()),
            body: body(number).into_bytes(),
            deadline: None,
            wants_acknowledgement: false,
        },
    }
}

/// The same rows by hand: the end, and the dispatch with its own history.
fn raw_end(raw: &Raw, number: usize) -> Result<()> {
    raw.run("BEGIN IMMEDIATE")?;
    let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| -> Result<usize> {
        Ok(raw.connection.prepare_cached(sql)?.execute(values)?)
    };
    let (ended, text) = (i64::try_from(number)? + 2, body(number));
    let update = "UPDATE entities SET status = 'right', terminal = 1, success = 1, version = 2, \
                      reason_code = 'ping.moved' WHERE entity = ?1 AND version = 1";
    ensure!(run(update, params![ended])? == 1, "nobody else writes it");
    let history = "INSERT INTO transitions (entity, version, previous_status, status, reason_code, actor_kind, actor_id, \
                       at_ms, component, envelope) \
                   VALUES (?1, ?2, ?3, ?4, 'ping.moved', 'operator', 'bench', ?1, \
                       (SELECT component FROM entities WHERE entity = ?1), ?5)";
    run(history, params![ended, 2, "left", "right", text])?;
    let digest = sha256_hex(json!(target()).to_string().as_bytes());
    let known = "INSERT INTO destinations (digest, target) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    if number == 0 {
        run(known, params![digest, json!(target()).to_string()])?;
    }
    run(
        "INSERT INTO entity_ids (id, kind) VALUES (?1, 'dispatch')",
        params![format!("d{number}")],
    )?;
    let sent = raw.connection.last_insert_rowid();
    let entity = "INSERT INTO entities (entity, kind, status, terminal, success, version, reason_code, component, attempt, \
                      next_attempt_at_ms, fence, generation, created_at_ms, updated_at_ms, due_at_ms, destination) \
                  VALUES (?1, 'dispatch', 'left', 0, 0, 1, 'ping.made', \
                      (SELECT component FROM entities WHERE entity = ?2), 0, ?2, 0, 0, ?2, ?2, ?2, \
                      (SELECT destination FROM destinations WHERE digest = ?3))";
    run(entity, params![sent, ended, digest])?;
    let pins = "UPDATE components SET in_use = in_use + 1 \
                WHERE component = (SELECT component FROM entities WHERE entity = ?1)";
    run(pins, params![sent])?;
    let nothing: Option<&str> = None;
    run(history, params![sent, 1, nothing, "left", nothing])?;
    let dispatch = "INSERT INTO dispatches (entity, event_entity, event_version, handler, name, dedup_key, held, \
                        wants_acknowledgement, body_bytes, body_digest) \
                    VALUES (?1, ?2, 2, 'tell', 'ends', ?3, 1, 0, ?4, ?5)";
    let (key, length) = (format!("benches1:e{number}:2/tell/0"), i64::try_from(text.len())?);
    run(dispatch, params![sent, ended, key, length, sha256_hex(text.as_bytes())])?;
    run(
        "INSERT INTO dispatch_bodies (entity, body) VALUES (?1, ?2)",
        params![sent, text.as_bytes()],
    )?;
    raw.run("COMMIT")
}
