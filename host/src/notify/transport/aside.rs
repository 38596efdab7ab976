//! Work that may block longer than an attempt lasts: names, files, locks.
//!
//! It has a thread of its own. A runtime waits for its blocking threads when it ends; for these nobody waits.

use tokio::sync::oneshot;

use crate::model::Sent;

use super::{Deadline, failed};

/// Tells whether somebody still waits for the work.
pub(super) type Wanted<'a> = dyn Fn() -> bool + 'a;

/// Does the work on a thread of its own, and waits for it as long as the attempt lasts.
pub(super) async fn aside<T: Send + 'static>(
    deadline: Deadline,
    doing: &'static str,
    work: impl FnOnce(&Wanted<'_>) -> T + Send + 'static,
) -> Result<T, Sent> {
    let (sender, receiver) = oneshot::channel();
    let threaded = move || {
        let done = work(&|| !sender.is_closed());
        // Nobody waits any more: then it was not wanted.
        let _ = sender.send(done);
    };
    let named = std::thread::Builder::new().name(doing.to_owned());
    named
        .spawn(threaded)
        .map_err(|error| failed(format!("no thread for {doing}: {error}")))?;
    let answer = deadline.bound(doing, receiver).await?;
    answer.map_err(|_| failed(format!("{doing} broke off")))
}
