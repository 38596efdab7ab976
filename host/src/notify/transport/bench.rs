//! What the tests of the transports make their attempts with.

use std::ffi::OsString;
use std::path::Path;
use std::time::SystemTime;

use super::{Attempt, Outcome, Surroundings, send};
use crate::model::{Destination, Dispatch, DurationMs, EventId, Sent, Timestamp, Transport};

/// More than any step of a test takes on a busy machine.
pub(super) const AMPLE_MS: i64 = 60_000;
/// Less than what hangs takes, and enough for what comes before it.
pub(super) const SHORT_MS: i64 = 1_000;
/// An acknowledgement token.
pub(super) const TOKEN: &str = "6f1ed002ab5595859014ebf0951522d9";
/// A secret that [`variable`] has.
pub(super) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// Another, of bytes as they are.
pub(super) const RAW_SECRET: &str = "a second secret, of raw bytes";

/// A dispatch with this body.
pub(super) fn dispatch(transport: Transport, body: &[u8], timeout_ms: i64) -> Dispatch {
    Dispatch {
        event_id: Some(EventId::new("store", "r1", 2)),
        handler: Some("ops".to_owned()),
        destination: "there".to_owned(),
        target: Destination {
            transport,
            timeout_ms: DurationMs::from_ms(timeout_ms),
        },
        target_digest: String::new(),
        body: body.to_vec(),
        dedup_key: "key".to_owned(),
        deadline: None,
        wants_acknowledgement: true,
    }
}

/// The environment of attempts.
pub(super) fn variable(name: &str) -> Option<OsString> {
    match name {
        "PATH" => Some("/usr/bin:/bin".into()),
        "HOME" => Some("/home/of-test".into()),
        "LANG" => Some("C.UTF-8".into()),
        "OPS_SECRET" => Some(SECRET.into()),
        "OPS_RAW_SECRET" => Some(RAW_SECRET.into()),
        "OPS_BROKEN_SECRET" => Some("whsec_!!not-base64!!".into()),
        "OPS_EMPTY" => Some("".into()),
        "SHELL_LIKE" => Some("$(exit 9); `exit 9` | & ' \"".into()),
        _ => None,
    }
}

/// Does something with the first attempt of a dispatch.
pub(super) async fn attempted<F>(dispatch: &Dispatch, transport: F) -> Sent
where
    F: AsyncFnOnce(&Attempt<'_>) -> Outcome,
{
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(0));
    let surroundings = Surroundings {
        home: Path::new("/home/of-test/runwarden"),
        variable,
        now: Timestamp::from_ms(now),
    };
    let attempt = Attempt {
        id: "d7kq2m3vxhc",
        number: 3,
        dispatch,
        token: Some(TOKEN),
        surroundings: &surroundings,
    };
    transport(&attempt).await.unwrap_or_else(|otherwise| otherwise)
}

/// Makes the first attempt of a dispatch.
pub(super) async fn sent(dispatch: &Dispatch) -> Sent {
    attempted(dispatch, async |attempt| Ok(send(attempt).await)).await
}

/// The words of an attempt that failed and may be made again.
#[track_caller]
pub(super) fn error_of(sent: &Sent) -> &str {
    match sent {
        Sent::Failed { error, .. } => error,
        other => panic!("not a failure: {other:?}"),
    }
}
