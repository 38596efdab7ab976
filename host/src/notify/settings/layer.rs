//! What one settings file says, or all bindings of the store together.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::entry::{Entry, State, bad_name, entry, is_name};
use super::policies::trust;
use super::problem::Problem;
use super::table::Table;
use crate::model::{DurationMs, Fields, Layer};
use crate::provenance::Trust;

/// What a layer says.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerSettings {
    /// Which one it is.
    pub layer: Layer,
    /// The file it was read from.
    pub path: Option<PathBuf>,
    /// Handlers, by name.
    pub entries: BTreeMap<String, Entry>,
    /// Tags that envelopes carry; none says nothing.
    pub metadata_tags: Option<Vec<String>>,
    /// From the lapse of a lease to the fence; none says nothing.
    pub lease_grace: Option<DurationMs>,
    /// Whose signatures on components count; said by the user's own settings alone.
    pub trust: Trust,
    /// What is wrong with that: then nothing of it counts. They are among `problems`, too.
    pub trust_problems: Vec<Problem>,
    /// What is wrong beside the handlers.
    pub problems: Vec<Problem>,
    /// It could not be read: what it says of any handler is not known, so every one counts as disabled from here down.
    pub is_broken: bool,
}

impl LayerSettings {
    /// A layer that says nothing.
    pub const fn empty(layer: Layer) -> Self {
        Self {
            layer,
            path: None,
            entries: BTreeMap::new(),
            metadata_tags: None,
            lease_grace: None,
            trust: Trust {
                require_signature: false,
                keys: BTreeMap::new(),
            },
            trust_problems: Vec::new(),
            problems: Vec::new(),
            is_broken: false,
        }
    }

    /// A layer whose file is there and says nothing that can be understood.
    pub fn broken(layer: Layer, path: &Path, why: &str) -> Self {
        let message = format!("{} {why}; nothing below it counts", path.display());
        Self {
            path: Some(path.to_owned()),
            problems: vec![Problem::new("settings_load_failed", message)],
            is_broken: true,
            ..Self::empty(layer)
        }
    }

    /// Bindings of the store, by name, in the shape of a handler's table.
    pub fn of_bindings<'a>(bindings: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Self {
        let entries = bindings
            .into_iter()
            .map(|(name, value)| (name.to_owned(), entry(value, None)));
        Self {
            entries: entries.collect(),
            ..Self::empty(Layer::Store)
        }
    }

    /// The state that it says a handler has.
    pub fn state(&self, name: &str) -> &State {
        match self.entries.get(name) {
            Some(entry) => &entry.state,
            None if self.is_broken => &State::Disabled,
            None => &State::Unset,
        }
    }
}

/// Reads the text of a settings file; relative paths begin at its directory.
pub fn read(layer: Layer, path: &Path, text: &str) -> LayerSettings {
    let document = match document(text) {
        Ok(document) => document,
        Err(why) => return LayerSettings::broken(layer, path, &format!("is no TOML{why}")),
    };
    let mut settings = LayerSettings::empty(layer);
    settings.path = Some(path.to_owned());
    of_document(&document, path.parent(), &mut settings);
    settings
}

/// Reads TOML.
///
/// # Errors
/// Says in which line it is none, and why. The line itself may hold what is to be kept, and is not repeated.
pub fn document(text: &str) -> Result<Fields, String> {
    toml::from_str(text).map_err(|error| {
        let line = |span: Range<usize>| text[..span.start.min(text.len())].split('\n').count();
        let place = error.span().map(|span| format!(", line {}", line(span)));
        format!("{}: {}", place.unwrap_or_default(), error.message())
    })
}

/// Reads a document into the settings of a layer.
pub(super) fn of_document(document: &Fields, base: Option<&Path>, settings: &mut LayerSettings) {
    let mut top = Table::new("the settings", document, base);
    top.only(&["notify", "policies", "queue"], "settings_have_unknown_keys");
    (settings.trust, settings.trust_problems) = trust(document, settings.layer, base);
    top.add(settings.trust_problems.clone());
    if let Some(values) = top.table("queue") {
        let mut queue = Table::new("queue", values, base);
        queue.only(&["lease_grace"], "queue_has_unknown_keys");
        settings.lease_grace = queue.duration("lease_grace");
        top.add(queue.problems());
    }
    if let Some(values) = top.table("notify") {
        let mut notify = Table::new("notify", values, base);
        notify.only(&["metadata_tags", "handlers"], "notify_has_unknown_keys");
        settings.metadata_tags = notify.texts("metadata_tags");
        for (name, value) in notify.table("handlers").into_iter().flatten() {
            if is_name(name) {
                settings.entries.insert(name.clone(), entry(value, base));
            } else {
                notify.add(vec![bad_name("handler", name)]);
            }
        }
        top.add(notify.problems());
    }
    settings.problems = top.problems();
}
