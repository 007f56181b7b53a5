//! The objects that the list of a link names, on their way and known.
//!
//! An entry is the digest of a module's action, that of its object, and how long its backend took. A list only says what to
//! fetch early: each object is checked like one that was looked up, and a module that no entry names is looked up. Does not
//! know what is linked.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use distlto_prepare::mutex::lock;
use distlto_reapi::{Client, Digest, DigestMessage, Error, proto};
use distlto_record::report::microseconds;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Size in bytes of a digest in a list: its hash, and the size.
const DIGEST: usize = 32 + 8;
/// Size in bytes of an entry: two digests, and the time of the backend in microseconds.
const ENTRY: usize = 2 * DIGEST + 8;
/// How many KiB of fetched objects wait for their questions.
const ROOM: u32 = 64 << 10;
/// Objects on their way at once: where calls hold many, and where each is a call.
const BATCHED: usize = 512;
const SINGLE: usize = 32;
/// After so many questions, of which hardly any was for an entry, the list is taken for that of another link.
const TRIAL: usize = 32;

/// The objects that the list of a link names.
#[derive(Debug, Default)]
pub(super) struct LinkObjects {
    state: Mutex<ListState>,
    /// Notifies of objects that have come, or will not come.
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct ListState {
    /// By their actions.
    listed: HashMap<Digest, Listed>,
    asked: usize,
    fitting: usize,
    is_over: bool,
    /// The actions that were asked for before there was a list.
    early: HashSet<Digest>,
    /// The objects that this run has found or kept.
    known: HashMap<Digest, KnownObject>,
    /// Whether the cache has a new object.
    has_new: bool,
}

/// An object in the cache.
#[derive(Debug, Clone, Copy)]
pub struct KnownObject {
    /// Of its content.
    pub digest: Digest,
    /// How long its backend took, if that is known.
    pub took: Option<Duration>,
}

#[derive(Debug)]
enum Listed {
    Later(KnownObject),
    OnItsWay,
    /// With its share of the room.
    Here(Vec<u8>, KnownObject, #[expect(dead_code, reason = "held")] OwnedSemaphorePermit),
}

/// An object that a list names.
pub(super) enum Wanted {
    Fetched(Vec<u8>, KnownObject),
    Named(KnownObject),
}

impl LinkObjects {
    /// The list with an entry for each of these actions that has an object here, or is given with one; `None` if the cache has
    /// no new object.
    pub(super) fn list(
        &self,
        modules: impl Iterator<Item = (Digest, Option<KnownObject>)>,
    ) -> Option<Vec<u8>> {
        let state = lock(&self.state);
        if !state.has_new {
            return None;
        }
        let mut bytes = Vec::new();
        for (action, object) in modules {
            let Some(object) = state.known.get(&action).copied().or(object) else { continue };
            for digest in [action, object.digest] {
                bytes.extend(digest.hash);
                bytes.extend(digest.size.to_le_bytes());
            }
            bytes.extend(microseconds(object.took.unwrap_or_default()).to_le_bytes());
        }
        Some(bytes)
    }

    /// The object of an action, if the list has it. Waits for one that is on its way.
    pub(super) async fn take(&self, action: Digest) -> Option<Wanted> {
        let mut changes = self.changed.subscribe();
        self.is_asked_for(action);
        loop {
            match self.found(action)? {
                Listed::Later(object) => return Some(Wanted::Named(object)),
                Listed::Here(bytes, object, _) => return Some(Wanted::Fetched(bytes, object)),
                // The sender lives as long as this.
                Listed::OnItsWay => changes.changed().await.ok()?,
            }
        }
    }

    /// Whether the object of an action has come.
    pub(super) fn has(&self, action: Digest) -> bool {
        matches!(lock(&self.state).listed.get(&action), Some(Listed::Here(..)))
    }

    /// The object of an action will not be asked for.
    pub(super) fn forget(&self, action: Digest) {
        lock(&self.state).listed.remove(&action);
    }

    /// Notes a question, and whether the list is that of this link.
    fn is_asked_for(&self, action: Digest) {
        let mut state = lock(&self.state);
        if state.listed.is_empty() {
            state.early.insert(action);
            return;
        }
        state.asked += 1;
        state.fitting += usize::from(state.listed.contains_key(&action));
        if state.asked >= TRIAL && state.fitting * 4 < state.asked {
            (state.is_over, state.listed) = (true, HashMap::new());
        }
    }

    /// Takes the object of an action, unless it is on its way.
    fn found(&self, action: Digest) -> Option<Listed> {
        let mut state = lock(&self.state);
        match state.listed.get(&action)? {
            Listed::OnItsWay => Some(Listed::OnItsWay),
            Listed::Later(_) | Listed::Here(..) => state.listed.remove(&action),
        }
    }

    /// A result is in the cache.
    pub(super) fn is_known(&self, action: Digest, object: KnownObject, is_new: bool) {
        let mut state = lock(&self.state);
        state.known.insert(action, object);
        state.has_new |= is_new;
    }

    /// Fetches the objects of a list, in its order.
    pub(super) async fn fetch(self: Arc<Self>, client: Client, entries: Vec<(Digest, KnownObject)>) {
        {
            let mut state = lock(&self.state);
            let early = std::mem::take(&mut state.early);
            let later = entries.iter().filter(|(action, _)| !early.contains(action));
            state.listed = later.map(|&(action, object)| (action, Listed::Later(object))).collect();
        }
        let room = Arc::new(Semaphore::new(ROOM as usize));
        let calls = Arc::new(Semaphore::new(if client.inlines_outputs() { SINGLE } else { BATCHED }));
        for (action, object) in entries {
            let size = u32::try_from(object.digest.size >> 10).unwrap_or(ROOM).saturating_add(1).min(ROOM);
            // They are never closed.
            let Ok(call) = calls.clone().acquire_owned().await else { return };
            let Ok(space) = room.clone().acquire_many_owned(size).await else { return };
            let mut state = lock(&self.state);
            if state.is_over {
                return;
            }
            match state.listed.get_mut(&action) {
                Some(listed @ Listed::Later(_)) => *listed = Listed::OnItsWay,
                // It was asked for meanwhile.
                _ => continue,
            }
            drop(state);
            let (all, client) = (self.clone(), client.clone());
            tokio::spawn(async move {
                let fetched = object_of(&client, action, object.digest).await;
                let mut state = lock(&all.state);
                // One that cannot be fetched is looked up.
                let listed = state.listed.remove(&action);
                if let (Ok(bytes), Some(_)) = (fetched, listed) {
                    state.listed.insert(action, Listed::Here(bytes, object, space));
                }
                drop(state);
                all.changed.send_replace(());
                drop(call);
            });
        }
    }
}

/// The object of an action. Where results hold their outputs there is no other place for it.
pub(super) async fn object_of(client: &Client, action: Digest, object: Digest) -> Result<Vec<u8>, Error> {
    let named = proto::OutputFile { digest: Some(object.message()), ..Default::default() };
    let mut output = &named;
    let result =
        if client.inlines_outputs() { client.action_result(action, Vec::new()).await? } else { None };
    if let [file] = result.as_ref().map_or(&[][..], |result| &result.output_files)
        && file.digest == named.digest
    {
        output = file;
    }
    client.output(output).await.map(Into::into)
}

pub(super) fn entries(bytes: &[u8]) -> Vec<(Digest, KnownObject)> {
    let number = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.try_into().ok()?));
    let digest = |bytes: &[u8]| {
        let (hash, size) = bytes.split_first_chunk()?;
        Some(Digest { hash: *hash, size: number(size)? })
    };
    let entry = |entry: &[u8; ENTRY]| {
        let took = Duration::from_micros(number(&entry[2 * DIGEST..])?);
        // A larger one goes from the network to a file when it is asked for.
        let object = digest(&entry[DIGEST..2 * DIGEST]).filter(|object| object.size >> 10 < ROOM.into())?;
        let object = KnownObject { digest: object, took: Some(took).filter(|took| !took.is_zero()) };
        Some((digest(&entry[..DIGEST])?, object))
    };
    let (entries, _) = bytes.as_chunks();
    entries.iter().filter_map(entry).collect()
}
