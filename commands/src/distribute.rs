//! `distlto-distribute`: runs the jobs of a DTLTO job file, as lld asks a distributor to.
//!
//! lld calls `PROGRAM [options] JOBFILE` in its own working directory and waits; it takes any object that is there when
//! the program ends with 0. The job file becomes an action graph (`distlto_planner::dtlto`), which runs as every graph
//! does (`run`). Does not depend on the file's format.

mod complete;
pub mod linker;
pub mod module_links;
pub mod modules;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use distlto_planner::dtlto::temporaries;
use distlto_planner::dtlto::{self, JobFile, cost};
use distlto_planner::graph::{ActionGraph, ActionId};
use distlto_planner::response;
use distlto_planner::state::{self, Place, VARIABLE};
use distlto_planner::words::{path_of, shell_line};
use distlto_prepare::input::Input;
use distlto_prepare::io_error::IoError;
use distlto_prepare::leftovers::{self, RunDirectory};
use distlto_prepare::message::say;
use distlto_prepare::warning::warn;
use distlto_prepare::write::to_standard_output;
use serde_json::json;

use crate::run_args::{Assembly, RunArgs};
use crate::stats;
use distlto_executor::cancel::Cancel;
use distlto_executor::execute::spawn::LocalSpawner;
use distlto_executor::process_stat::resident;
use distlto_executor::run::{self, NoHooks};
use distlto_executor::schedule::tokens::JobSlots;
use distlto_executor::staging::Places;
use distlto_record::action::ActionRecord;
use distlto_record::progress::text::{human, printable};
use distlto_record::progress::{JsonProgress, Profile, Reporter};
use distlto_record::report::Report;
use distlto_record::why::{Change, ChangeKind};
use linker::ParentLinker;
use modules::JobDirectory;

/// The variable that holds options, for linkers that cannot be given any.
pub const OPTIONS: &str = "DISTLTO_DISTRIBUTE_OPTIONS";

/// How long compilers may take to end with a linker that was killed.
const GRACE: Duration = Duration::from_millis(400);
/// How long the linker may take to end by itself if a signal ends it together with this process.
const LINKER_ENDS: Duration = Duration::from_millis(300);

/// Run the backend compilations of a link with lld's distributor (DTLTO)
///
/// The program to name in clang's -fthinlto-distributor= or lld's --thinlto-distributor=; options go through
/// -Xthinlto-distributor= or --thinlto-distributor-arg=, or into DISTLTO_DISTRIBUTE_OPTIONS. Ends, with its
/// compilers, when the linker does. Jobs share the job slots of a make that calls the linker.
#[derive(Debug, Clone, Args)]
#[command(after_help = distlto_prepare::exit::help(), args_override_self = true)]
pub struct DistributeArgs {
    /// How the backends are run.
    #[command(flatten)]
    pub run: RunArgs,
    /// Append what ran to this file, as JSON lines with times; several links may share one
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Print the commands instead of running them
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Keep objects where `distlto link` keeps them, if there is no --cache
    #[arg(long, hide_short_help = true)]
    pub own_store: bool,
    /// Make the objects that lld makes in process
    ///
    /// The link line also needs lld's option --save-temps=resolution, or /lldsavetemps:resolution for Windows. lld then writes its symbol resolution to
    /// OUTPUT.resolution.txt. distlto-distribute completes the shards from this file and removes it. With any --save-temps, lld
    /// also leaves the files of its jobs.
    #[arg(long)]
    pub complete_shards: bool,
    /// Do nothing: the service of the command has put the objects in place
    #[arg(long, hide = true)]
    pub answered: bool,
    /// The job file that lld wrote
    #[arg(value_name = "JOBFILE")]
    pub job_file: PathBuf,
}

/// A program's arguments with the options from the environment, which come before the arguments' own: after the first
/// `own` words, the program's name or that and a subcommand's.
pub fn with_environment(mut arguments: Vec<OsString>, own: usize) -> Vec<OsString> {
    let text = std::env::var_os(OPTIONS).unwrap_or_default();
    let words = response::tokenize(text.as_encoded_bytes());
    let own = own.min(arguments.len());
    arguments.splice(own..own, words.iter().map(|word| path_of(word).into_os_string()));
    arguments
}

impl DistributeArgs {
    /// The process number of the linker, by the job file's name.
    fn process(&self) -> Option<u32> {
        temporaries::process_of(self.job_file.file_name()?.to_str()?)
    }
}

/// Runs the jobs. Returns the exit code: 0, that of the first failure's class, or that of the signal that ended it.
pub fn run(args: &DistributeArgs, cancel: &Cancel) -> miette::Result<u8> {
    if args.answered {
        return Ok(0);
    }
    let name = args.job_file.to_string_lossy().into_owned();
    let linker = ParentLinker::of_job_file(&args.job_file);
    if let Some(linker) = &linker {
        linker.watch(cancel);
    }
    let (mut file, placed) = dtlto::read_placed(&Input::open(&args.job_file)?, &name)?;
    if args.dry_run {
        return Ok(print_commands(&file)?);
    }
    let spawner = args.run.spawner();
    if let Some(linker) = linker.as_ref().filter(|_| !args.run.quiet) {
        linker.dropped().iter().for_each(warn);
    }
    let base = std::env::current_dir().map_err(IoError::on("find", "the current directory"))?;
    let placed = placed.unwrap_or_default();
    let elsewhere = modules::find(&file, &placed, &base, &name)?;
    if args.complete_shards {
        complete::shards(&file, args.process())?;
    }
    let mut own = OwnDirectories::make(&file, &args.job_file, linker)?;
    let directory = JobDirectory::new(&file, &elsewhere, &base, own.any().path())?;
    let outputs = directory.is_private().then_some(base.as_path());
    if let Some(base) = outputs {
        file = modules::with_absolute_outputs(&file, base);
    }
    let places = own.places(outputs);
    cost::set_costs(&mut file, Some(directory.path()));
    let (file, directory) = (&file, &directory);
    let session = Session { args, cancel, spawner: &spawner, file, directory, own: &own };
    let result = session.run(&places);
    if cancel.is_cancelled() {
        own.clean_up_after_linker();
    }
    result
}

/// The commands in the file's order, a line each for a POSIX shell.
fn print_commands(file: &JobFile) -> Result<u8, IoError> {
    let lines: String = file.jobs.iter().map(|&job| shell_line(file.graph.command(job)) + "\n").collect();
    to_standard_output(lines.as_bytes())?;
    Ok(0)
}

/// One run with everything found.
struct Session<'a> {
    args: &'a DistributeArgs,
    cancel: &'a Cancel,
    spawner: &'a LocalSpawner,
    file: &'a JobFile,
    directory: &'a JobDirectory,
    own: &'a OwnDirectories,
}

impl Session<'_> {
    fn run(&self, places: &Places) -> miette::Result<u8> {
        let reporter = self.reporter()?;
        let (graph, directory) = (&self.file.graph, self.directory.path());
        let repeat = |job: ActionId| self.directory.repeat(graph, job);
        let cache = &self.args.run.cache;
        let store = match self.args.own_store {
            true => cache.store(self.cancel),
            false => cache.open(self.cancel).map(Arc::new),
        };
        let assembly = Assembly::new(&self.args.run, store, self.spawner, self.cancel)?;
        let history = assembly.store().map(|store| Place::History.path(store));
        let mut options = assembly.options(&reporter, history.as_deref(), None);
        let process = self.args.process();
        let name = |label: &str| temporaries::without_process_in_path(label, process);
        options.name = Some(&name);
        options.directory = Some(directory);
        let slots = JobSlots::usable(std::process::id());
        options.slots = slots.as_ref();
        options.grace = GRACE;
        let linker = self.own.linker.as_ref().map(ParentLinker::process);
        options.beside = linker.and_then(resident).unwrap_or(0);
        options.places = Some(places);
        options.repeat = Some(&repeat);
        reporter.describe(|run| run.output = Some(self.program()));
        reporter.record_actions(graph.actions().map(|(id, _)| requested(graph, id)).collect());
        let report = self.run_all(graph, &options);
        reporter.conclude(&self.program(), Some(graph), Some(directory));
        if let Some(state) = self.state() {
            reporter.keep(Path::new(&state), report.exit_code(), None);
            stats::count(&reporter.usage());
        }
        if !report.is_success() && !self.args.run.json {
            report_failure(&self.program(), &report);
        }
        if report.failures().next().is_some() && self.own.linker.is_some() && !self.args.run.quiet {
            say(
                "  lld removes the files of these jobs: to repeat one, link with -Wl,--save-temps, which keeps them",
            );
        }
        Ok(report.exit_code())
    }

    fn run_all(&self, graph: &ActionGraph, options: &run::RunOptions<'_>) -> Report {
        let wanted: Vec<ActionId> = graph.actions().map(|(id, _)| id).collect();
        run::run(graph, &wanted, options, &NoHooks)
    }

    fn reporter(&self) -> Result<Reporter, IoError> {
        let run = &self.args.run;
        Reporter::new(Profile::DISTRIBUTOR, run.style(), run.trace.as_deref(), self.log()?)
    }

    fn log(&self) -> Result<Option<JsonProgress<std::fs::File>>, IoError> {
        let Some(path) = &self.args.log else { return Ok(None) };
        let file = OpenOptions::new().append(true).create(true).open(path);
        let file = file.map_err(IoError::on("append to the log", path))?;
        let run = json!({ "program": self.program(), "process": std::process::id() });
        Ok(Some(JsonProgress::log(file, run)))
    }

    /// The directory for the record of the link. The linker removes its own files.
    fn state(&self) -> Option<String> {
        let folder = self.args.run.cache.links(std::env::var(VARIABLE).ok().as_deref())?;
        Some(state::directory(self.file.linker_output.as_ref()?.as_str(), &folder))
    }

    /// Returns the linked program's path for messages, or the job file's path if it is unknown.
    fn program(&self) -> String {
        self.file
            .linker_output
            .as_ref()
            .map_or_else(|| self.args.job_file.to_string_lossy().into_owned(), |output| output.to_string())
    }
}

/// A run that did not succeed, in one line.
fn report_failure(program: &str, report: &Report) {
    let (counts, total) = (report.counts(), report.outcomes.len());
    let left = counts.not_started + counts.skipped;
    let ended = match (counts.failed, counts.interrupted) {
        (failed, 0) => format!("{failed} of {total} backends failed"),
        (0, interrupted) => format!("{interrupted} of {total} backends interrupted"),
        (failed, interrupted) => format!("{failed} of {total} backends failed, {interrupted} interrupted"),
    };
    let (program, wall) = (printable(program), human(report.wall));
    say(format_args!("distlto-distribute: {program}: {ended}, {left} not started, in {wall}"));
}

/// Returns the record of a job. Its only reason is the linker's request, since nothing is kept between links.
fn requested(graph: &ActionGraph, id: ActionId) -> ActionRecord {
    let mut action = ActionRecord::of(graph, id);
    action.why = vec![Change::of(ChangeKind::Requested)];
    action
}

/// A directory of this run's own beside the outputs, for each directory that they go to.
struct OwnDirectories {
    linker: Option<ParentLinker>,
    made: BTreeMap<Utf8PathBuf, RunDirectory>,
}

impl OwnDirectories {
    /// Makes them, after removing the leftovers of killed runs and of their linkers.
    fn make(file: &JobFile, job_file: &Path, linker: Option<ParentLinker>) -> Result<Self, IoError> {
        let outputs = file.jobs.iter().flat_map(|&job| file.graph.action(job).outputs());
        let parent = |path: &Utf8Path| path.parent().unwrap_or(Utf8Path::new("")).to_owned();
        let mut parents: BTreeSet<_> = outputs.map(|output| parent(file.graph.path(output))).collect();
        if parents.is_empty() {
            parents.insert(Utf8PathBuf::new());
        }
        let mut made = BTreeMap::new();
        for parent in parents {
            let place = if parent.as_str().is_empty() { Path::new(".") } else { parent.as_std_path() };
            leftovers::sweep_killed_runs(place, linker::clean_up_after);
            let own = RunDirectory::make(place)?;
            if let Some(linker) = linker.as_ref().filter(|linker| !linker.keeps_temporaries()) {
                let files = file.graph.files().map(Utf8Path::as_std_path).chain([job_file]);
                linker.record(own.path(), linker::temporaries_among(files, parent.as_std_path(), linker));
            }
            made.insert(parent, own);
        }
        Ok(Self { linker, made })
    }

    /// One of them.
    fn any(&self) -> &RunDirectory {
        self.made.values().next().expect("one is made for every run")
    }

    /// Where the outputs' temporaries lie; `base` for outputs that are named by absolute paths.
    fn places(&self, base: Option<&Path>) -> Places {
        let absolute = |path: &Utf8Path| match base {
            Some(base) => Utf8PathBuf::from(base.join(path).to_string_lossy().into_owned()),
            None => path.to_owned(),
        };
        let place = |(parent, own): (&Utf8PathBuf, &RunDirectory)| {
            // Its name is our prefix and letters that `tempfile` draws.
            let own = parent.join(own.path().file_name()?.to_str()?);
            Some((absolute(parent), absolute(&own)))
        };
        self.made.iter().filter_map(place).collect()
    }

    /// Removes the leftovers of a killed linker. A linker that gets the same signal as this process removes them
    /// itself.
    fn clean_up_after_linker(&mut self) {
        let Some(linker) = &self.linker else { return };
        let start = Instant::now();
        while linker.is_alive() && start.elapsed() < LINKER_ENDS {
            thread::sleep(Duration::from_millis(5));
        }
        for own in self.made.values() {
            linker::clean_up_after(own.path());
        }
    }
}
