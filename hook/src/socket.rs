//! The server's sockets: whole messages, and descriptors that travel with a byte (unix(7), `SCM_RIGHTS`).
//!
//! Knows nothing of jobs. Never raises SIGPIPE: the client may be gone.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Descriptors that one byte may carry.
const LIMIT: usize = 3;

/// Room for the ancillary message, aligned as `cmsghdr` must be.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Sends all of `bytes`.
pub fn send(socket: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        // SAFETY: the pointer and length are those of a live slice.
        let sent =
            unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
        match usize::try_from(sent) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(_) => retry()?,
        }
    }
    Ok(())
}

/// Fills `bytes`; an error when the peer closes before that.
pub fn receive(socket: BorrowedFd<'_>, mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        // SAFETY: the pointer and length are those of a live, exclusively borrowed slice.
        let got = unsafe { libc::recv(socket.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        match usize::try_from(got) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(got) => bytes = &mut bytes[got..],
            Err(_) => retry()?,
        }
    }
    Ok(())
}

/// One byte and the descriptors that came with it; `None` when the peer has closed.
pub fn receive_descriptors(socket: BorrowedFd<'_>) -> io::Result<Option<(u8, Vec<OwnedFd>)>> {
    let mut byte = 0u8;
    let mut control = Control([0; 64]);
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: msghdr is plain data for which all zeroes is valid (on some targets it has private padding).
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<Control>() as _;
    let got = loop {
        // SAFETY: every pointer in `message` is to a live local with the length given beside it.
        let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
        if got >= 0 {
            break got;
        }
        retry()?;
    };
    let mut descriptors = Vec::with_capacity(LIMIT);
    // SAFETY: `message` was filled by recvmsg, so CMSG_FIRSTHDR and CMSG_NXTHDR walk headers within `control`,
    // and the data of an SCM_RIGHTS header is an array of descriptors that are ours alone from here on.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while let Some(found) = header.as_ref() {
            if found.cmsg_level == libc::SOL_SOCKET && found.cmsg_type == libc::SCM_RIGHTS {
                let bytes = found.cmsg_len - libc::CMSG_LEN(0) as usize;
                let data = libc::CMSG_DATA(found).cast::<RawFd>();
                for index in 0..bytes / size_of::<RawFd>() {
                    descriptors.push(OwnedFd::from_raw_fd(data.add(index).read_unaligned()));
                }
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
    }
    Ok((got == 1).then_some((byte, descriptors)))
}

/// The last system call's error, unless a signal merely interrupted it.
fn retry() -> io::Result<()> {
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        error => Err(error),
    }
}
