//! Whole links in a shared cache: a linker ends at once if another machine has made the same link, and the cache gives the
//! files.
//!
//! The key of a link holds the linker, its command line and the contents of the inputs that the line names. Under it lies a
//! list of links, each with all else that its linker was seen to read: files, places where nothing was, variables. Paths are
//! those that the linker used, so that relative ones mean any checkout. A link that fits in everything has files under a
//! further key. Does not know how a link is performed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use distlto_executor::cache::store::Cache;
use distlto_executor::describe::canonical_command::names_in;
use distlto_executor::execute::remote::engine::Engine;
use distlto_executor::execute::remote::whole_links::LinkFile;
use distlto_executor::result::Key;
use distlto_executor::trace::{FileNote, Trace, is_of_kernel};
use distlto_planner::digests::{Digest, FileDigests};
use distlto_planner::link_command::LinkCommand;
use distlto_planner::link_line::{Argument, options as line_options};
use distlto_planner::linker::flavour::Flavour;
use distlto_planner::words::{Word, lossy};
use distlto_prepare::frame::Framed;
use distlto_prepare::io_error::IoError;
use distlto_prepare::kind::{Kind, classify_file};
use distlto_prepare::message::say;
use distlto_prepare::warning::warn;
use distlto_prepare::write::write_with_mode;
use distlto_record::report::microseconds;
use distlto_record::usage::{LinkUsage, UsageCounts, servers as servers_of};
use memchr::memmem;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::build::Build;
use super::inputs;
use super::module_record::RecordedObject;
use super::process::Process;
use super::request::LinkRequest;
use crate::link::file_state::Start;
use crate::link::reads::Reads;
use crate::run_args::LinkServers;
use crate::stats;

const VERSION: u32 = 1;
/// The links of one key that are kept, the newest.
const LINKS: usize = 16;
/// The options with which an output holds times.
const TIMES: &str = "time-trace";
/// How the name of rustc's folder for a link begins.
const RUSTC: &[u8] = b"rustc";
/// Nothing is read from it.
const NULL: &str = "/dev/null";

/// The links of one key.
#[derive(Default, Serialize, Deserialize)]
struct Links {
    version: u32,
    links: Vec<LinkReads>,
}

/// The reads of a link that its key does not hold.
#[derive(PartialEq, Serialize, Deserialize)]
struct LinkReads {
    /// Where it ran, if that shows in its reads or its files.
    directory: Option<String>,
    variables: BTreeMap<String, Option<String>>,
    /// Files with their contents.
    files: BTreeMap<String, String>,
    absent: BTreeSet<String>,
}

impl LinkReads {
    /// The key of the link's files.
    fn key(&self, link: &Key) -> Option<Key> {
        let mut framed = Framed::new("distlto files of a link 1");
        framed.add("link", link.0);
        framed.add("reads", serde_json::to_vec(self).ok()?);
        Some(Key(framed.finish().hash))
    }
}

/// A link that may be in a cache.
pub struct WholeLink {
    process: Arc<Process>,
    link: LinkCommand,
    /// The content of the linker.
    linker: String,
    /// Before the linker begins.
    start: Start,
    key: Key,
    /// The files whose contents the key holds.
    named: HashSet<String>,
    passing: PassingFolders,
}

/// A link that a cache is to have.
pub struct NewLink {
    link: Key,
    reads: LinkReads,
    outputs: Vec<LinkFile>,
}

/// The folders that drivers have made for this link alone: they have other names each time.
#[derive(Default)]
struct PassingFolders(Vec<String>);

impl PassingFolders {
    /// A text that is the same whatever the folders are called.
    fn hide(&self, text: &str) -> String {
        let folders = self.0.iter().enumerate();
        folders.fold(text.to_owned(), |text, (at, folder)| text.replace(folder, &hidden(at)))
    }

    /// The text with the names of this link's folders.
    fn show(&self, text: &str) -> String {
        let folders = self.0.iter().enumerate();
        folders.fold(text.to_owned(), |text, (at, folder)| text.replace(&hidden(at), folder))
    }
}

/// No path has this.
fn hidden(at: usize) -> String {
    format!("\0{at}\0")
}

/// The files whose contents the key of a link holds: all inputs, and what lies in passing folders. `None` if a name is not
/// UTF-8.
fn named_files(process: &Process, link: &LinkCommand) -> Option<(HashSet<String>, PassingFolders)> {
    let temporaries = process.variable("TMPDIR").ok()?.unwrap_or_else(|| "/tmp".into());
    let beside = Path::new(link.line.output()).parent();
    let is_passing = |folder: &Path| {
        // rustc makes one beside its output.
        let is_of_rustc = folder.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(RUSTC));
        let is_made =
            folder.parent() == Some(Path::new(&temporaries)) || folder.parent() == beside && is_of_rustc;
        is_made && folder.is_absolute()
    };
    let folder_of =
        |name: &str| Path::new(name).parent().filter(|folder| is_passing(folder)).map(Path::to_owned);
    let (mut named, mut folders, mut kept) = (HashSet::new(), Vec::new(), HashSet::new());
    for argument in link.line.arguments() {
        let names: Vec<&str> = match argument {
            Argument::Input(word) => vec![std::str::from_utf8(word).ok()?],
            Argument::Option(option) => option.words.iter().flat_map(|word| names_in(word)).collect(),
            Argument::Library(_) => Vec::new(),
        };
        for name in names {
            let is_input = matches!(argument, Argument::Input(_));
            if let Some(folder) = folder_of(name).filter(|_| Path::new(name).is_file()) {
                named.insert(name.to_owned());
                // A linker uses the names of modules.
                let kind = classify_file(Path::new(name)).ok()?;
                if matches!(kind, Kind::Native(_) | Kind::Text) {
                    folders.extend((!folders.contains(&folder)).then_some(folder));
                } else {
                    kept.insert(folder);
                }
            } else if is_input {
                named.insert(name.to_owned());
            }
        }
    }
    folders.retain(|folder| !kept.contains(folder));
    let folders = folders.iter().map(|folder| text_of(folder).ok()).collect::<Option<_>>()?;
    Some((named, PassingFolders(folders)))
}

impl WholeLink {
    /// Computes the key of a link, if a cache may have it as a whole.
    pub fn of(build: &Build<'_>, process: &Arc<Process>, request: &LinkRequest) -> Option<Self> {
        let (options, LinkRequest { command, settings, .. }) = (build.options, request);
        let has_modules = |file: &PathBuf| {
            classify_file(file).is_ok_and(|kind| {
                matches!(kind, Kind::Bitcode { .. } | Kind::FatLto(_) | Kind::Archive { .. })
            })
        };
        let is_asked = options.share_links && options.asks_caches();
        if !is_asked || !inputs::of_process(process).iter().any(has_modules) {
            return None;
        }
        let has_times = line_options(command.line.arguments()).any(|option| option.name.contains(TIMES));
        // Files of other flavours hold times, or names of the machine that made them.
        if has_times || !matches!(settings.flavour, None | Some(Flavour::Wasm)) {
            return None;
        }
        let linker = settings.linker.as_ref().filter(|linker| !linker.is_for_this_processor())?;
        // The store remembers digests of programs.
        let content = linker.content(build.store().map(|store| Cache::directory(store))).ok()?;
        Self::with_key(Arc::clone(process), command.clone(), content)
    }

    fn with_key(process: Arc<Process>, link: LinkCommand, linker: String) -> Option<Self> {
        let start = Start::with(std::iter::empty());
        let (named, passing) = named_files(&process, &link)?;
        let names: Vec<&Utf8Path> = named.iter().map(Utf8Path::new).collect();
        // A pipe has another content next time.
        if !names.par_iter().with_min_len(64).all(|name| process.directory.join(name).is_file()) {
            return None;
        }
        let contents = FileDigests::new(&process.directory).digest_all(&names).into_iter();
        let contents = names.iter().zip(contents).map(|(name, digest)| Some((name.as_str(), digest.ok()?)));
        let contents: HashMap<&str, Digest> = contents.collect::<Option<_>>()?;
        let mut framed = Framed::new("distlto link 1");
        framed.add("distlto", env!("CARGO_PKG_VERSION"));
        framed.add("linker", &linker);
        framed.add("name", Path::new(&*lossy(&process.words[0])).file_name()?.as_encoded_bytes());
        for word in link.line.words() {
            let word = lossy(word);
            framed.add("word", passing.hide(&word));
            for content in names_in(&word).filter_map(|name| contents.get(name)) {
                framed.content("content", content);
            }
        }
        let key = Key(framed.finish().hash);
        Some(Self { process, link, linker, start, key, named, passing })
    }

    fn place(&self, name: impl AsRef<Path>) -> PathBuf {
        self.process.directory.join(name)
    }

    /// Takes the link from a cache; returns whether its files are in their places.
    pub fn take(&self, build: &Build<'_>, servers: &LinkServers<'_>, output: &Path, begun: Instant) -> bool {
        // The link itself reports a server that cannot be used.
        let Some(engine) = servers.connected().ok().and_then(|servers| servers.engine) else { return false };
        let found = self.find(&engine);
        engine.troubles().iter().for_each(warn);
        let Some(took) = found else { return false };
        let output = output.to_string_lossy();
        let (wall_us, spared_us) = (microseconds(begun.elapsed()), microseconds(took));
        build.count(LinkUsage {
            whole: true,
            counts: UsageCounts { wall_us, spared_us, ..UsageCounts::default() },
            servers: servers_of(&engine.engines()),
            ..stats::without_record(&output)
        });
        if build.options.run.verbose > 0 && !build.options.run.json {
            say(format_args!("distlto: {output}: a cache has the whole link"));
        }
        true
    }

    /// Puts the files of the link in their places if a cache has it; returns how long it took elsewhere.
    fn find(&self, engine: &Engine) -> Option<Duration> {
        let known: Links = serde_json::from_slice(&engine.find_links(&self.key)?).ok()?;
        let digests = FileDigests::new(&self.process.directory);
        let reads =
            known.links.iter().find(|reads| known.version == VERSION && self.fits(reads, &digests))?;
        // A server could name any file.
        let are_outputs = |names: &[&str]| {
            names.contains(&self.link.line.output()) && names.iter().all(|name| self.is_output(name))
        };
        let (files, took) = engine.fetch_files(&reads.key(&self.key)?, are_outputs)?;
        for file in &files {
            let mode = if file.is_executable { 0o777 } else { 0o666 };
            if let Err(error) = write_with_mode(&self.place(&file.name), &file.bytes, mode) {
                // The linker may do better.
                warn(format_args!("a link from a cache is not used: {error}"));
                return None;
            }
        }
        Some(took)
    }

    fn fits(&self, reads: &LinkReads, digests: &FileDigests) -> bool {
        let LinkReads { directory, variables, files, absent } = reads;
        let has_content = |(name, content): (&String, &String)| {
            digests
                .digest(Utf8Path::new(&self.passing.show(name)))
                .is_ok_and(|found| found.to_string() == *content)
        };
        let has_value = |(name, value): (&String, &Option<String>)| {
            let found = self.process.variable(name);
            found.is_ok_and(|found| found.as_deref() == value.as_deref().map(OsStr::new))
        };
        directory.as_ref().is_none_or(|directory| self.process.directory.to_str() == Some(directory))
            && variables.iter().all(has_value)
            && absent.par_iter().all(|name| !self.place(self.passing.show(name)).exists())
            && files.par_iter().all(has_content)
    }

    /// Whether the line names a file other than its inputs, alone or as the value of an option.
    fn is_output(&self, name: &str) -> bool {
        let is_named = |word: &Word| {
            let option = word.strip_suffix(name.as_bytes());
            option.is_some_and(|option| option.is_empty() || option.ends_with(b"=") || option == b"-o")
        };
        let parent = self.place(name).parent().is_some_and(Path::is_dir);
        let is_named = || self.link.line.words().iter().any(is_named);
        parent && !self.named.contains(name) && (name == self.link.line.output() || is_named())
    }

    /// Takes what the linker has read and written, while it waits for its end: its driver may then remove or change that.
    /// `own` are folders of distlto, `state` is the link's. An error says why no cache can have the link.
    pub fn ended(&self, notes: &File, own: &[PathBuf], state: &str) -> Result<NewLink, String> {
        // Paths stay as the linker has used them.
        let trace = Trace::read(notes, Path::new("")).map_err(|error| error.to_string())?;
        match () {
            () if trace.is_cut => return Err("the linker noted more than there was room for".to_owned()),
            () if !trace.printed.is_empty() => return Err("the linker prints something".to_owned()),
            () if trace.has_input => return Err("the linker reads its standard input".to_owned()),
            () => {}
        }
        let is_own = |path: &Path| own.iter().any(|folder| path.starts_with(folder));
        let of = |kind| trace.of(kind).filter(|path| !is_own(path)).map(Path::to_owned).collect();
        let [read, absent, written]: [BTreeSet<PathBuf>; 3] =
            [FileNote::Read, FileNote::Absent, FileNote::Written].map(of);
        let outputs = self.outputs(written.iter().filter(|path| self.place(path).exists()))?;
        if let Some(device) = read.iter().find(|path| path.starts_with("/dev") && path.as_os_str() != NULL) {
            return Err(format!("the linker reads {}", device.display()));
        }
        // lld opens the earlier program only to remove it beside its work (`unlinkAsync`).
        let is_read = |output: &&LinkFile| {
            output.name != self.link.line.output() && read.contains(Path::new(&output.name))
        };
        if let Some(output) = outputs.iter().find(is_read) {
            return Err(format!("the linker reads and writes {}", output.name));
        }
        let texts = |paths: BTreeSet<PathBuf>| {
            let paths = paths.into_iter().filter(|path| !is_of_kernel(path));
            paths.map(|path| text_of(&path)).collect::<Result<BTreeSet<String>, String>>()
        };
        let (files, absent) = (texts(&read - &written)?, texts(&absent - &written)?);
        let others: Vec<&Utf8Path> =
            files.iter().filter(|name| !self.named.contains(*name)).map(Utf8Path::new).collect();
        let contents = FileDigests::new(&self.process.directory).digest_all(&others).into_iter();
        let content = |(name, digest): (&&Utf8Path, Result<Digest, IoError>)| {
            Ok((name.to_string(), digest.map_err(|error| error.to_string())?.to_string()))
        };
        let contents: BTreeMap<String, String> =
            others.iter().zip(contents).map(content).collect::<Result<_, String>>()?;
        let mut others = Reads::new(state);
        others.observed(contents.keys().map(|name| self.place(name)));
        others.settled(&self.start)?;
        let again = Self::with_key(Arc::clone(&self.process), self.link.clone(), self.linker.clone());
        if again.is_none_or(|again| again.key != self.key) {
            return Err("its inputs have changed".to_owned());
        }
        if let Some(name) = absent.iter().find(|name| self.place(name).exists()) {
            return Err(format!("{name} was not there"));
        }
        let variable = |(name, value): (Vec<u8>, Option<Vec<u8>>)| {
            let value = value.map(String::from_utf8).transpose().ok()?;
            Some((String::from_utf8(name).ok()?, value))
        };
        let variables = trace.variables.into_iter().map(variable).collect::<Option<_>>();
        let variables = variables.ok_or("a variable is not UTF-8")?;
        let files = contents.into_iter().map(|(name, content)| (self.passing.hide(&name), content)).collect();
        let absent = absent.iter().map(|name| self.passing.hide(name)).collect();
        let reads = LinkReads { directory: None, variables, files, absent };
        Ok(NewLink { link: self.key, reads, outputs })
    }

    fn outputs<'p>(&self, paths: impl Iterator<Item = &'p PathBuf>) -> Result<Vec<LinkFile>, String> {
        let output = |path: &PathBuf| {
            let name = text_of(path)?;
            let place = self.place(path);
            let failed = |error| format!("{}: {error}", place.display());
            let found = fs::symlink_metadata(&place).map_err(failed)?;
            if !found.is_file() || !self.is_output(&name) {
                return Err(format!("the linker writes {name}, which its line does not name as a file"));
            }
            let bytes = fs::read(&place).map_err(failed)?;
            if let Some(folder) = self.passing.0.iter().find(|folder| holds(&bytes, folder)) {
                return Err(format!("{name} holds the name of {folder}, which is another one each time"));
            }
            Ok(LinkFile { name, bytes, is_executable: found.mode() & 0o111 != 0 })
        };
        paths.map(output).collect()
    }
}

impl NewLink {
    /// Gives the link to a cache with what the backends of these objects have read, which took so long. `directory` is
    /// where it ran. An error says why no cache can have it.
    pub fn keep<'o>(
        mut self,
        engine: &Engine,
        objects: impl Iterator<Item = &'o RecordedObject>,
        directory: &Path,
        took: Duration,
    ) -> Result<(), String> {
        let directory = text_of(directory)?;
        // The linker may have used a relative path for what a record has as an absolute one.
        let relative = |name: &'o str| Some(name.strip_prefix(&directory)?.trim_start_matches('/'));
        for object in objects {
            if object.provenance.is_unseen || !object.warnings.is_empty() {
                return Err(format!(
                    "not all is known of the object of {}, or it has warnings",
                    object.label
                ));
            }
            let LinkReads { files, absent, .. } = &mut self.reads;
            for (name, content) in &object.provenance.read {
                if !relative(name).is_some_and(|name| files.contains_key(name)) {
                    files.insert(name.clone(), content.clone());
                }
            }
            for name in &object.provenance.absent {
                if !relative(name.as_str()).is_some_and(|name| absent.contains(name)) {
                    absent.insert(name.to_string());
                }
            }
        }
        let LinkReads { files, absent, variables, .. } = &self.reads;
        let shows = files.keys().chain(absent).any(|name| name.starts_with(&directory))
            || variables.values().flatten().any(|value| value.contains(&directory))
            || self.outputs.iter().any(|output| holds(&output.bytes, &directory));
        self.reads.directory = shows.then_some(directory);
        let key = self.reads.key(&self.link).ok_or("its reads have no text")?;
        let listed = |known: &[u8]| {
            let known = serde_json::from_slice(known).ok().filter(|known: &Links| known.version == VERSION);
            let mut links = known.map(|known| known.links).unwrap_or_default();
            links.retain(|other| *other != self.reads);
            links.insert(0, self.reads);
            links.truncate(LINKS);
            serde_json::to_vec(&Links { version: VERSION, links }).unwrap_or_default()
        };
        engine.keep_files(&key, (self.outputs, took), (&self.link, listed));
        Ok(())
    }
}

fn text_of(path: &Path) -> Result<String, String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| format!("{} is not UTF-8", path.display()))
}

fn holds(bytes: &[u8], text: &str) -> bool {
    memmem::find(bytes, text.as_bytes()).is_some()
}
