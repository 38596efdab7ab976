//! What the shim and its starter say to each other, and the files they share.
//!
//! The shim (the binary of this package) is the parent and the witness of one run. This library is the part that
//! both sides must agree on: the specification a run is started from ([`spec`]), the packets on the control socket
//! ([`message`], [`packet`]), the slots of the stop file ([`slot`]), the records of the order log ([`order`]), the list of
//! those who are of another run ([`spared`]), the search for members that have no shim ([`search`]), how a program is found
//! and executed ([`executable`]), what logs have dropped ([`hole`]), what a shim leaves for whoever takes its place
//! ([`notes`]) and the names in a run directory ([`files`]). It depends on libc alone, because the shim has to stay
//! small.

pub mod clock;
mod codec;
pub mod executable;
pub mod files;
pub mod hole;
pub mod message;
pub mod notes;
pub mod order;
pub mod packet;
pub mod search;
pub mod slot;
pub mod spared;
pub mod spec;
pub mod stat;

pub use codec::Malformed;
