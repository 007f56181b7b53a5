//! `distlto link --dtlto`: the linker performs the link and hands its backends to a distributor.
//!
//! Archives are unpacked first. By itself lld writes their members beside the output under names with its process
//! number; members that have paths of their own give the same module ids, shards and jobs in every link. The linker
//! writes into a directory that is emptied for each run, and the program is renamed into place. How lld is told of a
//! distributor: LLVM's page DTLTO. Knows nothing of job files.

use std::fs;
use std::path::{Path, PathBuf};

use distlto_planner::dtlto::dropped::{self, Remedy};
use distlto_planner::index::{self, Prepared};
use distlto_planner::link_line::{self, Argument, last_value, options};
use distlto_planner::rewrite::whole_words;
use distlto_planner::runner::{Runner, ToolError};
use distlto_planner::words::{Word, lossy, shell_line};
use distlto_prepare::store::Store;
use distlto_prepare::write::{IoError, move_into_place};

use super::{LinkError, Options, Session, final_link, line_cache, state};
use crate::local::LocalSpawner;
use crate::process::{self, Command, GRACE};
use crate::response_file;

/// Our own distributor, which lies beside this program.
const DISTRIBUTOR: &str = "distlto-distribute";

/// Links; returns the linker's exit code. `None` when the command is to be run as it is.
pub(super) fn run(session: &Session<'_>) -> Result<Option<u8>, LinkError> {
    let store = session.options.store.as_deref().map(Store::open).transpose()?;
    let request = session.request(store.as_ref(), session.runner);
    // The linker is asked while the inputs are looked at.
    let (prepared, known) = std::thread::scope(|scope| {
        let known = scope.spawn(|| knows_distributors(&session.link.linker, session.runner));
        let prepared = index::prepare(&request);
        (prepared, known.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let Some(prepared) = prepared? else { return Ok(None) };
    let linker = lossy(&session.link.linker[0]);
    if !known? {
        return Err(LinkError::NoDtlto { linker });
    }
    let output = last_value(&prepared.arguments, "output").unwrap_or("a.out");
    let place = Place::new(session.directory, output, keeps_temporaries(&prepared.arguments))?;
    let mut words: Vec<String> = session.link.linker.iter().map(|word| lossy(word)).collect();
    let asked = asked_words(&prepared, session.options, session.directory);
    words.extend(implied_words(&prepared, &asked)?);
    words.extend(whole_words(&prepared.inputs));
    words.extend(asked);
    words.extend(["-o".to_owned(), place.staged.clone()]);
    if session.options.run.verbose {
        eprintln!("distlto: {}", shell_line(words.iter().map(String::as_str)));
    }
    let code = run_linker(session, &words)?;
    if session.cancel.is_cancelled() {
        return Err(LinkError::Interrupted { exit_code: session.cancel.exit_code() });
    }
    if code == 0 {
        if fs::metadata(&place.staged).map_or(true, |found| found.len() == 0) {
            return Err(LinkError::NoProgram { linker, output: output.into() });
        }
        final_link::mend_dependency_file(&words, &place.staged, output)?;
        move_into_place(Path::new(&place.staged), Path::new(output))?;
        line_cache::save(session.directory, session.key, session.link)?;
    }
    Ok(Some(code))
}

/// Whether the linker's help speaks of distributors.
fn knows_distributors(linker: &[Word], runner: &dyn Runner) -> Result<bool, ToolError> {
    let mut question = linker.to_vec();
    question.push(b"--help".to_vec());
    let answer =
        runner.run(&question).map_err(|source| ToolError::Start { program: lossy(&linker[0]), source })?;
    Ok(String::from_utf8_lossy(&answer.stdout).contains("--thinlto-distributor="))
}

/// Options that the link implies: the distributor, and what lld does not tell backends. They come first, so that the same
/// options of the user's line win.
fn implied_words(prepared: &Prepared, asked: &[String]) -> Result<Vec<String>, LinkError> {
    let mut words = Vec::new();
    if last_value(&prepared.arguments, "thinlto-distributor").is_none() {
        words.push(format!("--thinlto-distributor={}", own_distributor()?.display()));
    }
    let asked = link_line::parse(asked.iter().map(|word| word.clone().into_bytes()))?;
    let told = [prepared.arguments.as_slice(), asked.as_slice()].concat();
    for dropped in dropped::of_link_line(&told) {
        match &dropped.remedy {
            Remedy::CompilerArguments(_) => words.extend(dropped.remedy.lld_words()),
            Remedy::DistributorArguments(_) if is_ours(prepared) => words.extend(dropped.remedy.lld_words()),
            // What another distributor takes is not known here.
            Remedy::DistributorArguments(_) => {}
            Remedy::Advice(_) => eprintln!("distlto: warning: {dropped}"),
        }
    }
    Ok(words)
}

/// Options that the user gives to us; they win over those of the line.
fn asked_words(prepared: &Prepared, options: &Options, directory: &str) -> Vec<String> {
    let mut words = Vec::new();
    if options.compiler.is_some() || last_value(&prepared.arguments, "thinlto-remote-compiler").is_none() {
        words.push(format!("--thinlto-remote-compiler={}", prepared.compiler));
    }
    words.extend(options.backend_args.iter().map(|word| format!("--thinlto-remote-compiler-arg={word}")));
    if is_ours(prepared) {
        words.extend(
            own_arguments(options, directory).map(|word| format!("--thinlto-distributor-arg={word}")),
        );
    }
    words
}

/// Whether the distributor is our own, so that it takes our options: the line names it, or none.
fn is_ours(prepared: &Prepared) -> bool {
    let named = last_value(&prepared.arguments, "thinlto-distributor").map(Path::new);
    named.is_none_or(|named| named.file_name().is_some_and(|name| name == DISTRIBUTOR))
}

/// What our own distributor is told of our options.
fn own_arguments(options: &Options, directory: &str) -> impl Iterator<Item = String> {
    let jobs = options.run.jobs.map(|jobs| format!("-j{jobs}"));
    let keep_going = options.run.keep_going.then(|| "--keep-going".to_owned());
    let verbose = options.run.verbose.then(|| "-v".to_owned());
    let no_warm = options.run.no_warm.then(|| "--no-warm".to_owned());
    let quiet = options.run.quiet.then(|| "-q".to_owned());
    let memory = options.run.memory.map(|bytes| format!("--memory={bytes}"));
    // A path of another encoding has no spelling among a linker's options; there is no history then.
    let history = options.run.history.clone().unwrap_or_else(|| state::history(directory));
    let history = history.to_str().map(|history| format!("--history={history}"));
    let cache = options.run.cache.as_deref().and_then(Path::to_str).map(|cache| format!("--cache={cache}"));
    let cache_size = options.run.cache_size.map(|bytes| format!("--cache-size={bytes}"));
    let cache_age = options.run.cache_age.map(|age| format!("--cache-age={}s", age.as_secs()));
    let hashes = options.run.no_verify_hashes.then(|| "--no-verify-hashes".to_owned());
    let trace = options.run.trace.as_ref().and_then(|file| Some(format!("--trace={}", file.to_str()?)));
    let all = [
        jobs, keep_going, no_warm, verbose, quiet, memory, history, cache, cache_size, cache_age, trace,
        hashes,
    ];
    all.into_iter().flatten()
}

fn own_distributor() -> Result<PathBuf, LinkError> {
    let own = std::env::current_exe().map_err(IoError::on("find", "this program"))?;
    let path = own.with_file_name(DISTRIBUTOR);
    if path.is_file() { Ok(path) } else { Err(LinkError::NoDistributor { path }) }
}

fn run_linker(session: &Session<'_>, words: &[String]) -> Result<u8, LinkError> {
    let words: Vec<Word> = words.iter().map(|word| word.clone().into_bytes()).collect();
    let fitting = response_file::fit(&words)?;
    let program = lossy(&words[0]);
    let start = |source| ToolError::Start { program, source };
    // There are words: the linker is the first.
    let command =
        Command::of_words(&fitting.words, None).ok_or_else(|| std::io::ErrorKind::InvalidInput.into());
    // What the distributor prints is seen while it prints. It needs descriptors of make, which a fork server has not.
    let finished = command
        .and_then(|command| process::run_through(&command, &LocalSpawner, session.cancel, GRACE))
        .map_err(start)?;
    Ok(finished.ended.status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

fn keeps_temporaries(arguments: &[Argument]) -> bool {
    options(arguments).any(|option| {
        let name = option.name.strip_prefix("plugin-opt=").unwrap_or(&option.name);
        name == "save-temps" || name.starts_with("save-temps=")
    })
}

/// Where the linker writes: a directory of one name in every run, since the job file holds it.
struct Place {
    directory: PathBuf,
    staged: String,
    keep: bool,
}

impl Place {
    fn new(state: &str, output: &str, keep: bool) -> Result<Self, LinkError> {
        let directory = format!("{state}/dtlto");
        let name = output.rsplit('/').next().unwrap_or(output);
        let place =
            Self { directory: PathBuf::from(&directory), staged: format!("{directory}/{name}"), keep };
        place.remove()?;
        fs::create_dir_all(&directory).map_err(IoError::on("create directory", &directory))?;
        Ok(place)
    }

    fn remove(&self) -> Result<(), IoError> {
        match fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(IoError::on("remove", &self.directory)(error))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.keep {
            // The next run removes it, if this one cannot.
            let _ = self.remove();
        }
    }
}
