//! Notices sent to a program: claim, start, outcome, beside the same program started by hand between two commits.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context as _, Result, ensure};
use runwarden_host::Host;
use runwarden_host::model::{
    Actor, BoundHandler, Destination, EventFilter, Fields, Layer, NotifySettings, TIMEOUT_DEFAULT, Transport,
};
use runwarden_host::verbs::outbox::{Bounds, Extent, Sending, deliver, send};
use serde_json::json;

use super::raw::Raw;
use super::{ping, time, transitions};
use crate::harness::{Effort, Home, Row, Sample, Target, interleave, measured, median};

/// One after the other to one destination, as many at once as it may have.
pub(super) fn figure(effort: Effort) -> Result<Vec<Row>> {
    let (home, raw_home) = (Home::new()?, Home::new()?);
    let host = transitions::prepared(&home)?;
    let at_once = Bounds::STANDARD.per_destination;
    let other = transitions::prepared(&raw_home)?;
    for number in 0..at_once {
        ping::make(&other, &format!("w{number}"))?;
    }
    drop(other);
    let raw = Mutex::new(Raw::open(&raw_home.database())?);
    let count = effort.choose(16, 160);
    let rounds = effort.choose(3, 11);
    let operations = u64::try_from(count)?;
    let settings = settings();
    let ours = || {
        for number in 0..count {
            enqueue(&host, &settings, number)?;
        }
        measured(operations, || {
            let delivered = deliver(&host, Extent::UntilEmpty, Bounds::STANDARD)?;
            ensure!(delivered.delivered == count, "{delivered:?}");
            Ok(())
        })
    };
    let mut round = 0;
    let floor = || {
        round += 1;
        measured(operations, || by_hand(&raw, count / at_once, (round - 1, at_once)))
    };
    let (ours, floor) = interleave(rounds, ours, floor)?;
    let each = |samples: &[Sample]| time(median(samples.iter().map(Sample::each)));
    let cpu = |samples: &[Sample]| time(median(samples.iter().map(Sample::each_cpu)));
    let ratio = median(ours.iter().zip(&floor).map(|(ours, floor)| floor.each() / ours.each()));
    Ok(vec![
        Row::ratio(
            "notices to a program a second / `true` with pipes between two commits, 4 at once",
            each(&ours),
            each(&floor),
            ratio,
            Target::AtLeast(0.7),
        ),
        Row::fact("processor time of each", cpu(&ours), cpu(&floor)),
    ])
}

fn settings() -> NotifySettings {
    let destination = Destination {
        transport: Transport::Exec {
            argv: vec!["true".to_owned()],
            env: Vec::new(),
        },
        timeout_ms: TIMEOUT_DEFAULT,
    };
    NotifySettings {
        handlers: vec![BoundHandler {
            name: "bench".to_owned(),
            layer: Layer::Store,
            component: "exec".to_owned(),
            digest: String::new(),
            config: Fields::new(),
            filter: EventFilter::default(),
            destinations: BTreeMap::from([("true".to_owned(), destination)]),
        }],
        ..NotifySettings::default()
    }
}

fn enqueue(host: &Host, settings: &NotifySettings, number: usize) -> Result<()> {
    let sending = Sending {
        to: "bench".to_owned(),
        body: json!({"number": number}),
        dedup_key: None,
        deadline: None,
        wants_acknowledgement: false,
    };
    send(host, settings, &sending, &Actor::new("operator", "bench"))?;
    Ok(())
}

/// Threads that share a store: a commit, the program with the body on its standard input, a commit.
fn by_hand(raw: &Mutex<Raw>, each: usize, (rounds_before, threads): (usize, usize)) -> Result<()> {
    let commit = |thread: usize, version: usize| -> Result<()> {
        let raw = raw.lock().unwrap_or_else(PoisonError::into_inner);
        raw.transition(i64::try_from(thread + 1)?, i64::try_from(version)?)
    };
    let work = |thread: usize| -> Result<()> {
        for number in 0..each {
            let version = 1 + 2 * (rounds_before * each + number);
            commit(thread, version)?;
            let mut child = Command::new("true")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()?;
            // A program that does not read what it is sent is no failure.
            let _ = child.stdin.take().context("a pipe")?.write_all(b"{}");
            ensure!(child.wait_with_output()?.status.success(), "`true` is true");
            commit(thread, version + 1)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        let mut ended = threads.into_iter().map(|thread| thread.join());
        ended.try_for_each(|outcome| outcome.map_err(|_| anyhow::anyhow!("a thread panicked"))?)
    })
}
