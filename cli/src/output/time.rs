//! Times and lengths of time for people.

use runwarden_host::model::{DurationMs, Timestamp};

use super::Page;

/// A length of time for people.
pub(crate) fn span(length: DurationMs) -> String {
    length.to_string()
}

/// The length between two moments.
pub(crate) fn between(earlier: Timestamp, later: Timestamp) -> String {
    span(later.since(earlier))
}

/// How long ago a moment was, in words: `just now`, `3m ago`.
pub(crate) fn long_ago(at: Timestamp, page: &Page) -> String {
    let ago = ago(at, page);
    if ago == "now" {
        "just now".to_owned()
    } else {
        format!("{ago} ago")
    }
}

/// How long ago a moment was, in one unit: `now`, `12s`, `3m`, `2h`, `9d`.
pub(crate) fn ago(at: Timestamp, page: &Page) -> String {
    let seconds = page.now.since(at).as_ms() / 1000;
    match seconds {
        0 => "now".to_owned(),
        1..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A moment in the reader's zone: `14:03:20` today, else with its date.
pub(crate) fn moment(at: Timestamp, page: &Page) -> String {
    let zoned = |at: Timestamp| {
        jiff::Timestamp::from_millisecond(at.as_ms())
            .ok()
            .map(|moment| moment.to_zoned_datetime(page.zone.clone()))
    };
    match (zoned(at), zoned(page.now)) {
        (Some(at), Some(now)) if at.date() == now.date() => at.strftime("%H:%M:%S").to_string(),
        (Some(at), _) => at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        (None, _) => at.to_rfc3339(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(now_ms: i64) -> Page {
        Page {
            width: None,
            now: Timestamp::from_ms(now_ms),
            zone: jiff::tz::TimeZone::UTC,
        }
    }

    #[test]
    fn a_length_is_told_in_at_most_two_units() {
        let told = |ms| span(DurationMs::from_ms(ms));
        let lengths = [0, 850, 1_250, 12_400, 200_000, 7_500_000, 792_000_000].map(told);
        assert_eq!(lengths, ["0ms", "850ms", "1.2s", "12s", "3m 20s", "2h 5m", "9d 4h"]);
    }

    #[test]
    fn a_moment_today_has_no_date() {
        let at = Timestamp::from_ms(1_700_000_000_000);
        assert_eq!(moment(at, &page(1_700_000_050_000)), "22:13:20");
        assert_eq!(moment(at, &page(1_700_100_000_000)), "2023-11-14 22:13:20");
        assert_eq!(ago(at, &page(1_700_000_000_100)), "now");
        assert_eq!(ago(at, &page(1_700_007_300_000)), "2h");
    }
}
