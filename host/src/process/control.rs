//! The control socket: what the starter and the shim say to each other while both live.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use runwarden_shim::message::{FromShim, PACKET_BYTES, Stage, Stream, ToShim};
use runwarden_shim::packet;
use runwarden_shim::spec::Window;

use super::pidfd::wait_readable;
use super::{ProcessError, Slot};

/// The starter's end of the socket. Readable when there is an event; dropping it tells the shim that the starter left.
#[derive(Debug)]
pub struct Control {
    socket: OwnedFd,
}

/// What the shim says. Every event also means: look at the logs again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The logs have grown.
    Output,
    /// The worker has ended and its exit record is durable.
    Ended,
    /// A stop began by closing standard input: the starter has to close its end too.
    CloseStdin,
    /// The shim is gone.
    ShimGone,
}

/// A packet of any kind, with its descriptors.
pub(super) type Packet = (FromShim, Vec<OwnedFd>);

impl Control {
    /// Takes over a socket and makes it non-blocking.
    pub(super) fn new(socket: OwnedFd) -> Result<Self, ProcessError> {
        rustix::io::ioctl_fionbio(&socket, true).map_err(ProcessError::system("prepare the control socket"))?;
        Ok(Self { socket })
    }

    /// The next event, `None` when there is none yet. Never blocks.
    ///
    /// # Errors
    /// When the shim says something that does not belong here.
    pub fn receive(&mut self) -> Result<Option<Event>, ProcessError> {
        loop {
            return Ok(Some(match self.receive_packet() {
                Ok(Some((FromShim::Output, _))) => Event::Output,
                Ok(Some((FromShim::Ended, _))) => Event::Ended,
                Ok(Some((FromShim::CloseStdin, _))) => Event::CloseStdin,
                Ok(Some((FromShim::Held { .. } | FromShim::Started | FromShim::StartFailed { .. }, _))) => continue,
                Ok(None) => return Ok(None),
                Err(ProcessError::ShimGone) => Event::ShimGone,
                Err(error) => return Err(error),
            }));
        }
    }

    /// Waits for the next packet, at most this long.
    pub(super) fn wait_packet(&mut self, at_most: Duration) -> Result<Packet, ProcessError> {
        let until = std::time::Instant::now() + at_most;
        loop {
            if let Some(packet) = self.receive_packet()? {
                return Ok(packet);
            }
            let left = until.saturating_duration_since(std::time::Instant::now());
            if !wait_readable(self.as_fd(), left)? {
                let waited_ms = u64::try_from(at_most.as_millis()).unwrap_or(u64::MAX);
                return Err(ProcessError::ShimSilent { waited_ms });
            }
        }
    }

    fn receive_packet(&mut self) -> Result<Option<Packet>, ProcessError> {
        let mut bytes = [0; PACKET_BYTES];
        match packet::receive(self.as_fd(), &mut bytes) {
            Ok((0, _)) => Err(ProcessError::ShimGone),
            Ok((length, descriptors)) => {
                let message = FromShim::decode(&bytes[..length]);
                Ok(Some((
                    message.map_err(|source| ProcessError::Protocol { source })?,
                    descriptors,
                )))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(ProcessError::system("read the control socket")(error)),
        }
    }

    /// Sends a packet with descriptors.
    pub(super) fn send(&self, message: &ToShim, descriptors: &[RawFd]) -> Result<(), ProcessError> {
        match packet::send(self.as_fd(), &message.encode(), descriptors) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(ProcessError::ShimGone),
            Err(error) if error.raw_os_error() == Some(libc::ECONNRESET) => Err(ProcessError::ShimGone),
            other => other.map_err(ProcessError::system("write the control socket")),
        }
    }

    /// Nobody reads this stream any more: the program gets SIGPIPE when it next writes. What it has written so far
    /// stays in the log.
    ///
    /// # Errors
    /// `ShimGone`, or a socket that cannot be written.
    pub fn close_stream(&self, stream: Stream) -> Result<(), ProcessError> {
        self.send(&ToShim::CloseStream(stream), &[])
    }

    /// The starter has read this stream's log so far: what it has not read is not dropped, and the program waits.
    ///
    /// # Errors
    /// As [`Control::close_stream`].
    pub fn seen(&self, stream: Stream, offset: u64) -> Result<(), ProcessError> {
        self.send(&ToShim::Seen { stream, offset }, &[])
    }

    /// The starter has closed its end of the program's standard input; the shim closes its own.
    ///
    /// # Errors
    /// As [`Control::close_stream`].
    pub fn close_stdin(&self) -> Result<(), ProcessError> {
        self.send(&ToShim::CloseStdin, &[])
    }

    /// Passes the terminal's size on.
    ///
    /// # Errors
    /// As [`Control::close_stream`].
    pub fn set_window(&self, window: Window) -> Result<(), ProcessError> {
        self.send(&ToShim::Window(window), &[])
    }

    /// Asks for a stop. The shim notes it in the stop file before it acts.
    ///
    /// # Errors
    /// As [`Control::close_stream`].
    pub fn stop(&self, slot: &Slot) -> Result<(), ProcessError> {
        self.send(&ToShim::Stop(slot.encode()), &[])
    }

    /// Leaves the run to itself: the starter's end means nothing from now on.
    ///
    /// # Errors
    /// As [`Control::close_stream`].
    pub fn detach(self) -> Result<(), ProcessError> {
        self.send(&ToShim::Detach, &[])
    }
}

/// The error behind a stage's number.
pub(super) fn refused(stage: Stage, errno: i32) -> ProcessError {
    ProcessError::StartRefused {
        stage,
        source: io::Error::from_raw_os_error(errno),
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Control {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}
