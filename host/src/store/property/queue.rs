//! Random commands about leased work, and everything that can be read of it.

use proptest::prelude::*;

use super::{DIGESTS, IDS, told};
use crate::model::{DurationMs, Entity, LATE_WRITE, Reference, Stage, Timestamp};
use crate::store::samples::{
    Success, admin_event, ending, moment, new_entity, new_queued, new_run, new_work, staged, successor, taking, worker,
};
use crate::store::{Boot, EffectSet, HeldLease, QueueSetup, ReadyQuery, Renewal, StagedQuery, Store, Worker};

const QUEUES: [&str; 2] = ["day", "night"];
const HOLDERS: [&str; 2] = ["v", "w"];

/// A command, with small numbers that choose what it is about.
#[derive(Clone, Debug)]
pub(super) enum Command {
    Submit {
        id: usize,
        queue: usize,
        priority: i64,
        stage: usize,
        after: Vec<usize>,
        extras: usize,
    },
    Move {
        id: usize,
        stage: usize,
        due: Option<i64>,
        stale: usize,
    },
    Take {
        ids: Vec<usize>,
        holder: usize,
        until: i64,
    },
    Renew {
        renewals: Vec<(usize, i64, usize, i64)>,
    },
    End {
        id: usize,
        success: usize,
        next: Option<usize>,
    },
    Start {
        id: usize,
        row: usize,
        fence: i64,
        holder: usize,
    },
    LookAt {
        id: usize,
        seen: usize,
    },
    SetUp {
        queue: usize,
        paused: usize,
        limit: usize,
    },
    Work {
        holder: usize,
        what: usize,
    },
    Note {
        boot: usize,
        offset: i64,
    },
}

pub(super) fn command() -> impl Strategy<Value = Command> {
    let after = prop::collection::vec(0_usize..8, 0..3);
    let renewal = (0_usize..8, 0_i64..2, 0_usize..2, 0_i64..60);
    prop_oneof![
        6 => (0_usize..8, 0_usize..2, -1_i64..2, 0_usize..5, after, 0_usize..4).prop_map(
            |(id, queue, priority, stage, after, extras)| Command::Submit { id, queue, priority, stage, after, extras }
        ),
        3 => (0_usize..8, 0_usize..6, prop::option::of(0_i64..60), 0_usize..5).prop_map(
            |(id, stage, due, stale)| Command::Move { id, stage, due, stale }
        ),
        5 => (prop::collection::vec(0_usize..8, 1..4), 0_usize..2, 0_i64..60).prop_map(
            |(ids, holder, until)| Command::Take { ids, holder, until }
        ),
        4 => prop::collection::vec(renewal, 0..4).prop_map(|renewals| Command::Renew { renewals }),
        4 => (0_usize..8, 0_usize..2, prop::option::of(0_usize..8)).prop_map(
            |(id, success, next)| Command::End { id, success, next }
        ),
        2 => (0_usize..8, 0_usize..8, 0_i64..3, 0_usize..2).prop_map(
            |(id, row, fence, holder)| Command::Start { id, row, fence, holder }
        ),
        2 => (0_usize..8, 0_usize..3).prop_map(|(id, seen)| Command::LookAt { id, seen }),
        1 => (0_usize..2, 0_usize..3, 0_usize..4).prop_map(|(queue, paused, limit)| Command::SetUp { queue, paused, limit }),
        1 => (0_usize..2, 0_usize..4).prop_map(|(holder, what)| Command::Work { holder, what }),
        1 => (0_usize..3, 0_i64..3).prop_map(|(boot, offset)| Command::Note { boot, offset }),
    ]
}

/// Dispatches and runs are not moved to stages here: they are in no queue.
fn found(store: &dyn Store, id: usize) -> Option<Entity> {
    store.load(IDS[id]).unwrap().filter(|entity| entity.queued.is_some())
}

pub(super) fn obey(store: &dyn Store, command: &Command) -> String {
    match command {
        Command::Submit { .. } => submit(store, command),
        Command::Move { id, stage, due, stale } => {
            let Some(entity) = found(store, *id) else {
                return "absent".to_owned();
            };
            let mut effects = staged(store, &entity, Stage::Waiting, due.map(moment));
            let after = &mut effects.change.after;
            (after.terminal, after.success) = (false, false);
            after.queued.as_mut().unwrap().stage = Stage::ALL.get(*stage).copied();
            effects.change.expected_version -= i64::from(*stale == 0);
            told(store.apply(&effects))
        }
        Command::Take { ids, holder, until } => {
            let rows = ids
                .iter()
                .filter_map(|id| found(store, *id))
                .filter(|row| !row.terminal);
            let take = |row: Entity| taking(store, &row, HOLDERS[*holder], moment(*until));
            told(store.apply_all(&rows.map(take).collect::<Vec<EffectSet>>()))
        }
        Command::Renew { renewals } => {
            let renewal = |(id, fence, holder, at): &(usize, i64, usize, i64)| {
                let row = found(store, *id)?;
                Some(Renewal {
                    row: row.row,
                    fence: row.fence - fence,
                    holder: HOLDERS[*holder].to_owned(),
                    until: moment(at + 20),
                    at: moment(*at),
                    late: (*fence == 0).then(|| DurationMs::from_ms(at * 100)),
                })
            };
            told(store.renew(&renewals.iter().filter_map(renewal).collect::<Vec<_>>()))
        }
        Command::End { id, success, next } => {
            let Some(entity) = found(store, *id) else {
                return "absent".to_owned();
            };
            let mut effects = ending(store, &entity, if *success == 0 { Success::Yes } else { Success::No });
            effects.successor = next.map(|next| successor(store, &entity, IDS[next]));
            told(store.apply(&effects))
        }
        Command::Start { .. } => start(store, command),
        Command::LookAt { id, seen } => match store.load(IDS[*id]).unwrap() {
            None => "absent".to_owned(),
            Some(mut row) => {
                row.version -= i64::from(*id == 3);
                let mut dependencies = store.dependencies(&row).unwrap();
                dependencies.truncate(*seen);
                told(store.looked_at(&row, &dependencies))
            }
        },
        Command::SetUp { queue, paused, limit } => {
            let setup = QueueSetup {
                name: QUEUES[*queue].to_owned(),
                paused_at: (*paused == 0).then(|| moment(3)),
                note: (*limit == 2).then(|| "note".to_owned()),
                limit: Some(*limit)
                    .filter(|limit| *limit > 0)
                    .map(|limit| i64::try_from(limit).unwrap()),
            };
            told(store.put_queue(&setup, &admin_event("queue_set_up", QUEUES[*queue])))
        }
        Command::Work { holder, what } => work(store, HOLDERS[*holder], *what),
        Command::Note { boot, offset } => {
            store.record(&[admin_event(LATE_WRITE, "job/a")], &[]).unwrap();
            told(store.keep_steady_offset(&boots(*boot), *offset))
        }
    }
}

fn submit(store: &dyn Store, command: &Command) -> String {
    let Command::Submit {
        id,
        queue,
        priority,
        stage,
        after,
        extras,
    } = command
    else {
        unreachable!("another command")
    };
    let mut new = new_queued(store, IDS[*id]);
    let place = new.entity.queued.as_mut().unwrap();
    (place.queue, place.priority) = (QUEUES[*queue].to_owned(), *priority);
    place.stage = Some(Stage::ALL[*stage]);
    new.entity.structural.next_attempt_at = (*stage < 2).then(|| moment(i64::try_from(*id).unwrap() * 7));
    new.entity.unique_key = (extras & 1 == 1).then(|| "u".to_owned());
    if extras & 2 == 2 {
        new.entity.chain_parent = Some(IDS[(*id + 1) % 8].to_owned());
        DIGESTS[1].clone_into(&mut new.entity.policy.digest);
    }
    let mut run = new_work(&new.entity.reference, &[]);
    let awaited = after.iter().map(|id| Reference::new("job", IDS[*id]));
    run.after = awaited.collect();
    told(store.create(&new, Some(&run)))
}

/// A run that is made for a lease.
fn start(store: &dyn Store, command: &Command) -> String {
    let Command::Start { id, row, fence, holder } = command else {
        unreachable!("another command")
    };
    let new = new_entity(store, "run", IDS[*id]);
    let mut run = new_run(&new.entity.reference);
    run.lease = Some(HeldLease {
        reference: Reference::new("job", IDS[*row]),
        fence: *fence,
        holder: HOLDERS[*holder].to_owned(),
        attempt: 1,
    });
    told(store.create(&new, Some(&run)))
}

fn work(store: &dyn Store, holder: &str, what: usize) -> String {
    match what {
        0 | 1 => told(store.forget_workers(moment(40))),
        _ => told(store.put_worker(&Worker {
            stopped_at: (what == 2).then(|| moment(30)),
            ..worker(holder)
        })),
    }
}

fn boots(number: usize) -> Boot {
    Boot {
        boot_id: format!("b{}", number % 2),
        time_namespace: i64::try_from(number / 2).unwrap(),
    }
}

/// Everything that can be read of leased work, as text.
pub(super) fn look(store: &dyn Store) -> Vec<String> {
    let mut seen = vec![
        told(store.renewal_delays()),
        told(store.queues()),
        told(store.workers()),
        told(store.late_writes()),
    ];
    seen.extend([0, 1, 9].map(|limit| told(store.awaiting_ended(0, limit))));
    seen.extend(HOLDERS.map(|holder| told(store.worker(holder))));
    seen.extend([0, 1, 2].map(|boot| told(store.steady_offset(&boots(boot)))));
    for queues in [&[][..], &["day"], &["night", "day"]] {
        for limit in [1, 9] {
            let queues = queues.iter().map(ToString::to_string).collect();
            seen.push(told(store.ready(&ReadyQuery { queues, limit })));
        }
    }
    for stage in Stage::ALL {
        seen.push(told(store.next_staged_due(stage)));
        for (before, after, limit) in [(99, None, 9), (20, None, 2), (99, Some((moment(14), 2)), 9)] {
            let before: Timestamp = moment(before);
            seen.push(told(store.staged_due(&StagedQuery {
                stage,
                before,
                after,
                limit,
            })));
        }
    }
    for entity in IDS.iter().filter_map(|id| store.load(id).unwrap()) {
        seen.push(told(store.dependencies(&entity)));
        seen.push(told(store.successor(&entity)));
    }
    seen
}
