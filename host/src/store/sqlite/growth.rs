//! The work of a statement does not grow with the store: no full scan, no sort, steps independent of the number of rows.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use rusqlite::Connection;

use super::tests::place;
use super::{Counts, OpenMode, SqliteStore};
use crate::model::{Entity, EventId, KeyUse, OwedPlan, Planned};
use crate::store::samples::{self, Success, moment};
use crate::store::{
    Acknowledged, Applied, Consumer, DueQuery, Enqueued, EntityQuery, HistoryQuery, Journal, JournalPage, Lookup,
    Outbox, Removed, Rows, Scope, Store,
};

/// What a call may scan without an index's constraint: the rows that it answers, walked newest first.
const LIMIT: usize = 20;

/// Fills a store so that whatever is rare is oldest: a walk from the newest end would meet everything else first.
const FILL: &str = "
    BEGIN;
    CREATE TEMP TABLE n AS WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < :rows) SELECT n FROM n;
    INSERT INTO entity_ids (entity, id, kind)
        SELECT n, printf('id%07d', n), iif(n <= 3, 'play', 'run') FROM n;
    INSERT INTO entities (entity, kind, name, status, terminal, success, version, reason_code, component, tags, fence,
            generation, created_at_ms, updated_at_ms, due_at_ms)
        SELECT n, iif(n <= 3, 'play', 'run'), iif(n = 1, 'rare', 'name' || n),
            CASE WHEN n <= 3 THEN 'rare' WHEN n <= 6 THEN 'failed' WHEN n <= 9 THEN 'running' ELSE 'completed' END,
            n <= 6 OR n > 9, n > 9, 1, 'a.b.c', 1, iif(n = 1, '{\"t\":\"rare\"}', '{\"t\":\"often\"}'), 0, 0,
            1700000000000 + n, 1700000000000 + n, NULL FROM n;
    INSERT INTO tags (key, value, entity) SELECT 't', iif(n = 1, 'rare', 'often'), n FROM n;
    INSERT INTO transitions (entity, version, status, reason_code, actor_kind, actor_id, at_ms, component)
        SELECT n, 1, 'running', 'a.b.c', 'system', 'fill', 1700000000000 + n, 1 FROM n;
    INSERT INTO runtimes (owner, kind, state, stop_unconfirmed, host, boot_id, pid_namespace, time_namespace,
            attempt_token, containment, created_at_ms, updated_at_ms)
        SELECT n, 'local', iif(n = 7, 'running', 'stopped'), 0, '', '', 0, 0, '', 'none', 0, 0 FROM n WHERE n > 3;
    INSERT INTO links (parent, child) SELECT 7, n FROM n WHERE n BETWEEN 8 AND 9;
    INSERT INTO links (parent, child) SELECT 1, n FROM n WHERE n > 10 AND n % 2;
    UPDATE components SET in_use = (SELECT count(*) FROM entities);
    COMMIT;";

fn filled(path: &Path, rows: usize) -> SqliteStore {
    let store = SqliteStore::open(path, OpenMode::Create).unwrap();
    samples::install(&store).unwrap();
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(&FILL.replace(":rows", &rows.to_string()))
        .unwrap();
    store
}

type Call = (&'static str, fn(&SqliteStore));

fn entity(store: &SqliteStore, number: usize) -> Entity {
    store.load(&format!("id{number:07}")).unwrap().unwrap()
}

/// Calls on one entity, and those that write.
const SINGLE: [Call; 9] = [
    ("load", |store| assert!(store.load("id0000001").unwrap().is_some())),
    ("create", |store| {
        let mut new = samples::new_entity(store, "run", "new");
        new.parents = vec![entity(store, 7).reference];
        new.entity.tags.insert("t".to_owned(), "often".to_owned());
        new.key = Some(KeyUse {
            key: "k".to_owned(),
            command_digest: "d".to_owned(),
        });
        store
            .create(&new, Some(&samples::new_run(&new.entity.reference)))
            .unwrap();
    }),
    ("apply", |store| {
        let mut effects = samples::ending(store, &entity(store, 8), Success::No);
        effects.change.key = Some(KeyUse {
            key: "k".to_owned(),
            command_digest: "d".to_owned(),
        });
        store.apply(&effects).unwrap();
    }),
    ("key", |store| {
        assert!(store.key_use(&entity(store, 8), "k").unwrap().is_some())
    }),
    ("history", |store| {
        let query = HistoryQuery {
            id: Some("id0000001".to_owned()),
            ..HistoryQuery::default()
        };
        assert_eq!(store.history(&query).unwrap().len(), 1);
    }),
    ("newest history", |store| {
        let query = HistoryQuery {
            newest: Some(LIMIT),
            ..HistoryQuery::default()
        };
        assert_eq!(store.history(&query).unwrap().len(), LIMIT);
    }),
    ("runtimes", |store| {
        assert_eq!(store.runtimes(Some(&[entity(store, 7).reference])).unwrap().len(), 1)
    }),
    ("work", |store| {
        assert!(store.work(&entity(store, 7)).unwrap().is_none())
    }),
    ("belongings", |store| {
        let found = store.belongings(&[entity(store, 7), entity(store, 8)]).unwrap();
        assert!(found.iter().all(|found| found.runtime.is_some()));
    }),
];

/// Calls that find entities or tell of all.
const FINDING: [Call; 10] = [
    ("newest run", |store| assert_eq!(found(store, &Lookup::NewestRun), 1)),
    ("newest failed run", |store| {
        assert_eq!(found(store, &Lookup::NewestFailedRun), 1)
    }),
    ("name", |store| {
        assert_eq!(found(store, &Lookup::Name("rare".to_owned())), 1)
    }),
    ("prefix", |store| {
        assert_eq!(
            found(
                store,
                &Lookup::IdPrefix {
                    kind: None,
                    prefix: "id00".to_owned()
                }
            ),
            LIMIT
        );
    }),
    ("parents", |store| {
        assert_eq!(store.linked(&entity(store, 9), Scope::Parents).unwrap().len(), 1)
    }),
    ("children", |store| {
        assert_eq!(store.linked(&entity(store, 7), Scope::Children).unwrap().len(), 3)
    }),
    ("descendants", |store| {
        assert_eq!(store.linked(&entity(store, 7), Scope::Descendants).unwrap().len(), 3)
    }),
    ("inventory", |store| assert_eq!(store.runtimes(None).unwrap().len(), 2)),
    ("components", |store| {
        assert!(store.components().unwrap()[0].in_use > 100)
    }),
    ("list since the newest", |store| {
        let newest = store
            .list(&EntityQuery {
                limit: Some(5),
                ..EntityQuery::default()
            })
            .unwrap();
        let since = newest.iter().map(|entity| entity.created_at).max();
        assert_eq!(
            store
                .list(&EntityQuery {
                    since,
                    ..EntityQuery::default()
                })
                .unwrap()
                .len(),
            1
        );
    }),
];

/// Calls of the outbox, each on what the one before left.
const NOTICES: [Call; 10] = [
    ("enqueue", |store| {
        let new = samples::new_dispatch(store, "sent", None);
        assert!(matches!(store.enqueue(&new).unwrap(), Enqueued::New(_)));
    }),
    ("enqueue again", |store| {
        let new = samples::new_dispatch(store, "sent", None);
        assert!(matches!(store.enqueue(&new).unwrap(), Enqueued::Held(_)));
    }),
    ("end that tells", |store| {
        let mut effects = samples::ending(store, &entity(store, 9), Success::No);
        let event_id = effects.change.row.id.clone();
        effects.change.planned.dispatches = vec![samples::new_dispatch(store, "planned", Some(&event_id))];
        effects.change.planned.owed = vec![OwedPlan {
            handler: "slow".to_owned(),
            tries: 0,
            due_at: moment(0),
            error: None,
        }];
        assert_eq!(store.apply(&effects).unwrap(), Applied::Written);
    }),
    ("dispatch", |store| {
        assert!(store.dispatch("planned").unwrap().is_some())
    }),
    ("outlines", |store| {
        let found = ["sent", "planned"].map(|id| store.load(id).unwrap().unwrap());
        assert!(store.outlines(&found).unwrap().iter().all(Option::is_some));
    }),
    ("notices_of", |store| {
        let told = store.load("planned").unwrap().unwrap();
        assert!(
            store.notices_of(&told, LIMIT).unwrap().is_empty(),
            "a notice makes no event"
        );
    }),
    ("due", |store| {
        let query = DueQuery {
            before: moment(1 << 40),
            except_targets: Vec::new(),
            limit: LIMIT,
        };
        assert_eq!(store.due(&query).unwrap().len(), 2);
    }),
    ("next due", |store| {
        assert_eq!(store.next_due().unwrap(), Some(moment(0)))
    }),
    ("settle", |store| {
        let owed = store.owed(moment(0), LIMIT).unwrap().remove(0);
        assert!(store.settle_owed(&owed, &Planned::default(), &[]).unwrap());
    }),
    ("acknowledge", |store| {
        let consumer = Consumer {
            name: "reader".to_owned(),
            since: Some(moment(1 << 40)),
            created_at: moment(0),
            retired_at: None,
        };
        assert!(
            store
                .add_consumer(&consumer, &samples::admin_event("consumer_added", "reader"))
                .unwrap()
        );
        let event = EventId::new(store.name(), "id0000009", 2);
        let answer = store.acknowledge("reader", event.as_str(), moment(0));
        assert_eq!(answer.unwrap(), Acknowledged::New);
    }),
];

/// The first page of a journal in which everything is old.
fn old_page(journal: Journal) -> JournalPage {
    JournalPage {
        journal,
        after: 0,
        before: moment(1 << 40),
        limit: LIMIT,
    }
}

/// Calls that take something away, and those that find what may go.
const REMOVING: [Call; 6] = [
    ("resources", |store| {
        assert_eq!(store.resources(&[entity(store, 7).reference]).unwrap(), [])
    }),
    ("drop runtimes", |store| {
        assert!(
            store
                .drop_runtimes(&entity(store, 12), Rows::WithoutToken, &[])
                .unwrap()
        )
    }),
    ("remove", |store| {
        let event = samples::admin_event("entity_removed", "run/id0000012");
        assert_eq!(store.remove(&entity(store, 12), &event).unwrap(), Removed::Gone);
    }),
    ("oldest", |store| {
        assert_eq!(store.oldest(7, LIMIT).unwrap().len(), LIMIT)
    }),
    ("old history", |store| {
        assert_eq!(store.journal_page(&old_page(Journal::History)).unwrap().rows, [12])
    }),
    ("prune history", |store| {
        let event = samples::admin_event("history_pruned", "history");
        let page = old_page(Journal::History);
        assert_eq!(store.prune_journal(&page, &[11, 12, 13], &event).unwrap(), 1);
    }),
];

type Select = fn(&mut EntityQuery);

/// Listings, with how many entities they find.
const LISTINGS: [(&str, Select, usize); 11] = [
    ("list", |_| {}, LIMIT),
    ("list live", |q| q.terminal = Some(false), 3),
    (
        "list failed",
        |q| (q.terminal, q.success) = (Some(true), Some(false)),
        7,
    ),
    ("list a kind", |q| q.kind = Some("play".to_owned()), 3),
    ("list a status", |q| q.statuses = vec!["rare".to_owned()], 3),
    (
        "list statuses",
        |q| q.statuses = vec!["rare".to_owned(), "failed".to_owned()],
        7,
    ),
    ("list a name", |q| q.name = Some("rare".to_owned()), 1),
    (
        "list a rare tag",
        |q| q.tags = vec![("t".to_owned(), "rare".to_owned())],
        1,
    ),
    (
        "list a frequent tag",
        |q| q.tags = vec![("t".to_owned(), "often".to_owned())],
        LIMIT,
    ),
    ("list since never", |q| q.since = Some(moment(1 << 40)), 0),
    ("list a page", |q| q.before_row = Some(40), LIMIT),
];

fn found(store: &SqliteStore, lookup: &Lookup) -> usize {
    store.look_up(lookup, LIMIT).unwrap().len()
}

fn listed(store: &SqliteStore, select: Select) -> usize {
    let mut query = EntityQuery {
        limit: Some(LIMIT),
        ..EntityQuery::default()
    };
    select(&mut query);
    store.list(&query).unwrap().len()
}

pub(super) fn measure(store: &SqliteStore, call: impl FnOnce(&SqliteStore)) -> Counts {
    let before = store.counts();
    call(store);
    let after = store.counts();
    Counts {
        statements: after.statements - before.statements,
        scan_steps: after.scan_steps - before.scan_steps,
        sorts: after.sorts - before.sorts,
        vm_steps: after.vm_steps - before.vm_steps,
        ..Counts::default()
    }
}

#[test]
fn no_call_does_more_work_in_a_larger_store() {
    let (_one, small) = place();
    let (_two, large) = place();
    let (small, large) = (filled(&small, 200), filled(&large, 20_000));
    let mut grown = Vec::new();
    let mut compare = |name: &str, few: Counts, many: Counts| {
        let allowed = few.vm_steps + few.vm_steps / 10 + 20;
        let scans = u64::try_from(LIMIT).unwrap() + 5;
        if many.sorts > 0 || many.scan_steps > scans || many.vm_steps > allowed {
            grown.push(format!("{name}: {few:?} in the small store, {many:?} in the large one"));
        }
    };
    for (name, call) in SINGLE.into_iter().chain(FINDING).chain(REMOVING) {
        compare(name, measure(&small, call), measure(&large, call));
    }
    for (name, select, expected) in LISTINGS {
        let call = |store: &SqliteStore| assert_eq!(listed(store, select), expected, "{name}");
        compare(name, measure(&small, call), measure(&large, call));
    }
    for (name, call) in NOTICES {
        compare(name, measure(&small, call), measure(&large, call));
    }
    assert!(grown.is_empty(), "{grown:#?}");
}

#[test]
fn a_statement_is_prepared_once_whatever_its_values() {
    let (_directory, path) = place();
    let store = filled(&path, 200);
    for (_, call) in SINGLE.into_iter().chain(FINDING).chain(REMOVING) {
        call(&store);
    }
    for (name, select, expected) in LISTINGS {
        assert_eq!(listed(&store, select), expected, "{name}");
    }
    for (_, call) in NOTICES {
        call(&store);
    }
    assert_eq!(store.counts().prepared_again, 0);
}

#[test]
fn what_belongs_to_many_is_read_with_as_many_statements_as_for_one() {
    let (_directory, path) = place();
    let store = filled(&path, 200);
    let listed = store.list(&EntityQuery::default()).unwrap();
    let one = measure(&store, |store| {
        assert_eq!(store.belongings(&listed[..1]).unwrap().len(), 1)
    });
    let all = measure(&store, |store| {
        assert_eq!(store.belongings(&listed).unwrap().len(), 200)
    });
    assert_eq!((one.statements, one.sorts), (all.statements, all.sorts));
}

/// Pages written by one creation and one end, as a bound on the number of b-trees they touch: each index more is one
/// page more. A change here is to be measured and meant.
#[test]
fn a_creation_and_an_end_touch_few_pages() {
    let (_directory, path) = place();
    let store = filled(&path, 20_000);
    let checkpointed = Connection::open(&path).unwrap();
    let frames = || -> i64 {
        let log = "PRAGMA wal_checkpoint(NOOP)";
        checkpointed.query_row(log, [], |row| row.get(1)).unwrap()
    };
    store.create(&samples::new_entity(&store, "run", "warm"), None).unwrap();
    let before = frames();
    store
        .create(&samples::new_entity(&store, "run", "zz-new"), None)
        .unwrap();
    let created = frames();
    let entity = store.load("zz-new").unwrap().unwrap();
    store.apply(&samples::ending(&store, &entity, Success::Yes)).unwrap();
    let ended = frames();
    let told = store.load("warm").unwrap().unwrap();
    let mut effects = samples::ending(&store, &told, Success::Yes);
    let event_id = effects.change.row.id.clone();
    effects.change.planned.dispatches = vec![samples::new_dispatch(&store, "first", Some(&event_id))];
    let before_told = frames();
    store.apply(&effects).unwrap();
    let telling = frames() - before_told;
    assert!(created - before <= 10, "a creation wrote {} pages", created - before);
    assert!(telling <= 18, "an end with a dispatch wrote {telling} pages");
    assert!(ended - created <= 8, "an end wrote {} pages", ended - created);
}

/// Dispatches to the paused destination 1 and the healthy destination 2: `:dead` that are dead at 2, `:paused` that are
/// due at 1, three that are due at 2.
const DISPATCHES: &str = "
    BEGIN;
    INSERT INTO destinations (destination, digest, target, failures, paused_until_at_ms)
        VALUES (1, 'one', '{}', 5, 9000000000000), (2, 'two', '{}', 0, NULL);
    CREATE TEMP TABLE n AS WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < :dead + :paused + 3)
        SELECT n, iif(n <= :dead, 'dead', iif(n <= :dead + :paused, 'paused', 'due')) AS what FROM n;
    INSERT INTO entity_ids (entity, id, kind) SELECT n, what || n, 'dispatch' FROM n;
    INSERT INTO entities (entity, kind, status, terminal, success, version, reason_code, component, fence, generation,
            created_at_ms, updated_at_ms, due_at_ms, next_attempt_at_ms, destination)
        SELECT n, 'dispatch', what, what = 'dead', 0, 1, 'a.b.c', 1, 0, 0, n, n, iif(what = 'dead', NULL, 1000 + n),
            1000 + n, iif(what = 'paused', 1, 2) FROM n;
    INSERT INTO transitions (entity, version, status, reason_code, actor_kind, actor_id, at_ms, component)
        SELECT n, 1, 'pending', 'a.b.c', 'system', 'fill', n, 1 FROM n;
    INSERT INTO dispatches (entity, name, dedup_key, held, wants_acknowledgement, body_bytes, body_digest)
        SELECT n, 'there', what || n, what <> 'dead', 0, 1, 'd' FROM n;
    INSERT INTO dispatch_bodies (entity, body) SELECT n, X'00' FROM n;
    COMMIT;";

fn with_dispatches(path: &Path, dead: usize, paused: usize) -> SqliteStore {
    let store = SqliteStore::open(path, OpenMode::Create).unwrap();
    samples::install(&store).unwrap();
    let fill = DISPATCHES
        .replace(":dead", &dead.to_string())
        .replace(":paused", &paused.to_string());
    Connection::open(path).unwrap().execute_batch(&fill).unwrap();
    store
}

/// Looks for what is due and claims it, as a deliverer does.
fn claim(store: &SqliteStore) {
    let query = DueQuery {
        before: moment(0),
        except_targets: Vec::new(),
        limit: 2,
    };
    let due = store.due(&query).unwrap();
    assert_eq!(due.len(), 2);
    assert!(store.next_due().unwrap().is_some());
    let mut effects = samples::change(store, &due[0], "delivering");
    effects.change.after.structural.next_attempt_at = Some(moment(1 << 40));
    assert_eq!(store.apply(&effects).unwrap(), Applied::Written);
}

#[test]
fn neither_the_dead_nor_those_for_a_paused_destination_cost_a_claim_anything() {
    let (_one, few) = place();
    let (_two, many) = place();
    let (few, many) = (with_dispatches(&few, 1, 1), with_dispatches(&many, 100_000, 10_000));
    let (few, many) = (measure(&few, claim), measure(&many, claim));
    assert_eq!(few, many);
    assert_eq!(few.sorts, 0);
}
