//! One destination of a handler: transport, and program, address or path, and where its secrets are.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::super::transport::speaks_tls;
use super::command::split;
use super::problem::Problem;
use super::table::Table;
use crate::model::{Destination, DurationMs, SecretReference, Source, TIMEOUT_DEFAULT, Transport};

/// The keys that every destination may have.
const COMMON: [&str; 2] = ["transport", "timeout"];
const EXEC: [&str; 3] = ["argv", "command", "env"];
const WEBHOOK: [&str; 7] = [
    "url",
    "url_env",
    "url_file",
    "secret_env",
    "secret_file",
    "allow_private",
    "ca_file",
];
const FILE: [&str; 1] = ["path"];

/// Reads a destination of this name; `timeout` is what its handler gives to all.
///
/// # Errors
/// Everything that is wrong with it.
pub(super) fn destination(
    name: &str,
    values: &Map<String, Value>,
    timeout: Option<DurationMs>,
    base: Option<&Path>,
) -> Result<Destination, Vec<Problem>> {
    let mut table = Table::new(format!("destination {name}"), values, base);
    let transport = table.text("transport");
    let timeout_ms = table.timeout("timeout").or(timeout).unwrap_or(TIMEOUT_DEFAULT);
    let (keys, transport): (&[&str], _) = match transport.as_deref() {
        Some("exec") => (&EXEC, exec(&mut table)),
        Some("webhook") => (&WEBHOOK, webhook(&mut table)),
        Some("file") => (&FILE, file(&mut table)),
        _ => {
            let message = format!("destination {name} says its transport: exec, webhook or file");
            table.problem("transport_unknown", message);
            return Err(table.problems());
        }
    };
    table.only(&[&COMMON, keys].concat(), "destination_has_unknown_keys");
    let problems = table.problems();
    match transport {
        Some(transport) if problems.is_empty() => Ok(Destination { transport, timeout_ms }),
        _ => Err(problems),
    }
}

/// A program: `argv`, or `command` as one string, and `env`.
pub(super) fn exec(table: &mut Table<'_>) -> Option<Transport> {
    let words = match (table.has(&["argv"]), table.has(&["command"])) {
        (true, true) => {
            table.problem(
                "argv_and_command",
                "a program is given by argv or by command, not by both",
            );
            return None;
        }
        (false, true) => match split(&table.text("command")?) {
            Ok(words) => Some(words),
            Err(problem) => {
                table.add(vec![problem]);
                None
            }
        },
        (true, false) => table.texts("argv"),
        (false, false) => {
            table.problem(
                "argv_not_a_list_of_strings",
                "a program needs argv = [\"program\", \"argument\"]",
            );
            None
        }
    };
    let env = table.one_or_more("env");
    let env: Vec<String> = env.iter().filter_map(|name| table.variable("env", name)).collect();
    let argv = program(table, words?)?;
    Some(Transport::Exec { argv, env })
}

/// The words, with a program that is named by a path found from where its settings are, wherever it will be started.
fn program(table: &mut Table<'_>, mut argv: Vec<String>) -> Option<Vec<String>> {
    let Some(first) = argv.first_mut() else {
        table.problem("command_is_empty", "argv has no words");
        return None;
    };
    if first.contains('/') && !first.starts_with('~') {
        *first = table.placed("argv", first)?;
    }
    if argv.iter().any(|word| word.contains('\0')) {
        table.problem("argv_holds_nul", "no argument can hold NUL");
        return None;
    }
    Some(argv)
}

fn webhook(table: &mut Table<'_>) -> Option<Transport> {
    let allow_private = table.flag("allow_private");
    let url = url(table, allow_private);
    let variables = table.one_or_more("secret_env");
    let mut secrets: Vec<SecretReference> = variables
        .iter()
        .filter_map(|name| table.variable("secret_env", name).map(SecretReference::Env))
        .collect();
    let files = table.one_or_more("secret_file");
    secrets.extend(
        files
            .iter()
            .filter_map(|path| table.placed("secret_file", path).map(SecretReference::File)),
    );
    let ca_file = table.path("ca_file");
    Some(Transport::Webhook {
        url: url?,
        secrets,
        allow_private,
        ca_file,
    })
}

fn url(table: &mut Table<'_>, allow_private: bool) -> Option<Source> {
    let given: Vec<&str> = ["url", "url_env", "url_file"]
        .into_iter()
        .filter(|key| table.has(&[key]))
        .collect();
    match given.as_slice() {
        ["url"] => {
            let text = table.text("url")?;
            if let Err(why) = address(&text, allow_private) {
                table.problem("url_not_usable", why);
                return None;
            }
            Some(Source::Given(text))
        }
        ["url_env"] => {
            let name = table.text("url_env")?;
            table.variable("url_env", &name).map(Source::Env)
        }
        ["url_file"] => table.path("url_file").map(Source::File),
        [] => {
            table.problem("url_missing", "a webhook needs one of url, url_env and url_file");
            None
        }
        _ => {
            table.problem("url_given_twice", "a webhook has one of url, url_env and url_file");
            None
        }
    }
}

/// Whether an address can be one; the address itself may hold a secret, and is not repeated.
fn address(text: &str, allow_private: bool) -> Result<(), String> {
    match speaks_tls(text) {
        Ok(true) => Ok(()),
        Ok(false) if allow_private => Ok(()),
        Ok(false) => Err("http is for addresses of this machine or network alone: allow_private = true".to_owned()),
        Err(why) => Err(format!(
            "the url {why}; write https://HOST/PATH, or url_env or url_file for one that is a secret"
        )),
    }
}

fn file(table: &mut Table<'_>) -> Option<Transport> {
    if !table.has(&["path"]) {
        table.problem("path_missing", "a file needs its path");
    }
    table.path("path").map(|path| Transport::File { path })
}

/// A destination as settings say it.
pub(super) fn settings(destination: &Destination) -> Value {
    let mut value = match &destination.transport {
        Transport::Exec { argv, env } => json!({"argv": argv, "env": env}),
        Transport::Webhook {
            url,
            secrets,
            allow_private,
            ca_file,
        } => {
            let (key, text) = match url {
                Source::Given(text) => ("url", text),
                Source::Env(text) => ("url_env", text),
                Source::File(text) => ("url_file", text),
            };
            let variables: Vec<&String> = secrets.iter().filter_map(SecretReference::variable).collect();
            let files: Vec<&String> = secrets.iter().filter_map(SecretReference::file).collect();
            json!({
                key: text,
                "secret_env": variables,
                "secret_file": files,
                "allow_private": allow_private,
                "ca_file": ca_file,
            })
        }
        Transport::File { path } => json!({"path": path}),
    };
    let table = value.as_object_mut().expect("it was made as one");
    table.retain(|_, value| !value.is_null() && *value != json!([]) && *value != json!(false));
    table.insert("transport".to_owned(), json!(destination.transport.word()));
    table.insert(
        "timeout".to_owned(),
        json!(format!("{}ms", destination.timeout_ms.as_ms())),
    );
    value
}
