//! A socket on which processes of one user send each other messages.
//!
//! It lies in a folder of mode 0700, and each peer is asked for its user (unix(7), `SO_PEERCRED`). A message is its length in
//! four bytes, little-endian, and its bytes. Peers are heard side by side, so that one which says nothing keeps nobody
//! waiting. Knows nothing of what the messages hold.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::io_error::IoError;

/// The socket in its folder.
const NAME: &str = "socket";
/// What the length of a message takes.
const HEAD: usize = 4;
/// The longest message.
const LONGEST: usize = 1 << 16;
/// How long a peer may take for its message.
const SILENCE: Duration = Duration::from_secs(60);
/// So many peers are heard at once; the one that has been silent for longest makes room.
const PEERS: usize = 64;

/// The side that is called.
#[derive(Debug)]
pub struct PrivateSocket {
    folder: PathBuf,
    listener: UnixListener,
    peers: Vec<Peer>,
}

/// Who has not said all yet.
#[derive(Debug)]
struct Peer {
    stream: UnixStream,
    said: Vec<u8>,
    since: Instant,
}

/// A whole message, and the way back to its sender.
#[derive(Debug)]
pub struct Message {
    /// What it says.
    pub bytes: Vec<u8>,
    /// Where an answer goes.
    pub stream: UnixStream,
}

impl PrivateSocket {
    /// Listens in a folder of its own, which is made. What a killed run left in its place goes; so the caller holds a lock.
    pub fn listen(folder: &Path) -> Result<Self, IoError> {
        remove(folder).map_err(IoError::on("remove", folder))?;
        DirBuilder::new().mode(0o700).create(folder).map_err(IoError::on("create directory", folder))?;
        let listen = |path: &Path| {
            let listener = UnixListener::bind(path)?;
            listener.set_nonblocking(true).map(|()| listener)
        };
        let listener = at_socket(folder, listen).map_err(IoError::on("listen in", folder))?;
        Ok(Self { folder: folder.to_owned(), listener, peers: Vec::new() })
    }

    /// Waits for the next message; `None` once `end` can be read from, or its other side is gone.
    pub fn next(&mut self, end: BorrowedFd<'_>) -> io::Result<Option<Message>> {
        loop {
            let left = self.peers.iter().map(|peer| SILENCE.saturating_sub(peer.since.elapsed())).min();
            let left = left.map(Timespec::try_from).transpose().map_err(io::Error::other)?;
            let streams = self.peers.iter().map(|peer| peer.stream.as_fd());
            let watched = [end, self.listener.as_fd()].into_iter().chain(streams);
            let mut watched: Vec<_> =
                watched.map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN)).collect();
            match poll(&mut watched, left.as_ref()) {
                Err(Errno::INTR) => continue,
                polled => polled?,
            };
            let is_ready: Vec<bool> = watched.iter().map(|file| !file.revents().is_empty()).collect();
            // From the last one, since who is done leaves the list.
            for at in (0..self.peers.len()).rev().filter(|at| is_ready[at + 2]) {
                match self.peers[at].hear() {
                    Ok(false) => {}
                    Ok(true) => return self.peers.swap_remove(at).message().map(Some),
                    // Who hangs up or says nonsense has no answer to get.
                    Err(_) => drop(self.peers.swap_remove(at)),
                }
            }
            if is_ready[1] {
                self.accept()?;
            } else if is_ready[0] {
                return Ok(None);
            }
            self.peers.retain(|peer| peer.since.elapsed() < SILENCE);
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        let stream = match self.listener.accept() {
            Ok((stream, _)) => stream,
            // It has hung up already.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionAborted) => {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if !is_own(&stream) {
            return Ok(());
        }
        stream.set_nonblocking(true)?;
        if self.peers.len() == PEERS
            && let Some(oldest) = (0..PEERS).min_by_key(|&at| self.peers[at].since)
        {
            self.peers.swap_remove(oldest);
        }
        self.peers.push(Peer { stream, said: Vec::new(), since: Instant::now() });
        Ok(())
    }
}

impl Drop for PrivateSocket {
    fn drop(&mut self) {
        // The next run removes it, if this one cannot.
        let _ = remove(&self.folder);
    }
}

impl Peer {
    /// Takes what there is; whether that is all.
    fn hear(&mut self) -> io::Result<bool> {
        loop {
            let whole = match self.said.first_chunk::<HEAD>() {
                Some(length) => HEAD + u32::from_le_bytes(*length) as usize,
                None => HEAD,
            };
            if whole > HEAD + LONGEST {
                return Err(ErrorKind::InvalidData.into());
            }
            let missing = whole - self.said.len();
            if missing == 0 {
                return Ok(true);
            }
            let mut part = vec![0; missing];
            match self.stream.read(&mut part) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.said.extend(&part[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    fn message(mut self) -> io::Result<Message> {
        self.stream.set_nonblocking(false)?;
        Ok(Message { bytes: self.said.split_off(HEAD), stream: self.stream })
    }
}

/// Says something to who listens in a folder. The answer comes by the stream.
pub fn send(folder: &Path, message: &[u8]) -> io::Result<UnixStream> {
    let length = u32::try_from(message.len()).map_err(|_| ErrorKind::InvalidInput)?;
    let mut stream = at_socket(folder, |path| UnixStream::connect(path))?;
    stream.write_all(&[&length.to_le_bytes(), message].concat())?;
    Ok(stream)
}

/// Whether the peer is a process of the same user.
#[cfg(target_os = "linux")]
fn is_own(stream: &UnixStream) -> bool {
    let peer = rustix::net::sockopt::socket_peercred(stream);
    peer.is_ok_and(|peer| peer.uid == rustix::process::geteuid())
}

/// The folder alone keeps others out.
#[cfg(not(target_os = "linux"))]
fn is_own(_: &UnixStream) -> bool {
    true
}

/// Does something with the socket's path. The address of a socket has at most 107 bytes, which a folder's path may exceed.
fn at_socket<T>(folder: &Path, body: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    if cfg!(target_os = "linux") {
        let folder = File::open(folder)?;
        body(&Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(NAME))
    } else {
        body(&folder.join(NAME))
    }
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::thread;

    /// A socket below a folder whose name is too long for an address, and what ends it.
    fn socket() -> (tempfile::TempDir, PathBuf, PrivateSocket, (io::PipeReader, io::PipeWriter)) {
        let place = tempfile::tempdir().expect("a folder");
        let above = place.path().join("d".repeat(120));
        fs::create_dir(&above).expect("made");
        let folder = above.join("meeting");
        let socket = PrivateSocket::listen(&folder).expect("listens");
        (place, folder, socket, io::pipe().expect("a pipe"))
    }

    #[test]
    fn who_is_silent_keeps_nobody_waiting() {
        let (_place, folder, mut socket, (end, _over)) = socket();
        assert_eq!(fs::metadata(&folder).expect("a folder").permissions().mode() & 0o777, 0o700);
        // Some say nothing, one says half, one hangs up, one says too much, and more come than are heard at once.
        let connect = || at_socket(&folder, |path| UnixStream::connect(path)).expect("connected");
        let silent: Vec<_> = (0..3).map(|_| connect()).collect();
        let mut half = connect();
        half.write_all(&[3, 0]).expect("written");
        drop(connect());
        let mut long = connect();
        long.write_all(&u32::MAX.to_le_bytes()).expect("written");
        let caller = thread::spawn({
            let folder = folder.clone();
            move || {
                let mut code = [0];
                send(&folder, b"work").and_then(|mut stream| stream.read_exact(&mut code)).map(|()| code[0])
            }
        });
        let mut message = socket.next(end.as_fd()).expect("no error").expect("a message");
        assert_eq!(message.bytes, b"work");
        message.stream.write_all(&[7]).expect("answered");
        assert_eq!(caller.join().expect("ended").expect("answered"), 7);
        half.write_all(&[0, 0, b'a', b'b', b'c', b'd']).expect("written");
        assert_eq!(socket.next(end.as_fd()).expect("no error").expect("a message").bytes, b"abc");
        let mut empty = send(&folder, b"").expect("sent");
        drop(socket.next(end.as_fd()).expect("no error").expect("a message"));
        assert_eq!(empty.read(&mut [0]).expect("the end"), 0);
        let crowd: Vec<_> = (0..PEERS + 1)
            .map(|_| {
                let peer = connect();
                socket.accept().expect("accepted");
                peer
            })
            .collect();
        assert_eq!(socket.peers.len(), PEERS);
        // Those that came first had to go.
        assert_eq!((&silent[0]).read(&mut [0]).expect("the end"), 0);
        drop((silent, crowd));
        drop(socket);
        assert!(!folder.exists());
    }

    #[test]
    fn waiting_ends_with_what_it_is_for() {
        let (_place, folder, mut socket, (end, over)) = socket();
        let _silent = at_socket(&folder, |path| UnixStream::connect(path)).expect("connected");
        drop(over);
        assert!(socket.next(end.as_fd()).expect("no error").is_none());
        // What a killed run left is no obstacle.
        std::mem::forget(socket);
        PrivateSocket::listen(&folder).expect("listens again");
    }
}
