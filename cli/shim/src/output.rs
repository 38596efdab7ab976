//! What the worker writes, appended to the logs byte for byte, and the record of its order.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};

use runwarden_shim::clock;
use runwarden_shim::message::Stream;
use runwarden_shim::order::{self, Record};

use crate::sys;

/// Read at once; a pipe holds 64 KiB, and the buffer is the largest thing the shim keeps.
const CHUNK_BYTES: usize = 32 * 1024;
/// Chunks read from one stream before the others get their turn.
const CHUNKS_A_TURN: usize = 8;
/// Drained at most: twice what the largest pipe of an unprivileged program holds.
const DRAIN_BYTES: usize = 2 * 1024 * 1024;
/// A new record at least this often while a stream goes on.
const RECORD_EVERY_MS: u64 = 1000;

/// A stream and its log.
struct Channel {
    stream: Stream,
    /// `None` once it was closed or has ended.
    source: Option<File>,
    log: File,
    offset: u64,
}

/// All streams of a worker.
pub(crate) struct Output {
    channels: Vec<Channel>,
    order: File,
    last: Option<Record>,
    /// Bytes that could not be written to a log (disk full).
    pub(crate) lost_bytes: u64,
    buffer: Box<[u8]>,
}

/// Whether a turn brought anything.
#[derive(PartialEq, Eq)]
pub(crate) enum Turn {
    Grew,
    Nothing,
}

impl Output {
    pub(crate) fn new(order: File) -> Self {
        Self {
            channels: Vec::new(),
            order,
            last: None,
            lost_bytes: 0,
            buffer: vec![0; CHUNK_BYTES].into(),
        }
    }

    /// Adds a stream; what its log already holds stays.
    pub(crate) fn add(&mut self, stream: Stream, source: OwnedFd, log: File) {
        sys::set_nonblocking(source.as_fd());
        let offset = log.metadata().map_or(0, |log| log.len());
        self.channels.push(Channel {
            stream,
            source: Some(File::from(source)),
            log,
            offset,
        });
    }

    /// The descriptors to watch.
    pub(crate) fn sources(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.channels
            .iter()
            .filter_map(|channel| Some(channel.source.as_ref()?.as_raw_fd()))
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
                match self.read_chunk(index) {
                    0 => break,
                    _ => turn = Turn::Grew,
                }
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
            offset: channel.offset,
        };
        let mut written = 0;
        while written < length {
            match channel.log.write(&self.buffer[written..length]) {
                Ok(count @ 1..) => written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A full disk must not stop the program; the loss is counted.
                Ok(0) | Err(_) => break,
            }
        }
        channel.offset += written as u64;
        self.lost_bytes += (length - written) as u64;
        if written > 0 {
            self.note(record);
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
        match self.order.write(&record.encode()) {
            Ok(order::BYTES) => self.last = Some(record),
            // Half a record (full disk) would shift all that follow: take it back.
            Ok(part) => {
                let length = self.order.metadata().map_or(0, |log| log.len());
                let _ = self.order.set_len(length.saturating_sub(part as u64));
            }
            Err(_) => {}
        }
    }
}
