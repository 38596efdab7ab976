//! One packet with its descriptors, in or out of the control socket.

use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

/// At most this many descriptors go with one packet.
pub const DESCRIPTORS: usize = 4;

/// Room for a control message with [`DESCRIPTORS`] descriptors, aligned as `cmsghdr` wants it.
#[repr(C, align(8))]
struct Ancillary([u8; 64]);

/// Sends one packet. Never raises SIGPIPE; waits only if the socket does.
///
/// # Errors
/// `WouldBlock` when the other side does not read, `BrokenPipe` when it is gone.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[RawFd]) -> io::Result<()> {
    assert!(
        descriptors.len() <= DESCRIPTORS,
        "a packet carries at most {DESCRIPTORS} descriptors"
    );
    let mut part = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let mut ancillary = Ancillary([0; 64]);
    // SAFETY: a zeroed msghdr is a valid, empty one.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    if !descriptors.is_empty() {
        let length = size_of_val(descriptors);
        header.msg_control = ancillary.0.as_mut_ptr().cast();
        // SAFETY: pure arithmetic; the result is at most 64 (a header of 16 bytes and 4 descriptors of 4).
        header.msg_controllen = unsafe { libc::CMSG_SPACE(length as u32) } as _;
        // SAFETY: `header` has a control buffer of msg_controllen bytes, so the first message exists and has room
        // for `length` bytes of data.
        unsafe {
            let message = libc::CMSG_FIRSTHDR(&raw const header);
            (*message).cmsg_level = libc::SOL_SOCKET;
            (*message).cmsg_type = libc::SCM_RIGHTS;
            (*message).cmsg_len = libc::CMSG_LEN(length as u32) as _;
            std::ptr::copy_nonoverlapping(descriptors.as_ptr(), libc::CMSG_DATA(message).cast(), descriptors.len());
        }
    }
    // SAFETY: every pointer in `header` outlives the call.
    match unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Receives one packet into `bytes`; length 0 means that the other side is gone.
///
/// # Errors
/// `WouldBlock` when the socket does not wait and nothing is there, `InvalidData` when the packet was cut.
pub fn receive(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut part = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    let mut ancillary = Ancillary([0; 64]);
    // SAFETY: a zeroed msghdr is a valid, empty one.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = ancillary.0.as_mut_ptr().cast();
    header.msg_controllen = ancillary.0.len() as _;
    let length = loop {
        // SAFETY: every pointer in `header` outlives the call and is writable.
        let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_CMSG_CLOEXEC) };
        match usize::try_from(received) {
            Ok(length) => break length,
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                // The starter ended with packets of ours unread.
                error if error.raw_os_error() == Some(libc::ECONNRESET) => {
                    return Ok((0, Vec::new()));
                }
                error => return Err(error),
            },
        }
    };
    let descriptors = take_descriptors(&header);
    if header.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok((length, descriptors))
}

fn take_descriptors(header: &libc::msghdr) -> Vec<OwnedFd> {
    let mut taken = Vec::new();
    // SAFETY: the kernel filled `header`; the CMSG functions stay inside msg_controllen, and every descriptor it
    // carries is new in this process and owned by nobody yet.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while !message.is_null() {
            if (*message).cmsg_level == libc::SOL_SOCKET && (*message).cmsg_type == libc::SCM_RIGHTS {
                let bytes = (*message).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                let data = libc::CMSG_DATA(message).cast::<RawFd>();
                for index in 0..bytes / size_of::<RawFd>() {
                    taken.push(OwnedFd::from_raw_fd(data.add(index).read_unaligned()));
                }
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
    taken
}
