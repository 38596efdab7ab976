//! Random commands: the store in a file and the store in memory give equal answers, and look the same afterwards.
#![expect(clippy::unwrap_used, reason = "tests")]

mod outbox;
mod queue;

use std::fmt::Debug;

use proptest::prelude::*;
use serde_json::json;

use super::contract::forget;
use super::samples::{
    self, DIGEST, Success, activation, admin_event, change, component, ending, moment, new_entity, new_run, stop_intent,
};
use super::sqlite::tests::place;
use super::{
    AdminQuery, EntityQuery, HistoryQuery, Journal, JournalPage, Lookup, MemoryStore, OpenMode, RuntimeUpdate, Scope,
    SqliteStore, Store, StoreError,
};
use crate::model::{Entity, Event, KeyUse, Reference, RuntimeState};

const IDS: [&str; 8] = ["a", "ab", "abc", "abd", "b_c", "b%c", "Abc", "zz"];
const KINDS: [&str; 2] = ["run", "play"];
const STATUSES: [&str; 3] = ["running", "queued", "failed"];
const DIGESTS: [&str; 3] = [DIGEST, "second", "third"];
const STATES: [RuntimeState; 3] = [RuntimeState::Running, RuntimeState::Stopped, RuntimeState::Lost];

/// A command, with small numbers that choose what it is about.
#[derive(Clone, Debug)]
enum Command {
    Create {
        id: usize,
        kind: usize,
        digest: usize,
        parents: Vec<usize>,
        key: Option<usize>,
        extras: usize,
    },
    Change {
        id: usize,
        status: usize,
        key: Option<usize>,
        stale: usize,
        digest: usize,
        extras: usize,
    },
    End {
        id: usize,
        success: usize,
    },
    UpdateRuntime {
        runtime: i64,
        state: usize,
        from: usize,
        intent: usize,
    },
    Record {
        target: usize,
    },
    Install {
        digest: usize,
        kind: usize,
        activate: usize,
    },
    Activate {
        digest: usize,
        kind: usize,
    },
    RemoveComponent {
        digest: usize,
    },
    Forget {
        id: usize,
    },
    Prune {
        journal: usize,
        before: i64,
    },
    Outbox(outbox::Command),
    Queue(queue::Command),
}

fn command() -> impl Strategy<Value = Command> {
    let key = || prop_oneof![3 => Just(None), 1 => (0_usize..2).prop_map(Some)];
    prop_oneof![
        6 => (0_usize..8, 0_usize..2, 0_usize..3, prop::collection::vec(0_usize..8, 0..3), key(), 0_usize..64).prop_map(
            |(id, kind, digest, parents, key, extras)| Command::Create { id, kind, digest, parents, key, extras }
        ),
        6 => (0_usize..8, 0_usize..3, key(), 0_usize..5, 0_usize..6, 0_usize..16).prop_map(
            |(id, status, key, stale, digest, extras)| Command::Change { id, status, key, stale, digest, extras }
        ),
        2 => (0_usize..8, 0_usize..2).prop_map(|(id, success)| Command::End { id, success }),
        2 => (1_i64..5, 0_usize..3, 0_usize..2, 0_usize..3).prop_map(
            |(runtime, state, from, intent)| Command::UpdateRuntime { runtime, state, from, intent }
        ),
        1 => (0_usize..8).prop_map(|target| Command::Record { target }),
        1 => (0_usize..3, 0_usize..2, 0_usize..2).prop_map(
            |(digest, kind, activate)| Command::Install { digest, kind, activate }
        ),
        1 => (0_usize..3, 0_usize..2).prop_map(|(digest, kind)| Command::Activate { digest, kind }),
        1 => (0_usize..3).prop_map(|digest| Command::RemoveComponent { digest }),
        1 => (0_usize..8).prop_map(|id| Command::Forget { id }),
        1 => (0_usize..2, 0_i64..40).prop_map(|(journal, before)| Command::Prune { journal, before }),
        12 => outbox::command().prop_map(Command::Outbox),
        12 => queue::command().prop_map(Command::Queue),
    ]
}

/// A command about leased work mostly, so that what one of them leaves is what the next one finds.
fn queue_command() -> impl Strategy<Value = Command> {
    prop_oneof![12 => queue::command().prop_map(Command::Queue), 1 => command()]
}

fn key_use(key: Option<usize>, status: usize) -> Option<KeyUse> {
    key.map(|key| KeyUse {
        key: format!("k{key}"),
        command_digest: format!("d{status}"),
    })
}

/// The answer in a form that two stores share: an error is its kind alone.
fn told<T: Debug>(answer: Result<T, StoreError>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(StoreError::Failed {
            doing: "pinning to a policy",
            ..
        }) => "not installed".to_owned(),
        Err(StoreError::Failed { .. }) => "failed".to_owned(),
        Err(other) => format!("{other}"),
    }
}

fn obey(store: &dyn Store, command: &Command) -> String {
    match command {
        Command::Create { .. } => create(store, command),
        Command::Change { .. } => alter(store, command),
        Command::End { id, success } => {
            let Some(entity) = store.load(IDS[*id]).unwrap() else {
                return "absent".to_owned();
            };
            let success = if *success == 0 { Success::Yes } else { Success::No };
            told(store.apply(&ending(store, &entity, success)))
        }
        Command::Outbox(command) => outbox::obey(store, command),
        Command::Queue(command) => queue::obey(store, command),
        Command::UpdateRuntime { .. } => update_runtime(store, command),
        Command::Record { target } => told(store.record(&[admin_event("noted", IDS[*target])], &[])),
        Command::Install { digest, kind, activate } => {
            let (kind, digest) = (KINDS[*kind], DIGESTS[*digest]);
            let activations: Vec<_> = (*activate == 0).then(|| activation(kind, digest)).into_iter().collect();
            let events = [admin_event("policy_installed", digest)];
            told(store.install(&[component(kind, digest)], &activations, &events))
        }
        Command::Activate { digest, kind } => {
            let event = admin_event("policy_activated", DIGESTS[*digest]);
            told(store.activate(&activation(KINDS[*kind], DIGESTS[*digest]), &event))
        }
        Command::RemoveComponent { digest } => {
            told(store.remove_component(DIGESTS[*digest], &admin_event("policy_removed", DIGESTS[*digest])))
        }
        Command::Prune { journal, before } => {
            let journal = [Journal::History, Journal::Audit][*journal];
            let page = JournalPage {
                journal,
                after: 0,
                before: moment(*before),
                limit: 20,
            };
            let old = store.journal_page(&page).unwrap();
            let mut event = admin_event("pruned", "journal");
            event.at = moment(100);
            told(store.prune_journal(&page, &old.rows, &event))
        }
        Command::Forget { id } => match store.load(IDS[*id]).unwrap() {
            None => "absent".to_owned(),
            Some(entity) if entity.version % 2 == 0 => told(store.remove(&entity, &admin_event("removed", IDS[*id]))),
            Some(_) => {
                forget(store, IDS[*id]);
                String::new()
            }
        },
    }
}

fn create(store: &dyn Store, command: &Command) -> String {
    let Command::Create {
        id,
        kind,
        digest,
        parents,
        key,
        extras,
    } = command
    else {
        unreachable!("another command")
    };
    let mut new = new_entity(store, KINDS[*kind], IDS[*id]);
    new.parents = parents
        .iter()
        .map(|parent| Reference::new(KINDS[*parent % 2], IDS[*parent]))
        .collect();
    new.key = key_use(*key, 0);
    DIGESTS[*digest].clone_into(&mut new.entity.policy.digest);
    DIGESTS[*digest].clone_into(&mut new.row.policy_digest);
    new.entity.created_at = moment(i64::try_from(*extras).unwrap());
    if extras & 1 == 1 {
        new.entity.name = Some(format!("n{}", id % 2));
    }
    if extras & 2 == 2 {
        new.entity.tags.insert("t".to_owned(), format!("{}", id % 2));
        new.entity.fields.insert("f".to_owned(), json!([id, null]));
    }
    if extras & 4 == 4 {
        new.entity.unique_key = Some("u".to_owned());
    }
    if extras & 8 == 8 {
        new.event = Some(Event {
            id: new.row.id.clone(),
            envelope: json!({"n": id}),
        });
    }
    let run = (extras & 16 == 16).then(|| new_run(&new.entity.reference));
    told(store.create(&new, run.as_ref()))
}

fn alter(store: &dyn Store, command: &Command) -> String {
    let Command::Change {
        id,
        status,
        key,
        stale,
        digest,
        extras,
    } = command
    else {
        unreachable!("another command")
    };
    let Some(mut entity) = store.load(IDS[*id]).unwrap() else {
        return "absent".to_owned();
    };
    entity.version -= i64::from(*stale == 0);
    let mut effects = change(store, &entity, STATUSES[*status]);
    effects.change.key = key_use(*key, *status);
    let after = &mut effects.change.after;
    after.terminal = false;
    after.success = false;
    if let Some(digest) = DIGESTS.get(*digest) {
        (*digest).clone_into(&mut after.policy.digest);
        (*digest).clone_into(&mut effects.change.row.policy_digest);
    }
    if extras & 1 == 1 {
        after.unique_key = Some("u".to_owned());
    }
    if extras & 2 == 2 {
        after.structural.next_attempt_at = Some(moment(5));
        after.fields.insert("g".to_owned(), json!({"x": extras}));
    }
    if extras & 4 == 4 {
        effects.change.admin.push(admin_event("override", "run/a"));
    }
    if extras & 8 == 8 {
        let state = Some(STATES[extras % 3]);
        effects.runtimes.push(RuntimeUpdate {
            id: 1,
            state,
            at: moment(7),
            ..RuntimeUpdate::default()
        });
    }
    told(store.apply(&effects))
}

fn update_runtime(store: &dyn Store, command: &Command) -> String {
    let Command::UpdateRuntime {
        runtime,
        state,
        from,
        intent,
    } = command
    else {
        unreachable!("another command")
    };
    let only_from = if *from == 0 {
        Vec::new()
    } else {
        vec![RuntimeState::Starting, RuntimeState::Lost]
    };
    let stop_intent = (*intent == 0).then(|| stop_intent("stop"));
    let state = Some(STATES[*state]);
    let at = moment(9);
    told(store.update_runtimes(&[RuntimeUpdate {
        id: *runtime,
        only_from,
        state,
        stop_intent,
        at,
        ..RuntimeUpdate::default()
    }]))
}

/// Everything that can be read, as text.
fn look(store: &dyn Store) -> Vec<String> {
    let mut seen = vec![
        told(store.runtimes(None)),
        told(store.admin_events(&AdminQuery::default())),
        told(store.admin_events(&AdminQuery {
            target: Some("a".to_owned()),
            since: Some(moment(30)),
        })),
        told(store.components()),
        told(store.activations("run")),
        told(store.look_up(&Lookup::NewestRun, 5)),
        told(store.look_up(&Lookup::NewestFailedRun, 5)),
        told(store.look_up(&Lookup::Name("n1".to_owned()), 5)),
        told(store.history(&HistoryQuery {
            since: Some(moment(21)),
            newest: Some(5),
            id: None,
        })),
    ];
    for id in IDS {
        let entity = store.load(id).unwrap();
        seen.push(format!("{entity:?}"));
        seen.push(told(store.history(&HistoryQuery {
            id: Some(id.to_owned()),
            ..HistoryQuery::default()
        })));
        for kind in [None, Some("play".to_owned())] {
            let prefix = id[..id.len().min(2)].to_owned();
            seen.push(told(store.look_up(&Lookup::IdPrefix { kind, prefix }, 3)));
        }
        if let Some(entity) = entity {
            seen.extend(
                [Scope::Parents, Scope::Children, Scope::Descendants].map(|scope| told(store.linked(&entity, scope))),
            );
            seen.push(told(store.work(&entity)));
            seen.extend(["k0", "k1"].map(|key| told(store.key_use(&entity, key))));
            seen.push(told(store.runtimes(Some(std::slice::from_ref(&entity.reference)))));
        }
    }
    for row in store.history(&HistoryQuery::default()).unwrap() {
        seen.push(format!("{row:?} {:?}", store.envelope(row.id.as_str()).unwrap()));
    }
    seen.extend(outbox::look(store));
    seen.extend(queue::look(store));
    seen
}

fn query() -> impl Strategy<Value = EntityQuery> {
    let statuses = prop::collection::vec((0_usize..3).prop_map(|status| STATUSES[status].to_owned()), 0..3);
    let tags = prop::collection::vec(
        (0_usize..2).prop_map(|value| ("t".to_owned(), format!("{value}"))),
        0..3,
    );
    let name = prop::option::of((0_usize..2).prop_map(|name| format!("n{name}")));
    let kind = || prop::option::of((0_usize..2).prop_map(|kind| KINDS[kind].to_owned()));
    let kind = (kind(), kind());
    let since = prop::option::of((0_i64..64).prop_map(moment));
    let numbers = (prop::option::of(1_i64..9), prop::option::of(0_usize..9));
    let booleans = (any::<Option<bool>>(), any::<Option<bool>>());
    (kind, statuses, booleans, tags, name, since, numbers).prop_map(
        |((kind, except_kind), statuses, (terminal, success), tags, name, since, (before_row, limit))| EntityQuery {
            kind,
            except_kind,
            statuses,
            terminal,
            success,
            tags,
            name,
            since,
            before_row,
            limit,
        },
    )
}

fn listed(store: &dyn Store, query: &EntityQuery) -> Vec<Entity> {
    store.list(query).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_commands_do_the_same_to_the_file_and_to_the_model(
        commands in prop_oneof![
            prop::collection::vec(command(), 1..50),
            prop::collection::vec(queue_command(), 1..50),
        ],
        queries in prop::collection::vec(query(), 20),
    ) {
        let (_directory, path) = place();
        let file = SqliteStore::open(&path, OpenMode::Create).unwrap();
        let memory = MemoryStore::named(file.name());
        for store in [&file as &dyn Store, &memory] {
            samples::install(store).unwrap();
            store.install(&[component("play", "second")], &[activation("play", "second")], &[]).unwrap();
        }
        for command in &commands {
            prop_assert_eq!(obey(&file, command), obey(&memory, command), "{:?}", command);
        }
        prop_assert_eq!(look(&file), look(&memory));
        for query in &queries {
            prop_assert_eq!(listed(&file, query), listed(&memory, query), "{:?}", query);
        }
    }
}
