//! Waking those who wait, without polling: a small file, alone in its directory, touched after every commit that can
//! matter. A touch carries no data and promises nothing; whoever wakes asks the store. The database and its log are
//! never watched or opened: closing any descriptor of them would drop the process's locks.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

/// The safety net under the watch: how long a sleeper sleeps at most.
pub const POLL: Duration = Duration::from_secs(1);

/// The wake file of a home.
#[derive(Debug)]
pub struct Wake {
    directory: PathBuf,
}

/// A directory that is watched.
pub struct Watching {
    _watcher: RecommendedWatcher,
}

impl Watching {
    fn directory(directory: &Path, tell: impl Fn() + Send + 'static) -> Option<Self> {
        // Events that the watcher's own queue drops are covered by the poll.
        let mut watcher = notify::recommended_watcher(move |_| tell()).ok()?;
        watcher.watch(directory, RecursiveMode::NonRecursive).ok()?;
        Some(Self { _watcher: watcher })
    }
}

/// A watch on the wake file; without one (no inotify to be had) only the poll wakes.
pub struct Watch {
    signal: Arc<Notify>,
    _watching: Option<Watching>,
}

impl Wake {
    /// The wake file in this directory of its own.
    pub fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
        }
    }

    /// Touches the file. A failure costs a sleeper at most [`POLL`] and is not told.
    pub fn touch(&self) {
        if self.rewrite().is_err() && self.make_directory().is_ok() {
            let _ = self.rewrite();
        }
    }

    fn rewrite(&self) -> std::io::Result<()> {
        let path = self.directory.join("changed");
        fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)
            .map(drop)
    }

    /// Starts watching; from here on no touch is missed.
    pub fn watch(&self) -> Watch {
        // Without the directory there is nothing to watch, and the poll wakes.
        let _ = self.make_directory();
        Watch::directory(&self.directory)
    }

    /// Calls `tell` after every touch, perhaps more than once, as long as the answer is held. None where nothing can be
    /// watched: only the poll wakes then.
    pub fn on_touch(&self, tell: impl Fn() + Send + 'static) -> Option<Watching> {
        self.make_directory().ok()?;
        Watching::directory(&self.directory, tell)
    }

    fn make_directory(&self) -> std::io::Result<()> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)
    }
}

impl Watch {
    /// Watches a directory for changes of whatever is in it.
    pub fn directory(directory: &Path) -> Self {
        let signal = Arc::new(Notify::new());
        let woken = Arc::clone(&signal);
        let watching = Watching::directory(directory, move || woken.notify_one());
        Self {
            signal,
            _watching: watching,
        }
    }

    /// Sleeps until something may have changed, at most [`POLL`].
    pub async fn changed(&self) {
        // A timeout is as good as a touch: the sleeper asks the store either way.
        let _ = tokio::time::timeout(POLL, self.signal.notified()).await;
    }
}
