//! The jobs of a linker that calls a distributor, with the names that the linker's own LTO gives to modules.
//!
//! For DTLTO, COFF's linker writes members of archives to files beside its output, and names the modules after these. Here a
//! member has the name of its archive, its own name and its offset, run together (`BitcodeFile::create` in
//! `lld/COFF/InputFiles.cpp`). Such a name is the same in each link, and LLVM imports in the order of names. The files follow
//! `DTLTO.cpp` in `llvm/lib/DTLTO`. Compiles nothing.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use distlto_executor::trace::{FileNote, Trace};
use distlto_planner::dtlto::temporaries::unpacked;
use distlto_planner::dtlto::{self, JobFile};
use distlto_planner::link_command::LinkCommand;
use distlto_planner::link_line::Argument;
use distlto_planner::shard;
use distlto_planner::words::path_of;
use distlto_prepare::input::Input;
use distlto_prepare::io_error::IoError;

use super::link::read;
use super::modules::ModuleFiles;
use super::preview::Heard;
use super::process::Process;
use super::protocol::{PACKET, Question, RESOLUTIONS};
use super::settings::CompileSettings;
use super::socket::{Caller, Received};
use crate::completion::{modules, of_modules};
use crate::link::LinkError;

/// The jobs of a linker that waits for their objects.
pub struct Jobs {
    /// The linker's question, which waits for an answer.
    pub ticket: u32,
    pub heard: Heard,
    /// The place of each module's object.
    pub objects: Vec<PathBuf>,
}

/// A linker that calls a distributor.
pub struct Distributing<'a> {
    pub caller: &'a Caller,
    pub process: &'a Process,
    pub notes: Option<&'a File>,
    pub link: &'a LinkCommand,
}

impl Distributing<'_> {
    /// Waits for a linker's jobs; `None` if it has ended without. Its flags for all backends replace those of `compilation`.
    pub fn jobs(&self, compilation: &mut CompileSettings) -> Result<Option<Jobs>, LinkError> {
        let heard = |error| IoError::on("hear", "the linker")(error);
        let mut bytes = vec![0; PACKET];
        let mut resolved = None;
        loop {
            match self.caller.receive(&mut bytes, None).map_err(heard)? {
                Received::Packet(bytes, file) if bytes == RESOLUTIONS => resolved = file,
                Received::Packet(bytes, _) => {
                    let question = Question::from_bytes(bytes)
                        .ok_or_else(|| heard(std::io::ErrorKind::InvalidData.into()))?;
                    return self.read(&question, resolved, compilation).map(Some);
                }
                Received::Nothing => {}
                Received::Gone => return Ok(None),
            }
        }
    }

    fn read(
        &self,
        question: &Question<'_>,
        resolved: Option<File>,
        compilation: &mut CompileSettings,
    ) -> Result<Jobs, LinkError> {
        let place = |path: &str| self.process.directory.join(path);
        let path = self.process.directory.join(path_of(question.module));
        let file = dtlto::read(&Input::open(&path)?, &path.to_string_lossy())?;
        let resolved = resolved.map(|file| read(Some(file))).transpose();
        let resolved = resolved.map_err(IoError::on("read what the linker resolved for", &path))?;
        let mut names = self.names(compilation);
        let ids = file.jobs.iter().map(|&job| names.of(file.module(job)));
        let ids: Vec<String> = ids.collect::<Result<_, _>>()?;
        let resolutions = resolved.map(|text| names.resolution(&text, &ids)).transpose()?;
        let shard = |(id, &job): (String, _)| {
            let path = place(file.shard(job).as_str());
            let bytes = fs::read(&path).map_err(IoError::on("read the index shard", &path))?;
            let named =
                |old: &[u8]| Some(names.known.get(std::str::from_utf8(old).ok()?)?.clone().into_bytes());
            match shard::rename(&bytes, named) {
                Ok(shard) => Ok((id, shard)),
                Err(source) => Err(LinkError::Shard { module: id, source }),
            }
        };
        let shards = ids.into_iter().zip(&file.jobs).map(shard).collect::<Result<_, _>>()?;
        let objects = file.jobs.iter().map(|&job| place(file.object(job).as_str())).collect();
        give_flags(&file, compilation);
        Ok(Jobs { ticket: question.ticket, heard: Heard { shards, resolutions }, objects })
    }

    fn names(&self, compilation: &CompileSettings) -> Names<'_> {
        // As the linker spells them.
        let trace = self.notes.and_then(|notes| Trace::read(notes, Path::new("")).ok()).unwrap_or_default();
        let mut files = ModuleFiles::new(&self.process.directory, "").with_slices(compilation);
        let mut seen = HashSet::new();
        let read = trace.of(FileNote::Read).filter_map(Path::to_str);
        let archives = read.filter(|path| seen.insert(path.to_owned()) && files.is_archive(path));
        Names {
            distributing: self,
            archives: archives.map(str::to_owned).collect(),
            files,
            known: BTreeMap::new(),
            taken: HashSet::new(),
        }
    }
}

/// The linker gives the flags of its own to every job, and those that it was given.
fn give_flags(file: &JobFile, compilation: &mut CompileSettings) {
    let own = |word: &&String| *word != "-c" && !word.starts_with("--target=");
    compilation.flags.args = file.common_args.iter().skip(1).filter(own).cloned().collect();
    for input in &file.common_inputs {
        if !compilation.flags.inputs.contains(input) {
            compilation.flags.inputs.push(input.clone());
        }
    }
}

/// The names of a link's modules.
struct Names<'a> {
    distributing: &'a Distributing<'a>,
    /// The archives that the linker has read, in their order.
    archives: Vec<String>,
    files: ModuleFiles,
    /// By the names that the linker gives to its distributor.
    known: BTreeMap<String, String>,
    taken: HashSet<String>,
}

impl Names<'_> {
    fn of(&mut self, module: &str) -> Result<String, LinkError> {
        if let Some(known) = self.known.get(module) {
            return Ok(known.clone());
        }
        let found = match unpacked(file_name(module), self.distributing.process.id) {
            Some(member) => {
                let named = |archive: &str| member.strip_prefix(file_name(archive)).map(str::to_owned);
                self.member(module, &named).ok_or_else(|| LinkError::Unnamed {
                    module: module.to_owned(),
                    why: "it is no member of an archive that the linker has read".to_owned(),
                })?
            }
            None if self.is_on_line(module) => module.to_owned(),
            // A thin archive's members have files.
            None => {
                let named = |_: &str| Some(format!("{}0", file_name(module)));
                self.member(module, &named).unwrap_or_else(|| module.to_owned())
            }
        };
        self.taken.insert(found.clone());
        self.known.insert(module.to_owned(), found.clone());
        Ok(found)
    }

    /// The name of the member that the linker calls `module`. `named`: the part of the name after that of each archive.
    fn member(&mut self, module: &str, named: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let file = self.distributing.process.directory.join(module);
        let Self { archives, files, taken, .. } = self;
        archives.iter().find_map(|archive| {
            let id = format!("{archive}{}", named(archive)?);
            (!taken.contains(&id) && files.has_member(&id, &file)).then_some(id)
        })
    }

    fn is_on_line(&self, module: &str) -> bool {
        let arguments = self.distributing.link.line.arguments();
        arguments
            .iter()
            .any(|argument| matches!(argument, Argument::Input(word) if word == module.as_bytes()))
    }

    /// The linker's symbol resolution, with these names. `compiled` are the modules that need a summary.
    fn resolution(&mut self, text: &[u8], compiled: &[String]) -> Result<Vec<u8>, LinkError> {
        let all = modules(text).iter().map(|module| self.of(module)).collect::<Result<Vec<_>, _>>()?;
        let compiled: HashSet<&str> = compiled.iter().map(String::as_str).collect();
        let is_compiled = |id: &str| compiled.contains(id);
        let files = &mut self.files;
        Ok(of_modules(all.iter().map(String::as_str), &is_compiled, &mut |id| files.references(id))?)
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
