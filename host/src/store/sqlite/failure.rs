//! What SQLite reports, in the store's own words.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Error, ErrorCode};

use super::place::unwritable;
use crate::store::StoreError;

/// Why a command inside a transaction did not come to an answer.
#[derive(Debug)]
pub(super) enum Fault {
    /// SQLite reported it.
    Sql(Error),
    /// The command cannot be stored as it is.
    Refused(StoreError),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Sql(error)
    }
}

impl Fault {
    /// The store's error for it.
    pub(super) fn explain(self, path: &Path, doing: &'static str, waited: Duration) -> StoreError {
        match self {
            Self::Sql(error) => explain(error, path, doing, waited),
            Self::Refused(error) => error,
        }
    }
}

/// The store's error for what SQLite reported while `doing` something that has taken `waited` so far.
pub(super) fn explain(error: Error, path: &Path, doing: &'static str, waited: Duration) -> StoreError {
    let file = path;
    let path = file.display().to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy {
            waited_ms: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
        },
        Some(ErrorCode::DiskFull) => StoreError::Full { path },
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => unwritable(file),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Corrupt {
            path,
            what: error.to_string(),
        },
        _ => match error {
            Error::FromSqlConversionFailure(_, _, what) => StoreError::Corrupt {
                path,
                what: what.to_string(),
            },
            error => StoreError::Failed {
                doing,
                source: Box::new(error),
            },
        },
    }
}

/// The same error once more: every command of a batch that fails together gets one.
pub(super) fn again(error: &StoreError) -> StoreError {
    match error {
        StoreError::Busy { waited_ms } => StoreError::Busy { waited_ms: *waited_ms },
        StoreError::Full { path } => StoreError::Full { path: path.clone() },
        StoreError::ReadOnly { path, why } => StoreError::ReadOnly {
            path: path.clone(),
            why,
        },
        StoreError::Missing { path } => StoreError::Missing { path: path.clone() },
        StoreError::Corrupt { path, what } => StoreError::Corrupt {
            path: path.clone(),
            what: what.clone(),
        },
        StoreError::TooNew { path, found, known } => StoreError::TooNew {
            path: path.clone(),
            found: *found,
            known: *known,
        },
        StoreError::Unsuitable { path, why } => StoreError::Unsuitable {
            path: path.clone(),
            why: why.clone(),
        },
        StoreError::KeyHeld { holder } => StoreError::KeyHeld { holder: holder.clone() },
        StoreError::Failed { doing, source } => StoreError::Failed {
            doing,
            source: source.to_string().into(),
        },
    }
}
