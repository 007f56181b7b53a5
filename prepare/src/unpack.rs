//! An archive into an objects directory that holds its members and nothing else, and their manifest.
//!
//! Knows the form that `cxx/dist_lto/dist_lto.bzl` and `darwin/dist_lto.bzl` of Buck2's prelude read; nothing of
//! options. The directory is an action's output, which Buck2 removes before it runs the action: no state of earlier
//! runs is kept in it, and equal archives give equal bytes. The program's help says how the results differ from those of
//! the stock tools ([`crate::command`]).

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use object::read::archive::ArchiveFile;
use serde::Serialize;

use crate::archive::{Contents, RawMember};
use crate::error::PrepareError;
use crate::kind::{self, Kind};
use crate::names;
use crate::staged_directory::StagedDirectory;
use crate::threads;

/// Which of the prelude's two rules reads the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkerType {
    /// `dist_lto.bzl`: paths of objects and the kind of archive.
    Gnu,
    /// `darwin/dist_lto.bzl`: names of files in the objects directory.
    Darwin,
}

/// The only object of an archive without any, for linkers of type gnu: an archive without members, which suits each
/// machine. The prelude's rule runs `mkdir` without its argument if the manifest lists nothing.
const NOTHING: (&str, &[u8]) = ("empty.o", b"!<arch>\n");

/// One archive to unpack.
#[derive(Debug, Clone, Copy)]
pub struct Unpack<'a> {
    /// Which rule reads the manifest.
    pub linker: LinkerType,
    /// An archive of any format, thin or regular, or a Mach-O universal file of archives.
    pub archive: &'a Path,
    /// Where the members go. It should not exist yet; it may hold only members of this archive.
    pub directory: &'a Path,
    /// Which slice of a universal file, as in `clang -arch`; not looked at for others.
    pub architecture: Option<&'a str>,
    /// Write a FatLTO member's bitcode instead of its native object.
    pub fat_lto: bool,
}

/// The result of unpacking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// The names of the files in the objects directory: first the first member of each name in archive order, then
    /// the others, named `stem_<k>.ext`.
    pub files: Vec<String>,
    /// The output of the command `file -b` for the archive.
    pub description: String,
    /// Members that no linker takes as an object, by name, with their kinds.
    pub left_out: Vec<(String, Kind)>,
}

/// Unpacks. After an error the directory is as it was.
pub fn unpack(request: &Unpack<'_>) -> Result<Unpacked, PrepareError> {
    let contents = Contents::open(request.archive, request.architecture)?;
    let members = &contents.members;
    let names = names::member_file_names(members.iter().map(|member| member.name.as_slice()));
    let staged = StagedDirectory::new(request.directory)?;
    let placed = in_threads(members.len(), |at| {
        let (raw, name) = (&members[at], &names[at]);
        let content = contents.bytes(raw)?;
        let kind = kind::classify(&content);
        let object = object_in(request.archive, raw, kind, &content, request.fat_lto)?;
        object.map(|bytes| staged.write(name, bytes)).transpose()?;
        Ok(if object.is_some() { MemberOutcome::Written } else { MemberOutcome::LeftOut(kind) })
    })?;
    let left_out = placed.iter().zip(members).filter_map(|(placed, raw)| match placed {
        MemberOutcome::LeftOut(kind) if raw.name != RUST_METADATA => Some((raw.display.clone(), *kind)),
        _ => None,
    });
    let left_out = left_out.collect();
    let archive = &contents.sources[0].1;
    let order: Vec<usize> = match kind::classify(&archive[..archive.len().min(8)]) {
        // `ar t` gives a thin archive's members as paths, which the stock tool lists as they come.
        Kind::Archive { thin: true } => (0..members.len()).collect(),
        _ => names::duplicates_last(members.iter().map(|member| member.display.as_str())),
    };
    let mut files: Vec<&str> = order
        .iter()
        .filter(|&&at| matches!(placed[at], MemberOutcome::Written))
        .map(|&at| names[at].as_str())
        .collect();
    if files.is_empty() && request.linker == LinkerType::Gnu {
        staged.write(NOTHING.0, NOTHING.1)?;
        files.push(NOTHING.0);
    }
    if let Some(stranger) = staged.stranger(&files)? {
        return Err(PrepareError::Stranger {
            directory: request.directory.to_owned(),
            archive: request.archive.to_owned(),
            file: stranger.to_string_lossy().into_owned(),
        });
    }
    staged.settle(&files)?;
    let files = files.into_iter().map(str::to_owned).collect();
    Ok(Unpacked { files, description: describe(archive), left_out })
}

/// rustc wraps a crate's metadata in an object for the target, so its content does not identify it.
/// (`METADATA_FILENAME` in `compiler/rustc_codegen_ssa/src/back/metadata.rs`)
const RUST_METADATA: &[u8] = b"lib.rmeta";

/// Returns the part of a member's `content` for the link; `None` if a linker that is given the archive takes nothing of
/// it.
fn object_in<'a>(
    archive: &Path,
    raw: &RawMember,
    kind: Kind,
    content: &'a [u8],
    fat_lto: bool,
) -> Result<Option<&'a [u8]>, PrepareError> {
    match kind {
        _ if !kind.is_object() || raw.name == RUST_METADATA => Ok(None),
        Kind::FatLto(_) if fat_lto => {
            let bitcode = kind::bitcode_of(content).ok_or_else(|| PrepareError::Malformed {
                path: archive.to_owned(),
                place: format!("member `{}`", raw.display),
                problem: "its section .llvm.lto holds no bitcode".to_owned(),
            })?;
            Ok(Some(bitcode))
        }
        _ => Ok(Some(content)),
    }
}

enum MemberOutcome {
    Written,
    LeftOut(Kind),
}

/// Does the work for `0..count`, in a few threads if there is much of it; the error is that of the lowest number.
///
/// A file system lets one thread at a time add to a directory, so more than a few only wait.
fn in_threads<T: Send>(
    count: usize,
    work: impl Fn(usize) -> Result<T, PrepareError> + Sync,
) -> Result<Vec<T>, PrepareError> {
    const MOST: usize = 4;
    const WORTH_A_THREAD: usize = 32;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let most = MOST.min(processors).min(count / WORTH_A_THREAD);
    let next = AtomicUsize::new(0);
    let some = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return done;
            }
            let result = work(at);
            if result.is_err() {
                // No more members are begun; those with a lower number have been begun already.
                next.store(count, Ordering::Relaxed);
            }
            done.push((at, result));
        }
    };
    let mut done = std::thread::scope(|scope| {
        let others: Vec<_> = (1..most).map_while(|_| threads::start_in(scope, "unpack", some).ok()).collect();
        let mut done = some();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|&(at, _)| at);
    done.into_iter().map(|(_, result)| result).collect()
}

impl Unpacked {
    /// Returns the manifest in the form of the stock tools.
    ///
    /// Paths begin as the objects directory was spelled. It is an error if that is not UTF-8.
    pub fn manifest(&self, linker: LinkerType, directory: &Path) -> Result<String, PrepareError> {
        #[derive(Serialize)]
        struct Manifest<'a, T> {
            #[serde(skip_serializing_if = "Option::is_none")]
            debug: Option<&'a str>,
            objects: &'a [T],
        }
        fn text<T: Serialize>(manifest: &Manifest<'_, T>) -> String {
            serde_json::to_string_pretty(manifest).expect("text and lists have a JSON form")
        }
        match linker {
            LinkerType::Darwin => Ok(text(&Manifest { debug: None, objects: &self.files })),
            LinkerType::Gnu => {
                let not_utf8 = || PrepareError::NotUtf8 { path: directory.to_owned() };
                let path = |file: &String| directory.join(file).into_os_string().into_string();
                let paths: Result<Vec<String>, _> = self.files.iter().map(path).collect();
                let objects = &paths.map_err(|_| not_utf8())?[..];
                Ok(text(&Manifest { debug: Some(&self.description), objects }))
            }
        }
    }
}

/// Returns the output of `file -b`: with the number of symbols for a thin archive.
fn describe(archive: &[u8]) -> String {
    let Kind::Archive { thin: true } = kind::classify(&archive[..archive.len().min(8)]) else {
        return "current ar archive\n".to_owned();
    };
    let symbols = ArchiveFile::parse(archive).ok().and_then(|file| file.symbols().ok()?);
    match symbols.map_or(0, Iterator::count) {
        0 => "thin archive with no symbol entries\n".to_owned(),
        1 => "thin archive with 1 symbol entry\n".to_owned(),
        count => format!("thin archive with {count} symbol entries\n"),
    }
}
