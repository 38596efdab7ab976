//! The packets on the control socket (`SOCK_SEQPACKET`): one tag byte, then fixed fields.

use crate::codec::Malformed;
use crate::spec::{Containment, Window};

/// No packet is longer (a stop request carries one slot).
pub const PACKET_BYTES: usize = 2048;

/// The descriptor the shim finds its control socket at.
pub const CONTROL_FD: i32 = 3;

/// The step of a start that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The specification did not arrive or is malformed.
    Specification,
    /// The run directory's lock is held: another shim serves this run.
    Lock,
    /// A log could not be opened.
    Logs,
    /// The exit and stop files could not be reserved (disk full).
    Reserve,
    /// No pseudo-terminal could be had.
    Terminal,
    /// No process could be made.
    Fork,
    /// The gate was closed again, or the worker was killed at it: nothing was executed.
    Gate,
    /// A stop was asked for before the gate opened: nothing was executed.
    Stopped,
    /// Changing to the working directory.
    Directory,
    /// Executing the program.
    Exec,
    /// The cgroup that was asked for cannot be had.
    Containment,
}

const STAGES: [(Stage, u8, &str); 11] = [
    (Stage::Specification, 1, "specification"),
    (Stage::Lock, 2, "lock"),
    (Stage::Logs, 3, "logs"),
    (Stage::Reserve, 4, "reserve"),
    (Stage::Terminal, 5, "terminal"),
    (Stage::Fork, 6, "fork"),
    (Stage::Gate, 7, "gate"),
    (Stage::Stopped, 8, "stopped"),
    (Stage::Directory, 9, "directory"),
    (Stage::Exec, 10, "exec"),
    (Stage::Containment, 11, "containment"),
];

impl Stage {
    /// The word used in the exit file and in reports.
    #[must_use]
    pub fn text(self) -> &'static str {
        STAGES.iter().find(|row| row.0 == self).map_or("", |row| row.2)
    }

    /// The stage with this word.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        STAGES.iter().find(|row| row.2 == text).map(|row| row.0)
    }

    /// The stage with this number.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        STAGES.iter().find(|row| row.1 == code).map(|row| row.0)
    }

    /// The number used on the wire.
    #[must_use]
    pub fn code(self) -> u8 {
        STAGES.iter().find(|row| row.0 == self).map_or(0, |row| row.1)
    }
}

/// A stream of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// The pseudo-terminal: both streams in one.
    Output = 0,
    /// Standard output.
    Stdout = 1,
    /// Standard error.
    Stderr = 2,
}

impl Stream {
    /// The stream with this number.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        [Self::Output, Self::Stdout, Self::Stderr]
            .into_iter()
            .find(|stream| *stream as u8 == code)
    }
}

/// Which descriptors come with [`ToShim::Start`] after the specification's memory file, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Passed {
    /// The worker's standard input.
    pub stdin: Present,
    /// The image of the finishing command.
    pub image: Present,
    /// The writing end of the worker's standard input, to be closed by a stop.
    pub stdin_writer: Present,
}

/// Whether a descriptor was passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Present {
    /// It was not.
    #[default]
    No,
    /// It was.
    Yes,
}

/// From the starter to the shim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToShim {
    /// Comes with the specification's memory file and the descriptors named.
    Start(Passed),
    /// The identities are committed: open the gate.
    Go,
    /// Nobody reads this stream any more: close it, so that the program gets SIGPIPE.
    CloseStream(Stream),
    /// The starter has read this stream's log so far. What it has not read is not dropped.
    Seen {
        /// Whose log.
        stream: Stream,
        /// Everything before it was read.
        offset: u64,
    },
    /// Nobody writes to the program any more: close the shim's end of its standard input.
    CloseStdin,
    /// The terminal has this size now.
    Window(Window),
    /// Stop the set; the bytes are an encoded slot ([`crate::slot::Slot`]).
    Stop(Vec<u8>),
    /// The starter leaves; its end means nothing from now on.
    Detach,
}

impl ToShim {
    /// The packet.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Start(passed) => {
                let bits = [passed.stdin, passed.image, passed.stdin_writer];
                let flags = bits
                    .iter()
                    .enumerate()
                    .map(|(bit, present)| u8::from(*present == Present::Yes) << bit)
                    .sum();
                vec![b'S', flags]
            }
            Self::Go => vec![b'G'],
            Self::CloseStream(stream) => vec![b'c', *stream as u8],
            Self::Seen { stream, offset } => [&[b'r', *stream as u8], offset.to_le_bytes().as_slice()].concat(),
            Self::CloseStdin => vec![b'i'],
            Self::Window(window) => {
                let mut packet = vec![b'w'];
                for side in [window.rows, window.columns, window.width, window.height] {
                    packet.extend_from_slice(&side.to_le_bytes());
                }
                packet
            }
            Self::Stop(slot) => [b"s", slot.as_slice()].concat(),
            Self::Detach => vec![b'd'],
        }
    }

    /// Reads a packet.
    ///
    /// # Errors
    /// A packet of no known form.
    pub fn decode(packet: &[u8]) -> Result<Self, Malformed> {
        match packet {
            [b'S', flags] => {
                let present = |bit: u8| {
                    if flags >> bit & 1 == 1 {
                        Present::Yes
                    } else {
                        Present::No
                    }
                };
                Ok(Self::Start(Passed {
                    stdin: present(0),
                    image: present(1),
                    stdin_writer: present(2),
                }))
            }
            [b'G'] => Ok(Self::Go),
            [b'c', code] => Stream::from_code(*code)
                .map(Self::CloseStream)
                .ok_or(Malformed("stream")),
            [b'r', code, offset @ ..] => Ok(Self::Seen {
                stream: Stream::from_code(*code).ok_or(Malformed("stream"))?,
                offset: u64::from_le_bytes(offset.try_into().map_err(|_| Malformed("offset"))?),
            }),
            [b'i'] => Ok(Self::CloseStdin),
            [b'w', r0, r1, c0, c1, w0, w1, h0, h1] => Ok(Self::Window(Window {
                rows: u16::from_le_bytes([*r0, *r1]),
                columns: u16::from_le_bytes([*c0, *c1]),
                width: u16::from_le_bytes([*w0, *w1]),
                height: u16::from_le_bytes([*h0, *h1]),
            })),
            [b's', slot @ ..] => Ok(Self::Stop(slot.to_vec())),
            [b'd'] => Ok(Self::Detach),
            _ => Err(Malformed("packet to the shim")),
        }
    }
}

/// From the shim to the starter. Every packet also means: look at the logs again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FromShim {
    /// The worker waits at the gate. Comes with descriptors: the worker's pidfd, the shim's pidfd, and with a
    /// pseudo-terminal its master.
    Held {
        /// The worker's pid.
        worker: i32,
        /// The shim's pid.
        shim: i32,
        /// What holds the set.
        containment: Containment,
    },
    /// The program is executing.
    Started,
    /// Nothing is executing, and nothing will.
    StartFailed {
        /// The step that failed.
        stage: Stage,
        /// Why, 0 if there is no error number.
        errno: i32,
    },
    /// Logs have grown. Sent only while no other packet is unread.
    Output,
    /// The worker has ended and the exit file is complete and durable.
    Ended,
    /// A stop began that closes standard input first: the starter has to close its end too.
    CloseStdin,
}

impl FromShim {
    /// The packet.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Held {
                worker,
                shim,
                containment,
            } => {
                let held: &[u8] = match containment {
                    Containment::Subreaper => b"Hs",
                    Containment::Cgroup => b"Hc",
                    Containment::PidNamespace => b"Hn",
                };
                [held, &worker.to_le_bytes(), &shim.to_le_bytes()].concat()
            }
            Self::Started => vec![b'R'],
            Self::StartFailed { stage, errno } => [&[b'F', stage.code()], errno.to_le_bytes().as_slice()].concat(),
            Self::Output => vec![b'o'],
            Self::Ended => vec![b'E'],
            Self::CloseStdin => vec![b'i'],
        }
    }

    /// Reads a packet.
    ///
    /// # Errors
    /// A packet of no known form.
    pub fn decode(packet: &[u8]) -> Result<Self, Malformed> {
        match packet {
            [b'H', held @ (b's' | b'c' | b'n'), w0, w1, w2, w3, s0, s1, s2, s3] => Ok(Self::Held {
                worker: i32::from_le_bytes([*w0, *w1, *w2, *w3]),
                shim: i32::from_le_bytes([*s0, *s1, *s2, *s3]),
                containment: match held {
                    b'c' => Containment::Cgroup,
                    b'n' => Containment::PidNamespace,
                    _ => Containment::Subreaper,
                },
            }),
            [b'R'] => Ok(Self::Started),
            [b'F', code, e0, e1, e2, e3] => Ok(Self::StartFailed {
                stage: Stage::from_code(*code).ok_or(Malformed("stage"))?,
                errno: i32::from_le_bytes([*e0, *e1, *e2, *e3]),
            }),
            [b'o'] => Ok(Self::Output),
            [b'E'] => Ok(Self::Ended),
            [b'i'] => Ok(Self::CloseStdin),
            _ => Err(Malformed("packet from the shim")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_to_the_shim_reads_as_it_was_written() {
        let window = Window {
            rows: 1,
            columns: 2,
            width: 3,
            height: 65_535,
        };
        let passed = Passed {
            stdin: Present::Yes,
            image: Present::No,
            stdin_writer: Present::Yes,
        };
        for message in [
            ToShim::Start(passed),
            ToShim::Go,
            ToShim::CloseStream(Stream::Stderr),
            ToShim::Seen {
                stream: Stream::Stdout,
                offset: u64::MAX,
            },
            ToShim::CloseStdin,
            ToShim::Window(window),
            ToShim::Stop(b"v=1\n".to_vec()),
            ToShim::Detach,
        ] {
            assert_eq!(ToShim::decode(&message.encode()), Ok(message));
        }
    }

    #[test]
    fn every_packet_from_the_shim_reads_as_it_was_written() {
        for message in [
            FromShim::Held {
                worker: 70_000,
                shim: 1,
                containment: Containment::Cgroup,
            },
            FromShim::Started,
            FromShim::StartFailed {
                stage: Stage::Exec,
                errno: 2,
            },
            FromShim::Output,
            FromShim::Ended,
            FromShim::CloseStdin,
        ] {
            assert_eq!(FromShim::decode(&message.encode()), Ok(message));
        }
    }

    #[test]
    fn every_stage_has_a_word_and_a_number_of_its_own() {
        for (stage, code, text) in STAGES {
            assert_eq!(
                (Stage::from_code(code), Stage::from_text(text)),
                (Some(stage), Some(stage))
            );
        }
    }
}
