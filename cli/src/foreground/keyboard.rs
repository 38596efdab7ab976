//! What is typed, on its way to the program.
//!
//! A thread reads standard input, because making it non-blocking would change it for everybody who shares it. It waits
//! for input, or for the word that the program's input is to end; it ends with the process.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, poll};
use tokio::sync::mpsc;

/// Ctrl-\ announces a key for us; `d` after it detaches.
const ESCAPE: u8 = 0x1c;
const DETACH: u8 = b'd';

/// Carried at a time: a pipe that has room for anything has room for as much.
const CHUNK_BYTES: usize = 4096;

/// Something typed that is not for the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// Leave the run to itself.
    Detach,
    /// Standard input has ended.
    Closed,
}

/// Carries standard input to the program.
#[derive(Debug)]
pub(crate) struct Keyboard {
    keys: Option<mpsc::Receiver<Key>>,
    /// Closing it ends the program's input.
    program: Option<OwnedFd>,
}

impl Keyboard {
    /// To a pseudo-terminal, with a key to detach.
    pub(crate) fn for_terminal(master: OwnedFd) -> Result<Self> {
        Self::start(File::from(master), Escapes::Watched)
    }

    /// To a pipe, or to nobody when the program has standard input itself.
    pub(crate) fn feeding(pipe: Option<OwnedFd>) -> Result<Self> {
        match pipe {
            Some(pipe) => Self::start(File::from(pipe), Escapes::Passed),
            None => Ok(Self {
                keys: None,
                program: None,
            }),
        }
    }

    fn start(program: File, escapes: Escapes) -> Result<Self> {
        let (tell, keys) = mpsc::channel(1);
        let (released, hold) = std::io::pipe().context("cannot make a pipe")?;
        let carry = move || carry(program, escapes, &tell, &released);
        std::thread::Builder::new()
            .name("keyboard".to_owned())
            .spawn(carry)
            .context("cannot start a thread")?;
        Ok(Self {
            keys: Some(keys),
            program: Some(hold.into()),
        })
    }

    /// The next key for us; never comes back when there is none to come.
    pub(crate) async fn next(&mut self) -> Key {
        let key = match &mut self.keys {
            Some(keys) => keys.recv().await,
            None => None,
        };
        match key {
            Some(key) => key,
            None => std::future::pending().await,
        }
    }

    /// Ends the program's standard input.
    pub(crate) fn close(&mut self) {
        self.program = None;
    }
}

/// Whether keys for us are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escapes {
    Watched,
    Passed,
}

/// Reads standard input and writes it to the program until either ends.
fn carry(mut program: File, escapes: Escapes, tell: &mpsc::Sender<Key>, released: &impl AsFd) {
    let mut chunk = [0; CHUNK_BYTES];
    let mut escaped = false;
    while is_ready(&std::io::stdin(), PollFlags::IN, released) {
        let length = match rustix::io::read(rustix::stdio::stdin(), &mut chunk) {
            Ok(0) | Err(_) => break,
            Ok(length) => length,
        };
        let (passed, key) = match escapes {
            Escapes::Passed => (chunk[..length].to_vec(), None),
            Escapes::Watched => pick_out(&chunk[..length], &mut escaped),
        };
        if !is_ready(&program, PollFlags::OUT, released) {
            break;
        }
        if program.write_all(&passed).is_err() {
            return;
        }
        if let Some(key) = key {
            // Nobody listens any more: the attendance is over.
            let _ = tell.blocking_send(key);
            return;
        }
    }
    drop(program);
    let _ = tell.blocking_send(Key::Closed);
}

/// Waits for one of two; false when it is the word to end.
fn is_ready(waited_for: &impl AsFd, flags: PollFlags, released: &impl AsFd) -> bool {
    loop {
        let mut fds = [PollFd::new(waited_for, flags), PollFd::new(released, PollFlags::IN)];
        match poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => {}
            // What cannot be waited for is found out by using it.
            Err(_) => return true,
            Ok(_) if !fds[1].revents().is_empty() => return false,
            Ok(_) => return true,
        }
    }
}

/// What of the bytes is for the program, and the key for us if there is one.
fn pick_out(bytes: &[u8], escaped: &mut bool) -> (Vec<u8>, Option<Key>) {
    let mut passed = Vec::with_capacity(bytes.len());
    for byte in bytes {
        match (*escaped, *byte) {
            (false, ESCAPE) => *escaped = true,
            (true, DETACH) => return (passed, Some(Key::Detach)),
            (true, other) => {
                *escaped = false;
                passed.push(ESCAPE);
                if other != ESCAPE {
                    passed.push(other);
                }
            }
            (false, other) => passed.push(other),
        }
    }
    (passed, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_escape_followed_by_d_is_for_us() {
        let mut escaped = false;
        assert_eq!(pick_out(b"ab", &mut escaped), (b"ab".to_vec(), None));
        assert_eq!(pick_out(&[ESCAPE], &mut escaped), (Vec::new(), None));
        assert_eq!(pick_out(b"dx", &mut escaped), (Vec::new(), Some(Key::Detach)));
        escaped = false;
        assert_eq!(
            pick_out(&[b'a', ESCAPE, b'q'], &mut escaped),
            (vec![b'a', ESCAPE, b'q'], None)
        );
        assert_eq!(
            pick_out(&[ESCAPE, ESCAPE, b'd'], &mut escaped),
            (vec![ESCAPE, b'd'], None)
        );
    }
}
