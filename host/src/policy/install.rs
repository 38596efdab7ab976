//! From a stranger's file to something that may be installed: checked in order, every problem told, nothing written.

use super::calls::{self, Callable};
use super::code::Code;
use super::fault::{InstallError, PolicyFault, printable};
use super::inspect::{Inspected, inspect};
use super::instance::link;
use super::limits::Limits;
use super::text::line;
use crate::model::{Described, Finding, HandlerDescriptor, Severity, check_handler, check_policy, sha256_hex};

/// A component that passed every check.
#[derive(Debug)]
pub struct Candidate {
    /// SHA-256 in hexadecimal.
    pub digest: String,
    /// What it shows from outside.
    pub inspected: Inspected,
    /// What it says of itself.
    pub descriptor: Described,
    /// Everything that is wrong or doubtful about it, the worst first; of one that may be installed none is an error.
    pub findings: Vec<Finding>,
    /// What it may use in one call.
    pub limits: Limits,
    /// What one `describe` used of its fuel.
    pub describe_fuel: u64,
    /// Its code, for [`super::Policies::keep`].
    pub code: Code,
}

/// Checks the bytes of a policy or handler: size, digest, validity, imports, exports and their types, then `describe` twice
/// in two fresh stores, whose answers must be equal, then the descriptor whole. No store is touched.
///
/// `compile` is given the label for messages and the bytes, once they are found valid: [`super::compile_here`], or a
/// compiler that is bounded.
///
/// # Errors
/// [`InstallError`] with every problem found at the first step that finds any, or what `compile` failed with.
pub fn prepare<E: From<InstallError>>(
    bytes: &[u8],
    limits: Limits,
    compile: impl FnOnce(&str, &[u8]) -> Result<Code, E>,
) -> Result<Candidate, E> {
    let candidate = prepare_on_trial(bytes, limits, compile)?;
    let errors: Vec<Finding> = candidate.errors().cloned().collect();
    if errors.is_empty() {
        Ok(candidate)
    } else {
        Err(InstallError::unusable(errors).into())
    }
}

/// The same for a component that is only to be tried: errors in its descriptor are findings like others, so that all of
/// them are told together.
///
/// # Errors
/// It cannot be tried: it is no component of ours, or what it says of itself cannot be read.
pub fn prepare_on_trial<E: From<InstallError>>(
    bytes: &[u8],
    limits: Limits,
    compile: impl FnOnce(&str, &[u8]) -> Result<Code, E>,
) -> Result<Candidate, E> {
    let digest = sha256_hex(bytes);
    let inspected = inspect(bytes, limits)?;
    if inspected.exports("lifecycle") && inspected.exports("notifier") {
        let message = "a policy and a handler at once: a component is one of them, so that either can be replaced";
        return Err(InstallError::problem("exports", message).into());
    }
    let code = compile(&digest[..12], bytes)?;
    Ok(admit(digest, inspected, code, limits)?)
}

/// What running the component shows.
fn admit(digest: String, inspected: Inspected, code: Code, limits: Limits) -> Result<Candidate, InstallError> {
    let label = &digest[..12];
    let not_loadable = |error: wasmtime::Error| {
        InstallError::Fault(PolicyFault::NotLoadable {
            policy: label.to_owned(),
            why: line(&format!("{error:#}")),
        })
    };
    let component = code.load().map_err(not_loadable)?;
    let linked = link(&component).map_err(not_loadable)?;
    let callable = Callable::new(label, &linked, limits);
    callable.start().map_err(InstallError::Fault)?;
    mistyped(&callable, &inspected)?;
    let descriptor = described(&callable, &inspected)?;
    let describe_fuel = callable.used.get().fuel;
    if descriptor != described(&callable, &inspected)? {
        let message = "two calls of `describe` gave different answers: a descriptor is data and never changes";
        return Err(InstallError::problem(describe_of(&inspected), message));
    }
    let findings = findings(&descriptor, &inspected);
    Ok(Candidate {
        digest,
        inspected,
        descriptor,
        findings,
        limits,
        describe_fuel,
        code,
    })
}

impl Candidate {
    /// What keeps it from being installed.
    pub fn errors(&self) -> impl Iterator<Item = &Finding> {
        self.findings
            .iter()
            .filter(|finding| finding.severity == Severity::Error)
    }
}

/// Exports that bear a name of ours and have not its functions: found now, not when an entity needs them.
fn mistyped(callable: &Callable<'_>, inspected: &Inspected) -> Result<(), InstallError> {
    let mut problems = Vec::new();
    for export in &inspected.exports {
        match callable.probe(&export.interface) {
            Ok(()) => {}
            Err(PolicyFault::NotLoadable { why, .. }) => {
                let place = format!("exports.{}@{}", export.interface, export.version);
                problems.push(Finding {
                    severity: Severity::Error,
                    place,
                    message: why,
                });
            }
            Err(fault) => return Err(InstallError::Fault(fault)),
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(InstallError::unusable(problems))
    }
}

/// The function that says what the component is.
fn describe_of(inspected: &Inspected) -> &'static str {
    if inspected.exports("notifier") {
        calls::DESCRIBE_HANDLER
    } else {
        calls::DESCRIBE
    }
}

fn described(callable: &Callable<'_>, inspected: &Inspected) -> Result<Described, InstallError> {
    let descriptor = if inspected.exports("notifier") {
        Described::Handler(callable.describe_handler()?)
    } else {
        Described::Policy(Box::new(callable.describe()?))
    };
    callable
        .answer(describe_of(inspected))
        .weigh([descriptor.canonical().as_str()])
        .map_err(InstallError::Fault)?;
    Ok(descriptor)
}

/// Everything that can be known of a component without asking it anything but what it is: of each finding severity, place
/// and words fit to print, the worst first.
pub fn findings(descriptor: &Described, inspected: &Inspected) -> Vec<Finding> {
    let mut findings = match descriptor {
        Described::Policy(descriptor) => check_policy(descriptor, &inspected.functions()),
        Described::Handler(descriptor) => handler_findings(descriptor, inspected),
    };
    findings.extend(inspected.unknown.iter().map(|export| never_asked(export)));
    findings.sort_by_key(|finding| finding.severity);
    printable(findings)
}

/// A handler's own problems, and exports of a policy that nobody would ever ask.
fn handler_findings(descriptor: &HandlerDescriptor, inspected: &Inspected) -> Vec<Finding> {
    let mut findings = check_handler(descriptor);
    let others = inspected
        .exports
        .iter()
        .filter(|export| !export.interface.ends_with("/notifier"));
    findings.extend(others.map(|export| Finding {
        severity: Severity::Warning,
        place: "exports".to_owned(),
        message: format!("{} is exported by a handler: it is never asked", export.interface),
    }));
    findings
}

/// An interface that a later version of the WIT line may have brought.
fn never_asked(export: &str) -> Finding {
    Finding {
        severity: Severity::Warning,
        place: format!("exports.{export}"),
        message: "not known to this runwarden, which never asks it: a later one may".to_owned(),
    }
}
