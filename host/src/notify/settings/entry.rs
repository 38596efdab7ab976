//! What one layer says of one handler.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::destination::{destination, exec, settings};
use super::problem::Problem;
use super::table::Table;
use crate::model::{Destination, DurationMs, EventFilter, Fields, TIMEOUT_DEFAULT, Transport, nearest};

/// The component of the short form, and the name of its one destination.
const SHORT_FORM: &str = "exec";

const STATES: [&str; 3] = ["unset", "disabled", "configured"];
const KEYS: [&str; 9] = [
    "state",
    "component",
    "config",
    "filter",
    "destinations",
    "timeout",
    "argv",
    "command",
    "env",
];
/// Keys that make an entry one that configures, without its saying so.
const CONFIGURING: [&str; 4] = ["component", "destinations", "argv", "command"];

/// What a layer says of a handler, with what is wrong about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What it says; a malformed entry counts as disabled.
    pub state: State,
    /// Everything that is wrong with it.
    pub problems: Vec<Problem>,
}

/// What a layer says of a handler.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// Nothing: the layer below is asked.
    Unset,
    /// It is off.
    Disabled,
    /// It is this.
    Configured(Configured),
}

impl State {
    /// Its word: unset, disabled or configured.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Unset => "unset",
            Self::Disabled => "disabled",
            Self::Configured(_) => "configured",
        }
    }
}

/// A handler as it was configured, not yet bound to a component.
#[derive(Clone, Debug, PartialEq)]
pub struct Configured {
    /// Which component: `name`, `name@1`, `name@1.2.3`, or a digest.
    pub component: String,
    /// Its configuration.
    pub config: Fields,
    /// Which events it is told.
    pub filter: EventFilter,
    /// Where its dispatches go; never empty.
    pub destinations: BTreeMap<String, Destination>,
}

impl Configured {
    /// A program that is told of every end.
    pub fn program(argv: Vec<String>) -> Self {
        let transport = Transport::Exec { argv, env: Vec::new() };
        Self::short(Destination {
            transport,
            timeout_ms: TIMEOUT_DEFAULT,
        })
    }

    fn short(destination: Destination) -> Self {
        Self {
            component: SHORT_FORM.to_owned(),
            config: Fields::new(),
            filter: EventFilter::default(),
            destinations: BTreeMap::from([(SHORT_FORM.to_owned(), destination)]),
        }
    }

    /// The same as settings say it: read again, it is the same.
    pub fn settings(&self) -> Value {
        let destinations: Map<String, Value> = self
            .destinations
            .iter()
            .map(|(name, destination)| (name.clone(), settings(destination)))
            .collect();
        let mut value = json!({
            "state": "configured",
            "component": self.component,
            "config": self.config,
            "destinations": destinations,
        });
        if self.filter != EventFilter::default() {
            value["filter"] = json!(self.filter);
        }
        value
    }
}

/// Reads what a layer says of a handler; relative paths begin at `base`.
pub fn entry(value: &Value, base: Option<&Path>) -> Entry {
    match value {
        Value::Null => sound(State::Unset),
        Value::Object(values) => of_table(values, base),
        Value::String(_) => of_table(&Map::from_iter([("command".to_owned(), value.clone())]), base),
        _ => malformed(vec![Problem::new(
            "handler_not_string_or_table",
            "a handler is a table, such as argv = [\"program\"], or a command as one string",
        )]),
    }
}

const fn sound(state: State) -> Entry {
    Entry {
        state,
        problems: Vec::new(),
    }
}

const fn malformed(problems: Vec<Problem>) -> Entry {
    Entry {
        state: State::Disabled,
        problems,
    }
}

fn of_table(values: &Map<String, Value>, base: Option<&Path>) -> Entry {
    let mut table = Table::new("a handler", values, base);
    let configures = table.has(&CONFIGURING);
    let said = table.text("state");
    table.only(&KEYS, "handler_has_unknown_keys");
    let state = match said.as_deref() {
        None if configures => configured(&mut table, base).map(State::Configured),
        None | Some("unset") => Some(State::Unset),
        Some("disabled") => Some(State::Disabled),
        Some("configured") => configured(&mut table, base).map(State::Configured),
        Some(other) => {
            let meant = nearest(other, STATES).map(|meant| format!(": did you mean `{meant}`?"));
            table.problem(
                "state_unknown",
                format!("state is unset, disabled or configured{}", meant.unwrap_or_default()),
            );
            None
        }
    };
    let problems = table.problems();
    match state {
        Some(state) if problems.is_empty() => sound(state),
        _ => malformed(problems),
    }
}

/// A handler that is configured; what is wrong with it, the table keeps.
fn configured(table: &mut Table<'_>, base: Option<&Path>) -> Option<Configured> {
    let filter = filter(table);
    let config = table.table("config").cloned().unwrap_or_default();
    let timeout = table.timeout("timeout");
    let component = table.text("component");
    if table.has(&["argv", "command"]) {
        if table.has(&["destinations"]) || component.is_some_and(|name| name != SHORT_FORM) {
            table.problem(
                "handler_has_two_forms",
                "argv and command are short for component = \"exec\" with one destination: use them or the long form",
            );
            return None;
        }
        let transport = exec(table)?;
        let timeout_ms = timeout.unwrap_or(TIMEOUT_DEFAULT);
        let short = Configured::short(Destination { transport, timeout_ms });
        return Some(Configured {
            filter,
            config,
            ..short
        });
    }
    if table.has(&["env"]) {
        table.problem(
            "env_without_program",
            "env goes with argv or command, or into a destination",
        );
    }
    let Some(component) = component else {
        table.problem(
            "configured_without_component",
            "a handler names its component, such as component = \"webhook\", or a program, argv = [\"program\"]",
        );
        return None;
    };
    Some(Configured {
        component,
        config,
        filter,
        destinations: destinations(table, timeout, base),
    })
}

fn destinations(
    table: &mut Table<'_>,
    timeout: Option<DurationMs>,
    base: Option<&Path>,
) -> BTreeMap<String, Destination> {
    let mut destinations = BTreeMap::new();
    let named = table.table("destinations");
    for (name, value) in named.into_iter().flatten() {
        let read = match value {
            Value::Object(values) if is_name(name) => destination(name, values, timeout, base),
            Value::Object(_) => Err(vec![bad_name("destination", name)]),
            _ => Err(vec![Problem::new(
                "destination_not_a_table",
                format!("destination {name} is a table"),
            )]),
        };
        match read {
            Ok(destination) => drop(destinations.insert(name.clone(), destination)),
            Err(problems) => table.add(problems),
        }
    }
    if named.is_none_or(Map::is_empty) && table.get("destinations").is_none_or(Value::is_object) {
        table.problem(
            "no_destination",
            "it has no destination, so it would tell nobody: add [notify.handlers.NAME.destinations.SOME_NAME]",
        );
    }
    destinations
}

fn filter(table: &mut Table<'_>) -> EventFilter {
    let Some(value) = table.get("filter") else {
        return EventFilter::default();
    };
    let Some(values) = value.as_object().filter(|values| !values.is_empty()) else {
        table.problem(
            "filter_not_a_table",
            "filter is a table with kinds, statuses or both; leave it out to be told everything",
        );
        return EventFilter::default();
    };
    let mut inner = Table::new("filter", values, None);
    inner.only(&["kinds", "statuses"], "filter_has_unknown_keys");
    let mut words = |key: &str| {
        let is_list = |list: &Vec<Value>| {
            !list.is_empty()
                && list
                    .iter()
                    .all(|word| word.as_str().is_some_and(|word| !word.is_empty()))
        };
        match inner.get(key) {
            None => Vec::new(),
            Some(Value::Array(list)) if is_list(list) => {
                list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            Some(_) => {
                inner.problem(
                    format!("filter_{key}_not_a_list_of_strings"),
                    format!("{key} of filter is a list of words, not an empty one"),
                );
                Vec::new()
            }
        }
    };
    let filter = EventFilter {
        kinds: words("kinds"),
        statuses: words("statuses"),
    };
    table.add(inner.problems());
    filter
}

/// Whether a word can be the name of a handler or of a destination: it becomes a part of ids.
pub(super) fn is_name(word: &str) -> bool {
    const CHARS_MAX: usize = 64;
    word.len() <= CHARS_MAX && crate::model::validate_id(word).is_ok()
}

pub(super) fn bad_name(what: &str, name: &str) -> Problem {
    Problem::new(
        format!("{what}_name_not_usable"),
        format!("`{name}` is no name: at most 64 of A-Z a-z 0-9 . _ -, the first a letter or digit"),
    )
}
