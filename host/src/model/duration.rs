//! Lengths of time: `500ms`, `5s`, `2m`, `1h30m`, a bare number is seconds.

use jiff::{Span, SpanRelativeTo};

use super::DurationMs;

/// Reads a length of time: never negative, at most some centuries.
///
/// # Errors
/// Says why the word is none.
pub fn parse_duration(word: &str) -> Result<DurationMs, String> {
    const FORM: &str = "write 500ms, 5s, 2m, 1h30m, or a number of seconds";
    if word.starts_with('-') {
        return Err(format!("a length of time is not negative: {FORM}"));
    }
    if let Some(length) = bare_seconds(word) {
        return length.ok_or_else(|| "too long a time".to_owned());
    }
    if !word.starts_with(|first: char| first.is_ascii_digit()) {
        return Err(FORM.to_owned());
    }
    let span: Span = word.parse().map_err(|_| FORM.to_owned())?;
    let length = span
        .to_duration(SpanRelativeTo::days_are_24_hours())
        .map_err(|_| FORM.to_owned())?;
    if length.is_negative() {
        return Err(format!("a length of time is not negative: {FORM}"));
    }
    i64::try_from(length.as_millis())
        .map(DurationMs::from_ms)
        .map_err(|_| "too long a time".to_owned())
}

/// A bare number of seconds, with at most a fraction of milliseconds; none when the word is something else, none inside
/// when it is too large.
fn bare_seconds(word: &str) -> Option<Option<DurationMs>> {
    /// The longest length that timers and calendars of this program can handle: 1,000 years.
    const SECONDS_MAX: u64 = 1_000 * 366 * 86_400;
    let (whole, fraction) = word.split_once('.').unwrap_or((word, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) || word.ends_with('.') {
        return None;
    }
    let seconds = whole.parse::<u64>().ok().filter(|seconds| *seconds <= SECONDS_MAX);
    let digits = fraction
        .chars()
        .chain("000".chars())
        .take(3)
        .filter_map(|digit| digit.to_digit(10));
    let ms = digits.fold(0, |ms, digit| ms * 10 + i64::from(digit));
    Some(seconds.and_then(|seconds| Some(DurationMs::from_ms(i64::try_from(seconds).ok()? * 1_000 + ms))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_has_units_or_is_seconds() {
        let lengths = [
            ("500ms", 500),
            ("5s", 5_000),
            ("2m", 120_000),
            ("1h30m", 5_400_000),
            ("1h 30m", 5_400_000),
            ("2d", 172_800_000),
            ("0", 0),
            ("7", 7_000),
            ("0.5", 500),
            ("1.2345", 1_234),
        ];
        for (word, ms) in lengths {
            assert_eq!(parse_duration(word), Ok(DurationMs::from_ms(ms)), "{word}");
        }
    }

    #[test]
    fn what_is_no_length_is_refused() {
        let bad = [
            "",
            "-1",
            "-5s",
            "nan",
            "inf",
            "1e309",
            "99999999999999999999",
            "5x",
            "abc",
            "5 s ago",
            "1y",
            "3mo",
            "1.",
            ".5",
            "PT",
            "9999999999h",
        ];
        for word in bad {
            assert!(parse_duration(word).is_err(), "{word:?}");
        }
    }
}
