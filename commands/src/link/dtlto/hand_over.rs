//! Between lld and the process that started it: a job file's name one way, an exit code back.
//!
//! lld starts a program for its backends and waits until it ends. That program is this one again, which only hands the
//! job file over to the process that has the warm compilers, the state and its lock. They meet at a private socket in the
//! state directory ([`distlto_prepare::private_socket`]). Knows nothing of job files.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use distlto_prepare::io_error::IoError;
use distlto_prepare::message::say;
use distlto_prepare::private_socket::{self, PrivateSocket};

/// The first argument of the program that lld starts; the state directory follows in the same word.
const ARGUMENT: &str = "--distlto-hand-over=";
/// The socket's folder in the state directory. Its name is a temporary's, so that it is swept after a killed run.
const FOLDER: &str = ".distlto-tmp-hand-over";
/// What a request ends with that is not answered.
const FAILED: u8 = 1;

/// The side that runs the jobs.
#[derive(Debug)]
pub struct HandOver {
    socket: PrivateSocket,
    state: String,
}

/// A job file that lld waits for.
#[derive(Debug)]
pub struct JobFileRequest {
    /// The job file, relative to lld's directory.
    pub job_file: PathBuf,
    stream: UnixStream,
    /// What it will end with.
    code: u8,
}

impl HandOver {
    /// Listens in a state directory that is held.
    pub fn listen(state: &str) -> Result<Self, IoError> {
        let socket = PrivateSocket::listen(&Path::new(state).join(FOLDER))?;
        Ok(Self { socket, state: state.to_owned() })
    }

    /// The argument for the program that lld starts.
    pub fn argument(&self) -> String {
        format!("{ARGUMENT}{}", self.state)
    }

    /// Waits for the next job file; `None` once the other side of `end` is gone.
    pub fn next(&mut self, end: BorrowedFd<'_>) -> io::Result<Option<JobFileRequest>> {
        let message = self.socket.next(end)?;
        Ok(message.map(|message| JobFileRequest {
            job_file: PathBuf::from(OsString::from_vec(message.bytes)),
            stream: message.stream,
            code: FAILED,
        }))
    }
}

impl JobFileRequest {
    /// Has the program that lld waits for end. A linker that is gone is no error.
    pub fn answer(mut self, code: u8) {
        self.code = code;
    }
}

impl Drop for JobFileRequest {
    fn drop(&mut self) {
        let _ = self.stream.write_all(&[self.code]);
    }
}

/// Whether this process is the program that lld starts; it has ended its work then.
pub fn serve(arguments: impl Iterator<Item = OsString>) -> Option<u8> {
    let arguments: Vec<OsString> = arguments.skip(1).collect();
    let state = arguments.first()?.as_bytes().strip_prefix(ARGUMENT.as_bytes())?;
    let job_file = arguments.last()?;
    Some(hand_over(Path::new(OsStr::from_bytes(state)), job_file).unwrap_or_else(|error| {
        say(format_args!("distlto: the link that started this linker does not answer: {error}"));
        1
    }))
}

fn hand_over(state: &Path, job_file: &OsStr) -> io::Result<u8> {
    let mut stream = private_socket::send(&state.join(FOLDER), job_file.as_bytes())?;
    let mut code = [0];
    stream.read_exact(&mut code)?;
    Ok(code[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    use distlto_prepare::write::TEMPORARY_PREFIX;

    #[test]
    fn a_job_file_goes_over_and_a_code_comes_back() {
        let place = tempfile::tempdir().expect("a directory");
        let text = place.path().to_str().expect("UTF-8");
        let mut here = HandOver::listen(text).expect("listens");
        let (end, _over) = io::pipe().expect("a pipe");
        let name = OsStr::from_bytes(b"out/p \xff.1.dist-file.json").to_owned();
        let arguments = ["distlto".into(), here.argument().into(), "-j3".into(), name.clone()];
        let there = std::thread::spawn(move || serve(arguments.into_iter()));
        let request = here.next(end.as_fd()).expect("no error").expect("a request");
        assert_eq!(request.job_file, PathBuf::from(name));
        request.answer(7);
        assert_eq!(there.join().expect("ended"), Some(7));
        drop(here);
        assert_eq!(std::fs::read_dir(&place).expect("a directory").count(), 0);
        assert_eq!(serve(["distlto".into(), "link".into()].into_iter()), None);
        assert!(FOLDER.starts_with(TEMPORARY_PREFIX));
    }
}
