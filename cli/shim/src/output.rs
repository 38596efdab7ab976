//! What the worker writes, appended to the logs byte for byte, and the record of its order.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};

use runwarden_shim::clock;
use runwarden_shim::message::Stream;
use runwarden_shim::order::{self, Record};

use crate::log::Log;
use crate::sys;

/// Read at once; a pipe holds 64 KiB, and the buffer is the largest thing the shim keeps.
const CHUNK_BYTES: usize = 32 * 1024;
/// Chunks read from one stream before the others get their turn.
const CHUNKS_A_TURN: usize = 8;
/// Drained at most: twice what the largest pipe of an unprivileged program holds.
const DRAIN_BYTES: usize = 2 * 1024 * 1024;
/// What all drains together may add to logs that are full.
const ROOM_BYTES: u64 = 8 << 20;
/// A new record at least this often while a stream goes on.
const RECORD_EVERY_MS: u64 = 1000;

/// The share of the limit that each log keeps of its beginning, and in which its end moves on.
const HEAD_SHARE: u64 = 16;
const STEP_SHARE: u64 = 64;
/// The order log is kept to this size, and so much of its beginning: records are small, and what they tell of is gone.
const ORDER_BYTES: u64 = 4 << 20;
const ORDER_HEAD_BYTES: u64 = 1 << 20;

/// A stream and its log.
struct Channel {
    stream: Stream,
    /// `None` once it was closed or has ended.
    source: Option<File>,
    log: Log,
    /// Up to where the starter has read it.
    seen: u64,
}

/// Whether a starter reads the logs: nothing is dropped that it has yet to read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    There,
    Gone,
}

/// Output that is in no log.
#[derive(Clone, Copy)]
pub(crate) struct Missing {
    /// Could not be written (disk full).
    pub(crate) lost_bytes: u64,
    /// Was dropped again to stay within the limit.
    pub(crate) dropped_bytes: u64,
}

/// All streams of a worker.
pub(crate) struct Output {
    channels: Vec<Channel>,
    order: Log,
    last: Option<Record>,
    lost_bytes: u64,
    limit_bytes: u64,
    reader: Reader,
    buffer: Box<[u8]>,
}

/// Whether a turn brought anything.
#[derive(PartialEq, Eq)]
pub(crate) enum Turn {
    Grew,
    Nothing,
}

impl Output {
    pub(crate) fn new(order: File, limit_bytes: u64) -> Self {
        Self {
            channels: Vec::new(),
            order: Log::new(order, ORDER_HEAD_BYTES),
            last: None,
            lost_bytes: 0,
            limit_bytes,
            reader: Reader::There,
            buffer: vec![0; CHUNK_BYTES].into(),
        }
    }

    /// Adds a stream; what its log already holds stays.
    pub(crate) fn add(&mut self, stream: Stream, source: OwnedFd, log: File) {
        sys::set_nonblocking(source.as_fd());
        self.channels.push(Channel {
            stream,
            source: Some(File::from(source)),
            log: Log::new(log, self.limit_bytes / HEAD_SHARE),
            seen: 0,
        });
    }

    /// The descriptors to watch: none while a starter has to read first, so that the program waits for it as it would
    /// for the reader of a pipe.
    pub(crate) fn sources(&self) -> impl Iterator<Item = RawFd> + '_ {
        let full = self.is_full();
        self.channels
            .iter()
            .filter_map(move |channel| Some(channel.source.as_ref().filter(|_| !full)?.as_raw_fd()))
    }

    /// The starter has read so far.
    pub(crate) fn note_seen(&mut self, stream: Stream, offset: u64) {
        for channel in &mut self.channels {
            if channel.stream == stream {
                channel.seen = offset;
            }
        }
        self.drop_oldest();
    }

    /// Nobody has to read the logs before they are cut.
    pub(crate) fn forget_reader(&mut self) {
        self.reader = Reader::Gone;
        self.drop_oldest();
    }

    /// What is in no log.
    pub(crate) fn missing(&self) -> Missing {
        Missing {
            lost_bytes: self.lost_bytes,
            dropped_bytes: self.channels.iter().map(|channel| channel.log.dropped_bytes()).sum(),
        }
    }

    fn is_full(&self) -> bool {
        self.reader == Reader::There && self.kept_bytes() > self.limit_bytes
    }

    fn kept_bytes(&self) -> u64 {
        self.channels.iter().map(|channel| channel.log.kept_bytes()).sum()
    }

    /// Drops the oldest part of the longest tail until the logs are within their limit.
    fn drop_oldest(&mut self) {
        while self.kept_bytes() > self.limit_bytes {
            let longest = self.channels.iter_mut().max_by_key(|channel| channel.log.tail_bytes());
            let Some(channel) = longest else { return };
            let until = channel.log.next_drop(self.limit_bytes / STEP_SHARE);
            let is_unread = self.reader == Reader::There && channel.seen < until;
            if is_unread || until > channel.log.length() || channel.log.drop_until(until).is_err() {
                return;
            }
        }
    }

    /// Stops reading a stream, so that its writers get SIGPIPE.
    pub(crate) fn close(&mut self, stream: Stream) {
        for channel in &mut self.channels {
            if channel.stream == stream {
                channel.source = None;
            }
        }
    }

    /// Reads the stream behind a watched descriptor, for one turn.
    pub(crate) fn read(&mut self, source: RawFd) -> Turn {
        let mut turn = Turn::Nothing;
        for index in 0..self.channels.len() {
            let found = self.channels[index]
                .source
                .as_ref()
                .is_some_and(|file| file.as_raw_fd() == source);
            for _ in 0..if found { CHUNKS_A_TURN } else { 0 } {
                if self.is_full() || self.read_chunk(index) == 0 {
                    break;
                }
                turn = Turn::Grew;
            }
        }
        turn
    }

    /// Reads what is there now, without waiting and without letting a busy writer keep us.
    pub(crate) fn drain(&mut self) -> Turn {
        let mut turn = Turn::Nothing;
        for index in 0..self.channels.len() {
            let mut read = 0;
            while read < DRAIN_BYTES {
                match self.read_chunk(index) {
                    0 => break,
                    length => read += length,
                }
                turn = Turn::Grew;
            }
        }
        turn
    }

    /// Bytes read: 0 when nothing is there or the stream has ended.
    fn read_chunk(&mut self, index: usize) -> usize {
        let kept_bytes = self.kept_bytes();
        let channel = &mut self.channels[index];
        let Some(source) = &mut channel.source else {
            return 0;
        };
        let length = match source.read(&mut self.buffer) {
            Ok(length @ 1..) => length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return 0;
            }
            Ok(0) | Err(_) => {
                channel.source = None;
                return 0;
            }
        };
        let record = Record {
            at_ms: clock::epoch_ms(),
            stream: channel.stream,
            offset: channel.log.length(),
        };
        // Where files cannot have holes, what is beyond the limit is lost like what is beyond the disk.
        let room = self.limit_bytes.saturating_add(ROOM_BYTES);
        let written = if kept_bytes < room {
            channel.log.append(&self.buffer[..length])
        } else {
            0
        };
        self.lost_bytes += (length - written) as u64;
        if written > 0 {
            self.note(record);
            self.drop_oldest();
        }
        length
    }

    fn note(&mut self, record: Record) {
        let due = self
            .last
            .is_none_or(|last| last.stream != record.stream || record.at_ms.abs_diff(last.at_ms) >= RECORD_EVERY_MS);
        if !due {
            return;
        }
        match self.order.append(&record.encode()) {
            order::BYTES => self.last = Some(record),
            // Half a record (full disk) would shift all that follow.
            part => self.order.take_back(part),
        }
        while self.order.kept_bytes() > ORDER_BYTES {
            if self
                .order
                .drop_until(self.order.next_drop(ORDER_BYTES / STEP_SHARE))
                .is_err()
            {
                return;
            }
        }
    }
}
