//! `/metrics`: what the service did and what waits, as Prometheus and others read it (OpenMetrics text).

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use runwarden_host::verbs::Service;
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
    let age = Gauge::<f64, std::sync::atomic::AtomicU64>::default();
    age.set(std::time::Duration::from_millis(age_ms.unsigned_abs()).as_secs_f64());
    registry.register_with_unit(
        "oldest_due_age",
        "How long the notice that is due longest has been due",
        Unit::Seconds,
        age,
    );
    let failing = store.destinations()?;
    let is_paused = |until: Option<runwarden_host::model::Timestamp>| until.is_some_and(|until| until > now);
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
    let age = Gauge::<f64, std::sync::atomic::AtomicU64>::default();
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
