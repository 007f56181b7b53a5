//! The cache of results as jobs use it: keys from commands and inputs, results from the storage.
//!
//! A result has two keys: the digest of its REAPI Action (`reapi`), the one that a remote cache has, and the semantic key
//! (`semantic`). Both hold what the compiler is (`compiler`) and what its driver would have it do (`words`). A command of
//! which any of that cannot be found out is run each time, and once it is told why. Knows nothing of schedules.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use distlto_planner::digests::Digest;
use distlto_planner::words::Word;
use distlto_prepare::write::IoError;

use super::ResultCache;
use super::compiler::Compilers;
use super::framed::Framed;
use super::inputs::Inputs;
use super::reapi::{self, Spec};
use super::semantic::{self, Parts};
use super::store::{Cache, Limits};
use super::words::Words;
use crate::cancel::Cancel;
use crate::execute::cc1::{Names, Template};
use crate::job::{Context, Job};
use crate::result::{ActionResult, Key, NewResult};
use crate::variables::{self, Reader};
use crate::verify::Role;
use distlto_planner::dtlto::temporaries;

/// A cache of results in a directory.
#[derive(Debug)]
pub struct Results {
    cache: Cache,
    compilers: Compilers,
    environment: Vec<(String, String)>,
    known: Mutex<HashMap<usize, Known>>,
    notes: Mutex<BTreeSet<String>>,
}

/// What is known of all commands of one template.
#[derive(Debug, Clone)]
struct Known {
    /// Held, so that the template's address stays its own.
    _template: Arc<Template>,
    /// `None` for commands whose results are not kept.
    command: Option<Arc<CommandKey>>,
}

/// What of a key all commands of one template share.
#[derive(Debug)]
struct CommandKey {
    compiler: Digest,
    words: Words,
}

impl Results {
    /// Opens the cache in `directory`, making it if missing, for a run that `cancel` ends.
    pub fn open(directory: &Path, limits: Limits, cancel: &Cancel) -> Result<Self, IoError> {
        let cache = Cache::open(directory, limits)?.until(cancel);
        // What a driver reads shows in its answer.
        let environment = variables::read_by(&[Reader::Compiler])
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_string_lossy().into_owned())))
            .collect();
        Ok(Self {
            compilers: Compilers::new(directory),
            cache,
            environment,
            known: Mutex::default(),
            notes: Mutex::default(),
        })
    }

    fn note(&self, what: String) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).insert(what);
    }

    /// What a job's command does, if that is known.
    fn command(&self, job: &Job<'_>, context: &Context<'_>, directory: &Path) -> Option<Arc<CommandKey>> {
        let (backend, cc1_commands) = (job.backend?, context.cc1_commands?);
        let mut names = job.outputs.iter().map(|(path, _)| path.as_str());
        let object = names.next()?;
        let others: Vec<_> = names.collect();
        let names = Names { module: backend.module, shard: backend.shard, object, others: &others };
        let words: Vec<Word> = job.words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let Some(template) = cc1_commands.template(&words, names, |question| context.ask(question)) else {
            if !context.cancel.is_cancelled() {
                let program = job.words.first().copied().unwrap_or_default();
                self.note(format!("results are not kept: what {program} would run is not one clang -cc1"));
            }
            return None;
        };
        // Held while the compiler is looked at: others want the same answer.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || {
            let command = self.look(job, context, &template, directory);
            let command = command.map_err(|reason| self.note(format!("results are not kept: {reason}")));
            Known { _template: Arc::clone(&template), command: command.ok().map(Arc::new) }
        };
        known.entry(Arc::as_ptr(&template).addr()).or_insert_with(new).command.clone()
    }

    fn look(
        &self,
        job: &Job<'_>,
        context: &Context<'_>,
        template: &Template,
        directory: &Path,
    ) -> Result<CommandKey, String> {
        let words = Words::of(template, directory, context.digests)?;
        let compiler = self.compilers.identity(&job.words, &template.compiler, directory)?;
        // What is not remembered is found out again.
        let _ = self.compilers.save();
        Ok(CommandKey { compiler, words })
    }

    fn keys_of(&self, job: &Job<'_>, context: &Context<'_>) -> Option<Vec<Key>> {
        let backend = job.backend?;
        let directory = match context.directory {
            Some(directory) => std::path::absolute(directory),
            None => std::env::current_dir(),
        };
        let directory = directory.ok()?;
        let command = self.command(job, context, &directory)?;
        let inputs = Inputs::of(backend, &directory, context.digests);
        let inputs =
            inputs.map_err(|reason| self.note(format!("{} is not kept: {reason}", job.label))).ok()?;
        let directory = directory.to_str()?;
        let parts = Parts {
            compiler: &command.compiler,
            words: &command.words,
            environment: &self.environment,
            inputs: &inputs,
            outputs: &job.outputs,
            directory,
        };
        let mut keys = Vec::with_capacity(2);
        // No other link names its files so.
        if !temporaries::is_shard(backend.shard) {
            keys.extend(self.action(job, &command, &inputs, directory, context));
        }
        keys.push(Key(semantic::key(parts).hash));
        Some(keys)
    }

    fn action(
        &self,
        job: &Job<'_>,
        command: &CommandKey,
        inputs: &Inputs<'_>,
        directory: &str,
        context: &Context<'_>,
    ) -> Option<Key> {
        let mut salt = Framed::new("distlto action 1");
        salt.content("compiler", &command.compiler);
        salt.content("words", &command.words.digest);
        let mut all = vec![inputs.module];
        all.extend(inputs.shard.as_ref().map(|shard| (shard.name, shard.digest)));
        all.extend(inputs.others.iter().copied());
        for file in &command.words.files {
            all.push((file, context.digests.digest(file.as_str().into()).ok()?));
        }
        let outputs: Vec<_> = job.outputs.iter().map(|(path, _)| path.as_str()).collect();
        let encoded = reapi::encode(&Spec {
            arguments: &job.words,
            environment: &self.environment,
            outputs: &outputs,
            directory,
            inputs: &all,
            salt: &salt.finish().hash,
            platform: &[],
        })?;
        Some(Key(encoded.digest.hash))
    }

    /// Puts a result's outputs into files, if they are what is wanted.
    fn place(&self, key: &Key, outputs: &[(Role, &Path)]) -> Result<Option<ActionResult>, IoError> {
        let Some(record) = self.cache.get(key) else { return Ok(None) };
        let fits = record.outputs.len() == outputs.len()
            && record.outputs.iter().zip(outputs).all(|(output, (role, _))| output.role == *role);
        let mut whole = fits;
        for (output, (_, file)) in record.outputs.iter().zip(outputs) {
            whole = whole && self.cache.materialise(output, file)?;
        }
        if !whole {
            self.cache.forget(key);
        }
        Ok(whole.then_some(record))
    }
}

impl ResultCache for Results {
    fn keys(&self, job: &Job<'_>, context: &Context<'_>) -> Vec<Key> {
        self.keys_of(job, context).unwrap_or_default()
    }

    fn find(&self, keys: &[Key], outputs: &[(Role, &Path)]) -> Result<Option<ActionResult>, IoError> {
        let mut found = None;
        for (at, key) in keys.iter().enumerate() {
            if let Some(record) = self.place(key, outputs)? {
                // The next lookup from the same place then succeeds at once, and a remote cache can be told.
                self.cache.put_record(&keys[..at], &record);
                found = Some(record);
                break;
            }
        }
        self.cache.count(found.is_some());
        Ok(found)
    }

    fn keep(&self, keys: &[Key], result: &NewResult<'_>) {
        self.cache.put(keys, result);
    }

    fn troubles(&self) -> Vec<String> {
        let mut troubles = self.cache.troubles();
        troubles.extend(std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner)));
        let directory = self.cache.directory().display();
        troubles.iter_mut().for_each(|trouble| *trouble = format!("cache {directory}: {trouble}"));
        troubles
    }
}
