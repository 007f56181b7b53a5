//! Describes jobs by content: their `-cc1` commands, their compilers and their inputs.
//!
//! A compiler's driver is asked once for all commands of one shape, and the compiler is looked at once ([`compiler`]).
//! If a part of a job is unknown, the job has no description, and the reason is reported once. Does not depend on the
//! executor of a job and the place of its result.

pub mod canonical_command;
pub mod compiler;
mod compiler_inputs;
pub mod inputs;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex};

use distlto_planner::digests::{Digest, FileDigests};
use distlto_planner::words::Word;
use distlto_prepare::blobs;
use distlto_prepare::frame::Framed;
use distlto_prepare::mutex::lock;
use distlto_reapi::blob::Blob;

use canonical_command::CanonicalCommand;
use compiler::Compilers;
use compiler_inputs::CompilerInputs;
use inputs::{Inputs, NamedModule};

use crate::action::{ActionInput, Description, Encoded, InputContent};
use crate::execute::cc1::{Names, Template};
use crate::execute::drivers::Drivers;
use crate::job::Job;
use crate::output::Role;
use crate::result::Key;
use crate::variables::{self, Reader};
use crate::verify::Backend;

/// A job by content.
#[derive(Debug)]
pub struct Described<'a> {
    /// The action to execute.
    pub action: Description<'a>,
    /// The same in the messages of the Remote Execution API.
    pub encoded: Encoded,
    /// Why no other machine can execute it, if that is so.
    pub local_only: Option<String>,
    /// Where it runs.
    pub directory: &'a str,
}

/// The words of the action that stands for a key of its own. No machine executes it.
const KEYED: [&str; 2] = ["distlto", "object"];

impl Described<'_> {
    /// An object by a key of its own. It is the same on every machine, and says nothing of how the object is made.
    pub fn of_key(key: &Key) -> Self {
        let hex = blobs::hex(&key.0);
        let action = Description {
            words: KEYED.into_iter().map(Cow::from).chain([hex.into()]).collect(),
            environment: &[],
            inputs: Vec::new(),
            outputs: vec![(canonical_command::output(0), Role::Object)],
            platform: &[],
            salt: Vec::new(),
        };
        let encoded = action.encode().expect("an action without inputs has a tree");
        let local_only = Some("the linker compiles it".to_owned());
        Self { action, encoded, local_only, directory: "" }
    }

    /// Returns the key of its result: the digest of its REAPI Action, which a remote cache uses too.
    pub fn key(&self) -> Key {
        Key(self.encoded.digest().hash)
    }

    /// Returns all blobs that another machine needs to execute it, for a job that runs in this directory.
    pub fn blobs(&self, directory: Option<&Path>) -> Vec<Blob> {
        let Encoded { action, tree } = &self.encoded;
        let mut blobs = vec![action.action.clone(), action.command.clone()];
        blobs.extend(tree.blobs());
        let blob = |input: &ActionInput<'_>| match &input.content {
            InputContent::Bytes(bytes) => Blob::named(input.digest, bytes.clone()),
            InputContent::File(file) => {
                let file = Path::new(&**file);
                let file = directory.map_or_else(|| file.to_owned(), |directory| directory.join(file));
                Blob::file(input.digest, file)
            }
        };
        blobs.extend(self.action.inputs.iter().map(blob));
        blobs
    }
}

/// The compilers of any number of runs.
#[derive(Debug)]
pub struct Toolchains {
    compilers: Compilers,
    /// For messages.
    remembered_in: Option<String>,
    /// Whether the user has asked for results by content, so that a job without a description is worth a warning.
    is_asked: bool,
    environment: Vec<(String, String)>,
    known: Mutex<HashMap<usize, TemplateFacts>>,
    notes: Mutex<BTreeSet<String>>,
}

/// Knowledge about all commands of one template.
#[derive(Debug, Clone)]
struct TemplateFacts {
    /// Held, so that the template's address stays its own.
    _template: Arc<Template>,
    /// `None` for commands that have no description.
    toolchain: Option<Arc<Toolchain>>,
}

/// The common part of all commands of one template.
#[derive(Debug)]
struct Toolchain {
    compiler: Digest,
    command: CanonicalCommand,
    /// The compiler as inputs, if workers have none.
    uploaded: Option<CompilerInputs>,
}

impl Toolchains {
    /// Loads the digests of compilers that earlier runs stored in a cache's directory, if there is one.
    pub fn new(cache: Option<&Path>) -> Self {
        // Variables that a driver reads show in its answer.
        let environment = variables::read_by(&[Reader::Compiler])
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_string_lossy().into_owned())))
            .collect();
        Self {
            compilers: Compilers::new(cache),
            remembered_in: cache.map(|cache| cache.display().to_string()),
            is_asked: true,
            environment,
            known: Mutex::default(),
            notes: Mutex::default(),
        }
    }

    /// The same for a user who has not asked for results by content.
    pub fn unasked(self) -> Self {
        Self { is_asked: false, ..self }
    }

    /// Whether the user has asked for results by content.
    pub fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// Returns one sentence for each new reason why jobs had no description.
    pub fn troubles(&self) -> Vec<String> {
        let notes = std::mem::take(&mut *lock(&self.notes));
        let told = |note: String| match &self.remembered_in {
            Some(cache) => format!("cache {cache}: {note}"),
            None => note,
        };
        notes.into_iter().map(told).collect()
    }

    fn note(&self, what: String) {
        lock(&self.notes).insert(what);
    }
}

/// Before a command: it fails, wherever it runs, if it writes no object, which a compiler may call success.
const FAILS_WITHOUT_OUTPUT: [&str; 4] = ["/bin/sh", "-c", r#""$@" && test -s object.o"#, "sh"];

/// Describes the jobs of one run.
pub struct Describer<'a> {
    toolchains: &'a Toolchains,
    drivers: &'a Drivers<'a>,
    digests: &'a FileDigests,
    /// An absolute path.
    directory: String,
    platform: Platform<'a>,
}

/// The machines that execute actions.
#[derive(Debug, Clone, Copy, Default)]
pub struct Platform<'a> {
    /// Platform properties that a worker must have.
    pub properties: &'a [(String, String)],
    /// Whether it gets the compiler with each action.
    pub lacks_compiler: bool,
}

impl<'a> Describer<'a> {
    /// Describes jobs that run in `directory`, the current one when `None`, on such machines. Returns `None` if its
    /// name is not UTF-8, since no description could hold it.
    pub fn new(
        toolchains: &'a Toolchains,
        drivers: &'a Drivers<'a>,
        digests: &'a FileDigests,
        directory: Option<&Path>,
        platform: Platform<'a>,
    ) -> Option<Self> {
        let directory = directory.map_or_else(std::env::current_dir, std::path::absolute).ok()?;
        let directory = directory.into_os_string().into_string().ok()?;
        Some(Self { toolchains, drivers, digests, directory, platform })
    }

    /// Describes a job with verified inputs. `None` if a part is unknown: then it runs on this machine alone and its
    /// result is not kept.
    pub fn describe<'j>(&'j self, job: &'j Job) -> Option<Described<'j>> {
        let backend = job.backend.as_ref()?;
        let toolchain = self.toolchain(job, backend)?;
        let inputs = Inputs::of(backend, Path::new(&self.directory), self.digests);
        let note = |reason| self.toolchains.note(format!("{} is not kept: {reason}", job.label));
        let inputs = inputs.map_err(note).ok()?;
        let mut salt = toolchain.salt();
        let mut local_only = toolchain.command.local_only.clone();
        if toolchain.command.names_matter {
            self.add_names(&mut salt, job, backend, &inputs);
        }
        let mut all = Vec::new();
        let named = |name: &str| toolchain.command.files.values().any(|file| file == name);
        for (name, content) in inputs.remaining().filter(|(name, _)| !named(name)) {
            if canonical_command::is_below(name) {
                all.push(input(name, content, InputContent::File(name.into())));
            } else {
                salt.add("elsewhere", name);
                salt.content("content", &content);
                local_only = Some(format!("{name} is outside of the working directory"));
            }
        }
        for (name, file) in &toolchain.command.files {
            let content = self.digests.digest(file.as_str().into()).ok()?;
            all.push(input(name.clone(), content, InputContent::File(file.clone().into())));
        }
        let module = inputs.module_name.clone();
        all.push(input(module.clone(), inputs.module.1, InputContent::File(backend.module.as_str().into())));
        if let Some(shard) = inputs.shard {
            let modules = shard.modules.into_iter();
            all.extend(modules.map(|NamedModule { path, name, content }| {
                input(name, content, InputContent::File(path.into()))
            }));
            all.push(input(canonical_command::SHARD, shard.digest, InputContent::Bytes(shard.bytes)));
        }
        let others: Vec<&str> = job.outputs.iter().skip(1).map(|(path, _)| path.as_str()).collect();
        let outputs =
            job.outputs.iter().enumerate().map(|(at, (_, role))| (canonical_command::output(at), *role));
        let mut command = toolchain.command.words_of(&module, &others);
        if let Some(uploaded) = &toolchain.uploaded {
            // The first word is the compiler.
            command.splice(..1, uploaded.words.iter().map(|word| word.as_str().into()));
            all.extend(uploaded.inputs.iter().cloned());
        }
        let command = command.into_iter().map(|word| word.into_owned().into());
        let action = Description {
            words: FAILS_WITHOUT_OUTPUT.iter().map(|&word| word.into()).chain(command).collect(),
            environment: &self.toolchains.environment,
            inputs: all,
            outputs: outputs.collect(),
            platform: self.platform.properties,
            salt: salt.finish().hash.to_vec(),
        };
        let encoded = action.encode().map_err(|error| note(error.to_string())).ok()?;
        Some(Described { action, encoded, local_only, directory: &self.directory })
    }

    /// Adds the names of files, where they decide the result.
    fn add_names(&self, salt: &mut Framed, job: &Job, backend: &Backend, inputs: &Inputs<'_>) {
        salt.add("directory", &self.directory);
        salt.add("name", &backend.module);
        salt.add("name", &backend.shard);
        job.outputs.iter().for_each(|(name, _)| salt.add("name", name.as_str()));
        let modules = inputs.shard.iter().flat_map(|shard| &shard.modules);
        modules.for_each(|module| salt.add("name", module.path));
    }

    /// Returns the toolchain of a job's command, if it is known.
    fn toolchain(&self, job: &Job, backend: &Backend) -> Option<Arc<Toolchain>> {
        let mut names = job.outputs.iter().map(|(path, _)| path.as_str());
        let object = names.next()?;
        let others: Vec<_> = names.collect();
        let names = Names { module: &backend.module, shard: &backend.shard, object, others: &others };
        let words: Vec<Word> = job.words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let Some(template) = self.drivers.template(&words, names) else {
            if !self.drivers.cancel.is_cancelled() {
                let program = job.words.first().map_or("", String::as_str);
                let reason = format!("what {program} would run is not one clang -cc1");
                self.toolchains.note(format!("results are not kept: {reason}"));
            }
            return None;
        };
        // Held while the compiler is looked at: others want the same answer.
        let mut known = lock(&self.toolchains.known);
        let new = || {
            let toolchain = self.look(job, &template);
            let note = |reason| self.toolchains.note(format!("results are not kept: {reason}"));
            TemplateFacts {
                _template: Arc::clone(&template),
                toolchain: toolchain.map_err(note).ok().map(Arc::new),
            }
        };
        known.entry(Arc::as_ptr(&template).addr()).or_insert_with(new).toolchain.clone()
    }

    fn look(&self, job: &Job, template: &Template) -> Result<Toolchain, String> {
        let directory = Path::new(&self.directory);
        let command = CanonicalCommand::of(template, directory, self.digests)?;
        let compilers = &self.toolchains.compilers;
        let compiler = compilers.identity(&job.words, &template.compiler, directory)?;
        let uploaded = self
            .platform
            .lacks_compiler
            .then(|| CompilerInputs::of(&template.compiler, |file| compilers.digest(file)));
        // Digests that are not saved are computed again.
        let _ = compilers.save();
        Ok(Toolchain { compiler, command, uploaded: uploaded.transpose()? })
    }
}

impl Toolchain {
    fn salt(&self) -> Framed {
        let mut salt = Framed::new("distlto action 2");
        salt.content("compiler", &self.compiler);
        salt.content("elsewhere", &self.command.elsewhere());
        salt
    }
}

fn input<'a>(name: impl Into<Cow<'a, str>>, digest: Digest, content: InputContent<'a>) -> ActionInput<'a> {
    ActionInput { name: name.into(), digest, is_executable: false, content }
}
