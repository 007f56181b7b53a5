//! The jobs of a linker that calls a distributor, with the names that the linker's own LTO gives to modules.
//!
//! For DTLTO, COFF's linker writes members of archives to files beside its output, and names the modules after these. Here a
//! member has the name of its archive, its own name and its offset, run together (`BitcodeFile::create` in
//! `lld/COFF/InputFiles.cpp`). Such a name is the same in each link, and LLVM imports in the order of names. The files follow
//! `DTLTO.cpp` in `llvm/lib/DTLTO`. The jobs then become the questions of a linker that asks. Compiles nothing.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use distlto_executor::trace::{FileNote, Trace, memory};
use distlto_planner::bitcode::BitcodeError;
use distlto_planner::dtlto::temporaries::unpacked;
use distlto_planner::dtlto::{self, JobFile};
use distlto_planner::shard;
use distlto_planner::words::path_of;
use distlto_prepare::frame::Framed;
use distlto_prepare::input::Input;
use distlto_prepare::io_error::IoError;
use distlto_prepare::threads;
use distlto_prepare::write::write_atomically;

use super::connection;
use super::link::Link;
use super::modules::ModuleFiles;
use super::process::Process;
use super::progress::LinkResult;
use super::protocol::{Answer, PACKET, Question};
use super::settings::CompileSettings;
use super::socket::{Connection, Message, Received, read};
use super::thin_link::ThinLink;
use crate::completion::{Completion, CompletionError, modules, of_modules};
use crate::link::error::LinkError;

/// Interval of checks whether the linker is still there.
const LOOK: Duration = Duration::from_millis(100);

/// The jobs of a linker that waits for their objects.
pub struct Jobs {
    /// The linker's question, which waits for an answer.
    pub ticket: u32,
    /// Each module, with its completed shard.
    pub thin_link: ThinLink,
    /// The place of each module's object.
    pub objects: Vec<PathBuf>,
    /// The key of each object, in place of the one that a linker has for its own cache.
    keys: Vec<String>,
}

/// A linker that calls a distributor.
pub struct Distributor<'a> {
    pub connection: &'a Connection,
    pub process: &'a Process,
    pub notes: Option<&'a File>,
}

impl Jobs {
    /// Has the objects made, and answers the linker. Returns when the linker has ended.
    pub fn serve(&self, link: &Link<'_>, linker: &Connection, is_new: bool) -> Result<LinkResult, LinkError> {
        let failed = IoError::on("answer", "the linker");
        let [service, own] = Connection::pair(linker.process).map_err(failed)?;
        let (result, given) = thread::scope(|scope| {
            let asking = threads::start_in(scope, "jobs", move || self.ask(&own, linker));
            let asking = asking.map_err(IoError::on("start", "a thread for the jobs"))?;
            let result = connection::serve(link, &service, is_new);
            Ok::<_, LinkError>((result, joined(asking)))
        })?;
        if !given? {
            linker.end();
            return Ok(result);
        }
        linker.answer(self.ticket, Answer::Object)?;
        linker.wait()?;
        Ok(result)
    }

    /// Asks for each object, and puts it into its place. False if the linker is to end, or has ended.
    fn ask(&self, service: &Connection, linker: &Connection) -> Result<bool, LinkError> {
        thread::scope(|scope| {
            let sending = threads::start_in(scope, "questions", || {
                self.send(service).inspect_err(|_| service.hang_up())
            });
            let sending = sending.map_err(IoError::on("start", "a thread for the jobs"))?;
            let received = self.receive(service, linker);
            joined(sending)?;
            received
        })
    }

    fn send(&self, service: &Connection) -> Result<(), LinkError> {
        let failed = |error| IoError::on("ask for", "an object")(error);
        for (ticket, ((id, shard), key)) in (0..).zip(self.thin_link.shards.iter().zip(&self.keys)) {
            let question = Question { ticket, key: key.as_bytes(), module: id.as_bytes() }.to_bytes();
            let question = question.ok_or_else(|| LinkError::Unnamed {
                module: id.clone(),
                why: "its name is too long".to_owned(),
            })?;
            let mut file = memory(0).map_err(failed)?;
            file.write_all(shard).map_err(failed)?;
            service.send(&question, &[file.as_fd()]).map_err(failed)?;
        }
        Ok(())
    }

    fn receive(&self, service: &Connection, linker: &Connection) -> Result<bool, LinkError> {
        let failed = |error| IoError::on("receive", "an object")(error);
        let mut missing = self.objects.len();
        let mut bytes = [0; Answer::SIZE];
        while missing > 0 {
            let (packet, object) = match service.receive(&mut bytes, Some(LOOK)).map_err(failed)? {
                Received::Packet(packet, [object, _]) => (packet, object),
                Received::Nothing if !linker.is_gone()? => continue,
                Received::Nothing | Received::Gone => return Ok(false),
            };
            let answer = packet.try_into().ok().and_then(Answer::from_bytes);
            let (ticket, answer) = answer.ok_or_else(|| failed(ErrorKind::InvalidData.into()))?;
            let number = usize::try_from(ticket).unwrap_or(usize::MAX);
            match (answer, self.objects.get(number)) {
                (Answer::Object, Some(place)) => {
                    write_atomically(place, &read(object).map_err(failed)?)?;
                    missing -= 1;
                }
                (Answer::Compile, _) => {
                    let module = self.thin_link.shards.get(number).map(|(id, _)| id.clone());
                    let why = "its name or its shard cannot be read".to_owned();
                    return Err(LinkError::Unnamed { module: module.unwrap_or_default(), why });
                }
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}

impl Distributor<'_> {
    /// Waits for a linker's jobs; `None` if it has ended without. Its flags for all backends replace those of `settings`.
    pub fn jobs(&self, settings: &mut CompileSettings) -> Result<Option<Jobs>, LinkError> {
        let mut bytes = vec![0; PACKET];
        let mut resolved = None;
        loop {
            match self.connection.message(&mut bytes, None)? {
                Message::Resolution(file) => resolved = file,
                Message::Question(question, _) => return self.read(&question, resolved, settings).map(Some),
                Message::Gone => return Ok(None),
                _ => {}
            }
        }
    }

    fn read(
        &self,
        question: &Question<'_>,
        resolved: Option<File>,
        settings: &mut CompileSettings,
    ) -> Result<Jobs, LinkError> {
        let place = |path: &str| self.process.directory.join(path);
        let path = self.process.directory.join(path_of(question.module));
        let file = dtlto::read(&Input::open(&path)?, &path.to_string_lossy())?;
        // A plain shard may make a program that crashes.
        let Some(resolved) = resolved else { return Err(CompletionError::NotResolved { path }.into()) };
        let resolved =
            read(Some(resolved)).map_err(IoError::on("read what the linker resolved for", &path))?;
        let mut names = self.names(settings);
        let ids = file.jobs.iter().map(|&job| names.of(file.module(job)));
        let ids: Vec<String> = ids.collect::<Result<_, _>>()?;
        let resolution = names.resolution(&resolved, &ids)?;
        let mut completion = Completion::of(&resolution, "");
        let (mut shards, mut keys) = (Vec::with_capacity(ids.len()), Vec::with_capacity(ids.len()));
        for (id, &job) in ids.into_iter().zip(&file.jobs) {
            let path = place(file.shard(job).as_str());
            let bytes = fs::read(&path).map_err(IoError::on("read the index shard", &path))?;
            let broken = |source| LinkError::Shard { module: id.clone(), source };
            let shard = names.shard(&bytes, &id, &mut completion).map_err(broken)?;
            keys.push(names.key(&shard, &id)?);
            shards.push((id, shard));
        }
        let objects = file.jobs.iter().map(|&job| place(file.object(job).as_str())).collect();
        give_flags(&file, settings);
        Ok(Jobs { ticket: question.ticket, thin_link: ThinLink { shards, resolutions: None }, objects, keys })
    }

    fn names(&self, settings: &CompileSettings) -> Names<'_> {
        // As the linker spells them.
        let trace = self.notes.and_then(|notes| Trace::read(notes, Path::new("")).ok()).unwrap_or_default();
        let mut files = ModuleFiles::new(&self.process.directory, "").with_slices(settings);
        let mut seen = HashSet::new();
        let read = trace.of(FileNote::Read).filter_map(Path::to_str);
        let archives = read.filter(|path| seen.insert(path.to_owned()) && files.is_archive(path));
        Names {
            distributor: self,
            archives: archives.map(str::to_owned).collect(),
            files,
            known: BTreeMap::new(),
            taken: HashSet::new(),
        }
    }
}

/// The linker gives the flags of its own to every job, and those that it was given.
fn give_flags(file: &JobFile, settings: &mut CompileSettings) {
    let own = |word: &&String| *word != "-c" && !word.starts_with("--target=");
    settings.flags.args = file.common_args.iter().skip(1).filter(own).cloned().collect();
    for input in &file.common_inputs {
        if !settings.flags.inputs.contains(input) {
            settings.flags.inputs.push(input.clone());
        }
    }
}

/// The names of a link's modules.
struct Names<'a> {
    distributor: &'a Distributor<'a>,
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
        let found = match unpacked(file_name(module), self.distributor.process.id) {
            Some(member) => self.member(module, member).ok_or_else(|| LinkError::Unnamed {
                module: module.to_owned(),
                why: "it is no member of an archive that the linker has read".to_owned(),
            })?,
            // A thin archive's member has the name of its file, too.
            None => module.to_owned(),
        };
        self.taken.insert(found.clone());
        self.known.insert(module.to_owned(), found.clone());
        Ok(found)
    }

    /// The name of a member with the content of the file `module`. `member` has the archive without its folder.
    fn member(&mut self, module: &str, member: &str) -> Option<String> {
        let file = self.distributor.process.directory.join(module);
        let Self { archives, files, taken, .. } = self;
        archives.iter().find_map(|archive| {
            let id = format!("{archive}{}", member.strip_prefix(file_name(archive))?);
            (!taken.contains(&id) && files.has_member(&id, &file)).then_some(id)
        })
    }

    /// A module's shard with these names, completed.
    fn shard(
        &mut self,
        bytes: &[u8],
        id: &str,
        completion: &mut Completion<'_>,
    ) -> Result<Vec<u8>, BitcodeError> {
        let Self { known, files, .. } = self;
        let named = |old: &[u8]| Some(known.get(std::str::from_utf8(old).ok()?)?.clone().into_bytes());
        let renamed = shard::rename(bytes, named)?;
        completion.complete(&renamed, id, &mut |id| files.references(id))
    }

    /// The key of an object: its shard, and the modules that have no hash in that.
    fn key(&mut self, shard: &[u8], id: &str) -> Result<String, LinkError> {
        let broken = |source| LinkError::Shard { module: id.to_owned(), source };
        let mut framed = Framed::new("distlto job 1");
        framed.add("shard", shard::digest(shard).map_err(broken)?);
        for module in shard::modules(shard).map_err(broken)?.iter().filter(|module| module.hash.is_none()) {
            framed.add("module", self.files.content(&String::from_utf8_lossy(&module.path))?);
        }
        Ok(framed.finish().hex())
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

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
