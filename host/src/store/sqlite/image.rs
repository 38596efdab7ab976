//! Making a store: its whole file is composed in memory, written to a file without a name, made durable, and then given
//! its name, unless another process was first.
//!
//! If we die before that, there is no store and nothing is left over; afterwards there is all of it. Where a file cannot
//! be made like this, an empty one is made, and the open that follows brings it to the current format in place.

use std::fs::File;
use std::io::Write as _;
use std::ops::Range;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::MAIN_DB;
use rustix::fs::{AtFlags, CWD, Mode, OFlags}; // files without a name: std has no call for them
use rustix::io::Errno;

use super::connection::Db;
use super::failure::Fault;
use super::{activation, place, schema};
use crate::crash;
use crate::store::{Installation, StoreError};

/// Where the header of a database says by which rules it is written and read, and the number for a write-ahead log.
const HEADER_RULES: Range<usize> = 18..20;
const WRITE_AHEAD_LOG: u8 = 2;

/// Makes the store at `path` with these contents, or leaves the making of it to whoever opens the empty file.
pub(super) fn publish(path: &Path, directory: &Path, contents: &Installation) -> Result<(), StoreError> {
    // SQLite would take a log that outlived its database for this one's. Into an empty file it puts nothing of it.
    if is_orphaned(path, "-wal") || is_orphaned(path, "-journal") {
        return place::make_file(path);
    }
    let image = compose(path, contents)?;
    match name_durably(&image, path, directory) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        // No files without names here, no links, or no room: the long way tells what is wrong, if anything is.
        Err(_) => place::make_file(path),
    }
}

fn is_orphaned(path: &Path, end: &str) -> bool {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name).exists()
}

/// The bytes of the file.
fn compose(path: &Path, contents: &Installation) -> Result<Vec<u8>, StoreError> {
    let told = |fault: Fault| fault.explain(path, "composing the store", Duration::ZERO);
    let sql = |error: rusqlite::Error| told(error.into());
    let mut db = Db::in_memory().map_err(sql)?;
    db.write("BEGIN", []).map_err(sql)?;
    schema::from_here(&db, path)?;
    activation::install(&db, contents).map_err(told)?;
    db.write("COMMIT", []).map_err(sql)?;
    let mut image = db.connection.serialize(MAIN_DB).map_err(sql)?.to_vec();
    image[HEADER_RULES].fill(WRITE_AHEAD_LOG);
    Ok(image)
}

/// Makes a durable file of these bytes; it has its name only when it is whole.
fn name_durably(image: &[u8], path: &Path, directory: &Path) -> Result<(), Errno> {
    let failed = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(image).and_then(|()| file.sync_all()).map_err(failed)?;
    crash::point("make.written");
    let nameless = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(CWD, nameless, CWD, path, AtFlags::SYMLINK_FOLLOW)?;
    crash::point("make.named");
    let directory = File::open(directory).map_err(failed)?;
    directory.sync_all().map_err(failed)
}
