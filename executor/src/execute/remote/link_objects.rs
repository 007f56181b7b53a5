//! The list of a link's objects in a cache. The next link elsewhere reads it first, and has the objects on their way before
//! its linker asks.
//!
//! Does not know what is linked.

use std::fs;

use distlto_prepare::io_error::IoError;
use distlto_prepare::mutex::lock;
use distlto_reapi::{Client, Digest};

use super::engine::Engine;
use super::link_list::{KnownObject, Wanted, entries, object_of};
use super::whole_links::{keep_list, list};
use crate::cache::Hit;
use crate::describe::Described;
use crate::output::Output;

/// The name of the list in its entry.
const LIST: &str = "objects";

impl Engine {
    /// Begins to fetch the objects that a list names, if the cache has it.
    pub fn fetch_link(&self, link: &Described<'_>) {
        let Some((client, _)) = self.cache() else { return };
        let (client, action, objects) = (client.clone(), link.encoded.digest(), self.link_objects.clone());
        self.runtime.spawn(async move {
            // A list that cannot be read is none. What is wrong with the server the next question shows.
            if let Ok(bytes) = list(&client, action, LIST).await {
                objects.fetch(client, entries(&bytes)).await;
            }
        });
    }

    /// Keeps the list of a link, if this run has kept an object in the cache: the actions of its modules in the order in
    /// which the linker asked, each with its object if that was found here.
    pub fn keep_link(
        &self,
        link: &Described<'_>,
        modules: impl Iterator<Item = (Digest, Option<KnownObject>)>,
    ) {
        let Some((client, true)) = self.cache() else { return };
        if self.is_silent() {
            return;
        }
        let Some(bytes) = self.link_objects.list(modules) else { return };
        let upload = keep_list(client, &link.encoded, LIST, bytes);
        let time = self.settings().upload_time;
        // The next link looks its objects up one by one.
        let _ = self.wait(async { tokio::time::timeout(time, upload).await });
    }

    /// Finds an object that the list of the link names, and writes it to its file.
    pub(super) async fn find_listed(
        &self,
        client: &Client,
        action: &Described<'_>,
        outputs: &[Output<'_>],
    ) -> Result<Option<Hit>, IoError> {
        let key = action.encoded.digest();
        let [output] = outputs else { return Ok(None) };
        let (bytes, object) = match self.link_objects.take(key).await {
            Some(Wanted::Fetched(bytes, object)) => (bytes, object),
            Some(Wanted::Named(object)) => match object_of(client, key, object.digest).await {
                Ok(bytes) => {
                    lock(&self.silence).ends();
                    (bytes, object)
                }
                // The lookup says what is wrong.
                _ => return Ok(None),
            },
            None => return Ok(None),
        };
        fs::write(&output.file, bytes).map_err(IoError::on("write", &output.file))?;
        self.link_objects.is_known(key, object, false);
        Ok(Some(Hit { stderr: Vec::new(), took: object.took, is_far: true, is_unobserved: false }))
    }
}
