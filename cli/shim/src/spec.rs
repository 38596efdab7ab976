//! What a run is started from. It travels in a memory file, because arguments and environment may be 2 MB.

use crate::codec::{Malformed, Reader, Writer};

const MAGIC: u64 = u64::from_le_bytes(*b"rwspec01");

/// Where the worker's three streams go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoMode {
    /// A pseudo-terminal held by the shim; the worker leads a session of its own.
    Pty,
    /// The starter's standard input, session and process group; output through pipes.
    InheritStdin,
    /// No input, a session of its own; output through pipes.
    NullStdin,
}

/// What is tried before SIGKILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopBy {
    /// This signal to every member of the set.
    Signal(i32),
    /// The end of the worker's standard input, then SIGTERM after half of the grace period.
    Stdin,
}

/// What the end of the starter means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParentTie {
    /// The run outlives its starter.
    Survive,
    /// The set is stopped when the starter ends, however it ends.
    DieWithStarter,
}

/// What holds a set together, beside the shim's being the subreaper of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Containment {
    /// Nothing more.
    Subreaper,
    /// A cgroup of its own.
    Cgroup,
    /// A pid namespace of its own.
    PidNamespace,
}

/// Which pid namespace a set lives in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Namespace {
    /// The starter's.
    #[default]
    Callers,
    /// One of its own.
    Own,
}

/// What it means that the cgroup cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The run starts without one.
    Wanted,
    /// The run does not start.
    Required,
}

/// A cgroup for the set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The directory to make; its parent exists.
    pub path: Vec<u8>,
    /// How much it is wanted.
    pub need: Need,
}

/// Size of a terminal window, as in `struct winsize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    /// Rows of characters.
    pub rows: u16,
    /// Columns of characters.
    pub columns: u16,
    /// Width in pixels, 0 if unknown.
    pub width: u16,
    /// Height in pixels, 0 if unknown.
    pub height: u16,
}

/// The whole specification of one start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The run's reference, for people who look at the process list.
    pub reference: Vec<u8>,
    /// Unique to this start; the exit file carries it.
    pub token: Vec<u8>,
    /// Program and arguments; no NUL bytes.
    pub argv: Vec<Vec<u8>>,
    /// The complete environment as `NAME=value`; no NUL bytes.
    pub environment: Vec<Vec<u8>>,
    /// The worker's working directory; a relative one is relative to the starter's.
    pub directory: Vec<u8>,
    /// The run directory; it exists.
    pub run_directory: Vec<u8>,
    /// Where the streams go.
    pub io: IoMode,
    /// Between the polite request and SIGKILL, for stops that the shim itself decides on.
    pub grace_ms: u64,
    /// Time awake after which the set is stopped; 0 is never.
    pub timeout_ms: u64,
    /// What is tried before SIGKILL.
    pub stop_by: StopBy,
    /// What the end of the starter means.
    pub parent: ParentTie,
    /// The command that records the end; empty is none.
    pub finish: Vec<Vec<u8>>,
    /// The first size of the pseudo-terminal.
    pub window: Window,
    /// The cgroup for the set.
    pub cgroup: Option<Group>,
    /// The pid namespace of the set.
    pub namespace: Namespace,
    /// How much of its output is kept, all logs together.
    pub log_limit_bytes: u64,
}

impl Spec {
    /// The bytes that [`Spec::decode`] reads.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.number(MAGIC);
        out.bytes(&self.reference);
        out.bytes(&self.token);
        out.list(&self.argv);
        out.list(&self.environment);
        out.bytes(&self.directory);
        out.bytes(&self.run_directory);
        out.number(match self.io {
            IoMode::Pty => 0,
            IoMode::InheritStdin => 1,
            IoMode::NullStdin => 2,
        });
        out.number(self.grace_ms);
        out.number(self.timeout_ms);
        out.number(match self.stop_by {
            StopBy::Stdin => 0,
            StopBy::Signal(signal) => u64::from(signal.unsigned_abs()),
        });
        out.number(match self.parent {
            ParentTie::Survive => 0,
            ParentTie::DieWithStarter => 1,
        });
        out.list(&self.finish);
        for side in [
            self.window.rows,
            self.window.columns,
            self.window.width,
            self.window.height,
        ] {
            out.number(u64::from(side));
        }
        out.number(match self.cgroup.as_ref().map(|group| group.need) {
            None => 0,
            Some(Need::Wanted) => 1,
            Some(Need::Required) => 2,
        });
        out.bytes(self.cgroup.as_ref().map_or(&[], |group| &group.path));
        out.number(match self.namespace {
            Namespace::Callers => 0,
            Namespace::Own => 1,
        });
        out.number(self.log_limit_bytes);
        out.0
    }

    /// Reads what [`Spec::encode`] wrote.
    ///
    /// # Errors
    /// Anything that is not a whole specification of this version.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut from = Reader::new(bytes, "specification");
        if from.number()? != MAGIC {
            return Err(Malformed("specification"));
        }
        let spec = Self {
            reference: from.bytes()?,
            token: from.bytes()?,
            argv: from.list()?,
            environment: from.list()?,
            directory: from.bytes()?,
            run_directory: from.bytes()?,
            io: match from.number()? {
                0 => IoMode::Pty,
                1 => IoMode::InheritStdin,
                2 => IoMode::NullStdin,
                _ => return Err(Malformed("io mode")),
            },
            grace_ms: from.number()?,
            timeout_ms: from.number()?,
            stop_by: match from.small::<i32>()? {
                0 => StopBy::Stdin,
                signal @ 1..=64 => StopBy::Signal(signal),
                _ => return Err(Malformed("stop signal")),
            },
            parent: match from.number()? {
                0 => ParentTie::Survive,
                1 => ParentTie::DieWithStarter,
                _ => return Err(Malformed("parent tie")),
            },
            finish: from.list()?,
            window: Window {
                rows: from.small()?,
                columns: from.small()?,
                width: from.small()?,
                height: from.small()?,
            },
            cgroup: group(&mut from)?,
            namespace: match from.number()? {
                0 => Namespace::Callers,
                1 => Namespace::Own,
                _ => return Err(Malformed("namespace")),
            },
            log_limit_bytes: from.number()?,
        };
        from.end()?;
        if spec.argv.is_empty() {
            Err(Malformed("empty argv"))
        } else {
            Ok(spec)
        }
    }
}

fn group(from: &mut Reader<'_>) -> Result<Option<Group>, Malformed> {
    let need = match from.number()? {
        0 => None,
        1 => Some(Need::Wanted),
        2 => Some(Need::Required),
        _ => return Err(Malformed("need of a cgroup")),
    };
    let path = from.bytes()?;
    Ok(need.map(|need| Group { path, need }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Spec {
        Spec {
            reference: b"run/abc".to_vec(),
            token: b"t".to_vec(),
            argv: vec![b"sh".to_vec(), b"\xff\n".to_vec(), Vec::new()],
            environment: vec![b"A=\xfe".to_vec()],
            directory: b"/tmp/\x80".to_vec(),
            run_directory: b"/r".to_vec(),
            io: IoMode::InheritStdin,
            grace_ms: 10_000,
            timeout_ms: u64::MAX,
            stop_by: StopBy::Signal(15),
            parent: ParentTie::DieWithStarter,
            finish: vec![b"/bin/true".to_vec()],
            window: Window {
                rows: 24,
                columns: 80,
                width: 0,
                height: 65_535,
            },
            cgroup: Some(Group {
                path: b"/g/\xff".to_vec(),
                need: Need::Required,
            }),
            namespace: Namespace::Own,
            log_limit_bytes: 1 << 20,
        }
    }

    #[test]
    fn a_specification_survives_the_journey() {
        assert_eq!(Spec::decode(&sample().encode()), Ok(sample()));
    }

    #[test]
    fn no_prefix_of_a_specification_is_one() {
        let bytes = sample().encode();
        for length in 0..bytes.len() {
            assert!(
                Spec::decode(&bytes[..length]).is_err(),
                "prefix of {length} bytes was accepted"
            );
        }
    }
}
