//! What the host does, a file per verb: each reads as its recipe.

mod create;
mod doctor;
mod enclosing;
mod examine;
#[cfg(test)]
mod faults;
mod finish;
mod guarded;
mod identity;
mod inventory;
mod kill;
mod living;
mod policy;
mod prune;
mod remove;
mod report;
mod resolve;
mod run;
mod runtime;
mod settle;
mod standing;
mod transition;
mod verdict;
mod view;
mod wait;
mod why;

pub use create::{IdChoice, Made, create};
pub use doctor::{Check, CheckResult, doctor};
pub use enclosing::{Enclosing, enclosing};
pub use examine::{COMPILE_REFUSED, compile_bounded, examine};
pub use finish::finish;
pub use kill::{Kill, KillPlan, KillResult, Killed, Killing, Planned, kill, plan as plan_kill};
pub use living::{Seen, living, living_json};
pub use policy::{Activating, Installed, activate, install, remove, rollback};
pub use prune::{PruneItem, PruneKind, PruneOutcome, PruneReport, Pruning, plan_prune, prune};
pub use remove::{ClearResult, Clearance, Cleared, Clearing, Keep, clear};
pub use report::{Report, report};
pub use resolve::{known_kind, resolve};
pub use run::{Begun, Running, Start, StartFailure, run};
pub use runtime::{Registered, Registration, Released, inventory_json, register, release};
pub use settle::{observed_exit, settle};
pub use standing::{Standing, standing, standings};
pub use transition::{TransitionOutcome, transition, transition_dry_run};
pub use view::{EntityView, admin_json, history_json, view, views};
pub use wait::{Finished, Going, News, Until, wait};
pub use why::{Why, why};
