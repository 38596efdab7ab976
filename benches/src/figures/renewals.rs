//! How late renewals are while others write as much as they can: twice the runs of a busy machine, held by one worker.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use runwarden_host::Host;

use super::idle::{ended, started, until_none};
use super::{ping, transitions};
use crate::harness::{Effort, Home, Row, Target};

/// Twice what a machine of sixteen cores has at once.
const HELD: usize = 32;
const LEASE_MS: f64 = 3_000.0;
/// Threads that write without a pause, each commit flushed.
const WRITERS: usize = 4;

/// What 99 of 100 renewals were late at most, from the histogram that the store keeps.
pub(super) fn figure(effort: Effort) -> Result<Vec<Row>> {
    let home = Home::new()?;
    let host = transitions::prepared(&home)?;
    let mut worker = started(&home, HELD)?;
    let measured = measured(&home, &host, effort);
    // It gives back what it has; nobody takes it again.
    ended(&mut worker)?;
    let (late, writes, length) = measured?;
    let renewals: u64 = late.iter().map(|(_, count)| count).sum();
    ensure!(renewals > 0, "nothing was renewed");
    let limit = below(&late, 0.99);
    let words = limit.map_or_else(|| "more".to_owned(), |limit| format!("{limit} ms"));
    let most = LEASE_MS / 6.0;
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    let (value, speed) = (
        limit.map_or(f64::INFINITY, |limit| limit as f64),
        writes as f64 / length.as_secs_f64(),
    );
    let what = format!("99 of 100 renewals of {HELD} leases are late by at most");
    Ok(vec![
        Row::value(&what, value, "ms", Target::AtMost(most)),
        Row::fact(
            "a bucket of the histogram; renewals counted",
            format!("{words}; {renewals}"),
            String::new(),
        ),
        Row::fact(
            "commits that others made meanwhile",
            format!("{speed:.0}/s"),
            String::new(),
        ),
    ])
}

type Late = Vec<(Option<i64>, u64)>;

/// Delays, writes of others and the time of it, once everything is held.
fn measured(home: &Home, host: &Host, effort: Effort) -> Result<(Late, u64, Duration)> {
    let lease = format!("{LEASE_MS}ms");
    for _ in 0..HELD {
        let submit = ["submit", "--lease", &lease, "--grace", "1s", "--", "sleep", "600"];
        ensure!(home.command(&submit)?.output()?.status.success(), "it was not queued");
    }
    let running = format!("SELECT {HELD} - count(*) FROM runtimes WHERE state = 'running'");
    until_none(&home.database(), &running)?;
    let before = host.store().renewal_delays()?.counts;
    let (over, writes) = (AtomicBool::new(false), AtomicU64::new(0));
    let began = Instant::now();
    let length = Duration::from_secs(u64::try_from(effort.choose(3, 20))?);
    thread::scope(|scope| {
        let write = |number: usize| -> Result<()> {
            let mut entity = ping::make(host, &format!("writer-{number}"))?;
            while !over.load(Ordering::Relaxed) {
                entity = ping::step(host, &entity)?;
                writes.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        let writers: Vec<_> = (0..WRITERS).map(|number| scope.spawn(move || write(number))).collect();
        while began.elapsed() < length {
            thread::park_timeout(length.saturating_sub(began.elapsed()));
        }
        over.store(true, Ordering::Relaxed);
        writers
            .into_iter()
            .try_for_each(|writer| writer.join().ok().context("a writer panicked")?)
    })?;
    let length = began.elapsed();
    let after = host.store().renewal_delays()?.counts;
    let late = after
        .iter()
        .zip(before)
        .map(|((limit, after), (_, before))| (*limit, after - before));
    Ok((late.collect(), writes.load(Ordering::Relaxed), length))
}

/// The limit below which so much of a histogram lies; none above the last.
fn below(late: &Late, part: f64) -> Option<i64> {
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    let wanted = late.iter().map(|(_, count)| *count).sum::<u64>() as f64 * part;
    let mut counted = 0;
    late.iter().find_map(|(limit, count)| {
        counted += count;
        #[expect(clippy::cast_precision_loss, reason = "some thousands")]
        let reached = counted as f64 >= wanted;
        reached.then_some(*limit)
    })?
}
