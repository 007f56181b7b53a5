//! The socket for the processes of a build: connections, packets, and the files that travel with them.
//!
//! It lies in a folder of mode 0700, and each peer's user is checked (unix(7), `SO_PEERCRED`). A process for which there
//! is no descriptor is turned away, and goes on by itself. Does not decide about answers.

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Seek};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use distlto_prepare::io_error::IoError;
use distlto_prepare::leftovers::RunDirectory;
use distlto_prepare::limits::SystemLimit;
use distlto_prepare::mutex::lock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

use super::protocol::{Answer, Compiled, ENDED, PACKET, Question, RESOLUTIONS, SERVICE_SOCKET};
use crate::scratch::for_socket;

/// Processes that may wait until their connection is accepted.
const BACKLOG: i32 = 1024;
/// Pause of a listener without any descriptor.
const PAUSE: Duration = Duration::from_millis(10);
/// Files that one packet may carry.
const FILES: usize = 3;

/// The socket to which processes connect.
pub struct Listener {
    folder: RunDirectory,
    socket: OwnedFd,
    /// A descriptor that makes room for a process that is turned away.
    spare: Mutex<Option<File>>,
}

/// The result of waiting for a packet.
pub enum Received<'b> {
    /// A packet, and the files that it carries.
    Packet(&'b [u8], [Option<File>; 2]),
    /// Nothing so far.
    Nothing,
    /// The peer is gone.
    Gone,
}

/// The result of waiting for a message of a linker.
pub enum Message<'b> {
    /// Its symbol resolution.
    Resolution(Option<File>),
    /// It has compiled a module: the object, and the module after its imports.
    Compiled(Compiled, Option<File>, Option<File>),
    /// A question, with the module's shard.
    Question(Question<'b>, Option<File>),
    /// It has all its objects, and waits for an answer to this ticket before it reads them.
    HasAll(u32),
    /// It has succeeded, and waits for an answer to this ticket before it ends.
    Succeeded(u32),
    /// Nothing so far.
    Nothing,
    /// It is gone.
    Gone,
}

/// The connection of one process.
pub struct Connection {
    socket: OwnedFd,
    /// Its process number.
    pub process: u32,
}

impl Listener {
    /// Listens in a folder of its own, which goes with it.
    pub fn new() -> Result<Self, IoError> {
        let folder = for_socket()?;
        let failed = || IoError::on("listen in", folder.path());
        let socket = listen(folder.path()).map_err(failed())?;
        let spare = Mutex::new(Some(File::open(folder.path()).map_err(failed())?));
        Ok(Self { folder, socket, spare })
    }

    /// The folder of the socket.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Waits for the next connection of this user; `None` once `end` can be read from, or its other side is gone.
    pub fn next(&self, end: BorrowedFd<'_>) -> io::Result<Option<Connection>> {
        loop {
            let mut watched =
                [end, self.socket.as_fd()].map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN));
            match poll(&mut watched, None) {
                Err(Errno::INTR) => continue,
                polled => polled?,
            };
            let is_over = !watched[0].revents().is_empty();
            if watched[1].revents().is_empty() {
                return Ok(None);
            }
            let socket = match rustix::net::accept_with(&self.socket, SocketFlags::CLOEXEC) {
                Ok(socket) => socket,
                // It has hung up already.
                Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => continue,
                Err(_) if is_over => return Ok(None),
                // Whatever the system lacks, a process is not to wait for ever.
                Err(_) => {
                    self.turn_away();
                    continue;
                }
            };
            let peer = rustix::net::sockopt::socket_peercred(&socket)?;
            if peer.uid == rustix::process::geteuid() {
                return Ok(Some(Connection {
                    socket,
                    process: peer.pid.as_raw_nonzero().get().unsigned_abs(),
                }));
            }
        }
    }

    /// Ends the next connection, whose process would wait for an answer otherwise.
    fn turn_away(&self) {
        let mut spare = lock(&self.spare);
        *spare = None;
        // It may have hung up. Dropping it ends the connection.
        drop(rustix::net::accept_with(&self.socket, SocketFlags::CLOEXEC));
        *spare = File::open(self.folder.path()).ok();
        drop(spare);
        // A link may be about to end.
        std::thread::sleep(PAUSE);
    }
}

fn listen(folder: &Path) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    let folder = File::open(folder)?;
    rustix::net::bind(&socket, &address_in(&folder)?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// The address of the socket in a folder. It has at most 107 bytes, which the folder's path may exceed.
fn address_in(folder: &File) -> io::Result<SocketAddrUnix> {
    Ok(SocketAddrUnix::new(format!("/proc/self/fd/{}/{SERVICE_SOCKET}", folder.as_raw_fd()))?)
}

impl Connection {
    /// Connects this process to the service in a folder, if that is this user's.
    pub fn connect(folder: &Path) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        let folder = File::open(folder)?;
        rustix::net::connect(&socket, &address_in(&folder)?)?;
        let peer = rustix::net::sockopt::socket_peercred(&socket)?;
        if peer.uid != rustix::process::geteuid() {
            return Err(ErrorKind::PermissionDenied.into());
        }
        Ok(Self { socket, process: peer.pid.as_raw_nonzero().get().unsigned_abs() })
    }

    /// Both ends of a connection, for a part of this program that speaks for a process.
    pub fn pair(process: u32) -> io::Result<[Self; 2]> {
        let kind = (AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (one, other) = rustix::net::socketpair(kind.0, kind.1, kind.2, None)?;
        Ok([one, other].map(|socket| Self { socket, process }))
    }

    /// Ends the connection for both ends.
    pub fn hang_up(&self) {
        // One that has ended is no error.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
    }

    /// The next packet; waits for it no longer than that, if there is a limit. `bytes` has room for the longest.
    pub fn receive<'b>(&self, bytes: &'b mut [u8], limit: Option<Duration>) -> io::Result<Received<'b>> {
        if let Some(limit) = limit {
            let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
            let mut watched = [PollFd::new(&self.socket, PollFlags::IN)];
            match poll(&mut watched, Some(&limit)) {
                Ok(0) | Err(Errno::INTR) => return Ok(Received::Nothing),
                polled => drop(polled?),
            }
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let message = loop {
            let mut parts = [IoSliceMut::new(bytes)];
            match rustix::net::recvmsg(&self.socket, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                // It was killed with something unread.
                Err(Errno::CONNRESET) => return Ok(Received::Gone),
                received => break received?,
            }
        };
        // The kernel drops files for which this process has no descriptor left, and delivers the packet without them.
        if message.flags.contains(ReturnFlags::CTRUNC) {
            return Err(Errno::MFILE.into());
        }
        let mut files = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                files.extend(received);
            }
        }
        let mut files = files.into_iter().map(File::from);
        Ok(match bytes.get(..message.bytes) {
            Some(packet) if message.bytes > 0 => Received::Packet(packet, [files.next(), files.next()]),
            _ => Received::Gone,
        })
    }

    /// Sends one packet. A process that is gone is no error: it needs no answer.
    pub fn send(&self, bytes: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(files)) {
            return Err(ErrorKind::InvalidInput.into());
        }
        loop {
            let parts = [IoSlice::new(bytes)];
            match rustix::net::sendmsg(&self.socket, &parts, &mut ancillary, SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                Ok(_) | Err(Errno::PIPE | Errno::CONNRESET) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The next message of a linker; waits for it no longer than that, if there is a limit. `bytes` has room for the
    /// longest packet.
    pub fn message<'b>(&self, bytes: &'b mut [u8], limit: Option<Duration>) -> Result<Message<'b>, IoError> {
        let (packet, [file, second]) = match self.receive(bytes, limit).map_err(heard)? {
            Received::Packet(packet, files) => (packet, files),
            Received::Nothing => return Ok(Message::Nothing),
            Received::Gone => return Ok(Message::Gone),
        };
        if packet == RESOLUTIONS {
            return Ok(Message::Resolution(file));
        }
        if let Some(compiled) = Compiled::from_bytes(packet) {
            return Ok(Message::Compiled(compiled, file, second));
        }
        let question = Question::from_bytes(packet).ok_or_else(|| heard(ErrorKind::InvalidData.into()))?;
        Ok(match (question.key.is_empty(), question.module) {
            (true, []) => Message::HasAll(question.ticket),
            (true, ENDED) => Message::Succeeded(question.ticket),
            _ => Message::Question(question, file),
        })
    }

    /// Answers a linker's question.
    pub fn answer(&self, ticket: u32, answer: Answer) -> Result<(), IoError> {
        self.send(&answer.to_bytes(ticket), &[]).map_err(IoError::on("answer", "the linker"))
    }

    /// Answers a linker's question with an object.
    pub fn give(&self, ticket: u32, object: &File) -> Result<(), IoError> {
        let packet = Answer::Object.to_bytes(ticket);
        self.send(&packet, &[object.as_fd()]).map_err(IoError::on("answer", "the linker"))
    }

    /// Waits until a linker is gone.
    pub fn wait(&self) -> Result<(), IoError> {
        let mut bytes = vec![0; PACKET];
        while !matches!(self.receive(&mut bytes, None).map_err(heard)?, Received::Gone) {}
        Ok(())
    }

    /// Whether a linker is gone.
    pub fn is_gone(&self) -> Result<bool, IoError> {
        let mut bytes = vec![0; PACKET];
        let received = self.receive(&mut bytes, Some(Duration::ZERO)).map_err(heard)?;
        Ok(matches!(received, Received::Gone))
    }

    /// Ends a linker after an error, and waits until it is gone. It would go on by itself if it lost its service.
    pub fn end(&self) {
        if self.answer(0, Answer::End(1)).is_err() {
            return;
        }
        let mut bytes = vec![0; PACKET];
        loop {
            match self.receive(&mut bytes, None) {
                // Asked before the linker read its end, perhaps with a shard that finds no descriptor here.
                Ok(Received::Packet(..) | Received::Nothing) => {}
                Err(error) if SystemLimit::of_io(&error) == Some(SystemLimit::Files) => {}
                Ok(Received::Gone) | Err(_) => return,
            }
        }
    }
}

/// The error of a linker that cannot be heard.
pub fn heard(error: io::Error) -> IoError {
    IoError::on("hear", "the linker")(error)
}

/// Reads a received file from its start: the sender's file offset is shared.
pub fn read(file: Option<File>) -> io::Result<Vec<u8>> {
    let mut file = file.ok_or(ErrorKind::InvalidData)?;
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
