//! The bundled policies against their committed descriptors, the recorded cases and the rules for components.

mod components;
mod descriptors;
mod json;
mod policies;
mod reason_codes;
mod transitions;
