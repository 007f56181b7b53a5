//! The kind of a process: whether it is a linker that can ask for its objects, and how its backends are compiled.
//!
//! Does not answer questions.

use std::path::Path;

use distlto_exec::kind::{self, Kind};
use distlto_planner::backend_flags::raw::gather;
use distlto_planner::backend_flags::stable_names::{ARGUMENTS, alike, is_of_names, spelled};
use distlto_planner::backend_flags::{self, BackendFlags, UNUSED};
use distlto_planner::invocation::{ProgramKind, mode_of, program};
use distlto_planner::link_command::{LinkCommand, compiler_of};
use distlto_planner::link_line::{Argument, last_value, options};
use distlto_planner::link_options;
use distlto_planner::linker::code_words::code_words;
use distlto_planner::linker::flavour::Flavour;
use distlto_planner::linker::help::Help;
use distlto_planner::options::Code;
use distlto_planner::recorded_flags::FlagRecords;
use distlto_planner::search_path::{program_file, versions_of};
use distlto_planner::words::lossy;
use distlto_prepare::io_error::IoError;
use distlto_record::progress::{Progress, ProgressEvent, Reporter};

use super::build::{Build, Task};
use super::command;
use super::inputs;
use super::left_alone;
use super::linkers::{self, LinkerKind};
use super::module_record::PreviousModules;
use super::modules::ModuleFiles;
use super::process::Process;
use super::settings::{CompileSettings, LinkerCode};
use crate::link::error::LinkError;
use crate::linker_flags;

/// The kind of a process.
pub enum ProcessKind {
    /// No linker.
    Other,
    /// A linker of native objects that cannot ask.
    Native,
    /// A linker that links by itself, for this reason.
    Alone(String),
    /// A linker that is to ask for its objects.
    Link(Box<LinkRequest>),
}

/// The link of a linker that is to ask for its objects.
pub struct LinkRequest {
    pub command: LinkCommand,
    pub settings: CompileSettings,
    /// Whether the names of promoted locals come from their sources.
    pub stable_names: bool,
    /// Why they cannot, where the user would have them so.
    pub why_not_stable: Option<String>,
}

impl LinkRequest {
    /// Records why locals have the linker's default names.
    pub fn record_names(&self, reporter: &Reporter) {
        let mut note = None;
        reporter.describe(|run| {
            run.stable_names = self.stable_names;
            run.default_names.clone_from(&self.why_not_stable);
            note = run.default_names_note();
        });
        if let Some(note) = note {
            let note = format!("{}: {note}", self.command.line.output());
            reporter.report(ProgressEvent::Noted(&note));
        }
    }
}

/// The name by which drivers other than clang look for lld.
const LLD: &str = "ld.lld";

/// A linker whose link can be served.
struct Linker<'l> {
    build: &'l Build<'l>,
    process: &'l Process,
    command: &'l LinkCommand,
    flavour: Option<Flavour>,
    /// Whether it can write its symbol resolution.
    resolves: bool,
    /// Whether it can name locals after their sources.
    has_names: bool,
}

impl Build<'_> {
    /// Returns the kind of a process.
    pub fn kind_of(&self, process: &Process) -> Result<ProcessKind, LinkError> {
        let kind = self.linkers.linker_of(process).map_err(IoError::on("look at", &process.program))?;
        match kind {
            LinkerKind::None => Ok(foreign(process)),
            LinkerKind::Other(version) => {
                Ok(ProcessKind::Alone(format!("{version} has no option that makes it ask for this format")))
            }
            LinkerKind::Elf { resolves, version } => {
                self.request(process, (resolves, linkers::has_stable_names(&version)), None)
            }
            LinkerKind::Flavoured(flavour, help) => {
                self.request(process, (flavour.resolving().is_some(), true), Some((flavour, &help)))
            }
        }
    }

    fn request(
        &self,
        process: &Process,
        (resolves, has_names): (bool, bool),
        flavoured: Option<(Flavour, &Help)>,
    ) -> Result<ProcessKind, LinkError> {
        let mut command = match command::link_of(process, self.command, flavoured) {
            Ok(link) => link,
            // The linker reports the error.
            Err(error) => return Ok(ProcessKind::Alone(error.to_string())),
        };
        let mut flavour = flavoured.map(|(flavour, _)| flavour);
        if flavour.is_none() && link_options::is_for_windows(command.line.arguments()) {
            let line = linkers::coff_line(process).map_err(IoError::on("ask", &process.program))?;
            command.line = match line {
                Some(Ok(line)) => line,
                Some(Err(error)) => return Ok(ProcessKind::Alone(error.to_string())),
                None => return Ok(ProcessKind::Alone("the linker for Windows has no DTLTO".to_owned())),
            };
            flavour = Some(Flavour::MinGw);
        }
        if let Some(why) = left_alone::why(self, process, &command, flavour)? {
            return Ok(ProcessKind::Alone(why));
        }
        let linker = Linker { build: self, process, command: &command, flavour, resolves, has_names };
        let (stable_names, why_not_stable) = linker.names();
        let found = if matches!(self.task, Task::Graph(_)) {
            // Nothing is compiled, and the promoted locals of finished objects have names already.
            Ok((linker.base_settings(), false, None))
        } else if linker.compiles() && !self.options.has_engine() {
            linker.compiling(stable_names).map(|settings| (settings, stable_names, why_not_stable))
        } else {
            linker.described(stable_names, why_not_stable)?
        };
        Ok(match found {
            Ok((settings, stable_names, why_not_stable)) => {
                ProcessKind::Link(Box::new(LinkRequest { command, settings, stable_names, why_not_stable }))
            }
            Err(why) => ProcessKind::Alone(why),
        })
    }

    /// The flags of an ELF link's backends, which are asked of its linker; or why they cannot be told.
    fn backend_flags(&self, link: &LinkCommand, extra: &[String]) -> Result<BackendFlags, String> {
        let arguments = link.line.arguments();
        let architecture = backend_flags::architecture(arguments);
        let said = linker_flags::ask(&link.linker, arguments, &self.tools());
        let flags = backend_flags::of_link_line(arguments, architecture, said.as_ref(), extra);
        flags.map_err(|error| error.to_string())
    }

    /// The compiler that performs import steps, with the flags of the link's backends; `None` if there is none.
    pub fn importer(&self, link: &LinkCommand) -> Option<(String, BackendFlags)> {
        let named = last_value(link.line.arguments(), "thinlto-remote-compiler");
        let compiler = compiler_of(link, named).ok()?;
        let mut extra = command::compiler_arguments(link.line.arguments());
        extra.extend(ARGUMENTS.map(str::to_owned));
        let flags = self.backend_flags(link, &extra).ok()?;
        flags.not_done.is_empty().then_some((compiler, flags))
    }
}

/// The settings of a link, whether it has stable names, and why not; or why the link is the linker's.
type Found = Result<(CompileSettings, bool, Option<String>), String>;

impl Linker<'_> {
    fn arguments(&self) -> &[Argument] {
        self.command.line.arguments()
    }

    /// Whether it calls a distributor.
    fn is_distributed(&self) -> bool {
        self.flavour.is_some_and(Flavour::is_distributed)
    }

    /// Whether shards are completed. For Windows a plain shard may make a program that crashes.
    fn is_completed(&self) -> bool {
        self.is_distributed() || self.resolves && !self.build.options.plain_shards
    }

    fn base_settings(&self) -> CompileSettings {
        let flavour = self.flavour;
        CompileSettings {
            flavour,
            architecture: flavour.and_then(|flavour| flavour.slice(self.arguments())).map(str::to_owned),
            is_completed: self.is_completed(),
            jobs: link_options::jobs_of(self.arguments()),
            ..CompileSettings::default()
        }
    }

    /// Whether it compiles its modules on this machine. It cannot where the compiler or its flags are the user's, and where
    /// split debug information lies beside kept objects.
    fn compiles(&self) -> bool {
        let options = self.build.options;
        let splits = gather(self.arguments()).last(Code::SplitDebug).is_some();
        let has_compiler = options.compiler.is_some() || !options.backend_args.is_empty();
        let is_described = matches!(self.build.task, Task::Collect(_)) || options.flags_from.is_some();
        // One that takes no preloaded library has not begun.
        let has_begun = !self.process.mapped.is_empty();
        has_begun && !(self.is_distributed() || splits || has_compiler || is_described)
    }

    /// The linker as the program that compiles.
    fn code(&self, stable_names: bool) -> LinkerCode {
        let names = ARGUMENTS.iter().filter(|_| stable_names).map(|word| (*word).to_owned());
        LinkerCode {
            program: self.process.program.to_string_lossy().into_owned(),
            libraries: self.process.libraries(),
            words: code_words(self.arguments()).into_iter().chain(names).collect(),
        }
    }

    /// The settings of a linker that compiles its modules itself.
    fn compiling(&self, stable_names: bool) -> Result<CompileSettings, String> {
        if let Some(option) = backend_flags::reported(self.arguments()) {
            return Err(not_done(&option));
        }
        let linker = self.code(stable_names);
        let shows_imports = stable_names && self.is_completed();
        Ok(CompileSettings {
            compiler: linker.program.clone(),
            linker: Some(linker),
            is_completed: shows_imports,
            shows_imports,
            ..self.base_settings()
        })
    }

    /// The settings of a link whose modules are described for a compiler.
    fn described(&self, stable_names: bool, why_not_stable: Option<String>) -> Result<Found, LinkError> {
        let options = self.build.options;
        let arguments = self.arguments();
        let named = last_value(arguments, "thinlto-remote-compiler");
        let compiler = compiler_of(self.command, options.compiler.as_deref().or(named))?;
        let is_known = !stable_names || linkers::compiler_has_stable_names(&compiler);
        let why_not_stable =
            if is_known { why_not_stable } else { Some(format!("{compiler} knows no {}", ARGUMENTS[1])) };
        let stable_names = stable_names && is_known;
        let mut extra = command::compiler_arguments(arguments);
        extra.extend_from_slice(&options.backend_args);
        extra.extend(mode_of(&compiler).map(str::to_owned));
        if stable_names {
            extra.extend(ARGUMENTS.map(str::to_owned));
        }
        let records = options.flags_from.as_ref().map(FlagRecords::open).transpose()?;
        let flags = match (&records, self.flavour) {
            (Some(_), _) => {
                let args = [UNUSED.to_owned()].into_iter().chain(extra).collect();
                Ok(BackendFlags { args, ..BackendFlags::default() })
            }
            (None, Some(flavour)) => {
                flavour.backend_flags(arguments, &extra).map_err(|error| error.to_string())
            }
            (None, None) => self.build.backend_flags(self.command, &extra),
        };
        let found = flags.and_then(|flags| match flags.not_done.first() {
            Some(option) => Err(not_done(option)),
            None => Ok(flags),
        });
        Ok(found.map(|flags| {
            let settings = CompileSettings {
                compiler,
                linker: self.compiles().then(|| self.code(stable_names)),
                is_described: true,
                flags,
                records,
                ..self.base_settings()
            };
            (settings, stable_names, why_not_stable)
        }))
    }

    /// Whether locals can be named after their sources, as far as it is known before the linker asks; and why not, where
    /// the user would have them so.
    fn names(&self) -> (bool, Option<String>) {
        let options = self.build.options;
        let arguments = self.arguments();
        // Outputs of -r may be linked into one program, and no link compares the sources of both.
        let is_wanted = options.stable_names
            && self.has_names
            && self.flavour.is_none()
            && !gather(arguments).relocatable
            && !options_of_names(arguments)
            && !options.backend_args.iter().map(String::as_str).any(is_of_names);
        if !is_wanted || matches!(self.build.task, Task::Graph(_)) {
            return (false, None);
        }
        let output = self.process.directory.join(self.command.line.output());
        let found = self.build.seen().nameless.get(&output).cloned();
        let why = found.or_else(|| not_text(arguments)).or_else(|| self.alike_names(&output));
        (why.is_none(), why)
    }

    /// A sentence that names two modules of the last link that still have one source. A first link finds them as it asks.
    fn alike_names(&self, output: &Path) -> Option<String> {
        let directory = self.build.options.record_of(&output.to_string_lossy())?;
        let earlier = PreviousModules::of(&directory);
        let [one, other] = earlier.alike()?;
        let mut files = ModuleFiles::new(&self.process.directory, &directory);
        let [first, second] = [one, other].map(|label| files.source_of(label));
        let (first, second) = (first?, second?);
        (spelled(&first) == spelled(&second)).then(|| alike((one, &first), (other, &second)))
    }
}

/// The kind of a process that is no linker that can ask: another linker of bitcode or native objects, or anything.
fn foreign(process: &Process) -> ProcessKind {
    let words = || process.words[1..].iter().map(Vec::as_slice);
    let is_lld = lossy(&process.words[0]).contains("lld");
    if kind::of(&process.words[0], words()) != Kind::Linker
        || is_lld && !linkers::is_lld(&process.file).unwrap_or(true)
    {
        return ProcessKind::Other;
    }
    let inputs = inputs::of_process(process);
    if !inputs::has_bitcode(inputs.iter().cloned()) {
        let is_native = inputs::has_native(inputs.into_iter());
        return if is_native { ProcessKind::Native } else { ProcessKind::Other };
    }
    // clang finds the lld of a version by its name.
    let newest = versions_of(LLD).next().filter(|&version| is_lld && version >= 15);
    let version = newest.map_or_else(String::new, |version| format!("-{version}"));
    let linker = process.program.display();
    ProcessKind::Alone(format!(
        "{linker} cannot ask for objects; link with -fuse-ld=lld{version}, lld 15 or later"
    ))
}

/// Notes a driver other than clang that links by `ld.lld`, where there is none of this name: it ends with an error that
/// does not say so.
pub fn note_hidden_lld(build: &Build<'_>, process: &Process) {
    let is_told = process.words.iter().any(|word| word == b"-fuse-ld=lld");
    let is_gcc = || program(&lossy(&process.words[0]), None) == ProgramKind::OtherDriver;
    if is_told && is_gcc() && program_file(Path::new(LLD)).is_none() {
        let newest = versions_of(LLD).next().map(|version| format!("{LLD}-{version}"));
        build.seen().hidden_lld = newest.and_then(|name| program_file(Path::new(&name)));
    }
}

fn not_done(option: &str) -> String {
    format!("{option} asks for output that only the linker's own backends write")
}

/// A sentence that names an input that no record can name, so that nobody knows its source.
fn not_text(arguments: &[Argument]) -> Option<String> {
    let inputs = arguments.iter().filter_map(|argument| match argument {
        Argument::Input(input) => Some(input),
        _ => None,
    });
    let mut names = inputs.filter(|input| std::str::from_utf8(input).is_err());
    names.next().map(|name| format!("the name of {} is not UTF-8", lossy(name)))
}

/// Whether the line itself decides about the names of promoted locals.
fn options_of_names(arguments: &[Argument]) -> bool {
    let words = options(arguments).flat_map(|option| &option.words);
    words.map(String::as_str).any(is_of_names)
}
