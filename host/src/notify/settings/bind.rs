//! A handler that was chosen, bound to the component that is installed.

use super::entry::Configured;
use super::problem::Problem;
use super::resolve::Chosen;
use crate::model::{BoundHandler, EventFilter, singular};

/// An installed component, as far as a binding must fit it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// `name@version`.
    pub label: String,
    /// SHA-256 in hexadecimal.
    pub digest: String,
    /// Transports that its destinations may use.
    pub transports: Vec<String>,
}

/// Binds a handler of this name to its component; `kinds` are those that make events.
///
/// # Errors
/// Everything that does not fit.
pub fn bind(
    name: &str,
    chosen: &Chosen,
    component: Option<&Component>,
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
    let mut problems = transports(configured, component);
    let filter = filter(&configured.filter, kinds, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(BoundHandler {
        name: name.to_owned(),
        layer: chosen.layer,
        component: component.label.clone(),
        digest: component.digest.clone(),
        config: configured.config.clone(),
        filter,
        destinations: configured.destinations.clone(),
    })
}

/// A destination's transport must be one that the component declares.
fn transports(configured: &Configured, component: &Component) -> Vec<Problem> {
    let unfit = configured.destinations.iter().filter_map(|(name, destination)| {
        let word = destination.transport.word();
        let is_declared = component.transports.iter().any(|declared| declared == word);
        (!is_declared).then(|| {
            let message = format!(
                "destination {name} is reached by {word}, and {} sends by {}",
                component.label,
                component.transports.join(", ")
            );
            Problem::new("transport_not_declared", message)
        })
    });
    unfit.collect()
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
