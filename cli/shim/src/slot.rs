//! The slots of the stop file: who asked a run to stop, why, and how patiently.
//!
//! A slot is one line of tab-separated `key=value`, percent-encoded, ending in a checksum and a newline, padded with
//! NUL to [`BYTES`]. The checksum makes a half-written slot no slot, so the shim reads without any lock.

use std::fmt::Write as _;

/// Length of a slot.
pub const BYTES: usize = 1024;
/// Number of slots.
pub const COUNT: usize = 16;
/// The slots from here on are the shim's own; the ones before belong to those who ask.
pub const SHIM_FIRST: usize = 12;

/// What made somebody ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The run's own time limit.
    Timeout,
    /// A kill.
    Kill,
    /// The terminal was closed.
    Hangup,
    /// Ctrl-C, a second time.
    Interrupt,
    /// SIGTERM to the shim: logout, shutdown.
    Terminate,
    /// The starter of a run that was to die with it ended.
    ParentGone,
}

const CAUSES: [(Cause, &str); 6] = [
    (Cause::Timeout, "timeout"),
    (Cause::Kill, "kill"),
    (Cause::Hangup, "hangup"),
    (Cause::Interrupt, "interrupt"),
    (Cause::Terminate, "terminate"),
    (Cause::ParentGone, "parent_gone"),
];

impl Cause {
    /// The word used in files.
    #[must_use]
    pub fn text(self) -> &'static str {
        CAUSES.iter().find(|row| row.0 == self).map_or("", |row| row.1)
    }

    /// The cause with this word.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        CAUSES.iter().find(|row| row.1 == text).map(|row| row.0)
    }
}

/// How patient a stop is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// SIGKILL after this time.
    Grace {
        /// Milliseconds between the polite request and SIGKILL.
        ms: u64,
    },
    /// SIGKILL at once.
    Force,
}

impl Patience {
    /// Milliseconds until SIGKILL.
    #[must_use]
    pub fn grace_ms(self) -> u64 {
        match self {
            Self::Grace { ms } => ms,
            Self::Force => 0,
        }
    }
}

/// One request to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// What made somebody ask.
    pub cause: Cause,
    /// How patiently.
    pub patience: Patience,
    /// When, on the clock that counts from boot.
    pub at_ms: u64,
    /// The reason code to record.
    pub code: String,
    /// Who asked.
    pub actor: String,
    /// Why, in their words; cut when too long for a slot.
    pub note: String,
}

impl Slot {
    /// The line, without padding; at most [`BYTES`] long.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let force = u8::from(self.patience == Patience::Force);
        let mut line = format!(
            "v=1\tcause={}\tgrace_ms={}\tat_ms={}\tforce={force}",
            self.cause.text(),
            self.patience.grace_ms(),
            self.at_ms,
        );
        // A reason code and an actor are short; the note gets what is left, less the checksum's 14 bytes.
        for (key, value, limit) in [
            ("code", &self.code, 192),
            ("actor", &self.actor, 448),
            ("note", &self.note, BYTES - 16),
        ] {
            line.push('\t');
            line.push_str(key);
            line.push('=');
            push_encoded(&mut line, value, limit);
        }
        let sum = checksum(line.as_bytes());
        let _ = writeln!(line, "\tsum={sum:08x}");
        line.into_bytes()
    }

    /// Reads a slot with or without its padding; `None` if it is empty, unfinished or damaged.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let line = &bytes[..bytes.iter().position(|byte| *byte == b'\n')?];
        let line = std::str::from_utf8(line).ok()?;
        let (body, sum) = line.rsplit_once("\tsum=")?;
        if u32::from_str_radix(sum, 16).ok()? != checksum(body.as_bytes()) {
            return None;
        }
        let field = |key: &str| {
            body.split('\t')
                .find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
        };
        let grace_ms = field("grace_ms")?.parse().ok()?;
        let patience = if field("force")? == "1" {
            Patience::Force
        } else {
            Patience::Grace { ms: grace_ms }
        };
        Some(Self {
            cause: Cause::from_text(field("cause")?)?,
            patience,
            at_ms: field("at_ms")?.parse().ok()?,
            code: decoded(field("code")?)?,
            actor: decoded(field("actor")?)?,
            note: decoded(field("note")?)?,
        })
    }

    /// The slot padded with NUL to its full length.
    #[must_use]
    pub fn padded(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let line = self.encode();
        bytes[..line.len()].copy_from_slice(&line);
        bytes
    }
}

/// The slot at `index` of the stop file's content, if there is a whole one.
#[must_use]
pub fn at(content: &[u8], index: usize) -> Option<Slot> {
    Slot::decode(content.get(index * BYTES..)?.get(..BYTES)?)
}

fn push_encoded(line: &mut String, value: &str, limit: usize) {
    for character in value.chars() {
        let mut encoded = String::new();
        let mut buffer = [0; 4];
        for byte in character.encode_utf8(&mut buffer).bytes() {
            if byte.is_ascii_graphic() && byte != b'%' {
                encoded.push(char::from(byte));
            } else {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
        if line.len() + encoded.len() > limit {
            return;
        }
        line.push_str(&encoded);
    }
}

fn decoded(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// FNV-1a: enough to tell a whole slot from a torn one.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, byte| {
        (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(note: &str) -> Slot {
        Slot {
            cause: Cause::Kill,
            patience: Patience::Grace { ms: 10_000 },
            at_ms: 123_456,
            code: "run.cancelled.manual_kill".into(),
            actor: "operator:ärger\t=%".into(),
            note: note.into(),
        }
    }

    #[test]
    fn a_slot_reads_as_it_was_written() {
        let written = slot("tabs\tand\nlines = 100 %");
        assert_eq!(Slot::decode(&written.padded()), Some(written.clone()));
        let forced = Slot {
            patience: Patience::Force,
            ..written
        };
        assert_eq!(Slot::decode(&forced.encode()), Some(forced));
    }

    #[test]
    fn a_note_too_long_is_cut_between_characters() {
        let written = slot(&"ü".repeat(4000));
        let read = Slot::decode(&written.padded()).expect("a slot");
        assert!(!read.note.is_empty() && written.note.starts_with(&read.note));
    }

    #[test]
    fn a_torn_slot_is_no_slot() {
        let bytes = slot("why not").padded();
        let length = slot("why not").encode().len();
        for cut in 0..length {
            let mut torn = [0; BYTES];
            torn[..cut].copy_from_slice(&bytes[..cut]);
            assert_eq!(Slot::decode(&torn), None, "cut at {cut}");
        }
    }
}
