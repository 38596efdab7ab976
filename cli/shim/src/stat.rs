//! `/proc/<pid>/stat`, read as bytes: a process may call itself anything, closing parentheses included.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};

/// What is used of one `stat` line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// The command name, padded with NUL.
    pub comm: [u8; 16],
    /// The state letter; `Z` and `X` are dead.
    pub state: u8,
    /// Parent's pid.
    pub parent: i32,
    /// Process group.
    pub group: i32,
    /// Start in clock ticks since boot (field 22), shifted by the reader's time namespace.
    pub start_ticks: u64,
}

impl Stat {
    /// Whether the process is a zombie or about to vanish.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// The command name without its padding.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        let end = self.comm.iter().position(|byte| *byte == 0).unwrap_or(self.comm.len());
        &self.comm[..end]
    }
}

/// Reads the line of a process.
///
/// # Errors
/// `NotFound` when there is no such process (or it is hidden), `InvalidData` when the line is not understood.
pub fn read(pid: i32) -> io::Result<Stat> {
    let mut path = String::with_capacity(24);
    let _ = write!(path, "/proc/{pid}/stat");
    let mut line = [0_u8; 1024];
    let length = match File::open(path)?.read(&mut line) {
        // The process vanished between opening and reading.
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
            return Err(io::ErrorKind::NotFound.into());
        }
        other => other?,
    };
    parse(&line[..length]).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Reads a line, from its last `)` on.
#[must_use]
pub fn parse(line: &[u8]) -> Option<Stat> {
    let open = line.iter().position(|byte| *byte == b'(')?;
    let close = line.iter().rposition(|byte| *byte == b')')?;
    let mut comm = [0; 16];
    for (to, from) in comm.iter_mut().zip(line.get(open + 1..close)?) {
        *to = *from;
    }
    let rest = std::str::from_utf8(line.get(close + 2..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    // Field 22; the three above are 3, 4 and 5.
    let start_ticks = fields.nth(16)?.parse().ok()?;
    Some(Stat {
        comm,
        state,
        parent,
        group,
        start_ticks,
    })
}

/// The real user id of a process, where it can be read.
#[must_use]
pub fn user_of(pid: i32) -> Option<u32> {
    let status = std::fs::read(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .split(|byte| *byte == b'\n')
        .find_map(|line| line.strip_prefix(b"Uid:"))?;
    let first = std::str::from_utf8(line).ok()?.split_ascii_whitespace().next()?;
    first.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_odd_bytes_hides_nothing() {
        let mut line = b"42 (a) R (\xff\n) S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 ".to_vec();
        line.extend_from_slice(b"987654 1000 2 3\n");
        let stat = parse(&line).expect("a stat line");
        assert_eq!(
            (stat.state, stat.parent, stat.group, stat.start_ticks),
            (b'S', 7, 8, 987_654)
        );
        assert_eq!(stat.name(), b"a) R (\xff\n");
    }

    #[test]
    fn half_a_line_is_not_understood() {
        assert_eq!(parse(b"42 (sh) S 7 8"), None);
        assert_eq!(parse(b"42 (sh"), None);
    }
}
