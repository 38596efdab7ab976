//! Who serves a store: a lock beside the database that the kernel releases with its holder, however that ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// How often a service that starts tries again: whoever only looks holds the lock for a moment.
const TRIES: u32 = 20;

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(5);

/// The lock of a store's service, held.
#[derive(Debug)]
pub struct ServiceLock {
    file: File,
}

impl Drop for ServiceLock {
    /// The number of a process that is gone says nothing.
    fn drop(&mut self) {
        let _ = self.file.set_len(0); // whoever serves next writes its own
    }
}

/// What came of asking for the lock.
#[derive(Debug)]
pub enum Serving {
    /// It is ours.
    Ours(ServiceLock),
    /// Another service has it: its pid, as it wrote it down.
    Others(Option<i32>),
}

/// The lock file of the store in this database.
fn path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-serve");
    name.into()
}

/// Takes the lock of the store's service, if nobody has it.
///
/// # Errors
/// The lock file cannot be made or locked.
pub fn serve_alone(database: &Path) -> std::io::Result<Serving> {
    let path = path(database);
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.open(&path)?;
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => {
                file.set_len(0)?;
                file.rewind()?;
                write!(file, "{}", std::process::id())?;
                return Ok(Serving::Ours(ServiceLock { file }));
            }
            Err(TryLockError::WouldBlock) => {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "who only looks holds the lock for microseconds and tells nobody"
                )]
                thread::sleep(PAUSE);
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(Serving::Others(text.trim().parse().ok()))
}

/// Whether a service is up for the store in this database; a lock that cannot be asked for says no.
pub fn is_served(database: &Path) -> bool {
    let Ok(file) = File::open(path(database)) else {
        return false;
    };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_serves_and_its_end_frees_the_store() -> std::io::Result<()> {
        let home = tempfile::tempdir()?;
        let database = home.path().join("state.db");
        assert!(!is_served(&database));
        let Serving::Ours(held) = serve_alone(&database)? else {
            panic!("nobody serves")
        };
        assert!(is_served(&database));
        let own = i32::try_from(std::process::id()).ok();
        assert!(matches!(serve_alone(&database)?, Serving::Others(pid) if pid == own));
        drop(held);
        assert!(!is_served(&database));
        assert!(matches!(serve_alone(&database)?, Serving::Ours(_)));
        Ok(())
    }
}
