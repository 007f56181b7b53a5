//! The context for answering one linker, and with it the inputs and flags of a module's backend.
//!
//! Does not read questions.

use std::fs::File;
use std::path::{Path, PathBuf};

use camino::Utf8PathBuf;
use distlto_executor::describe::framed::Framed;
use distlto_executor::describe::inputs::Inputs;
use distlto_executor::execute::cc1::Cc1Commands;
use distlto_executor::result::Key;
use distlto_executor::verify::Backend;
use distlto_planner::backend_flags::{BackendFiles, BackendFlags};
use distlto_planner::bitcode::BitcodeError;
use distlto_planner::digests::{Digest, FileDigests};
use distlto_planner::keep::ModulePlaces;
use distlto_planner::shard;
use distlto_planner::words::{shell_line, shell_quote};

use distlto_record::why::Change;

use super::action_records::ActionRecords;
use super::import_steps::LinkImports;
use super::kept;
use super::key_parts::{Content, Identity, KeyParts, short};
use super::module::{LinkModule, triple};
use super::module_record::PreviousModules;
use super::modules::ModuleFiles;
use super::objects::Objects;
use super::protocol::Question;
use super::settings::CompileSettings;
use super::whole_link::LinkServers;
use crate::link::Session;

/// Why a linker begins anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anew<'w> {
    /// Locals cannot have stable names, for this reason.
    Nameless(&'w str),
    /// It has opened a damaged object.
    Damaged,
}

/// The callback before a linker begins anew.
pub type BeforeAnew<'a> = &'a (dyn Fn(Anew<'_>) + Sync);

/// The context for answering one linker.
pub struct Answering<'a> {
    pub session: &'a Session<'a>,
    /// Where the linker runs, where that is another directory than this process's.
    pub directory: Option<&'a Path>,
    pub compilation: &'a CompileSettings,
    pub identity: &'a Identity,
    pub digests: &'a FileDigests,
    pub earlier: &'a PreviousModules,
    pub objects: Objects<'a>,
    pub cc1_commands: &'a Cc1Commands,
    /// Whether the names of promoted locals come from their sources.
    pub stable_names: bool,
    /// Whether caches beside the store may have objects of modules that the linker compiles.
    pub asks_caches: bool,
    /// Whether it asks caches, has bitcode, and no earlier link has left a record.
    pub is_new: bool,
    pub imports: &'a LinkImports,
    /// Has the compiler and its flags for import steps.
    pub ask_compiler: &'a (dyn Fn() -> Option<(String, BackendFlags)> + Sync),
    /// Called when the linker has succeeded and waits for its end, and when it is gone. Uploads may go on.
    pub linker_ends: &'a (dyn Fn(bool) + Sync),
    /// The caches and engines.
    pub servers: &'a LinkServers<'a>,
    /// Called before the linker begins anew. It may ask again before this has ended.
    pub before_anew: BeforeAnew<'a>,
    /// The linker's notes.
    pub notes: Option<&'a File>,
}

impl Answering<'_> {
    /// The inputs of a backend.
    pub fn content(
        &self,
        module: &str,
        shard: &str,
        imports: &[String],
        flags: &[String],
        dwo: Option<&Utf8PathBuf>,
    ) -> Option<Content> {
        let extra: Vec<&str> = self.compilation.flags.inputs.iter().map(|path| path.as_str()).collect();
        let others: Vec<&str> = imports.iter().map(String::as_str).chain(extra.iter().copied()).collect();
        let backend = Backend { module, shard, others: &others };
        let inputs = Inputs::of(backend, self.directory.unwrap_or(Path::new("")), self.digests).ok()?;
        let dwo = dwo.map_or("", |dwo| dwo.as_str());
        let mut framed = Framed::new("distlto content 1");
        framed.content("compilation", &self.identity.digest);
        inputs.add_to(&mut framed);
        framed.add("dwo", dwo);
        flags.iter().for_each(|flag| framed.add("flag", flag));
        Some(Content {
            digest: framed.finish().hex(),
            parts: KeyParts::of(self.identity, &inputs, &extra, flags, dwo),
            imports: inputs.others.iter().take(imports.len()).map(|(_, content)| short(content)).collect(),
        })
    }

    /// Describes a module without an object that its linker is to compile, and why there is none.
    pub fn missed(
        &self,
        files: &mut ModuleFiles,
        question: &Question<'_>,
        (id, key): (&str, String),
        bytes: &[u8],
    ) -> Result<(LinkModule, Vec<Change>), BitcodeError> {
        let read = shard::read(bytes)?;
        let shard = shard::digest_without_paths(bytes).unwrap_or_default();
        let (parts, contents) = KeyParts::of_shard(self.identity, id, &read.modules, &shard);
        let decisions = match self.compilation.shows_imports {
            true => short(&Digest::of(&shard::decisions(&shard::canonical(bytes)?.bytes)?)),
            false => String::new(),
        };
        let imports: Vec<_> = read.imported_from(id).map(|module| module.name().into_owned()).collect();
        let mut module = LinkModule {
            id: id.to_owned(),
            label: files.label(id),
            archive: files.archive_of(id).map(|(archive, offset)| (archive.to_owned(), offset)),
            key,
            shard,
            decisions,
            file: Some(id.to_owned()),
            imports: imports.iter().map(|id| files.label(id)).collect(),
            cost: read.cost(id).unwrap_or_default(),
            parts: Some(parts),
            ..LinkModule::default()
        };
        self.add_question(&mut module, question, bytes);
        // In the order of their contents.
        let why = self.action_records().why(&module, &contents);
        module.imports.sort_unstable();
        Ok((module, why))
    }

    /// Adds the linker's question to a module's record, so that the next link can open the object.
    pub fn add_question(&self, module: &mut LinkModule, question: &Question<'_>, shard: &[u8]) {
        if self.compilation.linker.is_none() {
            return;
        }
        module.asked = kept::name(question, shard);
        module.identity = short(&self.identity.digest);
        if let Some(object) = &mut module.object {
            object.asked.clone_from(&module.asked);
            object.identity.clone_from(&module.identity);
        }
    }

    /// A shell command that repeats a module's backend.
    pub fn command_line(&self, module: &LinkModule) -> String {
        let places = ModulePlaces::of(self.session.directory, &module.label);
        let file = module.file.as_deref().unwrap_or_default();
        let dwo = self.compilation.flags.dwo(&module.label);
        let names = BackendFiles {
            module: file,
            shard: &places.shard,
            object: &places.object,
            dwo: dwo.as_ref().map(|dwo| dwo.as_str()),
        };
        let mut command = self.compilation.shared_words().to_vec();
        command.extend_from_slice(&module.flags.args);
        command.extend(names.args(&triple(&self.here(file))));
        let here = std::path::absolute(self.directory.unwrap_or(Path::new("."))).unwrap_or_default();
        let line = shell_line(command.iter().map(String::as_str));
        format!("cd {} && {line}", shell_quote(&here.to_string_lossy()))
    }

    /// The key of the list of this link's objects in caches. It holds no path outside of the working directory.
    pub fn list_key(&self) -> Key {
        let output = Path::new(self.session.link.line.output());
        let here = std::path::absolute(self.directory.unwrap_or(Path::new("."))).unwrap_or_default();
        let output = match output.strip_prefix(&here) {
            Ok(below) => below,
            Err(_) if output.is_absolute() => output.file_name().map_or(output, Path::new),
            Err(_) => output,
        };
        let mut framed = Framed::new("distlto objects of a link 1");
        framed.content("compilation", &self.identity.digest);
        framed.add("output", output.as_os_str().as_encoded_bytes());
        Key(framed.finish().hash)
    }

    pub fn action_records(&self) -> ActionRecords<'_> {
        ActionRecords {
            directory: self.session.directory,
            earlier: self.earlier,
            compilation: self.compilation,
        }
    }

    /// A path of this link as this process names it.
    pub fn here(&self, path: &str) -> PathBuf {
        self.directory.map_or_else(|| PathBuf::from(path), |directory| directory.join(path))
    }
}
