//! The inputs of a module's backend, as a linker's question and the link's settings say.
//!
//! Does not read questions.

use std::path::Path;

use camino::Utf8PathBuf;
use distlto_executor::describe::inputs::Inputs;
use distlto_executor::result::Key;
use distlto_executor::verify::Backend;
use distlto_planner::backend_flags::BackendFiles;
use distlto_planner::bitcode::BitcodeError;
use distlto_planner::digests::Digest;
use distlto_planner::keep::ModulePlaces;
use distlto_planner::shard;
use distlto_planner::words::{shell_line, shell_quote};
use distlto_prepare::frame::Framed;
use distlto_record::why::Change;

use super::kept;
use super::key_parts::{Content, KeyParts, short};
use super::link::Link;
use super::module::{LinkModule, triple};
use super::module_record::Provenance;
use super::modules::ModuleFiles;
use super::protocol::Question;

impl Link<'_> {
    /// The inputs of a backend.
    pub fn content(
        &self,
        module: &str,
        shard: &str,
        imports: &[String],
        flags: &[String],
        dwo: Option<&Utf8PathBuf>,
    ) -> Option<Content> {
        let extra: Vec<&str> = self.settings.flags.inputs.iter().map(|path| path.as_str()).collect();
        let others = imports.iter().cloned().chain(extra.iter().map(|&path| path.to_owned())).collect();
        let backend = Backend { module: module.to_owned(), shard: shard.to_owned(), others };
        let inputs = Inputs::of(&backend, self.root(), &self.digests).ok()?;
        let dwo = dwo.map_or("", |dwo| dwo.as_str());
        let mut framed = Framed::new("distlto content 1");
        framed.content("compilation", &self.identity.digest);
        inputs.add_to(&mut framed);
        framed.add("dwo", dwo);
        flags.iter().for_each(|flag| framed.add("flag", flag));
        Some(Content {
            digest: framed.finish().hex(),
            parts: KeyParts::of(&self.identity, &inputs, &extra, flags, dwo),
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
        let (parts, contents) = KeyParts::of_shard(&self.identity, id, &read.modules, &shard);
        let decisions = match self.settings.shows_imports {
            true => short(&Digest::of(&shard::decisions(&shard::canonical(bytes)?.bytes)?)),
            false => String::new(),
        };
        let imports: Vec<_> = read.imported_from(id).map(|module| module.name().into_owned()).collect();
        let mut provenance = Provenance { shard, decisions, parts: Some(parts), ..Provenance::default() };
        provenance.set_cost(read.cost(id).unwrap_or_default());
        let mut module = LinkModule {
            id: id.to_owned(),
            label: files.label(id),
            archive: files.archive_of(id).map(|(archive, offset)| (archive.to_owned(), offset)),
            key,
            provenance,
            file: Some(id.to_owned()),
            imports: imports.iter().map(|id| files.label(id)).collect(),
            ..LinkModule::default()
        };
        self.add_question(&mut module, question, bytes);
        // In the order of their contents.
        let why = self.why(&module, &contents);
        module.imports.sort_unstable();
        Ok((module, why))
    }

    /// Adds the linker's question to a module's record, so that the next link can open the object.
    pub fn add_question(&self, module: &mut LinkModule, question: &Question<'_>, shard: &[u8]) {
        if self.settings.linker.is_none() {
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
        let places = ModulePlaces::of(self.state(), &module.label);
        let file = module.file.as_deref().unwrap_or_default();
        let dwo = self.settings.flags.dwo(&module.label);
        let names = BackendFiles {
            module: file,
            shard: &places.shard,
            object: &places.object,
            dwo: dwo.as_ref().map(|dwo| dwo.as_str()),
        };
        let mut command = self.settings.shared_words().to_vec();
        command.extend_from_slice(&module.flags.args);
        command.extend(names.args(&triple(&self.here(file))));
        let line = shell_line(command.iter().map(String::as_str));
        format!("cd {} && {line}", shell_quote(&self.absolute_root().to_string_lossy()))
    }

    /// The key of the list of this link's objects in caches. It holds no path outside of the working directory.
    pub fn list_key(&self) -> Key {
        let output = Path::new(self.command.line.output());
        let output = match output.strip_prefix(self.absolute_root()) {
            Ok(below) => below,
            Err(_) if output.is_absolute() => output.file_name().map_or(output, Path::new),
            Err(_) => output,
        };
        let mut framed = Framed::new("distlto objects of a link 1");
        framed.content("compilation", &self.identity.digest);
        framed.add("output", output.as_os_str().as_encoded_bytes());
        Key(framed.finish().hash)
    }
}
