//! The policies that ship inside the `runwarden` binary, as component bytes.
//!
//! `build.rs` builds them from `policies/lifecycle`. Each descriptor stands beside its policy as JSON, so that the
//! first command on a new home needs no engine; a test compares it with what the policy describes.

/// One policy.
#[derive(Clone, Copy, Debug)]
pub struct Bundled {
    /// The policy's name.
    pub name: &'static str,
    /// Its semantic version.
    pub version: &'static str,
    /// SHA-256 of the component, in hexadecimal: what entities are pinned to.
    pub digest: &'static str,
    /// The kind of entity that it is for.
    pub kind: &'static str,
    /// The component.
    pub component: &'static [u8],
    /// What its `describe` answers, as JSON: keys in the order of the WIT, in snake case.
    pub descriptor: &'static str,
}

/// Every policy that ships with the host.
pub const POLICIES: &[Bundled] = include!(concat!(env!("OUT_DIR"), "/policies.rs"));
