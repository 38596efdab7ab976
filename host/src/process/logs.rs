//! The logs of a run, back in order of arrival.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::Path;

use runwarden_shim::message::Stream;
use runwarden_shim::order::{self, Record};

/// Whether bytes are in a log still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// They can be read.
    Kept,
    /// They were dropped, so that the log stays within its limit.
    Dropped,
}

/// A stretch of one log that arrived before the next segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// When its first byte arrived, UTC; `None` for bytes the order log does not tell about.
    pub at_ms: Option<u64>,
    /// Whose log.
    pub stream: Stream,
    /// Which bytes of it.
    pub bytes: Range<u64>,
    /// Whether they are there.
    pub fate: Fate,
}

/// Which bytes of a log were dropped; none where nothing was. A log that is written may drop more at any time: who reads
/// one asks again after each reading, because dropped bytes read as NUL.
#[must_use]
pub fn dropped(log: &File) -> Option<Range<u64>> {
    runwarden_shim::hole::dropped(log)
}

/// The content of the order log, without what it has dropped.
pub(super) fn read_order(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut log = File::open(path)?;
    let mut order = Vec::new();
    if let Some(dropped) = dropped(&log) {
        (&log).seek(SeekFrom::Start(0))?;
        (&log).take(dropped.start).read_to_end(&mut order)?;
        log.seek(SeekFrom::Start(dropped.end))?;
    } else {
        log.seek(SeekFrom::Start(0))?;
    }
    log.read_to_end(&mut order)?;
    Ok(order)
}

/// Tells the bytes that were dropped from those that can be read.
pub(super) fn mark(segments: Vec<Segment>, dropped: impl Fn(Stream) -> Option<Range<u64>>) -> Vec<Segment> {
    let mut marked: Vec<Segment> = Vec::new();
    for segment in segments {
        let Range { start, end } = segment.bytes;
        let hole = dropped(segment.stream).unwrap_or(end..end);
        let (from, to) = (hole.start.clamp(start, end), hole.end.clamp(start, end));
        let parts = [
            (start..from, Fate::Kept),
            (from..to, Fate::Dropped),
            (to..end, Fate::Kept),
        ];
        for (bytes, fate) in parts.into_iter().filter(|(bytes, _)| !bytes.is_empty()) {
            match marked.last_mut() {
                // One mark for what was dropped of a stream at a stretch.
                Some(last) if fate == Fate::Dropped && last.fate == fate && last.stream == segment.stream => {
                    last.bytes.end = bytes.end;
                }
                _ => marked.push(Segment {
                    bytes,
                    fate,
                    ..segment.clone()
                }),
            }
        }
    }
    marked
}

/// Puts the logs in order: `order` is the content of the order log, `length` says how long each log is now.
pub(super) fn segments(order: &[u8], length: impl Fn(Stream) -> u64) -> Vec<Segment> {
    let (whole, _unfinished) = order.as_chunks::<{ order::BYTES }>();
    let mut segments: Vec<Segment> = Vec::new();
    let streams = [Stream::Output, Stream::Stdout, Stream::Stderr];
    // Built from the end: where the next segment of a stream begins, this one ends.
    let mut ends = streams.map(&length);
    for record in whole.iter().rev().filter_map(Record::decode) {
        let end = &mut ends[record.stream as usize];
        if record.offset < *end {
            let bytes = record.offset..*end;
            *end = record.offset;
            segments.push(Segment {
                at_ms: Some(record.at_ms),
                stream: record.stream,
                bytes,
                fate: Fate::Kept,
            });
        }
    }
    for (stream, end) in streams.into_iter().zip(ends) {
        if end > 0 {
            segments.push(Segment {
                at_ms: None,
                stream,
                bytes: 0..end,
                fate: Fate::Kept,
            });
        }
    }
    segments.reverse();
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(records: &[(u64, Stream, u64)]) -> Vec<u8> {
        let encode = |(at_ms, stream, offset): &(u64, Stream, u64)| {
            Record {
                at_ms: *at_ms,
                stream: *stream,
                offset: *offset,
            }
            .encode()
        };
        records.iter().flat_map(encode).collect()
    }

    #[track_caller]
    fn check(order: &[u8], stdout: u64, stderr: u64, expected: &[(Option<u64>, Stream, Range<u64>)]) {
        let length = |stream| match stream {
            Stream::Output => 0,
            Stream::Stdout => stdout,
            Stream::Stderr => stderr,
        };
        let found: Vec<_> = segments(order, length)
            .into_iter()
            .map(|s| (s.at_ms, s.stream, s.bytes))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn streams_interleave_as_they_arrived() {
        let log = order(&[
            (1, Stream::Stdout, 0),
            (2, Stream::Stderr, 0),
            (3, Stream::Stdout, 5),
            (4, Stream::Stdout, 7),
        ]);
        let all = [
            (Some(1), Stream::Stdout, 0..5),
            (Some(2), Stream::Stderr, 0..3),
            (Some(3), Stream::Stdout, 5..7),
            (Some(4), Stream::Stdout, 7..9),
        ];
        check(&log, 9, 3, &all);
        // A half-written record at the end tells nothing.
        check(&[log.as_slice(), &[1, 2, 3]].concat(), 9, 3, &all);
    }

    #[test]
    fn no_byte_is_left_out_when_the_order_is_lost() {
        check(&[], 4, 2, &[(None, Stream::Stderr, 0..2), (None, Stream::Stdout, 0..4)]);
        let log = order(&[(1, Stream::Stdout, 3)]);
        check(
            &log,
            4,
            0,
            &[(None, Stream::Stdout, 0..3), (Some(1), Stream::Stdout, 3..4)],
        );
    }

    #[test]
    fn what_was_dropped_is_told_once_and_nothing_is_told_twice() {
        let log = order(&[
            (1, Stream::Stdout, 0),
            (2, Stream::Stdout, 10),
            (3, Stream::Stdout, 20),
            (4, Stream::Stderr, 0),
        ]);
        let length = |stream| if stream == Stream::Output { 0 } else { 30 };
        let dropped = |stream| (stream == Stream::Stdout).then_some(5..25);
        let found: Vec<_> = mark(segments(&log, length), dropped)
            .into_iter()
            .map(|s| (s.stream, s.bytes, s.fate))
            .collect();
        let expected = [
            (Stream::Stdout, 0..5, Fate::Kept),
            (Stream::Stdout, 5..25, Fate::Dropped),
            (Stream::Stdout, 25..30, Fate::Kept),
            (Stream::Stderr, 0..30, Fate::Kept),
        ];
        assert_eq!(found, expected);
    }
}
