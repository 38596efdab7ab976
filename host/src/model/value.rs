//! Field values: what a descriptor's field kinds admit, and when two JSON values are the same.

use serde_json::Value;

use super::{FieldKind, Timestamp};

/// Why a value does not fit a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("field `{field}` takes {expected}, not {found}")]
pub struct ValueError {
    /// The field.
    pub field: String,
    /// What it takes.
    pub expected: &'static str,
    /// What was given, as JSON.
    pub found: String,
}

/// The value as a field of this kind keeps it. Null is admitted everywhere; a timestamp may be given as RFC 3339 or as
/// milliseconds and is kept as milliseconds; a boolean may be given as 0 or 1.
///
/// # Errors
/// [`ValueError`] when the value is of another kind.
pub fn coerce(field: &str, kind: FieldKind, value: &Value) -> Result<Value, ValueError> {
    let fitting = match (kind, value) {
        (_, Value::Null) | (FieldKind::Json, _) => Some(value.clone()),
        (FieldKind::Integer, Value::Number(number)) => whole(number).map(Value::from),
        (FieldKind::Number, Value::Number(_)) | (FieldKind::Text, Value::String(_)) => Some(value.clone()),
        (FieldKind::Boolean, Value::Bool(_)) => Some(value.clone()),
        (FieldKind::Boolean, Value::Number(number)) => match whole(number) {
            Some(0) => Some(Value::Bool(false)),
            Some(1) => Some(Value::Bool(true)),
            _ => None,
        },
        (FieldKind::Timestamp, Value::Number(number)) => whole(number).map(Value::from),
        (FieldKind::Timestamp, Value::String(text)) => {
            Timestamp::parse_rfc3339(text).map(|moment| Value::from(moment.as_ms()))
        }
        _ => None,
    };
    fitting.ok_or_else(|| ValueError {
        field: field.to_owned(),
        expected: kind.words(),
        found: value.to_string(),
    })
}

/// Whether two JSON values are the same: numbers by value, so that 1 and 1.0 are equal.
pub fn json_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a == b,
            _ => a == b || a.as_f64() == b.as_f64(),
        },
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| json_equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| json_equal(a, b)))
        }
        _ => left == right,
    }
}

/// The number as a whole one; none when it has a fraction or does not fit.
fn whole(number: &serde_json::Number) -> Option<i64> {
    /// Above this, a 64-bit float no longer tells neighbouring whole numbers apart.
    const FLOAT_EXACT: f64 = 9_007_199_254_740_992.0;
    number.as_i64().or_else(|| {
        let float = number.as_f64()?;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "checked to be whole and within the exact range"
        )]
        (float.fract() == 0.0 && float.abs() <= FLOAT_EXACT).then_some(float as i64)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_kept_in_the_form_of_its_field() {
        let kept = |kind, value: Value| coerce("f", kind, &value).ok();
        assert_eq!(kept(FieldKind::Integer, json!(3.0)), Some(json!(3)));
        assert_eq!(kept(FieldKind::Integer, json!(3.5)), None);
        assert_eq!(kept(FieldKind::Integer, json!("3")), None);
        assert_eq!(kept(FieldKind::Boolean, json!(1)), Some(json!(true)));
        assert_eq!(kept(FieldKind::Boolean, json!(2)), None);
        assert_eq!(
            kept(FieldKind::Timestamp, json!("1970-01-01T00:00:01Z")),
            Some(json!(1000))
        );
        assert_eq!(kept(FieldKind::Timestamp, json!("soon")), None);
        assert_eq!(kept(FieldKind::Text, Value::Null), Some(Value::Null));
    }

    #[test]
    fn numbers_are_the_same_by_value_at_any_depth() {
        assert!(json_equal(&json!({"a": [1, 2.0]}), &json!({"a": [1.0, 2]})));
        assert!(!json_equal(&json!({"a": 1}), &json!({"a": 1, "b": null})));
        assert!(!json_equal(&json!(1), &json!("1")));
        assert!(!json_equal(
            &json!(9_007_199_254_740_993_i64),
            &json!(9_007_199_254_740_992_i64)
        ));
    }
}
