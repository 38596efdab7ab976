//! Values given for declared parameters: of a policy at its activation, of a handler in its binding.

use serde_json::Value;

use super::{Fields, Finding, Parameter, Severity, coerce, nearest};

/// Everything wrong with values given for parameters; each finding's place is the parameter.
pub fn check_given(declared: &[Parameter], given: &Fields) -> Vec<Finding> {
    let known = |name: &String| declared.iter().find(|parameter| parameter.name == *name);
    let mut findings = Vec::new();
    let mut report = |place: &str, message: String| {
        findings.push(Finding {
            severity: Severity::Error,
            place: place.to_owned(),
            message,
        });
    };
    for (name, value) in given {
        match known(name) {
            None => report(name, unknown(declared, name)),
            Some(parameter) => {
                if let Some(message) = misfit(parameter, value) {
                    report(name, message);
                }
            }
        }
    }
    for parameter in declared.iter().filter(|parameter| parameter.default.is_null()) {
        if given.get(&parameter.name).is_none_or(Value::is_null) {
            report(&parameter.name, format!("must be set: it takes {}", takes(parameter)));
        }
    }
    findings
}

/// A value for each parameter: what was given, in the form of its kind, else its default.
pub fn filled(declared: &[Parameter], given: &Fields) -> Fields {
    let value = |parameter: &Parameter| {
        let given = given.get(&parameter.name).filter(|value| !value.is_null());
        let fitting = given.and_then(|value| coerce(&parameter.name, parameter.kind, value).ok());
        fitting.unwrap_or_else(|| parameter.default.clone())
    };
    declared
        .iter()
        .map(|parameter| (parameter.name.clone(), value(parameter)))
        .collect()
}

/// What keeps a value from being one of the parameter's.
fn misfit(parameter: &Parameter, value: &Value) -> Option<String> {
    let listed = |fitting: &Value| parameter.choices.is_empty() || parameter.choices.contains(fitting);
    match coerce(&parameter.name, parameter.kind, value) {
        Ok(fitting) if fitting.is_null() || listed(&fitting) => None,
        _ => Some(format!("takes {}, not {value}", takes(parameter))),
    }
}

/// What a parameter takes, in a sentence such as "takes …".
fn takes(parameter: &Parameter) -> String {
    let choices: Vec<String> = parameter.choices.iter().map(Value::to_string).collect();
    match choices.as_slice() {
        [] => parameter.kind.words().to_owned(),
        [one] => one.clone(),
        _ => format!("one of {}", choices.join(", ")),
    }
}

fn unknown(declared: &[Parameter], name: &str) -> String {
    let names = || declared.iter().map(|parameter| parameter.name.as_str());
    match nearest(name, names()) {
        _ if declared.is_empty() => "is no parameter: there are none".to_owned(),
        Some(meant) => format!("is no parameter: did you mean `{meant}`?"),
        None => format!("is no parameter: there are {}", names().collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::FieldKind;

    fn parameter(name: &str, kind: FieldKind, default: Value, choices: &[Value]) -> Parameter {
        Parameter {
            name: name.to_owned(),
            kind,
            default,
            choices: choices.to_vec(),
            summary: String::new(),
            ext: Vec::new(),
        }
    }

    fn declared() -> Vec<Parameter> {
        vec![
            parameter("deadline_ms", FieldKind::Integer, json!(0), &[]),
            parameter("channel", FieldKind::Text, Value::Null, &[]),
            parameter(
                "format",
                FieldKind::Text,
                json!("long"),
                &[json!("long"), json!("short")],
            ),
        ]
    }

    fn given(pairs: &Value) -> Fields {
        let pairs = pairs.as_object().expect("an object");
        pairs
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    fn check(pairs: &Value, expected: &[&str]) {
        let findings = check_given(&declared(), &given(pairs));
        let said: Vec<String> = findings.iter().map(|f| format!("{}: {}", f.place, f.message)).collect();
        assert_eq!(said, expected, "{pairs}");
    }

    #[test]
    fn what_fits_is_admitted() {
        check(&json!({"channel": "#ops"}), &[]);
        check(&json!({"channel": "#ops", "deadline_ms": 5.0, "format": "short"}), &[]);
        check(&json!({"channel": "#ops", "deadline_ms": null}), &[]);
    }

    #[test]
    fn each_value_that_does_not_fit_is_told_at_its_parameter() {
        let missing = "channel: must be set: it takes a string";
        check(&json!({}), &[missing]);
        check(&json!({"channel": null}), &[missing]);
        check(
            &json!({"channel": 3, "deadline_ms": "soon", "format": "tiny"}),
            &[
                "channel: takes a string, not 3",
                r#"deadline_ms: takes a whole number, not "soon""#,
                r#"format: takes one of "long", "short", not "tiny""#,
            ],
        );
        check(
            &json!({"channel": "c", "chanel": "c", "zzz": 1}),
            &[
                "chanel: is no parameter: did you mean `channel`?",
                "zzz: is no parameter: there are deadline_ms, channel, format",
            ],
        );
    }

    #[test]
    fn defaults_fill_what_was_not_given_and_values_take_the_form_of_their_kind() {
        let filled = filled(
            &declared(),
            &given(&json!({"channel": "c", "deadline_ms": 5.0, "zzz": 1})),
        );
        assert_eq!(
            filled,
            given(&json!({"channel": "c", "deadline_ms": 5, "format": "long"}))
        );
    }
}
