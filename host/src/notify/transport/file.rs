//! A line in a file.

use std::path::PathBuf;

use crate::model::Sent;
use crate::process::{Appended, append_line};

use super::aside::{Wanted, aside};
use super::{Attempt, Deadline, Outcome, failed};

/// Appends the body as one line.
pub(super) async fn send(attempt: &Attempt<'_>, path: &str) -> Outcome {
    let path = PathBuf::from(path);
    if !path.is_absolute() || path.to_string_lossy().contains('\0') {
        return Err(Sent::Refused("the path of the file is not absolute".to_owned()));
    }
    let line = attempt.dispatch.body.clone();
    if line.contains(&b'\n') {
        return Err(Sent::Refused("the body has more than one line".to_owned()));
    }
    let shown = path.display().to_string();
    let append = move |wanted: &Wanted<'_>| append_line(&path, &line, wanted);
    match aside(Deadline::of(attempt), "appending the line", append).await? {
        Ok(Appended::Written) => Ok(Sent::Delivered("appended".to_owned())),
        Ok(Appended::Unwanted) => Err(failed("its time was over before the line could be appended")),
        Ok(Appended::NotAFile) => Err(Sent::Refused(format!("{shown} is not a regular file"))),
        Err(error) => Err(failed(format!("cannot append to {shown}: {error}"))),
    }
}

#[cfg(test)]
mod tests;
