//! What planning a link takes and gives.

use std::path::PathBuf;

use distlto_prepare::store::Store;

use crate::backend_flags::linker_flags::LinkerFlags;
use crate::inputs::LinkInputs;
use crate::link_command::LinkCommand;
use crate::link_line::Argument;
use crate::link_plan::LinkPlan;
use crate::pending::Pending;
use crate::recorded_flags::FlagsSource;
use crate::runner::Runner;

/// How a link is to be planned.
#[derive(Clone, Copy)]
pub struct PlanRequest<'a> {
    /// The link, as `link_command::resolve` found it.
    pub link: &'a LinkCommand,
    /// The state directory.
    pub state: &'a str,
    /// The clang for the backends, instead of the one that the command names or implies.
    pub compiler: Option<&'a str>,
    /// Arguments for every backend besides those that the link line implies.
    pub backend_args: &'a [String],
    /// Where a build has recorded each object's flags, which then count instead of the link line's.
    pub flags_from: Option<&'a FlagsSource>,
    /// Shared storage for unpacked archive members.
    pub store: Option<&'a Store>,
    /// Runs tools.
    pub runner: &'a dyn Runner,
    /// Is told of one backend before the thin link runs.
    pub preview: Option<&'a dyn Fn(Preview)>,
    /// Says what the linker tells its backends on such a line; `None` in either case for what lld 22 tells them.
    pub linker_flags: Option<&'a AskLinker<'a>>,
    /// Says of a compiler what besides its own file decides what it does, a line each.
    pub identity: Option<&'a Identify<'a>>,
}

/// What decides what a compiler does besides its own file, a line each.
pub type Identify<'a> = dyn Fn(&str) -> Vec<String> + 'a;

/// What a linker tells its backends on a line with these arguments, if it says so.
pub type AskLinker<'a> = dyn Fn(&[Argument]) -> Option<LinkerFlags> + 'a;

/// A backend as the plan will have it, but for what the thin link says.
#[derive(Debug)]
pub struct Preview {
    /// The command.
    pub command: Vec<String>,
    /// Its module.
    pub module: String,
    /// Where its shard will lie.
    pub shard: String,
    /// Where its object will lie.
    pub object: String,
    /// How many modules may be compiled.
    pub modules: usize,
}

/// What planning a link gave.
#[derive(Debug)]
pub enum Planned {
    /// A distributed link. Whoever compiles keeps each shard before its backend starts, and then the rest.
    Link(Box<PlannedLink>, Pending),
    /// No input is ThinLTO bitcode, or the line asks for output that only the linker itself writes: it is to be
    /// run as it is.
    Unchanged,
}

/// A distributed link, planned.
#[derive(Debug)]
pub struct PlannedLink {
    /// What is to be done.
    pub plan: LinkPlan,
    /// Options that ask for output which a distributed link does not write.
    pub not_done: Vec<String>,
    /// What the linker printed in the thin link.
    pub warnings: Vec<u8>,
    /// Places where a library was looked for in vain, sorted.
    pub absent: Vec<PathBuf>,
    /// How many backends the link line asks to run at once.
    pub jobs: Option<usize>,
    /// Whether the program's native objects and modules stand in another order than in a link of one step.
    pub order_differs: bool,
}

/// A link whose sources are compiled, whose inputs are known and whose archives are unpacked.
#[derive(Debug)]
pub struct Prepared {
    /// The link line.
    pub arguments: Vec<Argument>,
    /// What its inputs are.
    pub inputs: LinkInputs,
    /// The clang for the backends.
    pub compiler: String,
    /// The first part of the modules' target triple.
    pub architecture: String,
    /// How many backends the link line asks to run at once.
    pub jobs: Option<usize>,
}
