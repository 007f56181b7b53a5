//! The places of a module's files in the state directory, and the `toolchain` file.
//!
//! Everything is written only where its content differs. Makes no link.

use std::fs;
use std::path::Path;

use distlto_prepare::file_status::FileStatus;
use distlto_prepare::io_error::IoError;
use distlto_prepare::names::escape_path;
use distlto_prepare::regular;
use distlto_prepare::write::{write_atomically, write_if_changed};

use crate::digests::Digest;
use crate::search_path::program_file;
use crate::shard;
use crate::state::Place;

/// Where a module's files lie in the state directory.
pub struct ModulePlaces {
    /// The index shard.
    pub shard: String,
    /// The native object.
    pub object: String,
}

impl ModulePlaces {
    /// For a module id.
    pub fn of(state: &str, id: &str) -> Self {
        let name = escape_path(id.as_bytes());
        let shards = Place::Shards.of(state);
        Self {
            shard: format!("{shards}/{name}.thinlto.bc"),
            object: format!("{}/{name}.o", Place::Objects.of(state)),
        }
    }
}

/// Returns the path of the note on the compiler.
pub fn toolchain_place(state: &str) -> String {
    Place::Toolchain.of(state)
}

/// Whether a file is such a note: an input by which other runs know the compiler, and which no compiler reads.
pub fn is_toolchain(file: &Path) -> bool {
    let first = ["compiler ", "file ", "is "];
    Place::Toolchain.is_name_of(file)
        && regular::read(file).ok().and_then(|text| String::from_utf8(text).ok()).is_some_and(|text| {
            text.lines().count() >= first.len()
                && text.lines().zip(first).all(|(line, word)| line.starts_with(word))
                && text.lines().skip(first.len()).all(|line| line.starts_with(FURTHER))
        })
}

/// How each line of a note begins that its caller adds.
const FURTHER: &str = "with ";

/// Writes a shard unless the one in its place says the same: everything that goes by content or by time would run the
/// backend again. Says whether it was written.
pub fn shard_at(place: &Path, bytes: &[u8]) -> Result<bool, IoError> {
    // An unreadable file is replaced, or writing it is an error.
    if regular::read(place).is_ok_and(|kept| shard::is_equivalent(&kept, bytes)) {
        return Ok(false);
    }
    write_atomically(place, bytes).map(|()| true)
}

/// Returns the identity of a tool's file, which differs from that of another file at its place. A touched file is the
/// same tool: a small file is identified by its content. To read all of a compiler's libraries takes longer than to
/// compile several modules, so large files are identified by their status.
pub fn fingerprint(file: &Path) -> String {
    const SMALL: u64 = 1 << 20;
    let Ok(found) = fs::metadata(file) else { return "gone".to_owned() };
    let content = (found.is_file() && found.len() <= SMALL).then(|| fs::read(file).ok()).flatten();
    match (content, FileStatus::of(&found)) {
        (Some(content), _) => format!("content {}", Digest::of(&content)),
        (None, Some(FileStatus { size, modified, changed, inode, .. })) => {
            format!("size {size} modified {modified} changed {changed} inode {inode}")
        }
        (None, None) => "from another age".to_owned(),
    }
}

/// Writes the note on the compiler, so that another compiler under the same name makes every backend run again.
/// `further` has a line for each other influence on the compiler: libraries, configuration, environment.
pub fn toolchain(state: &str, compiler: &str, further: &[String]) -> Result<(), IoError> {
    let named = Path::new(compiler);
    let file = program_file(named);
    let real = file.and_then(|file| file.canonicalize().ok()).unwrap_or_else(|| named.to_owned());
    let mut text = format!("compiler {compiler}\nfile {}\nis {}\n", real.display(), fingerprint(&real));
    for line in further {
        text += &format!("{FURTHER}{}\n", line.escape_default());
    }
    write_if_changed(Path::new(&toolchain_place(state)), text.as_bytes()).map(|_| ())
}
