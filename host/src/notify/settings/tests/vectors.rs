//! The reference system's settings, `tests/vectors/notify_config.json`, said in our keys. Every row that comes out
//! otherwise here is named with the part of the semantics it relies on.

use serde_json::{Map, Value, json};

use super::super::layer::of_document;
use super::super::*;
use super::shipped;
use crate::model::{Layer, Transport};

/// Why a row comes out otherwise.
enum Exception {
    /// 10.13: a string with `$`, a glob, `~` or a backslash is refused, never passed literally.
    LooksLikeShell,
    /// 10.19: handlers are components; there are no Python ones.
    Python,
    /// A filter has kinds and statuses (section 3); one entity's notices are asked for with `--notify`.
    FilterByIds,
    /// What nothing reads is told (section 3: every malformed shape has a code), never passed over.
    Told,
}

fn exception(row: &Value) -> Option<Exception> {
    let asked = &row["on_terminal"];
    let looks_like_shell = ["a $1", "a $?", "a $", "echo a\\ b", "~/bin/x", "*.sh", "echo \"$HOME\""];
    let is_shell = asked.as_str().is_some_and(|text| looks_like_shell.contains(&text));
    let settings = &row["settings"];
    if is_shell {
        Some(Exception::LooksLikeShell)
    } else if asked["adapter"]["kind"] == "python" {
        Some(Exception::Python)
    } else if !asked["filter"]["ids"].is_null() {
        Some(Exception::FilterByIds)
    } else if settings["notify"].is_array() || settings["notify"].is_string() || !settings["other"].is_null() {
        Some(Exception::Told)
    } else {
        None
    }
}

/// The reference's words for what is wrong, in ours.
fn code(reference: &str) -> &str {
    match reference {
        "on_terminal_command_is_empty" => "command_is_empty",
        "on_terminal_command_requires_shell_features" => "command_requires_shell",
        "on_terminal_command_not_parseable" => "command_not_parseable",
        "on_terminal_not_string_or_mapping" => "handler_not_string_or_table",
        "enabled_without_adapter" => "configured_without_component",
        "exec_adapter_argv_not_a_list_of_strings" => "argv_not_a_list_of_strings",
        "adapter_kind_unsupported" => "component_unknown",
        "filter_not_a_mapping" => "filter_not_a_table",
        other => other,
    }
}

/// A handler of the reference in our keys.
fn ours(on_terminal: &Value) -> Value {
    let Some(table) = on_terminal.as_object() else {
        return on_terminal.clone();
    };
    let mut ours = Map::new();
    match table.get("enabled") {
        None => {}
        Some(Value::Bool(false)) => drop(ours.insert("state".to_owned(), json!("disabled"))),
        Some(_) => drop(ours.insert("state".to_owned(), json!("configured"))),
    }
    if let Some(adapter) = table.get("adapter").and_then(Value::as_object) {
        match adapter.get("kind").and_then(Value::as_str) {
            Some("exec") => drop(ours.insert("argv".to_owned(), adapter.get("argv").cloned().unwrap_or(json!(0)))),
            kind => {
                ours.insert("component".to_owned(), json!(kind.unwrap_or("none")));
                ours.insert(
                    "destinations".to_owned(),
                    json!({"d": {"transport": "file", "path": "/x"}}),
                );
            }
        }
    }
    if let Some(filter) = table.get("filter") {
        // TOML has no null: there it is something that is no table.
        let filter = if filter.is_null() { json!(0) } else { filter.clone() };
        ours.insert("filter".to_owned(), filter);
    }
    Value::Object(ours)
}

/// What came of a handler: off, handler or rejected, with the first code and the program.
fn outcome(settings: LayerSettings) -> (&'static str, Option<String>, Value) {
    let descriptor = shipped("exec");
    let component = Component {
        digest: "d",
        descriptor: &descriptor,
    };
    let kinds = ["session", "play", "invocation", "schedule_run"].map(str::to_owned);
    let resolved = resolve(&[settings], &Asked::Settings).expect("nothing is named");
    if let Some(told) = resolved.diagnostics.first() {
        return ("rejected", Some(told.code.clone()), Value::Null);
    }
    let Some(chosen) = resolved.decided.into_iter().find_map(|decided| decided.chosen) else {
        return ("off", None, Value::Null);
    };
    let installed = (chosen.configured.component == "exec").then_some(component);
    match bind("x", &chosen, installed, &kinds) {
        Err(problems) => ("rejected", Some(problems[0].code.clone()), Value::Null),
        Ok(bound) => match &bound.destinations["exec"].transport {
            Transport::Exec { argv, .. } => ("handler", None, json!(argv)),
            other => panic!("{other:?}"),
        },
    }
}

#[test]
fn the_reference_settings_come_out_as_they_did() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/vectors/notify_config.json");
    let text = std::fs::read_to_string(path).expect("the vectors are in the repository");
    let vectors: Value = serde_json::from_str(&text).expect("vectors are JSON");
    let rows = |name: &str| vectors[name].as_array().cloned().unwrap_or_default();
    let mut judged = 0;
    for row in rows("vectors") {
        let mut settings = LayerSettings::empty(Layer::Global);
        settings
            .entries
            .insert("x".to_owned(), entry(&ours(&row["on_terminal"]), None));
        check(&row, outcome(settings));
        judged += 1;
    }
    for row in rows("whole_settings") {
        let mut settings = LayerSettings::empty(Layer::Global);
        match &row["settings"] {
            Value::Object(document) => {
                let mut document = document.clone();
                if let Some(asked) = document.get("notify").and_then(|notify| notify.get("on_terminal")) {
                    let handlers = json!({"handlers": {"x": ours(asked)}});
                    document.insert("notify".to_owned(), handlers);
                }
                of_document(&document, None, &mut settings);
            }
            // A file of TOML is a table; that which cannot be loaded is none.
            Value::String(text) if text.starts_with('<') => {
                settings = read(Layer::Global, "/settings.toml".as_ref(), text);
            }
            _ => continue,
        }
        check(&row, outcome(settings));
        judged += 1;
    }
    assert!(judged > 100, "{judged}");
}

#[track_caller]
fn check(row: &Value, (state, diagnostic, argv): (&str, Option<String>, Value)) {
    let expected = match exception(row) {
        None => (row["state"].as_str(), row["diagnostic"].as_str().map(code)),
        Some(Exception::LooksLikeShell) => (Some("rejected"), Some("command_requires_shell")),
        Some(Exception::Python) => (Some("rejected"), Some("component_unknown")),
        Some(Exception::FilterByIds) => (Some("rejected"), Some("filter_has_unknown_keys")),
        Some(Exception::Told) if row["settings"]["other"].is_null() => (Some("rejected"), Some("notify_not_a_table")),
        Some(Exception::Told) => (Some("rejected"), Some("settings_have_unknown_keys")),
    };
    assert_eq!((Some(state), diagnostic.as_deref()), expected, "{row}");
    if state == "handler" {
        assert_eq!(argv, row["argv"], "{row}");
    }
}
