//! What waits, what is late and what has ended costs whoever takes work nothing: counted, not timed.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use rusqlite::Connection;

use super::growth::measure;
use super::tests::place;
use super::{Counts, OpenMode, SqliteStore};
use crate::model::{Entity, Stage};
use crate::store::samples::{self, Success, moment};
use crate::store::{Applied, Queue, ReadyQuery, Renewal, Renewed, StagedQuery, Store};

/// How much there is beside what a call is about.
const MANY: usize = 40_000;

/// Leased work in two queues: `:backlog` rows that are ready, `:backlog` that are due in a distant future, `:backlog` that
/// wait for row 1, which goes on; `:dead` that have ended, each with somebody it waited for; and, youngest of all, a few of
/// each kind for which there is something to do.
const FILL: &str = "
    BEGIN;
    CREATE TEMP TABLE n AS WITH RECURSIVE
        kinds (what, rows, stage, due) AS (VALUES ('first', 1, 4, NULL), ('ready', :backlog, 3, NULL),
            ('delayed', :backlog, 2, 9000000000000), ('waiting', :backlog, 1, NULL), ('dead', :dead, NULL, NULL),
            ('due', 5, 2, 1000), ('told', 5, 1, NULL), ('held', 5, 4, 1800000000000), ('doubted', 5, 5, 2000)),
        k (what, rows, stage, due, nth) AS (SELECT what, rows, stage, due, 1 FROM kinds WHERE rows > 0
            UNION ALL SELECT what, rows, stage, due, nth + 1 FROM k WHERE nth < rows)
        SELECT row_number() OVER (ORDER BY what <> 'first', what IN ('due', 'told', 'held', 'doubted'), nth) AS n, * FROM k;
    INSERT INTO entity_ids (entity, id, kind) SELECT n, what || nth, 'job' FROM n ORDER BY n;
    INSERT INTO entities (entity, kind, status, terminal, success, version, reason_code, component, fence, generation,
            created_at_ms, updated_at_ms, due_at_ms, next_attempt_at_ms, leased_by, lease_expires_at_ms, queue, priority,
            stage)
        SELECT n, 'job', what, what = 'dead', 0, 1, 'a.b.c', 1, 1, 0, n, n, due, iif(stage <> 4, due, NULL),
            iif(stage >= 4, 'w', NULL), iif(stage = 4, due, NULL), iif(nth % 2, 'day', 'night'), nth % 3, stage FROM n;
    INSERT INTO transitions (entity, version, status, reason_code, actor_kind, actor_id, at_ms, component)
        SELECT n, 1, 'queued', 'a.b.c', 'system', 'fill', n, 1 FROM n;
    INSERT INTO dependencies (entity, awaited, success, is_news)
        SELECT n, 1, iif(what = 'waiting', NULL, 1), what = 'told' FROM n WHERE what IN ('waiting', 'dead', 'told');
    INSERT INTO queues (name, held_most) VALUES ('day', 1000);
    COMMIT;";

fn filled(path: &Path, backlog: usize, dead: usize) -> SqliteStore {
    let store = SqliteStore::open(path, OpenMode::Create).unwrap();
    samples::install(&store).unwrap();
    let fill = FILL
        .replace(":backlog", &backlog.to_string())
        .replace(":dead", &dead.to_string());
    Connection::open(path).unwrap().execute_batch(&fill).unwrap();
    store
}

fn load(store: &SqliteStore, id: &str) -> Entity {
    store.load(id).unwrap().unwrap()
}

fn due(store: &SqliteStore, stage: Stage, found: usize) {
    let mut query = StagedQuery {
        stage,
        before: moment(0),
        after: None,
        limit: 3,
    };
    let page = store.staged_due(&query).unwrap();
    assert_eq!(page.len(), 3);
    query.after = page.last().map(|row| (row.due_at().unwrap(), row.row));
    assert_eq!(store.staged_due(&query).unwrap().len(), found - 3);
    assert!(store.next_staged_due(stage).unwrap().is_some());
}

type Call = (&'static str, fn(&SqliteStore));

/// What a worker and a sweep do, in an order in which each finds what it is about.
const CALLS: [Call; 9] = [
    ("ready", |store| {
        for queues in [Vec::new(), vec!["day".to_owned()]] {
            assert_eq!(store.ready(&ReadyQuery { queues, limit: 5 }).unwrap().len(), 5);
        }
    }),
    ("claims", |store| {
        let rows = ["ready1", "ready2", "ready3"].map(|id| load(store, id));
        let claims = rows
            .each_ref()
            .map(|row| samples::taking(store, row, "v", moment(1 << 40)));
        assert_eq!(store.apply_all(&claims).unwrap(), [const { Applied::Written }; 3]);
    }),
    ("renewals", |store| {
        let renewal = |row: Entity| Renewal {
            row: row.row,
            fence: row.fence,
            holder: "w".to_owned(),
            until: moment(1 << 41),
            at: moment(0),
            late: None,
        };
        let renewals = ["held1", "held2"].map(|id| renewal(load(store, id)));
        assert_eq!(store.renew(&renewals).unwrap(), [Renewed::Extended; 2]);
    }),
    ("what is due", |store| due(store, Stage::Later, 5)),
    ("what is doubted", |store| due(store, Stage::Doubted, 5)),
    ("no lapse", |store| {
        let query = StagedQuery {
            stage: Stage::Active,
            before: moment(0),
            after: None,
            limit: 5,
        };
        assert_eq!(store.staged_due(&query).unwrap(), []);
    }),
    ("what may go on", |store| {
        let found = store.awaiting_ended(0, 5).unwrap();
        assert_eq!(found.len(), 5);
        let seen = store.dependencies(&found[0]).unwrap();
        store.looked_at(&found[0], &seen).unwrap();
    }),
    ("a successor", |store| {
        let row = load(store, "doubted1");
        let mut effects = samples::ending(store, &row, Success::No);
        effects.successor = Some(samples::successor(store, &row, "next"));
        assert_eq!(store.apply(&effects).unwrap(), Applied::Written);
        assert!(store.successor(&row).unwrap().is_some());
    }),
    ("a submission", |store| {
        let mut new = samples::new_queued(store, "new");
        new.entity.unique_key = Some("k".to_owned());
        let run = samples::new_work(&new.entity.reference, &[&load(store, "first1")]);
        store.create(&new, Some(&run)).unwrap();
    }),
];

#[test]
fn neither_what_waits_nor_what_has_ended_costs_whoever_takes_work_anything() {
    let (_one, few) = place();
    let (_two, many) = place();
    let (few, many) = (filled(&few, 10, 10), filled(&many, MANY, MANY));
    for (name, call) in CALLS {
        let (few, many) = (measure(&few, call), measure(&many, call));
        assert_eq!((few, many.sorts), (many, 0), "{name}");
    }
}

#[test]
fn what_has_ended_costs_a_look_at_the_queues_nothing() {
    let look = |store: &SqliteStore| assert_eq!(store.queues().unwrap().len(), 2);
    let (_one, few) = place();
    let (_two, many) = place();
    let (few, many) = (filled(&few, 10, 10), filled(&many, 10, MANY));
    assert_eq!(measure(&few, look), measure(&many, look));
}

/// Statements of a write, by how it leaves the run of that id.
fn statements(store: &SqliteStore, id: &str, success: Option<Success>) -> u64 {
    let entity = load(store, id);
    let mut effects = match success {
        Some(success) => samples::ending(store, &entity, success),
        None => samples::change(store, &entity, "further"),
    };
    effects.change.event = None;
    let Counts { statements, .. } = measure(store, |store| {
        assert_eq!(store.apply(&effects).unwrap(), Applied::Written);
    });
    statements
}

#[test]
fn the_end_of_a_run_that_nobody_waits_for_takes_one_statement_more_than_another_write() {
    let (_directory, path) = place();
    let store = filled(&path, 10, 10);
    store.create(&samples::new_entity(&store, "run", "run"), None).unwrap();
    let step = statements(&store, "run", None);
    assert_eq!(statements(&store, "run", Some(Success::Yes)), step + 1);
    assert_eq!(
        statements(&store, "held1", Some(Success::Yes)),
        step + 2,
        "leased work waits for nothing any more"
    );
}
