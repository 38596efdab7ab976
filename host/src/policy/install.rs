//! From a stranger's file to something that may be installed: checked in order, every problem told, nothing written.

use super::calls::{self, Callable};
use super::code::Code;
use super::fault::{InstallError, PolicyFault, told};
use super::inspect::{Inspected, inspect};
use super::instance::link;
use super::limits::Limits;
use super::text::line;
use crate::model::{Described, Descriptor, Finding, HandlerDescriptor, Severity, check, check_handler, sha256_hex};

/// A component that passed every check.
#[derive(Debug)]
pub struct Candidate {
    /// SHA-256 in hexadecimal.
    pub digest: String,
    /// What it shows from outside.
    pub inspected: Inspected,
    /// What it says of itself.
    pub descriptor: Described,
    /// Findings that are no errors.
    pub warnings: Vec<Finding>,
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
    let describe_fuel = callable.spent.get();
    if descriptor != described(&callable, &inspected)? {
        let message = "two calls of `describe` gave different answers: a descriptor is data and never changes";
        return Err(InstallError::problem(describe_of(&inspected), message));
    }
    let mut findings = judge(&descriptor, &inspected);
    findings.extend(inspected.unknown.iter().map(|export| never_asked(export)));
    let (errors, warnings): (Vec<Finding>, _) = findings
        .into_iter()
        .partition(|finding| finding.severity == Severity::Error);
    if !errors.is_empty() {
        return Err(InstallError::unusable(errors));
    }
    Ok(Candidate {
        digest,
        inspected,
        descriptor,
        warnings: told(warnings),
        describe_fuel,
        code,
    })
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

fn judge(descriptor: &Described, inspected: &Inspected) -> Vec<Finding> {
    match descriptor {
        Described::Policy(descriptor) => {
            let mut findings = check(descriptor);
            findings.extend(missing_functions(descriptor, inspected));
            findings
        }
        Described::Handler(descriptor) => handler_findings(descriptor, inspected),
    }
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

/// Where the descriptor counts on a function that is not exported, or exports one that is never asked.
fn missing_functions(descriptor: &Descriptor, inspected: &Inspected) -> Vec<Finding> {
    let guarded = descriptor.edges.iter().position(|edge| edge.guarded);
    let mut findings = Vec::new();
    if let Some(index) = guarded.filter(|_| !inspected.exports("guard")) {
        let message = "is guarded, and the component exports no runwarden:policy/guard".to_owned();
        findings.push(Finding {
            severity: Severity::Error,
            place: format!("edges[{index}]"),
            message,
        });
    }
    if guarded.is_none() && inspected.exports("guard") {
        let message = "runwarden:policy/guard is exported and no edge is guarded: it is never asked".to_owned();
        findings.push(Finding {
            severity: Severity::Warning,
            place: "exports".to_owned(),
            message,
        });
    }
    findings
}
