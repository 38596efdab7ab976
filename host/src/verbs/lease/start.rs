//! Starting the run of a row that was taken: a supervised run of its own, linked below the row.

use super::claim::Taken;
use crate::error::Error;
use crate::host::Host;
use crate::model::{Actor, Bytes, Create, Entity};
use crate::process::{Io, ParentTie};
use crate::verbs::create::IdChoice;
use crate::verbs::run::{Begun, Start, run};

/// The run of a row.
pub(super) enum Started {
    /// It executes, or has ended already; its end is recorded by whoever sees it.
    Run(Box<Entity>),
    /// The lease was lost before it began: nothing was executed.
    Lost,
}

/// Starts it. Its notices are those of the row: it has none of its own.
pub(super) fn start(host: &Host, taken: &Taken, environment: &[(Bytes, Bytes)]) -> Result<Started, Error> {
    let row = &taken.row.entity;
    let mut work = taken.row.work.clone();
    let Some(queue) = work.queue.take() else {
        return Ok(Started::Lost);
    };
    work.lease = Some(taken.lease.clone());
    let actor = Actor::new("executor", &taken.lease.holder);
    let mut create = Create::new(&queue.run_kind, &host.draw_id()?, actor);
    create.name.clone_from(&row.name);
    create.tags.clone_from(&row.tags);
    create.parents = vec![row.reference.clone()];
    let begun = run(
        host,
        Start {
            create,
            id: IdChoice::Drawn,
            policy: None,
            work,
            inherited: environment.to_vec(),
            io: Io::Null,
            parent: ParentTie::Survive,
        },
    );
    match begun {
        Ok(Begun::Running(running)) => {
            if let Err(error) = running.control.detach() {
                tracing::warn!(%error, "the shim did not take leave");
            }
            Ok(Started::Run(Box::new(running.entity)))
        }
        Ok(Begun::Failed(failure)) => Ok(Started::Run(Box::new(failure.entity))),
        Ok(Begun::Replayed(entity)) => Ok(Started::Run(entity)),
        Err(Error::LeaseLost { .. } | Error::ParentClosed { .. } | Error::NotFound { .. }) => Ok(Started::Lost),
        Err(error) => Err(error),
    }
}
