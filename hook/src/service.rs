//! The task of this process, from the service that the environment names.
//!
//! Linkers get further instructions; nothing else here depends on them. Without a service the process runs as without
//! this library.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};

use crate::linker::{self, Service};
use crate::program::Main;
use crate::protocol::{Role, SERVICE_SOCKET, greeting};
use crate::socket;
use crate::trace;

/// The variable's name for libc.
const VARIABLE: &CStr = c"DISTLTO_SERVICE";

/// Makes the program that this process becomes ask again.
pub fn remember(folder: &CStr) {
    // SAFETY: both are C strings; other threads are about to end.
    unsafe { libc::setenv(VARIABLE.as_ptr(), folder.as_ptr(), 1) };
}

/// Returns the replacement of this process's `main`, if there is one.
pub fn main_of(main: Main) -> Option<Main> {
    let folder = folder()?.to_owned();
    let socket = socket::connect(&folder, SERVICE_SOCKET).ok()?;
    socket::send(socket.as_fd(), &greeting()).ok()?;
    let (role, files) = role(&socket).ok()?;
    if matches!(role, Role::End | Role::Refused) {
        // SAFETY: ends the process, which has done nothing yet.
        unsafe { libc::_exit((role == Role::Refused).into()) };
    }
    let mut files = files.into_iter();
    let strings = if role == Role::None { None } else { files.next() };
    let memory = files.next_back();
    if let Some(memory) = &memory {
        trace::begin(memory.as_fd());
    }
    let text = text_of(strings?).ok()?;
    let kept = files.next().map_or(Ok(Vec::new()), text_of).ok()?;
    let main = linker::begin(main, Service { socket, folder, role }, &text, &kept)?;
    // The linker of a killed driver would run on for nothing.
    // SAFETY: a plain system call.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) };
    // The linker's own children do not use the service.
    // SAFETY: the process has one thread; the name is a C string.
    unsafe { libc::unsetenv(VARIABLE.as_ptr()) };
    Some(main)
}

/// The folder of the service's socket.
fn folder<'a>() -> Option<&'a CStr> {
    // SAFETY: a C string. It lives until the variable is set anew; a process does that only directly before its end.
    unsafe {
        let folder = libc::getenv(VARIABLE.as_ptr());
        (!folder.is_null()).then(|| CStr::from_ptr(folder))
    }
}

fn text_of(file: OwnedFd) -> io::Result<Vec<u8>> {
    let mut file = File::from(file);
    let mut text = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut text)?;
    Ok(text)
}

/// Reads the service's answer.
fn role(socket: &OwnedFd) -> io::Result<(Role, Vec<OwnedFd>)> {
    let mut role = [0];
    let (_, files) = socket::receive_packet(socket.as_fd(), &mut role)?;
    let role = Role::from_byte(role[0]).ok_or(io::ErrorKind::InvalidData)?;
    Ok((role, files))
}
