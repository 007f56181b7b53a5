//! `distlto-index`: asks a link command's linker for its modules, and writes shards and the action graph to a
//! directory.
//!
//! For build systems that run backends and the final link themselves. Everything is written only if it differs. With
//! a meta file it is Buck2's planner (`buck2_index`). Does not run the actions.

mod slices;
mod written;

use std::ffi::OsString;
use std::path::PathBuf;

use camino::Utf8PathBuf;
use clap::Args;
use distlto_planner::graph::ActionGraph;
use distlto_planner::link_command::GivenCommand;
use distlto_planner::recorded_flags::FlagsSource;
use distlto_planner::state::{Place, SUFFIX, VARIABLE, directory};
use distlto_planner::words::{Word, lossy, word_of};
use distlto_prepare::exit;
use distlto_prepare::message::say;
use distlto_prepare::private::Reach;

use crate::buck2_index::{self, Buck2Args};
use crate::link::error::LinkError;
use crate::link::options::LinkOptions;
use crate::link::{identity, state};
use crate::run_args::RunArgs;
use crate::serve::build::Task;
use crate::serve::collection::{CollectedLink, Collection};
use crate::serve::run_once;
use crate::tool::ToolRunner;
use crate::unoptimised::are_unoptimised;
use distlto_executor::cancel::Cancel;
use distlto_executor::execute::spawn::PLAIN;
use written::Index;

/// Ask a link command's linker for its modules: shards and the action graph
///
/// The linker performs its thin link and nothing else. The graph has a backend for each module that it loads, and the link
/// command itself as the last action, which takes the objects of these backends.
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help())]
pub struct IndexArgs {
    /// Write shards and the action graph to this directory [default: OUTPUT.distlto/index]
    ///
    /// A file is written only if its content differs, so a build system that compares contents re-runs only the
    /// backends whose shard changed.
    ///
    /// With --meta: the directory that the link command gives to the linker for its index.
    #[arg(long, value_name = "DIR")]
    pub index: Option<String>,
    /// Without --index: write to a folder of this directory, as distlto link --state does
    #[arg(long, value_name = "DIR", env = VARIABLE)]
    pub state: Option<String>,
    /// As Buck2's planner.
    #[command(flatten)]
    pub buck2: Buck2Args,
    /// Compile with this clang instead of the one that the link command names or implies
    #[arg(long, value_name = "CLANG")]
    pub compiler: Option<String>,
    /// Give every backend this argument besides those that the link line implies; repeatable
    #[arg(long = "backend-arg", value_name = "ARG", allow_hyphen_values = true)]
    pub backend_args: Vec<String>,
    /// Give backends the linker's shards as they are (see distlto link)
    #[arg(long, hide_short_help = true)]
    pub plain_shards: bool,
    /// Compile each module with the flags that a build has recorded
    ///
    /// Those of the link line do not count then. `kbuild` takes them from .X.o.cmd beside each object; any other word is the
    /// path of a compile_commands.json.
    #[arg(long, value_name = "kbuild|FILE")]
    pub flags_from: Option<FlagsSource>,
    /// Also cut the link into slices, as this file says
    ///
    /// A slice is a directory with all that some backends read, for a build system whose actions declare inputs before
    /// the link is planned; `distlto-opt --slice` runs it. The directory of --index is left empty.
    /// docs/design/slices.md describes the file.
    #[arg(long, value_name = "FILE", requires = "index", conflicts_with = "meta")]
    pub slices: Option<PathBuf>,
    /// The link command: a compiler driver or ld.lld with its arguments
    #[arg(last = true, required = true, value_name = "LINKER")]
    pub command: Vec<OsString>,
}

/// Asks the linker and writes its answer.
pub fn run(args: &IndexArgs, cancel: &Cancel) -> Result<u8, LinkError> {
    let command: Vec<Word> = args.command.iter().cloned().map(word_of).collect();
    let runner = ToolRunner { spawner: &PLAIN, cancel, directory: None };
    if let Some(request) = args.buck2.request(args.index.as_deref()) {
        return buck2_index::run(&request, &command, &runner, cancel);
    }
    let wanted = args.slices.as_deref().map(slices::Wanted::read).transpose()?;
    let given = GivenCommand::new(&command);
    if let Some(word) = given.expanded()?.iter().find(|word| std::str::from_utf8(word).is_err()) {
        return Err(LinkError::NotText { word: lossy(word) });
    }
    let output = state::guess_output(given.expanded()?).unwrap_or_else(|| "a.out".to_owned());
    let folder = args.state.as_deref().filter(|folder| args.index.is_none() && !folder.is_empty());
    let own = || {
        Place::Index
            .of(&folder.map_or_else(|| format!("{output}{SUFFIX}"), |folder| directory(&output, folder)))
    };
    let directory = args.index.clone().unwrap_or_else(own);
    let reach = if folder.is_some() { Reach::Whole } else { Reach::Last };
    let held = state::LinkState::open(&directory, reach)?;
    // A slice has a module on disk once, however many names it has.
    let collection = Collection::new(&directory).with_copies(wanted.is_none());
    let asked = match ask(&command, &args.options(), collection, cancel)? {
        Asked::Link(asked) => asked,
        Asked::Failed(code) => return Ok(code),
    };
    note_unoptimised(&asked.link);
    // The graph's commands hold the words themselves: a response file may be gone when they run.
    let index = Index { args, command: given.expanded()?, directory: &directory, runner: &runner };
    let graph = index.write(&asked)?;
    if let Some(wanted) = wanted {
        drop(held);
        wanted.write(&graph, &directory)?;
    }
    Ok(0)
}

/// Prints a note if no module could import anything.
fn note_unoptimised(link: &CollectedLink) {
    let modules = &link.modules;
    let imports = modules.iter().any(|(_, module)| !module.imports.is_empty());
    if !imports && are_unoptimised(modules.iter().map(|(_, module)| module.file.as_str())) {
        say(format_args!(
            "distlto: {}: {} modules import nothing, because -O0 makes every function noinline; compile with -O2 (Bazel: -c opt)",
            link.command.line.output(),
            modules.len()
        ));
    }
}

impl IndexArgs {
    fn options(&self) -> LinkOptions {
        LinkOptions {
            run: RunArgs { quiet: true, ..RunArgs::default() },
            compiler: self.compiler.clone(),
            backend_args: self.backend_args.clone(),
            plain_shards: self.plain_shards,
            flags_from: self.flags_from.clone(),
            ..LinkOptions::default()
        }
    }
}

/// How asking a command's linker ended.
pub enum Asked {
    /// With its modules.
    Link(Box<AskedLink>),
    /// The command failed and reported its error.
    Failed(u8),
}

/// A link and its inputs.
pub struct AskedLink {
    /// The link.
    pub link: CollectedLink,
    /// The files that its processes read.
    pub inputs: Vec<Utf8PathBuf>,
}

/// Runs a command, and asks its one linker for its modules.
pub fn ask(
    command: &[Word],
    options: &LinkOptions,
    collection: Collection,
    cancel: &Cancel,
) -> Result<Asked, LinkError> {
    let ended = run_once(command, options, cancel, Task::Collect(&collection))?;
    let (mut links, alone) = collection.into_parts();
    if let Some(error) = ended.seen.error {
        return Err(error);
    }
    if cancel.is_cancelled() {
        return Err(LinkError::Interrupted { exit_code: cancel.exit_code() });
    }
    if links.len() > 1 {
        return Err(LinkError::ManyLinks { count: links.len() });
    }
    let Some(link) = links.pop() else {
        return match (alone.into_iter().next(), ended.code) {
            (Some(why), _) => Err(LinkError::LeftAlone { linker: lossy(&command[0]), why }),
            (None, 0) => Err(LinkError::NothingToIndex),
            (None, code) => Ok(Asked::Failed(code)),
        };
    };
    if ended.code != 0 {
        return Ok(Asked::Failed(ended.code));
    }
    if link.is_elsewhere {
        return Err(LinkError::Elsewhere { output: link.command.line.output().to_owned() });
    }
    let mut inputs = ended.files_read()?;
    inputs.extend(link.records.iter().cloned());
    // With another compiler the thin link writes another `toolchain`, which the backends read.
    let compiler = identity::located(&link.settings.compiler);
    inputs.extend(compiler.and_then(|path| Utf8PathBuf::from_path_buf(path).ok()));
    Ok(Asked::Link(Box::new(AskedLink { link, inputs })))
}

/// The graph of a link that is not written anywhere.
pub fn graph_of(asked: &AskedLink, command: &[Word], directory: &str) -> Result<ActionGraph, LinkError> {
    written::parts(asked, command, directory, None)?.to_graph().map_err(LinkError::from)
}
