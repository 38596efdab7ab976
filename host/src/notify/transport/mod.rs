//! The transports: a program, a webhook, a file. Each makes one attempt within its destination's time limit.

mod address;
mod answer;
mod aside;
mod exec;
mod file;
mod outline;
mod secret;
mod signature;
mod target;
mod tell;
mod tls;
mod webhook;

pub use signature::is_signed;

#[cfg(test)]
mod bench;
#[cfg(test)]
mod tests;

pub use outline::{Outlined, outline};

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use crate::model::{Dispatch, Sent, Timestamp, Transport};

use address::Reach;

/// One attempt to deliver a dispatch.
pub struct Attempt<'a> {
    /// The dispatch's id: what a receiver knows repeats by.
    pub id: &'a str,
    /// Which attempt it is, from 1.
    pub number: i64,
    /// What is delivered, and where to.
    pub dispatch: &'a Dispatch,
    /// The acknowledgement token ([`crate::notify::token()`]), when one is wanted.
    pub token: Option<&'a str>,
    /// Where it is made.
    pub surroundings: &'a Surroundings<'a>,
}

/// Where an attempt is made: nothing else is read of the process it is made in.
pub struct Surroundings<'a> {
    /// The home.
    pub home: &'a Path,
    /// The environment.
    pub variable: fn(&str) -> Option<OsString>,
    /// The time of the attempt, for signatures.
    pub now: Timestamp,
}

/// Whether a webhook of this URL speaks TLS; what is wrong with the URL otherwise, told without it.
pub(super) fn speaks_tls(url: &str) -> Result<bool, &'static str> {
    Ok(target::Target::parse(url)?.protection == address::Protection::Tls)
}

/// Makes one attempt; it has ended when the destination's time limit is over, but for the killing of a program (2.5 s
/// more). The words of the outcome are one line of at most 2,000 characters.
///
/// Needs a runtime with time and I/O. A program ends with the thread that started it, so whoever polls this does so on a
/// thread that stays. Dropped half-way the outcome is unknown, and a program is killed.
pub async fn send(attempt: &Attempt<'_>) -> Sent {
    let sent = match &attempt.dispatch.target.transport {
        Transport::Exec { argv, env } => exec::send(attempt, argv, env).await,
        Transport::Webhook {
            url,
            secrets,
            allow_private,
            ca_file,
        } => {
            let reach = if *allow_private { Reach::Private } else { Reach::Public };
            let receiver = webhook::Receiver {
                url,
                secrets,
                reach,
                ca_file: ca_file.as_deref(),
            };
            webhook::send(attempt, &receiver, webhook::system_resolver).await
        }
        Transport::File { path } => file::send(attempt, path).await,
    };
    told(sent.unwrap_or_else(|otherwise| otherwise))
}

/// The outcome with its words within their bounds.
fn told(sent: Sent) -> Sent {
    match sent {
        Sent::Delivered(words) => Sent::Delivered(tell::bounded(&words)),
        Sent::Failed { error, retry_after } => Sent::Failed {
            error: tell::bounded(&error),
            retry_after,
        },
        Sent::Refused(words) => Sent::Refused(tell::bounded(&words)),
        Sent::Unreadable(words) => Sent::Unreadable(tell::bounded(&words)),
    }
}

/// What an attempt needs of the settings and cannot read now: a secret, a URL, certificates. In words that name it and do
/// not hold it; none when it can be made.
pub fn unreadable(dispatch: &Dispatch, variable: fn(&str) -> Option<OsString>) -> Option<String> {
    let Transport::Webhook {
        url, secrets, ca_file, ..
    } = &dispatch.target.transport
    else {
        return None;
    };
    let read = || {
        secret::value(url, variable)?;
        for reference in secrets {
            secret::secret(reference, variable)?;
        }
        ca_file.as_deref().map(secret::of_file).transpose()
    };
    read().err()
}

/// What an attempt comes to; the second way out of it is as good as the first.
type Outcome = Result<Sent, Sent>;

/// When an attempt is over.
#[derive(Clone, Copy)]
struct Deadline {
    at: Instant,
    limit: Duration,
}

impl Deadline {
    fn of(attempt: &Attempt<'_>) -> Self {
        let limit = u64::try_from(attempt.dispatch.target.timeout_ms.as_ms()).unwrap_or(0);
        // No time at all would be a destination that can never be reached.
        let limit = Duration::from_millis(limit.max(1));
        Self {
            at: Instant::now() + limit,
            limit,
        }
    }

    /// The outcome of a step, or that it took too long.
    async fn bound<T>(self, doing: &str, step: impl Future<Output = T>) -> Result<T, Sent> {
        tokio::time::timeout_at(self.at, step)
            .await
            .map_err(|_| self.over(doing))
    }

    fn over(self, doing: &str) -> Sent {
        let limit = crate::model::DurationMs::from(self.limit);
        failed(format!("{doing} took longer than {limit}"))
    }
}

fn failed(error: impl Into<String>) -> Sent {
    Sent::Failed {
        error: error.into(),
        retry_after: None,
    }
}
