//! Results on disk: records by key, and the content of outputs by its SHA-256 digest.
//!
//! Knows keys, digests and files; the caller defines the meaning of a key. Layout: `results-v1/records/ab/cdef..` by
//! key (see [`record`]), `results-v1/blobs/ab/cdef..` by content and `results-v1/tmp` (see [`distlto_prepare::blobs`]).
//!
//! A record decides the outputs of a key. So it counts only if its file belongs to this user or root, or if the cache
//! is shared. Each read checks a record's own digest or a blob's content, so that nothing is ever flushed with `fsync`
//! and no lock is held. A record is written after its blobs. A damaged file is removed, reported by
//! [`Cache::troubles`], and a miss. A file that another process prunes at this moment is a miss too. A cache that
//! cannot be written only costs time.
//!
//! One file per key, without an index: each file is written whole or not at all. A crash loses only the unfinished
//! file, and any number of links and machines share one file system. A single log would need a lock for each object.

mod archive;
mod eviction;
mod layout;
pub mod limits;
pub mod maintenance;
mod record;
pub mod usage;

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use distlto_prepare::blobs::{self, Blobs, Placed};
use distlto_prepare::io_error::IoError;
use distlto_prepare::mutex::lock;
use distlto_prepare::private;
use distlto_prepare::prune::space;

use super::{Hit, ResultCache};
use crate::cancel::Cancel;
use crate::describe::Described;
use crate::output::Output;
use crate::result::{ActionResult, Key, NewResult, OutputFile};
use crate::schedule::Site;
pub use archive::Transferred;
use eviction::Evictor;
pub use layout::sha256;
use layout::{BLOBS, LARGEST_RECORD, LAYOUT, PARTS, RECORDS};
pub use limits::CacheLimits;

/// Putting ends for a process after so many failures: a full disk stays full.
const FAILURES: usize = 8;

/// An open cache, for any number of threads.
#[derive(Debug)]
pub struct Cache {
    directory: PathBuf,
    blobs: Arc<Blobs>,
    evictor: Evictor,
    /// Whether records count that other users have written.
    is_shared: bool,
    /// Whether a result counts in its own directory alone if nobody observed the reads of its command.
    is_per_directory: bool,
    /// How often putting failed.
    failures: AtomicUsize,
    troubles: Mutex<Troubles>,
}

/// Faults of the cache, each one once.
#[derive(Debug, Default)]
struct Troubles {
    seen: BTreeSet<String>,
    untold: Vec<String>,
}

impl Cache {
    /// Opens the cache in `directory`, creates it if missing, and removes temporary files of dead processes. A cache
    /// that can only be read is fine.
    pub fn open(directory: &Path, limits: CacheLimits) -> Result<Self, IoError> {
        LAYOUT.make(directory)?;
        let cache = Self::at(directory, limits);
        cache.blobs.sweep()?;
        Ok(cache)
    }

    fn at(directory: &Path, limits: CacheLimits) -> Self {
        Self {
            directory: directory.to_owned(),
            blobs: Arc::new(Blobs::new(&LAYOUT.root(directory), sha256)),
            evictor: Evictor::new(limits),
            is_shared: false,
            is_per_directory: false,
            failures: AtomicUsize::new(0),
            troubles: Mutex::default(),
        }
    }

    /// Accepts records of other users too.
    pub fn shared(mut self) -> Self {
        self.is_shared = true;
        self
    }

    /// Files that are used from now on stay, whatever the limits are: a link needs all its objects.
    pub fn sparing(mut self) -> Self {
        self.evictor.since = Some(SystemTime::now() - blobs::USE_GRAIN);
        self
    }

    /// Restricts results to their own directory if nobody observed the reads of their command: for users who have not
    /// asked for a cache.
    pub fn per_directory(mut self) -> Self {
        self.is_per_directory = true;
        self
    }

    /// The directory that the cache was opened in.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns one sentence for each new fault of the cache itself since the last call. Each fault is reported once.
    /// The results are right all the same.
    pub fn troubles(&self) -> Vec<String> {
        std::mem::take(&mut self.lock_troubles().untold)
    }

    /// The record under a key. Says nothing of its outputs, which may be gone: see [`Cache::materialise`].
    pub fn get(&self, key: &Key) -> Option<ActionResult> {
        let path = self.record(key);
        let problem = match blobs::read_at_most(&path, LARGEST_RECORD) {
            // From when the directory was shared.
            Ok((_, found)) if !self.is_shared && private::check_open(&path, &found).is_err() => {
                self.note("results that other users have kept there do not count".to_owned());
                return None;
            }
            Ok((bytes, found)) => match record::decode(key, &bytes) {
                Ok(record) => {
                    blobs::used(&path, &found);
                    return Some(record);
                }
                Err(problem) => problem,
            },
            Err(error) if blobs::is_nothing(&error) => return None,
            Err(error) => error.to_string(),
        };
        let stays = blobs::remove(&path).err().map_or_else(String::new, |error| format!(" ({error})"));
        self.damaged(&format!("{}: {problem}{stays}", path.display()));
        None
    }

    /// Places the outputs of a cache entry if they have the wanted roles and are whole. Removes any other entry.
    fn place(&self, key: &Key, outputs: &[Output<'_>]) -> Result<Option<ActionResult>, IoError> {
        let Some(result) = self.get(key) else { return Ok(None) };
        let pairs = || result.outputs.iter().zip(outputs);
        let mut whole =
            result.outputs.len() == outputs.len() && pairs().all(|(kept, wanted)| kept.role == wanted.role);
        for (kept, wanted) in pairs() {
            whole = whole && self.materialise(kept, &wanted.file)?;
        }
        if !whole {
            self.forget(key);
        }
        Ok(whole.then_some(result))
    }

    /// Makes `path` a file with an output's content, and with ordinary permissions: its owner may write to it.
    /// `false` if the cache does not have the content whole: then the record is worth nothing, and goes too with
    /// [`Cache::forget`]. An error is one of `path`.
    pub fn materialise(&self, output: &OutputFile, path: &Path) -> Result<bool, IoError> {
        match self.blobs.place(&output.digest, Some(output.size), path, output.executable)? {
            Placed::Yes => return Ok(true),
            Placed::Absent => {}
            Placed::Damaged(what) => self.damaged(&what),
        }
        Ok(false)
    }

    /// Opens an output's content, which is whole; `None` as for [`Cache::materialise`].
    pub fn open_output(&self, output: &OutputFile) -> Option<File> {
        match self.blobs.open(&output.digest) {
            Ok(file) => return Some(file),
            Err(Placed::Damaged(what)) => self.damaged(&what),
            Err(_) => {}
        }
        None
    }

    /// Counts a use of the record under a key, and of its outputs.
    pub fn used(&self, key: &Key) {
        let path = self.record(key);
        // One that is gone is of no use.
        if let Ok(found) = std::fs::symlink_metadata(&path) {
            blobs::used(&path, &found);
        }
        self.count(true);
    }

    /// The most bytes that it is to take, if there is a limit.
    pub fn size_limit(&self) -> Option<u64> {
        self.evictor.limits.size
    }

    /// Drops the record under a key.
    pub fn forget(&self, key: &Key) {
        // Then it stays for the next one to find out.
        let _ = blobs::remove(&self.record(key));
    }

    /// The folder of all outputs, each in a folder for the first byte of its digest.
    pub fn outputs(&self) -> PathBuf {
        self.blobs.root().join(BLOBS)
    }

    /// Keeps an object with these bytes under a key, as [`Cache::put`] keeps a result. `result` has no outputs.
    pub fn put_object(&self, key: &Key, output: OutputFile, bytes: &[u8], result: &NewResult<'_>) {
        let _ = self.putting(|| {
            let digest = output.digest;
            let mut taken = if self.blobs.keep(&digest, bytes)? { space(output.size) } else { 0 };
            let record = Self::record_of(result, vec![output]);
            taken += self.keep_record(key, &record)?;
            blobs::used_now(&self.blobs.file(BLOBS, &digest));
            self.evictor.stored();
            Ok((record, taken))
        });
    }

    /// Keeps a result under a key. A failure costs time only, and [`Cache::troubles`] reports it.
    pub fn put(&self, key: &Key, result: &NewResult<'_>) -> Option<ActionResult> {
        self.putting(|| {
            let (record, bytes) = self.keep_outputs(result)?;
            let bytes = bytes + self.keep_record(key, &record)?;
            // After the record: the least recently used file goes first, and a record should go before its blobs.
            record.outputs.iter().for_each(|output| blobs::used_now(&self.blobs.file(BLOBS, &output.digest)));
            self.evictor.stored();
            Ok((record, bytes))
        })
    }

    /// Keeps a result that is here under another key too.
    pub fn put_again(&self, key: &Key, result: &ActionResult) {
        let _ = self.putting(|| Ok((result.clone(), self.keep_record(key, result)?)));
    }

    fn putting(&self, put: impl FnOnce() -> Result<(ActionResult, u64), IoError>) -> Option<ActionResult> {
        if self.failures.load(Ordering::Relaxed) >= FAILURES {
            return None;
        }
        match put() {
            Ok((value, bytes)) => {
                self.evictor.put(&self.blobs, bytes);
                Some(value)
            }
            Err(error) => {
                let failures = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
                if failures == 1 && eviction::is_full(&error) {
                    self.evictor.make_room(&self.blobs);
                }
                match failures {
                    1 => self.note(format!("a result could not be kept in the cache: {error}")),
                    FAILURES => self.note(format!("nothing more is kept in the cache: {error}")),
                    _ => {}
                }
                None
            }
        }
    }

    /// Counts a lookup that gave all outputs, or did not, in the statistics.
    pub fn count(&self, hit: bool) {
        self.evictor.looked_up(hit);
    }

    /// For a run that this token ends: from then on, nothing is removed to keep to the limits, and closing the cache
    /// does not wait for that.
    pub fn until(self, cancel: &Cancel) -> Self {
        self.evictor.until(cancel.clone());
        self
    }

    fn record(&self, key: &Key) -> PathBuf {
        self.blobs.file(RECORDS, &key.0)
    }

    /// Keeps the outputs of a result. Returns its record, which is not kept yet, and the bytes that the outputs took.
    fn keep_outputs(&self, result: &NewResult<'_>) -> Result<(ActionResult, u64), IoError> {
        let mut outputs = Vec::with_capacity(result.outputs.len());
        let mut taken = 0;
        for output in result.outputs {
            let (bytes, found) = blobs::read(output.file).map_err(IoError::on("read", output.file))?;
            let (digest, size) = (sha256(&bytes), bytes.len() as u64);
            if self.blobs.keep(&digest, &bytes)? {
                taken += space(size);
            }
            let executable = found.permissions().mode() & 0o100 != 0;
            outputs.push(OutputFile {
                role: output.role,
                name: output.name.to_owned(),
                digest,
                size,
                executable,
            });
        }
        Ok((Self::record_of(result, outputs), taken))
    }

    fn record_of(result: &NewResult<'_>, outputs: Vec<OutputFile>) -> ActionResult {
        ActionResult {
            module: result.module.to_owned(),
            outputs,
            stderr: result.stderr.to_vec(),
            measured: result.measured,
            created: SystemTime::now(),
            note: result.note.to_owned(),
        }
    }

    fn keep_record(&self, key: &Key, record: &ActionResult) -> Result<u64, IoError> {
        let bytes = record::encode(record, key);
        self.blobs.write(&self.record(key), &bytes)?;
        Ok(space(bytes.len() as u64))
    }

    fn damaged(&self, what: &str) {
        self.note(format!("damaged cache entry removed: {what}"));
    }

    fn note(&self, what: String) {
        let mut troubles = self.lock_troubles();
        if troubles.seen.insert(what.clone()) {
            troubles.untold.push(what);
        }
    }

    fn lock_troubles(&self) -> MutexGuard<'_, Troubles> {
        lock(&self.troubles)
    }
}

fn directory_key(action: &Described<'_>) -> Key {
    action.key().in_directory(Path::new(action.directory))
}

impl ResultCache for Cache {
    fn find(
        &self,
        action: &Described<'_>,
        outputs: &[Output<'_>],
        _site: Site,
    ) -> Result<Option<Hit>, IoError> {
        let observed = self.place(&action.key(), outputs)?;
        let is_unobserved = observed.is_none() && self.is_per_directory;
        let found = if is_unobserved { self.place(&directory_key(action), outputs)? } else { observed };
        self.count(found.is_some());
        Ok(found.map(|result| Hit {
            stderr: result.stderr,
            took: Some(result.measured.wall).filter(|took| !took.is_zero()),
            is_far: false,
            is_unobserved,
        }))
    }

    fn keep(&self, action: &Described<'_>, result: &NewResult<'_>) {
        let is_here = result.is_unobserved && self.is_per_directory;
        let key = if is_here { directory_key(action) } else { action.key() };
        self.put(&key, result);
    }

    fn troubles(&self) -> Vec<String> {
        let directory = self.directory().display();
        Self::troubles(self).iter().map(|trouble| format!("cache {directory}: {trouble}")).collect()
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        self.evictor.end(&self.blobs);
    }
}
