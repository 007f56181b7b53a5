//! The notes of a process with the hook: files that it read, missed and wrote, variables that it read, streams that it
//! printed to, whether it read from its standard input.
//!
//! The process writes them into memory shared with this process, so they survive any end of it. Does not depend on the
//! purpose of the files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, memfd_create};

use crate::protocol::{FIRST_NOTE, NOTE_HEAD, Note, TRACE_SIZE};

/// Files that the kernel makes up; they are read anew in any case.
const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// The actions of a process. Paths are absolute.
#[derive(Debug, Default)]
pub struct Trace {
    /// Its file operations, in their order.
    pub files: Vec<(FileNote, PathBuf)>,
    /// New files that it was about to make.
    pub creating: Vec<PathBuf>,
    /// The variables that it asked for, with the values that it found.
    pub variables: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// The standard streams that it wrote to.
    pub printed: BTreeSet<u8>,
    /// Whether it read from its standard input.
    pub has_input: bool,
    /// The objects of the last link that it opened, by their places, each with its module.
    pub kept: Vec<(u32, Vec<u8>)>,
    /// What it did while it compiled modules, by their tickets.
    pub backends: BTreeMap<u32, BackendTrace>,
    /// Whether notes are missing.
    pub is_cut: bool,
}

/// What a linker did while it compiled a module.
#[derive(Debug, Default)]
pub struct BackendTrace {
    /// Its file operations, in their order.
    pub files: Vec<(FileNote, PathBuf)>,
    /// The text that it wrote to its standard streams.
    pub printed: Vec<u8>,
}

/// A file operation of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileNote {
    /// Opened it for reading, be it a directory, or mapped it as a library.
    Read,
    /// Looked for it, and it was not there.
    Absent,
    /// Opened it for writing, or renamed a file to it.
    Written,
}

/// Makes memory for the notes of one process and the children that it forks. Unwritten parts take no memory.
pub fn notes() -> io::Result<File> {
    memory(TRACE_SIZE as u64)
}

/// A file in memory, of that size.
pub fn memory(size: u64) -> io::Result<File> {
    let file = File::from(memfd_create("distlto", MemfdFlags::CLOEXEC)?);
    file.set_len(size)?;
    Ok(file)
}

/// Returns whether a path is in a file system that the kernel makes up.
pub fn is_of_kernel(path: &Path) -> bool {
    KERNEL.iter().any(|place| path.starts_with(place))
}

impl Trace {
    /// Reads the notes of a process that began in `directory`.
    pub fn read(notes: &File, directory: &Path) -> io::Result<Self> {
        let mut end = [0; FIRST_NOTE];
        notes.read_exact_at(&mut end, 0)?;
        let end = usize::try_from(u64::from_le_bytes(end)).unwrap_or(usize::MAX).saturating_add(FIRST_NOTE);
        let mut bytes = vec![0; end.clamp(FIRST_NOTE, TRACE_SIZE) - FIRST_NOTE];
        notes.read_exact_at(&mut bytes, FIRST_NOTE as u64)?;
        let mut trace = Self { is_cut: end > TRACE_SIZE, ..Self::default() };
        let mut directory = directory.to_owned();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let Some((note, text)) = note(rest) else {
                // Its process was killed while it wrote.
                trace.is_cut = true;
                break;
            };
            rest = &rest[NOTE_HEAD + text.len()..];
            let path = || directory.join(std::ffi::OsStr::from_bytes(text));
            match note {
                Note::Directory => directory = path(),
                Note::Read => trace.files.push((FileNote::Read, path())),
                Note::Absent => trace.files.push((FileNote::Absent, path())),
                Note::Written => trace.files.push((FileNote::Written, path())),
                Note::Creating => trace.creating.push(path()),
                Note::Printed => trace.printed.extend(text.first().map(|digit| digit.wrapping_sub(b'0'))),
                Note::Input => trace.has_input = true,
                Note::Kept => trace.kept.extend(
                    text.split_first_chunk()
                        .map(|(place, module)| (u32::from_le_bytes(*place), module.to_owned())),
                ),
                Note::Backend => trace.add_backend(text, &directory),
                Note::Variable => {
                    let mut parts = text.splitn(2, |&byte| byte == b'=');
                    let name = parts.next().unwrap_or_default();
                    trace.variables.insert(name.to_owned(), parts.next().map(<[u8]>::to_owned));
                }
            }
        }
        Ok(trace)
    }

    fn add_backend(&mut self, text: &[u8], directory: &Path) {
        let Some((ticket, [kind, text @ ..])) = text.split_first_chunk() else { return };
        let backend = self.backends.entry(u32::from_le_bytes(*ticket)).or_default();
        let file = match Note::from_byte(*kind) {
            Some(Note::Printed) => return backend.printed.extend_from_slice(text),
            Some(Note::Read) => FileNote::Read,
            Some(Note::Absent) => FileNote::Absent,
            _ => FileNote::Written,
        };
        backend.files.push((file, directory.join(std::ffi::OsStr::from_bytes(text))));
    }

    /// The files of a kind, as they were noted.
    pub fn of(&self, kind: FileNote) -> impl Iterator<Item = &Path> {
        self.files.iter().filter(move |(note, _)| *note == kind).map(|(_, path)| path.as_path())
    }
}

fn note(bytes: &[u8]) -> Option<(Note, &[u8])> {
    let (&kind, rest) = bytes.split_first()?;
    let (length, rest) = rest.split_first_chunk()?;
    Some((Note::from_byte(kind)?, rest.get(..usize::from(u16::from_le_bytes(*length)))?))
}
