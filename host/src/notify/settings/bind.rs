//! A handler that was chosen, bound to the component that is installed.

use super::entry::Configured;
use super::problem::Problem;
use super::resolve::Chosen;
use crate::model::{BoundHandler, Destination, EventFilter, HandlerDescriptor, check_config, singular};

/// An installed component.
#[derive(Clone, Copy, Debug)]
pub struct Component<'a> {
    /// SHA-256 in hexadecimal.
    pub digest: &'a str,
    /// What it says of itself.
    pub descriptor: &'a HandlerDescriptor,
}

/// Binds a handler of this name to its component; `kinds` are those that make events.
///
/// # Errors
/// Everything that does not fit.
pub fn bind(
    name: &str,
    chosen: &Chosen,
    component: Option<Component<'_>>,
    kinds: &[String],
) -> Result<BoundHandler, Vec<Problem>> {
    let configured = &chosen.configured;
    let Some(component) = component else {
        let message = format!(
            "no installed handler is `{}`; `runwarden policy ls` shows what there is",
            configured.component
        );
        return Err(vec![Problem::new("component_unknown", message)]);
    };
    let mut problems = transports(configured, component.descriptor);
    problems.extend(
        check_config(component.descriptor, &configured.config)
            .into_iter()
            .map(|finding| {
                Problem::new(
                    "config_not_fitting",
                    format!("`{}` of config {}", finding.place, finding.message),
                )
            }),
    );
    let filter = filter(&configured.filter, kinds, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(BoundHandler {
        name: name.to_owned(),
        layer: chosen.layer,
        component: component.descriptor.label(),
        digest: component.digest.to_owned(),
        config: configured.config.clone(),
        filter,
        destinations: configured.destinations.clone(),
    })
}

/// A destination's transport must be one that the component declares.
fn transports(configured: &Configured, descriptor: &HandlerDescriptor) -> Vec<Problem> {
    let unfit = configured
        .destinations
        .iter()
        .filter(|(_, destination)| !descriptor.reaches(&destination.transport));
    let problem = |(name, destination): (&String, &Destination)| {
        let (label, word) = (descriptor.label(), destination.transport.word());
        let declared = descriptor.transports.join(", ");
        let message = format!("destination {name} is reached by {word}, and {label} sends by {declared}");
        Problem::new("transport_not_declared", message)
    };
    unfit.map(problem).collect()
}

/// The filter with the kinds' own names; one that makes no events would never be told.
fn filter(filter: &EventFilter, kinds: &[String], problems: &mut Vec<Problem>) -> EventFilter {
    let mut named = filter.clone();
    for word in &mut named.kinds {
        match singular(word, kinds) {
            Some(kind) => *word = kind.to_owned(),
            None => {
                let message = format!("`{word}` makes no events; {} do", kinds.join(", "));
                problems.push(Problem::new("filter_kinds_unsupported", message));
            }
        }
    }
    named
}
