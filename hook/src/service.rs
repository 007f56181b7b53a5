//! What this process is to do, asked of the service that the environment names.
//!
//! Knows nothing of linkers but that they are told more. A process that finds no service is as it would be without this library.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};

use crate::linker::{self, Service};
use crate::program::Main;
use crate::protocol::{Role, SERVICE, SERVICE_SOCKET, greeting};
use crate::socket;
use crate::trace;

/// The variable's name for libc.
const VARIABLE: &CStr = c"DISTLTO_SERVICE";

/// Has the program that this process becomes ask again.
pub fn remember(folder: &CStr) {
    // SAFETY: both are C strings; other threads are about to end.
    unsafe { libc::setenv(VARIABLE.as_ptr(), folder.as_ptr(), 1) };
}

/// What is to run in the place of this process's `main`, if something is.
pub fn main_of(main: Main) -> Option<Main> {
    let folder = std::env::var_os(SERVICE)?;
    let folder = CString::new(folder.into_encoded_bytes()).ok()?;
    let socket = socket::connect(&folder, SERVICE_SOCKET).ok()?;
    let (role, files) = role(&socket).ok()?;
    let mut files = files.into_iter();
    let strings = if role == Role::None { None } else { files.next() };
    if let Some(memory) = files.next() {
        trace::begin(&memory);
    }
    let mut strings = File::from(strings?);
    let mut text = Vec::new();
    strings.rewind().and_then(|()| strings.read_to_end(&mut text)).ok()?;
    let main = linker::begin(main, Service { socket, folder, collects: role == Role::Collector }, &text)?;
    // A linker whose driver was killed would go on for nobody.
    // SAFETY: a plain system call.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) };
    // The linker's own children are nobody's business.
    // SAFETY: the process has one thread; the name is a C string.
    unsafe { libc::unsetenv(VARIABLE.as_ptr()) };
    Some(main)
}

/// What the service answers.
fn role(socket: &OwnedFd) -> io::Result<(Role, Vec<OwnedFd>)> {
    socket::send(socket.as_fd(), &greeting())?;
    let mut role = [0];
    let (_, files) = socket::receive_packet(socket.as_fd(), &mut role)?;
    let role = Role::from_byte(role[0]).ok_or(io::ErrorKind::InvalidData)?;
    Ok((role, files))
}
