//! The order log: which stream grew from which offset, and when.
//!
//! A record is written when the stream changes or a second has passed since the last one, so two logs can be read
//! back in order of arrival, with times. 16 bytes, little-endian: `at_ms << 2 | stream`, then the offset.

use crate::message::Stream;

/// Length of a record.
pub const BYTES: usize = 16;

/// From `offset` on, `stream` grew at `at_ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Milliseconds since the epoch.
    pub at_ms: u64,
    /// The stream that grew.
    pub stream: Stream,
    /// Where in that stream's log.
    pub offset: u64,
}

impl Record {
    /// The bytes of the record.
    #[must_use]
    pub fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&(self.at_ms << 2 | self.stream as u64).to_le_bytes());
        bytes[8..].copy_from_slice(&self.offset.to_le_bytes());
        bytes
    }

    /// Reads a record; `None` if the stream does not exist.
    #[must_use]
    pub fn decode(bytes: &[u8; BYTES]) -> Option<Self> {
        let (head, tail) = bytes.split_first_chunk::<8>()?;
        let head = u64::from_le_bytes(*head);
        let offset = u64::from_le_bytes(tail.try_into().ok()?);
        let stream = Stream::from_code((head & 3) as u8)?;
        Some(Self {
            at_ms: head >> 2,
            stream,
            offset,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_as_it_was_written() {
        let record = Record {
            at_ms: 1_800_000_000_123,
            stream: Stream::Stderr,
            offset: u64::MAX,
        };
        assert_eq!(Record::decode(&record.encode()), Some(record));
    }
}
