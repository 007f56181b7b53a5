//! Sockets: whole messages, packets, and descriptors that travel with them (unix(7), `SCM_RIGHTS`).
//!
//! Independent of the messages' contents. Never raises SIGPIPE: the peer may be gone.

use std::ffi::CStr;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::system::check;

/// Descriptors that one packet may carry.
const LIMIT: usize = 4;

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

/// Receives the available bytes, up to the length of `bytes`, or one packet, with its descriptors. Returns no bytes
/// when the peer has closed.
pub fn receive_packet(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut control = Control([0; 64]);
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut message = message(&mut part);
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<Control>() as _;
    let got = loop {
        // SAFETY: every pointer in `message` is to a live local with the length given beside it.
        let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
        match usize::try_from(got) {
            Ok(got) => break got,
            Err(_) => retry()?,
        }
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
    // The kernel drops descriptors that this process has no room for, and delivers the packet without them.
    if message.msg_flags & libc::MSG_CTRUNC != 0 {
        return Err(io::Error::from_raw_os_error(libc::EMFILE));
    }
    Ok((got, descriptors))
}

/// Sends one packet with these descriptors, of which there are [`LIMIT`] at most.
pub fn send_packet(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    if descriptors.len() > LIMIT {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut control = Control([0; 64]);
    // sendmsg only reads the bytes.
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut message = message(&mut part);
    message.msg_control = (&raw mut control).cast();
    let size = size_of_val(descriptors) as u32;
    // SAFETY: CMSG_SPACE and CMSG_LEN are arithmetic; there is room for one header with so many descriptors in `control`,
    // to which `message` points.
    unsafe {
        message.msg_controllen = libc::CMSG_SPACE(size) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size) as _;
        let data = libc::CMSG_DATA(header).cast::<RawFd>();
        for (place, descriptor) in descriptors.iter().enumerate() {
            data.add(place).write_unaligned(descriptor.as_raw_fd());
        }
    }
    loop {
        // SAFETY: every pointer in `message` is to a live value with the length given beside it.
        if unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) } >= 0 {
            return Ok(());
        }
        retry()?;
    }
}

/// Connects to the packet socket of this name in a folder. The folder's path may be longer than an address (unix(7)).
pub fn connect(folder: &CStr, name: &str) -> io::Result<OwnedFd> {
    // SAFETY: a C string; the descriptor is ours.
    let folder = unsafe {
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
        OwnedFd::from_raw_fd(check(libc::open(folder.as_ptr(), flags))?)
    };
    // SAFETY: sockaddr_un is plain data for which all zeroes is valid.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    address.sun_family = libc::AF_UNIX as _;
    let path = format!("/proc/self/fd/{}/{name}", folder.as_raw_fd());
    for (place, byte) in address.sun_path.iter_mut().zip(path.bytes()) {
        *place = byte as _;
    }
    // SAFETY: the address is a live local of the length given, and ends with NUL, as the path is short.
    unsafe {
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        let socket = OwnedFd::from_raw_fd(check(libc::socket(libc::AF_UNIX, kind, 0))?);
        let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        check(libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length))?;
        if user_of_peer(&socket)? != libc::geteuid() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(socket)
    }
}

/// The user of the process that listens (unix(7), `SO_PEERCRED`). The folder of a service that has ended may be made
/// again by another user.
fn user_of_peer(socket: &OwnedFd) -> io::Result<libc::uid_t> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the pointers are to live locals; the length is that of the first.
    check(unsafe {
        let place = (&raw mut peer).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, place, &raw mut length)
    })?;
    Ok(peer.uid)
}

/// A message of one part.
fn message(part: &mut libc::iovec) -> libc::msghdr {
    // SAFETY: msghdr is plain data for which all zeroes is valid (on some targets it has private padding).
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = part;
    message.msg_iovlen = 1;
    message
}

/// The last system call's error, unless a signal merely interrupted it.
fn retry() -> io::Result<()> {
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        error => Err(error),
    }
}
