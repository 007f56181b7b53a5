//! Between lld and the process that started it: a job file's name one way, an exit code back.
//!
//! lld starts a program for its backends and waits until it ends. That program is this one again, which only hands the
//! job file over to the process that has the warm compilers, the state and its lock. They meet at a socket in the state
//! directory, which is opened first: a socket's address is at most 107 bytes long, a directory's path is not. Knows
//! nothing of job files.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use distlto_prepare::io_error::IoError;
use distlto_prepare::write::remove;

/// The first argument of the program that lld starts; the state directory follows in the same word.
const ARGUMENT: &str = "--distlto-hand-over=";
/// The socket in the state directory; a temporary, so that what a killed run leaves is swept.
const SOCKET: &str = ".distlto-tmp-hand-over";
/// The longest name of a job file that is taken.
const LONGEST: usize = 1 << 16;
/// What a request ends with that is not answered.
const FAILED: u8 = 1;

/// The side that runs the jobs.
#[derive(Debug)]
pub struct HandOver {
    listener: UnixListener,
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
        let place = Path::new(state).join(SOCKET);
        // A killed run's.
        remove(&place)?;
        let listener = at_socket(Path::new(state), |path| UnixListener::bind(path));
        let listener = listener.map_err(IoError::on("listen at", &place))?;
        Ok(Self { listener, state: state.to_owned() })
    }

    /// What the program that lld starts is to be told.
    pub fn argument(&self) -> String {
        format!("{ARGUMENT}{}", self.state)
    }

    /// Ready to be read from when there is a job file.
    pub fn ready(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// The next job file.
    pub fn accept(&self) -> io::Result<JobFileRequest> {
        let (mut stream, _) = self.listener.accept()?;
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut name = vec![0; length];
        stream.read_exact(&mut name)?;
        Ok(JobFileRequest { job_file: PathBuf::from(OsString::from_vec(name)), stream, code: FAILED })
    }
}

impl Drop for HandOver {
    fn drop(&mut self) {
        // The next run removes it, if this one cannot.
        let _ = remove(&Path::new(&self.state).join(SOCKET));
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
        eprintln!("distlto: the link that started this linker does not answer: {error}");
        1
    }))
}

fn hand_over(state: &Path, job_file: &OsStr) -> io::Result<u8> {
    let mut stream = at_socket(state, |path| UnixStream::connect(path))?;
    let name = job_file.as_bytes();
    let length = u32::try_from(name.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    stream.write_all(&[&length.to_le_bytes(), name].concat())?;
    let mut code = [0];
    stream.read_exact(&mut code)?;
    Ok(code[0])
}

/// Does something with the socket's path, which is short on Linux wherever the directory is.
fn at_socket<T>(state: &Path, body: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    if cfg!(target_os = "linux") {
        let directory = File::open(state)?;
        body(&Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(SOCKET))
    } else {
        body(&state.join(SOCKET))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use distlto_prepare::write::TEMPORARY_PREFIX;

    #[test]
    fn a_job_file_goes_over_and_a_code_comes_back() {
        let place = tempfile::tempdir().expect("a directory");
        let state = place.path().join("d".repeat(120));
        std::fs::create_dir(&state).expect("made");
        let text = state.to_str().expect("UTF-8");
        let here = HandOver::listen(text).expect("listens");
        let name = OsStr::from_bytes(b"out/p \xff.1.dist-file.json").to_owned();
        let arguments = ["distlto".into(), here.argument().into(), "-j3".into(), name.clone()];
        let there = std::thread::spawn(move || serve(arguments.into_iter()));
        let request = here.accept().expect("a request");
        assert_eq!(request.job_file, PathBuf::from(name));
        request.answer(7);
        assert_eq!(there.join().expect("ended"), Some(7));
        drop(here);
        assert_eq!(std::fs::read_dir(&state).expect("a directory").count(), 0);
        assert_eq!(serve(["distlto".into(), "link".into()].into_iter()), None);
        assert!(SOCKET.starts_with(TEMPORARY_PREFIX));
    }
}
