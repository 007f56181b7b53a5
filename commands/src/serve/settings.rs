//! The settings for compiling the modules of a link, and the digest of those that decide the objects.
//!
//! Compiles nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use distlto_executor::describe::canonical_command::names_in;
use distlto_executor::describe::compiler::Compilers;
use distlto_planner::backend_flags::BackendFlags;
use distlto_planner::digests::FileDigests;
use distlto_planner::linker::flavour::Flavour;
use distlto_planner::recorded_flags::{FlagRecords, RecordError};
use distlto_planner::words::Word;
use distlto_prepare::io_error::IoError;

use super::key_parts::Identity;
use super::modules::ModuleFiles;
use crate::completion::Completion;

/// Makes ELF's linker write its symbol resolution.
const RESOLVE: &[u8] = b"--save-temps=resolution";

/// The settings that decide how the modules of a link are compiled.
#[derive(Debug, Default)]
pub struct CompileSettings {
    /// The program that compiles: a clang, or the linker itself.
    pub compiler: String,
    /// The linker, if it compiles its modules itself, with its options that may change code.
    pub linker: Option<LinkerCode>,
    /// Whether modules are described for a compiler, which an engine may run.
    pub is_described: bool,
    /// The linker's flavour, if that is not ELF's.
    pub flavour: Option<Flavour>,
    /// The architecture whose slices of universal files are linked, where there may be such files.
    pub architecture: Option<String>,
    /// The compiler's options.
    pub flags: BackendFlags,
    /// Whether shards are completed, so that objects are the linker's own.
    pub is_completed: bool,
    /// Whether the linker shows its modules after their imports.
    pub shows_imports: bool,
    /// How many backends the link line asks to run at once.
    pub jobs: Option<usize>,
    /// Where a build has recorded each module's flags, where those count.
    pub records: Option<FlagRecords>,
}

/// How a linker compiles its modules.
#[derive(Debug, Clone)]
pub struct LinkerCode {
    pub program: String,
    /// The libraries that it has loaded.
    pub libraries: Vec<PathBuf>,
    pub words: Vec<String>,
}

impl LinkerCode {
    fn all_words(&self) -> Vec<String> {
        [self.program.clone()].into_iter().chain(self.words.iter().cloned()).collect()
    }

    /// Whether the objects are for the processor of this machine, whatever that is (`-mcpu=native`).
    pub fn is_for_this_processor(&self) -> bool {
        self.words.iter().any(|word| word.ends_with("=native"))
    }

    /// The content of the program and its libraries. The store remembers their digests.
    pub fn content(&self, store: Option<&Path>) -> Result<String, IoError> {
        let compilers = Compilers::new(store);
        let files = [PathBuf::from(&self.program)].into_iter().chain(self.libraries.iter().cloned());
        let content = compilers.identity_of(files.collect());
        // Digests that are not saved are computed again.
        let _ = compilers.save();
        let content = content.map_err(std::io::Error::other).map_err(IoError::on("read", &self.program))?;
        Ok(content.to_string())
    }

    /// The options that may change code, with the contents of files in the places of their names: objects are the same
    /// wherever these lie.
    fn words_by_content(&self, directory: &Path, digests: &FileDigests) -> Result<Vec<String>, IoError> {
        let mut words = self.words.clone();
        for word in &mut words {
            let names: Vec<String> = names_in(word).map(str::to_owned).collect();
            for name in names.iter().filter(|name| directory.join(name).is_file()) {
                *word = word.replacen(name.as_str(), &digests.digest(Utf8Path::new(name))?.to_string(), 1);
            }
        }
        Ok(words)
    }
}

/// The flags that a build has recorded of a module, and the file that has them.
#[derive(Debug, Clone, Default)]
pub struct ModuleFlags {
    pub args: Vec<String>,
    pub file: Option<Utf8PathBuf>,
}

impl CompileSettings {
    /// The words that all backends share.
    pub fn shared_words(&self) -> Arc<[String]> {
        match self.linker.as_ref().filter(|_| !self.is_described) {
            Some(linker) => linker.all_words().into(),
            None => self.flags.shared_words(&self.compiler).into(),
        }
    }

    /// The program whose version decides what the objects are.
    pub fn program(&self) -> &str {
        self.linker.as_ref().map_or(&self.compiler, |linker| &linker.program)
    }

    /// The word that makes the linker write its symbol resolution, if shards are completed.
    pub fn resolving(&self) -> Option<Word> {
        let word = self.flavour.map_or(Some(RESOLVE), Flavour::resolving);
        word.filter(|_| self.is_completed).map(<[u8]>::to_vec)
    }

    /// Whether the linker does not ask, but calls a distributor.
    pub fn is_distributed(&self) -> bool {
        self.flavour.is_some_and(Flavour::is_distributed)
    }

    /// How the linker takes an option for its distributor.
    pub fn spelled(&self, name: &str, value: &[u8]) -> Word {
        match self.flavour {
            Some(flavour) => flavour.spelled(name, value),
            None => [format!("--{name}=").as_bytes(), value].concat(),
        }
    }

    /// The symbols of the linker's resolution, without the prefix of the format.
    pub fn completion<'t>(&self, resolution: &'t [u8]) -> Completion<'t> {
        Completion::of(resolution, self.flavour.map_or("", Flavour::symbol_prefix))
    }

    /// The flags that are a module's own.
    pub fn of_module(&self, files: &mut ModuleFiles, id: &str) -> Result<ModuleFlags, RecordError> {
        let Some(records) = &self.records else { return Ok(ModuleFlags::default()) };
        let (object, archive) = files.recorded_as(id);
        let args = records.flags_of(&object, archive.as_deref())?.kept;
        Ok(ModuleFlags { args, file: Some(records.file_of(&object)) })
    }

    /// Returns the identity of the program that compiles, and of its options. `note` distinguishes programs of one name.
    /// Files that the words name count with their content.
    pub fn identity(
        &self,
        note: &[u8],
        directory: &Path,
        digests: &FileDigests,
    ) -> Result<Identity, IoError> {
        if let Some(linker) = &self.linker {
            return Ok(Identity::of(note, &linker.words_by_content(directory, digests)?));
        }
        let mut words = self.flags.shared_words(&self.compiler);
        let mut files: Vec<String> = self.flags.inputs.iter().map(|file| file.to_string()).collect();
        for word in &words[1..] {
            files.extend(names_in(word).filter(|name| directory.join(name).is_file()).map(str::to_owned));
        }
        files.sort_unstable();
        files.dedup();
        for file in files {
            words.push(format!("{file} {}", digests.digest(Utf8Path::new(&file))?));
        }
        words.extend(self.is_completed.then(|| "completed".to_owned()));
        words.extend(self.flags.dwo_directory.iter().map(|directory| directory.to_string()));
        Ok(Identity::of(note, &words))
    }
}
