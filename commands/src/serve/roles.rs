//! The roles of linkers: the words that make a linker ask for its objects, or call a distributor.
//!
//! Does not answer linkers.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::Path;
use std::thread;

use distlto_planner::backend_flags::stable_names::ARGUMENTS;
use distlto_planner::dtlto::dropped;
use distlto_planner::invocation::{ProgramKind, program};
use distlto_planner::link_command::LinkCommand;
use distlto_planner::linker::options::last;
use distlto_planner::words::{Word, lossy, shell_line, word_of};
use distlto_prepare::io_error::IoError;
use distlto_prepare::message::say;
use distlto_record::progress::{Progress, ProgressEvent};

use super::build::Build;
use super::left_alone::{DISTRIBUTOR, OWN_DISTRIBUTOR};
use super::linkers;
use super::process::Process;
use super::protocol::Role;
use super::request::{LinkRequest, ProcessKind};
use super::settings::CompileSettings;
use super::socket::Connection;
use crate::link::error::LinkError;

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
/// Has ELF's linker write each module after its imports.
const SAVE_IMPORTS: &[u8] = b"--save-temps=import";

/// Gives a process its role, with these files.
pub fn give(connection: &Connection, role: Role, files: &[&File]) -> Result<(), IoError> {
    let files: Vec<_> = files.iter().map(|file| file.as_fd()).collect();
    connection.send(&[role.to_byte()], &files).map_err(answering)
}

/// The error of a process that cannot be answered.
pub fn answering(error: std::io::Error) -> IoError {
    IoError::on("answer", "a process of the command")(error)
}

/// Gives a linker its role, with the folder and the options of that, and `more` files.
pub fn give_linker(
    connection: &Connection,
    process: &Process,
    more: &[Option<&File>],
    role: Role,
    (folder, options): (&Path, &[Word]),
) -> Result<(), IoError> {
    let strings = process.strings(folder, options).map_err(answering)?;
    let files: Vec<&File> = [&strings].into_iter().chain(more.iter().flatten().copied()).collect();
    give(connection, role, &files)
}

impl Build<'_> {
    /// The options that make a linker call our distributor, which takes our options.
    fn distributed(&self, request: &LinkRequest) -> Result<Vec<Word>, IoError> {
        let (options, settings) = (&self.options.run, &request.settings);
        let spelled = |name: &str, value: &[u8]| settings.spelled(name, value);
        let mut words = distributor(settings)?;
        if settings.flavour.is_none() {
            let dropped = dropped::of_link_line(request.command.line.arguments());
            let remedies = dropped.iter().flat_map(|dropped| dropped.remedy.lld_words());
            words.extend(remedies.map(String::into_bytes));
        }
        let is_completed = settings.flavour.is_some() && settings.is_completed;
        let implied = settings.jobs.filter(|_| options.jobs.is_none());
        let implied = implied.map(|jobs| format!("-j{jobs}").into_bytes());
        let name = lossy(&self.command[0]);
        let is_build = program(&name, self.command.get(1).map(Vec::as_slice)) == ProgramKind::OtherDriver;
        // A build prints too.
        let is_quiet = is_build && !(options.verbose > 0 || options.quiet || options.json);
        let more = [(true, "--own-store"), (is_quiet, "--quiet"), (is_completed, "--complete-shards")];
        let more = more.into_iter().filter(|(is_given, _)| *is_given).map(|(_, word)| word.into());
        let arguments = implied.into_iter().chain(options.given.words()).chain(more);
        words.extend(arguments.map(|argument| spelled("thinlto-distributor-arg", &argument)));
        words.extend(settings.resolving().filter(|_| is_completed));
        Ok(words)
    }

    /// The options that make a linker ask, the folder of its cache being that.
    pub fn asking(
        &self,
        (command, settings, stable_names): (&LinkCommand, &CompileSettings, bool),
        cache: &Path,
    ) -> Vec<Word> {
        let threads = self.threads(settings);
        let cache = cache.display();
        let mut words = match settings.flavour {
            Some(flavour) => flavour.cache_words(&cache.to_string()),
            None => vec![format!("--thinlto-cache-dir={cache}").into_bytes()],
        };
        words.push(format!("--thinlto-cache-policy={UNPRUNED}").into_bytes());
        words.push(b"--thinlto-emit-index-files".to_vec());
        words.push(format!("--thinlto-jobs={threads}").into_bytes());
        words.extend(settings.resolving());
        if stable_names {
            words.extend(ARGUMENTS.map(|word| word.as_bytes().to_vec()));
        }
        words.extend(settings.shows_imports.then(|| SAVE_IMPORTS.to_vec()));
        if last(command.line.arguments(), "thinlto-distributor").is_some() {
            // The linker would ask that distributor instead of us.
            words.push(b"--thinlto-distributor=".to_vec());
        }
        if last(command.line.arguments(), "thinlto-cache-dir").is_some() {
            self.reporter.report(ProgressEvent::Noted(
                "--thinlto-cache-dir has no effect: objects are kept in the link's state",
            ));
        }
        if self.options.run.verbose > 1 && !self.options.run.json {
            let all = command.linker.iter().chain(command.line.words()).chain(&words);
            let line: Vec<String> = all.map(|word| lossy(word)).collect();
            say(format_args!("distlto: {}", shell_line(line.iter().map(String::as_str))));
        }
        words
    }

    /// How many threads a linker gets for its questions.
    fn threads(&self, settings: &CompileSettings) -> usize {
        let jobs = self.options.run.jobs.map(usize::from).or(settings.jobs);
        let jobs = jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nproc).current;
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        // A linker without one of its threads fails; the other half is for workers and compilers, of which one suffices.
        let most = (limit.saturating_sub(OTHER_THREADS) / 2).clamp(1, THREADS);
        // The run reports the error.
        let elsewhere = self.options.run.remote.slots().unwrap_or(0);
        match (jobs, elsewhere) {
            (_, 0) if settings.linker.is_some() => jobs.min(most),
            // Under --keep-going, each failed module blocks its thread to the end.
            _ if self.options.run.keep_going => most,
            // Of one at a time none overtakes another.
            (1, 0) => 1,
            _ => jobs.saturating_add(elsewhere).saturating_mul(ASKING).min(most),
        }
    }

    /// The command line of a linker that takes no hook and can call a distributor; `None` if it stays as it is.
    pub fn line_without_hook(&self, process: &Process) -> Result<Option<File>, LinkError> {
        let why = match self.kind_of(process)? {
            ProcessKind::Other | ProcessKind::Native => return Ok(None),
            ProcessKind::Alone(why) => why,
            ProcessKind::Link(request) => match self.words_without_hook(process, &request)? {
                Ok(words) => return Ok(Some(process.line(&words).map_err(answering)?)),
                Err(why) => why,
            },
        };
        self.seen().has_linker = true;
        self.note_alone(&why);
        self.pass_process_through(process, &why)?;
        Ok(None)
    }

    /// Further words for such a linker, or why it is left alone.
    fn words_without_hook(
        &self,
        process: &Process,
        request: &LinkRequest,
    ) -> Result<Result<Vec<Word>, String>, LinkError> {
        self.seen().has_linker = true;
        if self.task.is_thin() {
            self.note_alone("a linker that takes no preloaded library is not asked what it would do");
            return Ok(Ok(no_link()));
        }
        let program = &process.program;
        // Those of Mach-O and WebAssembly have no DTLTO; one program may hold all flavours.
        let can_distribute = match request.settings.flavour {
            Some(flavour) => flavour.is_distributed(),
            None => linkers::can_distribute(program).map_err(IoError::on("look at", program))?,
        };
        if !can_distribute {
            return Ok(Err(format!("{} takes no preloaded library and has no DTLTO", program.display())));
        }
        if last(request.command.line.arguments(), DISTRIBUTOR).is_some() {
            return Ok(Err(OWN_DISTRIBUTOR.to_owned()));
        }
        Ok(Ok(self.distributed(request)?))
    }
}

/// The words of a linker that does nothing.
fn no_link() -> Vec<Word> {
    vec![b"--version".to_vec()]
}

/// The options that make a linker hand over its jobs, all of them. `output` is another place for its program.
pub fn handing_over(settings: &CompileSettings, output: Option<&Path>) -> Result<Vec<Word>, IoError> {
    let mut words = distributor(settings)?;
    words.push(settings.spelled("thinlto-distributor-arg", b"--answered"));
    // What its cache holds is no job.
    words.push(settings.spelled("lldltocache", b""));
    words.extend(settings.resolving());
    let output = output.map(|output| word_of(output.to_owned().into_os_string()));
    words.extend(output.map(|output| settings.spelled("out", &output)));
    Ok(words)
}

/// The options that name our distributor, the compiler and, for another flavour than ELF's, the compiler's flags.
fn distributor(settings: &CompileSettings) -> Result<Vec<Word>, IoError> {
    let own = std::env::current_exe().map_err(IoError::on("find", "this program"))?;
    let distributor = own.with_file_name(DISTRIBUTE);
    // Without it the linker reports that posix_spawn failed, and no name.
    fs::metadata(&distributor).map_err(IoError::on("find", &distributor))?;
    let distributor = word_of(distributor.into_os_string());
    // Where nothing is compiled the linker still asks for a name.
    let compiler = Some(&*settings.compiler).filter(|compiler| !compiler.is_empty()).unwrap_or("clang");
    let named = [(DISTRIBUTOR, &*distributor), ("thinlto-remote-compiler", compiler.as_bytes())];
    let flags = settings.flags.args.iter().filter(|_| settings.flavour.is_some());
    let flags = flags.map(|flag| ("thinlto-remote-compiler-arg", flag.as_bytes()));
    Ok(named.into_iter().chain(flags).map(|(name, value)| settings.spelled(name, value)).collect())
}
