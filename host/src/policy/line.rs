//! Lines of the WIT: which one a component speaks, and who speaks it for the host.
//!
//! A line is all versions that differ in nothing a built component could notice: 0.1.x is one. It is chosen once, when a
//! component is inspected and when it is linked, and nothing behind its adapter knows it. To add 0.2:
//!
//! 1. put the packages of 0.1 below `wit/` where the bindings of 0.1 find them, and the new ones in their place;
//! 2. copy `wit_0_1` to `wit_0_2`, point its bindings at the new packages, and follow the compiler;
//! 3. add `Line::V0_2` here: [`Line::ALL`], [`Line::version`] and [`Line::adapter`] are all that must name it;
//! 4. what only 0.2 can say or ask gets a place in the model and in [`super::unjudged`]; the compiler then lists what
//!    `wit_0_1` must fill in, which is what its components have always meant. A function that 0.1 has not is an
//!    `Option` in [`Adapter`];
//! 5. build golden components of 0.2 beside those of 0.1, which must answer as they always did.

use wasmtime::component::{Component, Linker};

use super::calls::{Callable, GuardRequest, HealthRequest, MapRequest, VerdictRequest};
use super::fault::{InstallError, PolicyFault};
use super::instance::CallState;
use super::unjudged::{Assessment, Binding, Called, Decision, Dispatch, Event, Judgement, Mapping};
use super::wit_0_1;
use crate::model::{Descriptor, HandlerDescriptor, Reads};

/// Interfaces of which every component exports one: its version is the component's line.
const ESSENTIAL: [&str; 2] = ["runwarden:policy/lifecycle", "runwarden:notify/notifier"];

/// A line of the WIT that this host speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// 0.1.x.
    V0_1,
}

/// How components of one line are linked, called and understood.
pub(super) struct Adapter {
    /// Gives a component what it may import.
    pub(super) link: fn(&mut Linker<CallState>) -> wasmtime::Result<()>,
    /// Whether an exported interface has the line's functions and types.
    pub(super) probe: fn(&Callable<'_>, &str) -> Result<(), PolicyFault>,
    /// What a policy says of itself.
    pub(super) describe: fn(&Callable<'_>) -> Result<Descriptor, InstallError>,
    /// What a handler says of itself.
    pub(super) describe_handler: fn(&Callable<'_>) -> Result<HandlerDescriptor, InstallError>,
    /// Whether a guarded edge may be taken.
    pub(super) guard: fn(&Callable<'_>, &Reads, GuardRequest<'_>) -> Called<Decision>,
    /// What an ending means.
    pub(super) verdict: fn(&Callable<'_>, &Descriptor, &VerdictRequest<'_>) -> Called<Judgement>,
    /// How an entity is.
    pub(super) assess: fn(&Callable<'_>, &Reads, HealthRequest<'_>) -> Called<Assessment>,
    /// Where an entity of another policy goes.
    pub(super) map: fn(&Callable<'_>, &Reads, MapRequest<'_>) -> Called<Mapping>,
    /// What is to be sent of an event.
    pub(super) plan: fn(&Callable<'_>, &Event, &Binding<'_>) -> Called<Vec<Dispatch>>,
}

impl Line {
    /// Oldest first.
    pub(super) const ALL: [Self; 1] = [Self::V0_1];

    /// What its versions have in common: `0.1`.
    pub(super) const fn version(self) -> &'static str {
        match self {
            Self::V0_1 => "0.1",
        }
    }

    /// Who speaks it.
    pub(super) const fn adapter(self) -> &'static Adapter {
        match self {
            Self::V0_1 => &wit_0_1::ADAPTER,
        }
    }

    /// The line of a version such as `0.1.3`; none when this host does not speak it. A prerelease is of no line.
    pub(super) fn of_version(version: &str) -> Option<Self> {
        let (line, patch) = version.rsplit_once('.')?;
        let is_number = !patch.is_empty() && patch.bytes().all(|byte| byte.is_ascii_digit());
        Self::ALL.into_iter().find(|known| is_number && known.version() == line)
    }

    /// The line that a component speaks; none when this host does not speak it.
    pub(super) fn of_component(component: &Component) -> Option<Self> {
        let exports = |line: &Self| {
            ESSENTIAL.iter().any(|interface| {
                // A later version of the same line is found by the name of its first.
                let name = format!("{interface}@{}.0", line.version());
                component.get_export_index(None, &name).is_some()
            })
        };
        Self::ALL.into_iter().find(exports)
    }

    /// The lines that this host speaks, in words: `0.1.x`.
    pub(super) fn all_in_words() -> String {
        let words = Self::ALL.map(|line| format!("{}.x", line.version()));
        words.join(" and ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_its_releases_and_nothing_that_looks_like_one() {
        for version in ["0.1.0", "0.1.9", "0.1.10"] {
            assert_eq!(Line::of_version(version), Some(Line::V0_1), "{version}");
        }
        for version in [
            "",
            "0.1",
            "0.1.",
            "0.1.0-rc.1",
            "0.1.0.0",
            "0.10.0",
            "0.2.0",
            "1.0.0",
            "0.1.x",
            "10.1.0",
        ] {
            assert_eq!(Line::of_version(version), None, "{version}");
        }
    }
}
