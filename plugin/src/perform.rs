//! One call from beginning to end: options, compiler, modules in place, the graph, the run, what there is to tell.
//!
//! Runs on a thread of our own, since what it starts inherits from that thread. Knows nothing of C.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use distlto_commands::module_links::{CommandNames, ModuleLinks, PlaceError, is_misplaced, paths_in};
use distlto_commands::run_args::Assembly;
use distlto_executor::cancel::Cancel;
use distlto_executor::execute::forkserver::ForkServer;
use distlto_executor::execute::spawn::LocalSpawner;
use distlto_executor::process_stat::resident;
use distlto_executor::run::{self, NoHooks};
use distlto_planner::backend_flags::stable_names;
use distlto_planner::graph::{ActionGraph, ActionId};
use distlto_planner::words::{shell_line, shell_quote};
use distlto_prepare::io_error::IoError;
use distlto_record::cause::FailureKind;
use distlto_record::report::{Failure, Report};
use miette::Diagnostic;
use thiserror::Error;

use crate::call::Call;
use crate::compiler::{self, CompilerError};
use crate::diagnostics::{Diagnostics, failure_text};
use crate::host;
use crate::listener::Listener;
use crate::nodes::{self, NodesError};
use crate::options::{OptionError, PluginOptions, VARIABLE};
use crate::panics;
use crate::temporaries::OwnDirectories;

/// Why nothing was compiled.
#[derive(Debug, Error, Diagnostic)]
pub enum PerformError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Option(#[from] OptionError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Remote(#[from] distlto_commands::remote::connect::RemoteError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Compiler(#[from] CompilerError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Nodes(#[from] NodesError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Place(#[from] PlaceError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
    #[error("the environment variable {VARIABLE} is not UTF-8")]
    #[diagnostic(
        code(distlto::usage),
        help("unset it, or set it to options as in {VARIABLE}=jobs=4,verbose")
    )]
    Environment,
    #[error("this process ignores SIGCHLD, so the system does not tell how compilers end")]
    #[diagnostic(
        code(distlto::tool),
        help(
            "start the linker with SIGCHLD at its default action; a parent with `trap '' CHLD` hands this on"
        )
    )]
    Unreaped,
}

/// Compiles everything. Errors are among the diagnostics; whatever happens, no child and no temporary is left.
pub fn perform(call: &Call) -> Diagnostics {
    let mut told = Diagnostics::default();
    if let Err(error) = compile(call, &mut told) {
        told.fail(&error);
    }
    told
}

fn compile(call: &Call, told: &mut Diagnostics) -> Result<(), PerformError> {
    let environment = std::env::var_os(VARIABLE).map(|text| text.into_string());
    let environment = environment.transpose().map_err(|_| PerformError::Environment)?;
    let options = PluginOptions::parse(environment.as_deref(), &call.name)?;
    if call.nodes.is_empty() {
        return Ok(());
    }
    nodes::check(&call.nodes)?;
    if host::ignores_children() {
        return Err(PerformError::Unreaped);
    }
    let base = std::env::current_dir().map_err(IoError::on("find", "the current directory"))?;
    let mut prefix = vec![compiler::find(options.compiler.as_deref())?];
    prefix.extend(call.arguments.iter().chain(&options.args).cloned());
    let own = OwnDirectories::make(&call.nodes)?;
    let session = Session { base: &base, links: links(call, &base, &prefix[1..], &own)?, own: &own };
    let graph = nodes::graph(&call.nodes, &prefix, |path| session.as_seen(path))?;
    let listener = Listener::new(&options)?;
    let report = session.run(&graph, &prefix[0], &options, &listener)?;
    listener.warnings.into_inner().into_iter().for_each(|warning| told.warn(warning));
    tell(&report, told);
    Ok(())
}

/// The private directory, when a module is not at its identifier.
fn links(
    call: &Call,
    base: &Path,
    words: &[String],
    own: &OwnDirectories,
) -> Result<Option<ModuleLinks>, PlaceError> {
    let placed: Vec<(&str, &Path)> = call
        .nodes
        .iter()
        .map(|node| (node.module.as_str(), node.path.as_std_path()))
        .filter(|(identifier, file)| is_misplaced(base, identifier, file))
        .collect();
    let Some(directory) = own.any().filter(|_| !placed.is_empty()) else { return Ok(None) };
    let modules = call.nodes.iter().flat_map(|node| node.imports.iter().chain([&node.module]));
    let mut present: Vec<&str> = modules.map(String::as_str).chain(paths_in(words)).collect();
    present.sort_unstable();
    present.dedup();
    ModuleLinks::new_in(CommandNames { base, placed: &placed, present: &present }, directory).map(Some)
}

/// One call whose modules are in place.
struct Session<'a> {
    base: &'a Path,
    links: Option<ModuleLinks>,
    own: &'a OwnDirectories,
}

impl Session<'_> {
    /// A shard's or an object's path as the compiler is to see it.
    fn as_seen(&self, path: &Utf8Path) -> Utf8PathBuf {
        match &self.links {
            // A base that is not UTF-8 leaves a path that is found to be missing, and named, later.
            Some(links) => {
                Utf8PathBuf::from(links.absolute(path.as_std_path()).to_string_lossy().into_owned())
            }
            None => path.to_owned(),
        }
    }

    fn directory(&self) -> PathBuf {
        self.links.as_ref().map_or_else(|| self.base.to_owned(), ModuleLinks::directory)
    }

    fn run(
        &self,
        graph: &ActionGraph,
        compiler: &str,
        options: &PluginOptions,
        listener: &Listener,
    ) -> Result<Report, PerformError> {
        // Not the one that signals set: signals are the linker's.
        let cancel = Cancel::new().map_err(IoError::on("make", "a pipe"))?;
        let wanted: Vec<ActionId> = graph.actions().map(|(id, _)| id).collect();
        let spawner = ForkServer::with_library(host::fork_server_library(), LocalSpawner);
        let args = options.run_args();
        if wanted.len() > 1 {
            args.prewarm(&spawner, OsStr::new(compiler), wanted.len());
        }
        let assembly = Assembly::new(
            &args,
            args.cache.open(&cancel).map(Arc::new),
            &spawner,
            &cancel,
            stable_names::are_in(graph),
        )?;
        let directory = self.directory();
        let places = self.own.places(|path| self.as_seen(path));
        let repeat = |id| self.repeat(graph, id);
        let mut run_options = assembly.options(listener, None, options.jobs);
        run_options.directory = Some(&directory);
        run_options.places = Some(&places);
        run_options.repeat = Some(&repeat);
        // This process is the linker.
        run_options.beside = resident(std::process::id()).unwrap_or(0);
        Ok(run::run(graph, &wanted, &run_options, &NoHooks))
    }

    /// A shell command that compiles one module again.
    fn repeat(&self, graph: &ActionGraph, id: ActionId) -> String {
        let enter = match &self.links {
            Some(links) => {
                let inputs = graph.action(id).inputs().map(|input| graph.path(input).as_str());
                let words =
                    graph.action(id).prefix.map(|prefix| graph.prefix_words(prefix)).unwrap_or_default();
                let mut names: Vec<&str> = inputs.chain(paths_in(words)).collect();
                names.sort_unstable();
                names.dedup();
                links.shell_commands(names)
            }
            None => format!("cd {}", shell_quote(&self.base.to_string_lossy())),
        };
        format!("{enter} && {}", shell_line(graph.command(id)))
    }
}

fn tell(report: &Report, told: &mut Diagnostics) {
    let counts = report.counts();
    for (_, failure) in report.failures() {
        let mut text = failure_text(failure);
        text.push_str(&inside(failure));
        told.error(text);
    }
    if counts.not_started > 0 {
        told.error(format!(
            "distlto: {} of {} modules were not compiled after that\n  help: the option keep-going compiles the rest",
            counts.not_started,
            report.outcomes.len()
        ));
    }
    if !report.is_success() && !told.has_errors() {
        told.error("distlto: not every module was compiled");
    }
}

/// What the cause does not say: the message of a mistake of ours.
fn inside(failure: &Failure) -> String {
    match failure.cause.kind {
        FailureKind::Internal => panics::last().map(|text| format!("\n  {text}")).unwrap_or_default(),
        FailureKind::Failed | FailureKind::Interrupted => String::new(),
    }
}
