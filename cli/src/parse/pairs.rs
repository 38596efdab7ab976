//! `K=V`, `K=JSON`, `KIND:ID`, `N/M` and plain JSON.

use runwarden_host::model::Actor;
use serde_json::Value;

/// Reads `K=V`.
///
/// # Errors
/// Says why the word is none.
pub(crate) fn text_pair(word: &str) -> Result<(String, String), String> {
    match word.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

/// Reads `K=JSON`.
///
/// # Errors
/// Says why the word is none, and how to quote a string.
pub(crate) fn json_pair(word: &str) -> Result<(String, Value), String> {
    let (name, text) = text_pair(word).map_err(|_| "write NAME=JSON".to_owned())?;
    let value = serde_json::from_str(&text);
    value.map(|value| (name.clone(), value)).map_err(|_| {
        format!(
            "`{text}` is no JSON: a string needs quotes of its own, {}",
            quoted(&name, &text)
        )
    })
}

/// Reads `K=V`, where a value that is no JSON is a string.
///
/// # Errors
/// Says why the word is none.
pub(crate) fn lenient_pair(word: &str) -> Result<(String, Value), String> {
    let (name, text) = text_pair(word)?;
    let value = serde_json::from_str(&text).unwrap_or_else(|_| Value::from(text.as_str()));
    Ok((name, value))
}

/// Reads any JSON value.
///
/// # Errors
/// Says why the word is none.
pub(crate) fn evidence(word: &str) -> Result<Value, String> {
    serde_json::from_str(word)
        .map_err(|error| format!("no JSON ({error}): a string needs quotes of its own, '\"text\"'"))
}

/// Reads a JSON object.
///
/// # Errors
/// Says why the word is none.
pub(crate) fn object(word: &str) -> Result<Value, String> {
    match evidence(word)? {
        value @ Value::Object(_) => Ok(value),
        _ => Err("write a JSON object, '{\"name\": \"value\"}'".to_owned()),
    }
}

/// Reads `KIND:ID`.
///
/// # Errors
/// Says why the word is none.
pub(crate) fn actor(word: &str) -> Result<Actor, String> {
    let (kind, id) = word
        .split_once(':')
        .ok_or_else(|| "write KIND:ID, such as operator:ada".to_owned())?;
    let actor = Actor::new(kind, id);
    actor.problem().map_or(Ok(actor), Err)
}

/// Reads `N/M`: done, and of how many.
///
/// # Errors
/// Says why the word is none.
pub(crate) fn progress(word: &str) -> Result<(u64, u64), String> {
    let numbers = word
        .split_once('/')
        .and_then(|(done, all)| Some((done.parse().ok()?, all.parse().ok()?)));
    match numbers {
        Some((done, all)) if done <= all => Ok((done, all)),
        Some(_) => Err("more is done than there is".to_owned()),
        None => Err("write DONE/ALL, such as 3/10".to_owned()),
    }
}

/// How to write a string on a command line.
fn quoted(name: &str, text: &str) -> String {
    format!("'{name}={}'", Value::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_needs_a_name() {
        assert_eq!(text_pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(text_pair("a="), Ok(("a".to_owned(), String::new())));
        for bad in ["", "a", "=b"] {
            assert!(text_pair(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_value_that_is_no_json_is_refused_with_the_way_to_quote_it() {
        assert_eq!(json_pair("n=7"), Ok(("n".to_owned(), Value::from(7))));
        assert_eq!(json_pair(r#"s="x""#), Ok(("s".to_owned(), Value::from("x"))));
        let why = json_pair("s=x").expect_err("it is no JSON");
        assert!(why.contains(r#"'s="x"'"#), "{why}");
        assert_eq!(lenient_pair("s=x"), Ok(("s".to_owned(), Value::from("x"))));
        assert!(object("[1]").is_err());
        assert!(object(r#"{"a":1}"#).is_ok());
    }

    #[test]
    fn an_actor_is_of_a_known_kind_and_has_an_id() {
        assert_eq!(actor("agent:a:b"), Ok(Actor::new("agent", "a:b")));
        for bad in ["", "agent", "agent:", "robot:x"] {
            assert!(actor(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn progress_is_never_more_than_all() {
        assert_eq!(progress("3/10"), Ok((3, 10)));
        for bad in ["", "3", "11/10", "-1/3", "a/b"] {
            assert!(progress(bad).is_err(), "{bad}");
        }
    }
}
