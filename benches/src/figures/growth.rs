//! What a call costs in a small store and in a large one, beside the lean floor in both.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use runwarden_host::model::{Actor, Entity, Reason, Transition};
use runwarden_host::store::{Counts, EntityQuery, HistoryQuery, OpenMode, SqliteStore, Store};
use runwarden_host::verbs::{transition, view};
use runwarden_host::{Clock, Config, Host};

use super::fill::{fill, id};
use super::time;
use crate::floor::Floor;
use crate::harness::{Effort, Home, Row, Target, median};

/// More than a tree that is two levels deeper asks for would be growth with the store.
const PAGES_RATIO_MAX: f64 = 2.0;

/// One call of one verb.
struct Cost {
    what: &'static str,
    wall: f64,
    pages: f64,
    scans: u64,
}

/// Transition, show, `ls --limit 20` and history.
pub(super) fn figure(effort: Effort) -> Result<Vec<Row>> {
    let (small, large) = (10_000, effort.choose(100_000, 1_000_000));
    let (few, floor_few) = (costs(small)?, floor(small)?);
    let (many, floor_many) = (costs(large)?, floor(large)?);
    let mut rows = Vec::new();
    for (few, many) in few.iter().zip(&many) {
        let what = format!("{}: pages at {large} / at {small}", few.what);
        let pages = |cost: &Cost| format!("{:.0} pages", cost.pages);
        let target = Target::AtMost(PAGES_RATIO_MAX);
        rows.push(Row::ratio(
            &what,
            pages(many),
            pages(few),
            many.pages / few.pages,
            target,
        ));
        rows.push(Row::fact("time", time(many.wall), time(few.wall)));
        #[expect(clippy::cast_precision_loss, reason = "none, or few")]
        rows.push(Row::value(
            "  scans and sorts",
            (few.scans + many.scans) as f64,
            "",
            Target::AtMost(0.0),
        ));
    }
    rows.push(Row::fact(
        "the lean floor's transition: time",
        time(floor_many),
        time(floor_few),
    ));
    Ok(rows)
}

fn floor(entities: usize) -> Result<f64> {
    let home = Home::new()?;
    std::fs::create_dir_all(home.path())?;
    let floor = Floor::make(&home.database(), i64::try_from(entities)?)?;
    let mut times = Vec::new();
    for step in 1..=50 {
        let started = Instant::now();
        floor.transition(i64::try_from(entities)? * step / 51, 1)?;
        times.push(started.elapsed().as_secs_f64());
    }
    Ok(median(times))
}

fn costs(runs: usize) -> Result<Vec<Cost>> {
    let home = Home::new()?;
    drop(home.open()?);
    fill(&home.database(), runs)?;
    let store = std::sync::Arc::new(SqliteStore::open(&home.database(), OpenMode::Existing)?);
    let config = Config {
        home: home.path(),
        database: None,
        limits: runwarden_host::policy::Limits::DEFAULT,
        clock: Clock::System,
        compiler: None,
        program: std::path::PathBuf::new(),
        shim: &[],
        variable: |_| None,
    };
    let shared: std::sync::Arc<dyn Store> = std::sync::Arc::clone(&store) as _;
    let host = Host::with_store(config, shared);
    let entity =
        |step: usize| -> Result<Entity> { host.store().load(&id(runs * step / 21))?.context("it was filled in") };
    let counted = |what, call: &mut dyn FnMut(Entity) -> Result<()>| -> Result<Cost> {
        call(entity(1)?)?; // prepares the statements
        let (mut walls, mut pages, mut scans) = (Vec::new(), Vec::new(), 0);
        for step in 2..=20 {
            let entity = entity(step)?;
            let (before, started) = (store.counts(), Instant::now());
            call(entity)?;
            let (wall, after): (Duration, Counts) = (started.elapsed(), store.counts());
            walls.push(wall.as_secs_f64());
            #[expect(clippy::cast_precision_loss, reason = "some dozens")]
            pages.push((after.pages - before.pages) as f64);
            scans += after.scan_steps - before.scan_steps + after.sorts - before.sorts;
        }
        let (wall, pages) = (median(walls), median(pages));
        Ok(Cost {
            what,
            wall,
            pages,
            scans,
        })
    };
    let list = EntityQuery {
        limit: Some(20),
        ..EntityQuery::default()
    };
    Ok(vec![
        counted("transition", &mut |entity| {
            let target = entity.status.clone(); // the same status is appended, and moves nothing
            let why = Reason::code("run.completed.ok");
            let actor = Actor::new("operator", "bench");
            transition(&host, &entity, &Transition::new(&target, why, actor))?;
            Ok(())
        })?,
        counted("show", &mut |entity| {
            view(&host, entity)?;
            Ok(())
        })?,
        counted("ls --limit 20", &mut |_| {
            host.store().list(&list)?;
            Ok(())
        })?,
        counted("history", &mut |entity| {
            let id = Some(entity.reference.id);
            host.store().history(&HistoryQuery {
                id,
                ..HistoryQuery::default()
            })?;
            Ok(())
        })?,
    ])
}
