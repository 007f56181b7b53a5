//! `distlto-opt`: one backend compilation from the command line, for build systems that schedule by themselves.
//!
//! Takes its own form and the two of Buck2's opt tools (`gnu`, `darwin`). Each form makes a [`Plan`], which runs as on
//! every other path (see `job`). No form asks the compiler's driver anything.

mod args_file;
pub mod compiler;
pub mod darwin;
pub mod gnu;
pub mod processor;
mod slice;

use std::io;
use std::path::Path;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use clap::{ArgGroup, Args};
use distlto_planner::backend_flags::link_flags::LinkFlagError;
use distlto_planner::digests::FileDigests;
use distlto_planner::graph::error::GraphError;
use distlto_planner::recorded_flags::FlagsSource;
use distlto_prepare::kind::Native;
use distlto_prepare::message::{say, show};
use distlto_prepare::warning::warn;
use distlto_prepare::write::to_standard_output;
use miette::{Diagnostic, Report};
use thiserror::Error;

use darwin::DarwinArgs;
use distlto_executor::attempt::{self, Context, JobAttempt};
use distlto_executor::cache::store::Cache;
use distlto_executor::cache::{ResultCache, nearest_first};
use distlto_executor::cancel::{Cancel, cancel_on_signals};
use distlto_executor::cause::Cause;
use distlto_executor::describe::{Describer, Toolchains};
use distlto_executor::execute::cc1::Cc1Commands;
use distlto_executor::execute::drivers::Drivers;
use distlto_executor::execute::local::Local;
use distlto_executor::execute::process::GRACE;
use distlto_executor::execute::remote::Remote;
use distlto_executor::execute::remote::engine::Engine;
use distlto_executor::execute::spawn::PLAIN;
use distlto_executor::job::Job;
use distlto_executor::ledger::Ledger;
use distlto_executor::output::Role;
use distlto_executor::schedule::Site;
use distlto_executor::staging::StagingArea;
use distlto_executor::verify::{Backend, Modules};
use distlto_record::progress::text::whole_lines;
use gnu::SplitDwarf;

use crate::remote::args::RemoteArgs;
use crate::remote::connect::RemoteError;
use crate::run_args::CacheArgs;
use crate::store::own_cache;

const FORMS: &str = "\
The command lines of Buck2's opt tools are taken as they are:
  --out O --input M --index S --split-dwarf MODE [--dwo F] --args F -- COMPILER [ARGUMENTS]
  --out O --input M --index S --compiler CLANG --shared-args F [-- ARGUMENTS]
";
const BUCK2_GNU: &str = "As Buck2 calls it for linkers of type gnu";
/// The group of options for Buck2's form for darwin. Any one of them selects the form.
const DARWIN: &str = "darwin";

/// Compile one ThinLTO module with its imports to a native object
///
/// The object is put into its place only when the compiler succeeded and wrote a whole object of the module's
/// machine; otherwise an earlier one stays.
#[derive(Debug, Clone, Args)]
#[command(group = ArgGroup::new(DARWIN).multiple(true))]
#[command(after_help = distlto_prepare::exit::help())]
#[command(after_long_help = format!("{FORMS}\n{}", distlto_prepare::exit::help()))]
pub struct OptArgs {
    /// Write the native object here
    #[arg(long, value_name = "OBJECT", required_unless_present = "objects")]
    pub out: Option<Utf8PathBuf>,
    /// Compile this bitcode module
    ///
    /// The path is the module's id: spell it exactly as in the thin link. Clang compiles a module under another
    /// spelling to an object without its functions; this program refuses it.
    #[arg(long, value_name = "MODULE", required_unless_present = "slice")]
    pub input: Option<Utf8PathBuf>,
    /// Take imports and linkage from this index shard; /dev/null imports nothing
    #[arg(long, value_name = "SHARD", required_unless_present = "slice")]
    pub index: Option<Utf8PathBuf>,
    /// Compile what this slice holds, which `distlto-index --slices` wrote
    ///
    /// A slice without a backend gives an empty file, for a build system that has declared one. The compiler is the one
    /// of the thin link.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["input", "index", "imports", "args", "target", "split_dwarf", "debug", DARWIN])]
    pub slice: Option<Utf8PathBuf>,
    /// With --slice: put the objects into this directory, however many
    #[arg(long, value_name = "DIR", requires = "slice", conflicts_with_all = ["out", "dwo"])]
    pub objects: Option<Utf8PathBuf>,
    /// Check that each file of this list of imports is there
    #[arg(long, value_name = "FILE", conflicts_with = DARWIN)]
    pub imports: Option<Utf8PathBuf>,
    /// Write split debug information here; without --split-dwarf, a name in .dwo
    #[arg(long, value_name = "FILE", conflicts_with = DARWIN)]
    pub dwo: Option<Utf8PathBuf>,
    /// Compile as lld's LTO would by the link's flags in this file, one a line
    ///
    /// The flags are those of a compiler driver, which may stand before them, or a command of ld.lld. Flags that say
    /// nothing of code are passed over. An option that would change code and has no spelling for a backend is an
    /// error. What the flags leave open is the compiler's default, at -O2 -ffunction-sections -fdata-sections.
    #[arg(long, value_name = "FILE", conflicts_with = DARWIN)]
    pub args: Option<Utf8PathBuf>,
    /// Compile with the flags that a build has recorded in this file
    ///
    /// The path of a .X.o.cmd of Kbuild's or of a compile_commands.json; `kbuild` is the .X.o.cmd beside the module.
    /// Those that are for preprocessing, for diagnostics and for outputs are passed over. They precede the arguments that
    /// follow the compiler.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["args", DARWIN])]
    pub flags_from: Option<FlagsSource>,
    /// Compile for this target [default: that of the module]
    #[arg(long, value_name = "TRIPLE", conflicts_with = DARWIN)]
    pub target: Option<String>,
    /// Print the command, then run it
    #[arg(long, short)]
    pub verbose: bool,
    /// Keep debug information in the object, in sections of it that are not linked, or in the file of --dwo
    #[arg(long, value_name = "MODE", requires = "args", conflicts_with = DARWIN, help_heading = BUCK2_GNU)]
    pub split_dwarf: Option<SplitDwarf>,
    /// Print the command and do not run it
    #[arg(long, hide_short_help = true, conflicts_with = DARWIN, help_heading = BUCK2_GNU)]
    pub debug: bool,
    /// The form of Buck2's for darwin.
    #[command(flatten)]
    pub darwin: DarwinArgs,
    /// Where results are kept on disk.
    #[command(flatten)]
    pub cache: CacheArgs,
    /// Where the compilation may run but here.
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// The compiler and arguments for it; with --compiler, more arguments
    ///
    /// Of `WRAPPER --cc=COMPILER ARGUMENTS`, the compiler is run without the wrapper and the wrapper's own arguments.
    #[arg(last = true, required_unless_present_any = ["shared_args", "slice"], value_name = "COMPILER")]
    pub words: Vec<String>,
}

/// Why there is no object.
#[derive(Debug, Error, Diagnostic)]
pub enum OptError {
    /// The link's flags have no meaning for a backend.
    #[error("{path}: {source}")]
    #[diagnostic(forward(source))]
    LinkFlags {
        /// The file of flags.
        path: Utf8PathBuf,
        /// The error in them.
        source: LinkFlagError,
    },
    /// Split debug information without a path.
    #[error("debug information is to be split off, but --dwo is not given")]
    #[diagnostic(code(distlto::usage), help("say with --dwo FILE.dwo where it goes"))]
    NoDwo,
    /// A path for split debug information, though none is written to a file of its own.
    #[error("--dwo {path}: only --split-dwarf=split writes a file of its own")]
    #[diagnostic(code(distlto::usage), help("remove --dwo, or say --split-dwarf=split"))]
    UselessDwo {
        /// The name.
        path: Utf8PathBuf,
    },
    /// A name that compilers do not give split debug information.
    #[error("--dwo {path}: the name does not end in .dwo")]
    #[diagnostic(
        code(distlto::usage),
        help("name the file as the compiler would: the object's name with .dwo")
    )]
    DwoName {
        /// The name.
        path: Utf8PathBuf,
    },
    /// The graph of a slice.
    #[error("{path}: {source}")]
    #[diagnostic(forward(source))]
    Slice {
        /// The graph.
        path: Utf8PathBuf,
        /// The error in it.
        source: GraphError,
    },
    /// A slice of several backends, and one name.
    #[error("{slice} holds {count} backends, and --out names one object")]
    #[diagnostic(code(distlto::usage), help("say with --objects DIR where the objects go"))]
    ManyObjects {
        /// The slice.
        slice: Utf8PathBuf,
        /// How many backends it has.
        count: usize,
    },
    /// Split debug information of a link that does not split it.
    #[error("--dwo {dwo}: the backend of {slice} writes no split debug information")]
    #[diagnostic(
        code(distlto::usage),
        help("remove --dwo, or add -gsplit-dwarf to the link that cuts the slices")
    )]
    NoSplitDwarf {
        /// The name.
        dwo: Utf8PathBuf,
        /// The slice.
        slice: Utf8PathBuf,
    },
    /// Signals cannot be caught.
    #[error("cannot prepare for signals: {0}")]
    #[diagnostic(code(distlto::io), help("check the limit of open files (ulimit -n)"))]
    Signals(io::Error),
}

/// A backend compilation, ready to run.
#[derive(Debug, Default)]
struct Plan {
    /// The command.
    words: Vec<String>,
    /// The module and its shard, as they are to be checked.
    module: String,
    shard: String,
    /// The other inputs of the command.
    others: Vec<String>,
    /// The outputs of the command.
    outputs: Vec<(Utf8PathBuf, Role)>,
    /// The expected kind of the object; that of the module when `None`.
    expected: Option<Native>,
    /// Link options for outputs that a backend does not write.
    notes: Vec<String>,
}

/// The files that a command line of one module names.
#[derive(Debug, Clone, Copy)]
struct CommandFiles<'a> {
    out: &'a Utf8Path,
    input: &'a Utf8Path,
    index: &'a Utf8Path,
}

impl<'a> CommandFiles<'a> {
    /// `None` for a command line of a slice.
    fn of(args: &'a OptArgs) -> Option<Self> {
        Some(Self { out: args.out.as_deref()?, input: args.input.as_deref()?, index: args.index.as_deref()? })
    }
}

impl Plan {
    fn of(named: CommandFiles<'_>) -> Self {
        Self { module: named.input.to_string(), shard: named.index.to_string(), ..Self::default() }
    }
}

/// Runs the compilation and prints the compiler's output. Returns the exit code: 0, or the compiler's own.
pub fn run(args: &OptArgs) -> Result<u8, Report> {
    let cancel = cancel_on_signals().map_err(OptError::Signals)?;
    run_until(args, &cancel)
}

/// [`run`] with a token of the caller's.
pub fn run_until(args: &OptArgs, cancel: &Cancel) -> Result<u8, Report> {
    let Some(named) = CommandFiles::of(args) else { return slice::run(args, cancel) };
    let plan = match &args.darwin.shared_args {
        Some(shared) => darwin::plan(args, named, shared)?,
        None => gnu::plan(args, named)?,
    };
    let backend =
        Backend { module: plan.module.clone(), shard: plan.shard.clone(), others: plan.others.clone() };
    let job = Job {
        label: plan.module.clone(),
        words: plan.words.clone(),
        backend: Some(backend),
        outputs: plan.outputs.clone(),
    };
    if args.debug || args.darwin.print_command {
        to_standard_output(format!("{}\n", job.command_line(None)).as_bytes())?;
        return Ok(0);
    }
    if args.verbose {
        say(format_args!("+ {}", job.command_line(None)));
        plan.notes
            .iter()
            .for_each(|option| say(format_args!("note: {option} is not done by a distributed link")));
    }
    let results = args.results(cancel)?;
    let attempt = compile(&job, plan.expected, None, &results, cancel);
    report_outcome(&job, attempt, None, cancel)
}

/// Prints the compiler's output. Returns the exit code: 0, or the compiler's own.
fn report_outcome(
    job: &Job,
    attempt: JobAttempt,
    directory: Option<&Path>,
    cancel: &Cancel,
) -> Result<u8, Report> {
    attempt.refused.iter().for_each(warn);
    if let Some(executed) = &attempt.executed {
        // A failure to print is ignored: the requested result is the object, not the text.
        let _ = to_standard_output(executed.stdout.text().as_bytes());
        show(whole_lines(&executed.stderr.text()).as_bytes());
    }
    match attempt.result {
        Ok(()) => Ok(0),
        Err(Cause::Interrupted { .. }) => Ok(cancel.exit_code()),
        Err(cause) => {
            let Some(code) = cause.exit_code() else { return Err(cause.into()) };
            distlto_prepare::exit::print(&cause);
            say(format_args!("  repeat: {}", job.command_line(directory)));
            Ok(code)
        }
    }
}

/// Where results are kept.
struct Results {
    store: Option<Cache>,
    engine: Option<Engine>,
}

impl OptArgs {
    /// Opens the store and the engine that the options name.
    fn results(&self, cancel: &Cancel) -> Result<Results, RemoteError> {
        // Without one, a server that is dead is asked again.
        let ledger = Ledger::of_environment().ok().flatten();
        Ok(Results { store: self.cache.open(cancel), engine: self.remote.connect(cancel, ledger.as_ref())? })
    }
}

/// Compiles on an engine if there is one, or else here, unless a cache has the result.
fn compile(
    job: &Job,
    expected: Option<Native>,
    directory: Option<&Path>,
    results: &Results,
    cancel: &Cancel,
) -> JobAttempt {
    let modules = Modules::new(directory);
    let digests = FileDigests::new(directory.unwrap_or(Path::new("")));
    let execute = Local { spawner: &PLAIN, grace: GRACE, directory, drivers: None };
    let here = Context {
        execute: &execute,
        cancel,
        modules: &modules,
        directory,
        expected,
        describer: None,
        staging: &StagingArea::new(directory, None),
        digests: &digests,
        caches: &[],
        linker: None,
    };
    let Results { store, engine } = results;
    let engine = engine.as_ref();
    let kept_in = match (store, engine) {
        (None, None) => return attempt::run(job, Site::Here, Duration::ZERO, &here),
        (Some(store), _) => Some(store.directory()),
        (None, Some(_)) => own_cache(),
    };
    let answers = Cc1Commands::default();
    let drivers = Drivers { answers: &answers, spawner: &PLAIN, cancel, grace: GRACE, directory };
    let toolchains = Toolchains::new(kept_in);
    let platform = engine.map(Engine::platform).unwrap_or_default();
    let describer = Describer::new(&toolchains, &drivers, &digests, directory, platform);
    let caches: Vec<&dyn ResultCache> = nearest_first(store.as_ref(), engine);
    let remote = engine.map(|engine| Remote { engine, here: &execute, directory });
    let there = Context {
        execute: remote.as_ref().map_or(here.execute, |remote| remote),
        describer: describer.as_ref(),
        caches: &caches,
        ..here
    };
    let site = if engine.is_some_and(Engine::executes) { Site::Engine } else { Site::Here };
    let mut attempt = attempt::run(job, site, Duration::ZERO, &there);
    if let Err(Cause::NotOnEngine { .. }) = attempt.result {
        attempt = attempt::run(job, Site::Here, Duration::ZERO, &there);
    }
    caches
        .iter()
        .flat_map(|cache| cache.troubles())
        .chain(toolchains.troubles())
        .for_each(|trouble| warn(&trouble));
    attempt
}
