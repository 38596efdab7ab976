//! Cron expressions: five fields, or a nickname such as `@daily`, matched on the wall clock alone. What that means in a
//! zone whose clocks are changed is the business of [`super::Timetable`].

use croner::parser::{CronParser, Seconds, Year};
use croner::{Cron, CronDateTime, Resolution, Weekday, errors::CronError};
use jiff::SignedDuration;
use jiff::civil::DateTime;

/// The fields, in their order.
const FIELDS: [&str; 5] = ["minute", "hour", "day of month", "month", "day of week"];

/// What an error says can be written instead.
pub const EXAMPLE: &str = "30 6 * * MON-FRI";

/// A cron expression, checked.
#[derive(Clone, Debug)]
pub struct Expression {
    cron: Cron,
    is_time_of_day: bool,
}

/// What is wrong with a cron expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CronProblem {
    /// It has not the right number of fields.
    #[error("a cron expression has five fields (minute, hour, day of month, month, day of week), this has {found}")]
    FieldCount {
        /// How many it has.
        found: usize,
    },
    /// It begins with `@`, and is no nickname that is known.
    #[error("`{word}` is none of @hourly, @daily, @weekly, @monthly, @yearly")]
    Nickname {
        /// The word.
        word: String,
    },
    /// A field cannot be read.
    #[error("the {field} `{value}` cannot be read")]
    Field {
        /// Which.
        field: &'static str,
        /// What was written.
        value: String,
    },
    /// Every field can be read, and no day has them all.
    #[error("no day is meant by it")]
    Never,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// The first field that cannot be read, or that no day is meant.
    pub fn parse(text: &str) -> Result<Self, CronProblem> {
        let text = text.trim();
        let fields: Vec<&str> = text.split_whitespace().collect();
        let is_nickname = text.starts_with('@');
        if !is_nickname && fields.len() != FIELDS.len() {
            return Err(CronProblem::FieldCount { found: fields.len() });
        }
        let nickname = || CronProblem::Nickname { word: text.to_owned() };
        let cron = match read(text) {
            Ok(cron) => cron,
            Err(_) if is_nickname => return Err(nickname()),
            Err(_) => return Err(faulty_field(&fields)),
        };
        let expression = Self {
            is_time_of_day: if is_nickname {
                !text.eq_ignore_ascii_case("@hourly")
            } else {
                fields[..2].iter().all(|field| !field.contains(['*', '/']))
            },
            cron,
        };
        match expression.following(DateTime::constant(2000, 1, 1, 0, 0, 0, 0)) {
            Some(_) => Ok(expression),
            None => Err(CronProblem::Never),
        }
    }

    /// Whether hours and minutes are given as numbers: times of the day, rather than a rhythm.
    pub(super) const fn is_time_of_day(&self) -> bool {
        self.is_time_of_day
    }

    /// The first time on the wall clock that is meant, after this one.
    pub(super) fn following(&self, after: DateTime) -> Option<DateTime> {
        self.search(after, Bound::Excluded)
    }

    /// The first time on the wall clock that is meant, from this one on.
    pub(super) fn from(&self, from: DateTime) -> Option<DateTime> {
        self.search(from, Bound::Included)
    }

    fn search(&self, from: DateTime, bound: Bound) -> Option<DateTime> {
        let inclusive = bound == Bound::Included;
        let found = self.cron.find_next_occurrence(&WallClock(from), inclusive);
        found.ok().map(|found| found.0)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Bound {
    Included,
    Excluded,
}

fn read(text: &str) -> Result<Cron, CronError> {
    CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .build()
        .parse(text)
}

/// The first field that cannot be read when every other is `*`.
fn faulty_field(fields: &[&str]) -> CronProblem {
    let is_faulty = |&(place, _): &(usize, &&str)| {
        let alone: Vec<&str> = (0..fields.len())
            .map(|other| if other == place { fields[place] } else { "*" })
            .collect();
        read(&alone.join(" ")).is_err()
    };
    let found = fields.iter().enumerate().find(is_faulty);
    let (place, value) = found.unwrap_or((0, &fields[0]));
    CronProblem::Field {
        field: FIELDS[place],
        value: (*value).to_owned(),
    }
}

/// A time on the wall clock, as the library searches on it.
#[derive(Clone, Debug)]
struct WallClock(DateTime);

impl CronDateTime for WallClock {
    fn to_civil(&self) -> croner::CivilDateTime {
        let part = |value: i8| u32::try_from(value).unwrap_or_default();
        let date =
            croner::CivilDate::from_parts_unchecked(i32::from(self.0.year()), part(self.0.month()), part(self.0.day()));
        let time =
            croner::CivilTime::from_parts_unchecked(part(self.0.hour()), part(self.0.minute()), part(self.0.second()));
        croner::CivilDateTime::new(date, time)
    }

    fn civil_weekday(&self) -> Weekday {
        let days = self.0.weekday().to_sunday_zero_offset();
        Weekday::from_days_from_sunday(u32::try_from(days).unwrap_or_default())
    }

    fn resolve_civil(&self, civil: croner::CivilDateTime) -> Result<Resolution<Self>, CronError> {
        let year = i16::try_from(civil.year()).map_err(|_| CronError::InvalidDate)?;
        let part = |value: u32| i8::try_from(value).map_err(|_| CronError::InvalidDate);
        let (month, day) = (part(civil.month())?, part(civil.day())?);
        let (hour, minute, second) = (part(civil.hour())?, part(civil.minute())?, part(civil.second())?);
        let time = DateTime::new(year, month, day, hour, minute, second, 0).map_err(|_| CronError::InvalidDate)?;
        Ok(Resolution::Single(Self(time)))
    }

    fn checked_add_seconds(&self, seconds: i64) -> Option<Self> {
        self.0.checked_add(SignedDuration::from_secs(seconds)).ok().map(Self)
    }

    fn cmp_instant(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}
