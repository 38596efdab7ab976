//! From the layers to one decision per handler name: run, project, global, store, off.

use std::collections::{BTreeMap, BTreeSet};

use super::entry::{Configured, State};
use super::layer::LayerSettings;
use super::problem::Problem;
use crate::model::{Layer, NotifyDiagnostic, nearest};

/// What the run itself says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Asked {
    /// Nothing: the settings hold.
    #[default]
    Settings,
    /// Nobody is told.
    Off,
    /// These are told, beside whom the settings name.
    Told(Vec<Spec>),
}

/// One handler that the run itself asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    /// A program with its arguments.
    Program(Vec<String>),
    /// A handler that some layer configures, by name, although a layer above may have it off.
    Named(String),
}

/// What the layers come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resolved {
    /// A decision for every name that a layer knows, in order.
    pub decided: Vec<Decided>,
    /// Tags that envelopes carry, and which layer says so.
    pub metadata_tags: Option<(Layer, Vec<String>)>,
    /// What was asked for and refused.
    pub diagnostics: Vec<NotifyDiagnostic>,
}

/// What is decided of a handler.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// Its name.
    pub name: String,
    /// What each layer says of it, the deciding ones first: unset, disabled or configured.
    pub says: Vec<(Layer, &'static str)>,
    /// The handler, unless it is off.
    pub chosen: Option<Chosen>,
}

/// A handler that is on.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// The layer that configures it.
    pub layer: Layer,
    /// How.
    pub configured: Configured,
}

/// A run asked for a handler that nothing configures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotNamed {
    /// The name.
    pub name: String,
    /// Why it cannot be had.
    pub why: String,
}

/// Resolves the layers of files and store, those that decide first, under what the run says.
///
/// # Errors
/// The run names a handler that no layer configures.
pub fn resolve(layers: &[LayerSettings], asked: &Asked) -> Result<Resolved, NotNamed> {
    let metadata_tags = layers
        .iter()
        .find_map(|layer| Some((layer.layer, layer.metadata_tags.clone()?)));
    let specs = match asked {
        Asked::Settings => &[],
        Asked::Told(specs) => specs.as_slice(),
        Asked::Off => {
            return Ok(Resolved {
                metadata_tags,
                ..Resolved::default()
            });
        }
    };
    let run = of_run(layers, specs)?;
    let mut resolved = Resolved {
        metadata_tags,
        ..Resolved::default()
    };
    for layer in layers {
        let told = layer
            .problems
            .iter()
            .map(|problem| problem.diagnostic(None, layer.layer));
        resolved.diagnostics.extend(told);
    }
    let names: BTreeSet<&String> = layers
        .iter()
        .flat_map(|layer| layer.entries.keys())
        .chain(run.keys())
        .collect();
    for name in names {
        let decided = decide(layers, run.get(name), name, &mut resolved.diagnostics);
        resolved.decided.push(decided);
    }
    Ok(resolved)
}

fn decide(
    layers: &[LayerSettings],
    run: Option<&Chosen>,
    name: &str,
    diagnostics: &mut Vec<NotifyDiagnostic>,
) -> Decided {
    let run_says = run.map(|_| (Layer::Run, "configured"));
    let below = layers.iter().map(|layer| (layer.layer, layer.state(name).word()));
    let says = run_says.into_iter().chain(below).collect();
    let deciding = layers.iter().find(|layer| *layer.state(name) != State::Unset);
    let chosen = match (run, deciding) {
        (Some(run), _) => Some(run.clone()),
        (None, None) => None,
        (None, Some(layer)) => {
            let problems = layer
                .entries
                .get(name)
                .map(|entry| entry.problems.as_slice())
                .unwrap_or_default();
            diagnostics.extend(
                problems
                    .iter()
                    .map(|problem| problem.diagnostic(Some(name), layer.layer)),
            );
            configured(layer, name)
        }
    };
    Decided {
        name: name.to_owned(),
        says,
        chosen,
    }
}

/// The handlers that the run itself asks for, by name.
fn of_run(layers: &[LayerSettings], specs: &[Spec]) -> Result<BTreeMap<String, Chosen>, NotNamed> {
    let mut run = BTreeMap::new();
    let is_taken = |name: &String| layers.iter().any(|layer| layer.entries.contains_key(name));
    let mut free_names = (1..)
        .map(|number| format!("run-{number}"))
        .filter(|name| !is_taken(name));
    for spec in specs {
        let (name, chosen) = match spec {
            Spec::Program(argv) => {
                let chosen = Chosen {
                    layer: Layer::Run,
                    configured: Configured::program(argv.clone()),
                };
                (free_names.next().expect("numbers do not end"), chosen)
            }
            Spec::Named(name) => (name.clone(), named(layers, name)?),
        };
        run.insert(name, chosen);
    }
    Ok(run)
}

/// The handler of that name in the first layer that configures it.
fn named(layers: &[LayerSettings], name: &str) -> Result<Chosen, NotNamed> {
    if let Some(chosen) = layers.iter().find_map(|layer| configured(layer, name)) {
        return Ok(chosen);
    }
    let problem = |layer: &LayerSettings| -> Option<Problem> { layer.entries.get(name)?.problems.first().cloned() };
    let known = layers.iter().flat_map(|layer| layer.entries.keys());
    let why = match (
        layers.iter().find_map(problem),
        nearest(name, known.map(String::as_str)),
    ) {
        (Some(problem), _) => problem.message,
        (None, Some(meant)) if meant == name => "it is not configured".to_owned(),
        (None, Some(meant)) => format!("did you mean `{meant}`?"),
        (None, None) => "neither a settings file nor a binding has it".to_owned(),
    };
    Err(NotNamed {
        name: name.to_owned(),
        why,
    })
}

fn configured(layer: &LayerSettings, name: &str) -> Option<Chosen> {
    match layer.state(name) {
        State::Configured(configured) => Some(Chosen {
            layer: layer.layer,
            configured: configured.clone(),
        }),
        State::Unset | State::Disabled => None,
    }
}
