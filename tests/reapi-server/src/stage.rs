//! Lays out an input root in a folder: directories, copies of blobs, and places for outputs.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path};

use bazel_remote_apis::build::bazel::remote::execution::v2::{Command, Directory, FileNode};
use tonic::Status;

use crate::digest::{self, Digest};
use crate::outputs;
use crate::store::{Store, failed};

/// What came of it.
pub enum Staged {
    /// All is there: these files.
    Whole(Vec<Digest>),
    /// These blobs are not.
    Missing(Vec<Digest>),
}

/// Lays out the root at `to`, which is made.
pub fn stage(store: &Store, root: Option<&Digest>, command: &Command, to: &Path) -> Result<Staged, Status> {
    let (mut files, mut missing) = (Vec::new(), Vec::new());
    directory(store, &digest::checked(root)?, to, &mut files, &mut missing)?;
    if !missing.is_empty() {
        return Ok(Staged::Missing(missing));
    }
    let make = |path: &Path| fs::create_dir_all(path).map_err(|error| failed("make a folder", &error));
    let work = to.join(below(&command.working_directory)?);
    make(&work)?;
    for output in outputs::paths(command) {
        if let Some(parent) = work.join(below(output)?).parent() {
            make(parent)?;
        }
    }
    Ok(Staged::Whole(files))
}

/// A path that does not leave the input root.
pub fn below(path: &str) -> Result<&Path, Status> {
    let found = Path::new(path);
    if found.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Ok(found);
    }
    Err(Status::invalid_argument(format!("{path:?} is not below the input root")))
}

/// Lays out a directory; `files` are those that it holds, `missing` blobs that are not there.
fn directory(
    store: &Store,
    digest: &Digest,
    to: &Path,
    files: &mut Vec<Digest>,
    missing: &mut Vec<Digest>,
) -> Result<(), Status> {
    let Some(found) = store.message::<Directory>(digest)? else {
        missing.push(digest.clone());
        return Ok(());
    };
    fs::create_dir_all(to).map_err(|error| failed("make a folder", &error))?;
    for node in &found.files {
        let digest = digest::checked(node.digest.as_ref())?;
        if store.has(&digest) {
            file(store, node, &digest, &to.join(name(&node.name)?))?;
            files.push(digest);
        } else {
            missing.push(digest);
        }
    }
    for node in &found.symlinks {
        let made = symlink(&node.target, to.join(name(&node.name)?));
        made.map_err(|error| failed("make a symbolic link", &error))?;
    }
    for node in &found.directories {
        let digest = digest::checked(node.digest.as_ref())?;
        directory(store, &digest, &to.join(name(&node.name)?), files, missing)?;
    }
    Ok(())
}

fn file(store: &Store, node: &FileNode, digest: &Digest, to: &Path) -> Result<(), Status> {
    // A command may write to its inputs, and so into a blob if this were a link.
    let made =
        if digest.size_bytes == 0 { fs::write(to, "") } else { fs::copy(store.path(digest), to).map(|_| ()) };
    let mode = Permissions::from_mode(if node.is_executable { 0o755 } else { 0o644 });
    made.and_then(|()| fs::set_permissions(to, mode)).map_err(|error| failed("lay out an input", &error))
}

fn name(name: &str) -> Result<&str, Status> {
    if name.is_empty() || name == "." || name == ".." || name.contains('/') {
        return Err(Status::invalid_argument(format!("{name:?} is no name of a file")));
    }
    Ok(name)
}
