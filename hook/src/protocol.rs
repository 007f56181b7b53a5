//! The messages between the hook and distlto. Both sides compile this one file.
//!
//! # The service
//!
//! A process connects, greets and receives its [`Role`]. A program in the place of a linker without the hook announces
//! the linker. A linker then sends its [`RESOLUTIONS`], if its options produce them. It sends a [`Question`] for each
//! module, any number of them at once, and gets an [`Answer`] to each, in any order. A closed socket shows that a side
//! is gone.
//!
//! Integers are little-endian; strings end with NUL, as exec(2) has them.

/// Names the inherited descriptor of memory for notes, where no service is asked.
pub const NOTES: &str = "DISTLTO_NOTES_FD";
/// Names the file for the module of a clang after its imports. That clang writes it, and ends.
pub const IMPORT: &str = "DISTLTO_IMPORT";
/// The suffix of the file to which a ThinLTO backend writes its module after the imports, and those of files that it
/// writes before that (LLVM's `LTOBackend.cpp`).
pub const IMPORTED_SUFFIX: &[u8] = b".3.import.bc";
/// See [`IMPORTED_SUFFIX`].
pub const EARLIER_SUFFIXES: [&[u8]; 3] = [b".0.preopt.bc", b".1.promote.bc", b".2.internalize.bc"];
/// The version of the messages.
const VERSION: u32 = 6;

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
    /// The process is a linker that asks for its objects here. Carries a file with NUL-terminated strings: the cache folder
    /// for the linker, then its command line. Between this file and the memory for notes there may be a file with the
    /// objects of the last link ([`KeptObject`]).
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

/// The module of a question without a key from a linker that has succeeded, and is about to end.
pub const ENDED: &[u8] = b"ended";

/// A linker's question for the object of a module. The packet carries the module's index shard, a file. Without key and
/// module it says that the linker has all its objects, and has not read them yet. See also [`ENDED`].
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
    /// The linker is to compile the module itself. If it was a question for an object, it sends [`Compiled`] after that.
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

/// A linker's message about a module that it was to compile: it has compiled it, or it could not. The packet carries the
/// object, a file, unless it could not, and then the module after its imports, if the linker writes that. No answer
/// follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compiled {
    /// The ticket of the question.
    pub ticket: u32,
    /// Processor time of the thread, in microseconds.
    pub cpu_us: u64,
    /// Whether there are notes of this compilation ([`Note::Backend`]).
    pub is_noted: bool,
}

impl Compiled {
    const MAGIC: [u8; 8] = *b"compiled";
    /// Size in bytes. A packet with this beginning is no question, whose ticket would be over a billion.
    pub const SIZE: usize = 21;

    /// As sent.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..8].copy_from_slice(&Self::MAGIC);
        bytes[8..12].copy_from_slice(&self.ticket.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.cpu_us.to_le_bytes());
        bytes[20] = self.is_noted.into();
        bytes
    }

    /// As received; `None` for any other packet.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk()?;
        let (ticket, rest) = rest.split_first_chunk()?;
        let (cpu, rest) = rest.split_first_chunk()?;
        let [is_noted] = rest else { return None };
        (*magic == Self::MAGIC).then_some(Self {
            ticket: u32::from_le_bytes(*ticket),
            cpu_us: u64::from_le_bytes(*cpu),
            is_noted: *is_noted != 0,
        })
    }
}

/// An object of the last link that a linker may open by itself. A file of them begins with the size of a path (`u32`) and
/// the path: a folder with a folder for each first byte of a digest. They follow, sorted by their bytes. A linker notes
/// each one that it opens ([`Note::Kept`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeptObject {
    /// The linker's own key.
    pub key: [u8; Self::KEY],
    /// The hash of the module's index shard ([`shard_hash`]). The linker's key has no order of the imports.
    pub shard: [u8; 8],
    /// The digest of the object, by which its file is called.
    pub digest: [u8; 32],
    /// Its place among the objects of the last link.
    pub place: [u8; 4],
}

impl KeptObject {
    /// Digits of a linker's key. One of another size is asked for.
    pub const KEY: usize = 40;
    /// Size in bytes.
    pub const SIZE: usize = Self::KEY + 8 + 32 + 4;

    /// As sent.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let parts: [&[u8]; 4] = [&self.key, &self.shard, &self.digest, &self.place];
        let mut at = 0;
        for part in parts {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        bytes
    }

    /// Returns digest and place of the object with this key and shard.
    pub fn find<'o>(objects: &'o [u8], key: &[u8], shard: u64) -> Option<(&'o [u8], &'o [u8])> {
        let sought = [key, &shard.to_be_bytes()].concat();
        if key.len() != Self::KEY {
            return None;
        }
        let (objects, _) = objects.as_chunks::<{ Self::SIZE }>();
        let at = objects.binary_search_by(|object| object[..sought.len()].cmp(&sought)).ok()?;
        let (digest, place) = objects[at][sought.len()..].split_at(32);
        Some((digest, place))
    }
}

/// A hash of an index shard's bytes. It only tells shards of one key of the linker apart.
pub fn shard_hash(bytes: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |state: u64, word: u64| {
        let product = u128::from(state ^ word) * u128::from(MULTIPLIER);
        (product as u64) ^ ((product >> 64) as u64) ^ MULTIPLIER.rotate_left(17)
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let state = words.iter().fold(bytes.len() as u64, |state, word| mix(state, u64::from_le_bytes(*word)));
    mix(state, u64::from_le_bytes(last))
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
    /// Is about to make it as a new file, which may fail.
    Creating,
    /// Made it its working directory.
    Directory,
    /// Asked for an environment variable: `NAME=value`, or `NAME` for one that is not set.
    Variable,
    /// Wrote to its standard output (`1`) or its standard error (`2`).
    Printed,
    /// Read data from its standard input (`0`).
    Input,
    /// Opened an object of the last link: its place (`u32`), then the module.
    Kept,
    /// While it compiled a module: the ticket (`u32`), the byte of another note, and the text of that. The text of
    /// [`Note::Printed`] is what it wrote.
    Backend,
}

impl Note {
    /// As noted.
    pub fn to_byte(self) -> u8 {
        match self {
            Self::Read => b'r',
            Self::Absent => b'a',
            Self::Written => b'w',
            Self::Creating => b'c',
            Self::Directory => b'd',
            Self::Variable => b'v',
            Self::Printed => b'p',
            Self::Input => b'i',
            Self::Kept => b'k',
            Self::Backend => b'b',
        }
    }

    /// As found; `None` for one that is not whole.
    pub fn from_byte(byte: u8) -> Option<Self> {
        let files = [Self::Read, Self::Absent, Self::Written, Self::Creating, Self::Directory];
        let others = [Self::Variable, Self::Printed, Self::Input, Self::Kept, Self::Backend];
        files.into_iter().chain(others).find(|note| note.to_byte() == byte)
    }
}
