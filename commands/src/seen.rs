//! A link as it can be looked at after the fact: found by its output, its state directory, a record of a run, or a graph.
//!
//! Reads what is there; runs nothing.

use std::collections::HashMap;
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use distlto_planner::digests::Digest;
use distlto_planner::graph::{Action, ActionGraph, ActionKind, Backend};
use distlto_planner::link_plan::{LinkPlan, ObjectPlan, PlanError};
use distlto_planner::state::{self, Place, SUFFIX};
use distlto_prepare::regular;
use distlto_prepare::write::IoError;
use distlto_record::action::ActionRecord;
use distlto_record::diff::Side;
use distlto_record::inspect::KnownModule;
use distlto_record::run::{self, GraphFile, ReadError, RunRecord};
use miette::Diagnostic;
use thiserror::Error;

use crate::plan::{GraphSource, PlanCommandError};

/// Why there is nothing to look at.
#[derive(Debug, Error, Diagnostic)]
pub enum SeenError {
    /// A file could not be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
    /// A record is none.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Record(#[from] ReadError),
    /// No plan and no graph.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Graph(#[from] PlanCommandError),
    /// An archive could not be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Archive(#[from] distlto_prepare::error::Error),
    /// A plan is none.
    #[error("{path}: {source}")]
    #[diagnostic(forward(source))]
    Plan {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong with it.
        source: PlanError,
    },
    /// No link is known by that name.
    #[error("{path} is nothing that a link left, and {beside} is not there")]
    #[diagnostic(
        code(distlto::bad_input),
        help(
            "name an output that distlto linked (with --state, if its state is elsewhere), its state directory, a record of a \
             run, or an action graph in JSON"
        )
    )]
    Unknown {
        /// What was named.
        path: Utf8PathBuf,
        /// Where its state would be.
        beside: String,
    },
    /// There are not two runs.
    #[error("{path} holds the record of {found} run(s), and two are compared")]
    #[diagnostic(code(distlto::usage), help("name two things, or link again"))]
    NoTwoRuns {
        /// The state directory.
        path: Utf8PathBuf,
        /// How many there are.
        found: usize,
    },
    /// No module is called so.
    #[error("no module of {path} is called {name}{}", like(similar))]
    #[diagnostic(
        code(distlto::usage),
        help("`distlto inspect --modules` lists them; the end of a name will do")
    )]
    NoModule {
        /// The link.
        path: Utf8PathBuf,
        /// What was asked for.
        name: String,
        /// Names that hold it, or several that end in it.
        similar: Vec<String>,
    },
    /// What an answer needs cannot be read.
    #[error("{what}")]
    #[diagnostic(code(distlto::bad_input), help("{help}"))]
    Unreadable {
        /// What was tried.
        what: String,
        /// What to do.
        help: String,
    },
}

fn like(similar: &[String]) -> String {
    if similar.is_empty() { String::new() } else { format!("; there is {}", similar.join(", ")) }
}

/// A link, as far as the thing that was named tells.
pub struct Seen {
    /// What was named.
    pub named: Utf8PathBuf,
    /// The state directory, or that of the graph.
    pub directory: Option<Utf8PathBuf>,
    /// The program.
    pub output: String,
    /// What was planned last, if that is kept.
    pub plan: Option<LinkPlan>,
    /// Its modules.
    pub modules: Vec<KnownModule>,
    /// The records of its runs, the oldest first.
    pub runs: Vec<RunRecord>,
}

impl Seen {
    /// Finds it; `folder` is the directory of `distlto link --state`.
    pub fn find(named: &Utf8Path, folder: Option<&str>) -> Result<Self, SeenError> {
        let output = named.as_str().trim_end_matches('/');
        let beside = state::directory(output.strip_suffix(SUFFIX).unwrap_or(output), folder);
        let is_graph =
            named.is_file() && regular::read(named.as_std_path()).is_ok_and(|text| text.starts_with(b"{"));
        if is_graph {
            return Self::of_file(named);
        }
        let directory = if named.is_dir() { named.to_owned() } else { Utf8PathBuf::from(beside.as_str()) };
        if !directory.is_dir() {
            return Err(SeenError::Unknown { path: named.to_owned(), beside });
        }
        let runs = read_runs(&directory)?;
        match (GraphSource::find(&directory, None), runs.last()) {
            (Ok(source), _) => Self::of_directory(named, directory, &source, runs),
            // A distributor's runs, and those of a graph, are beside no plan.
            (Err(PlanCommandError::NotAnIndex { .. }), Some(last)) => Ok(Self {
                named: named.to_owned(),
                output: last.output.clone().unwrap_or_else(|| named.to_string()),
                modules: of_run(last),
                directory: Some(directory),
                plan: None,
                runs,
            }),
            (Err(error), _) => Err(error.into()),
        }
    }

    fn of_file(named: &Utf8Path) -> Result<Self, SeenError> {
        let is_record = regular::read(named.as_std_path())
            .map_err(IoError::on("read", named))?
            .windows(10)
            .take(64)
            .any(|bytes| bytes == b"\"begun_ms\"");
        if !is_record {
            let source = GraphSource::find(named, None)?;
            return Ok(Self {
                named: named.to_owned(),
                directory: None,
                output: named.to_string(),
                plan: None,
                modules: of_graph(&source.read()?),
                runs: read_runs(Utf8Path::new(&source.run_state()))?,
            });
        }
        let run = run::read(named.as_std_path())?;
        let plan = run.graph.as_ref().and_then(|graph| plan_of(&run, graph));
        Ok(Self {
            named: named.to_owned(),
            directory: run.state.as_ref().map(|state| Utf8PathBuf::from(&run.directory).join(state)),
            output: run.output.clone().unwrap_or_else(|| named.to_string()),
            modules: plan.as_ref().map_or_else(|| of_run(&run), of_plan),
            plan,
            runs: vec![run],
        })
    }

    fn of_directory(
        named: &Utf8Path,
        directory: Utf8PathBuf,
        source: &GraphSource,
        runs: Vec<RunRecord>,
    ) -> Result<Self, SeenError> {
        let path = directory.join(Place::LinkPlan.name());
        let plan = if source.path() == path {
            let bytes = regular::read(path.as_std_path()).map_err(IoError::on("read", &path))?;
            Some(LinkPlan::read(&bytes).map_err(|source| SeenError::Plan { path, source })?)
        } else {
            None
        };
        let modules = match &plan {
            Some(plan) => of_plan(plan),
            None => of_graph(&source.read()?),
        };
        let output = plan.as_ref().map_or_else(|| named.to_string(), |plan| plan.output.to_string());
        Ok(Self { named: named.to_owned(), directory: Some(directory), output, plan, modules, runs })
    }

    /// The number of a module by its name, or by the end of it.
    pub fn module(&self, name: &str) -> Result<usize, SeenError> {
        let labels = || self.modules.iter().map(|module| module.label.as_str()).enumerate();
        if let Some((number, _)) = labels().find(|(_, label)| *label == name) {
            return Ok(number);
        }
        let ends = |label: &str| {
            let rest = label.strip_suffix(name).or_else(|| label.strip_suffix(')')?.strip_suffix(name));
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with(['/', '(']))
        };
        let found: Vec<(usize, &str)> = labels().filter(|(_, label)| ends(label)).collect();
        if let [(number, _)] = found.as_slice() {
            return Ok(*number);
        }
        const SHOWN: usize = 5;
        let similar: Vec<String> = match found.is_empty() {
            true => labels()
                .filter(|(_, label)| label.contains(name))
                .map(|(_, label)| label.to_owned())
                .collect(),
            false => found.into_iter().map(|(_, label)| label.to_owned()).collect(),
        };
        let similar = similar.into_iter().take(SHOWN).collect();
        Err(SeenError::NoModule { path: self.named.clone(), name: name.to_owned(), similar })
    }

    /// Where a file of the link is: paths of a plan are relative to where the link ran.
    pub fn place(&self, path: &Utf8Path) -> Utf8PathBuf {
        let there = self.runs.last().map(|run| Utf8Path::new(&run.directory).join(path));
        there.filter(|there| !path.exists() && there.exists()).unwrap_or_else(|| path.to_owned())
    }

    /// For comparing: with the newest run, or with none.
    pub fn side(mut self) -> Side {
        let run = self.runs.pop();
        let label = |&number: &u32| self.modules[number as usize].label.clone();
        let imports = |module: &KnownModule| {
            let imports = module.imports.as_ref().map(|imports| imports.iter().map(label).collect());
            (module.label.clone(), imports)
        };
        Side { modules: self.modules.iter().map(imports).collect(), run }
    }
}

/// The records of a state directory, or of a graph's runs.
fn read_runs(directory: &Utf8Path) -> Result<Vec<RunRecord>, SeenError> {
    let files = run::list(directory.as_std_path())?;
    Ok(files.iter().map(|file| run::read(file)).collect::<Result<_, _>>()?)
}

/// The plan that a run had, if it has not been written anew since.
fn plan_of(run: &RunRecord, graph: &GraphFile) -> Option<LinkPlan> {
    let bytes = regular::read(&Path::new(&run.directory).join(&graph.file)).ok()?;
    (Digest::of(&bytes).to_string() == graph.digest).then(|| LinkPlan::read(&bytes).ok())?
}

fn of_plan(plan: &LinkPlan) -> Vec<KnownModule> {
    // A path hashes slower than its text, and there may be millions of imports.
    let numbers: HashMap<&str, u32> =
        plan.modules.iter().zip(0..).map(|(module, number)| (module.id.as_str(), number)).collect();
    let number = |import: &Utf8PathBuf| numbers.get(import.as_str()).copied();
    let module = |module: &ObjectPlan| KnownModule {
        label: module.id.to_string(),
        own_instructions: module.own_instructions,
        imported_instructions: module.imported_instructions,
        imports: Some(module.imports.iter().filter_map(number).collect()),
    };
    plan.modules.iter().map(module).collect()
}

fn of_graph(graph: &ActionGraph) -> Vec<KnownModule> {
    let backends = || graph.actions().filter_map(|(_, action)| Some((action, action.backend()?)));
    let numbers: HashMap<_, u32> =
        backends().zip(0..).map(|((_, backend), number)| (backend.module, number)).collect();
    let module = |(action, backend): (&Action, &Backend)| KnownModule {
        label: action.label.clone(),
        own_instructions: action.cost,
        imported_instructions: 0,
        imports: Some(backend.imports.iter().filter_map(|file| numbers.get(file).copied()).collect()),
    };
    backends().map(module).collect()
}

fn of_run(run: &RunRecord) -> Vec<KnownModule> {
    let opt = |action: &&ActionRecord| action.kind == ActionKind::Opt;
    let module = |action: &ActionRecord| KnownModule {
        label: action.label.clone(),
        own_instructions: action.instructions.map_or(action.cost, |both| both.own),
        imported_instructions: action.instructions.map_or(0, |both| both.imported),
        imports: None,
    };
    run.actions.iter().filter(opt).map(module).collect()
}
