//! The policies and handlers that ship inside the `runwarden` binary, as component bytes.
//!
//! `build.rs` builds them from `policies/lifecycle` and `policies/notify`. Each descriptor stands beside its source as JSON, so that the
//! first command on a new home needs no engine; a test compares it with what the component describes.

/// One policy or handler.
#[derive(Clone, Copy, Debug)]
pub struct Bundled {
    /// Its name.
    pub name: &'static str,
    /// Semantic version.
    pub version: &'static str,
    /// SHA-256 of the component, in hexadecimal: what entities are pinned to, and bindings name.
    pub digest: &'static str,
    /// The kind of entity that a policy is for; `handler` of a handler.
    pub kind: &'static str,
    /// The component, compressed.
    packed: &'static [u8],
    /// What its `describe` answers, as JSON: keys in the order of the WIT, in snake case.
    pub descriptor: &'static str,
}

impl Bundled {
    /// The component.
    ///
    /// # Panics
    /// The build was damaged.
    pub fn component(&self) -> Vec<u8> {
        miniz_oxide::inflate::decompress_to_vec(self.packed).expect("the build script compressed it")
    }
}

/// Every policy that ships with the host.
pub const POLICIES: &[Bundled] = include!(concat!(env!("OUT_DIR"), "/policies.rs"));

/// Every handler that ships with the host.
pub const HANDLERS: &[Bundled] = include!(concat!(env!("OUT_DIR"), "/handlers.rs"));

/// A component without its core module: the bytes around it.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// What stands before the core module.
    pub before: &'static [u8],
    /// What follows it.
    pub after: &'static [u8],
}

/// A policy that is a table alone, around the core module that holds the table. The module exports `memory`,
/// `cabi_realloc`, the `describe` of `lifecycle` and what is called when its answer was read.
pub const TABLE: Frame = Frame {
    before: include_bytes!(concat!(env!("OUT_DIR"), "/table_before.bin")),
    after: include_bytes!(concat!(env!("OUT_DIR"), "/table_after.bin")),
};
