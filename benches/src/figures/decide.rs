//! The decision alone: pure, without store and component.

use std::hint::black_box;

use anyhow::{Result, ensure};
use runwarden_host::model::{Actor, Decision, Reason, Timestamp, Transition, decide};

use super::{ping, time};
use crate::harness::{Effort, Home, Row, Target, interleave, measured, median};

/// Under a microsecond, in nanoseconds.
const NANOSECONDS_MAX: f64 = 1_000.0;

/// `decide` on a declared edge of the bundled `run` and of a bare kind; beside it, copying the entity that it changes.
pub(super) fn figure(effort: Effort) -> Result<Vec<Row>> {
    let home = Home::new()?;
    let host = home.open()?;
    ping::install(&host)?;
    let bare = ping::make(&host, "one")?;
    let mut run = bare.clone();
    run.reference.kind = "run".to_owned();
    run.status = "running".to_owned();
    let run_graph = host.active_policy("run")?.lifecycle;
    let bare_graph = host.active_policy("ping")?.lifecycle;
    let ending = Transition::new(
        "completed",
        Reason::code("run.completed.ok"),
        Actor::new("executor", "shim"),
    );
    let now = Timestamp::from_ms(1_700_000_000_000);
    let count = effort.choose(20_000, 200_000);
    let operations = u64::try_from(count)?;
    let mut rows = Vec::new();
    for (what, graph, entity, command) in [
        ("decide run: running -> completed", &run_graph, &run, &ending),
        ("decide, a bare edge", &bare_graph, &bare, &ping::command(&bare)),
    ] {
        let decision = decide(graph, entity, command, "benches1", now);
        ensure!(matches!(decision, Decision::Apply(_)), "{decision:?}");
        let ours = || {
            measured(operations, || {
                for _ in 0..count {
                    black_box(decide(
                        black_box(graph),
                        black_box(entity),
                        black_box(command),
                        "benches1",
                        now,
                    ));
                }
                Ok(())
            })
        };
        let copies = || {
            measured(operations, || {
                for _ in 0..count {
                    black_box(black_box(entity).clone());
                }
                Ok(())
            })
        };
        let (ours, copies) = interleave(effort.choose(3, 11), ours, copies)?;
        let each = median(ours.iter().map(|sample| sample.each_cpu()));
        rows.push(Row::value(what, each * 1e9, "ns", Target::AtMost(NANOSECONDS_MAX)));
        let floor = time(median(copies.iter().map(|sample| sample.each_cpu())));
        rows.push(Row::fact("of which copying the entity takes", String::new(), floor));
    }
    Ok(rows)
}
