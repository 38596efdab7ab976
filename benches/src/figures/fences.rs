//! A holder that is given up, with the attempt that follows, beside the same rows by hand.

use anyhow::{Result, ensure};
use runwarden_host::verbs::Act;
use runwarden_host::verbs::lease::{Keeping, keep};
use rusqlite::params;

use super::queued::{Standing, add};
use super::raw::Raw;
use super::time;
use crate::harness::{Effort, Home, Row, Sample, Target, interleave, measured, median};

/// Of what the same rows cost by hand, at most so much: beside them a fence asks what became of its run.
const RATIO_MAX: f64 = 3.0;

/// Each fence is a commit of its own.
pub(super) fn figure(effort: Effort) -> Result<Vec<Row>> {
    let count = effort.choose(20, 200);
    let operations = u64::try_from(count)?;
    let (home, by_hand) = (Home::new()?, Home::new()?);
    let (host, other) = (home.open()?, by_hand.open()?);
    drop(other);
    let raw = Raw::open(&by_hand.database())?;
    let ours = || {
        add(&home.database(), count, Standing::Doubted)?;
        measured(operations, || {
            let keeping = Keeping {
                grace: None,
                act: Act::Do,
            };
            let kept = keep(&host, keeping)?;
            let fenced = kept.iter().filter(|kept| kept.successor.is_some()).count();
            ensure!(fenced == count, "{fenced} of {count} were fenced");
            Ok(())
        })
    };
    let floor = || {
        let before = add(&by_hand.database(), count, Standing::Doubted)?;
        let first = before + 1;
        measured(operations, || {
            (first..first + i64::try_from(count)?).try_for_each(|entity| fence(&raw, entity))
        })
    };
    let (ours, floor) = interleave(effort.choose(2, 7), ours, floor)?;
    let each = |samples: &[Sample]| time(median(samples.iter().map(Sample::each)));
    let cpu = |samples: &[Sample]| time(median(samples.iter().map(Sample::each_cpu)));
    let ratio = median(ours.iter().zip(&floor).map(|(ours, floor)| ours.each() / floor.each()));
    Ok(vec![
        Row::ratio(
            "a fence with its successor / raw, the same rows",
            each(&ours),
            each(&floor),
            ratio,
            Target::AtMost(RATIO_MAX),
        ),
        Row::fact("processor time of each", cpu(&ours), cpu(&floor)),
    ])
}

/// The statements of a fence: the row, its history and its event; the new row, its history, its work.
fn fence(raw: &Raw, entity: i64) -> Result<()> {
    let at = 1_700_000_000_000_i64;
    let envelope = format!("{{\"event_id\":\"{entity}\",\"status\":\"{}\"}}", "x".repeat(900));
    let evidence = format!("[{{\"observed\":\"{}\"}}]", "x".repeat(400));
    let end = "UPDATE entities SET status = 'orphaned', terminal = 1, version = 2, fence = fence + 1, leased_by = NULL, \
                   lease_expires_at_ms = NULL, unknown_since_ms = NULL, next_attempt_at_ms = NULL, due_at_ms = NULL, \
                   stage = NULL, reason_code = 'run.orphaned.fence_committed', reason_evidence = ?2, updated_at_ms = ?3 \
               WHERE entity = ?1 AND version = 1";
    let told = "INSERT INTO transitions (entity, version, previous_status, status, reason_code, reason_evidence, \
                    actor_kind, actor_id, at_ms, component, envelope) \
                SELECT entity, 2, 'supervisor_unknown', status, reason_code, reason_evidence, 'system', 'reaper', ?2, \
                    component, ?3 FROM entities WHERE entity = ?1";
    let named = "INSERT INTO entity_ids (id, kind) VALUES (printf('%015d', ?1), 'schedule_run')";
    let added = "INSERT INTO entities (entity, kind, status, terminal, success, version, reason_code, reason_evidence, \
                     component, lease_attempts, fence, root, generation, chain_parent, created_at_ms, updated_at_ms, \
                     queue, priority, stage) \
                 SELECT ?2, e.kind, 'queued', 0, 0, 1, 'schedule.queued.created', ?3, e.component, 1, 0, i.id, 1, i.id, \
                     ?4, ?4, e.queue, e.priority, 3 \
                 FROM entities e JOIN entity_ids i USING (entity) WHERE e.entity = ?1";
    let begun = "INSERT INTO transitions (entity, version, status, reason_code, reason_evidence, actor_kind, actor_id, \
                     at_ms, component) \
                 SELECT entity, 1, status, reason_code, reason_evidence, 'system', 'reaper', ?2, component \
                 FROM entities WHERE entity = ?1";
    let work = "INSERT INTO works (entity, work) SELECT ?2, work FROM works WHERE entity = ?1";
    let used = "UPDATE components SET in_use = in_use + 1 WHERE component = (SELECT component FROM entities WHERE entity = ?1)";
    let write = &raw.connection;
    raw.run("BEGIN IMMEDIATE")?;
    let changed = write.prepare_cached(end)?.execute(params![entity, evidence, at])?;
    ensure!(changed == 1, "the version was another");
    write.prepare_cached(told)?.execute(params![entity, at, envelope])?;
    write.prepare_cached(named)?.execute([entity])?;
    let successor = write.last_insert_rowid();
    write
        .prepare_cached(added)?
        .execute(params![entity, successor, evidence, at])?;
    write.prepare_cached(begun)?.execute([successor, at])?;
    write.prepare_cached(work)?.execute([entity, successor])?;
    write.prepare_cached(used)?.execute([entity])?;
    raw.run("COMMIT")
}
