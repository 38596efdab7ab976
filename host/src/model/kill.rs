//! The plan of a kill: what is done with each entity, and in which order (SEMANTICS 5). Pure, so that `--dry-run` shows
//! the very plan that is carried out.

use super::{Cascade, Entity, KillRow, Lifecycle};

/// What is known of an entity's processes before anything is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It never had a process, or all of them were seen to be gone.
    Nothing,
    /// It is being started: no identity is recorded yet.
    Starting,
    /// Its shim lives: the shim stops the set and sees it end.
    Held,
    /// Its shim is gone and members of its set live: the killer stops them.
    Unheld,
    /// Everything of it is positively gone, and nobody recorded its end; what was seen that says so.
    Gone(SeenGone),
    /// Nothing may be signalled and nothing written.
    Unjudged(Unjudged),
}

/// What says that a recorded process is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenGone {
    /// It ran in an earlier boot of this machine.
    EarlierBoot,
    /// The kernel has no process that was it.
    NoSuchProcess,
    /// Another process has its number.
    Recycled,
    /// It has ended and waits to be reaped.
    Zombie,
    /// It never had a process that was recorded, and nobody carries its marks.
    NoMember,
}

impl SeenGone {
    /// The word in evidence.
    pub const fn word(self) -> &'static str {
        match self {
            Self::EarlierBoot => "earlier_boot",
            Self::NoSuchProcess => "no_such_process",
            Self::Recycled => "recycled",
            Self::Zombie => "zombie",
            Self::NoMember => "no_member",
        }
    }
}

/// Why nothing is signalled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unjudged {
    /// The word for it.
    pub word: KillRefusal,
    /// In words, with what to do.
    pub message: String,
}

/// The words of a refusal (SEMANTICS 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillRefusal {
    /// Two layers that both sides have contradict each other.
    IdentityMismatch,
    /// It was recorded on another machine.
    HostMismatch,
    /// It was recorded in another namespace.
    NamespaceMismatch,
    /// Nothing durable says which process it is.
    Unverifiable,
    /// It runs in a container or on another system.
    Remote,
    /// The kernel refuses: it is another user's.
    PermissionDenied,
    /// Its policy has no kill from the status it has.
    NotKillable,
}

impl KillRefusal {
    /// The word in reports.
    pub const fn word(self) -> &'static str {
        match self {
            Self::IdentityMismatch => "identity_mismatch",
            Self::HostMismatch => "host_mismatch",
            Self::NamespaceMismatch => "namespace_mismatch",
            Self::Unverifiable => "unverifiable",
            Self::Remote => "remote",
            Self::PermissionDenied => "permission_denied",
            Self::NotKillable => "no_process",
        }
    }
}

/// Whether what is linked below is killed too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Only below kinds whose policy always cascades.
    Policy,
    /// Everything below (`--recursive`).
    Everything,
}

/// Whether a kill was asked for by name or came down a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// By a reference or a selector.
    Directly,
    /// It is linked below one that was.
    Below,
}

/// Which of an entity's sets of processes a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillSet {
    /// The newest that is not stopped, whose end is the entity's; or the entity alone, where there is none.
    Newest,
    /// One that was started before: it is stopped, and the status is not its to tell.
    Older,
}

/// One entity that a kill reaches, as it was found; one more for each set of its processes beside the newest.
#[derive(Clone, Debug, PartialEq)]
pub struct KillNode {
    /// The entity.
    pub entity: Entity,
    /// What its policy says of a kill from its status.
    pub row: Option<KillRow>,
    /// Whether its kind is run: its policy has an execution rule.
    pub is_run: bool,
    /// Whether it was asked for.
    pub asked: Asked,
    /// Which of its sets is meant.
    pub set: KillSet,
    /// What is known of its processes.
    pub standing: Standing,
    /// Places, among the nodes, of those linked directly below.
    pub below: Vec<usize>,
}

/// What is done with one entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KillStep {
    /// Its set is stopped; then its end is written.
    Stop,
    /// It has ended, or another set of it tells its end; what lives of this one is stopped, and its status stays.
    StopLingering,
    /// Its end is written; it never had a process.
    End,
    /// Its end is written; its processes are positively gone.
    EndGone,
    /// Its end is written although nothing tells what runs for it: no run is linked below.
    EndUnreached,
    /// Nothing: it had ended, or a kill means nothing for it.
    Unchanged,
    /// Nothing is signalled and nothing written.
    Refused(Unjudged),
}

impl KillStep {
    /// The word in a plan.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::StopLingering => "stop_lingering",
            Self::End => "end",
            Self::EndGone => "end_gone",
            Self::EndUnreached => "end_unreached",
            Self::Unchanged => "unchanged",
            Self::Refused(_) => "refused",
        }
    }

    /// Whether a kill that does this does all that was asked.
    pub const fn is_complete(&self) -> bool {
        match self {
            Self::Stop | Self::StopLingering | Self::End | Self::EndGone | Self::Unchanged => true,
            Self::EndUnreached | Self::Refused(_) => false,
        }
    }
}

/// What is done with a node, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedKill {
    /// Its place among the nodes.
    pub node: usize,
    /// Its round: those of one round are stopped side by side, all below it came before.
    pub round: usize,
    /// What is done.
    pub step: KillStep,
}

/// Whether an entity has ended as a kill by this row ends it, whoever wrote that.
pub fn is_killed_by(row: &KillRow, entity: &Entity) -> bool {
    let codes = [&row.term_code, &row.force_code];
    entity.terminal && entity.status == row.goes_to && codes.contains(&&entity.reason.code)
}

/// Whether a kill of an entity reaches what is linked below it. For one that has ended its kind's rows count: what it
/// left running below is killed as it would have been.
pub fn cascades(lifecycle: &Lifecycle, status: &str, reach: Reach) -> bool {
    let rows = &lifecycle.descriptor().kill;
    let row = lifecycle.kill_row(status).or_else(|| rows.first());
    match (reach, row.map(|row| row.cascade)) {
        (Reach::Everything, _) => true,
        (Reach::Policy, cascade) => cascade == Some(Cascade::Always),
    }
}

/// The plan: each node once, the deepest first, so that children come before their parents.
pub fn plan_kill(nodes: &[KillNode]) -> Vec<PlannedKill> {
    let mut plan: Vec<PlannedKill> = rounds(nodes)
        .into_iter()
        .enumerate()
        .map(|(node, round)| PlannedKill {
            node,
            round,
            step: step(nodes, node),
        })
        .collect();
    plan.sort_by_key(|planned| (planned.round, planned.node));
    plan
}

/// The round of each node: after all that is below it.
fn rounds(nodes: &[KillNode]) -> Vec<usize> {
    let mut rounds: Vec<Option<usize>> = vec![None; nodes.len()];
    for round in 0..nodes.len() {
        let waiting = || rounds.iter().enumerate().filter(|(_, round)| round.is_none());
        let is_ready = |node: &usize| nodes[*node].below.iter().all(|below| rounds[*below].is_some());
        let mut ready: Vec<usize> = waiting().map(|(node, _)| node).filter(is_ready).collect();
        if ready.is_empty() {
            // A circle of links has no lowest: it is taken whole.
            ready = waiting().map(|(node, _)| node).collect();
        }
        ready.into_iter().for_each(|node| rounds[node] = Some(round));
    }
    rounds.into_iter().map(Option::unwrap_or_default).collect()
}

fn step(nodes: &[KillNode], place: usize) -> KillStep {
    let node = &nodes[place];
    let has_ended = node.entity.terminal || node.set == KillSet::Older;
    match (&node.standing, &node.row) {
        (Standing::Unjudged(why), _) => KillStep::Refused(why.clone()),
        (Standing::Starting | Standing::Held | Standing::Unheld, _) if has_ended => KillStep::StopLingering,
        (Standing::Nothing | Standing::Gone(_), _) if has_ended => KillStep::Unchanged,
        (Standing::Starting | Standing::Held | Standing::Unheld, _) => KillStep::Stop,
        (Standing::Gone(_), Some(_)) => KillStep::EndGone,
        (Standing::Nothing, Some(row)) if is_unreached(nodes, place, row) => KillStep::EndUnreached,
        (Standing::Nothing, Some(_)) => KillStep::End,
        (Standing::Nothing | Standing::Gone(_), None) if node.asked == Asked::Below => KillStep::Unchanged,
        (Standing::Nothing | Standing::Gone(_), None) => KillStep::Refused(not_killable(node)),
    }
}

fn not_killable(node: &KillNode) -> Unjudged {
    let Entity { reference, status, .. } = &node.entity;
    Unjudged {
        word: KillRefusal::NotKillable,
        message: format!("a {} cannot be killed while it is {status}", reference.kind),
    }
}

/// Whether a kind whose work is done by runs below it has none there, so that nothing shows what runs for it.
fn is_unreached(nodes: &[KillNode], place: usize, row: &KillRow) -> bool {
    if nodes[place].is_run || row.cascade != Cascade::Always {
        return false;
    }
    let mut seen = vec![false; nodes.len()];
    let mut open = vec![place];
    while let Some(at) = open.pop() {
        if std::mem::replace(&mut seen[at], true) {
            continue;
        }
        if nodes[at].is_run {
            return false;
        }
        open.extend(&nodes[at].below);
    }
    true
}

#[cfg(test)]
mod tests;
