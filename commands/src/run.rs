//! `distlto run`: runs an action graph that a file holds, as far as it is out of date.
//!
//! An action is looked at when everything it needs has run, so that a thin link that writes the shards it wrote
//! before is followed by nothing. State lives in a folder of the store, or in `--state`, with the lock and the records
//! of `distlto link`. Does not depend on a front end: a graph by hand is as good as one by `distlto-index`.

mod error;
mod selection;
mod stale;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::plan::GraphSource;
use camino::Utf8PathBuf;
use clap::Args;
use distlto_planner::graph::{ActionGraph, ActionId, ActionKind, Work};
use distlto_planner::state::{Place, VARIABLE, directory};
use distlto_prepare::exit;
use distlto_prepare::io_error::IoError;
use distlto_prepare::message::say;
use miette::Report;

use crate::action_log::{ActionLog, Recording};
use crate::link::state::LinkState;
use crate::run_args::{Assembly, RunArgs};
use distlto_executor::cancel::Cancel;
use distlto_executor::execute::spawn::LocalSpawner;
use distlto_executor::run::{self, Hooks, Made, Need};
use distlto_executor::schedule::tokens::JobSlots;
use distlto_record::cause::{FailureCause, FailureKind};
use distlto_record::progress::{Plan, Profile, Progress, ProgressEvent, Reporter};
use distlto_record::report::{Counts, Failure};
use distlto_record::why::Explainer;

use error::RunError;

/// How often a graph that its own thin link writes again is read again.
const ROUNDS: usize = 3;

/// Run an action graph: whatever is out of date, in parallel
///
/// Run in the link's working directory, which the graph's relative paths are relative to. An action runs if its
/// command, an input or an output is not what it was when it ran last, by content; what it does not change runs nothing.
/// docs/action-graph.md describes the graph, which distlto index writes.
#[derive(Debug, Clone, Args)]
#[command(name = "run", after_help = exit::help())]
pub struct RunCommandArgs {
    /// How the actions are run.
    #[command(flatten)]
    pub run: RunArgs,
    /// Keep the records of this graph in this directory [default: a folder of the store]
    #[arg(long, value_name = "DIR")]
    pub state: Option<String>,
    /// An action graph in JSON, or a directory that distlto index wrote
    #[arg(value_name = "GRAPH")]
    pub graph: Utf8PathBuf,
    /// Run these outputs or labels and what they need [default: everything]
    #[arg(value_name = "TARGET")]
    pub targets: Vec<String>,
}

/// Runs the outdated actions. Returns the exit code: 0, that of the first failure's class, or that of the signal that
/// ended the run.
pub fn run(args: &RunCommandArgs, cancel: &Cancel) -> Result<u8, Report> {
    let slots = JobSlots::usable(std::process::id());
    // The folder of many states; --state is that of this graph alone.
    let input = GraphSource::find(&args.graph, std::env::var(VARIABLE).ok().as_deref())?;
    let mut graph = input.read_to_run()?;
    let directory =
        args.state.clone().or_else(|| Some(directory(input.path().as_str(), &args.run.cache.links(None)?)));
    let held = LinkState::open_or_scratch(directory.as_deref())?;
    let spawner = args.run.spawner();
    let mut reporter = args.run.reporter(Profile::COMMAND)?;
    let directory = Path::new(held.directory());
    let mut rounds = || -> Result<End, Report> {
        for number in 0..ROUNDS {
            if number > 0 {
                reporter = args.run.reporter(Profile::COMMAND)?;
            }
            let round = Round {
                args,
                graph: &graph,
                directory,
                input: &input,
                spawner: &spawner,
                cancel,
                reporter: &reporter,
                slots: slots.as_ref(),
            };
            match round.run()? {
                End::Rewritten(newer) => graph = *newer,
                // Something was done before.
                End::NothingToDo if number > 0 => return Ok(End::Code(0)),
                end => return Ok(end),
            }
        }
        Err(RunError::NeverSettles { graph: input.path().to_owned() }.into())
    };
    let ended = rounds();
    match &ended {
        Ok(End::Code(code)) => reporter.keep(directory, *code, None),
        Err(error) => reporter.keep(
            directory,
            exit::code_of(&**error),
            Some(FailureCause::of(FailureKind::Failed, &**error)),
        ),
        // A run without actions leaves no record.
        Ok(End::NothingToDo | End::Rewritten(_)) => {}
    }
    ended.map(|end| if let End::Code(code) = end { code } else { 0 })
}

/// How one pass over a graph ends.
enum End {
    /// With this exit code.
    Code(u8),
    /// Nothing was out of date.
    NothingToDo,
    /// A thin link has run, and may have written the graph again.
    Rewritten(Box<ActionGraph>),
}

/// One pass over a graph.
struct Round<'a> {
    args: &'a RunCommandArgs,
    graph: &'a ActionGraph,
    directory: &'a Path,
    input: &'a GraphSource,
    spawner: &'a LocalSpawner,
    cancel: &'a Cancel,
    reporter: &'a Reporter,
    slots: Option<&'a JobSlots>,
}

impl Round<'_> {
    fn run(&self) -> Result<End, Report> {
        let graph = self.graph;
        let targets = selection::select(graph, &self.args.targets)?;
        selection::check_inputs(graph, &targets)?;
        let log = ActionLog::open(self.directory, Path::new(""))?;
        let explainer = Explainer::new(graph);
        let found = log.changes_of_all(&explainer, &targets)?;
        let stale = found.iter().filter(|(_, why)| !why.is_empty());
        let mut wanted: Vec<ActionId> = stale.map(|(id, _)| *id).collect();
        let first = self.before_thin_links(&wanted);
        let goes_on = !first.is_empty() && first.len() < wanted.len();
        if goes_on {
            wanted = first;
        }
        if wanted.is_empty() {
            log.save()?;
            self.nothing_to_do();
            return Ok(End::NothingToDo);
        }
        self.reporter.graph(self.input.path().as_std_path());
        self.reporter.describe(|run| run.output = Some(self.what().to_owned()));
        self.reporter.record_actions(log.known(graph, found));
        make_directories(graph, &wanted)?;
        let cache = &self.args.run.cache;
        let store = cache.results(cache.store(self.cancel), self.cancel);
        let assembly = Assembly::new(&self.args.run, store, self.spawner, self.cancel)?;
        let history = Place::History.path(self.directory);
        let mut options = assembly.options(self.reporter, Some(&history), None);
        options.slots = self.slots;
        options.digests = Some(log.digests());
        let watching = Watching {
            graph,
            log: &log,
            recording: Recording::new(graph, &log, self.reporter),
            reporter: self.reporter,
            explainer,
            input: self.input,
            asked: wanted.iter().copied().filter(|&id| !graph.dependencies(id).is_empty()).collect(),
            rewritten: Cell::new(None),
            error: RefCell::new(None),
        };
        let report = run::run(&with_own_programs(graph), &wanted, &options, &watching);
        let Watching { recording, rewritten, error, .. } = watching;
        let saved = log.save();
        if let Some(error) = error.into_inner() {
            return Err(error);
        }
        recording.result()?;
        saved?;
        match rewritten.into_inner() {
            Some(newer) if report.cancelled.is_none() => Ok(End::Rewritten(Box::new(newer))),
            None if goes_on && report.exit_code() == 0 => Ok(End::Rewritten(Box::new(graph.clone()))),
            _ => {
                self.reporter.conclude(self.what(), Some(graph), None);
                Ok(End::Code(report.exit_code()))
            }
        }
    }

    /// Returns the thin links among these actions, with their dependencies. The thin link decides on later actions.
    fn before_thin_links(&self, wanted: &[ActionId]) -> Vec<ActionId> {
        let is_thin = |id: &ActionId| self.graph.action(*id).kind() == ActionKind::ThinLink;
        let mut left: Vec<ActionId> = wanted.iter().copied().filter(is_thin).collect();
        let mut first = BTreeSet::new();
        while let Some(id) = left.pop() {
            if first.insert(id) {
                left.extend(self.graph.dependencies(id).into_iter().filter(|id| wanted.contains(id)));
            }
        }
        first.into_iter().collect()
    }

    /// Returns the graph's name for messages: the program that it links, else its path.
    fn what(&self) -> &str {
        let link = self.graph.actions().find(|(_, action)| action.kind() == ActionKind::Link);
        link.map_or(self.input.path().as_str(), |(_, action)| action.label.as_str())
    }

    /// Reports a run without actions as JSON events; otherwise prints a line with `-v`.
    fn nothing_to_do(&self) {
        if self.args.run.json {
            self.reporter.report(ProgressEvent::Planned(Plan { actions: 0, cost: 0, jobs: 0 }));
            self.reporter.report(ProgressEvent::Ended(Counts::default(), Duration::ZERO));
        } else if self.args.run.verbose > 0 {
            say(format_args!("distlto: {}: nothing to do", self.input.path()));
        }
    }
}

/// Commands write files, and expect the directories to be there.
fn make_directories(graph: &ActionGraph, wanted: &[ActionId]) -> Result<(), IoError> {
    let outputs = wanted.iter().flat_map(|&id| graph.action(id).outputs());
    let parents: BTreeSet<_> = outputs.filter_map(|output| graph.path(output).parent()).collect();
    for parent in parents.into_iter().filter(|parent| !parent.as_str().is_empty()) {
        fs::create_dir_all(parent).map_err(IoError::on("create directory", parent))?;
    }
    Ok(())
}

/// Looks at each action when its dependencies have run, and at the graph when a thin link has.
struct Watching<'a> {
    graph: &'a ActionGraph,
    log: &'a ActionLog,
    recording: Recording<'a>,
    reporter: &'a Reporter,
    explainer: Explainer<'a>,
    input: &'a GraphSource,
    /// Actions with inputs from other actions; all others have been looked at.
    asked: BTreeSet<ActionId>,
    rewritten: Cell<Option<ActionGraph>>,
    error: RefCell<Option<Report>>,
}

impl Watching<'_> {
    fn ends(&self) -> bool {
        let rewritten = self.rewritten.take();
        let ends = rewritten.is_some() || self.error.borrow().is_some();
        self.rewritten.set(rewritten);
        ends
    }
}

impl Hooks for Watching<'_> {
    fn asks(&self) -> bool {
        true
    }

    fn need(&self, action: ActionId) -> Need {
        if self.ends() {
            return Need::Stop;
        }
        if !self.asked.contains(&action) {
            return Need::Run;
        }
        match self.log.changes(&self.explainer, action) {
            Ok(why) if why.is_empty() => Need::UpToDate,
            Ok(why) => {
                self.reporter.because(action, why);
                Need::Run
            }
            Err(error) => {
                self.error.borrow_mut().get_or_insert(error.into());
                Need::Stop
            }
        }
    }

    fn finished(&self, action: ActionId, made: &Made<'_>) {
        self.recording.finished(action, made);
        if let Work::ThinLink { graph, .. } = self.graph.action(action).work {
            match stale::look(self.graph, graph, self.input) {
                Ok(None) => {}
                Ok(Some(newer)) => self.rewritten.set(Some(newer)),
                Err(error) => drop(self.error.borrow_mut().get_or_insert(error)),
            }
        }
    }

    fn failed(&self, action: ActionId, failure: &Failure) {
        self.recording.failed(action, failure);
    }
}

/// The graph with paths in place of the names of our own programs; the same ids. A plan says `distlto-index`, wherever
/// that is installed. Programs beside this one come before those of `PATH`: their version is the same.
fn with_own_programs(graph: &ActionGraph) -> ActionGraph {
    let mut found = graph.clone();
    let own = std::env::current_exe().unwrap_or_default();
    for (id, action) in graph.actions().filter(|(_, action)| action.prefix.is_none()) {
        if let Some(words) = action.args.first().and_then(|program| ours(&own, program)) {
            let rest = action.args.iter().skip(1).cloned();
            found.set_args(id, words.into_iter().chain(rest).collect());
        }
    }
    found
}

/// The words that start one of our programs: the one beside `own`, or `own` itself, which has it as a subcommand.
fn ours(own: &Path, program: &str) -> Option<Vec<String>> {
    if program == "distlto" {
        return Some(vec![own.to_str().filter(|_| own.file_name() == Some("distlto".as_ref()))?.to_owned()]);
    }
    let tool = program.strip_prefix("distlto-").filter(|tool| !tool.contains('/'))?;
    let path = own.with_file_name(program);
    if path.is_file() {
        return Some(vec![path.to_str()?.to_owned()]);
    }
    let has_it = matches!(tool, "index" | "prepare" | "opt");
    let own = own.to_str().filter(|_| has_it && own.file_name().is_some_and(|name| name == "distlto"))?;
    Some(vec![own.to_owned(), tool.to_owned()])
}
