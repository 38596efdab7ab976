//! What to type or to change when a component fails: by the kind of the failure, for its author and for its operator.

use runwarden_host::model::{Finding, Limit};
use runwarden_host::policy::{InstallError, PolicyFault};

use crate::commands::policy::limits::option;

/// What to do about a file that is not installed; the first is shown to people.
pub(crate) fn on_install(error: &InstallError) -> Vec<String> {
    match error {
        InstallError::TooLarge { .. } => raising(error.limit()).into_iter().collect(),
        InstallError::Unusable(findings) => vec![on_findings(findings).to_owned()],
        InstallError::Fault(fault) => raising(fault.limit()).into_iter().chain([to_author(fault)]).collect(),
    }
}

/// What to do about a call that failed; the first is shown to people.
pub(crate) fn on_call(fault: &PolicyFault) -> Vec<String> {
    let back = "`runwarden policy rollback KIND` puts the policy before it back in force".to_owned();
    let own = match fault {
        PolicyFault::Reported { hint: Some(hint), .. } => Some(format!("its author says: {hint}")),
        _ => None,
    };
    let raised = raising(fault.limit());
    own.into_iter()
        .chain([back])
        .chain(raised)
        .chain([to_author(fault)])
        .collect()
}

/// How a limit is raised for the component that reached it.
fn raising(limit: Option<Limit>) -> Option<String> {
    let option = option(limit?);
    Some(format!(
        "if you trust it with more, `runwarden policy install FILE {option} …` raises that for this component alone"
    ))
}

/// What an author changes about a fault.
fn to_author(fault: &PolicyFault) -> String {
    let advice = match fault {
        PolicyFault::Trapped { .. } => {
            "a call must answer whatever it is asked: return a fault instead of a panic, and try it with `runwarden \
             policy test FILE`"
        }
        PolicyFault::OutOfFuel { .. } | PolicyFault::OutOfTime { .. } => {
            "look for a loop without an end; `runwarden policy test FILE --bench` shows what a call uses"
        }
        PolicyFault::OutOfMemory { .. } => "look for what is kept or built larger than it need be",
        PolicyFault::OutOfElements { .. } => {
            "no option raises this: build it with fewer functions that are called through a table"
        }
        PolicyFault::BadAnswer { .. } => {
            "answer with what the descriptor declares, within the limits that `runwarden policy show NAME` lists"
        }
        PolicyFault::Reported { .. } => "what it reports is its own: its author knows what it means",
        PolicyFault::NotLoadable { .. } => {
            "build it against the files that `runwarden policy wit DIR` writes, without threads, exceptions and \
             garbage-collected types"
        }
        PolicyFault::Store { .. } => "`runwarden doctor` looks at the store",
    };
    advice.to_owned()
}

/// What to do about problems: by the place of the first, because the others often follow from it.
fn on_findings(findings: &[Finding]) -> &'static str {
    let place = findings.first().map_or("", |finding| finding.place.as_str());
    match place.split(['.', '[']).next().unwrap_or_default() {
        "header" => "`runwarden policy new NAME` begins a policy that builds to a component",
        "component" => "the file is damaged, cut short or of a later WebAssembly: build it again and copy it whole",
        "imports" => "`runwarden policy build` makes components that import nothing else",
        "exports" => "`runwarden policy wit DIR` writes the interfaces to build against",
        _ => "change what `describe` says in the places named; `runwarden policy test FILE` looks at it again",
    }
}

#[cfg(test)]
mod tests;
