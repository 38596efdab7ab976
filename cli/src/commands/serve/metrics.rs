//! `/metrics`: what the service did and what waits, as Prometheus and others read it (OpenMetrics text).

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use runwarden_host::model::{DurationMs, Stage, Timestamp};
use runwarden_host::store::RenewalDelays;
use runwarden_host::verbs::Service;
use runwarden_host::verbs::lease::at_work;
use runwarden_host::{Error, Host};

/// What the text is.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Labels = Vec<(&'static str, String)>;

/// The text. Blocks for reads of the store; what it costs grows with the dispatches that the store keeps.
///
/// # Errors
/// The store cannot be read.
pub(super) fn metrics(host: &Host, service: &Service) -> Result<String, Error> {
    let mut registry = Registry::with_prefix("runwarden");
    let version = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
    registry.register("build", "The program", version);
    outbox(&mut registry, host)?;
    queues(&mut registry, host)?;
    work(&mut registry, service);
    parts(&mut registry, service);
    upkeep(&mut registry, service);
    let mut text = String::new();
    encode(&mut text, &registry).expect("a string takes whatever is written to it");
    Ok(text)
}

/// What waits in the store.
fn outbox(registry: &mut Registry, host: &Host) -> Result<(), Error> {
    let store = host.store();
    let backlog = store.backlog()?;
    let dispatches = Family::<Labels, Gauge>::default();
    for (status, count) in backlog.dispatches {
        dispatches.get_or_create(&vec![("status", status)]).set(signed(count));
    }
    registry.register("dispatches", "Notices that the store keeps, by status", dispatches);
    gauge(
        registry,
        ("owed_plans", "Plans of handlers that are still owed"),
        backlog.owed_plans,
    );
    let now = host.now();
    let age_ms = store.next_due()?.map_or(0, |due| now.since(due).as_ms());
    let age = Seconds::default();
    age.set(seconds(DurationMs::from_ms(age_ms)));
    registry.register_with_unit(
        "oldest_due_age",
        "How long the notice that is due longest has been due",
        Unit::Seconds,
        age,
    );
    let failing = store.destinations()?;
    let is_paused = |until: Option<Timestamp>| until.is_some_and(|until| until > now);
    let paused = failing.iter().filter(|health| is_paused(health.paused_until)).count();
    gauge(
        registry,
        ("destinations_failing", "Destinations whose last attempt failed"),
        failing.len() as u64,
    );
    gauge(
        registry,
        (
            "destinations_paused",
            "Destinations that nothing is sent to for a while",
        ),
        paused as u64,
    );
    Ok(())
}

/// What is queued, how long it waits, and how late leases were renewed.
fn queues(registry: &mut Registry, host: &Host) -> Result<(), Error> {
    let store = host.store();
    let (now, steady) = (host.now(), host.steady_now()?);
    let rows = Family::<Labels, Gauge>::default();
    let (ready, doubted) = (
        Family::<Labels, Seconds>::default(),
        Family::<Labels, Seconds>::default(),
    );
    let expired = Family::<Labels, Seconds>::default();
    for queue in store.queues()? {
        let name = queue.setup.name;
        let label = vec![("queue", name.clone())];
        for stage in Stage::ALL {
            let count = queue.counts.iter().find(|(counted, _)| *counted == stage);
            let labels = vec![("queue", name.clone()), ("stage", stage.word().to_owned())];
            rows.get_or_create(&labels)
                .set(count.map_or(0, |(_, count)| signed(*count)));
        }
        let since = |moment: Option<Timestamp>, now: Timestamp| moment.map_or(0.0, |moment| seconds(now.since(moment)));
        ready.get_or_create(&label).set(since(queue.ready_since, now));
        doubted.get_or_create(&label).set(since(queue.doubted_since, steady));
        expired.get_or_create(&label).set(since(queue.lease_ends_first, steady));
    }
    registry.register("queue_rows", "Queued work that has not ended, by stage", rows);
    let mut ages = |name: &str, help: &str, family: Family<Labels, Seconds>| {
        registry.register_with_unit(name, help, Unit::Seconds, family);
    };
    ages(
        "queue_oldest_ready_age",
        "How long the longest ready work has been ready",
        ready,
    );
    ages(
        "queue_oldest_doubted_age",
        "How long the longest doubted work has been in doubt",
        doubted,
    );
    let help =
        "How long ago the lease ended that ended first and was not judged yet: grows when nobody keeps the queue";
    ages("queue_oldest_expired_lease_age", help, expired);
    counter(
        registry,
        (
            "late_writes",
            "Writes under a fence that was not current any more, over the life of the store",
        ),
        store.late_writes()?,
    );
    gauge(
        registry,
        ("workers", "Workers that are at work"),
        at_work(host)?.len() as u64,
    );
    registry.register_with_unit(
        "lease_renewal_delay",
        "How late renewals of leases came, over the life of the store",
        Unit::Seconds,
        Delays(store.renewal_delays()?),
    );
    Ok(())
}

/// How late renewals were, over the life of the store: what the grace has to cover.
#[derive(Debug)]
struct Delays(RenewalDelays);

impl EncodeMetric for Delays {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let RenewalDelays { counts, total_ms } = &self.0;
        let limit = |limit: Option<i64>| limit.map_or(f64::MAX, |ms| seconds(DurationMs::from_ms(ms)));
        let buckets: Vec<(f64, u64)> = counts.iter().map(|(at, count)| (limit(*at), *count)).collect();
        let sum = seconds(DurationMs::from_ms(signed(*total_ms)));
        let count = counts.iter().map(|(_, count)| count).sum();
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

type Seconds = Gauge<f64, std::sync::atomic::AtomicU64>;

fn seconds(length: DurationMs) -> f64 {
    std::time::Duration::from_millis(length.as_ms().unsigned_abs()).as_secs_f64()
}

/// What was done since the service began.
fn work(registry: &mut Registry, service: &Service) {
    let attempts = Family::<Labels, Counter>::default();
    for (result, count) in service.tally().results() {
        attempts
            .get_or_create(&vec![("result", result.to_owned())])
            .inc_by(count);
    }
    registry.register("attempts", "Notices that were tried, by what came of it", attempts);
    counter(
        registry,
        ("deliverer_looks", "Looks for what is due"),
        service.tally().looks(),
    );
    counter(
        registry,
        ("ends", "Ends that were recorded for finishing commands"),
        service.ends(),
    );
    counter(
        registry,
        ("fired", "Fire times of schedules that were submitted"),
        service.fired(),
    );
    counter(
        registry,
        ("fire_skips", "Times that skipped fire times of schedules were recorded"),
        service.skipped(),
    );
    counter(
        registry,
        ("repairs", "Runs that were repaired, and groups removed"),
        service.repaired(),
    );
    counter(
        registry,
        ("pruned", "Things that retention took away"),
        service.pruned(),
    );
    counter(
        registry,
        ("queue_steps", "What was done that was due for queued work"),
        service.kept(),
    );
}

fn parts(registry: &mut Registry, service: &Service) {
    let (passes, failures) = (
        Family::<Labels, Counter>::default(),
        Family::<Labels, Counter>::default(),
    );
    let up = Family::<Labels, Gauge>::default();
    for part in service.parts() {
        let labels = vec![("part", part.part.word().to_owned())];
        passes.get_or_create(&labels).inc_by(part.passes);
        failures.get_or_create(&labels).inc_by(part.failures);
        up.get_or_create(&labels).set(i64::from(part.is_well()));
    }
    registry.register("part_passes", "Passes of a part of the service", passes);
    registry.register("part_failures", "Failures of a part of the service", failures);
    registry.register("part_up", "Whether a part of the service is at work", up);
}

/// How the store stood when it was last looked after: once a minute.
fn upkeep(registry: &mut Registry, service: &Service) {
    let found = service.upkeep();
    gauge(
        registry,
        ("store_log_bytes", "Size of the write-ahead log"),
        found.log_bytes,
    );
    let waiting = "Pages of the write-ahead log that somebody who reads keeps out of the database";
    gauge(registry, ("store_log_waiting_pages", waiting), found.waiting_pages);
    let age = Seconds::default();
    age.set(found.oldest_reader.unwrap_or_default().as_secs_f64());
    let help = "How long the oldest reader of the service had been reading";
    registry.register_with_unit("store_oldest_reader", help, Unit::Seconds, age);
    counter(
        registry,
        (
            "store_statements",
            "Statements that the service ran on the store, as of the last minute",
        ),
        found.statements,
    );
    counter(
        registry,
        ("store_commits", "Commits that the service made, as of the last minute"),
        found.commits,
    );
}

fn gauge(registry: &mut Registry, (name, help): (&str, &str), value: u64) {
    let gauge = Gauge::<i64>::default();
    gauge.set(signed(value));
    registry.register(name, help, gauge);
}

fn counter(registry: &mut Registry, (name, help): (&str, &str), value: u64) {
    let counter = Counter::<u64>::default();
    counter.inc_by(value);
    registry.register(name, help, counter);
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
