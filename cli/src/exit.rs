//! Exit codes: stable, few, and documented here alone.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done; or everything asked about is a success |
//! | 1 | the answer is "no": a run ended without success, something could not be stopped, a check found faults |
//! | 2 | unknown, not found, ambiguous |
//! | 3 | interrupted or timed out with work still running |
//! | 4 | conflict: an expectation or guard did not hold |
//! | 5 | rejected by the policy |
//! | 64 | usage, bad values too |
//! | 65 | unusable component or file |
//! | 70 | internal fault, panics too |
//! | 74 | store or I/O failure |
//! | 75 | try again: busy |
//! | 124 | `run` in the foreground: its deadline ended it |
//! | 125 | `run`: Runwarden itself failed, usage included |
//! | 126 | `run`: the program is not executable |
//! | 127 | `run`: the program is not found |
//!
//! `run` in the foreground and `wait --exit-code` leave with the program's own code, or 128 + n when signal n ended it.

use std::process::ExitCode;

/// How the command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit(u8);

impl Exit {
    /// Done; or everything asked about is a success.
    pub(crate) const DONE: Self = Self(0);
    /// The answer is "no".
    pub(crate) const NO: Self = Self(1);
    /// Unknown, not found, ambiguous.
    pub(crate) const UNKNOWN: Self = Self(2);
    /// Interrupted or timed out with work still running.
    pub(crate) const UNFINISHED: Self = Self(3);
    /// An expectation or guard did not hold.
    pub(crate) const CONFLICT: Self = Self(4);
    /// The policy refused.
    pub(crate) const REJECTED: Self = Self(5);
    /// The command line is wrong.
    pub(crate) const USAGE: Self = Self(64);
    /// A component or file cannot be used.
    pub(crate) const UNUSABLE: Self = Self(65);
    /// A fault of this program.
    pub(crate) const FAULT: Self = Self(70);
    /// The store or the system failed.
    pub(crate) const IO: Self = Self(74);
    /// Somebody else is at it: try again.
    pub(crate) const BUSY: Self = Self(75);
    /// `run`: its deadline ended it.
    pub(crate) const TIMED_OUT: Self = Self(124);
    /// `run`: Runwarden itself failed.
    pub(crate) const RUN_FAILED: Self = Self(125);
    /// `run`: the program is not executable.
    pub(crate) const NOT_EXECUTABLE: Self = Self(126);
    /// `run`: the program is not found.
    pub(crate) const NOT_FOUND: Self = Self(127);

    /// The code of a program, or of the signal that ended it.
    pub(crate) fn of_program(exit_code: Option<i64>, signal: Option<i64>) -> Option<Self> {
        let code = exit_code.or_else(|| signal.map(|signal| 128 + signal))?;
        Some(Self(u8::try_from(code).unwrap_or(u8::MAX)))
    }

    /// The number.
    #[cfg(test)]
    pub(crate) const fn code(self) -> u8 {
        self.0
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_are_the_documented_ones() {
        let table = [
            Exit::DONE,
            Exit::NO,
            Exit::UNKNOWN,
            Exit::UNFINISHED,
            Exit::CONFLICT,
            Exit::REJECTED,
            Exit::USAGE,
            Exit::UNUSABLE,
            Exit::FAULT,
            Exit::IO,
            Exit::BUSY,
            Exit::TIMED_OUT,
            Exit::RUN_FAILED,
            Exit::NOT_EXECUTABLE,
            Exit::NOT_FOUND,
        ];
        assert_eq!(
            table.map(Exit::code),
            [0, 1, 2, 3, 4, 5, 64, 65, 70, 74, 75, 124, 125, 126, 127]
        );
        let documented: Vec<u8> = include_str!("exit.rs")
            .lines()
            .filter_map(|line| line.strip_prefix("//! | ")?.split(' ').next()?.parse().ok())
            .collect();
        assert_eq!(documented, [0, 1, 2, 3, 4, 5, 64, 65, 70, 74, 75, 124, 125, 126, 127]);
    }

    #[test]
    fn a_program_that_died_by_a_signal_gives_128_and_its_number() {
        assert_eq!(Exit::of_program(Some(7), None), Some(Exit(7)));
        assert_eq!(Exit::of_program(None, Some(9)), Some(Exit(137)));
        assert_eq!(Exit::of_program(None, None), None);
    }
}
