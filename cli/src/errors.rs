//! What users and scripts learn of a failure: the one place where errors become a code, words and hints.

use runwarden_host::model::Finding;
use runwarden_host::policy::{InstallError, PolicyFault};
use runwarden_host::provenance::Untrusted;
use runwarden_host::store::StoreError;
use runwarden_host::{Error, Use};
use serde_json::{Value, json};

use crate::advice;
use crate::exit::Exit;

/// A command that failed: nothing it was to do was done, unless its message says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// How the command ends.
    pub(crate) exit: Exit,
    /// A word for scripts.
    pub(crate) code: &'static str,
    /// What failed.
    pub(crate) message: String,
    /// Why, from near to far.
    pub(crate) causes: Vec<String>,
    /// What to do; people are shown the first.
    pub(crate) hints: Vec<String>,
}

/// What a command comes to.
pub(crate) type Outcome<T> = Result<T, Failure>;

impl Failure {
    /// A failure without causes and hints.
    pub(crate) fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            exit,
            code,
            message: message.into(),
            causes: Vec::new(),
            hints: Vec::new(),
        }
    }

    /// The command line is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::USAGE, "usage", message)
    }

    /// A file cannot be read or written.
    pub(crate) fn file(doing: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        let code = if error.kind() == std::io::ErrorKind::NotFound {
            Exit::UNUSABLE
        } else {
            Exit::IO
        };
        Self::new(code, "file", format!("cannot {doing} {}", path.display())).cause(error.to_string())
    }

    /// The same failure with a cause.
    #[must_use]
    pub(crate) fn cause(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    /// The same failure with what to do.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The document that `--json` shows.
    pub(crate) fn json(&self) -> Value {
        json!({"error": {
            "code": self.code,
            "message": self.message,
            "causes": self.causes,
            "hints": self.hints,
        }})
    }

    /// Adds every source of an error to the causes.
    pub(crate) fn caused_by(mut self, error: &dyn std::error::Error) -> Self {
        let mut source = error.source();
        while let Some(error) = source {
            self.causes.push(error.to_string());
            source = error.source();
        }
        self
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        let said = error.to_string();
        match error {
            Error::NotFound { .. } => {
                Self::new(Exit::UNKNOWN, "not_found", said).hint("`runwarden ls --all` shows everything in the store")
            }
            Error::Ambiguous { .. } => {
                Self::new(Exit::UNKNOWN, "ambiguous", said).hint("type more of the id, or the whole reference")
            }
            Error::UnknownKind { known, .. } => {
                Self::new(Exit::UNKNOWN, "unknown_kind", said).hint(format!("the kinds are {}", known.join(", ")))
            }
            Error::UnknownPolicy { .. } => {
                Self::new(Exit::UNKNOWN, "unknown_policy", said).hint("`runwarden policy ls` shows what is installed")
            }
            Error::Invalid(invalid) => {
                let failure = Self::new(Exit::USAGE, invalid.code, said);
                invalid
                    .hint
                    .iter()
                    .fold(failure, |failure, hint| failure.hint(hint.clone()))
            }
            Error::IdTaken { id } => Self::new(Exit::CONFLICT, "id_taken", said).hint(format!(
                "`runwarden show {id}` shows what has it; leave out --id to have one drawn"
            )),
            Error::ParentClosed { .. } => Self::new(Exit::REJECTED, "parent_closed", said)
                .hint("start it without a parent, or below one that is alive"),
            Error::UniqueKeyHeld { holder, .. } => Self::new(Exit::CONFLICT, "unique_key_held", said).hint(format!(
                "`runwarden show {holder}` shows it; its end gives the key back"
            )),
            Error::LeaseLost { .. } => Self::new(Exit::CONFLICT, "fence", said),
            Error::Succeeded { .. } => Self::new(Exit::CONFLICT, "succeeded", said),
            Error::InUse { uses, .. } => in_use(uses, said),
            Error::Store(store) => of_store(store, said).caused_by(store),
            Error::Policy(fault) => of_fault(fault, said).caused_by(fault),
            Error::Install(install) => of_install(install, said),
            Error::Untrusted(untrusted) => of_untrusted(untrusted, said),
            Error::Home { source, .. } => Self::new(Exit::IO, "home", said).cause(source.to_string()),
            other => Self::new(Exit::IO, "system", said).caused_by(other),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Error::Store(error).into()
    }
}

impl From<InstallError> for Failure {
    fn from(error: InstallError) -> Self {
        Error::Install(error).into()
    }
}

/// A component that is needed, with what needs it and what to type.
fn in_use(uses: &[Use], said: String) -> Failure {
    let failure = Failure::new(Exit::CONFLICT, "in_use", said);
    let words = |used: &Use| match used {
        Use::InForce => "it is the active one of its kind".to_owned(),
        Use::Shadow(kind) => format!("it judges {kind} beside the active one"),
        Use::Pinned { live, ended, .. } => format!("entities are pinned to it: {live} live, {ended} ended"),
        Use::Bound(name) => format!("the binding {name} names it"),
        Use::Kept(reference) => format!("{reference} is to be told through it when it ends"),
        Use::Owed(reference) => format!("an event of {reference} is still to be told through it"),
    };
    let failure = uses.iter().fold(failure, |failure, used| failure.cause(words(used)));
    match uses.first() {
        Some(Use::Bound(name)) => failure.hint(format!("`runwarden notify rm {name}` takes the binding away")),
        Some(Use::Shadow(kind)) => {
            failure.hint(format!("`runwarden policy shadow {kind} --stop --reason T` ends that"))
        }
        Some(Use::Kept(_) | Use::Owed(_)) => failure.hint("wait until it was told, then remove the component"),
        Some(Use::Pinned { kind, live: 1.., .. }) => failure.hint(format!(
            "`runwarden policy migrate {kind} --to V` moves what lives to another policy"
        )),
        Some(Use::Pinned { live: _, .. }) => {
            failure.hint("what has ended keeps its policy until it is removed: `runwarden rm`, or `runwarden prune`")
        }
        Some(Use::InForce) => failure.hint("`runwarden policy activate NAME@V --reason T` puts another one in force"),
        None => failure.hint("`runwarden policy ls` shows what is active and what is in use"),
    }
}

fn of_store(error: &StoreError, said: String) -> Failure {
    let elsewhere = "choose a local disk: export RUNWARDEN_HOME=/var/tmp/runwarden";
    match error {
        StoreError::Busy { .. } => Failure::new(Exit::BUSY, "busy", said).hint("try again"),
        StoreError::Full { .. } => {
            Failure::new(Exit::IO, "full", said).hint("make room on that device, then try again")
        }
        StoreError::ReadOnly { .. } => Failure::new(Exit::IO, "read_only", said).hint(
            "what is there can still be read; to write, choose another home: export RUNWARDEN_HOME=/var/tmp/runwarden",
        ),
        StoreError::Missing { .. } => Failure::new(Exit::UNKNOWN, "no_store", said)
            .hint("`runwarden run -- PROGRAM` makes it and starts something"),
        StoreError::Corrupt { .. } => {
            Failure::new(Exit::IO, "damaged", said).hint("put back a copy, or move it away to begin a new one")
        }
        StoreError::TooNew { .. } => {
            Failure::new(Exit::IO, "too_new", said).hint("use the newer runwarden that wrote it")
        }
        StoreError::Unsuitable { .. } => Failure::new(Exit::IO, "unsuitable", said).hint(elsewhere),
        StoreError::KeyHeld { .. } => Failure::new(Exit::CONFLICT, "held", said),
        StoreError::Failed { .. } => Failure::new(Exit::IO, "store", said),
    }
}

fn of_fault(fault: &PolicyFault, said: String) -> Failure {
    match fault {
        PolicyFault::Store { source, .. } => of_store(source, said),
        _ => {
            let failure = Failure::new(Exit::REJECTED, "policy_fault", said);
            advice::on_call(fault).into_iter().fold(failure, Failure::hint)
        }
    }
}

fn of_install(error: &InstallError, said: String) -> Failure {
    let failure = Failure::new(Exit::UNUSABLE, "unusable", said);
    let failure = advice::on_install(error).into_iter().fold(failure, Failure::hint);
    match error {
        InstallError::TooLarge { .. } => failure,
        InstallError::Unusable(findings) => findings
            .iter()
            .fold(failure, |failure, finding| failure.cause(finding_line(finding))),
        InstallError::Fault(fault) => failure.cause(fault.to_string()).caused_by(fault),
    }
}

fn of_untrusted(untrusted: &Untrusted, said: String) -> Failure {
    let (code, hint) = match untrusted {
        Untrusted::Malformed { .. } => (
            "malformed",
            "`runwarden policy keygen`, `sign` and `export` write such files; get it again from where it was published",
        ),
        Untrusted::UnknownKey { .. } => (
            "unknown_key",
            "if you trust it, put it into your settings.toml: [policies.keys] NAME = \"ed25519:…\", the second line of its .pub file",
        ),
        Untrusted::OtherBytes { .. } => (
            "bad_signature",
            "get the component and its signature again from where they were published",
        ),
        Untrusted::Unsigned { .. } => (
            "unsigned",
            "`runwarden policy sign FILE --key KEY` signs it; then install it again",
        ),
        Untrusted::Settings { .. } => (
            "settings",
            "mend [policies] of your settings.toml: until then nothing is let in",
        ),
    };
    Failure::new(Exit::UNUSABLE, code, said).hint(hint)
}

/// A finding as one line.
pub(crate) fn finding_line(finding: &Finding) -> String {
    format!("{}: {}: {}", finding.severity.word(), finding.place, finding.message)
}
