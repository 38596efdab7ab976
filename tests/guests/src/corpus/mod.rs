//! The hostile corpus: components, and files that are none, that wish a host ill, each with what is asked of it.
//!
//! What a toolchain makes is the hostile guest in its modes ([`modes`]). What none makes is written as text ([`written`],
//! [`calls`]) or put together byte by byte ([`files`]). What the host answers to each is a snapshot beside its tests.

mod calls;
mod files;
mod modes;
mod stub;
mod wasi;
mod written;

pub use files::sections;
pub use stub::{Stub, World};
pub use wasi::WASI_INTERFACES;

/// What is asked of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// To be installed.
    Install,
    /// Its guard, as if it had been installed.
    Guard,
    /// Its verdict function, likewise.
    Verdict,
    /// Its health function, likewise.
    Assess,
    /// Its plan, likewise.
    Plan,
}

/// One file and what is asked of it.
#[derive(Debug)]
pub struct Case {
    /// What it does, in words.
    pub name: String,
    /// What is asked.
    pub asked: Asked,
    /// The file.
    pub bytes: Vec<u8>,
}

/// All of it, in the order in which it is told.
pub fn corpus() -> Vec<Case> {
    let parts = [
        files::cases(),
        written::cases(),
        wasi::cases(),
        calls::cases(),
        modes::cases(),
    ];
    parts.into_iter().flatten().collect()
}

fn install(name: &str, bytes: Vec<u8>) -> Case {
    Case {
        name: name.to_owned(),
        asked: Asked::Install,
        bytes,
    }
}
