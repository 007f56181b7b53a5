//! An action's outputs on their way back from an engine.
//!
//! They are downloaded beside their files, since somebody else may be writing those. Knows nothing of execution.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use distlto_prepare::io_error::IoError;
use distlto_prepare::write::remove;
use distlto_reapi::{Client, Digest, DigestMessage, Error, proto};

use crate::describe::Described;
use crate::output::Output;

/// Downloads the outputs of an action. Removes the download of an output that it did not write.
pub(super) async fn fetch(
    client: &Client,
    result: &proto::ActionResult,
    described: &Described<'_>,
    outputs: &[Output<'_>],
) -> Result<(), Error> {
    for ((name, _), output) in described.action.outputs.iter().zip(outputs) {
        let place = beside(&output.file);
        let written = result.output_files.iter().find(|file| file.path == **name);
        // One without a digest was not written: a bad entry is no fault of the whole server.
        let is_named =
            |file: &&proto::OutputFile| file.digest.as_ref().and_then(Digest::from_message).is_some();
        match written.filter(is_named) {
            Some(file) => client.download_output(file, &place).await?,
            None => remove(&place).map_err(|error| Error::Io { path: place, source: error.source.into() })?,
        }
    }
    Ok(())
}

/// Renames the downloads to their outputs. Removes an output without a download.
pub(super) fn put_in_place(outputs: &[Output<'_>]) -> Result<(), IoError> {
    for Output { file, .. } in outputs {
        match fs::rename(beside(file), file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                remove(file)?;
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
