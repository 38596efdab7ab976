//! Limits that an operator raises for one component: what is written with it, and nothing of what enforces it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A limit that can be raised. Its unit is in its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Limit {
    /// Linear memory of one call.
    #[serde(rename = "memory_bytes")]
    Memory,
    /// The component itself.
    #[serde(rename = "component_bytes")]
    ComponentSize,
    /// Instructions of one call.
    #[serde(rename = "fuel")]
    Fuel,
    /// Time on the clock of one call.
    #[serde(rename = "wall_ms")]
    Wall,
    /// Processor time of compiling it.
    #[serde(rename = "compile_time_ms")]
    CompileTime,
    /// Memory of compiling it.
    #[serde(rename = "compile_memory_bytes")]
    CompileMemory,
}

impl Limit {
    /// Its word, with its unit: as it is stored.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Memory => "memory_bytes",
            Self::ComponentSize => "component_bytes",
            Self::Fuel => "fuel",
            Self::Wall => "wall_ms",
            Self::CompileTime => "compile_time_ms",
            Self::CompileMemory => "compile_memory_bytes",
        }
    }

    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 6] = [
        Self::Memory,
        Self::ComponentSize,
        Self::Fuel,
        Self::Wall,
        Self::CompileTime,
        Self::CompileMemory,
    ];
}

/// The limits that are raised for a component; those that are not named are as for every component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RaisedLimits(BTreeMap<Limit, u64>);

impl RaisedLimits {
    /// None is raised.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What a limit is raised to, in the unit of its word.
    pub fn get(&self, limit: Limit) -> Option<u64> {
        self.0.get(&limit).copied()
    }

    /// The raised ones, in the order in which they are shown.
    pub fn iter(&self) -> impl Iterator<Item = (Limit, u64)> + '_ {
        self.0.iter().map(|(limit, to)| (*limit, *to))
    }

    /// These, and the others where these name none.
    #[must_use]
    pub fn or(&self, others: &Self) -> Self {
        let mut all = others.0.clone();
        all.extend(self.iter());
        Self(all)
    }
}

impl FromIterator<(Limit, u64)> for RaisedLimits {
    fn from_iter<I: IntoIterator<Item = (Limit, u64)>>(raised: I) -> Self {
        Self(raised.into_iter().collect())
    }
}
