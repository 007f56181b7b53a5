//! The command line of `distlto link`. Its options are those of every way to link, and the keys of configuration files.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap::builder::BoolishValueParser;
use distlto_planner::recorded_flags::FlagsSource;
use distlto_planner::state::VARIABLE;
use distlto_planner::words::{Word, word_of};
use distlto_prepare::exit;

use super::options::LinkOptions;
use crate::run_args::RunArgs;

/// Run a link command, and make the backend compilations of its ThinLTO links
///
/// The command runs as it is. Its ld.lld (15 or later, on Linux with glibc) asks for each module's object, which is a kept one or is
/// compiled, many at once. A linker that cannot ask links by itself. Objects and the record of the link are kept in the store: a second run with
/// nothing changed runs no backend and no linker, and an edit re-runs the backends whose module, imports or flags changed.
/// Backends share the job slots of a make that calls this program. The exit code is the command's own, but where a backend
/// failed.
#[derive(Debug, Args)]
#[command(after_help = exit::help(), args_override_self = true)]
pub struct LinkArgs {
    /// How the backends are run.
    #[command(flatten)]
    pub run: RunArgs,
    /// Compile with this clang instead of the one that the link command names or implies
    #[arg(long, value_name = "CLANG", env = "DISTLTO_COMPILER", hide_env = true)]
    pub compiler: Option<String>,
    /// Give every backend this argument besides those that the link line implies; repeatable
    ///
    /// The variable holds one argument.
    #[arg(
        long = "backend-arg",
        value_name = "ARG",
        allow_hyphen_values = true,
        env = "DISTLTO_BACKEND_ARG",
        hide_env = true
    )]
    pub backend_args: Vec<String>,
    /// Call locals that other modules import as the linker does by default: after their module's hash
    ///
    /// Without this option an ELF link by LLVM 16 or later calls them after their source file, as the linker does with
    /// `-mllvm -use-source-filename-for-promoted-locals`: then an edit changes the objects of those modules alone that import the
    /// edited function. A link in which two modules have one source name has the linker's default names anyway.
    /// See docs/why.md.
    #[arg(long, env = "DISTLTO_EXACT_NAMES", value_parser = BoolishValueParser::new(), hide_short_help = true)]
    pub exact_names: bool,
    /// Give backends the linker's shards as they are
    ///
    /// The linker's shards do not mark which symbols are local to the link. By default distlto adds the marks, so that objects
    /// equal those of the linker alone, byte for byte. With this option they equal those of lld's DTLTO.
    #[arg(long, env = "DISTLTO_PLAIN_SHARDS", value_parser = BoolishValueParser::new(), hide_short_help = true)]
    pub plain_shards: bool,
    /// Compile each module with the flags that a build has recorded
    ///
    /// Those of the link line do not count then. `kbuild` takes them from .X.o.cmd beside each object; any other word is the
    /// path of a compile_commands.json.
    #[arg(long, value_name = "kbuild|FILE", env = "DISTLTO_FLAGS_FROM", hide_env = true)]
    pub flags_from: Option<FlagsSource>,
    /// Keep the record of the link below this directory
    ///
    /// For sandboxes, where the home folder is temporary. Objects stay in the store. Any number of links may share the directory: the folder
    /// is named after the output and its place, as in prog-0123456789ab. `distlto inspect --state DIR OUTPUT` finds it.
    #[arg(long, value_name = "DIR", env = VARIABLE)]
    pub state: Option<String>,
    /// Take the objects that the backends of this graph have made: its last action
    ///
    /// Each module's shard is compared with the one that its object was made from; a difference is an error that names the module.
    /// Nothing is compiled, and no state, store or server is used. docs/action-graph.md describes the graph.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dry_run", "exact_names", "flags_from"])]
    pub graph: Option<PathBuf>,
    /// Set no flags for cargo
    ///
    /// By default `distlto cargo build --release` has rustc leave LTO to the linker, unless you have set a linker or LTO yourself.
    /// See docs/recipes.md.
    #[arg(long, env = "DISTLTO_PLAIN", value_parser = BoolishValueParser::new(), hide_short_help = true)]
    pub plain: bool,
    /// Say which backends would run, why, and for how long
    ///
    /// The thin link is performed, and nothing else. Nothing is written.
    #[arg(long)]
    pub dry_run: bool,
    /// Take whole links from the remote cache, and put them there
    ///
    /// A linker that would read the same as one elsewhere does not run: its program and its other files come from the cache.
    /// Contents, places where nothing is and variables count; relative paths may lie anywhere. A link that prints something, or
    /// makes other files each time, is not shared. For ELF and WebAssembly. See docs/caches.md.
    #[arg(long, env = "DISTLTO_SHARE_LINKS", value_parser = BoolishValueParser::new(), hide_short_help = true)]
    pub share_links: bool,
    /// Fail a link with bitcode if its linker does not ask for its objects
    ///
    /// The error says why, and the earlier program stays. A build in which no link has bitcode fails too. Without this option
    /// the linker links by itself.
    #[arg(long, env = "DISTLTO_REQUIRE", value_parser = BoolishValueParser::new(), hide_short_help = true)]
    pub require: bool,
    /// The link command: a compiler driver or ld.lld with its arguments
    #[arg(last = true, required = true, value_name = "LINKER")]
    pub command: Vec<OsString>,
}

impl LinkArgs {
    /// The link command's words.
    pub fn words(&self) -> Vec<Word> {
        self.command.iter().cloned().map(word_of).collect()
    }

    /// How to link.
    pub fn options(&self) -> LinkOptions {
        LinkOptions {
            run: self.run.clone(),
            compiler: self.compiler.clone(),
            backend_args: self.backend_args.clone(),
            stable_names: !self.exact_names,
            plain_shards: self.plain_shards,
            state: self.state.clone(),
            flags_from: self.flags_from.clone(),
            graph: self.graph.clone(),
            plain: self.plain,
            is_short_form: false,
            dry_run: self.dry_run,
            share_links: self.share_links,
            require: self.require,
        }
    }
}
