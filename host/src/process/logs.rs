//! The logs of a run, back in order of arrival.

use std::ops::Range;

use runwarden_shim::message::Stream;
use runwarden_shim::order::{self, Record};

/// A stretch of one log that arrived before the next segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// When its first byte arrived, UTC; `None` for bytes the order log does not tell about.
    pub at_ms: Option<u64>,
    /// Whose log.
    pub stream: Stream,
    /// Which bytes of it.
    pub bytes: Range<u64>,
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
            });
        }
    }
    for (stream, end) in streams.into_iter().zip(ends) {
        if end > 0 {
            segments.push(Segment {
                at_ms: None,
                stream,
                bytes: 0..end,
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
}
