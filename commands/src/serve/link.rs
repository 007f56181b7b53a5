//! The context of one link: its linker's process and command line, the settings of its backends, and its record.
//!
//! Made when the linker is known, and unchanged until the link ends. Does not answer the linker.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use distlto_executor::cache::store::Cache;
use distlto_executor::execute::cc1::Cc1Commands;
use distlto_executor::import_step::ImportSteps;
use distlto_planner::backend_flags::BackendFlags;
use distlto_planner::digests::FileDigests;
use distlto_planner::keep;
use distlto_planner::link_command::LinkCommand;
use distlto_prepare::io_error::IoError;
use distlto_prepare::message::say;
use distlto_record::progress::text::counted;
use distlto_record::progress::{Progress, ProgressEvent, Reporter};

use super::build::Build;
use super::key_parts::Identity;
use super::module_record::PreviousModules;
use super::objects::Objects;
use super::observed::Observed;
use super::previous_program::PreviousProgram;
use super::process::Process;
use super::request::LinkRequest;
use super::settings::CompileSettings;
use super::whole_link::{NewLink, WholeLink};
use crate::link::error::LinkError;
use crate::link::identity;
use crate::link::state::LinkState;
use crate::run_args::LinkServers;

/// Why a linker begins anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anew<'w> {
    /// Locals cannot have stable names, for this reason.
    Nameless(&'w str),
    /// It has opened a damaged object.
    Damaged,
}

/// One link.
pub struct Link<'b> {
    pub build: &'b Build<'b>,
    pub process: Arc<Process>,
    /// The linker's notes.
    pub notes: Option<File>,
    pub command: LinkCommand,
    pub settings: CompileSettings,
    /// Whether the names of promoted locals come from their sources.
    pub stable_names: bool,
    /// Where the linker runs, if that is another directory than this process's.
    pub directory: Option<PathBuf>,
    /// The folder for the files of this link's linker.
    pub cache: PathBuf,
    pub reporter: Arc<Reporter>,
    pub servers: LinkServers<'b>,
    pub digests: FileDigests,
    pub identity: Identity,
    /// The modules of the last link.
    pub earlier: PreviousModules,
    pub cc1_commands: Cc1Commands,
    pub import_steps: ImportSteps,
    /// The compiler for import steps and its flags, once a step needs them; `None` if they cannot be told.
    pub importer: OnceLock<Option<(String, BackendFlags)>>,
    pub begun: Instant,
    /// When its linker was known by content, and could begin.
    pub opened: Instant,
    /// The program from before the link; none in a dry run.
    pub previous: Option<PreviousProgram>,
    state: LinkState,
    /// The state that the last link left: another directory than that of a dry run.
    earlier_state: Option<LinkState>,
    /// The link as caches may have it, and what they are to have of this one.
    whole: Option<WholeLink>,
    new: OnceLock<Result<NewLink, String>>,
    is_replaced: OnceLock<bool>,
}

/// The parts of a link that are known before its record is opened.
pub struct LinkStart<'b> {
    pub process: Arc<Process>,
    pub notes: Option<File>,
    pub request: LinkRequest,
    pub cache: PathBuf,
    pub servers: LinkServers<'b>,
    pub whole: Option<WholeLink>,
    pub begun: Instant,
}

impl<'b> Link<'b> {
    /// Opens a link with this state. In a dry run that is a temporary one, beside the state of the last link. `reporter` is
    /// the link's own in a build of many.
    pub fn open(
        build: &'b Build<'b>,
        start: LinkStart<'b>,
        (state, earlier_state): (LinkState, Option<LinkState>),
        reporter: Arc<Reporter>,
    ) -> Result<Self, LinkError> {
        let LinkStart { process, notes, request, cache, servers, whole, begun } = start;
        let LinkRequest { command, settings, stable_names, .. } = request;
        let directory = process.elsewhere();
        let root = directory.as_deref().unwrap_or(Path::new(""));
        let digests = FileDigests::new(root);
        let note = toolchain_note(build, &command, &settings, state.directory())?;
        let identity = settings.identity(&note, root, &digests)?;
        let earlier = PreviousModules::of(earlier_state.as_ref().unwrap_or(&state).directory());
        Ok(Self {
            build,
            process,
            notes,
            command,
            settings,
            stable_names,
            directory,
            cache,
            reporter,
            servers,
            digests,
            identity,
            earlier,
            cc1_commands: Cc1Commands::default(),
            import_steps: ImportSteps::default(),
            importer: OnceLock::new(),
            begun,
            opened: Instant::now(),
            previous: None,
            state,
            earlier_state,
            whole,
            new: OnceLock::new(),
            is_replaced: OnceLock::new(),
        })
    }

    /// The directory of its state.
    pub fn state(&self) -> &str {
        self.state.directory()
    }

    /// The directory of the state that the last link left.
    pub fn earlier_state(&self) -> &str {
        self.earlier_state.as_ref().unwrap_or(&self.state).directory()
    }

    /// Its state, to be released.
    pub fn into_state(self) -> LinkState {
        self.state
    }

    /// Whether it is the link with this state directory.
    pub fn is_for(&self, directory: &str) -> bool {
        self.state.is_for(directory)
    }

    /// Where the linker runs, as this process names it; empty for this process's directory.
    pub fn root(&self) -> &Path {
        self.directory.as_deref().unwrap_or(Path::new(""))
    }

    /// A path of this link as this process names it.
    pub fn here(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    /// The same in the linker's own directory, as an absolute path.
    pub fn absolute_root(&self) -> PathBuf {
        std::path::absolute(self.directory.as_deref().unwrap_or(Path::new("."))).unwrap_or_default()
    }

    /// Its program, as this process names it.
    pub fn output(&self) -> PathBuf {
        self.here(self.command.line.output())
    }

    /// The objects in the store.
    pub fn objects(&self) -> Objects<'_> {
        let directory = self.directory.as_deref().unwrap_or(Path::new("."));
        Objects { store: self.build.store().map(|store| &**store), directory }
    }

    /// Whether caches beside the store may have objects of modules that the linker compiles.
    pub fn asks_caches(&self) -> bool {
        let is_of_here = self.settings.linker.as_ref().is_some_and(|linker| linker.is_for_this_processor());
        self.build.options.asks_caches() && !self.settings.is_described && !is_of_here
    }

    /// Removes the linker's folder, with objects that the linker compiled itself.
    pub fn remove_cache(&self) {
        // What stays goes with the service.
        let _ = fs::remove_dir_all(&self.cache);
    }

    /// Whether the linker has put another program in the place of the earlier one.
    pub fn is_replaced(&self) -> bool {
        let is_replaced = || self.previous.as_ref().is_some_and(PreviousProgram::is_replaced);
        *self.is_replaced.get_or_init(is_replaced)
    }

    /// Puts the earlier program back after a failure.
    pub fn settle(&mut self, succeeded: bool, observed: &[Observed]) -> Result<(), IoError> {
        self.previous.take().map_or(Ok(()), |previous| previous.settle(succeeded, observed))
    }

    /// The linker has succeeded and waits for its end. Its caller may remove or rename the program from then on.
    pub fn succeeded(&self) {
        self.is_replaced();
        if let (Some(whole), Some(notes)) = (&self.whole, &self.notes) {
            let store = self.build.store().map(|store| store.directory());
            let own = [self.build.listener().folder(), &self.cache, Path::new(self.state())];
            let own: Vec<PathBuf> = own.into_iter().chain(store).map(Path::to_owned).collect();
            self.new.get_or_init(|| whole.ended(notes, &own, self.state()));
        }
    }

    /// The link as a cache is to have it, or why none can have it; once the linker has succeeded.
    pub fn take_new(&mut self) -> Option<Result<NewLink, String>> {
        self.new.take()
    }

    /// Prepares the link that the linker begins in place of this one. It may ask again before this has ended.
    pub fn begin_anew(&self, why: Anew<'_>) {
        let mut seen = self.build.seen();
        match why {
            Anew::Nameless(why) => {
                let output = self.process.directory.join(self.command.line.output());
                seen.nameless.insert(output, why.to_owned());
            }
            Anew::Damaged => drop(seen.damaged.insert(self.process.id)),
        }
    }

    /// Whether its linker has opened a damaged object before it began anew.
    pub fn was_damaged(&self) -> bool {
        self.build.seen().damaged.contains(&self.process.id)
    }

    /// Notes something.
    pub fn note(&self, text: &str) {
        self.reporter.report(ProgressEvent::Noted(text));
    }

    /// Prints the numbers of modules, imports and outdated backends, with `-v`.
    pub fn summarise(&self, modules: usize, imports: usize, stale: usize) {
        let args = &self.build.options.run;
        if args.verbose == 0 || args.json {
            return;
        }
        // Those that a cache had did not run.
        say(format_args!(
            "distlto: {}: {}, {}; {stale} of {} out of date",
            self.command.line.output(),
            counted(modules, "module"),
            counted(imports, "import"),
            if modules == 1 { "1 backend was".to_owned() } else { format!("{modules} backends were") },
        ));
    }
}

/// Writes a note of the program that compiles to the state, and returns what distinguishes that program.
fn toolchain_note(
    build: &Build<'_>,
    command: &LinkCommand,
    settings: &CompileSettings,
    state: &str,
) -> Result<Vec<u8>, LinkError> {
    let lines = match &settings.linker {
        Some(linker) => linker.libraries.iter().map(|library| identity::file_line(library)).collect(),
        None => identity::of(&settings.compiler, command.installed.as_deref(), &build.tools()),
    };
    keep::toolchain(state, settings.program(), &lines)?;
    Ok(match &settings.linker {
        Some(linker) => linker.content(build.store().map(|store| Cache::directory(store)))?.into_bytes(),
        None => {
            let note = keep::toolchain_place(state);
            fs::read(&note).map_err(IoError::on("read", &note))?
        }
    })
}
