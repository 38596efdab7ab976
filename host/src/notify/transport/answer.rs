//! What a receiver's answer means.

use hyper::header::RETRY_AFTER;
use hyper::{HeaderMap, StatusCode};
use jiff::fmt::rfc2822::DateTimeParser;

use crate::model::{DurationMs, Sent, Timestamp};

use super::tell::{Hidden, with_first_line};

/// Dates as HTTP writes them.
static DATES: DateTimeParser = DateTimeParser::new();

/// The head of an answer.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
}

impl Answer {
    /// What it comes to, with what was read of its body. `now` is what a date to come back at is measured from.
    pub(super) fn outcome(&self, said: &[u8], hidden: &Hidden, now: Timestamp) -> Sent {
        let what = format!("HTTP {}", self.status.as_u16());
        let told = |what: &str| with_first_line(what, said, hidden);
        match self.status {
            status if status.is_success() => Sent::Delivered(what),
            StatusCode::GONE => Sent::Refused(told(&format!("{what}, gone for good"))),
            status if status.is_redirection() => Sent::Failed {
                // Where to is not followed, and not told: it may be anything.
                error: format!("{what}: redirects are not followed, the URL has to be the receiver's own"),
                retry_after: None,
            },
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Sent::Failed {
                error: told(&what),
                retry_after: self.retry_after(now),
            },
            _ => Sent::Failed {
                error: told(&what),
                retry_after: None,
            },
        }
    }

    /// How long the receiver asks to be left alone: seconds, or a date.
    fn retry_after(&self, now: Timestamp) -> Option<DurationMs> {
        let text = self.headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let seconds = text.parse().unwrap_or(i64::MAX);
            return Some(DurationMs::from_ms(seconds.saturating_mul(1_000)));
        }
        let date = DATES.parse_timestamp(text).ok()?;
        Some(Timestamp::from_ms(date.as_millisecond()).since(now))
    }
}

#[cfg(test)]
mod tests;
