//! Moments and lengths of time as the store keeps them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A moment: milliseconds since 1970-01-01T00:00:00Z, for display and order, never to measure elapsed time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

/// A length of time in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DurationMs(i64);

impl Timestamp {
    /// The moment `ms` milliseconds after the epoch.
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the epoch.
    pub const fn as_ms(self) -> i64 {
        self.0
    }

    /// This moment and a length of time; stays at the end of time instead of overflowing.
    pub const fn plus(self, length: DurationMs) -> Self {
        Self(self.0.saturating_add(length.0))
    }

    /// How long after `earlier` this moment is; zero when it is before.
    pub const fn since(self, earlier: Self) -> DurationMs {
        let length = self.0.saturating_sub(earlier.0);
        DurationMs(if length < 0 { 0 } else { length })
    }

    /// RFC 3339 in UTC with milliseconds, the form that JSON output uses.
    pub fn to_rfc3339(self) -> String {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(moment) => format!("{moment:.3}"),
            Err(_) => format!("{}ms", self.0),
        }
    }

    /// Reads RFC 3339; none when the text is anything else.
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        text.parse::<jiff::Timestamp>()
            .ok()
            .map(|moment| Self(moment.as_millisecond()))
    }
}

impl DurationMs {
    /// A length of `ms` milliseconds.
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// The length in milliseconds.
    pub const fn as_ms(self) -> i64 {
        self.0
    }
}

/// For people, in at most two units: `850ms`, `1.5s`, `12s`, `3m 20s`, `2h 5m`, `9d 4h`.
impl fmt::Display for DurationMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0;
        let (seconds, minutes, hours, days) = (ms / 1000, ms / 60_000, ms / 3_600_000, ms / 86_400_000);
        match () {
            () if seconds == 0 => write!(f, "{ms}ms"),
            () if minutes == 0 && seconds < 10 => write!(f, "{seconds}.{}s", ms % 1000 / 100),
            () if minutes == 0 => write!(f, "{seconds}s"),
            () if hours == 0 => write!(f, "{minutes}m {}s", seconds % 60),
            () if days == 0 => write!(f, "{hours}h {}m", minutes % 60),
            () => write!(f, "{days}d {}h", hours % 24),
        }
    }
}

impl From<std::time::Duration> for DurationMs {
    fn from(length: std::time::Duration) -> Self {
        Self(i64::try_from(length.as_millis()).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_printed_in_utc_with_milliseconds_and_read_back() {
        let moment = Timestamp::from_ms(1_700_000_000_120);
        assert_eq!(moment.to_rfc3339(), "2023-11-14T22:13:20.120Z");
        assert_eq!(Timestamp::parse_rfc3339("2023-11-14T23:13:20.120+01:00"), Some(moment));
        assert_eq!(Timestamp::parse_rfc3339("yesterday"), None);
    }

    #[test]
    fn elapsed_time_is_never_negative_and_never_overflows() {
        assert_eq!(
            Timestamp::from_ms(5).since(Timestamp::from_ms(9)),
            DurationMs::from_ms(0)
        );
        assert_eq!(
            Timestamp::from_ms(i64::MAX).plus(DurationMs::from_ms(1)),
            Timestamp::from_ms(i64::MAX)
        );
    }
}
