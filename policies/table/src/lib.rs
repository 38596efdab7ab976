//! The shell of a policy that is a table alone.
//!
//! Nobody runs this code. `policy build` takes the component that is made of it, whose types say what a policy exports,
//! and puts another core module in the place of its own: one whose memory holds a descriptor, ready to be read. That is
//! why it is exported without the kit's `export!`, which would import the host's diagnostics.

/// Stands for the table.
#[derive(Debug)]
pub struct Table;

#[cfg(target_arch = "wasm32")]
#[allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    reason = "expanded from generated bindings"
)]
const _: () = {
    use runwarden_kit::bindings::lifecycle_policy::{self, exports::runwarden::policy::lifecycle::Guest};

    impl Guest for Table {
        fn describe() -> runwarden_kit::Descriptor {
            core::arch::wasm32::unreachable()
        }
    }
    lifecycle_policy::export!(Table with_types_in lifecycle_policy);
};
