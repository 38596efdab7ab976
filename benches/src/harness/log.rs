//! The write-ahead log of a store, as bytes: what operations have written, whoever made them.

use std::path::Path;

use anyhow::{Context as _, Result};

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;

/// What was written to a log that was not begun anew meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes of its frames.
    pub bytes: u64,
    /// Commits.
    pub commits: u64,
}

impl Written {
    /// What the log of a database holds; nothing where there is no log yet.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of(database: &Path) -> Result<Self> {
        let mut name = database.as_os_str().to_owned();
        name.push("-wal");
        let Ok(log) = std::fs::read(name) else {
            return Ok(Self::default());
        };
        let (Some(page), Some(salts)) = (log.get(8..12), log.get(16..24)) else {
            return Ok(Self::default());
        };
        let page = usize::try_from(u32::from_be_bytes(page.try_into()?))?;
        let frames = log[HEADER_BYTES..].chunks_exact(FRAME_HEADER_BYTES + page);
        // Frames of an earlier round of the log carry other salts.
        let current = frames.take_while(|frame| frame[8..16] == *salts);
        Ok(current.fold(Self::default(), |written, frame| Self {
            bytes: written.bytes + u64::try_from(frame.len()).unwrap_or(0),
            // The last frame of a commit says how large the database is then.
            commits: written.commits + u64::from(frame[4..8] != [0; 4]),
        }))
    }

    /// What `operations` operations wrote each, since an earlier look.
    ///
    /// # Errors
    /// The log was begun anew since.
    pub fn each(self, since: Self, operations: u64) -> Result<String> {
        let bytes = self.bytes.checked_sub(since.bytes).context("the log was begun anew")?;
        let commits = self
            .commits
            .checked_sub(since.commits)
            .context("the log was begun anew")?;
        #[expect(clippy::cast_precision_loss, reason = "some thousands")]
        let each = |count: u64| count as f64 / operations as f64;
        Ok(format!("{:.1} KB, {:.2}", each(bytes) / 1e3, each(commits)))
    }
}
