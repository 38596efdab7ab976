//! Time zones by name, and what a cadence means in one.

use jiff::tz::TimeZone;

use crate::model::Invalid;
use crate::model::schedule::{Cadence, EVERY_MIN, EXAMPLE, Expression, Schedule, Timetable};
use crate::model::{DurationMs, Timestamp};

/// The zone of a name of the tz database, as this machine has it.
///
/// # Errors
/// There is none of that name here.
pub fn zone(name: &str) -> Result<TimeZone, Invalid> {
    let found = TimeZone::get(name);
    found.map_err(|_| {
        let message = format!("`{name}` is no time zone that this machine knows");
        let hint = "write a name of the tz database, such as Europe/Berlin or UTC; /usr/share/zoneinfo has them";
        Invalid::new("zone", message, Some(hint.to_owned()))
    })
}

/// The cadence of a cron expression in a zone, both checked, and the zone by the name the database gives it.
///
/// # Errors
/// Says which field cannot be read, with an expression that can, or that there is no such zone.
pub fn cron_cadence(expression: &str, zone_name: &str) -> Result<Cadence, Invalid> {
    parsed(expression)?;
    let found = zone(zone_name)?;
    Ok(Cadence::Cron {
        expression: expression.split_whitespace().collect::<Vec<_>>().join(" "),
        zone: found.iana_name().unwrap_or(zone_name).to_owned(),
    })
}

/// The cadence of an interval.
///
/// # Errors
/// It is shorter than whoever fires looks.
pub fn interval_cadence(every: DurationMs) -> Result<Cadence, Invalid> {
    if every >= EVERY_MIN {
        return Ok(Cadence::Every(every));
    }
    let message = format!("{every} is too short: a schedule fires once a second at most");
    Err(Invalid::new("every", message, Some("--every 1s".to_owned())))
}

/// When a cadence that counts from a moment fires, ready to be asked.
///
/// # Errors
/// The zone is not known here (any more), or the expression cannot be read.
pub(super) fn timetable(cadence: &Cadence, created_at: Timestamp) -> Result<Timetable, Invalid> {
    Ok(match cadence {
        Cadence::Every(every) => Timetable::Every((*every).max(EVERY_MIN), created_at),
        Cadence::Cron { expression, zone: name } => Timetable::Cron(Box::new(parsed(expression)?), zone(name)?),
    })
}

/// The fire times of a schedule after a moment, at most so many.
///
/// # Errors
/// As [`timetable`].
pub(super) fn upcoming(schedule: &Schedule, after: Timestamp, count: usize) -> Result<Vec<Timestamp>, Invalid> {
    let timetable = timetable(&schedule.cadence, schedule.created_at)?;
    let first = timetable.next_after(after);
    let following = std::iter::successors(first, |moment| timetable.next_after(*moment));
    Ok(following.take(count).collect())
}

fn parsed(expression: &str) -> Result<Expression, Invalid> {
    Expression::parse(expression).map_err(|problem| {
        let message = format!("`{expression}` is no cron expression: {problem}");
        let hint = format!("--cron '{EXAMPLE}' is 06:30 on weekdays");
        Invalid::new("cron", message, Some(hint))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_known_by_its_name_whatever_its_case_and_another_is_refused() {
        if zone("Europe/Berlin").is_err() {
            return; // this machine has no tz database
        }
        let cadence = |zone| cron_cadence(" 30  6 * * * ", zone);
        let berlin = Cadence::Cron {
            expression: "30 6 * * *".to_owned(),
            zone: "Europe/Berlin".to_owned(),
        };
        assert_eq!(cadence("europe/berlin"), Ok(berlin));
        for name in ["Europe/Atlantis", "", "../etc/passwd", "/etc/localtime"] {
            let refused = cadence(name).expect_err(name);
            assert_eq!(refused.code, "zone", "{name}");
        }
    }

    #[test]
    fn a_bad_expression_is_refused_with_its_field_and_a_good_one() {
        let refused = cron_cadence("0 25 * * *", "UTC").expect_err("no such hour");
        assert_eq!(
            (refused.code, refused.message.as_str()),
            (
                "cron",
                "`0 25 * * *` is no cron expression: the hour `25` cannot be read"
            )
        );
        assert!(refused.hint.expect("a hint").contains(EXAMPLE));
        assert!(interval_cadence(DurationMs::from_ms(999)).is_err());
        assert!(interval_cadence(EVERY_MIN).is_ok());
    }
}
