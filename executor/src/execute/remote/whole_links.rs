//! Whole links in a cache: an entry with a list under the key of a link, and an entry with the files of each link that
//! the list describes.
//!
//! Does not know what the list says, and does not judge the files beyond their digests.

use std::time::Duration;

use distlto_prepare::mutex::lock;
use distlto_reapi::blob::Blob;
use distlto_reapi::execute::{command_time, with_command_time};
use distlto_reapi::{Client, Digest, Error, proto};

use super::action_cache::{output_file, update};
use super::engine::Engine;
use crate::action::Encoded;
use crate::cache::Hit;
use crate::describe::Described;
use crate::result::Key;

/// The most bytes of a list.
const LONGEST: i64 = 256 << 20;

/// The most bytes of the files of one link, which are in memory together.
const LARGEST: i64 = 4 << 30;

/// A file of a link.
pub struct LinkFile {
    /// As the linker names it.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
    /// Whether it may be executed.
    pub is_executable: bool,
}

/// The list in an entry; empty without an entry.
pub(super) async fn list(client: &Client, entry: Digest, name: &str) -> Result<Vec<u8>, Error> {
    let Some(result) = client.action_result(entry, vec![name.to_owned()]).await? else {
        return Ok(Vec::new());
    };
    let [file] = result.output_files.as_slice() else { return Ok(Vec::new()) };
    let size = file.digest.as_ref().map_or(0, |digest| digest.size_bytes);
    if size <= LONGEST { Ok(client.output(file).await?.into()) } else { Ok(Vec::new()) }
}

/// Writes an entry with a list.
pub(super) async fn keep_list(
    client: &Client,
    entry: &Encoded,
    name: &str,
    bytes: Vec<u8>,
) -> Result<(), Error> {
    let (file, blob) = output_file(client, name.to_owned(), bytes);
    client.upload(blob).await?;
    let result = proto::ActionResult { output_files: vec![file], ..Default::default() };
    update(client, entry, result).await
}

/// The name of the list in its entry.
const LINKS: &str = "links";

fn entry_of(key: &Key) -> Encoded {
    Described::of_key(key).encoded
}

impl Engine {
    /// The list under a key; `None` without one.
    pub fn find_links(&self, key: &Key) -> Option<Vec<u8>> {
        let (client, _) = self.cache()?;
        let found = self.used(self.wait(list(client, entry_of(key).digest(), LINKS)))?;
        Some(found).filter(|bytes| !bytes.is_empty())
    }

    /// The files of a link, and how long that took. Nothing is fetched unless `are_files` accepts their names.
    pub fn fetch_files(
        &self,
        key: &Key,
        are_files: impl Fn(&[&str]) -> bool,
    ) -> Option<(Vec<LinkFile>, Duration)> {
        let (client, _) = self.cache()?;
        lock(&self.lookups).begin();
        let fetched = self.used(self.wait(async {
            let mut files = Vec::new();
            let Some(result) = client.action_result(entry_of(key).digest(), Vec::new()).await? else {
                return Ok(None);
            };
            let names: Vec<&str> = result.output_files.iter().map(|file| file.path.as_str()).collect();
            let sizes = result.output_files.iter().filter_map(|file| Some(file.digest.as_ref()?.size_bytes));
            if !are_files(&names) || sizes.fold(0, i64::saturating_add) > LARGEST {
                return Ok(None);
            }
            for file in &result.output_files {
                let (name, is_executable) = (file.path.clone(), file.is_executable);
                files.push(LinkFile { name, bytes: client.output(file).await?.into(), is_executable });
            }
            let took = result.execution_metadata.as_ref().and_then(command_time).unwrap_or_default();
            Ok(Some((files, took)))
        }));
        let found = fetched.flatten();
        let took = found.as_ref().map(|(_, took)| *took);
        let hit = Hit { stderr: Vec::new(), took, is_far: true, is_unobserved: false };
        lock(&self.lookups).end(took.map(|_| &hit));
        found
    }

    /// Keeps the files of a link, and then the list under the link's key that `listed` makes of the one that is there.
    pub fn keep_files(
        &self,
        key: &Key,
        (files, took): (Vec<LinkFile>, Duration),
        (links, listed): (&Key, impl FnOnce(&[u8]) -> Vec<u8>),
    ) {
        let Some((client, true)) = self.cache() else { return };
        let files = files.into_iter().map(|LinkFile { name, bytes, is_executable }| {
            let (file, blob) = output_file(client, name, bytes);
            (proto::OutputFile { is_executable, ..file }, blob)
        });
        let (output_files, blobs): (Vec<_>, Vec<Option<Blob>>) = files.unzip();
        let result = proto::ActionResult {
            output_files,
            execution_metadata: Some(with_command_time(took)),
            ..Default::default()
        };
        let kept = self.wait(async {
            client.upload(blobs.into_iter().flatten()).await?;
            update(client, &entry_of(key), result).await?;
            let links = entry_of(links);
            let known = list(client, links.digest(), LINKS).await?;
            keep_list(client, &links, LINKS, listed(&known)).await
        });
        if let Some(Err(error)) = kept {
            self.upload_failed(&error);
        }
    }

    /// The answer of a server, if it is one.
    fn used<T>(&self, answer: Option<Result<T, Error>>) -> Option<T> {
        match answer? {
            Ok(found) => return Some(found),
            Err(Error::Lost { .. }) => {}
            Err(error @ (Error::Corrupt { .. } | Error::TooLarge { .. } | Error::Io { .. })) => {
                self.unusable.add(|| error.to_string());
            }
            Err(error) => self.give_up(&error),
        }
        None
    }
}
