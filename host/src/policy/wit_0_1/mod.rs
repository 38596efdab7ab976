//! WIT 0.1: the adapter between its types and the host's own. Nothing outside of this directory names a type of it.
//!
//! An adapter converts and does not judge: what a component answered leaves here as [`super::unjudged`] has it, whatever
//! it says, and one judge serves every line.

mod answers;
mod bindings;
mod calls;
mod descriptors;
mod diagnostics;
mod requests;

use super::line::Adapter;

/// How a component of this line is linked, called and understood.
pub(super) const ADAPTER: Adapter = Adapter {
    link: diagnostics::link,
    probe: calls::probe,
    describe: calls::describe,
    describe_handler: calls::describe_handler,
    guard: calls::guard,
    verdict: calls::verdict,
    assess: calls::assess,
    map: calls::map,
    plan: calls::plan,
};
