//! Processes: who they are, how they start, how they stop, and what is left in their run directory.
//!
//! This is the only module that knows the operating system. It promises that a process is only ever signalled through
//! a descriptor whose identity was checked, that nothing runs before its identity could be recorded, and that
//! "unknown" is never reported as "gone". It prints nothing and reads no environment.
//!
//! A run is started by a shim (the package `runwarden-shim`), which lives as long as anything the run started. If we
//! die half-way: before the gate is opened nothing runs; afterwards the shim writes the exit record whether or not
//! anybody is there to read it.

mod abilities;
mod adopt;
mod attended;
mod bounded;
mod containment;
mod control;
mod error;
mod evidence;
mod exit;
mod finishing;
mod hangup;
mod identity;
mod inside;
mod leader;
mod living;
mod locks;
mod logout;
mod logs;
mod own_file;
mod pidfd;
mod regular;
mod rundir;
mod service;
mod shim_file;
mod spawn;
mod stop;
mod tree;
mod turn;
mod unheld;
mod volume;

#[cfg(test)]
mod tests;

pub use abilities::Abilities;
pub use adopt::{Adopting, Orphaned, adopt};
pub use attended::{Attended, AttendedEnd, OUTPUT_BYTES_MAX, Program, attend};
pub use bounded::{BoundedEnd, bound_self, run_bounded};
pub use containment::{Contain, Containing, NoCgroup, Surroundings, choose, empty_groups, group_name};
pub use control::{Control, Event};
pub use error::ProcessError;
pub use evidence::{
    LogSigns, artifacts, boot_offset_ms, boottime_ms, has_artifacts, last_output, log_signs, machine_name,
};
pub use exit::{ExitFile, ExitRecord, SetRecord, Spared, SpawnErrorRecord, StopRecord, Survivor};
pub(crate) use finishing::{HeldTurn, Ticket, Turn, draw_ticket, make_queue, take_turn, take_turn_for_others};
pub use hangup::ignore_hangup;
pub use identity::{Gone, Identity, Level, Liveness, Place, Unknown, capture, classify, classify_place, held};
pub use inside::{Inside, is_inside};
pub use living::{Living, living_among, living_below, members_below};
pub use locks::{LockWait, lock_holders, lock_waits, waits_in};
pub use logout::{AtLogout, Login};
pub use logs::{Fate, Segment, dropped};
pub use own_file::{OwnFile, read_own_file};
pub use pidfd::{PidFd, Sent, may_signal, signal};
pub use regular::{Appended, append_line, read_regular};
pub use rundir::{RunDir, ShimLock};
pub use runwarden_shim::message::{Stage, Stream};
pub use runwarden_shim::slot::{Cause, Patience, Slot};
pub use runwarden_shim::spec::{Containment as HeldBy, Window};
pub use rustix::process::Signal;
pub use service::{ServiceLock, Serving, is_served, serve_alone};
pub use shim_file::install_shim;
pub use spawn::{Command, Finish, Held, Io, Opened, ParentTie, StopBy, prepare};
pub use stop::{StopAsked, Wake, ask_stop};
pub use tree::{
    Emptied, Found, directories_below, path_of, real_path, remove_tree, remove_tree_without_links, working_directory,
};
pub(crate) use turn::take_in_order;
pub use unheld::{Look, PROOF_CGROUP, PROOF_SCAN, Signalled, TOKEN_VARIABLE, Traces, UnheldSet, remove_own_cgroup};
pub use volume::{Exposure, Usage, Volume, exposed, usage};
