//! Judges the descriptor of a handler whole.

use super::{Finding, Findings, label, limit, parameters};
use crate::model::{HandlerDescriptor, TRANSPORTS};

/// Every problem of a handler's descriptor. It may be installed when none is an error.
pub fn check_handler(descriptor: &HandlerDescriptor) -> Vec<Finding> {
    let mut findings = Findings::default();
    label(&descriptor.name, &descriptor.version, &mut findings);
    findings.text("summary", &descriptor.summary);
    transports(&descriptor.transports, &mut findings);
    let (found, most) = (descriptor.config.len(), limit::FIELDS);
    if found > most {
        findings.error("config", format!("{found} entries, at most {most} are admitted"));
        return findings.0;
    }
    parameters("config", &descriptor.config, &mut findings);
    let declared = descriptor.config.iter().flat_map(|parameter| &parameter.ext);
    findings.extensions(descriptor.ext.iter().chain(declared));
    findings.0
}

fn transports(words: &[String], findings: &mut Findings) {
    let known = TRANSPORTS.join(", ");
    if words.is_empty() {
        findings.error("transports", format!("none is named: a handler uses some of {known}"));
    }
    // A list with a word twice may be of any length; what is said of it is not.
    for (index, word) in words.iter().enumerate().take(TRANSPORTS.len() + 1) {
        let place = format!("transports[{index}]");
        if !TRANSPORTS.contains(&word.as_str()) {
            findings.error(place, format!("`{word}` is no transport: they are {known}"));
        } else if words[..index].contains(word) {
            findings.error(place, format!("transport `{word}` is named twice"));
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::unwrap_used,
        reason = "a test ends at the first thing that is not as it should be"
    )]

    use serde_json::{Value, json};

    use super::check_handler;

    /// The places and words of what is said of a sound handler with one value changed.
    fn said(pointer: &str, value: Value) -> Vec<(String, String)> {
        let mut table: Value = serde_json::from_str(runwarden_bundled::HANDLERS[0].descriptor).unwrap();
        *table.pointer_mut(pointer).unwrap() = value;
        let findings = check_handler(&serde_json::from_value(table).unwrap());
        findings.into_iter().map(|f| (f.place, f.message)).collect()
    }

    fn refused(pointer: &str, value: Value, place: &str, words: &str) {
        let found = said(pointer, value);
        let told = found.iter().any(|(at, message)| at == place && message.contains(words));
        assert!(told, "{pointer}: nothing at {place} with `{words}` in {found:?}");
    }

    fn parameter(name: &str, kind: &str, default: &Value) -> Value {
        json!({"name": name, "kind": kind, "default": default, "choices": [], "summary": "", "ext": []})
    }

    #[test]
    fn nothing_is_said_of_a_handler_that_ships() {
        for bundled in runwarden_bundled::HANDLERS {
            let descriptor = serde_json::from_str(bundled.descriptor).unwrap();
            assert_eq!(check_handler(&descriptor), [], "{}", bundled.name);
        }
    }

    #[test]
    fn each_problem_of_a_handler_is_told_in_its_place() {
        refused("/name", json!("Web Hook"), "name", "is no name");
        refused("/version", json!("1"), "version", "no semantic version");
        refused("/summary", json!("x".repeat(5_000)), "summary", "5000 bytes");
        refused("/transports", json!([]), "transports", "none is named");
        refused(
            "/transports",
            json!(["exec", "smtp"]),
            "transports[1]",
            "they are exec, webhook, file",
        );
        refused("/transports", json!(["exec", "exec"]), "transports[1]", "named twice");
        let many: Vec<Value> = (0..300)
            .map(|n| parameter(&format!("p{n}"), "text", &json!("")))
            .collect();
        refused("/config", json!(many), "config", "300 entries");
        let twice = [parameter("p", "text", &json!("")), parameter("p", "text", &json!(""))];
        refused("/config", json!(twice), "config[1]", "declared twice");
        refused(
            "/config",
            json!([parameter("p", "integer", &json!("three"))]),
            "config[0]",
            "takes a whole number",
        );
        let critical = json!([{"key": "from-the-future", "json": 1, "critical": true}]);
        refused("/ext", critical, "ext", "from-the-future");
    }

    #[test]
    fn a_parameter_that_must_be_set_has_no_default_and_may_have_choices() {
        let mut required = parameter("format", "text", &Value::Null);
        required["choices"] = json!(["long", "short"]);
        assert_eq!(said("/config", json!([required])), []);
    }
}
