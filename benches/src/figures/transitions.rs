//! Durable transitions, from one caller and from 64.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use anyhow::{Context as _, Result};
use runwarden_host::Host;
use runwarden_host::model::Entity;

use super::raw::Raw;
use super::{ping, time};
use crate::floor::Floor;
use crate::harness::{Effort, Home, Row, Sample, Target, interleave, measured, median};

pub(super) const CALLERS: usize = 64;
const BATCH_MAX: usize = 512;

/// Both, each beside its floors.
pub(super) fn figure(effort: Effort) -> Result<Vec<Row>> {
    let mut rows = one(effort)?;
    rows.extend(many(effort)?);
    Ok(rows)
}

/// One caller: the verb, raw rusqlite on the same schema, the lean floor.
fn one(effort: Effort) -> Result<Vec<Row>> {
    let (home, raw_home, lean_home) = (Home::new()?, Home::new()?, Home::new()?);
    let host = prepared(&home)?;
    let mut entity = ping::make(&host, "one")?;
    drop({
        let other = prepared(&raw_home)?;
        ping::make(&other, "one")?
    });
    let raw = Raw::open(&raw_home.database())?;
    std::fs::create_dir_all(lean_home.path())?;
    let lean = Floor::make(&lean_home.database(), 1)?;
    let count = effort.choose(50, 300);
    let rounds = effort.choose(3, 11);
    let operations = u64::try_from(count)?;
    let mut version = 1;
    let mut steps = |host: &Host| {
        measured(operations, || {
            for _ in 0..count {
                entity = ping::step(host, &entity)?;
            }
            Ok(())
        })
    };
    let by_hand = || {
        measured(operations, || {
            (0..count).try_for_each(|_| {
                version += 1;
                raw.transition(1, version - 1)
            })
        })
    };
    let (ours, floor) = interleave(rounds, || steps(&host), by_hand)?;
    let mut rows = vec![compared("transitions, one caller / raw rusqlite", &ours, &floor, 0.8)];
    rows.push(Row::fact("processor time of each", cpu(&ours), cpu(&floor)));
    let mut version = 1;
    let leanly = || {
        measured(operations, || {
            (0..count).try_for_each(|_| {
                version += 1;
                lean.transition(1, version - 1)
            })
        })
    };
    let (ours, floor) = interleave(rounds, || steps(&host), leanly)?;
    rows.push(compared("transitions, one caller / lean floor", &ours, &floor, 0.5));
    rows.push(Row::fact("processor time of each", cpu(&ours), cpu(&floor)));
    Ok(rows)
}

pub(super) fn prepared(home: &Home) -> Result<Host> {
    let host = home.open()?;
    ping::install(&host)?;
    Ok(host)
}

/// 64 callers: the verb on 64 threads, and a raw writer thread that commits what is waiting, 512 at most.
fn many(effort: Effort) -> Result<Vec<Row>> {
    let (home, raw_home) = (Home::new()?, Home::new()?);
    let host = prepared(&home)?;
    let other = prepared(&raw_home)?;
    let mut entities = Vec::new();
    for number in 0..CALLERS {
        entities.push(ping::make(&host, &format!("entity-{number}"))?);
        ping::make(&other, &format!("entity-{number}"))?;
    }
    drop(other);
    let count = effort.choose(5, 60);
    let operations = u64::try_from(count * CALLERS)?;
    let rounds = effort.choose(3, 9);
    let raw = Raw::open(&raw_home.database())?;
    let mut version = 1;
    let ours = || measured(operations, || callers(&host, &mut entities, count));
    let floor = || {
        let sample = measured(operations, || fed(&raw, version, count))?;
        version += i64::try_from(count)?;
        Ok(sample)
    };
    let (ours, floor) = interleave(rounds, ours, floor)?;
    Ok(vec![
        compared("transitions, 64 callers / raw writer thread", &ours, &floor, 0.7),
        Row::fact("processor time of each", cpu(&ours), cpu(&floor)),
    ])
}

pub(super) fn callers(host: &Host, entities: &mut [Entity], count: usize) -> Result<()> {
    thread::scope(|scope| {
        let calls = |entity: &mut Entity| {
            for _ in 0..count {
                *entity = ping::step(host, entity)?;
            }
            anyhow::Ok(())
        };
        let threads: Vec<_> = entities
            .iter_mut()
            .map(|entity| scope.spawn(move || calls(entity)))
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().ok().context("a caller panicked")?)
    })
}

type Fed = (i64, i64, SyncSender<()>);

/// The floor's callers, with this thread as its writer.
fn fed(raw: &Raw, version: i64, count: usize) -> Result<()> {
    let (queue, fed) = sync_channel::<Fed>(1_024);
    thread::scope(|scope| {
        for entity in 1..=i64::try_from(CALLERS)? {
            let queue = queue.clone();
            scope.spawn(move || {
                for step in 0..i64::try_from(count).unwrap_or(0) {
                    let (reply, answer) = sync_channel(1);
                    let sent = queue.send((entity, version + step, reply)).is_ok();
                    if !sent || answer.recv().is_err() {
                        return; // the writer tells why it ended
                    }
                }
            });
        }
        drop(queue);
        write(raw, &fed)
    })
}

fn write(raw: &Raw, fed: &Receiver<Fed>) -> Result<()> {
    while let Ok(first) = fed.recv() {
        let mut batch = vec![first];
        while let (true, Ok(next)) = (batch.len() < BATCH_MAX, fed.try_recv()) {
            batch.push(next);
        }
        raw.run("BEGIN IMMEDIATE")?;
        for (entity, version, _) in &batch {
            raw.run("SAVEPOINT command")?;
            raw.write(*entity, *version)?;
            raw.run("RELEASE command")?;
        }
        raw.run("COMMIT")?;
        batch.iter().for_each(|(.., reply)| {
            let _ = reply.send(()); // its caller waits for nothing else
        });
    }
    Ok(())
}

/// Speed of ours in parts of the floor's: the median of the rounds' ratios.
fn compared(what: &str, ours: &[Sample], floor: &[Sample], least: f64) -> Row {
    let speed = |samples: &[Sample]| format!("{:.0}/s", 1.0 / median(samples.iter().map(Sample::each)));
    let ratio = median(ours.iter().zip(floor).map(|(ours, floor)| floor.each() / ours.each()));
    Row::ratio(what, speed(ours), speed(floor), ratio, Target::AtLeast(least))
}

fn cpu(samples: &[Sample]) -> String {
    time(median(samples.iter().map(Sample::each_cpu)))
}
