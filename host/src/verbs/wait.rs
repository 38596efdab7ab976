//! Waiting until entities end, or reach a status: woken by commits, told by the store alone.

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::error::Error;
use crate::host::Host;
use crate::model::{Bytes, Entity, Reference};
use crate::store::Scope;
use crate::verbs::standing::{Standing, standing};

/// One finished target (SEMANTICS 6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// The status it has; `unknown` when its row is gone.
    pub status: String,
    /// The reason code; `unknown` when there is none.
    pub reason: String,
    /// Where its artifacts are.
    pub artifact_dir: Option<Vec<u8>>,
    /// The exit code, or the signal it died by as a negative number.
    pub exit_code: Option<i64>,
    /// Whether its policy counts it as a success.
    pub success: bool,
}

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Until {
    /// The end.
    Ended,
    /// This status, or the end.
    Status(String),
}

/// Waits for every target, in whatever order they finish, and tells each as it does; stops early when `tell` says so.
///
/// The future may be dropped at any point: it holds nothing.
///
/// # Errors
/// The store cannot be read.
pub async fn wait(
    host: &Host,
    targets: &[Entity],
    until: &Until,
    mut tell: impl FnMut(News) -> Going,
) -> Result<(), Error> {
    let watch = host.wake_file().watch();
    let mut open: VecDeque<Entity> = targets.iter().cloned().collect();
    loop {
        for _ in 0..open.len() {
            let Some(target) = open.pop_front() else { break };
            let news = look(host, &target, until)?;
            if !matches!(news, Some(News::Finished(_))) {
                open.push_back(target);
            }
            if news.is_some_and(|news| tell(news) == Going::Stop) {
                return Ok(());
            }
        }
        if open.is_empty() {
            return Ok(());
        }
        watch.changed().await;
    }
}

/// What is told while waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A target has finished: told once.
    Finished(Finished),
    /// The end of a target waits to be recorded, by somebody who can write the store: told at every look.
    EndWaits(Reference),
}

/// Whether to wait on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Going {
    /// Wait for the rest.
    On,
    /// That is enough.
    Stop,
}

/// What there is to tell of the target now.
fn look(host: &Host, target: &Entity, until: &Until) -> Result<Option<News>, Error> {
    let Some(entity) = host.store().load(&target.reference.id)? else {
        return Ok(Some(News::Finished(vanished(target))));
    };
    let found = standing(host, entity)?;
    let end_waits = matches!(found, Standing::EndWaits(_));
    let entity = found.into_entity();
    let reached = match until {
        Until::Ended => entity.terminal,
        Until::Status(status) => entity.terminal || entity.status == *status,
    };
    if reached {
        let finished = finished(host, &entity)?;
        return Ok(Some(News::Finished(finished)));
    }
    Ok(end_waits.then_some(News::EndWaits(entity.reference)))
}

fn vanished(target: &Entity) -> Finished {
    Finished {
        id: target.reference.id.clone(),
        kind: target.reference.kind.clone(),
        status: "unknown".to_owned(),
        reason: "unknown".to_owned(),
        artifact_dir: None,
        exit_code: None,
        success: false,
    }
}

fn finished(host: &Host, entity: &Entity) -> Result<Finished, Error> {
    let registered = host.lifecycle(entity)?.admits_reason(&entity.reason.code);
    Ok(Finished {
        id: entity.reference.id.clone(),
        kind: entity.reference.kind.clone(),
        status: entity.status.clone(),
        reason: if registered {
            entity.reason.code.clone()
        } else {
            "unknown".to_owned()
        },
        artifact_dir: artifact_dir(host, entity)?,
        exit_code: entity
            .structural
            .exit_code
            .or(entity.structural.term_signal.map(|signal| -signal)),
        success: entity.success,
    })
}

/// The entity's own run directory; without one, that of its most recently updated linked run.
fn artifact_dir(host: &Host, entity: &Entity) -> Result<Option<Vec<u8>>, Error> {
    let own = host.store().runtimes(Some(std::slice::from_ref(&entity.reference)))?;
    if let Some(directory) = own.into_iter().rev().find_map(|runtime| runtime.run_dir) {
        return Ok(Some(directory));
    }
    let mut below = host.store().linked(entity, Scope::Descendants)?;
    below.sort_by_key(|entity| std::cmp::Reverse(entity.updated_at));
    for linked in below {
        let runtimes = host.store().runtimes(Some(std::slice::from_ref(&linked.reference)))?;
        if let Some(directory) = runtimes.into_iter().rev().find_map(|runtime| runtime.run_dir) {
            return Ok(Some(directory));
        }
    }
    Ok(None)
}

impl Finished {
    /// The line that scripts read: exactly five fields separated by tabs.
    pub fn line(&self) -> Vec<u8> {
        let mut line = format!(
            "{}\tstatus={}\treason={}\tartifact_dir=",
            self.id, self.status, self.reason
        )
        .into_bytes();
        match &self.artifact_dir {
            Some(directory) if !directory.is_empty() => line.extend(percent_encoded(directory)),
            _ => line.push(b'-'),
        }
        let code = self.exit_code.map_or_else(|| "-".to_owned(), |code| code.to_string());
        line.extend(format!("\texit_code={code}\n").bytes());
        line
    }

    /// The JSON document.
    pub fn json(&self) -> Value {
        json!({
            "run_id": self.id,
            "kind": self.kind,
            "status": self.status,
            "reason": self.reason,
            "artifact_dir": self.artifact_dir.clone().map(Bytes),
            "exit_code": self.exit_code,
            "success": self.success,
        })
    }
}

/// Tab, newline, carriage return, percent and bytes that are not UTF-8 would break the line; all else stays readable.
fn percent_encoded(path: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(path.len());
    let encode = |bytes: &[u8], into: &mut Vec<u8>| {
        bytes
            .iter()
            .for_each(|byte| into.extend(format!("%{byte:02X}").bytes()));
    };
    for chunk in path.utf8_chunks() {
        for byte in chunk.valid().bytes() {
            match byte {
                b'\t' | b'\n' | b'\r' | b'%' => encode(&[byte], &mut encoded),
                _ => encoded.push(byte),
            }
        }
        encode(chunk.invalid(), &mut encoded);
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_cannot_break_the_line() {
        let encoded = |path: &[u8]| String::from_utf8(percent_encoded(path)).expect("the encoding is ASCII or valid");
        assert_eq!(encoded(b"/a\tb\nc\rd%e"), "/a%09b%0Ac%0Dd%25e");
        assert_eq!(encoded(b"/\xff/caf\xc3\xa9"), "/%FF/café");
    }
}
