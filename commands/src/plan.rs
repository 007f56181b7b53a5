//! The command that shows a link before it runs. Reads an index directory or a graph. Writes it in another form
//! (`forms`), or a summary, or a list of the actions that would run.
//!
//! The one module of the graph's side that reads and writes files. Runs no action.

mod forms;

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use distlto_prepare::exit;
use distlto_prepare::io_error::IoError;
use distlto_prepare::regular;
use distlto_prepare::write::to_standard_output;
use miette::{Diagnostic, Report};
use thiserror::Error;

use distlto_planner::graph::error::GraphError;
use distlto_planner::graph::summary::GraphSummary;
use distlto_planner::graph::{Action, ActionGraph, json};
use distlto_planner::state::{self, Place, VARIABLE};
use distlto_record::why::{self, Change, Explainer};

use crate::action_log::ActionLog;
use crate::configuration::options;
use crate::dry_run::{Row, lines};
use crate::store;
use forms::Form;

/// Show a link before it runs: as JSON, DOT, Ninja, a summary or a dry run
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help())]
pub struct PlanArgs {
    /// The directory that distlto-index wrote, or an action graph in JSON
    #[arg(value_name = "INDEX_DIR|GRAPH.json")]
    pub input: Utf8PathBuf,
    /// The directory of distlto link --state, where the record of an output is
    #[arg(long, value_name = "DIR", env = VARIABLE)]
    pub state: Option<String>,
    /// Write the action graph as JSON (- for standard output)
    ///
    /// The format is versioned; docs/action-graph.md describes it.
    #[arg(long, value_name = "FILE")]
    pub json: Option<Utf8PathBuf>,
    /// Write the action graph in Graphviz's DOT language (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub dot: Option<Utf8PathBuf>,
    /// Write a build.ninja, to be run in the link's working directory
    ///
    /// Ninja runs the backends with the program of --opt-program, the final link, and, in an index directory that
    /// distlto-index wrote, the thin link when an input changed.
    #[arg(long, value_name = "FILE")]
    pub ninja: Option<Utf8PathBuf>,
    /// Compile with this program in the build.ninja
    #[arg(long, value_name = "PROGRAM", default_value = "distlto-opt")]
    pub opt_program: String,
    /// List the actions that would run, and why, largest cost first
    ///
    /// Judged by what earlier runs of distlto link and distlto run left. Nothing is written.
    #[arg(long)]
    pub dry_run: bool,
    /// Print modules, imports, costs and simulated makespans [default if nothing else is asked for]
    #[arg(long)]
    pub summary: bool,
}

/// Why there is nothing to show.
#[derive(Debug, Error, Diagnostic)]
pub enum PlanCommandError {
    /// A file could not be read or written.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
    /// Neither a directory nor a file.
    #[error("{path} does not exist")]
    #[diagnostic(
        code(distlto::bad_input),
        help(
            "name the directory that distlto-index wrote or an output that distlto has linked, or a graph's JSON"
        )
    )]
    Missing {
        /// The path.
        path: Utf8PathBuf,
    },
    /// A directory without a graph.
    #[error("{directory} holds neither {} nor {}", Place::Graph.name(), Place::LinkGraph.name())]
    #[diagnostic(
        code(distlto::bad_input),
        help("name the directory that distlto-index wrote, or run the thin link again if it did not end")
    )]
    NotAnIndex {
        /// The directory.
        directory: Utf8PathBuf,
    },
    /// An action graph that is malformed.
    #[error("{path}: {source}")]
    #[diagnostic(code(distlto::bad_input), help("{}", help_of(source)))]
    Graph {
        /// The file.
        path: Utf8PathBuf,
        /// The error in it.
        source: GraphError,
    },
    /// A link with its steps in one process of the linker.
    #[error("{path} is of a link that the linker performed in one run: its steps cannot be run one by one")]
    #[diagnostic(
        code(distlto::usage),
        help(
            "make a graph to run with distlto index -- LINK COMMAND; distlto link --dry-run says what a link would run"
        )
    )]
    Record {
        /// The graph.
        path: Utf8PathBuf,
    },
    /// Two texts for one stream.
    #[error("{first} and {second} would both be written to standard output")]
    #[diagnostic(code(distlto::usage), help("give one of them a file"))]
    OneOutput {
        /// An option.
        first: &'static str,
        /// Another one.
        second: &'static str,
    },
}

fn help_of(error: &dyn Diagnostic) -> String {
    error.help().map_or_else(String::new, |help| help.to_string())
}

impl PlanArgs {
    /// The requested forms, with the file of each.
    fn forms(&self) -> impl Iterator<Item = (Form, &Utf8Path)> {
        let all = [(Form::Json, &self.json), (Form::Dot, &self.dot), (Form::Ninja, &self.ninja)];
        all.into_iter().filter_map(|(form, path)| Some((form, path.as_deref()?)))
    }
}

/// Runs the command; a reader of standard output that goes away early ends it without an error.
pub fn run(args: PlanArgs) -> Result<u8, Report> {
    check_outputs(&args)?;
    let input = GraphSource::find(&args.input, args.state.as_deref())?;
    let is_run = args.dry_run || args.forms().any(|(form, _)| form.is_run());
    let graph = if is_run { input.read_to_run()? } else { input.read()? };
    for (form, path) in args.forms() {
        form.emit(&graph, &input, path, &args.opt_program)?;
    }
    if args.dry_run {
        to_standard_output(dry_run(&graph, &input)?.as_bytes())?;
    }
    if args.summary || !asks_for_something(&args) {
        to_standard_output(GraphSummary::of(&graph).to_string().as_bytes())?;
    }
    Ok(0)
}

/// The file that a graph is read from.
#[derive(Debug, Clone)]
pub struct GraphSource {
    path: Utf8PathBuf,
}

/// Whether a path is a directory or a file that begins as JSON does, which is no program.
fn is_graph(path: &Utf8Path) -> bool {
    let mut first = [0];
    path.is_dir()
        || regular::open(path.as_std_path())
            .and_then(|(mut file, _)| file.read(&mut first))
            .is_ok_and(|_| first == *b"{")
}

impl GraphSource {
    /// A file with a graph, a directory that holds one, or an output: its record lies in `folder`, or in the store.
    pub fn find(given: &Utf8Path, folder: Option<&str>) -> Result<Self, PlanCommandError> {
        let record = || Some(Utf8PathBuf::from(store::record_of(given.as_str(), &options::links(folder)?)));
        let record = if is_graph(given) { None } else { record() };
        let given = record.as_deref().filter(|record| record.is_dir()).unwrap_or(given);
        match fs::metadata(given) {
            Ok(found) if found.is_dir() => {
                let index = given.join(Place::Index.name());
                let places = [given.join(Place::Graph.name()), index.join(Place::Graph.name())];
                let record = given.join(Place::LinkGraph.name());
                let path = places.into_iter().chain([record]).find(|path| path.exists());
                let path =
                    path.ok_or_else(|| PlanCommandError::NotAnIndex { directory: given.to_owned() })?;
                regular::check_place(path.as_std_path()).map_err(IoError::on("read", &path))?;
                Ok(Self { path })
            }
            Ok(_) => Ok(Self { path: given.to_owned() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(PlanCommandError::Missing { path: given.to_owned() })
            }
            Err(error) => Err(IoError::on("read", given)(error).into()),
        }
    }

    /// That of a directory that was written last: a link's record, or the graph of an index.
    pub fn latest(directory: &Utf8Path) -> Result<Self, PlanCommandError> {
        let found = Self::find(directory, None)?;
        let written = |path: &Utf8Path| fs::metadata(path).and_then(|found| found.modified()).ok();
        let record = directory.join(Place::LinkGraph.name());
        Ok(if written(&record) > written(&found.path) { Self { path: record } } else { found })
    }

    /// The file.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// The directory that holds the file and the state of earlier runs.
    fn directory(&self) -> Option<&Utf8Path> {
        self.path.parent()
    }

    /// The default directory for the records of `distlto run`, where the user has a store. The index directory will not do: the
    /// graph's own thin link takes its lock.
    pub fn run_state(&self) -> Option<String> {
        Some(state::directory(self.path.as_str(), &options::links(None)?))
    }

    /// The graph that it holds at the moment.
    pub fn read(&self) -> Result<ActionGraph, PlanCommandError> {
        let bytes = fs::read(&self.path).map_err(IoError::on("read", &self.path))?;
        json::read(&bytes).map_err(|source| PlanCommandError::Graph { path: self.path.clone(), source })
    }

    /// Reads the graph to run its actions. Refuses the record of a link.
    pub fn read_to_run(&self) -> Result<ActionGraph, PlanCommandError> {
        let graph = self.read()?;
        if graph.is_record() {
            return Err(PlanCommandError::Record { path: self.path.clone() });
        }
        Ok(graph)
    }
}

/// Lists the actions that would run in the working directory, by the log of earlier runs of the graph. Writes nothing.
fn dry_run(graph: &ActionGraph, input: &GraphSource) -> Result<String, PlanCommandError> {
    let state = input.run_state().unwrap_or_default();
    let wanted: Vec<_> = graph.topological().collect();
    let log = ActionLog::read(Path::new(&state), Path::new(""));
    let found = log.changes_of_all(&Explainer::new(graph), &wanted)?;
    let actions = found.len();
    let found = found.into_iter().filter(|(_, why)| !why.is_empty());
    let rows: Vec<Row> = found.map(|(id, why)| row(graph.action(id), &why)).collect();
    let closing = format!("{} of {actions} actions would run\n", rows.len());
    Ok(lines(rows) + &closing)
}

fn row(action: &Action, why: &[Change]) -> Row {
    let Action { cost, label, .. } = action;
    let what = format!("{} {label}", action.kind().name());
    Row { weight: *cost, takes: cost.to_string(), what, why: why::list(why) }
}

fn asks_for_something(args: &PlanArgs) -> bool {
    args.forms().next().is_some() || args.dry_run || args.summary
}

fn check_outputs(args: &PlanArgs) -> Result<(), PlanCommandError> {
    let forms = args.forms().filter(|(_, path)| forms::is_stream(path)).map(|(form, _)| form.option());
    let texts = [("--dry-run", args.dry_run), ("--summary", args.summary)];
    let texts = texts.into_iter().filter(|(_, streams)| *streams).map(|(name, _)| name);
    let mut streams = forms.chain(texts);
    match (streams.next(), streams.next()) {
        // The two readable texts may follow each other.
        (Some("--dry-run"), _) => Ok(()),
        (Some(first), Some(second)) => Err(PlanCommandError::OneOutput { first, second }),
        _ => Ok(()),
    }
}
