//! One action from beginning to end: inputs checked, command run beside the outputs' places, result checked,
//! outputs renamed.
//!
//! The one path that runs a backend compilation. Knows nothing of other actions, of workers and of printing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use distlto_planner::digests::FileDigests;
use distlto_planner::words::{Word, shell_line};
use distlto_prepare::kind::Native;
use distlto_prepare::write::IoError;
use miette::Diagnostic;
use thiserror::Error;

use crate::cache::ResultCache;
use crate::cache::store::{Key, NewOutput, NewResult};
use crate::cancel::Cancel;
use crate::capture::Captured;
use crate::cc1::{Cc1Commands, Names};
use crate::forkserver::INSTALL;
use crate::memory::Killer;
use crate::process::{self, Command, Finished, Spawner};
use crate::response_file;
use crate::staging::{NoPlace, Places, Staging};
use crate::verify::{Backend, Modules, Refusal, Refused, Role, Written, check_result};
use distlto_record::cause;
use distlto_record::report::{Origin, Phases, Span};

/// An action as what there is to do.
#[derive(Debug, Clone)]
pub struct Job<'a> {
    /// The module id of a backend compilation, or what a person calls the action.
    pub label: &'a str,
    /// The command; the first word is the program.
    pub words: Vec<&'a str>,
    /// What is checked before the command runs, for a backend compilation.
    pub backend: Option<Backend<'a>>,
    /// What the command writes. Outputs of a backend compilation are staged, others are checked in place.
    pub outputs: Vec<(&'a Utf8Path, Role)>,
}

/// What jobs of one run share.
pub struct Context<'a> {
    /// Starts the command.
    pub spawner: &'a dyn Spawner,
    /// Ends it early.
    pub cancel: &'a Cancel,
    /// What is known of modules.
    pub modules: &'a Modules,
    /// Where commands run and what paths are relative to; the current directory when `None`.
    pub directory: Option<&'a Path>,
    /// What objects have to be; what the module's own triple says when `None`.
    pub expected: Option<Native>,
    /// How long a cancelled command may take to end.
    pub grace: Duration,
    /// What drivers would run, for runs of many backends; `None` to run the drivers.
    pub cc1_commands: Option<&'a Cc1Commands>,
    /// Where temporaries lie that are not to lie beside their outputs.
    pub places: Option<&'a Places>,
    /// What the jobs' inputs hold. An input that differs after the command from what it was before fails the job.
    pub digests: &'a FileDigests,
    /// Where a result is looked for before the command runs, and kept.
    pub cache: Option<&'a dyn ResultCache>,
}

/// Why an action failed.
#[derive(Debug, Error, Diagnostic)]
pub enum Cause {
    /// Its inputs or its result were refused.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Refused(#[from] Refused),
    /// A file could not be written or renamed.
    #[error("{label}: {source}")]
    #[diagnostic(code(distlto::io), help("free space or mend the permissions; earlier outputs are intact"))]
    Io {
        /// The action.
        label: String,
        /// What happened.
        source: IoError,
    },
    /// Its command does not name its output.
    #[error(transparent)]
    #[diagnostic(transparent)]
    NoPlace(#[from] NoPlace),
    /// Its command could not be started.
    #[error("{label}: cannot run {program}: {source}")]
    #[diagnostic(code(distlto::tool), help("{}", remedy(program, source)))]
    Start {
        /// The action.
        label: String,
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// The run was cancelled while it ran.
    #[error("{label}: interrupted")]
    #[diagnostic(code(distlto::interrupted), help("run again; finished objects are kept"))]
    Interrupted {
        /// The action.
        label: String,
    },
    /// It was killed for want of memory, and again when nothing else ran.
    #[error("{refused}{}", twice(*killer))]
    #[diagnostic(
        code(distlto::failed),
        help(
            "this compilation alone needs more memory than there is: raise the limit of the container or control group, free memory, or lower the optimization for this module"
        )
    )]
    KilledTwice {
        /// The second time.
        refused: Refused,
        /// Who killed it, as far as the system tells.
        killer: Killer,
    },
    /// A mistake in distlto.
    #[error("{label}: distlto failed inside")]
    #[diagnostic(code(distlto::failed), help("this is a mistake in distlto: please report the text above"))]
    Internal {
        /// The action.
        label: String,
    },
}

/// What can be done about a program that cannot be run.
fn remedy(program: &str, source: &io::Error) -> String {
    if source.raw_os_error() == Some(libc::ECHILD) {
        return "something else in this process, such as a handler of SIGCHLD, has waited for the compiler"
            .to_owned();
    }
    format!(
        "check that the program is installed, is executable, and is spelled as in PATH{}",
        of_ours(program)
    )
}

/// For a program that is a part of distlto.
fn of_ours(program: &str) -> String {
    let ours = program.rsplit('/').next().is_some_and(|name| name.starts_with("distlto-"));
    if ours { format!("; {INSTALL}") } else { String::new() }
}

fn twice(killer: Killer) -> &'static str {
    match killer {
        Killer::System => {
            "; the system killed it for want of memory, the second time with no other job running"
        }
        Killer::Somebody | Killer::Unknown => {
            "; this happened twice, the second time with no other job running"
        }
    }
}

impl Cause {
    /// As a record keeps it.
    pub fn told(&self) -> cause::Cause {
        let kind = match self {
            Self::Interrupted { .. } => cause::Kind::Interrupted,
            Self::Internal { .. } => cause::Kind::Internal,
            _ => cause::Kind::Failed,
        };
        cause::Cause::of(kind, self)
    }

    /// The exit code that a program running just this action passes on, if the command gave one.
    pub fn exit_code(&self) -> Option<u8> {
        match self {
            Self::Refused(refused) | Self::KilledTwice { refused, .. } => refused.refusal.exit_code(),
            _ => None,
        }
    }

    /// What was refused, if that is the cause.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refused) | Self::KilledTwice { refused, .. } => Some(&refused.refusal),
            _ => None,
        }
    }

    /// The cause when the command was killed for want of memory although nothing else ran.
    pub fn twice(self, killer: Killer) -> Self {
        match self {
            Self::Refused(refused) => Self::KilledTwice { refused, killer },
            other => other,
        }
    }
}

/// What a command did, when it ran, and whether that counts.
#[derive(Debug)]
pub struct Attempt {
    /// What the command printed and how it ended; `None` when it never ran.
    pub finished: Option<Finished>,
    /// What the command printed on standard error, within bounds, be it when the result was made.
    pub stderr: String,
    /// Where its outputs are from.
    pub origin: Origin,
    /// The key of its result that is the same wherever the work is, if a cache was asked.
    pub key: Option<[u8; 32]>,
    /// When it did what.
    pub phases: Phases,
    /// Success, or why not.
    pub result: Result<(), Cause>,
}

/// Runs one job. Whatever happens, no temporary is left, and an earlier output is intact unless the job succeeded.
pub fn run(job: &Job<'_>, context: &Context<'_>) -> Attempt {
    let mut told = Attempt {
        finished: None,
        stderr: String::new(),
        origin: Origin::Ran,
        key: None,
        phases: Phases::default(),
        result: Ok(()),
    };
    told.result = attempt(job, context, &mut told);
    told
}

fn attempt(job: &Job<'_>, context: &Context<'_>, told: &mut Attempt) -> Result<(), Cause> {
    let io = |source| Cause::Io { label: job.label.to_owned(), source };
    if context.cancel.is_cancelled() {
        return Err(Cause::Interrupted { label: job.label.to_owned() });
    }
    let begun = Instant::now();
    // What cannot be looked at is refused in clearer words.
    let _ = inputs(job).try_for_each(|input| context.digests.watch(input));
    let native = job.backend.map(|backend| context.modules.check(backend)).transpose();
    told.phases.verify = Some(Span::since(begun));
    let native = native?.flatten();
    let staged: Vec<_> = match job.backend {
        Some(_) => job.outputs.iter().map(|&(path, _)| path).collect(),
        None => Vec::new(),
    };
    let staging = Staging::new(context.directory, &staged, context.places).map_err(io)?;
    let outputs = outputs(job, &staging);
    let begun = Instant::now();
    let keys = context.cache.map_or_else(Vec::new, |cache| cache.keys(job, context));
    // The most exact one comes first.
    told.key = keys.last().map(|key| key.0);
    let kept = find(job, context, &keys, &outputs, native).map_err(io)?;
    told.phases.lookup = context.cache.map(|_| Span::since(begun));
    if let Some(kept) = kept {
        told.origin = Origin::Cache;
        told.stderr = kept;
        let begun = Instant::now();
        let result = staging.commit().map_err(io);
        told.phases.commit = Some(Span::since(begun));
        return result;
    }
    let words = staging.redirect(job.label, &job.words)?;
    let words: Vec<_> = words.into_iter().map(String::into_bytes).collect();
    let words = without_driver(job, context, &staging, &words).unwrap_or(words);
    let fitting = response_file::fit(&words).map_err(io)?;
    let start = |source| Cause::Start {
        label: job.label.to_owned(),
        program: job.words.first().map_or_else(String::new, |&word| word.to_owned()),
        source,
    };
    let mut command = Command::of_words(&fitting.words, context.directory)
        .ok_or_else(|| start(io::Error::new(io::ErrorKind::InvalidInput, "the command has no words")))?;
    command.tunes_heap = job.backend.is_some();
    let begun = Instant::now();
    let ran = process::run(&command, context.spawner, context.cancel, context.grace);
    told.phases.command = Some(Span::since(begun));
    let ran = told.finished.insert(ran.map_err(start)?);
    if ran.cancelled {
        return Err(Cause::Interrupted { label: job.label.to_owned() });
    }
    told.stderr = ran.stderr.text();
    let begun = Instant::now();
    let result = check_and_keep(job, context, &outputs, ran, native, &keys);
    let result = result.and_then(|()| staging.commit().map_err(io));
    told.phases.commit = Some(Span::since(begun));
    result
}

/// What a backend compilation reads, as far as the caller knows.
fn inputs<'a>(job: &Job<'a>) -> impl Iterator<Item = &'a Utf8Path> + use<'a> {
    let backend = job.backend.into_iter();
    backend
        .flat_map(|backend| [backend.module, backend.shard].into_iter().chain(backend.others.iter().copied()))
        .map(Utf8Path::new)
}

/// An output of a job.
struct Output<'a> {
    name: &'a Utf8Path,
    role: Role,
    /// Its place.
    place: PathBuf,
    /// Where it is before it is accepted.
    file: PathBuf,
}

fn outputs<'a>(job: &Job<'a>, staging: &Staging) -> Vec<Output<'a>> {
    let outputs = job.outputs.iter().enumerate().map(|(at, &(name, role))| {
        let place = staging.file(name);
        let file = staging.staged().get(at).map_or(place.clone(), |staged| staging.file(&staged.temporary));
        Output { name, role, place, file }
    });
    outputs.collect()
}

fn written<'a>(outputs: &'a [Output<'_>]) -> Vec<Written<'a>> {
    let written =
        |output: &'a Output<'_>| Written { output: &output.place, file: &output.file, role: output.role };
    outputs.iter().map(written).collect()
}

/// A kept result, as what its command printed. Its outputs are where the command would have written them, and are as
/// good as if it had.
fn find(
    job: &Job<'_>,
    context: &Context<'_>,
    keys: &[Key],
    outputs: &[Output<'_>],
    native: Option<Native>,
) -> Result<Option<String>, IoError> {
    let Some(cache) = context.cache.filter(|_| !keys.is_empty()) else { return Ok(None) };
    let files: Vec<_> = outputs.iter().map(|output| (output.role, output.file.as_path())).collect();
    if let Some(kept) = cache.find(keys, &files)? {
        let stderr = Captured::from(kept.stderr.as_slice());
        let expected = context.expected.or(native);
        if check_result(job.label, ExitStatus::default(), &stderr, &written(outputs), expected).is_ok() {
            return Ok(Some(stderr.text()));
        }
    }
    // Else they could pass for what a command wrote that writes nothing.
    files.iter().for_each(|(_, file)| drop(fs::remove_file(file)));
    Ok(None)
}

/// Checks what the command wrote, and has it kept if there is a cache.
fn check_and_keep(
    job: &Job<'_>,
    context: &Context<'_>,
    outputs: &[Output<'_>],
    ran: &Finished,
    native: Option<Native>,
    keys: &[Key],
) -> Result<(), Cause> {
    let io = |source| Cause::Io { label: job.label.to_owned(), source };
    // Comes first: a compiler that saw half of a change says nothing that helps.
    for input in inputs(job) {
        if !context.digests.is_unchanged(input).map_err(io)? {
            let changed = Refusal::InputChanged { path: input.to_string() };
            return Err(Refused::about(job.label)(changed).into());
        }
    }
    let expected = context.expected.or(native);
    check_result(job.label, ran.ended.status, &ran.stderr, &written(outputs), expected)?;
    for Output { file, .. } in
        outputs.iter().filter(|output| output.role == Role::DwoIfAny && !output.file.exists())
    {
        fs::write(file, "").map_err(|error| io(IoError::on("write", file)(error)))?;
    }
    if let Some(cache) = context.cache.filter(|_| !keys.is_empty()) {
        let outputs: Vec<_> = outputs
            .iter()
            .map(|output| NewOutput { role: output.role, name: output.name.as_str(), file: &output.file })
            .collect();
        let stderr = ran.stderr.text();
        let measured = ran.measured();
        let result = NewResult { module: job.label, outputs: &outputs, stderr: stderr.as_bytes(), measured };
        cache.keep(keys, &result);
    }
    Ok(())
}

/// The compiler's own command of a backend compilation, where that is known and worth it.
fn without_driver(
    job: &Job<'_>,
    context: &Context<'_>,
    staging: &Staging,
    words: &[Word],
) -> Option<Vec<Word>> {
    let (cc1_commands, backend) = (context.cc1_commands?, job.backend?);
    // With split debug information two outputs are named, which differ for each module.
    let [object] = staging.staged() else { return None };
    let object = object.temporary.as_str();
    let names = Names { module: backend.module, shard: backend.shard, object, others: &[] };
    cc1_commands.command(words, names, |question| context.ask(question))
}

impl Context<'_> {
    /// What a driver prints on standard error when it is asked what it would run.
    pub fn ask(&self, question: &[Word]) -> Option<Vec<u8>> {
        // A server would be loaded for it, of which a run that finds all its results has no need.
        let plain = self.cache.and_then(|_| self.spawner.plain());
        ask(question, self.directory, plain.unwrap_or(self.spawner), self.cancel, self.grace)
    }
}

/// What a driver prints on standard error when it is asked what it would run.
pub fn ask(
    question: &[Word],
    directory: Option<&Path>,
    spawner: &dyn Spawner,
    cancel: &Cancel,
    grace: Duration,
) -> Option<Vec<u8>> {
    let command = Command::of_words(question, directory)?;
    let answer = process::run(&command, spawner, cancel, grace).ok()?;
    answer.ended.status.success().then(|| answer.stderr.into_bytes())
}

impl Job<'_> {
    /// The command as a line to paste into a shell. Runs in the directory of the job.
    pub fn command_line(&self, directory: Option<&Path>) -> String {
        let line = shell_line(self.words.iter().copied());
        match directory.and_then(Path::to_str) {
            Some(directory) => format!("cd {} && {line}", distlto_planner::words::shell_quote(directory)),
            None => line,
        }
    }
}
