//! Makes the component of a policy that is a table alone, without a compiler.
//!
//! Its core module has no code to speak of: its memory is initialised with the descriptor as the canonical ABI reads it
//! (`layout` writes it), and `describe` answers where it stands. `module` encodes that, and [`component`] puts it into
//! the frame that ships: a component whose types and exports are those of every other policy. The same descriptor gives
//! the same bytes, so that building twice changes no digest.

mod layout;
mod module;
mod records;

use crate::model::Descriptor;

/// The component whose `describe` answers this descriptor. Nothing is judged: [`super::prepare`] does that, and finds
/// what is too large to be one.
pub fn component(descriptor: &Descriptor) -> Vec<u8> {
    let frame = runwarden_bundled::TABLE;
    [frame.before, &module::section(descriptor), frame.after].concat()
}

#[cfg(test)]
mod tests;
