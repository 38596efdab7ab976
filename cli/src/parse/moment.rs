//! A moment to come: RFC 3339, a date and time of this zone, or a time of day.

use jiff::civil::{DateTime, Time};
use jiff::{ToSpan as _, ZonedDateTime};
use runwarden_host::model::Timestamp;

/// What can be typed.
const FORM: &str = "write 2030-01-31T23:00:00Z, '2030-01-31 23:00', or 23:00 for the next time it is that late";

/// Reads a moment; a time of day is the next one after `now`, in the zone of `now`.
///
/// # Errors
/// Says what can be typed.
pub(crate) fn moment(word: &str, now: &ZonedDateTime) -> Result<Timestamp, String> {
    if let Some(moment) = Timestamp::parse_rfc3339(word) {
        return Ok(moment);
    }
    let zoned = |date: DateTime| {
        let zoned = date
            .to_zoned_datetime(now.time_zone().clone())
            .map_err(|_| FORM.to_owned())?;
        Ok(Timestamp::from_ms(zoned.timestamp().as_millisecond()))
    };
    if let Ok(time) = word.parse::<Time>()
        && word.len() <= "23:00:00".len()
    {
        let today = now.date().to_datetime(time);
        let is_past = today <= now.datetime();
        let date = if is_past {
            today.checked_add(1.day()).map_err(|_| FORM.to_owned())?
        } else {
            today
        };
        return zoned(date);
    }
    word.parse::<DateTime>().map_err(|_| FORM.to_owned()).and_then(zoned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_whole_a_date_and_time_of_the_zone_or_the_next_time_of_day() {
        let now: ZonedDateTime = "2026-03-10T12:00:00+01:00[Europe/Berlin]".parse().expect("a moment");
        let at = |word: &str| moment(word, &now).map(Timestamp::to_rfc3339);
        assert_eq!(at("2030-01-31T23:00:00Z"), Ok("2030-01-31T23:00:00.000Z".to_owned()));
        assert_eq!(at("2030-01-31 23:00"), Ok("2030-01-31T22:00:00.000Z".to_owned()));
        assert_eq!(at("23:00"), Ok("2026-03-10T22:00:00.000Z".to_owned()));
        assert_eq!(at("11:59"), Ok("2026-03-11T10:59:00.000Z".to_owned()));
        for word in ["", "soon", "25:00", "2030-13-01 00:00", "5m"] {
            assert_eq!(at(word), Err(FORM.to_owned()), "{word}");
        }
    }
}
