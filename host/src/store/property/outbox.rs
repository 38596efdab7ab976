//! Random commands about the outbox, and everything that can be read of it.

use proptest::prelude::*;
use serde_json::json;

use super::{DIGESTS, IDS, told};
use crate::model::{DestinationHealth, EventId, NewDispatch, OwedPlan, Planned};
use crate::store::samples::{Success, admin_event, change, ending, moment, new_dispatch, target, target_digest};
use crate::store::{Binding, Consumer, DueQuery, Store};

const PATHS: [&str; 2] = ["/one", "/two"];
const NAMES: [&str; 2] = ["reader", "writer"];

/// A command, with small numbers that choose what it is about.
#[derive(Clone, Debug)]
pub(super) enum Command {
    Enqueue {
        dispatch: Choice,
    },
    End {
        id: usize,
        plan: Vec<Choice>,
        owed: Vec<usize>,
    },
    Attempt {
        id: usize,
        path: usize,
        outcome: usize,
    },
    Settle {
        tries: usize,
        plan: Vec<Choice>,
        again: usize,
    },
    Bind {
        name: usize,
        what: usize,
    },
    Consume {
        name: usize,
        what: usize,
    },
    Acknowledge {
        name: usize,
        id: usize,
        version: i64,
    },
}

/// What a dispatch is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    id: usize,
    key: usize,
    path: usize,
    body: usize,
    event: usize,
}

fn choice() -> impl Strategy<Value = Choice> {
    (0_usize..8, 0_usize..4, 0_usize..2, 0_usize..2, 0_usize..9).prop_map(|(id, key, path, body, event)| Choice {
        id,
        key,
        path,
        body,
        event,
    })
}

fn choices() -> impl Strategy<Value = Vec<Choice>> {
    prop::collection::vec(choice(), 0..3)
}

pub(super) fn command() -> impl Strategy<Value = Command> {
    let owed = prop::collection::vec(0_usize..3, 0..2);
    prop_oneof![
        4 => choice().prop_map(|dispatch| Command::Enqueue { dispatch }),
        3 => (0_usize..8, choices(), owed).prop_map(|(id, plan, owed)| Command::End { id, plan, owed }),
        3 => (0_usize..8, 0_usize..2, 0_usize..6).prop_map(|(id, path, outcome)| Command::Attempt { id, path, outcome }),
        2 => (0_usize..3, choices(), 0_usize..3).prop_map(|(tries, plan, again)| Command::Settle { tries, plan, again }),
        1 => (0_usize..2, 0_usize..4).prop_map(|(name, what)| Command::Bind { name, what }),
        1 => (0_usize..2, 0_usize..4).prop_map(|(name, what)| Command::Consume { name, what }),
        2 => (0_usize..2, 0_usize..8, 1_i64..4).prop_map(|(name, id, version)| Command::Acknowledge { name, id, version }),
    ]
}

fn dispatch(store: &dyn Store, choice: Choice) -> NewDispatch {
    // One in nine tells of an entity that may be there or not, one in nine nothing.
    let event = IDS.get(choice.event).map(|id| EventId::new(store.name(), id, 2));
    let mut new = new_dispatch(store, IDS[choice.id], event.as_ref());
    new.entity.structural.next_attempt_at = Some(moment(i64::try_from(choice.id).unwrap()));
    new.dispatch.dedup_key = format!("k{}", choice.key);
    new.dispatch.body = vec![u8::try_from(choice.body).unwrap()];
    new.dispatch.target = target(PATHS[choice.path]);
    new.dispatch.target_digest = target_digest(PATHS[choice.path]);
    new
}

fn owed(handler: usize, tries: usize) -> OwedPlan {
    OwedPlan {
        handler: format!("h{handler}"),
        tries: i64::try_from(tries).unwrap(),
        due_at: moment(i64::try_from(handler * 7 + tries).unwrap()),
        error: (handler == 1).then(|| "out of fuel".to_owned()),
    }
}

pub(super) fn obey(store: &dyn Store, command: &Command) -> String {
    match command {
        Command::Enqueue { dispatch: choice } => told(store.enqueue(&dispatch(store, *choice))),
        Command::End {
            id,
            plan,
            owed: handlers,
        } => {
            let Some(entity) = store.load(IDS[*id]).unwrap() else {
                return "absent".to_owned();
            };
            let mut effects = ending(store, &entity, if *id % 2 == 0 { Success::Yes } else { Success::No });
            effects.change.planned = Planned {
                dispatches: plan.iter().map(|choice| dispatch(store, *choice)).collect(),
                owed: handlers.iter().map(|handler| owed(*handler, 0)).collect(),
            };
            told(store.apply(&effects))
        }
        Command::Attempt { .. } => attempt(store, command),
        Command::Settle { tries, plan, again } => {
            let Some(mut found) = store.owed(moment(99), 1).unwrap().pop() else {
                return "nothing owed".to_owned();
            };
            found.plan.tries += i64::from(*tries == 0);
            let handler = usize::from(found.plan.handler.ends_with('1'));
            let planned = Planned {
                dispatches: plan.iter().map(|choice| dispatch(store, *choice)).collect(),
                owed: (*again > 0).then(|| owed(handler, *again)).into_iter().collect(),
            };
            told(store.settle_owed(&found, &planned, &[admin_event("handler_failed", "run/a")]))
        }
        Command::Bind { name, what: 0 } => {
            told(store.drop_binding(NAMES[*name], &admin_event("unbound", NAMES[*name])))
        }
        Command::Bind { name, what } => {
            let binding = Binding {
                name: NAMES[*name].to_owned(),
                settings: json!({"n": what}),
                created_at: moment(3),
                actor: "tests".to_owned(),
            };
            told(store.put_binding(&binding, &admin_event("bound", NAMES[*name])))
        }
        Command::Consume { name, what: 0 } => {
            told(store.retire_consumer(NAMES[*name], moment(50), &admin_event("retired", NAMES[*name])))
        }
        Command::Consume { name, what } => {
            let consumer = Consumer {
                name: NAMES[*name].to_owned(),
                since: (*what > 1).then(|| moment(22)),
                created_at: moment(4),
                retired_at: None,
            };
            told(store.add_consumer(&consumer, &admin_event("added", NAMES[*name])))
        }
        Command::Acknowledge { name, id, version } => {
            let event = EventId::new(store.name(), IDS[*id], *version);
            told(store.acknowledge(NAMES[*name], event.as_str(), moment(60)))
        }
    }
}

/// The outcome of an attempt: status, next due time and the destination's health in one commit.
fn attempt(store: &dyn Store, command: &Command) -> String {
    let Command::Attempt { id, path, outcome } = command else {
        unreachable!("another command")
    };
    let Some(entity) = store.load(IDS[*id]).unwrap() else {
        return "absent".to_owned();
    };
    let mut effects = change(store, &entity, "pending");
    let after = &mut effects.change.after;
    (after.terminal, after.success) = (outcome % 3 == 0, *outcome == 0);
    after.unique_key = None;
    if let Some(queued) = after.queued.as_mut().filter(|_| after.terminal) {
        queued.stage = None;
    }
    let at = i64::try_from(*outcome * 10).unwrap();
    after.structural.next_attempt_at = Some(moment(at));
    DIGESTS[0].clone_into(&mut after.policy.digest);
    DIGESTS[0].clone_into(&mut effects.change.row.policy_digest);
    effects.destination = Some(DestinationHealth {
        target_digest: target_digest(PATHS[*path]),
        label: "file".to_owned(),
        failures: i64::try_from(*outcome % 3).unwrap(),
        paused_until: (*outcome == 5).then(|| moment(30)),
        last_error: None,
    });
    told(store.apply(&effects))
}

/// Everything that can be read of the outbox, as text.
pub(super) fn look(store: &dyn Store) -> Vec<String> {
    let mut seen = vec![
        told(store.next_due()),
        told(store.owed(moment(10), 2)),
        told(store.owed(moment(99), 99)),
        told(store.destinations()),
        told(store.bindings()),
        told(store.consumers()),
    ];
    for name in NAMES {
        seen.extend([2, 99].map(|limit| told(store.pending(name, limit))));
    }
    for before in [0, 5, 29, 30, 99] {
        for (except, limit) in [(None, 9), (Some(0), 9), (Some(1), 9), (None, 2)] {
            let except_targets = except
                .map(|path: usize| target_digest(PATHS[path]))
                .into_iter()
                .collect();
            let before = moment(before);
            seen.push(told(store.due(&DueQuery {
                before,
                except_targets,
                limit,
            })));
        }
    }
    let entities: Vec<_> = IDS.iter().filter_map(|id| store.load(id).unwrap()).collect();
    seen.push(told(store.outlines(&entities)));
    seen.extend(entities.iter().map(|entity| told(store.notices_of(entity, 3))));
    seen.extend(IDS.map(|id| told(store.dispatch(id))));
    seen
}
