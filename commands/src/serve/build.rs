//! The context of a served command: its settings, and the progress of its processes.
//!
//! Does not answer processes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use distlto_executor::cache::store::Cache;
use distlto_executor::cancel::Cancel;
use distlto_executor::execute::spawn::LocalSpawner;
use distlto_executor::hook;
use distlto_planner::words::Word;
use distlto_prepare::io_error::IoError;
use distlto_prepare::leftovers::RunDirectory;
use distlto_prepare::message::say;
use distlto_prepare::mutex::lock;
use distlto_prepare::text::printable;
use distlto_record::progress::text::counted;
use distlto_record::progress::{Profile, Progress, ProgressEvent, Reporter};
use distlto_record::usage::{LinkUsage, UsageCounts, UsageTotals};

use super::collection::Collection;
use super::graph::GraphObjects;
use super::inputs;
use super::libraries::Libraries;
use super::linkers::Linkers;
use super::observed::Observed;
use super::previous_program::PreviousProgram;
use super::process::Process;
use super::socket::Listener;
use crate::link::error::LinkError;
use crate::link::options::LinkOptions;
use crate::link::state::{self, LinkKey, LinkState};
use crate::scratch::for_linkers;
use crate::stats;
use crate::store;
use crate::tool::ToolRunner;

/// Fewer open files than this are too few for a link of many modules.
const FILES: u64 = 64;

/// The task for a command's links.
pub enum Task<'a> {
    /// Link.
    Link,
    /// Report the backends that would run.
    Preview,
    /// Collect the modules.
    Collect(&'a Collection),
    /// Link with the objects of a graph.
    Graph(&'a GraphObjects),
}

impl Task<'_> {
    /// Whether no program is made.
    pub fn is_thin(&self) -> bool {
        matches!(self, Self::Preview | Self::Collect(_))
    }
}

/// The socket of a service, and the libraries for the processes of its command.
pub struct ServicePlace {
    pub listener: Listener,
    pub libraries: Libraries,
}

impl ServicePlace {
    /// Makes them.
    pub fn make() -> Result<Self, LinkError> {
        let hook = hook::find_library().ok_or_else(|| LinkError::NoHook {
            lack: hook::lack_of_library().unwrap_or_else(|| "the hook is off".to_owned()),
        })?;
        std::env::current_dir().map_err(IoError::on("find", "the working directory"))?;
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        if let Some(limit) = limit.filter(|limit| *limit < FILES) {
            return Err(LinkError::FewFiles { limit, needed: FILES });
        }
        let listener = Listener::new()?;
        let libraries = Libraries::place(&hook, listener.folder())?;
        Ok(Self { listener, libraries })
    }
}

/// A served command.
pub struct Build<'a> {
    /// The user's command.
    pub command: &'a [Word],
    pub options: &'a LinkOptions,
    pub spawner: &'a LocalSpawner,
    pub cancel: &'a Cancel,
    pub reporter: Arc<Reporter>,
    pub key: LinkKey,
    /// The state directory of the link that the command is, where it is one; a build has many links.
    pub single: Option<String>,
    /// Variables of the command beside those of this process.
    pub variables: Vec<(String, OsString)>,
    /// The task for its links.
    pub task: Task<'a>,
    /// Whether all processes of the command note their file accesses: those of a driver or a linker.
    pub is_observed: bool,
    /// The kinds of programs that have connected.
    pub linkers: Linkers,
    place: &'a ServicePlace,
    /// The store, once a link needs it.
    store: OnceLock<Option<Arc<Cache>>>,
    seen: Mutex<Seen>,
    /// The links so far, for the totals.
    usage: Mutex<Vec<LinkUsage>>,
    /// The folder for the files of linkers, made for the first.
    files: Mutex<Option<RunDirectory>>,
    /// How many folders linkers have got.
    made_folders: AtomicUsize,
}

/// The progress of a command's processes.
#[derive(Default)]
pub struct Seen {
    /// Whether one of them was a linker.
    pub has_linker: bool,
    /// Whether a preview of a link was printed.
    pub is_previewed: bool,
    /// An error of the service itself; a linker without an answer has gone on by itself.
    pub error: Option<LinkError>,
    /// The state that is held already, for the link that it is of.
    pub held: Option<LinkState>,
    /// Processes, with their file accesses.
    pub observed: Vec<Observed>,
    /// The programs that were there before links that the service has given up.
    pub previous: Vec<PreviousProgram>,
    /// The processes of linkers that have opened damaged objects.
    pub damaged: HashSet<u32>,
    /// The outputs of links that cannot have stable names for locals, and why.
    pub nameless: HashMap<PathBuf, String>,
    /// Links without bitcode, by their linkers.
    pub native: BTreeMap<PathBuf, u64>,
    /// The newest lld, if a driver has -fuse-ld=lld and looks for lld under another name.
    pub hidden_lld: Option<PathBuf>,
}

impl<'a> Build<'a> {
    /// Starts for a command that is no link of its own. `key` is the command's.
    pub fn new(
        (command, key): (&'a [Word], LinkKey),
        options: &'a LinkOptions,
        (spawner, cancel): (&'a LocalSpawner, &'a Cancel),
        reporter: Arc<Reporter>,
        place: &'a ServicePlace,
        task: Task<'a>,
    ) -> Self {
        Self {
            command,
            options,
            spawner,
            cancel,
            reporter,
            key,
            single: None,
            variables: Vec::new(),
            is_observed: matches!(task, Task::Collect(_)),
            task,
            linkers: Linkers::default(),
            place,
            store: OnceLock::new(),
            seen: Mutex::default(),
            usage: Mutex::default(),
            files: Mutex::default(),
            made_folders: AtomicUsize::new(0),
        }
    }

    /// What its processes have done so far.
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        lock(&self.seen)
    }

    /// The same, taken when the command has ended.
    pub fn take_seen(&self) -> Seen {
        std::mem::take(&mut *self.seen())
    }

    /// Records an error of the service, if it is the first.
    pub fn fail(&self, error: LinkError) {
        self.seen().error.get_or_insert(error);
    }

    /// Records the file accesses of a process.
    pub fn observe(&self, process: Arc<Process>, notes: Option<File>) {
        self.seen().observed.push(Observed { process, notes });
    }

    /// Runs tools.
    pub fn tools(&self) -> ToolRunner<'a> {
        ToolRunner { spawner: self.spawner, cancel: self.cancel, directory: None }
    }

    /// The socket.
    pub fn listener(&self) -> &'a Listener {
        &self.place.listener
    }

    /// The libraries for the processes of the command.
    pub fn libraries(&self) -> &'a Libraries {
        &self.place.libraries
    }

    /// The folders of the service, whose files are no inputs of a link.
    pub fn folders(&self) -> Vec<PathBuf> {
        let own = [self.listener().folder(), self.libraries().folder()].map(Path::to_owned);
        let files = lock(&self.files).as_ref().map(|files| files.path().to_owned());
        own.into_iter().chain(files).collect()
    }

    /// Makes a folder for one linker.
    pub fn make_folder(&self, purpose: &str) -> Result<PathBuf, LinkError> {
        let number = self.made_folders.fetch_add(1, Ordering::Relaxed);
        let mut files = lock(&self.files);
        let files = match &mut *files {
            Some(files) => files,
            none => none.insert(for_linkers()?),
        };
        let folder = files.path().join(format!("{purpose}-{number}"));
        fs::create_dir(&folder).map_err(IoError::on("create directory", &folder))?;
        Ok(folder)
    }

    /// The store; in a dry run one that is there.
    pub fn store(&self) -> Option<&Arc<Cache>> {
        let cache = &self.options.run.cache;
        let is_used = !self.options.dry_run || cache.has_store();
        self.store.get_or_init(|| is_used.then(|| cache.store(self.cancel)).flatten()).as_ref()
    }

    /// The reporter of one link of a build.
    pub fn link_reporter(&self) -> Result<Arc<Reporter>, LinkError> {
        Ok(Arc::new(Reporter::new(Profile::LINK_OF_BUILD, self.options.run.style(), None, None)?))
    }

    /// Notes that a linker is left alone.
    pub fn note_alone(&self, why: &str) {
        if let Task::Collect(collection) = self.task {
            collection.leave(why.to_owned());
        }
        self.reporter.report(ProgressEvent::Noted(&format!("{why}: the linker links by itself")));
    }

    /// Counts a link.
    pub fn count(&self, link: LinkUsage) {
        stats::count(&link);
        lock(&self.usage).push(link);
    }

    /// Counts a link whose linker links by itself although there is bitcode. It is an error if links have to be served.
    pub fn pass_through(&self, output: &Path, why: &str) -> Result<(), LinkError> {
        if !matches!(self.task, Task::Link) {
            return Ok(());
        }
        let output = output.display().to_string();
        let failed = self.options.require;
        self.count(LinkUsage {
            passed_through: Some(why.to_owned()),
            failed,
            ..stats::without_record(&output)
        });
        if failed { Err(LinkError::NotServed { output, why: why.to_owned() }) } else { Ok(()) }
    }

    /// Counts a linker that is left alone, if it has bitcode.
    pub fn pass_process_through(&self, process: &Process, why: &str) -> Result<(), LinkError> {
        if !inputs::has_bitcode(inputs::of_process(process).into_iter()) {
            return Ok(());
        }
        let output = state::guess_output(&process.words).unwrap_or_else(|| "a.out".to_owned());
        self.pass_through(&process.directory.join(output), why)
    }

    /// Counts a link without bitcode.
    pub fn count_native(&self, linker: &Path) {
        *self.seen().native.entry(linker.to_owned()).or_default() += 1;
    }

    /// Whether a linker has linked bitcode by itself.
    pub fn has_passed_through(&self) -> bool {
        lock(&self.usage).iter().any(|link| link.passed_through.is_some())
    }

    /// The part of the line on the next build: it finds the objects of this one, or nothing is kept.
    fn outlook(&self, totals: &UsageTotals) -> String {
        let UsageCounts { ran, remote, cached, kept, .. } = totals.counts;
        if ran + remote == 0 {
            return String::new();
        }
        match self.store() {
            None if self.options.run.cache.directory().is_some() => String::new(),
            None => format!(
                "; nothing is kept for the next build: {}; set DISTLTO_CACHE to a folder",
                store::lack()
            ),
            Some(_) if cached + kept == 0 => "; the next build finds these objects".to_owned(),
            Some(_) => String::new(),
        }
    }

    /// Whether backends ran and no store keeps their objects.
    pub fn keeps_nothing(&self) -> bool {
        let has_run = lock(&self.usage).iter().any(|link| link.counts.ran > 0);
        // One that the user names, and that cannot be used, was warned of.
        has_run && self.options.run.cache.directory().is_none() && self.store().is_none()
    }

    /// Prints a line on the links of a build. `native` counts the links without bitcode. If there are no others, it is an
    /// error under --require.
    pub fn print_usage(&self, native: &BTreeMap<PathBuf, u64>) -> Result<(), LinkError> {
        let links = lock(&self.usage);
        let totals: UsageTotals = links.iter().sum();
        let sentence = match (links.is_empty(), native.is_empty()) {
            (true, true) => return Ok(()),
            (true, false) => without_bitcode(native),
            (false, _) => totals.sentence() + &self.outlook(&totals),
        };
        if links.is_empty() && self.options.require {
            return Err(LinkError::NoLinkServed { why: sentence });
        }
        let style = self.options.run.style();
        if !style.quiet && !style.json {
            say(format_args!("distlto: {}", printable(&sentence)));
        }
        Ok(())
    }
}

/// The line for a build without bitcode: its linkers, and the flags to add.
fn without_bitcode(native: &BTreeMap<PathBuf, u64>) -> String {
    let linked = native.iter().map(|(linker, &links)| {
        format!("{} linked {} without bitcode", linker.display(), counted(links, "file"))
    });
    let linked = linked.collect::<Vec<_>>().join(", ");
    format!("{linked}; compile with clang -O2 -flto=thin and link with -fuse-ld=lld")
}
