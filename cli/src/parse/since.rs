//! Where a listing begins: a length of time ago, a date, `yesterday`, `boot`, or RFC 3339.

use jiff::tz::TimeZone;
use jiff::{ToSpan as _, ZonedDateTime};
use runwarden_host::model::Timestamp;

use super::duration;

/// Reads a moment in the past, relative to `now` in its zone.
///
/// # Errors
/// Says why the word is none.
pub(crate) fn since(word: &str, now: &ZonedDateTime) -> Result<Timestamp, String> {
    const FORM: &str = "write a length of time (2h), a date (2026-01-31), yesterday, boot, or RFC 3339";
    let form = || format!("`{word}` is no moment: {FORM}");
    let start =
        |zoned: Result<ZonedDateTime, jiff::Error>| zoned.map(|zoned| of(zoned.timestamp())).map_err(|_| form());
    match word {
        "today" => return start(now.start_of_day()),
        "yesterday" => return start(now.yesterday().and_then(|yesterday| yesterday.start_of_day())),
        "boot" => return boot().ok_or_else(|| "this machine does not tell when it was started".to_owned()),
        _ => {}
    }
    if let Ok(length) = duration(word) {
        let moment = now.timestamp().checked_sub(length.as_ms().milliseconds());
        return moment.map(of).map_err(|_| form());
    }
    if let Ok(moment) = word.parse::<jiff::Timestamp>() {
        return Ok(of(moment));
    }
    let zone: TimeZone = now.time_zone().clone();
    let local = word.parse::<jiff::civil::DateTime>().map_err(|_| form())?;
    start(local.to_zoned_datetime(zone))
}

/// A moment `--since` in the reader's zone, from now.
fn of(moment: jiff::Timestamp) -> Timestamp {
    Timestamp::from_ms(moment.as_millisecond())
}

/// When the machine was started.
fn boot() -> Option<Timestamp> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let seconds: i64 = stat
        .lines()
        .find_map(|line| line.strip_prefix("btime "))?
        .trim()
        .parse()
        .ok()?;
    Some(Timestamp::from_ms(seconds.checked_mul(1_000)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(word: &str, expected: &str) {
        let now: ZonedDateTime = "2026-03-10T15:30:00[UTC]".parse().expect("a moment");
        let moment = since(word, &now).map_or_else(|_| "refused".to_owned(), Timestamp::to_rfc3339);
        assert_eq!(moment, expected, "{word}");
    }

    #[test]
    fn a_beginning_is_a_length_a_date_or_a_moment() {
        check("2h", "2026-03-10T13:30:00.000Z");
        check("90", "2026-03-10T15:28:30.000Z");
        check("today", "2026-03-10T00:00:00.000Z");
        check("yesterday", "2026-03-09T00:00:00.000Z");
        check("2026-01-31", "2026-01-31T00:00:00.000Z");
        check("2026-01-31T12:00:00", "2026-01-31T12:00:00.000Z");
        check("2026-01-31T12:00:00+01:00", "2026-01-31T11:00:00.000Z");
        for word in ["", "-1", "tomorrow-ish", "2026-13-01", "1y"] {
            check(word, "refused");
        }
    }

    #[test]
    fn the_machine_was_started_in_the_past() {
        let now = ZonedDateTime::now();
        let boot = since("boot", &now).expect("this machine tells");
        assert!(boot.as_ms() < now.timestamp().as_millisecond());
    }
}
