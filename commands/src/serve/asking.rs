//! Decides whether a linker asks for its objects, how its backends are compiled, and which options make it ask.
//!
//! Does not answer questions.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;

use distlto_planner::backend_flags::raw::gather;
use distlto_planner::backend_flags::stable_names::{ARGUMENTS, alike, is_of_names, spelled};
use distlto_planner::backend_flags::{self, BackendFlags, UNUSED};
use distlto_planner::dtlto::dropped;
use distlto_planner::invocation::{ProgramKind, mode_of, program};
use distlto_planner::link_command::{LinkCommand, compiler_of};
use distlto_planner::link_line::{Argument, last_value, options};
use distlto_planner::link_options;
use distlto_planner::linker::code_words::code_words;
use distlto_planner::linker::coff;
use distlto_planner::linker::flavour::Flavour;
use distlto_planner::linker::help::Help;
use distlto_planner::linker::options::{last, value};
use distlto_planner::options::Code;
use distlto_planner::recorded_flags::FlagRecords;
use distlto_planner::words::{Word, lossy, shell_line, word_of};
use distlto_prepare::io_error::IoError;
use distlto_prepare::message::say;
use distlto_prepare::mutex::lock;
use distlto_record::progress::{Progress, ProgressEvent, Reporter};

use super::callers::{Shared, no_link};
use super::collected::Task;
use super::linkers::{self, Linker};
use super::module_record::PreviousModules;
use super::modules::ModuleFiles;
use super::process::Process;
use super::settings::{CompileSettings, LinkerCode};
use super::{Service, command, usage};
use crate::link::LinkError;
use crate::link::state;
use crate::linker_flags;
use crate::tool::ToolRunner;

/// The linker's option for a distributor.
const DISTRIBUTOR: &str = "thinlto-distributor";
const OWN_DISTRIBUTOR: &str = "the link has a distributor of its own";
/// The option by which a linker compiles the bitcode in native objects, without its dash.
const FAT_OBJECTS: &str = "fat-lto-objects";
/// Hold options of COFF's linker.
const COFF_VARIABLES: [&str; 2] = ["LINK", "_LINK_"];
/// The distributor, beside this program.
const DISTRIBUTE: &str = "distlto-distribute";
/// A policy by which lld removes nothing from its cache.
const UNPRUNED: &str = "prune_after=0s:cache_size=0%:cache_size_bytes=0:cache_size_files=0";
/// Threads of a linker for each backend that may run at once: the scheduler chooses among their questions.
const ASKING: usize = 4;
/// So many threads at most: each waits on a stack of its own.
const THREADS: usize = 1024;
/// Further threads of a link, reserved where the system limits a user's threads.
const OTHER_THREADS: usize = 12;

/// Options that have another effect when a linker asks: they write its command line or its own objects to files, or
/// files that it then always or never writes.
const ALONE: [&str; 4] =
    ["reproduce", "lto-obj-path", "thinlto-emit-imports-files", "thinlto-emit-index-files"];
/// Options on the names of shards. A linker takes no notice of them while it links, and refuses them when it asks.
const ON_NAMES: [&str; 2] = ["thinlto-prefix-replace", "thinlto-object-suffix-replace"];
/// Has ELF's linker write each module after its imports.
const SAVE_IMPORTS: &[u8] = b"--save-temps=import";
/// Options whose effect ours replace, so that the linker would not see a value that it refuses.
const REPLACED: [&str; 3] = [CACHE_POLICY, "thinlto-jobs", "threads"];
const CACHE_POLICY: &str = "thinlto-cache-policy";
/// Options that have the linker make a directory, and us none, or another one.
const DIRECTORIES: [&str; 2] = ["thinlto-cache-dir", SPLITS];
/// Asks for split debug information in a directory.
const SPLITS: &str = "plugin-opt=dwo_dir=";
/// Acts like lld's option `--reproduce`.
const REPRODUCE: &str = "LLD_REPRODUCE";

/// The kind of a calling process.
pub enum Called {
    /// No linker.
    Other,
    /// A linker that links by itself, for this reason.
    Alone(String),
    Link(Box<Asking>),
}

/// A linker that asks for its objects.
pub struct Asking {
    pub link: LinkCommand,
    pub compilation: CompileSettings,
    /// Whether the names of promoted locals come from their sources.
    pub stable_names: bool,
    /// Why they cannot, where the user would have them so.
    pub why_not_stable: Option<String>,
}

impl Asking {
    /// A link with finished objects: their promoted locals have names already.
    fn without_names(link: LinkCommand, compilation: CompileSettings) -> Self {
        Self { link, compilation, stable_names: false, why_not_stable: None }
    }

    /// Records why locals have the linker's default names.
    pub fn record_names(&self, reporter: &Reporter) {
        let mut note = None;
        reporter.describe(|run| {
            run.stable_names = self.stable_names;
            run.default_names.clone_from(&self.why_not_stable);
            note = run.default_names_note();
        });
        if let Some(note) = note {
            let note = format!("{}: {note}", self.link.line.output());
            reporter.report(ProgressEvent::Noted(&note));
        }
    }
}

impl Shared<'_> {
    /// The command line of a linker that takes no hook and can call a distributor.
    pub fn line_without_hook(&self, process: &Process) -> Result<Option<File>, LinkError> {
        let called = self.called(process)?;
        if !matches!(called, Called::Other) {
            self.has_linker.store(true, Ordering::Relaxed);
        }
        let why = match called {
            Called::Other => return Ok(None),
            Called::Alone(why) => why,
            Called::Link(asking) => {
                let program = &process.program;
                let failed = |error| IoError::on("answer", "a process of the command")(error);
                if self.service.task.is_thin() {
                    self.alone("a linker that takes no preloaded library is not asked what it would do");
                    return Ok(Some(process.line(&no_link()).map_err(failed)?));
                }
                // Those of Mach-O and WebAssembly have no DTLTO; one program may hold all flavours.
                let can_distribute = match asking.compilation.flavour {
                    Some(flavour) => flavour.is_distributed(),
                    None => linkers::can_distribute(program).map_err(IoError::on("look at", program))?,
                };
                if !can_distribute {
                    format!("{} takes no preloaded library and has no DTLTO", program.display())
                } else if last(asking.link.line.arguments(), DISTRIBUTOR).is_some() {
                    OWN_DISTRIBUTOR.to_owned()
                } else {
                    let line = process.line(&self.service.distributed(&asking)?);
                    return Ok(Some(line.map_err(failed)?));
                }
            }
        };
        self.alone(&why);
        self.pass_through(process, &why)?;
        Ok(None)
    }

    /// A linker is left alone.
    pub fn alone(&self, why: &str) {
        if let Task::Collect(collection) = self.service.task {
            collection.leave(why.to_owned());
        }
        self.service.reporter.report(ProgressEvent::Noted(&format!("{why}: the linker links by itself")));
    }

    /// Counts a linker that is left alone, if it has bitcode.
    pub fn pass_through(&self, process: &Process, why: &str) -> Result<(), LinkError> {
        let words = &process.words;
        if !usage::has_bitcode(usage::inputs(process).into_iter()) {
            return Ok(());
        }
        let output = state::guess_output(words).unwrap_or_else(|| "a.out".to_owned());
        self.service.pass_through(&process.directory.join(output), why)
    }

    /// Returns the kind of a process.
    pub fn called(&self, process: &Process) -> Result<Called, LinkError> {
        let linker = self.linkers.linker_of(process);
        match linker.map_err(IoError::on("look at", &process.program))? {
            Linker::None => Ok(Called::Other),
            Linker::Other(version) => {
                Ok(Called::Alone(format!("{version} has no option that makes it ask for this format")))
            }
            Linker::Elf { resolves, version } => {
                self.asking(process, resolves, linkers::has_stable_names(&version), None)
            }
            Linker::Flavoured(flavour, help) => {
                self.asking(process, flavour.resolving().is_some(), true, Some((flavour, &help)))
            }
        }
    }

    /// Whether a linker is to ask, and how its backends are compiled.
    fn asking(
        &self,
        process: &Process,
        resolves: bool,
        has_names: bool,
        flavoured: Option<(Flavour, &Help)>,
    ) -> Result<Called, LinkError> {
        let mut link = match command::link_of(process, self.service.command, flavoured) {
            Ok(link) => link,
            // The linker reports the error.
            Err(error) => return Ok(Called::Alone(error.to_string())),
        };
        let mut flavour = flavoured.map(|(flavour, _)| flavour);
        let alone = |why: &str| Ok(Called::Alone(why.to_owned()));
        if flavour.is_none() && link_options::is_for_windows(link.line.arguments()) {
            let line = linkers::coff_line(process).map_err(IoError::on("ask", &process.program))?;
            link.line = match line {
                Some(Ok(line)) => line,
                Some(Err(error)) => return Ok(Called::Alone(error.to_string())),
                None => return alone("the linker for Windows has no DTLTO"),
            };
            flavour = Some(Flavour::MinGw);
        }
        let arguments = link.line.arguments();
        if link_options::writes_itself(arguments) {
            return alone(crate::link::WRITES_ITSELF);
        }
        let is_distributed = flavour.is_some_and(Flavour::is_distributed);
        if is_distributed && let Some(why) = self.is_undistributed(process, &link) {
            return alone(why);
        }
        if let Some(option) = ALONE.iter().find_map(|name| last(arguments, name)) {
            return alone(&format!(
                "--{} asks for output that a linker writes only when it is alone",
                option.name
            ));
        }
        if let Some(option) = ON_NAMES.iter().find_map(|name| last(arguments, name)) {
            return alone(&format!("--{} is for a thin link alone", option.name));
        }
        if flavour.is_none()
            && let Some(option) = refused(process, arguments).map_err(IoError::on("ask", &process.program))?
        {
            return alone(&format!("the linker refuses {option}"));
        }
        if let Some(value) =
            DIRECTORIES.iter().filter_map(|name| value(last(arguments, name)?)).find(|value| {
                let directory = process.directory.join(value);
                directory.ancestors().find(|place| place.exists()).is_some_and(|place| !place.is_dir())
            })
        {
            return alone(&format!("no directory can be made at {value}"));
        }
        // One that is gone needs no answer.
        if process.has_variable(REPRODUCE).unwrap_or_default() {
            return alone(&format!("{REPRODUCE} asks for output that a linker writes only when it is alone"));
        }
        if state::is_special(&process.directory.join(link.line.output())) {
            return alone("its output is no file");
        }
        let options = self.service.options;
        let jobs = link_options::jobs_of(arguments);
        // For Windows a plain shard may make a program that crashes.
        let is_completed = is_distributed || resolves && !options.plain_shards;
        let architecture = flavour.and_then(|flavour| flavour.slice(arguments)).map(str::to_owned);
        if matches!(self.service.task, Task::Answer(_)) {
            // Nothing is compiled.
            let compilation =
                CompileSettings { flavour, architecture, is_completed, jobs, ..CompileSettings::default() };
            return Ok(Called::Link(Box::new(Asking::without_names(link, compilation))));
        }
        let raw = gather(arguments);
        // Outputs of -r may be linked into one program, and no link compares the sources of both.
        let may_be_stable = options.stable_names
            && has_names
            && flavour.is_none()
            && !raw.relocatable
            && !options_of_names(arguments)
            && !options.backend_args.iter().map(String::as_str).any(is_of_names);
        let why_not_stable = if may_be_stable { self.why_not_stable(process, &link) } else { None };
        let stable_names = may_be_stable && why_not_stable.is_none();
        let splits = raw.last(Code::SplitDebug).is_some();
        // One that takes no preloaded library has not begun.
        let may_compile = !process.mapped.is_empty() && self.compiles(is_distributed, splits);
        let code = |stable_names: bool| LinkerCode {
            program: process.program.to_string_lossy().into_owned(),
            libraries: process.libraries(),
            words: code_words(arguments)
                .into_iter()
                .chain(ARGUMENTS.iter().filter(|_| stable_names).map(|word| (*word).to_owned()))
                .collect(),
        };
        if may_compile && !options.has_engine() {
            let linker = code(stable_names);
            if let Some(option) = backend_flags::reported(arguments) {
                return alone(&format!("{option} asks for output that only the linker's own backends write"));
            }
            let compilation = CompileSettings {
                compiler: linker.program.clone(),
                linker: Some(linker),
                flavour,
                architecture,
                jobs,
                is_completed: stable_names && is_completed,
                shows_imports: stable_names && is_completed,
                ..CompileSettings::default()
            };
            return Ok(Called::Link(Box::new(Asking { link, compilation, stable_names, why_not_stable })));
        }
        let named = last_value(arguments, "thinlto-remote-compiler");
        let asked = options.compiler.as_deref().or(named);
        let compiler = compiler_of(&link, asked)?;
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
        let flags = match (&records, flavour) {
            (Some(_), _) => {
                let args = [UNUSED.to_owned()].into_iter().chain(extra).collect();
                BackendFlags { args, ..BackendFlags::default() }
            }
            (None, Some(flavour)) => match flavour.backend_flags(arguments, &extra) {
                Ok(flags) => flags,
                Err(error) => return Ok(Called::Alone(error.to_string())),
            },
            (None, None) => match self.service.backend_flags(&link, &extra) {
                Ok(flags) => flags,
                Err(why) => return Ok(Called::Alone(why)),
            },
        };
        if let Some(option) = flags.not_done.first() {
            return alone(&format!("{option} asks for output that only the linker's own backends write"));
        }
        let compilation = CompileSettings {
            compiler,
            linker: may_compile.then(|| code(stable_names)),
            is_described: true,
            flavour,
            architecture,
            flags,
            is_completed,
            jobs,
            records,
            shows_imports: false,
        };
        Ok(Called::Link(Box::new(Asking { link, compilation, stable_names, why_not_stable })))
    }

    /// Whether a linker compiles its modules on this machine. It cannot where the compiler or its flags are the user's, and
    /// where split debug information lies beside kept objects.
    fn compiles(&self, is_distributed: bool, splits: bool) -> bool {
        let options = self.service.options;
        let has_compiler = options.compiler.is_some() || !options.backend_args.is_empty();
        let is_described = matches!(self.service.task, Task::Collect(_)) || options.flags_from.is_some();
        !(is_distributed || splits || has_compiler || is_described)
    }

    /// Returns why a linker for Windows links without a distributor.
    fn is_undistributed(&self, process: &Process, link: &LinkCommand) -> Option<&'static str> {
        let arguments = link.line.arguments();
        let is_ascii = |argument: &Argument| match argument {
            Argument::Input(input) => input.is_ascii(),
            _ => true,
        };
        let has_options = COFF_VARIABLES.iter().any(|name| process.has_variable(name).unwrap_or_default());
        match () {
            () if options(arguments).any(|option| option.name == coff::LIBRARY) => Some("it makes a library"),
            () if last(arguments, DISTRIBUTOR).is_some() => Some(OWN_DISTRIBUTOR),
            () if last(arguments, SPLITS).is_some() => Some("a distributor does not split debug information"),
            // The linker writes other names than theirs into shards.
            () if !arguments.iter().all(is_ascii) => Some("a distributor cannot name an input beyond ASCII"),
            () if has_fat_objects(arguments) => Some("a distributor compiles no FatLTO objects"),
            () if self.service.options.flags_from.is_some() => {
                Some("a distributor has one set of flags for all modules")
            }
            () => has_options.then_some("LINK or _LINK_ has options"),
        }
    }

    /// Why locals of a link cannot be named after their sources, as far as it is known before the linker asks.
    fn why_not_stable(&self, process: &Process, link: &LinkCommand) -> Option<String> {
        let output = process.directory.join(link.line.output());
        let found = lock(&self.nameless).get(&output).cloned();
        found.or_else(|| not_text(link.line.arguments())).or_else(|| self.alike_names(process, &output))
    }

    /// A sentence that names two modules of the last link that still have one source. A first link finds them as it asks.
    fn alike_names(&self, process: &Process, output: &Path) -> Option<String> {
        let directory = self.service.options.record_of(&output.to_string_lossy())?;
        let earlier = PreviousModules::of(&directory);
        let [one, other] = earlier.alike()?;
        let mut files = ModuleFiles::new(&process.directory, &directory);
        let [first, second] = [one, other].map(|label| files.source_of(label));
        let (first, second) = (first?, second?);
        (spelled(&first) == spelled(&second)).then(|| alike((one, &first), (other, &second)))
    }
}

impl Service<'_> {
    /// The flags of an ELF link's backends, which are asked of its linker; or why they cannot be told.
    fn backend_flags(&self, link: &LinkCommand, extra: &[String]) -> Result<BackendFlags, String> {
        let arguments = link.line.arguments();
        let architecture = backend_flags::architecture(arguments);
        let runner = ToolRunner { spawner: self.spawner, cancel: self.cancel, directory: None };
        let said = linker_flags::ask(&link.linker, arguments, &runner);
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

    /// The options that make a linker call our distributor, which takes our options.
    pub fn distributed(&self, asking: &Asking) -> Result<Vec<Word>, LinkError> {
        let (options, compilation) = (&self.options.run, &asking.compilation);
        let spelled = |name: &str, value: &[u8]| compilation.spelled(name, value);
        let mut words = distributor(compilation)?;
        if compilation.flavour.is_none() {
            let dropped = dropped::of_link_line(asking.link.line.arguments());
            let remedies = dropped.iter().flat_map(|dropped| dropped.remedy.lld_words());
            words.extend(remedies.map(String::into_bytes));
        }
        let is_completed = compilation.flavour.is_some() && compilation.is_completed;
        let implied = compilation.jobs.filter(|_| options.jobs.is_none());
        let implied = implied.map(|jobs| format!("-j{jobs}").into_bytes());
        let name = lossy(&self.command[0]);
        let is_build = program(&name, self.command.get(1).map(Vec::as_slice)) == ProgramKind::OtherDriver;
        // A build prints too.
        let is_quiet = is_build && !(options.verbose > 0 || options.quiet || options.json);
        let more = [(true, "--own-store"), (is_quiet, "--quiet"), (is_completed, "--complete-shards")];
        let more = more.into_iter().filter(|(is_given, _)| *is_given).map(|(_, word)| word.into());
        let arguments = implied.into_iter().chain(options.given.words()).chain(more);
        words.extend(arguments.map(|argument| spelled("thinlto-distributor-arg", &argument)));
        words.extend(compilation.resolving().filter(|_| is_completed));
        Ok(words)
    }

    /// The options that make a linker hand over its jobs, all of them. `output` is another place for its program.
    pub fn handing_over(&self, asking: &Asking, output: Option<&Path>) -> Result<Vec<Word>, LinkError> {
        let compilation = &asking.compilation;
        let mut words = distributor(compilation)?;
        words.push(compilation.spelled("thinlto-distributor-arg", b"--answered"));
        // What its cache holds is no job.
        words.push(compilation.spelled("lldltocache", b""));
        words.extend(compilation.resolving());
        let output = output.map(|output| word_of(output.to_owned().into_os_string()));
        words.extend(output.map(|output| compilation.spelled("out", &output)));
        Ok(words)
    }

    /// The options that make a linker ask, the folder of its cache being that.
    pub fn options_for(&self, asking: &Asking, cache: &Path) -> Vec<Word> {
        let Asking { link, compilation, .. } = asking;
        let jobs = self.options.run.jobs.map(usize::from).or(compilation.jobs);
        let jobs = jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nproc).current;
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        // A linker without one of its threads fails; the other half is for workers and compilers, of which one suffices.
        let most = (limit.saturating_sub(OTHER_THREADS) / 2).clamp(1, THREADS);
        // The run reports the error.
        let elsewhere = self.options.run.remote.slots().unwrap_or(0);
        let threads = match (jobs, elsewhere) {
            (_, 0) if compilation.linker.is_some() => jobs.min(most),
            // Under --keep-going, each failed module blocks its thread to the end.
            _ if self.options.run.keep_going => most,
            // Of one at a time none overtakes another.
            (1, 0) => 1,
            _ => jobs.saturating_add(elsewhere).saturating_mul(ASKING).min(most),
        };
        let cache = cache.display();
        let mut words = match compilation.flavour {
            Some(flavour) => flavour.cache_words(&cache.to_string()),
            None => vec![format!("--thinlto-cache-dir={cache}").into_bytes()],
        };
        words.push(format!("--thinlto-cache-policy={UNPRUNED}").into_bytes());
        words.push(b"--thinlto-emit-index-files".to_vec());
        words.push(format!("--thinlto-jobs={threads}").into_bytes());
        words.extend(compilation.resolving());
        if asking.stable_names {
            words.extend(ARGUMENTS.map(|word| word.as_bytes().to_vec()));
        }
        words.extend(compilation.shows_imports.then(|| SAVE_IMPORTS.to_vec()));
        if last(link.line.arguments(), "thinlto-distributor").is_some() {
            // The linker would ask that distributor instead of us.
            words.push(b"--thinlto-distributor=".to_vec());
        }
        if last(link.line.arguments(), "thinlto-cache-dir").is_some() {
            self.reporter.report(ProgressEvent::Noted(
                "--thinlto-cache-dir has no effect: objects are kept in the link's state",
            ));
        }
        if self.options.run.verbose > 1 && !self.options.run.json {
            let all = link.linker.iter().chain(link.line.words()).chain(&words);
            let line: Vec<String> = all.map(|word| lossy(word)).collect();
            say(format_args!("distlto: {}", shell_line(line.iter().map(String::as_str))));
        }
        words
    }
}

/// The options that name our distributor, the compiler and, for another flavour than ELF's, the compiler's flags.
fn distributor(compilation: &CompileSettings) -> Result<Vec<Word>, IoError> {
    let own = std::env::current_exe().map_err(IoError::on("find", "this program"))?;
    let distributor = own.with_file_name(DISTRIBUTE);
    // Without it the linker reports that posix_spawn failed, and no name.
    fs::metadata(&distributor).map_err(IoError::on("find", &distributor))?;
    let distributor = word_of(distributor.into_os_string());
    // Where nothing is compiled the linker still asks for a name.
    let compiler = Some(&*compilation.compiler).filter(|compiler| !compiler.is_empty()).unwrap_or("clang");
    let named = [(DISTRIBUTOR, &*distributor), ("thinlto-remote-compiler", compiler.as_bytes())];
    let flags = compilation.flags.args.iter().filter(|_| compilation.flavour.is_some());
    let flags = flags.map(|flag| ("thinlto-remote-compiler-arg", flag.as_bytes()));
    Ok(named.into_iter().chain(flags).map(|(name, value)| compilation.spelled(name, value)).collect())
}

/// An option that ours would replace, and that the linker refuses.
fn refused(process: &Process, arguments: &[Argument]) -> io::Result<Option<String>> {
    for (name, option) in REPLACED.iter().filter_map(|name| Some((name, last(arguments, name)?))) {
        let is_number = |value: &str| value == "all" || value.parse::<u32>().is_ok();
        let is_plain = *name != CACHE_POLICY && value(option).is_some_and(is_number);
        if !is_plain && !linkers::accepts(process, option.words.iter())? {
            return Ok(Some(option.words.join(" ")));
        }
    }
    Ok(None)
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

/// Whether the last word on FatLTO objects has them compiled; the other one ends in `:no`.
fn has_fat_objects(arguments: &[Argument]) -> bool {
    let words = options(arguments).flat_map(|option| &option.words);
    let mut words = words.map(|word| word.trim_start_matches(['-', '/']));
    words.rfind(|word| word.starts_with(FAT_OBJECTS)).is_some_and(|word| word == FAT_OBJECTS)
}
