//! Collects what an action made at the outputs of its command.
//!
//! Clients of version 2.0, such as Bazel, name files and directories apart. What is not there is left out of the result,
//! which is no failure.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bazel_remote_apis::build::bazel::remote::execution::v2::{
    ActionResult, Command, Directory, DirectoryNode, FileNode, OutputDirectory, OutputFile, OutputSymlink,
    SymlinkNode, Tree,
};
use prost::Message;
use tonic::Status;

use crate::digest::{self, Digest};
use crate::stage::below;
use crate::store::{Store, failed};

/// The outputs of a command that ran in `root`.
pub fn collect(store: &Store, command: &Command, root: &Path) -> Result<ActionResult, Status> {
    let work = root.join(below(&command.working_directory)?);
    let mut result = ActionResult::default();
    for path in paths(command) {
        let at = work.join(below(path)?);
        let Ok(found) = fs::symlink_metadata(&at) else { continue };
        let path = path.clone();
        if found.is_symlink() {
            let target = target(&at)?;
            result.output_symlinks.push(OutputSymlink { path, target, ..OutputSymlink::default() });
        } else if found.is_dir() {
            let tree_digest = Some(tree(store, &at)?);
            result.output_directories.push(OutputDirectory {
                path,
                tree_digest,
                ..OutputDirectory::default()
            });
        } else {
            let (digest, is_executable) = file(store, &at)?;
            let digest = Some(digest);
            result.output_files.push(OutputFile { path, digest, is_executable, ..OutputFile::default() });
        }
    }
    Ok(result)
}

/// The outputs that a command names.
#[expect(deprecated, reason = "Bazel knows no other fields")]
pub fn paths(command: &Command) -> impl Iterator<Item = &String> {
    // These are not looked at where the others are.
    let apart =
        command.output_paths.is_empty().then_some([&command.output_files, &command.output_directories]);
    command.output_paths.iter().chain(apart.into_iter().flatten().flatten())
}

fn file(store: &Store, path: &Path) -> Result<(Digest, bool), Status> {
    let read = |error| failed("read an output", &error);
    let digest = store.keep(&fs::read(path).map_err(read)?)?;
    Ok((digest, fs::metadata(path).map_err(read)?.permissions().mode() & 0o111 != 0))
}

fn target(path: &Path) -> Result<String, Status> {
    let target = fs::read_link(path).map_err(|error| failed("read a symbolic link", &error))?;
    Ok(target.to_string_lossy().into_owned())
}

fn tree(store: &Store, path: &Path) -> Result<Digest, Status> {
    let mut children = Vec::new();
    let root = Some(directory(store, path, &mut children)?);
    store.keep(&Tree { root, children }.encode_to_vec())
}

fn directory(store: &Store, path: &Path, children: &mut Vec<Directory>) -> Result<Directory, Status> {
    let read = |error| failed("read an output directory", &error);
    let entries: Result<Vec<_>, _> = fs::read_dir(path).map_err(read)?.collect();
    let mut entries = entries.map_err(read)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    let mut made = Directory::default();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type().map_err(read)?;
        if kind.is_symlink() {
            let target = target(&entry.path())?;
            made.symlinks.push(SymlinkNode { name, target, ..SymlinkNode::default() });
        } else if kind.is_dir() {
            let child = directory(store, &entry.path(), children)?;
            let digest = Some(digest::of(&child.encode_to_vec()));
            made.directories.push(DirectoryNode { name, digest });
            children.push(child);
        } else {
            let (digest, is_executable) = file(store, &entry.path())?;
            let digest = Some(digest);
            made.files.push(FileNode { name, digest, is_executable, ..FileNode::default() });
        }
    }
    Ok(made)
}
