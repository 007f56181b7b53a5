//! `distlto-index`: the thin link of a link command, with its shards, plans and action graph in a directory.
//!
//! For build systems that run backends and the final link themselves. Everything is written only if it differs.
//! With a meta file it is Buck2's planner (`buck2_index`). Knows nothing of running the actions.

mod slices;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use distlto_planner::graph::json;
use distlto_planner::index::{self, Planned};
use distlto_planner::link_command::{self, GivenCommand, Resolved};
use distlto_planner::plan_files;
use distlto_planner::recorded_flags::FlagsSource;
use distlto_planner::runner::ToolError;
use distlto_planner::state::Place;
use distlto_planner::state::VARIABLE;
use distlto_planner::words::{Word, word_of};
use distlto_prepare::exit;
use distlto_prepare::message::show;
use distlto_prepare::store::Store;
use distlto_prepare::warning::warn;
use distlto_prepare::write::write_if_changed;

use crate::buck2_index::{self, Buck2Args};
use crate::link::{LinkError, identity, state, tool_failure};
use crate::linker_flags;
use crate::tool::ToolRunner;
use distlto_executor::cancel::Cancel;
use distlto_executor::execute::spawn::LocalSpawner;

/// Run the thin link of a link command: shards, plans and the action graph
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help())]
pub struct IndexArgs {
    /// Write shards, plans and the action graph to this directory [default: OUTPUT.distlto]
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
    /// Compile each module with the flags that a build has recorded
    ///
    /// Those of the link line do not count then. `kbuild` takes them from .X.o.cmd beside each object; any other word is the
    /// path of a compile_commands.json.
    #[arg(long, value_name = "kbuild|FILE")]
    pub flags_from: Option<FlagsSource>,
    /// Keep unpacked archive members in this store, and take them from there
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub store: Option<PathBuf>,
    /// Also cut the link into slices, as this file says
    ///
    /// A slice is a directory with all that some backends read, for a build system whose actions declare inputs before
    /// the link is planned; `distlto-opt --slice` runs it. Of the directory of --index only what the final link reads
    /// is left. docs/slices.md describes the file.
    #[arg(long, value_name = "FILE", requires = "index", conflicts_with = "meta")]
    pub slices: Option<PathBuf>,
    /// The link command: a compiler driver or ld.lld with its arguments
    #[arg(last = true, required = true, value_name = "LINKER")]
    pub command: Vec<OsString>,
}

/// Runs the thin link and writes what it decided.
pub fn run(args: &IndexArgs, cancel: &Cancel) -> Result<u8, LinkError> {
    let command: Vec<Word> = args.command.iter().cloned().map(word_of).collect();
    let runner = ToolRunner { spawner: &LocalSpawner, cancel, directory: None };
    if let Some(request) = args.buck2.request(args.index.as_deref()) {
        return buck2_index::run(&request, &command, &runner, cancel);
    }
    let link = match link_command::resolve(&GivenCommand::new(&command), &runner)? {
        Resolved::Link(link) => link,
        Resolved::Other { linker, words } => {
            return match (linker, index::bitcode_among(&words)) {
                (Some(linker), Some(input)) => Err(ToolError::NotLld { linker, input }.into()),
                _ => Err(LinkError::NothingToIndex),
            };
        }
    };
    let output = link.line.output();
    let directory = args.index.clone().unwrap_or_else(|| state::directory(output, args.state.as_deref()));
    let folder = args.state.as_deref().filter(|_| args.index.is_none());
    let held = state::LinkState::open(&directory, folder)?;
    let wanted = args.slices.as_deref().map(slices::Wanted::read).transpose()?;
    let store = Store::of_run(args.store.as_deref())?;
    let planned = index::plan(index::PlanRequest {
        link: &link,
        state: &directory,
        compiler: args.compiler.as_deref(),
        backend_args: &args.backend_args,
        flags_from: args.flags_from.as_ref(),
        store: store.as_ref(),
        runner: &runner,
        preview: None,
        linker_flags: Some(&|arguments| linker_flags::ask(&link.linker, arguments, &runner)),
        identity: Some(&|compiler| identity::of(compiler, &link.driver)),
    });
    let planned = match planned {
        Ok(Planned::Link(planned, pending)) => {
            pending.finish(&planned.plan)?;
            planned
        }
        Ok(Planned::Unchanged) => {
            held.discard()?;
            return match wanted {
                Some(wanted) => wanted.of_native_link(&link, &directory).map(|()| 0),
                None => Err(LinkError::NothingToIndex),
            };
        }
        Err(error) => return tool_failure(error.into(), cancel),
    };
    for option in &planned.not_done {
        warn(format_args!("{option} is ignored: a distributed link writes objects only"));
    }
    show(&planned.warnings);
    if let Some(wanted) = wanted {
        drop(held);
        wanted.write(planned.plan, &directory)?;
        return Ok(0);
    }
    let graph = planned.plan.to_graph()?;
    write_if_changed(&Place::Graph.path(&directory), &json::to_bytes(&graph))?;
    plan_files::write(&directory, &planned.plan)?;
    Ok(0)
}
