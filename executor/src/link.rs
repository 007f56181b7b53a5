//! A whole distributed ThinLTO link, from the user's command to the program: the spine of `distlto link`.
//!
//! Reads from top to bottom: is anything to do, what would be linked, thin link, backends, final link. Each step is a
//! function of another module; this one only knows their order and what is kept for the next run. State lives in
//! `<output>.distlto/`, and an advisory lock on it makes a second run of the same link an error.

mod ahead;
mod dtlto;
mod final_link;
mod keeping;
mod line_cache;
mod lock;
mod phases;
pub(crate) mod state;
mod unchanged;

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use distlto_planner::compile_jobs::CompileError;
use distlto_planner::front::{self, FrontError, LinkCommand, Resolved};
use distlto_planner::graph::{ActionGraph, ActionId, ActionKind};
use distlto_planner::index::{self, IndexError, Planned, PlannedLink};
use distlto_planner::link_line::LinkLineError;
use distlto_planner::response::{self, ResponseError};
use distlto_planner::runner::{Runner, ToolError};
use distlto_planner::thin_link::ThinLinkError;
use distlto_planner::unkept::Unkept;
use distlto_planner::words::{Word, lossy, path_of};
use distlto_prepare::store::Store;
use distlto_prepare::write::IoError;
use miette::Diagnostic;
use thiserror::Error;

use crate::cancel::Cancel;
use crate::forkserver::{ForkServer, INSTALL};
use crate::frontend::Frontends;
use crate::local::LocalSpawner;
use crate::progress::{Plan, Progress, Teller, Voice};
use crate::report::Counts;
use crate::run;
use crate::run_args::RunArgs;
use crate::tokens::jobserver_from_env;
use crate::tool::ToolRunner;
use crate::up_to_date::{Recording, Records};

use keeping::Keeping;
pub use lock::Busy;
use phases::{FinalLink, Phases};

/// How to link.
#[derive(Debug, Default)]
pub struct Options {
    /// How backends are run and what is told of them.
    pub run: RunArgs,
    /// Where the action graph is written as JSON, besides.
    pub save_plan: Option<PathBuf>,
    /// The clang for the backends, instead of the one that the command names or implies.
    pub compiler: Option<String>,
    /// Arguments for every backend besides those that the link line implies.
    pub backend_args: Vec<String>,
    /// The folder that holds the state of this link and of others; beside the output where absent.
    pub state: Option<String>,
    /// Shared storage for unpacked archive members.
    pub store: Option<PathBuf>,
    /// Whether the linker performs the link and hands its backends to a distributor.
    pub dtlto: bool,
}

/// Why a link failed.
#[derive(Debug, Error, Diagnostic)]
#[expect(missing_docs, reason = "each variant is the error of the step that its type names")]
pub enum LinkError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Response(#[from] ResponseError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Line(#[from] LinkLineError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Front(#[from] FrontError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Index(#[from] IndexError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Tool(#[from] ToolError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Busy(#[from] Busy),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Plan(#[from] distlto_planner::link_plan::PlanError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Buck2(#[from] distlto_planner::buck2::error::PlanError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Prepare(#[from] distlto_prepare::error::Error),
    #[error("{linker} ended well and wrote no program to {}", output.display())]
    #[diagnostic(
        code(distlto::failed),
        help("the earlier program is intact; check that the linker is what it seems to be")
    )]
    NoProgram { linker: String, output: PathBuf },
    #[error("{linker} cannot hand backends to a distributor")]
    #[diagnostic(
        code(distlto::tool),
        help("DTLTO needs ld.lld 21 or later; `distlto link` without --dtlto works with this one")
    )]
    NoDtlto { linker: String },
    #[error("there is no distributor {}", path.display())]
    #[diagnostic(code(distlto::tool), help("{INSTALL}; or name a distributor with -fthinlto-distributor="))]
    NoDistributor { path: PathBuf },
    #[error("the command is no link of ThinLTO bitcode: there is nothing to index")]
    #[diagnostic(
        code(distlto::usage),
        help("name a link command with inputs that were compiled with -flto=thin")
    )]
    NothingToIndex,
    #[error("the link was interrupted")]
    #[diagnostic(code(distlto::interrupted), help("run it again: finished objects are kept"))]
    Interrupted { exit_code: u8 },
}

/// Links; returns the exit code to end with. A command that is no ThinLTO link replaces this process.
pub fn link(command: &[Word], options: &Options, cancel: &Cancel) -> Result<u8, LinkError> {
    let started = SystemTime::now();
    let spawner = options.run.spawner();
    let runner = ToolRunner { spawner: &spawner, cancel, directory: None };
    // The distributor of a link by the linker traces itself.
    let trace = options.run.trace.as_deref().filter(|_| !options.dtlto);
    let teller = Teller::new(Voice::COMMAND, options.run.style(), trace, None)?;
    let expanded = response::expand(command.to_vec())?;
    let key = state::key(&expanded, options);
    let output = state::guess_output(&expanded);
    let guess = output.as_deref().map(|output| state::directory(output, options.state.as_deref()));
    let mut held =
        guess.as_deref().filter(|guess| Path::new(guess).is_dir()).map(state::State::open).transpose()?;
    if let Some(state) = &held
        && !options.dtlto
        && unchanged::is_unchanged(state.directory(), &key)
    {
        nothing_to_do(options, &teller);
        if options.run.verbose && !options.run.json {
            eprintln!("distlto: {}: nothing to do", output.as_deref().unwrap_or_default());
        }
        return Ok(0);
    }
    // Only what is recorded has to settle.
    let started = if options.dtlto { started } else { unchanged::settle(&expanded) };
    let resolved = match held.as_ref().and_then(|held| line_cache::load(held.directory(), &key)) {
        Some(link) => Resolved::Link(link),
        None => {
            let spawner = options.run.asker(&spawner);
            front::resolve(command, &ToolRunner { spawner, cancel, directory: None })?
        }
    };
    let link = match resolved {
        Resolved::Link(link) => link,
        Resolved::Other { linker, words } => {
            return match (linker, index::bitcode_among(&words)) {
                (Some(linker), Some(input)) => Err(ToolError::NotLld { linker, input }.into()),
                _ => Err(replace_process(command)),
            };
        }
    };
    let output = index::output_of(&link.words)?;
    if state::is_special(Path::new(&output)) {
        return Err(replace_process(command));
    }
    let directory = state::directory(&output, options.state.as_deref());
    let held = match held.take_if(|held| held.directory() == directory) {
        Some(held) => held,
        None => state::State::open(&directory)?,
    };
    let session = Session {
        link: &link,
        directory: &directory,
        options,
        cancel,
        spawner: &spawner,
        runner: &runner,
        teller: &teller,
        key: &key,
        started,
    };
    match if options.dtlto { dtlto::run(&session) } else { session.run() } {
        Ok(Some(code)) => Ok(code),
        Ok(None) => {
            held.discard()?;
            Err(replace_process(command))
        }
        Err(error) => tool_failure(error, cancel),
    }
}

/// Runs a command in place of this process; returns only if it cannot be started.
fn replace_process(command: &[Word]) -> LinkError {
    let words: Vec<_> = command.iter().map(|word| path_of(word)).collect();
    let program = lossy(&command[0]);
    let source = std::process::Command::new(&words[0]).args(&words[1..]).exec();
    ToolError::Start { program, source }.into()
}

/// One link whose state directory is held.
struct Session<'a> {
    link: &'a LinkCommand,
    directory: &'a str,
    options: &'a Options,
    cancel: &'a Cancel,
    spawner: &'a ForkServer<LocalSpawner>,
    runner: &'a ToolRunner<'a>,
    teller: &'a Teller,
    key: &'a state::Key,
    started: SystemTime,
}

impl Session<'_> {
    /// Plans, compiles and links. `None` when the command is to be run as it is.
    fn run(&self) -> Result<Option<u8>, LinkError> {
        // Both programs load while the inputs are looked at, and the linker is needed twice.
        self.spawner.prewarm(OsStr::new(&lossy(&self.link.linker[0])), 2);
        if let Some(compiler) = &self.link.compiler {
            self.options.run.prewarm(self.spawner, OsStr::new(&lossy(compiler)), 1);
        }
        let store = self.options.store.as_deref().map(Store::open).transpose()?;
        let phases = Phases::new(self.teller, self.runner);
        let frontends = Frontends::default();
        let planned = std::thread::scope(|scope| {
            let foretell = |backend| ahead::ask(self, &frontends, scope, backend);
            index::plan(index::Request { foretell: Some(&foretell), ..self.request(store.as_ref(), &phases) })
        })?;
        let Planned::Link(planned, unkept) = planned else { return Ok(None) };
        for option in &planned.not_done {
            eprintln!("distlto: warning: {option} is ignored: a distributed link writes objects only");
        }
        let graph = planned.plan.to_graph()?;
        phases.planned();
        if let Some(path) = &self.options.save_plan {
            distlto_prepare::write::write_if_changed(path, &distlto_planner::graph::json::to_bytes(&graph))?;
        }
        let result = self.compile_and_link(&planned, &unkept, &frontends, &graph);
        self.teller.conclude(planned.plan.output.as_str(), Some(&graph), None);
        let code = result?;
        if code == 0 {
            line_cache::save(self.directory, self.key, self.link)?;
            unchanged::record(self.directory, self.key, &planned, self.link, self.started)?;
        }
        Ok(Some(code))
    }

    /// How planning is to go.
    fn request<'s>(&'s self, store: Option<&'s Store>, runner: &'s dyn Runner) -> index::Request<'s> {
        index::Request {
            link: self.link,
            state: self.directory,
            compiler: self.options.compiler.as_deref(),
            backend_args: &self.options.backend_args,
            store,
            runner,
            foretell: None,
        }
    }

    fn compile_and_link(
        &self,
        planned: &PlannedLink,
        unkept: &Unkept,
        frontends: &Frontends,
        graph: &ActionGraph,
    ) -> Result<u8, LinkError> {
        let records = Records::open(Path::new(self.directory))?;
        let keeping = Keeping { graph, unkept, records: &records };
        let wanted = keeping.out_of_date()?;
        let result = std::thread::scope(|scope| {
            let kept = scope.spawn(|| keeping.finish(&planned.plan, self.cancel));
            let result = self.compile(planned, &keeping, frontends, &wanted);
            let kept = kept.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result.and_then(|code| kept.map(|()| code).map_err(LinkError::from))
        });
        records.save()?;
        let code = result?;
        if code != 0 {
            return Ok(code);
        }
        self.summarise(planned, wanted.len());
        let links = graph.actions().filter(|(_, action)| action.kind == ActionKind::Link).map(|(id, _)| id);
        for id in links {
            let output_exists = planned.plan.output.exists();
            if output_exists && records.out_of_date(graph, &[id])?.is_empty() {
                continue;
            }
            let code = final_link::run(
                planned,
                self.directory,
                &FinalLink::new(self.teller, self.runner),
                &planned.warnings,
            )?;
            if code != 0 {
                return Ok(code);
            }
            records.finished(graph, id)?;
            records.save()?;
        }
        Ok(0)
    }

    fn compile(
        &self,
        planned: &PlannedLink,
        keeping: &Keeping<'_>,
        frontends: &Frontends,
        wanted: &[ActionId],
    ) -> Result<u8, LinkError> {
        if wanted.is_empty() {
            nothing_to_do(self.options, self.teller);
            return Ok(0);
        }
        if let Some(compiler) = planned.plan.backend.first().filter(|_| wanted.len() > 1) {
            self.options.run.prewarm(self.spawner, OsStr::new(compiler), wanted.len());
        }
        let jobserver = jobserver_from_env();
        let cache = self.options.run.open_cache(self.cancel);
        let mut run_options = run::Options::new(self.spawner, self.cancel, self.teller);
        let history = state::history(self.directory);
        run_options.history = Some(&history);
        self.options.run.apply(&mut run_options, planned.jobs);
        run_options.jobserver = jobserver.as_ref();
        let provide = |id| keeping.provide(id);
        run_options.frontends = Some(frontends);
        run_options.provide = Some(&provide);
        run_options.digests = Some(keeping.records.digests());
        run_options.cache = cache.as_deref();
        let hooks = Recording::new(keeping.graph, keeping.records);
        let report = run::run(keeping.graph, wanted, &run_options, &hooks);
        hooks.result()?;
        Ok(report.exit_code())
    }

    /// For people who asked: what the link consisted of, and what had to run.
    fn summarise(&self, planned: &PlannedLink, stale: usize) {
        if !self.options.run.verbose || self.options.run.json {
            return;
        }
        let modules = planned.plan.modules.len();
        let imports: usize = planned.plan.modules.iter().map(|module| module.imports.len()).sum();
        let output = &planned.plan.output;
        // Those that a cache had did not run.
        eprintln!(
            "distlto: {output}: {modules} modules, {imports} imports; {stale} of {modules} backends were out of date"
        );
    }
}

/// A tool that failed has its own exit code and has said itself what is wrong.
pub(crate) fn tool_failure(error: LinkError, cancel: &Cancel) -> Result<u8, LinkError> {
    if cancel.is_cancelled() {
        return Err(LinkError::Interrupted { exit_code: cancel.exit_code() });
    }
    let output = match &error {
        LinkError::Index(IndexError::ThinLink(ThinLinkError::Failed { output, .. })) => output,
        LinkError::Index(IndexError::Compile(CompileError::Failed { output, .. })) => output,
        _ => return Err(error),
    };
    show(&output.stderr);
    let code = output.status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    distlto_prepare::exit::print(&error);
    Ok(code)
}

/// Readers of events are told of a run without actions; people are not.
fn nothing_to_do(options: &Options, teller: &Teller) {
    if options.run.json {
        teller.plan(Plan { actions: 0, cost: 0, jobs: 0 });
        teller.summary(Counts::default(), Duration::ZERO);
    }
}

/// Passes on what a tool printed. A standard error that is gone is no reason to fail a link.
pub(crate) fn show(text: &[u8]) {
    let _ = io::stderr().lock().write_all(text);
}
