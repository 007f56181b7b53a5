//! Archives into objects directories: each member a file of its own, written only where its content differs.
//!
//! The one module of this crate that decides which content is written where; reading is `archive`, names are `names`,
//! the state between runs is `record`, and `store` saves writing the same content again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rayon::prelude::*;

use crate::archive::{Bytes, Content, Contents, RawMember};
use crate::error::PrepareError;
use crate::frame;
use crate::input::Input;
use crate::io_error::IoError;
use crate::kind::{self, Kind};
use crate::manifest::{Manifest, Member};
use crate::names;
use crate::objects_directory::ObjectsDirectory;
use crate::store::Store;
use crate::unpack_record::{self, FileStamp, MemberSource, UnpackRecord};
use crate::write;

/// One archive to unpack.
#[derive(Debug, Clone, Copy)]
pub struct Unpack<'a> {
    /// An archive of any format, thin or regular, or a Mach-O universal file of archives.
    pub archive: &'a Path,
    /// Where the members go; made if missing. Files of others in it are left alone.
    pub directory: &'a Path,
    /// Where unpacked members are kept for other directories and other runs.
    pub store: Option<&'a Store>,
    /// Which slice of a universal file, as in `clang -arch`; not looked at for others.
    pub architecture: Option<&'a str>,
    /// Write a FatLTO member's bitcode instead of its native object.
    pub fat_lto: bool,
}

/// Unpacks one archive: see [`unpack_all`].
pub fn unpack(request: &Unpack<'_>) -> Result<Manifest, PrepareError> {
    unpack_all(std::slice::from_ref(request)).pop().expect("there is one result for each request")
}

/// Unpacks several archives in parallel; the results are in the order of the requests.
///
/// After `Ok`, the directory holds exactly the manifest's files with their content, besides files of others. After
/// an error or a kill each file is whole, the old one or the new one, and the next run completes the rest. Waits
/// while another process unpacks into the same directory.
pub fn unpack_all(requests: &[Unpack<'_>]) -> Vec<Result<Manifest, PrepareError>> {
    let directories = ObjectsDirectory::open_all(requests.iter().map(|request| request.directory));
    requests
        .par_iter()
        .zip(directories)
        .map(|(request, directory)| unpack_into(request, &directory?.path))
        .collect()
}

fn unpack_into(request: &Unpack<'_>, directory: &Path) -> Result<Manifest, PrepareError> {
    let previous = UnpackRecord::load(directory);
    let mut current = UnpackRecord::new(request.fat_lto, request.architecture, unpack_record::now());
    if let Some(manifest) = previous.unchanged(&current, request.archive, directory) {
        return Ok(manifest.clone());
    }
    let archive = Input::open(request.archive)?;
    let key = request.store.and_then(|store| Some((store, key(request, &archive)?)));
    if let Some((store, key)) = &key
        && let Some(kept) = store.manifest(key)
        && let Some(placed) = place_kept(&previous, &mut current, directory, store, kept)?
    {
        return finish(current, directory, placed, vec![MemberSource::of(request.archive, &archive)]);
    }
    let contents = Contents::read(request.archive, archive, request.architecture)?;
    let files = names::member_file_names(contents.members.iter().map(|member| member.name.as_slice()));
    claim(&previous, &mut current, files.iter().map(String::as_str), directory)?;
    let placed: Result<Vec<UnpackedMember>, PrepareError> = contents
        .members
        .par_iter()
        .zip(files)
        .map(|(member, file)| place(request, &previous, directory, &contents, member, file))
        .collect();
    let sources = contents.sources.iter().map(|(path, input)| MemberSource::of(path, input)).collect();
    let manifest = finish(current, directory, placed?, sources)?;
    if let Some((store, key)) = &key
        && contents.is_self_contained()
    {
        store.keep_manifest(key, &manifest);
    }
    Ok(manifest)
}

/// Under which a store keeps the manifest of an archive that holds its members' content itself.
fn key(request: &Unpack<'_>, archive: &[u8]) -> Option<blake3::Hash> {
    let universal = match kind::classify(archive) {
        Kind::Archive { thin: false } => false,
        Kind::Universal => true,
        _ => return None,
    };
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[u8::from(request.fat_lto), u8::from(universal)]);
    if universal {
        // A slice that is a single object is named after the file.
        for part in [request.architecture.unwrap_or(""), request.archive.file_name()?.to_str()?] {
            hasher.update(&frame::head(part.as_bytes())).update(part.as_bytes());
        }
    }
    Some(hasher.update(archive).finalize())
}

/// Removes files that the archive has no more, and records the state of the directory.
fn finish(
    mut current: UnpackRecord,
    directory: &Path,
    placed: Vec<UnpackedMember>,
    mut sources: Vec<Option<MemberSource>>,
) -> Result<Manifest, PrepareError> {
    let mut states = BTreeMap::new();
    let mut manifest = Manifest::default();
    for placed in placed {
        sources.extend(placed.source);
        states.extend(placed.member.file.clone().map(|file| (file, placed.state)));
        manifest.members.push(placed.member);
    }
    let written: BTreeSet<&str> = states.keys().map(String::as_str).collect();
    for stale in current.stale(&written) {
        write::remove(&directory.join(stale))?;
    }
    current.files = states;
    // Without the shortcut if a path has no JSON form; content is compared then.
    current.sources = sources.into_iter().collect::<Option<_>>().unwrap_or_default();
    current.manifest = manifest.clone();
    current.save(directory)?;
    Ok(manifest)
}

/// Records which files are ours before any is written, so that a later run removes the leftovers of a killed one.
fn claim<'a>(
    previous: &UnpackRecord,
    current: &mut UnpackRecord,
    files: impl Iterator<Item = &'a str>,
    directory: &Path,
) -> Result<(), PrepareError> {
    let names: BTreeSet<&str> = files.collect();
    current.files = previous.files.keys().map(|file| (file.clone(), None)).collect();
    let known = current.files.len();
    // A file of another's may bear the name of a member that will not be written: it stays.
    let ours = names.iter().filter(|file| {
        !previous.files.contains_key(**file) && directory.join(file).symlink_metadata().is_err()
    });
    current.files.extend(ours.map(|file| ((*file).to_owned(), None)));
    if current.files.len() > known {
        current.save(directory)?;
    }
    // On a case-insensitive file system an old name may be a new one in other letters; removing it later would
    // remove the new file.
    let folded: BTreeSet<String> = names.iter().map(|name| names::fold(name)).collect();
    for stale in previous.stale(&names) {
        if folded.contains(&names::fold(stale)) {
            write::remove(&directory.join(stale))?;
        }
    }
    Ok(())
}

/// rustc wraps a crate's metadata in an object for the target, so its content does not identify it.
/// (`METADATA_FILENAME` in `compiler/rustc_codegen_ssa/src/back/metadata.rs`)
pub(crate) const RUST_METADATA: &[u8] = b"lib.rmeta";

/// Returns the part of a member's `content` for the link; `None` if a linker that is given the archive takes nothing of
/// it.
pub(crate) fn object_in<'a>(
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

struct UnpackedMember {
    member: Member,
    /// The state of the written file.
    state: Option<FileStamp>,
    /// The thin archive's member file that was read.
    source: Option<Option<MemberSource>>,
}

/// Places the members of a kept manifest; `None` if the store has lost one of them.
fn place_kept(
    previous: &UnpackRecord,
    current: &mut UnpackRecord,
    directory: &Path,
    store: &Store,
    kept: Manifest,
) -> Result<Option<Vec<UnpackedMember>>, PrepareError> {
    claim(previous, current, kept.written().map(|(_, file)| file), directory)?;
    let place = |member: Member| -> Result<Option<UnpackedMember>, PrepareError> {
        let (Some(file), Some(hex)) = (&member.file, &member.digest) else {
            return Ok(Some(UnpackedMember { member, state: None, source: None }));
        };
        let path = directory.join(file);
        let Ok(digest) = blake3::Hash::from_hex(hex) else { return Ok(None) };
        let there = previous.digest_of(file) == Some(hex) && previous.is_untouched(directory, file)
            || holds_digest(&path, member.size, &digest);
        if !there && !store.place_kept(&digest, &path)? {
            return Ok(None);
        }
        let state = Some(state_of(&path)?);
        Ok(Some(UnpackedMember { member, state, source: None }))
    };
    kept.members.into_par_iter().map(place).collect()
}

fn holds_digest(path: &Path, size: u64, digest: &blake3::Hash) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() == size)
        && Input::open_regular(path).is_ok_and(|input| blake3::hash(&input) == *digest)
}

fn state_of(path: &Path) -> Result<FileStamp, PrepareError> {
    Ok(FileStamp::of(&path.symlink_metadata().map_err(IoError::on("read", path))?))
}

fn place(
    request: &Unpack<'_>,
    previous: &UnpackRecord,
    directory: &Path,
    contents: &Contents,
    raw: &RawMember,
    file: String,
) -> Result<UnpackedMember, PrepareError> {
    let content = contents.bytes(raw)?;
    let source = match (&content, &raw.content) {
        (Bytes::Beside(input), Content::Beside { path, .. }) => Some(MemberSource::of(path, input)),
        _ => None,
    };
    let kind = kind::classify(&content);
    let mut member =
        Member { name: raw.display.clone(), file: None, kind, size: content.len() as u64, digest: None };
    let Some(bytes) = object_in(request.archive, raw, kind, &content, request.fat_lto)? else {
        return Ok(UnpackedMember { member, state: None, source });
    };
    let digest = blake3::hash(bytes);
    let hex = digest.to_hex().to_string();
    let path = directory.join(&file);
    if !(previous.digest_of(&file) == Some(&hex) && previous.is_untouched(directory, &file)) {
        match request.store {
            Some(store) => store.place(&digest, bytes, &path)?,
            None => {
                write::write_if_changed(&path, bytes)?;
            }
        }
    }
    let state = state_of(&path)?;
    member.size = bytes.len() as u64;
    member.file = Some(file);
    member.digest = Some(hex);
    Ok(UnpackedMember { member, state: Some(state), source })
}
