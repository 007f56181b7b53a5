//! The messages between the hook and distlto. Both sides compile this one file.
//!
//! # The fork server
//!
//! Over the server's own socket (a stream, its standard input): the server's [`Hello`]; then for every job one byte
//! [`JOB`] with four descriptors: the job's control socket, its stdout, its stderr, memory for its notes ([`Note`]);
//! and at most one byte [`MANY`]. Over the control socket: the request, then [`Reply`] messages one way and signal
//! numbers (one byte each) the other. A client that closes it gives the job up.
//!
//! # The service
//!
//! A process connects, greets and receives its [`Role`]. A program in the place of a linker without the hook announces
//! the linker. A linker then sends its [`RESOLUTIONS`], if its options produce them. It sends a [`Question`] for each
//! module, any number of them at once, and gets an [`Answer`] to each, in any order. A closed socket shows that a side
//! is gone.
//!
//! Integers are little-endian; strings end with NUL, as exec(2) has them.

/// Names the inherited socket; its presence makes a process a server.
pub const VARIABLE: &str = "DISTLTO_SERVER_FD";
/// The only argument a server is started with: harmless where the library was not loaded and `main` runs.
pub const ARGUMENT: &str = "--version";
/// The byte that announces a job.
pub const JOB: u8 = b'J';
/// The byte that announces many jobs, so that work done once for all of them pays. Carries nothing.
pub const MANY: u8 = b'M';
/// Upper limit of a request in bytes; exec(2) itself allows 6 MiB of arguments.
pub const REQUEST_LIMIT: usize = 1 << 30;

const MAGIC: [u8; 8] = *b"dltofork";
const VERSION: u32 = 2;

/// The server's first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// The server's process id: a grandchild that inherited the socket is not the server.
    pub pid: u32,
}

impl Hello {
    /// Size in bytes.
    pub const SIZE: usize = 16;

    /// As sent.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..].copy_from_slice(&self.pid.to_le_bytes());
        bytes
    }

    /// As received; `None` for another magic or version.
    pub fn from_bytes(bytes: [u8; Self::SIZE]) -> Option<Self> {
        let [m @ .., a, b, c, d, e, f, g, h] = bytes;
        (m == MAGIC && u32::from_le_bytes([a, b, c, d]) == VERSION)
            .then_some(Self { pid: u32::from_le_bytes([e, f, g, h]) })
    }
}

/// A server's message about a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// The child runs under this process id, which is its process group's too.
    Started(i32),
    /// No child was started; holds the errno.
    Refused(i32),
    /// The child ended.
    Ended(JobEnd),
}

/// Result and resource use of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobEnd {
    /// The status as wait(2) gives it.
    pub status: i32,
    /// User time in microseconds.
    pub user_us: u64,
    /// System time in microseconds.
    pub system_us: u64,
    /// Peak resident size in KiB, without the program's own code where the server keeps that in memory.
    pub max_rss_kib: u64,
}

impl Reply {
    /// Size in bytes.
    pub const SIZE: usize = 32;

    /// As sent.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let (kind, value, times) = match self {
            Self::Started(pid) => (1u32, pid, [0; 3]),
            Self::Refused(errno) => (2, errno, [0; 3]),
            Self::Ended(usage) => (3, usage.status, [usage.user_us, usage.system_us, usage.max_rss_kib]),
        };
        let mut bytes = [0; Self::SIZE];
        bytes[..4].copy_from_slice(&kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&value.to_le_bytes());
        for (place, time) in bytes[8..].chunks_exact_mut(8).zip(times) {
            place.copy_from_slice(&time.to_le_bytes());
        }
        bytes
    }

    /// As received; `None` for an unknown kind.
    pub fn from_bytes(bytes: [u8; Self::SIZE]) -> Option<Self> {
        let [a, b, c, d, e, f, g, h, times @ ..] = bytes;
        let value = i32::from_le_bytes([e, f, g, h]);
        let mut numbers = [0u64; 3];
        for (number, place) in numbers.iter_mut().zip(times.chunks_exact(8)) {
            *number = place.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        }
        let [user_us, system_us, max_rss_kib] = numbers;
        match u32::from_le_bytes([a, b, c, d]) {
            1 => Some(Self::Started(value)),
            2 => Some(Self::Refused(value)),
            3 => Some(Self::Ended(JobEnd { status: value, user_us, system_us, max_rss_kib })),
            _ => None,
        }
    }
}

/// Encodes a job's request: `length argc envc` (u32 each), directory, arguments, environment. The length counts all
/// bytes after it. `None` when a string holds a NUL or the request is over its limit.
pub fn request<'a>(
    directory: &[u8],
    arguments: impl IntoIterator<Item = &'a [u8]>,
    environment: impl IntoIterator<Item = &'a [u8]>,
) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 12];
    let mut push = |string: &[u8]| {
        bytes.extend_from_slice(string);
        bytes.push(0);
        (!string.contains(&0) && bytes.len() <= REQUEST_LIMIT).then_some(1u32)
    };
    push(directory)?;
    let argc = arguments.into_iter().try_fold(0, |count, string| Some(count + push(string)?))?;
    let envc = environment.into_iter().try_fold(0, |count, string| Some(count + push(string)?))?;
    let length = u32::try_from(bytes.len() - 4).ok()?;
    for (place, number) in bytes.chunks_exact_mut(4).zip([length, argc, envc]) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    Some(bytes)
}

/// Parses the bytes of a request after its length. Returns its counts and strings: `(argc, envc, strings)`. `None` when
/// the counts and the strings do not agree.
pub fn parse_request(bytes: &[u8]) -> Option<(usize, usize, &[u8])> {
    let (argc, rest) = bytes.split_first_chunk::<4>()?;
    let (envc, strings) = rest.split_first_chunk::<4>()?;
    let argc = usize::try_from(u32::from_le_bytes(*argc)).ok()?;
    let envc = usize::try_from(u32::from_le_bytes(*envc)).ok()?;
    let expected = argc.checked_add(envc)?.checked_add(1)?;
    let found = strings.iter().filter(|&&byte| byte == 0).count();
    (argc > 0 && found == expected && strings.last() == Some(&0)).then_some((argc, envc, strings))
}

/// The socket in that folder, a `SOCK_SEQPACKET` one (unix(7)): each message is one packet.
pub const SERVICE_SOCKET: &str = "socket";
/// The longest packet: a module's name is a path, or two.
pub const PACKET: usize = 16 << 10;
/// How an index shard's name ends, and how a file of a ThinLTO cache begins (LLVM's `LTO.cpp` and `Caching.cpp`).
pub const SHARD_SUFFIX: &[u8] = b".thinlto.bc";
/// See [`SHARD_SUFFIX`].
pub const CACHE_PREFIX: &[u8] = b"llvmcache-";

/// A process's first packet to a service: magic and version. The service knows the process by its credentials.
pub fn greeting() -> [u8; 12] {
    first_packet(*b"dltolink")
}

/// The first packet of the program in the place of a linker without preloaded libraries. Carries a file with
/// NUL-terminated strings: the linker's path, then its command line.
pub fn announcement() -> [u8; 12] {
    first_packet(*b"dltoexec")
}

fn first_packet(magic: [u8; 8]) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&magic);
    bytes[8..].copy_from_slice(&VERSION.to_le_bytes());
    bytes
}

/// A service's answer to a first packet: one byte. The packet may carry memory for the process's notes ([`Note`]), as
/// the last of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The process has no role here. No further message follows.
    None,
    /// The process is a linker that gets its objects here. Carries a file with NUL-terminated strings: the cache folder
    /// for the linker, then its command line.
    Linker,
    /// The process is a linker that performs only its thin link. Carries the same file. Each shard becomes a file in
    /// that folder, named by a number; a [`Question`] without a key reports it. No answer follows.
    Collector,
    /// The process is a linker with nothing to do: it ends at once with success.
    End,
    /// The process is a linker that is not to link: it ends at once with failure.
    Refused,
    /// The announced program starts with another command line. Carries a file with its words, each ended by NUL. Or the
    /// process is a linker that gets its objects from a distributor: carries the file of [`Role::Linker`], and the folder
    /// is empty. No question follows.
    Program,
    /// The process is a linker that calls a distributor. Carries the file of [`Role::Linker`]. Before it starts the
    /// distributor, it sends a [`Question`] without a key, whose module is the job file. [`Answer::Object`] without a
    /// file means that the objects are where the job file names them.
    Distributing,
}

impl Role {
    /// As sent.
    pub fn to_byte(self) -> u8 {
        match self {
            Self::None => b'-',
            Self::Linker => b'L',
            Self::Collector => b'C',
            Self::End => b'E',
            Self::Refused => b'R',
            Self::Program => b'P',
            Self::Distributing => b'D',
        }
    }

    /// As received; `None` for an unknown one.
    pub fn from_byte(byte: u8) -> Option<Self> {
        let linkers = [Self::Linker, Self::Collector, Self::Distributing];
        let others = [Self::None, Self::End, Self::Refused, Self::Program];
        linkers.into_iter().chain(others).find(|role| role.to_byte() == byte)
    }
}

/// With this option the linker for Mach-O writes its resolution file, and all its temporaries, which have these suffixes.
/// They go to memory.
pub const SAVE_TEMPORARIES: &[u8] = b"-save-temps";
pub const TEMPORARIES_SUFFIXES: [&[u8]; 3] = [b".bc", b".dot", b".lto.o"];
/// The suffix of the linker's resolution file (`--save-temps=resolution`).
pub const RESOLUTIONS_SUFFIX: &[u8] = b".resolution.txt";
/// The packet that carries this file, sent before the first question.
pub const RESOLUTIONS: [u8; 1] = *b"r";

/// The suffix of the file that lists the jobs of a distributor, its last argument.
pub const JOB_FILE_SUFFIX: &[u8] = b".dist-file.json";

/// A linker's question for the object of a module. The packet carries the module's index shard, a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question<'a> {
    /// Distinguishes it from the linker's other questions.
    pub ticket: u32,
    /// The linker's own key, without [`CACHE_PREFIX`].
    pub key: &'a [u8],
    /// The module, as the linker calls it.
    pub module: &'a [u8],
}

impl<'a> Question<'a> {
    /// As sent; `None` if it is too long for a packet.
    pub fn to_bytes(self) -> Option<Vec<u8>> {
        let length = u8::try_from(self.key.len()).ok()?;
        let bytes = [&self.ticket.to_le_bytes()[..], &[length], self.key, self.module].concat();
        (bytes.len() <= PACKET).then_some(bytes)
    }

    /// As received; `None` where it is none.
    pub fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        let (ticket, rest) = bytes.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first()?;
        let (key, module) = rest.split_at_checked(usize::from(*length))?;
        Some(Self { ticket: u32::from_le_bytes(*ticket), key, module })
    }
}

/// The answer to a [`Question`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The packet carries the object, a file. None if the objects of all jobs are in their places.
    Object,
    /// The linker is to compile the module itself.
    Compile,
    /// The linker ends with this exit code. The answer may come to any question.
    End(u8),
    /// The linker starts again with its original command line, and asks for its role.
    Again,
}

impl Answer {
    /// Size in bytes, with the ticket of the question.
    pub const SIZE: usize = 6;

    /// As sent.
    pub fn to_bytes(self, ticket: u32) -> [u8; Self::SIZE] {
        let (kind, code) = match self {
            Self::Object => (b'O', 0),
            Self::Compile => (b'C', 0),
            Self::End(code) => (b'E', code),
            Self::Again => (b'A', 0),
        };
        let [a, b, c, d] = ticket.to_le_bytes();
        [kind, code, a, b, c, d]
    }

    /// As received, with the ticket; `None` for an unknown one.
    pub fn from_bytes(bytes: [u8; Self::SIZE]) -> Option<(u32, Self)> {
        let [kind, code, ticket @ ..] = bytes;
        let answer = match kind {
            b'O' => Self::Object,
            b'C' => Self::Compile,
            b'E' => Self::End(code),
            b'A' => Self::Again,
            _ => return None,
        };
        Some((u32::from_le_bytes(ticket), answer))
    }
}

/// Size in bytes of the memory for a process's notes. Unwritten parts take no memory.
pub const TRACE_SIZE: usize = 64 << 20;
/// Where the first note is: behind a `u64`, the size of all notes.
pub const FIRST_NOTE: usize = 8;
/// Size of a note's head before its path: its kind, and the path's length (`u16`).
pub const NOTE_HEAD: usize = 3;

/// An action of a process, most often with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// Opened it for reading, be it a directory.
    Read,
    /// Looked for it, and it was not there.
    Absent,
    /// Opened it for writing, or renamed a file to it.
    Written,
    /// Made it its working directory.
    Directory,
    /// Asked for an environment variable: `NAME=value`, or `NAME` for one that is not set.
    Variable,
    /// Wrote to its standard output (`1`) or its standard error (`2`).
    Printed,
    /// Read data from its standard input (`0`).
    Input,
}

impl Note {
    /// As noted.
    pub fn to_byte(self) -> u8 {
        match self {
            Self::Read => b'r',
            Self::Absent => b'a',
            Self::Written => b'w',
            Self::Directory => b'd',
            Self::Variable => b'v',
            Self::Printed => b'p',
            Self::Input => b'i',
        }
    }

    /// As found; `None` for one that is not whole.
    pub fn from_byte(byte: u8) -> Option<Self> {
        let files = [Self::Read, Self::Absent, Self::Written, Self::Directory];
        let others = [Self::Variable, Self::Printed, Self::Input];
        files.into_iter().chain(others).find(|note| note.to_byte() == byte)
    }
}
