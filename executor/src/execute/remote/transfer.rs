//! An action's blobs on their way to an engine, and its outputs on their way back.
//!
//! Outputs are downloaded beside their files, since somebody else may be writing those. Knows nothing of execution.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use distlto_prepare::write::IoError;
use distlto_reapi::blob::Blob;
use distlto_reapi::{Client, Digest, Error, proto};

use crate::action::{Content, Input, digest_of};
use crate::describe::Described;
use crate::staging::Output;

/// Everything that an engine has to have.
pub(super) fn blobs(described: &Described<'_>, directory: Option<&Path>) -> Vec<Blob> {
    let encoded = &described.encoded;
    let mut blobs = vec![encoded.action.action.clone(), encoded.action.command.clone()];
    blobs.extend(encoded.tree.blobs());
    let blob = |Input { digest, content, .. }: &Input<'_>| match content {
        Content::Bytes(bytes) => Blob::named(digest_of(digest), bytes.clone()),
        Content::File(file) => {
            let path = Path::new(&**file);
            Blob::file(
                digest_of(digest),
                directory.map_or_else(|| path.to_owned(), |directory| directory.join(path)),
            )
        }
    };
    blobs.extend(described.action.inputs.iter().map(blob));
    blobs
}

/// Downloads what an action wrote. What it did not write is nowhere then.
pub(super) async fn fetch(
    client: &Client,
    result: &proto::ActionResult,
    described: &Described<'_>,
    outputs: &[Output<'_>],
) -> Result<(), Error> {
    for ((name, _), output) in described.action.outputs.iter().zip(outputs) {
        let place = beside(&output.file);
        let written = result.output_files.iter().find(|file| file.path == **name);
        let digest = written.and_then(|file| Digest::from_message(file.digest.as_ref()?));
        match written.zip(digest) {
            Some((file, digest)) => client.download_to(digest, &place, file.is_executable).await?,
            None => remove(&place).map_err(|source| Error::Io { path: place, source: source.into() })?,
        }
    }
    Ok(())
}

/// Puts what was downloaded in the place of the outputs.
pub(super) fn put_in_place(outputs: &[Output<'_>]) -> Result<(), IoError> {
    for Output { file, .. } in outputs {
        match fs::rename(beside(file), file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                remove(file).map_err(IoError::on("remove", file))?;
            }
            renamed => renamed.map_err(IoError::on("rename into place", file))?,
        }
    }
    Ok(())
}

fn beside(file: &Path) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(".downloaded");
    name.into()
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
