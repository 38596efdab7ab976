//! Workers, runs and whoever keeps the queue, as far as two pieces of work concern them; everything that any of them may
//! do next. Doing nothing for however long is always possible: that is what a stall is.

use super::super::{Next, Stage};
use super::rows::{Answer, Ask, Clock, Holder, Machine, Row, Rules, Sight, Success};

/// This worker is on another machine.
const AWAY: usize = 2;

/// A fault put into the host, to see that the model finds what it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    /// A run may be started for a lease that is doubted.
    StartsWhileDoubted,
    /// Processes that were told to stop are taken to be stopped.
    TakesAskedForStopped,
    /// An operator confirms that something is stopped which is not.
    OperatorErrs,
}

/// Everything there is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct World {
    pub(super) chains: [Chain; 2],
    pub(super) workers: [Worker; 3],
}

/// A piece of work: its newest row, and what was started for it and its predecessors.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Chain {
    pub(super) row: Row,
    pub(super) runs: Vec<Run>,
    /// What was seen of this version of the row, not acted on yet.
    look: Option<Sight>,
    /// It was fenced, and its successor waits for an operator's word.
    pub(super) awaits_word: bool,
}

/// A run that was made for a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Run {
    /// The worker that looks after it; none once that was started again.
    owner: Option<usize>,
    pub(super) phase: Phase,
    /// Whether it was made under the current fence.
    is_current: bool,
    is_told_to_stop: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Recorded; its program is not started yet.
    Intended,
    /// Its program runs.
    Live,
    /// Its program ended, and an exit record says how.
    Over(Success),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Worker {
    Idle,
    Holds {
        chain: usize,
        is_current: bool,
        has_started: bool,
    },
}

/// What somebody does; a number is a worker's, or that of a piece of work, in the world in which it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Claim(usize, usize),
    Start(usize),
    /// Refused: its lease is lost.
    LoseStart(usize),
    Open(usize),
    Recover(usize),
    /// A worker learns that it has nothing any more, and tells its run to stop.
    Notice(usize),
    StopOwn(usize),
    HandBack(usize),
    Crash(usize),
    /// The program ends by itself.
    Exit(usize, Success),
    /// The program ends because it was told to.
    Die(usize),
    /// What was recorded and whose starter is gone never starts.
    GiveUp(usize),
    /// The end of a run is written to its row.
    Record(usize),
    /// The end of a doubted row's run was found.
    RecoverToRecord(usize),
    /// What time makes due is written.
    Due(usize),
    TellToStop(usize),
    Look(usize, Sight),
    Fence(usize, Next),
    /// An operator says that a doubted row's processes are stopped, or those of a fenced one.
    Confirm(usize),
}

/// The rules, and what is wrong with their host.
pub(super) struct Host {
    pub(super) rules: Rules,
    pub(super) fault: Fault,
}

type Steps = Vec<(Step, World)>;

impl Host {
    /// Two pieces of work, just submitted, and three workers that have nothing to do.
    pub(super) fn first(&self) -> World {
        let chain = || Chain {
            row: self.rules.submitted(),
            runs: Vec::new(),
            look: None,
            awaits_word: false,
        };
        World {
            chains: [chain(), chain()],
            workers: [Worker::Idle; 3],
        }
    }

    /// Everything that may happen next.
    pub(super) fn next(&self, world: &World) -> Steps {
        let mut steps = Vec::new();
        for worker in 0..world.workers.len() {
            match world.workers[worker] {
                Worker::Idle => self.claims(world, worker, &mut steps),
                Worker::Holds { .. } => self.holds(world, worker, &mut steps),
            }
        }
        for chain in 0..world.chains.len() {
            for run in 0..world.chains[chain].runs.len() {
                self.run(world, (chain, run), &mut steps);
            }
            self.keep(world, chain, &mut steps);
        }
        steps
            .into_iter()
            .map(|(step, world)| (step, world.canonical()))
            .collect()
    }

    fn claims(&self, world: &World, worker: usize, steps: &mut Steps) {
        for chain in 0..world.chains.len() {
            let ask = Ask::Claim(Holder::Worker(worker));
            if let Some((mut next, _)) = self.asked(world, chain, ask, Clock::Ahead) {
                next.workers[worker] = Worker::Holds {
                    chain,
                    is_current: true,
                    has_started: false,
                };
                steps.push((Step::Claim(worker, chain), next));
            }
        }
    }

    fn holds(&self, world: &World, worker: usize, steps: &mut Steps) {
        let Worker::Holds {
            chain,
            is_current,
            has_started,
        } = world.workers[worker]
        else {
            return;
        };
        let row = &world.chains[chain].row;
        let own = world.chains[chain].runs.iter().position(|run| run.is_current);
        steps.push((Step::Crash(worker), crashed(world, worker)));
        if !has_started {
            let may_start = row.is(Stage::Active) || self.fault == Fault::StartsWhileDoubted && row.is(Stage::Doubted);
            steps.push(start(world, (worker, chain), is_current && may_start));
        }
        if !is_current || row.terminal {
            steps.push((Step::Notice(worker), noticed(world, worker, chain)));
            return;
        }
        // A renewal is no step: to a lease that may be found run out at any time it changes nothing.
        if let Some((next, _)) = self.asked(world, chain, Ask::Recover, Clock::Ahead) {
            steps.push((Step::Recover(worker), next));
        }
        match own {
            Some(own) if !world.chains[chain].runs[own].is_told_to_stop => {
                let mut next = world.clone();
                next.chains[chain].runs[own].is_told_to_stop = true;
                steps.push((Step::StopOwn(worker), next));
            }
            Some(_) => {}
            None => {
                if let Some((mut next, _)) = self.asked(world, chain, Ask::HandBack, Clock::Ahead) {
                    next.workers[worker] = Worker::Idle;
                    steps.push((Step::HandBack(worker), next));
                }
            }
        }
    }

    fn run(&self, world: &World, (chain, at): (usize, usize), steps: &mut Steps) {
        let run = world.chains[chain].runs[at];
        let removed = || {
            let mut next = world.clone();
            next.chains[chain].runs.remove(at);
            next
        };
        let moved = |phase: Phase| {
            let mut next = world.clone();
            next.chains[chain].runs[at].phase = phase;
            next
        };
        match run.phase {
            Phase::Intended if run.owner.is_none() || run.is_told_to_stop => {
                steps.push((Step::GiveUp(chain), removed()));
            }
            Phase::Intended => steps.push((Step::Open(chain), moved(Phase::Live))),
            Phase::Live => {
                for success in [Success::Yes, Success::No] {
                    steps.push((Step::Exit(chain, success), moved(Phase::Over(success))));
                }
                if run.is_told_to_stop {
                    steps.push((Step::Die(chain), removed()));
                }
            }
            Phase::Over(success) => {
                if let Some((next, _)) = self.asked(&removed(), chain, Ask::End(success), Clock::Ahead) {
                    steps.push((Step::Record(chain), next));
                } else if let Some((next, _)) = self.asked(world, chain, Ask::Recover, Clock::Ahead) {
                    steps.push((Step::RecoverToRecord(chain), next));
                }
            }
        }
    }

    /// What whoever keeps the queue does, of whom there may be several.
    fn keep(&self, world: &World, chain: usize, steps: &mut Steps) {
        let here = &world.chains[chain];
        for clock in Clock::ALL {
            match self.rules.ask(&here.row, Ask::Due, clock) {
                Answer::Nothing => {}
                Answer::Judge => self.judge(world, chain, steps),
                Answer::Written { row, is_fenced, .. } => {
                    steps.push((Step::Due(chain), world.with_row(chain, row, is_fenced)));
                }
            }
            if let Some(sight) = here.look
                && let Some((mut next, follows)) = self.asked(world, chain, Ask::Fence(sight), clock)
            {
                match follows {
                    Next::Successor => self.succeed(&mut next, chain),
                    Next::OnceConfirmed => next.chains[chain].awaits_word = true,
                    Next::None => {}
                }
                steps.push((Step::Fence(chain, follows), next));
            }
        }
        let is_true = here.runs.iter().all(|run| matches!(run.phase, Phase::Over(_)));
        if is_true || self.fault == Fault::OperatorErrs {
            let mut next = world.clone();
            if here.awaits_word {
                self.succeed(&mut next, chain);
                steps.push((Step::Confirm(chain), next));
            } else if here.row.is(Stage::Doubted) && here.holds_elsewhere() {
                next.chains[chain].look = Some(Sight::Confirmed);
                steps.push((Step::Confirm(chain), next));
            }
        }
    }

    /// The grace is over: an exit record comes first, then whatever runs here is told to stop, and once nothing of it is
    /// left that is what was seen.
    fn judge(&self, world: &World, chain: usize, steps: &mut Steps) {
        let here = &world.chains[chain];
        let mut next = world.clone();
        if here.holds_elsewhere() {
            next.chains[chain].look = Some(Sight::Elsewhere);
            steps.push((Step::Look(chain, Sight::Elsewhere), next));
            return;
        }
        if here
            .runs
            .iter()
            .any(|run| run.is_current && matches!(run.phase, Phase::Over(_)))
        {
            return;
        }
        let takes_asked = self.fault == Fault::TakesAskedForStopped;
        let is_left = |run: &Run| run.is_current && !(takes_asked && run.is_told_to_stop);
        if here.runs.iter().any(is_left) {
            for run in next.chains[chain].runs.iter_mut().filter(|run| run.is_current) {
                run.is_told_to_stop = true;
            }
            steps.push((Step::TellToStop(chain), next));
        } else {
            next.chains[chain].look = Some(Sight::Stopped);
            steps.push((Step::Look(chain, Sight::Stopped), next));
        }
    }

    fn succeed(&self, world: &mut World, chain: usize) {
        let here = &mut world.chains[chain];
        here.row = self.rules.successor(&here.row);
        here.awaits_word = false;
    }

    /// The world after what a rule answers, if it answers a write.
    fn asked(&self, world: &World, chain: usize, ask: Ask, clock: Clock) -> Option<(World, Next)> {
        match self.rules.ask(&world.chains[chain].row, ask, clock) {
            Answer::Nothing | Answer::Judge => None,
            Answer::Written { row, is_fenced, next } => Some((world.with_row(chain, row, is_fenced), next)),
        }
    }
}

impl World {
    /// The world with another version of a row: what was seen of the one before is refused, and so is everybody who had
    /// it if it is fenced.
    fn with_row(&self, chain: usize, row: Row, is_fenced: bool) -> Self {
        let mut next = self.clone();
        let here = &mut next.chains[chain];
        (here.row, here.look) = (row, None);
        if !is_fenced {
            return next;
        }
        for run in &mut here.runs {
            run.is_current = false;
        }
        for worker in &mut next.workers {
            if let Worker::Holds {
                chain: its, is_current, ..
            } = worker
            {
                *is_current &= *its != chain;
            }
        }
        next
    }

    /// The least of the worlds that differ in nothing but names: of the workers here, of the pieces of work, and of runs.
    fn canonical(mut self) -> Self {
        self.forget_what_does_not_matter();
        let mirrored = self.with_chains_swapped();
        let swapped = self.with_workers_swapped();
        let both = mirrored.with_workers_swapped();
        self.min(mirrored).min(swapped).min(both)
    }

    fn forget_what_does_not_matter(&mut self) {
        for chain in &mut self.chains {
            // A late end is refused (`rows` checks it with each fence) and changes nothing: at once or later is the same.
            chain
                .runs
                .retain(|run| run.is_current || !matches!(run.phase, Phase::Over(_)));
            for run in &mut chain.runs {
                if let Phase::Over(_) = run.phase {
                    (run.owner, run.is_told_to_stop) = (None, false);
                }
            }
            chain.runs.sort_unstable();
            if chain.row.terminal && !chain.awaits_word {
                chain.row.attempts = 0;
            }
        }
        for (at, worker) in self.workers.iter_mut().enumerate() {
            // One that has nothing left to learn of but that it lost may learn it at once.
            if let Worker::Holds {
                chain,
                is_current: false,
                has_started: true,
            } = *worker
                && self.chains[chain].runs.iter().all(|run| run.owner != Some(at))
            {
                *worker = Worker::Idle;
            }
        }
    }

    fn with_chains_swapped(&self) -> Self {
        let mut next = self.clone();
        next.chains.swap(0, 1);
        for worker in &mut next.workers {
            if let Worker::Holds { chain, .. } = worker {
                *chain = 1 - *chain;
            }
        }
        next
    }

    fn with_workers_swapped(&self) -> Self {
        let swapped = |worker: usize| if worker == AWAY { AWAY } else { 1 - worker };
        let mut next = self.clone();
        next.workers.swap(0, 1);
        for chain in &mut next.chains {
            if let Some(Holder::Worker(holder)) = &mut chain.row.holder {
                *holder = swapped(*holder);
            }
            for run in &mut chain.runs {
                run.owner = run.owner.map(swapped);
            }
            chain.runs.sort_unstable();
        }
        next
    }
}

impl Chain {
    fn holds_elsewhere(&self) -> bool {
        matches!(
            self.row.holder,
            Some(Holder::Worker(AWAY) | Holder::Gone(Machine::Elsewhere))
        )
    }
}

fn machine(worker: usize) -> Machine {
    if worker == AWAY {
        Machine::Elsewhere
    } else {
        Machine::Here
    }
}

/// A run is recorded only under the current fence, in the commit that asks for it.
fn start(world: &World, (worker, chain): (usize, usize), may: bool) -> (Step, World) {
    let mut next = world.clone();
    if !may {
        next.workers[worker] = Worker::Idle;
        return (Step::LoseStart(worker), next);
    }
    next.workers[worker] = Worker::Holds {
        chain,
        is_current: true,
        has_started: true,
    };
    next.chains[chain].runs.push(Run {
        owner: Some(worker),
        phase: Phase::Intended,
        is_current: true,
        is_told_to_stop: false,
    });
    (Step::Start(worker), next)
}

/// The worker is another one from now on: its runs live on, and nobody is the holder that it was.
fn crashed(world: &World, worker: usize) -> World {
    let mut next = world.clone();
    next.workers[worker] = Worker::Idle;
    for chain in &mut next.chains {
        if chain.row.holder == Some(Holder::Worker(worker)) {
            chain.row.holder = Some(Holder::Gone(machine(worker)));
        }
        for run in chain.runs.iter_mut().filter(|run| run.owner == Some(worker)) {
            run.owner = None;
        }
    }
    next
}

fn noticed(world: &World, worker: usize, chain: usize) -> World {
    let mut next = world.clone();
    next.workers[worker] = Worker::Idle;
    for run in next.chains[chain]
        .runs
        .iter_mut()
        .filter(|run| run.owner == Some(worker))
    {
        (run.owner, run.is_told_to_stop) = (None, true);
    }
    next
}
