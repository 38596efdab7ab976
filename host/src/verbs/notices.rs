//! Who is told of an entity: the settings of here and of the store, resolved and bound to what is installed.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::Error;
use crate::host::Host;
use crate::model::{
    BoundHandler, DurationMs, HANDLER_KIND, HandlerDescriptor, Invalid, Layer, NotifyDiagnostic, NotifySettings,
};
use crate::notify::settings::{
    Asked, Chosen, Component, Decided, Files, LayerSettings, NotNamed, Problem, Spec, bind, read_global, read_project,
    resolve,
};
use crate::policy::select;
use crate::store::{Binding, ComponentRecord};

/// Who is told, and how that came about.
#[derive(Clone, Debug, PartialEq)]
pub struct Notices {
    /// What an entity that is created here and now keeps.
    pub settings: NotifySettings,
    /// What each layer says of each handler.
    pub decided: Vec<Decided>,
    /// The layer that names the tags.
    pub tags_from: Option<Layer>,
    /// The settings files that were found.
    pub files: Vec<(Layer, PathBuf)>,
}

/// Resolves the settings for an entity that is created now. What is malformed is a diagnostic, and no error.
///
/// # Errors
/// The run names a handler that cannot be had, or the store cannot be read.
pub fn notices(host: &Host, files: &Files, asked: &Asked) -> Result<Notices, Error> {
    let bindings = host.store().bindings()?;
    let layers = layers(files, &bindings);
    let resolved = resolve(&layers, asked).map_err(|absent| not_had(&absent))?;
    let mut notices = Notices {
        settings: NotifySettings {
            diagnostics: resolved.diagnostics,
            ..NotifySettings::default()
        },
        decided: resolved.decided,
        tags_from: resolved.metadata_tags.as_ref().map(|(layer, _)| *layer),
        files: layers
            .into_iter()
            .filter_map(|layer| Some((layer.layer, layer.path?)))
            .collect(),
    };
    notices.settings.metadata_tags = resolved.metadata_tags.map(|(_, tags)| tags).unwrap_or_default();
    let on = notices
        .decided
        .iter()
        .filter_map(|decided| Some((&decided.name, decided.chosen.as_ref()?)));
    let mut installed = Installed::new(host);
    for (name, chosen) in on {
        match installed.bind(name, chosen)? {
            Ok(bound) => notices.settings.handlers.push(bound),
            Err(problems) if is_named(asked, name) => {
                let why = problems
                    .into_iter()
                    .map(|problem| problem.message)
                    .collect::<Vec<_>>()
                    .join("; ");
                let name = name.clone();
                return Err(not_had(&NotNamed { name, why }).into());
            }
            Err(problems) => notices.settings.diagnostics.extend(told(name, chosen.layer, &problems)),
        }
    }
    Ok(notices)
}

/// From the lapse of a lease to the fence, as the settings files have it, the project's first; and what is wrong with them.
pub fn lease_grace(files: &Files) -> (Option<DurationMs>, Vec<String>) {
    let layers = layers(files, &[]);
    let grace = layers.iter().find_map(|layer| layer.lease_grace);
    let problems = layers.into_iter().flat_map(|layer| layer.problems);
    (grace, problems.map(|problem| problem.message).collect())
}

/// Whether the run itself asks for the handler of that name.
fn is_named(asked: &Asked, name: &str) -> bool {
    let names = |spec: &Spec| matches!(spec, Spec::Named(named) if named == name);
    matches!(asked, Asked::Told(specs) if specs.iter().any(names))
}

fn not_had(absent: &NotNamed) -> Invalid {
    let message = format!("`{}` is no handler that can be told: {}", absent.name, absent.why);
    let hint = "`runwarden notify show` tells what the settings come to";
    Invalid::new("notify", message, Some(hint.to_owned()))
}

fn layers(files: &Files, bindings: &[Binding]) -> Vec<LayerSettings> {
    let project = files.working_directory.as_deref().map(read_project);
    let global = files.global.as_deref().map(read_global);
    let store = LayerSettings::of_bindings(
        bindings
            .iter()
            .map(|binding| (binding.name.as_str(), &binding.settings)),
    );
    project.into_iter().chain(global).chain([store]).collect()
}

fn told<'a>(name: &'a str, layer: Layer, problems: &'a [Problem]) -> impl Iterator<Item = NotifyDiagnostic> + use<'a> {
    problems
        .iter()
        .map(move |problem| problem.diagnostic(Some(name), layer))
}

/// What is installed, read when the first handler asks for it.
pub(crate) struct Installed<'a> {
    host: &'a Host,
    components: Option<Vec<ComponentRecord>>,
    kinds: Option<Vec<String>>,
}

impl<'a> Installed<'a> {
    /// Nothing is read yet.
    pub(crate) const fn new(host: &'a Host) -> Self {
        Self {
            host,
            components: None,
            kinds: None,
        }
    }

    /// Binds a handler to the newest component that its settings mean.
    ///
    /// # Errors
    /// The store cannot be read; what does not fit is inside.
    pub(crate) fn bind(&mut self, name: &str, chosen: &Chosen) -> Result<Result<BoundHandler, Vec<Problem>>, Error> {
        let found = self.component(&chosen.configured.component)?;
        let component = found
            .as_ref()
            .map(|(digest, descriptor)| Component { digest, descriptor });
        let kinds = match (&mut self.kinds, chosen.configured.filter.kinds.is_empty()) {
            (_, true) => &[],
            (Some(kinds), false) => kinds.as_slice(),
            (unread @ None, false) => unread.insert(kinds_with_events(self.host)?),
        };
        Ok(bind(name, chosen, component, kinds))
    }

    /// The newest handler that is meant by the words, with its digest.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn component(&mut self, words: &str) -> Result<Option<(String, Arc<HandlerDescriptor>)>, Error> {
        let components = match &mut self.components {
            Some(components) => components,
            unread @ None => {
                self.host.ensure_bundled()?;
                unread.insert(self.host.store().components()?)
            }
        };
        let mut handlers = select(components, words)
            .into_iter()
            .filter(|record| record.kind == HANDLER_KIND);
        let Some(record) = handlers.next() else {
            return Ok(None);
        };
        let descriptor = self.host.policies().handler(&record.digest)?;
        Ok(descriptor.map(|descriptor| (record.digest.clone(), descriptor)))
    }
}

/// The kinds whose policy in force makes events.
fn kinds_with_events(host: &Host) -> Result<Vec<String>, Error> {
    let mut kinds = host.kinds()?;
    let mut makes_events = |kind: &String| -> Result<bool, Error> {
        let descriptor = host.active_policy(kind)?.lifecycle;
        let descriptor = descriptor.descriptor();
        Ok(descriptor.emits_events || descriptor.statuses.iter().any(|status| status.announced))
    };
    let told: Vec<bool> = kinds.iter().map(&mut makes_events).collect::<Result<_, _>>()?;
    let mut told = told.into_iter();
    kinds.retain(|_| told.next().unwrap_or_default());
    Ok(kinds)
}
