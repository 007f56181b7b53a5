//! The action cache of an engine as a [`ResultCache`]: lookups and uploads of results.
//!
//! Uploads go on during the run. A cache never makes a job fail: its errors are misses. So is its silence, as soon as this
//! machine has a slot for the job.

use std::fs;
use std::sync::atomic::Ordering::Relaxed;

use distlto_prepare::io_error::IoError;
use distlto_prepare::mutex::lock;
use distlto_reapi::blob::Blob;
use distlto_reapi::execute::{command_time, with_command_time};
use distlto_reapi::{Client, Code, Digest, DigestMessage, Error, proto};

use super::engine::{Engine, printed};
use super::link_list::KnownObject;
use super::transfer;
use super::under_way::LOOK;
use crate::action::Encoded;
use crate::cache::{Hit, ResultCache};
use crate::describe::Described;
use crate::output::Output;
use crate::result::NewResult;
use crate::schedule::Site;

/// The most bytes of an output that a result holds itself, where it may.
const INLINE: usize = 1 << 20;

/// Describes an output; returns its blob too, unless the result holds that.
pub(super) fn output_file(
    client: &Client,
    path: String,
    bytes: Vec<u8>,
) -> (proto::OutputFile, Option<Blob>) {
    let digest = Some(Digest::of(&bytes).message());
    let file = proto::OutputFile { path, digest, ..Default::default() };
    match client.inlines_outputs() && bytes.len() <= INLINE {
        true => (proto::OutputFile { contents: bytes, ..file }, None),
        false => (file, Some(Blob::new(bytes))),
    }
}

/// Writes an entry. A server that wants an entry's action among its blobs gets that.
pub(super) async fn update(
    client: &Client,
    entry: &Encoded,
    result: proto::ActionResult,
) -> Result<(), Error> {
    let updated = client.update_action_result(entry.digest(), result.clone()).await;
    let lacks_action = |error: &Error| {
        matches!(error, Error::Lost { .. })
            || matches!(error.code(), Some(Code::FailedPrecondition | Code::InvalidArgument | Code::NotFound))
    };
    if !updated.as_ref().is_err_and(lacks_action) {
        return updated;
    }
    let blobs = [&entry.action.action, &entry.action.command].into_iter().cloned().chain(entry.tree.blobs());
    client.upload(blobs).await?;
    client.update_action_result(entry.digest(), result).await
}

impl Engine {
    /// A future's value, unless the run is to end first, or the server is gone.
    pub(super) fn wait<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let while_it_is_there = async {
            tokio::select! {
                biased;
                _ = self.loss.wait() => None,
                value = future => Some(value),
            }
        };
        self.runtime.block_on(self.stop.unless(while_it_is_there)).flatten()
    }

    /// Looks at the results that were on their way.
    pub(super) fn settle_uploads(&self) {
        while let Some(ended) = self.result_uploads.ended() {
            if let Err(error) = ended {
                self.upload_failed(&error);
            }
        }
    }

    /// A result was not kept: no other one is sent, as it would go the same way.
    pub(super) fn upload_failed(&self, error: &Error) {
        match error {
            // One that was ended.
            Error::Shutdown => {}
            _ if error.is_silence() => self.give_up(error),
            _ if !self.result_uploads.stopped.swap(true, Relaxed) => {
                self.result_uploads.abort();
                *lock(&self.result_uploads.why) = Some(format!("the action cache is only read: {error}"));
            }
            _ => {}
        }
    }

    /// Takes the reason why results are not kept, if it was not reported yet.
    pub(super) fn upload_refusal(&self) -> Option<String> {
        lock(&self.result_uploads.why).take()
    }

    /// Looks up a result and downloads its outputs beside their files; returns the first one, too. `None` for
    /// a miss or a result of a failed command.
    async fn cached_result(
        &self,
        client: &Client,
        described: &Described<'_>,
        outputs: &[Output<'_>],
    ) -> Result<Option<(Hit, Option<KnownObject>)>, Error> {
        let names = described.action.outputs.iter().map(|(name, _)| name.clone().into_owned());
        let Some(result) = client.action_result(described.encoded.digest(), names.collect()).await? else {
            return Ok(None);
        };
        if result.exit_code != 0 {
            return Ok(None);
        }
        transfer::fetch(client, &result, described, outputs).await?;
        let stderr = printed(&client.stderr(&result).await?);
        let took = result.execution_metadata.as_ref().and_then(command_time);
        let digest = result.output_files.first().and_then(|file| Digest::from_message(file.digest.as_ref()?));
        let object = digest.map(|digest| KnownObject { digest, took });
        Ok(Some((Hit { stderr, took, is_far: true, is_unobserved: false }, object)))
    }

    /// Whether lookups wait in vain for the server of the cache, though it does not count as gone.
    pub(super) fn is_silent(&self) -> bool {
        let Some((client, _)) = self.cache() else { return false };
        let since = lock(&self.lookups).since();
        lock(&self.silence).lasts(client.statistics().answers(), since)
    }

    /// The same of a client's server.
    pub(super) fn does_not_answer(&self, client: &Client) -> bool {
        let is_its = |(cache, _): &(Client, bool)| cache.options().endpoint == client.options().endpoint;
        self.cache().is_some_and(is_its) && self.is_silent()
    }

    /// Until a lookup has waited in vain, and this machine has a slot for its action.
    async fn in_vain(&self, key: Digest, site: Site) {
        let mut idle = self.pace.idle_slots();
        let has_slot = || site == Site::Here || self.pace.take_idle();
        while self.link_objects.has(key) || !self.is_silent() || !has_slot() {
            tokio::select! {
                Ok(()) = idle.changed() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// Leaves a lookup with a silent server, to see when it answers or is gone.
    fn probe(&self, client: &Client, key: Digest) {
        let client = client.clone();
        let look_up = async move {
            let result = client.action_result(key, Vec::new()).await?;
            for file in result.iter().flat_map(|result| &result.output_files) {
                client.output(file).await?;
            }
            Ok(())
        };
        lock(&self.silence).probe(|| self.runtime.spawn(look_up));
    }

    /// Looks at that lookup.
    pub(super) fn settle_probe(&self) {
        let Some(ended) = lock(&self.silence).ended_probe() else { return };
        lock(&self.silence).ends();
        if let Ok(Err(error)) = self.runtime.block_on(ended) {
            self.lookup_failed(&error);
        }
    }

    fn lookup_failed(&self, error: &Error) {
        match error {
            Error::Corrupt { .. } | Error::TooLarge { .. } | Error::Io { .. } | Error::Lost { .. } => {
                self.unusable.add(|| error.to_string());
            }
            _ => self.give_up(error),
        }
    }

    async fn look_up(
        &self,
        client: &Client,
        action: &Described<'_>,
        outputs: &[Output<'_>],
    ) -> Result<Option<Hit>, IoError> {
        if let Some(found) = self.find_listed(client, action, outputs).await? {
            return Ok(Some(found));
        }
        let key = action.encoded.digest();
        let found = self.cached_result(client, action, outputs).await;
        lock(&self.silence).ends();
        match found {
            Ok(None) => {
                lock(&self.missing).insert(key);
                Ok(None)
            }
            Ok(Some((found, object))) => {
                transfer::put_in_place(outputs)?;
                object.into_iter().for_each(|object| self.link_objects.is_known(key, object, false));
                Ok(Some(found))
            }
            Err(Error::Lost { .. }) => {
                self.note(
                    "a kept result names blobs that are gone; such actions are executed anew".to_owned(),
                );
                // Its outputs are nothing, which the job does not take for a result.
                Ok(Some(Hit { stderr: Vec::new(), took: None, is_far: true, is_unobserved: false }))
            }
            Err(error) => {
                self.lookup_failed(&error);
                Ok(None)
            }
        }
    }
}

impl ResultCache for Engine {
    fn find(
        &self,
        action: &Described<'_>,
        outputs: &[Output<'_>],
        site: Site,
    ) -> Result<Option<Hit>, IoError> {
        let Some((client, _)) = self.cache() else { return Ok(None) };
        let key = action.encoded.digest();
        if lock(&self.missing).contains(&key) {
            return Ok(None);
        }
        lock(&self.lookups).begin();
        let found = self.wait(async {
            tokio::select! {
                biased;
                () = self.in_vain(key, site) => None,
                found = self.look_up(client, action, outputs) => Some(found),
            }
        });
        let found = match found {
            Some(Some(found)) => found,
            Some(None) => {
                self.probe(client, key);
                // This machine is about to have the result.
                self.link_objects.forget(key);
                lock(&self.missing).insert(key);
                Ok(None)
            }
            // The server is gone, or the run is to end.
            None => Ok(None),
        };
        lock(&self.lookups).end(found.as_ref().ok().and_then(Option::as_ref));
        found
    }

    fn keep(&self, action: &Described<'_>, result: &NewResult<'_>) {
        let Some((client, true)) = self.cache() else { return };
        self.settle_uploads();
        let takes = client.capabilities().action_cache_updates && !self.result_uploads.stopped.load(Relaxed);
        if result.by_engine || !takes {
            return;
        }
        let mut blobs = Vec::new();
        let mut files = Vec::new();
        for ((name, _), output) in action.action.outputs.iter().zip(result.outputs) {
            // In memory: the file gets another name as soon as this returns.
            let Ok(bytes) = fs::read(output.file) else { return };
            let (file, blob) = output_file(client, name.clone().into_owned(), bytes);
            files.push(file);
            blobs.extend(blob);
        }
        let message = proto::ActionResult {
            output_files: files,
            stderr_raw: result.stderr.to_vec(),
            execution_metadata: Some(with_command_time(result.measured.wall)),
            ..Default::default()
        };
        let (client, entry, key) = (client.clone(), action.encoded.clone(), action.encoded.digest());
        let object =
            message.output_files.first().and_then(|file| Digest::from_message(file.digest.as_ref()?));
        let took = Some(result.measured.wall);
        let object = object.map(|digest| KnownObject { digest, took });
        object.into_iter().for_each(|object| self.link_objects.is_known(key, object, true));
        let bytes = blobs.iter().map(|blob| usize::try_from(blob.digest().size).unwrap_or(usize::MAX));
        let bytes = bytes
            .sum::<usize>()
            .saturating_add(message.output_files.iter().map(|file| file.contents.len()).sum());
        let upload = async move {
            client.upload(blobs).await?;
            update(&client, &entry, message).await
        };
        // An upload cut short by the end of the run needs no report.
        let _ = self.wait(self.result_uploads.begin(bytes, self.settings().upload_time, upload));
    }

    fn is_far(&self) -> bool {
        true
    }

    fn troubles(&self) -> Vec<String> {
        self.troubles()
    }
}
