//! How a component fails, told apart by cause and never by wording.

use super::text::line;
use crate::model::{Finding, Limit, Severity};
use crate::store::StoreError;

/// How many problems of one file are told; a stranger can make thousands.
const PROBLEMS_MAX: usize = 256;

/// How a call into a component failed. Nothing was written because of it.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFault {
    /// It ended in a trap: a panic, a bad access, an exhausted stack.
    #[error("component `{policy}` trapped in {function}: {message}")]
    Trapped {
        /// `name@version`.
        policy: String,
        /// Which function was called.
        function: &'static str,
        /// The panic's own words where it reported them, else the trap's.
        message: String,
        /// Where, by the component's own names.
        backtrace: String,
    },
    /// It used up its fuel.
    #[error("component `{policy}` used up its fuel of {fuel} in {function}")]
    OutOfFuel {
        /// `name@version`.
        policy: String,
        /// Which function was called.
        function: &'static str,
        /// The limit.
        fuel: u64,
    },
    /// It took too long.
    #[error("component `{policy}` took longer than {limit_ms} ms in {function}")]
    OutOfTime {
        /// `name@version`.
        policy: String,
        /// Which function was called.
        function: &'static str,
        /// The limit, in milliseconds.
        limit_ms: u128,
    },
    /// It wanted more memory than it may have.
    #[error("component `{policy}` wanted more than {limit_bytes} bytes of memory in {function}")]
    OutOfMemory {
        /// `name@version`.
        policy: String,
        /// Which function was called.
        function: &'static str,
        /// The limit, in bytes.
        limit_bytes: usize,
    },
    /// Its tables wanted more elements than they may have.
    #[error("component `{policy}` wanted more than {limit} table elements in {function}")]
    OutOfElements {
        /// `name@version`.
        policy: String,
        /// Which function was called.
        function: &'static str,
        /// The limit, all tables together.
        limit: usize,
    },
    /// It answered nonsense, or too much.
    #[error("component `{policy}` gave an answer of {function} that cannot be used: {why}")]
    BadAnswer {
        /// `name@version`.
        policy: String,
        /// Which function was called.
        function: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// It reported a failure of its own.
    #[error("component `{policy}` failed in {function}: {message} ({code})")]
    Reported {
        /// `name@version`.
        policy: String,
        /// Which function was called.
        function: &'static str,
        /// Its code.
        code: String,
        /// Its words.
        message: String,
        /// What its author would do.
        hint: Option<Box<str>>,
    },
    /// It could not be compiled or linked.
    #[error("component `{policy}` cannot be loaded: {why}")]
    NotLoadable {
        /// `name@version`.
        policy: String,
        /// Why.
        why: String,
    },
    /// The store could not give its bytes.
    #[error("component `{policy}` could not be read from the store")]
    Store {
        /// `name@version`.
        policy: String,
        /// What the store said.
        #[source]
        source: StoreError,
    },
}

/// What fails when a component costs its compiler too much: no function of its own.
pub(crate) const COMPILATION: &str = "compilation";

impl PolicyFault {
    /// The limit that was reached, if it is one that an operator can raise for this component.
    pub fn limit(&self) -> Option<Limit> {
        match self {
            Self::OutOfFuel { .. } => Some(Limit::Fuel),
            Self::OutOfTime { function, .. } if *function == COMPILATION => Some(Limit::CompileTime),
            Self::OutOfTime { .. } => Some(Limit::Wall),
            Self::OutOfMemory { function, .. } if *function == COMPILATION => Some(Limit::CompileMemory),
            Self::OutOfMemory { .. } => Some(Limit::Memory),
            Self::Trapped { .. }
            | Self::OutOfElements { .. }
            | Self::BadAnswer { .. }
            | Self::Reported { .. }
            | Self::NotLoadable { .. }
            | Self::Store { .. } => None,
        }
    }

    /// The fault in a few words that are the same whatever the call was about.
    pub fn in_brief(&self) -> String {
        match self {
            Self::Trapped { function, .. } => format!("trapped in {function}"),
            Self::OutOfFuel { function, .. } => format!("out of fuel in {function}"),
            Self::OutOfTime { function, .. } => format!("out of time in {function}"),
            Self::OutOfMemory { function, .. } => format!("out of memory in {function}"),
            Self::OutOfElements { function, .. } => format!("out of table elements in {function}"),
            Self::BadAnswer { function, .. } => format!("unusable answer of {function}"),
            Self::Reported { function, code, .. } => format!("failed in {function} ({code})"),
            Self::NotLoadable { .. } => "cannot be loaded".to_owned(),
            Self::Store { .. } => "cannot be read".to_owned(),
        }
    }
}

/// Why a file is not installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The file is larger than a component may be.
    #[error("the component has {bytes} bytes, at most {limit_bytes} are admitted")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit_bytes: usize,
    },
    /// The file is no usable component; every problem with its place.
    #[error("not a usable component: {} problem{}", .0.len(), if .0.len() == 1 { "" } else { "s" })]
    Unusable(Vec<Finding>),
    /// A call made for the check failed.
    #[error("the component failed its check")]
    Fault(#[source] PolicyFault),
}

impl InstallError {
    /// The limit that was reached, if it is one that an operator can raise for this component.
    pub fn limit(&self) -> Option<Limit> {
        match self {
            Self::TooLarge { .. } => Some(Limit::ComponentSize),
            Self::Unusable(_) => None,
            Self::Fault(fault) => fault.limit(),
        }
    }

    /// Problems with their places, their words made fit to print: some are the component's.
    pub(super) fn unusable(problems: Vec<Finding>) -> Self {
        Self::Unusable(printable(problems))
    }

    /// One problem with its place.
    pub(super) fn problem(place: &str, message: impl Into<String>) -> Self {
        Self::unusable(vec![Finding {
            severity: Severity::Error,
            place: place.to_owned(),
            message: message.into(),
        }])
    }
}

/// Findings with their words made fit to print, since some are the component's, and no more than anybody reads.
pub(super) fn printable(mut findings: Vec<Finding>) -> Vec<Finding> {
    let more = findings.split_off(findings.len().min(PROBLEMS_MAX));
    for finding in &mut findings {
        finding.place = line(&finding.place);
        finding.message = line(&finding.message);
    }
    if let Some(worst) = more.iter().map(|finding| finding.severity).min() {
        findings.push(Finding {
            severity: worst,
            place: "…".to_owned(),
            message: format!("{} more problems", more.len()),
        });
    }
    findings
}
