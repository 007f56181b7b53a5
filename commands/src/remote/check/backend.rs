//! A backend compilation of some lines, here and on a worker. Differences are explained by properties of the worker.
//!
//! It is a real one: bitcode and shard by clang and lld, and the command of a link. The server skips its action cache.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use distlto_executor::attempt::{self, Context};
use distlto_executor::cancel::Cancel;
use distlto_executor::describe::{Described, Describer, Platform, Toolchains};
use distlto_executor::execute::cc1::Cc1Commands;
use distlto_executor::execute::drivers::Drivers;
use distlto_executor::execute::local::Local;
use distlto_executor::execute::process::GRACE;
use distlto_executor::execute::remote::engine::EngineSettings;
use distlto_executor::execute::spawn::PLAIN;
use distlto_executor::job::Job;
use distlto_executor::output::Role;
use distlto_executor::schedule::Site;
use distlto_executor::staging::StagingArea;
use distlto_executor::verify::{Backend, Modules};
use distlto_planner::digests::FileDigests;
use distlto_planner::link_command::clang_beside;
use distlto_planner::runner::ToolError;
use distlto_planner::search_path::program_file;
use distlto_planner::words::{Word, lossy};
use distlto_prepare::io_error::IoError;
use distlto_reapi::blob::Blob;
use distlto_reapi::execute::{ExecuteOptions, ExecutedAction};
use distlto_reapi::{Client, Digest, DigestMessage, Error, proto};
use miette::Report;
use object::{Object, ObjectSection};

use super::{CheckError, run_time};
use crate::report::CheckedSentences;
use crate::trial::{MODULE, OBJECT, SHARD, Trial, TrialFailure};

/// The least difference of clocks that is reported.
const OFF: Duration = Duration::from_secs(5);

/// A shell's exit codes for a missing program, and for one that it cannot run.
const NO_PROGRAM: [i32; 2] = [126, 127];

/// A backend compilation that was done here.
pub struct Sample<'a> {
    /// Holds the inputs until they are sent.
    _trial: Trial<'a>,
    /// The object of this machine.
    object: Vec<u8>,
    /// The action to execute, or why no other machine can.
    action: Result<Prepared, String>,
}

struct Prepared {
    blobs: Vec<Blob>,
    action: Digest,
    /// The command's path of its object.
    output: String,
    /// The program that is run.
    compiler: String,
}

impl<'a> Sample<'a> {
    /// Compiles it here.
    pub fn make(compiler: Option<&str>, platform: Platform<'_>, cancel: &'a Cancel) -> Result<Self, Report> {
        let compiler = compiler_of(compiler)?;
        let linker = [&*compiler, "-fuse-ld=lld", "-flto=thin", "-nostdlib"];
        let linker = linker.map(|word| word.as_bytes().to_vec());
        let thin_link = "-Wl,--plugin-opt=thinlto-index-only";
        let trial = Trial::new(&compiler, &linker, thin_link, &PLAIN, cancel);
        let trial = trial.map_err(|TrialFailure { what, said }| match cancel.is_cancelled() {
            true => CheckError::Interrupted,
            false => CheckError::Here { what, why: said },
        })?;
        let place = trial.folder();
        let words = [compiler].into_iter().chain(Trial::backend()).collect();
        let outputs = vec![(OBJECT.into(), Role::Object)];
        let backend = Backend { module: MODULE.to_owned(), shard: SHARD.to_owned(), others: Vec::new() };
        let job = Job { label: MODULE.to_owned(), words, backend: Some(backend), outputs };
        let action = compile(&job, place, platform, cancel)?;
        let object = place.join(OBJECT);
        let object = fs::read(&object).map_err(IoError::on("read", &object))?;
        Ok(Self { object, action, _trial: trial })
    }

    /// Has it compiled on a worker, and reports the result.
    pub async fn check(&self, client: &Client, settings: &EngineSettings, report: &mut CheckedSentences) {
        let prepared = match &self.action {
            Ok(prepared) => prepared,
            Err(why) => {
                return report.wrong(&format!("this compiler's jobs run on this machine only: {why}"));
            }
        };
        if let Err(error) = client.upload(prepared.blobs.clone()).await {
            return report.failed("the inputs of a backend cannot be uploaded", &error);
        }
        let options = ExecuteOptions {
            // A result of an earlier execution says nothing about today's workers.
            skip_cache_lookup: true,
            queue_deadline: settings.queue_time,
            run_deadline: Some(run_time(settings)),
        };
        let (begun, began) = (Instant::now(), SystemTime::now());
        match client.execute(prepared.action, &options, |_| {}).await {
            Err(error) => refused(&error, &settings.platform, report),
            Ok(executed) => {
                let took = begun.elapsed();
                clocks(&executed.result, began, report);
                self.compare(client, &executed, prepared, took, report).await;
            }
        }
    }

    /// Compares the worker's object with the one made here.
    async fn compare(
        &self,
        client: &Client,
        executed: &ExecutedAction,
        prepared: &Prepared,
        took: Duration,
        report: &mut CheckedSentences,
    ) {
        let result = &executed.result;
        let worker = worker(result);
        if result.exit_code != 0 {
            failed(result.exit_code, &worker, prepared, report);
            for said in [client.stderr(result).await, client.stdout(result).await] {
                report.quote(&said.map_or_else(|error| error.to_string(), |said| lossy(&said)));
            }
            return;
        }
        let written = result.output_files.iter().find(|file| file.path == prepared.output);
        let Some(digest) = written.and_then(|file| Digest::from_message(file.digest.as_ref()?)) else {
            return report.wrong(&format!(
                "{worker} succeeds and gives no object: the server does not take output_paths, or loses outputs"
            ));
        };
        let object = match client.download(digest).await {
            Ok(object) => object,
            Err(error) => {
                return report.failed(&format!("the object of {worker} does not come back"), &error);
            }
        };
        if *object == *self.object {
            report.good(&format!(
                "{worker} compiled a backend in {:.3} s, all in all, to the same {} bytes as this machine",
                took.as_secs_f64(),
                object.len()
            ));
            return kept(client, prepared, report).await;
        }
        let compilers = (named(&self.object), named(&object));
        report.wrong(&format!(
            "{worker} makes another object ({} bytes) than this machine ({} bytes): {}",
            object.len(),
            self.object.len(),
            match &compilers {
                (here, there) if here != there =>
                    format!("its compiler is \"{}\", the one of this machine \"{}\"", list(there), list(here)),
                _ => format!("{} is another one there, though it calls itself the same", prepared.compiler),
            }
        ));
    }
}

/// The requested clang, or the one for a link by `ld.lld`.
fn compiler_of(asked: Option<&str>) -> Result<String, ToolError> {
    let linker = Word::from(*b"ld.lld");
    let beside = || clang_beside(&linker).as_deref().map(lossy);
    let named = || program_file(Path::new("clang")).map(|_| "clang".to_owned());
    let found = asked.map(str::to_owned).or_else(beside).or_else(named);
    found.ok_or_else(|| ToolError::NoCompiler { linker: lossy(&linker) })
}

/// Compiles the backend here, and describes it for a worker.
fn compile(
    job: &Job,
    place: &Path,
    platform: Platform<'_>,
    cancel: &Cancel,
) -> Result<Result<Prepared, String>, CheckError> {
    let directory = Some(place);
    let spawner = &PLAIN;
    let (answers, digests, modules) =
        (Cc1Commands::default(), FileDigests::new(place), Modules::new(directory));
    let drivers = Drivers { answers: &answers, spawner, cancel, grace: GRACE, directory };
    let toolchains = Toolchains::new(None);
    let describer = Describer::new(&toolchains, &drivers, &digests, directory, platform);
    let execute = &Local { spawner, grace: GRACE, directory, drivers: Some(&drivers) };
    let describer = describer.as_ref();
    let context = Context {
        execute,
        cancel,
        modules: &modules,
        directory,
        expected: None,
        staging: &StagingArea::new(directory, None),
        digests: &digests,
        describer,
        caches: &[],
        linker: None,
    };
    let attempt = attempt::run(job, Site::Here, Duration::ZERO, &context);
    let why = |cause: &dyn std::error::Error| format!("{cause}\n{}", attempt.stderr);
    let failed = |why| CheckError::Here { what: "a backend compilation", why };
    attempt.result.as_ref().map_err(|cause| failed(why(cause)))?;
    let described = describer.and_then(|describer| describer.describe(job));
    Ok(match described {
        Some(Described { local_only: Some(why), .. }) => Err(why),
        Some(described) => Ok(prepare(&described, place)),
        None => Err(toolchains.troubles().join("; ")),
    })
}

fn prepare(described: &Described<'_>, place: &Path) -> Prepared {
    let words = &described.action.words;
    // The shell comes first.
    let mut programs = words.iter().skip(1).filter(|word| word.starts_with('/'));
    Prepared {
        blobs: described.blobs(Some(place)),
        action: described.encoded.digest(),
        output: described.action.outputs.first().map_or_else(String::new, |(name, _)| name.to_string()),
        compiler: programs.next().map_or_else(String::new, ToString::to_string),
    }
}

/// Reports why a server executed nothing, with a remedy.
fn refused(error: &Error, platform: &[(String, String)], report: &mut CheckedSentences) {
    let pairs = platform.iter().map(|(name, value)| format!("{name}={value}"));
    let platform = match platform {
        [] => "no platform is asked for (--remote-platform), where many servers want one".to_owned(),
        _ => format!("asked for is a worker with {}", pairs.collect::<Vec<_>>().join(" and ")),
    };
    match error {
        Error::Deadline { queued: true, limit, .. } => report.wrong(&format!(
            "no worker took a backend within {} s: either none has the platform, or all are busy; {platform}",
            limit.as_secs()
        )),
        Error::Deadline { limit, .. } => report.wrong(&format!(
            "a worker took a backend of some lines and was not done after {} s: look into its log",
            limit.as_secs()
        )),
        Error::Lost { message, .. } => {
            report.wrong(&format!("the server refuses the action, or has lost its inputs; {platform}"));
            report.quote(message);
        }
        Error::Denied { .. } => report.failed("you may not have actions executed", error),
        error => report.failed(&format!("a backend was not executed ({platform})"), error),
    }
}

/// Reports the likely cause of a command's failure on a worker.
fn failed(code: i32, worker: &str, prepared: &Prepared, report: &mut CheckedSentences) {
    let compiler = &prepared.compiler;
    report.wrong(&if NO_PROGRAM.contains(&code) {
        format!(
            "{worker} has no compiler {compiler}, or no /bin/sh (exit code {code}): put it into the image of the \
             workers, or ask for workers that have it (--remote-platform); it says:"
        )
    } else {
        format!("the compiler fails on {worker}, and not here (exit code {code}); it says:")
    });
}

fn worker(result: &proto::ActionResult) -> String {
    let name = result.execution_metadata.as_ref().map_or("", |metadata| &metadata.worker);
    if name.is_empty() { "a worker".to_owned() } else { format!("worker {name}") }
}

/// Whether the server has the result for the next one who asks.
async fn kept(client: &Client, prepared: &Prepared, report: &mut CheckedSentences) {
    match client.action_result(prepared.action, Vec::new()).await {
        Ok(Some(_)) => report.good("the worker's result is in the action cache"),
        Ok(None) => {
            report.note("the worker's result is not in the action cache: every link compiles all again")
        }
        Err(error) => report.failed("the action cache does not answer", &error),
    }
}

/// Reports whether clocks differ. If they do, things expire at the wrong time.
fn clocks(result: &proto::ActionResult, began: SystemTime, report: &mut CheckedSentences) {
    let metadata = result.execution_metadata.clone().unwrap_or_default();
    let clocks = [
        ("the server", metadata.queued_timestamp.map(|time| (time.seconds, time.nanos))),
        ("the worker", metadata.worker_completed_timestamp.map(|time| (time.seconds, time.nanos))),
    ];
    let clocks = clocks.into_iter().filter_map(|(who, time)| Some((who, time.filter(|time| time.0 > 0)?)));
    let ended = SystemTime::now();
    let mut agreeing = BTreeSet::new();
    for (who, (seconds, nanos)) in clocks {
        let since = Duration::new(seconds.unsigned_abs(), u32::try_from(nanos).unwrap_or(0));
        let Some(time) = UNIX_EPOCH.checked_add(since) else { continue };
        let ahead = time.duration_since(ended).unwrap_or_default();
        let behind = began.duration_since(time).unwrap_or_default();
        if ahead.max(behind) < OFF {
            agreeing.insert(who);
        } else {
            let (by, way) = if ahead > behind { (ahead, "ahead of") } else { (behind, "behind") };
            report.note(&format!(
                "the clock of {who} is {} s {way} this machine's: what expires does so at the wrong time",
                by.as_secs()
            ));
        }
    }
    if !agreeing.is_empty() {
        let who = agreeing.into_iter().collect::<Vec<_>>().join(" and ");
        report.good(&format!("{who} and this machine agree on what time it is"));
    }
}

/// Who made an object, by its own account.
fn named(object: &[u8]) -> BTreeSet<String> {
    let comment = object::File::parse(object).ok().and_then(|file| {
        let section = file.section_by_name(".comment")?;
        section.data().ok().map(lossy)
    });
    let comment = comment.unwrap_or_default();
    comment.split('\0').filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

fn list(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}
