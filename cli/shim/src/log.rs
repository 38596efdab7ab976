//! A log that keeps its first and its last bytes. What is between becomes a hole ([`runwarden_shim::hole`]).

use std::fs::File;
use std::io::{ErrorKind, Write as _};

use runwarden_shim::hole::{self, ALIGN};

/// A log that grows at its end.
pub(crate) struct Log {
    file: File,
    length: u64,
    /// The first bytes, which are always kept.
    head_bytes: u64,
    /// From here on everything is kept.
    tail_from: u64,
}

impl Log {
    /// Goes on where the file ends.
    pub(crate) fn new(file: File, head_bytes: u64) -> Self {
        let length = file.metadata().map_or(0, |log| log.len());
        let head_bytes = (head_bytes - head_bytes % ALIGN).max(ALIGN);
        let tail_from = hole::dropped(&file).map_or(head_bytes, |dropped| dropped.end.max(head_bytes));
        Self {
            file,
            length,
            head_bytes,
            tail_from,
        }
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Bytes that could be dropped.
    pub(crate) fn tail_bytes(&self) -> u64 {
        self.length.saturating_sub(self.tail_from)
    }

    pub(crate) fn kept_bytes(&self) -> u64 {
        self.length.min(self.head_bytes) + self.tail_bytes()
    }

    pub(crate) fn dropped_bytes(&self) -> u64 {
        self.tail_from - self.head_bytes
    }

    /// Up to where the next drop of so many bytes would go.
    pub(crate) fn next_drop(&self, bytes: u64) -> u64 {
        self.tail_from + (bytes - bytes % ALIGN).max(ALIGN)
    }

    /// Drops what is between the head and `offset`, which comes from [`Log::next_drop`].
    pub(crate) fn drop_until(&mut self, offset: u64) -> std::io::Result<()> {
        hole::punch(&self.file, &(self.tail_from..offset))?;
        self.tail_from = offset;
        Ok(())
    }

    /// How much of it could be written: a full disk takes no more.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> usize {
        let mut written = 0;
        while written < bytes.len() {
            match self.file.write(&bytes[written..]) {
                Ok(count @ 1..) => written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
            }
        }
        self.length += written as u64;
        written
    }

    /// Takes back the last bytes.
    pub(crate) fn take_back(&mut self, bytes: usize) {
        self.length -= bytes as u64;
        let _ = self.file.set_len(self.length);
    }
}
