//! A descriptor ready for look-ups: the native graph that decides, without a component.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::{Descriptor, Edge, Field, KillRow, LeaseRule, SameStatus, Status};

/// A descriptor that passed [`super::check`], with its names interned.
#[derive(Debug)]
pub struct Lifecycle {
    descriptor: Descriptor,
    statuses: Names,
    /// Row-major table of status pairs: the edge's place, or [`NO_EDGE`].
    table: Vec<u32>,
    fields: Names,
    reason_codes: Names,
}

const NO_EDGE: u32 = u32::MAX;

/// Names with their places.
type Names = HashMap<String, usize, BuildHasherDefault<Fnv>>;

/// FNV-1a: names are short, each decision looks up several, and a descriptor has too few of them to be flooded with.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// What happens to a bare command for one ordered pair of statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellResult {
    /// An edge exists.
    Allowed,
    /// The status stays and the same-status rule appends.
    SameStatus,
    /// Nothing ordinary leads there.
    Rejected,
}

impl CellResult {
    /// The word used in output.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::SameStatus => "same_status",
            Self::Rejected => "rejected",
        }
    }
}

/// One cell of the matrix of a lifecycle.
#[derive(Debug)]
pub struct Cell<'a> {
    /// The status left.
    pub from: &'a Status,
    /// The status entered.
    pub to: &'a Status,
    /// What happens.
    pub result: CellResult,
    /// The edge, where one is declared.
    pub edge: Option<&'a Edge>,
}

impl Lifecycle {
    /// Interns a descriptor's names. Rows that name unknown statuses are left out: [`super::check`] reports them.
    pub fn new(descriptor: Descriptor) -> Self {
        let index = |names: Vec<&str>| -> Names {
            names
                .into_iter()
                .enumerate()
                .map(|(place, name)| (name.to_owned(), place))
                .collect()
        };
        let statuses = index(descriptor.statuses.iter().map(|status| status.name.as_str()).collect());
        let fields = index(descriptor.fields.iter().map(|field| field.name.as_str()).collect());
        let reason_codes = index(
            descriptor
                .reason_codes
                .iter()
                .map(|reason| reason.code.as_str())
                .collect(),
        );
        let width = descriptor.statuses.len();
        let mut table = vec![NO_EDGE; width * width];
        for (place, edge) in (0_u32..).zip(&descriptor.edges) {
            if let (Some(from), Some(to)) = (statuses.get(&edge.from), statuses.get(&edge.to)) {
                table[from * width + to] = place;
            }
        }
        Self {
            descriptor,
            statuses,
            table,
            fields,
            reason_codes,
        }
    }

    /// The descriptor as declared.
    pub const fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// The kind it governs.
    pub fn kind(&self) -> &str {
        &self.descriptor.kind
    }

    /// The status of that name.
    pub fn status(&self, name: &str) -> Option<&Status> {
        self.statuses.get(name).map(|place| &self.descriptor.statuses[*place])
    }

    /// The declared edge between two statuses.
    pub fn edge(&self, from: &str, to: &str) -> Option<&Edge> {
        let (from, to) = (self.statuses.get(from)?, self.statuses.get(to)?);
        let place = self.table[from * self.descriptor.statuses.len() + to];
        (place != NO_EDGE).then(|| &self.descriptor.edges[place as usize])
    }

    /// The companion field of that name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.get(name).map(|place| &self.descriptor.fields[*place])
    }

    /// Whether the kind admits the reason code.
    pub fn admits_reason(&self, code: &str) -> bool {
        self.reason_codes.contains_key(code)
    }

    /// The reason code with which the policy's own rules write a status; none when they do not.
    pub fn usual_code(&self, status: &str) -> Option<&str> {
        let descriptor = &self.descriptor;
        let run = descriptor.execution.iter().map(|rule| &rule.start);
        let leased = descriptor
            .lease
            .iter()
            .flat_map(LeaseRule::outcomes)
            .map(|(_, outcome)| outcome);
        let written = run.chain(leased).find(|outcome| outcome.status == status);
        let created = || self.status(status)?.creation_code.as_deref();
        written.map(|outcome| outcome.code.as_str()).or_else(created)
    }

    /// Whether the status is terminal; an unknown one is not.
    pub fn is_terminal(&self, status: &str) -> bool {
        self.status(status).is_some_and(|status| status.terminal)
    }

    /// Whether the status counts as a success.
    pub fn is_success(&self, status: &str) -> bool {
        self.status(status).is_some_and(|status| status.success)
    }

    /// The first initial status, in declared order.
    pub fn first_initial(&self) -> Option<&Status> {
        self.descriptor.statuses.iter().find(|status| status.initial)
    }

    /// What a kill does from this status; none when it cannot be killed from here.
    pub fn kill_row(&self, status: &str) -> Option<&KillRow> {
        self.descriptor
            .kill
            .iter()
            .find(|row| row.killable.iter().any(|killable| killable == status))
    }

    /// One cell for every ordered pair of statuses, row by row in declared order.
    pub fn matrix(&self) -> Vec<Cell<'_>> {
        let statuses = &self.descriptor.statuses;
        let pairs = statuses
            .iter()
            .flat_map(|from| statuses.iter().map(move |to| (from, to)));
        pairs
            .map(|(from, to)| {
                let edge = self.edge(&from.name, &to.name);
                let result = match edge {
                    Some(_) => CellResult::Allowed,
                    None if from.name == to.name && self.descriptor.same_status == SameStatus::Append => {
                        CellResult::SameStatus
                    }
                    None => CellResult::Rejected,
                };
                Cell { from, to, result, edge }
            })
            .collect()
    }
}
