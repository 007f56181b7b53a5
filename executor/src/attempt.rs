//! Runs one action from beginning to end: verifies and describes its inputs, looks for a cached result, or else
//! executes it with outputs beside their places. Then verifies and caches the result, and puts the outputs in place.
//!
//! The one path that runs a backend compilation. Independent of other actions, processes and printing.

use std::fs;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use distlto_planner::digests::FileDigests;
use distlto_prepare::io_error::IoError;
use distlto_prepare::kind::Native;
use distlto_record::report::{Measured, Origin, Phases, Span};

use crate::cache::{Hit, ResultCache};
use crate::cancel::Cancel;
use crate::cause::Cause;
use crate::describe::{Described, Describer};
use crate::execute::capture::Captured;
use crate::execute::{Execute, Executed, ExecutionRequest, Linker};
use crate::job::Job;
use crate::output::{Output, Role};
use crate::result::{NewOutput, NewResult};
use crate::schedule::Site;
use crate::staging::{Staging, StagingArea};
use crate::undeclared::Undeclared;
use crate::verify::{Expectation, Modules, Refusal, Refused, check_result};

/// Parts shared by the jobs of one run.
pub struct Context<'a> {
    /// Executes them.
    pub execute: &'a dyn Execute,
    /// Ends the run early.
    pub cancel: &'a Cancel,
    /// Knowledge of modules.
    pub modules: &'a Modules,
    /// Working directory of commands, and base of relative paths; the current directory when `None`.
    pub directory: Option<&'a Path>,
    /// Required format of objects; that of the module's own triple when `None`.
    pub expected: Option<Native>,
    /// Where outputs are staged.
    pub staging: &'a StagingArea<'a>,
    /// Digests of the jobs' inputs. A job fails if an input changes while its command runs.
    pub digests: &'a FileDigests,
    /// Describes jobs by content; `None` where descriptions are not needed.
    pub describer: Option<&'a Describer<'a>>,
    /// Caches that may have a result, the nearest one first. Results are stored in all.
    pub caches: &'a [&'a dyn ResultCache],
    /// The linker that compiles on this machine: modules that it has loaded, to objects that are right as they are.
    pub linker: Option<&'a dyn Linker>,
}

/// The outcome of a job.
#[derive(Debug)]
pub struct JobAttempt {
    /// The result of its command; `None` when it never ran.
    pub executed: Option<Executed>,
    /// The command's standard error, within bounds, from this run or from the run that made the cached result.
    pub stderr: String,
    /// Processor time of its import step, if that was performed.
    pub import_cpu: Option<Duration>,
    /// How long the command took that made the cached result, if that is known.
    pub spared: Option<Duration>,
    /// Origin of its outputs.
    pub origin: Origin,
    /// The key of its result, the same in every place and on every machine, if a cache was asked.
    pub key: Option<[u8; 32]>,
    /// Its phases with their times.
    pub phases: Phases,
    /// Undeclared inputs of its command.
    pub undeclared: Undeclared,
    /// One sentence for each unusable result that caused a new execution.
    pub refused: Vec<String>,
    /// Success, or the cause of the failure.
    pub result: Result<(), Cause>,
}

impl JobAttempt {
    /// A job without a command so far, with this result.
    pub(crate) fn of(result: Result<(), Cause>) -> Self {
        Self {
            executed: None,
            stderr: String::new(),
            import_cpu: None,
            spared: None,
            origin: Origin::default(),
            key: None,
            phases: Phases::default(),
            undeclared: Undeclared::default(),
            refused: Vec::new(),
            result,
        }
    }

    /// Takes in the result of its command.
    fn ran(&mut self, mut executed: Executed) {
        self.phases.command = Some(executed.span);
        self.stderr = executed.stderr.text();
        self.origin = match (executed.same_imports, executed.kept) {
            (Some(_), _) => Origin::SameImports,
            (None, true) => Origin::Cache,
            (None, false) => Origin::Ran,
        };
        self.spared = executed.same_imports;
        self.import_cpu = executed.same_imports.and(executed.measured.cpu);
        self.undeclared = std::mem::take(&mut executed.undeclared);
        self.executed = Some(executed);
    }

    /// Whether a worker of an engine ran its command.
    pub(crate) fn ran_elsewhere(&self) -> bool {
        self.executed.as_ref().is_some_and(|executed| executed.worker.is_some())
    }
}

/// Runs one job. In any case no temporary is left, and an earlier output is intact unless the job succeeded.
pub fn run(job: &Job, site: Site, estimate: Duration, context: &Context<'_>) -> JobAttempt {
    let mut outcome = JobAttempt::of(Ok(()));
    outcome.result = attempt(job, site, estimate, context, &mut outcome);
    outcome
}

fn attempt(
    job: &Job,
    site: Site,
    estimate: Duration,
    context: &Context<'_>,
    outcome: &mut JobAttempt,
) -> Result<(), Cause> {
    let io = |source| Cause::Io { label: job.label.clone(), source };
    let interrupted = || Cause::Interrupted { label: job.label.clone() };
    if context.cancel.is_cancelled() {
        return Err(interrupted());
    }
    let keyed =
        context.linker.filter(|_| !context.caches.is_empty()).and_then(|linker| linker.key(&job.label));
    if context.linker.is_some() && context.describer.is_none() && keyed.is_none() {
        let cancel = context.cancel;
        let request =
            ExecutionRequest { job, described: None, outputs: &[], site, estimate, anew: false, cancel };
        return execute_in_linker(&request, context, outcome);
    }
    let begun = Instant::now();
    let expected = if keyed.is_some() { Ok(Expectation::default()) } else { check_inputs(job, context) };
    outcome.phases.verify = Some(Span::since(begun));
    let expected = expected?;
    let expected = Expectation { native: context.expected.or(expected.native), ..expected };

    let staged = job.outputs.iter().map(|(path, _)| path.as_path()).filter(|_| job.backend.is_some());
    let staging = Staging::new(context.staging, staged).map_err(io)?;
    let outputs = staging.outputs(&job.outputs);
    let begun = Instant::now();
    let described = match &keyed {
        Some(key) => Some(Described::of_key(key)),
        None => context.describer.and_then(|describer| describer.describe(job)),
    };
    let described = described.as_ref();
    let keyed = context.linker.filter(|_| keyed.is_some());
    outcome.key = described.filter(|_| !context.caches.is_empty()).map(|described| described.key().0);
    let work = VerifiedJob { job, context, outputs: &outputs, expected, described, keyed };
    let found = work.find(site).map_err(io)?;
    let looked = !context.caches.is_empty();
    outcome.phases.lookup = looked.then(|| Span::since(begun));

    let begun = Instant::now();
    let result = match found {
        CacheLookup::Hit { stderr, took, is_unobserved } => {
            outcome.origin = Origin::Cache;
            outcome.spared = took;
            outcome.stderr = stderr;
            outcome.undeclared.is_unobserved = is_unobserved;
            Ok(begun)
        }
        found => {
            let anew = matches!(found, CacheLookup::Invalid(_));
            if let CacheLookup::Invalid(Some(why)) = found {
                outcome.refused.push(format!("{why}; the cached result is dropped, and it is compiled anew"));
            }
            let cancel = context.cancel;
            let request =
                ExecutionRequest { job, described, outputs: &outputs, site, estimate, anew, cancel };
            execute(&work, request, outcome)
        }
    };
    let result = result.and_then(|begun| staging.commit().map(|()| begun).map_err(io));
    outcome.phases.commit = result.as_ref().ok().map(|&begun| Span::since(begun));
    result.map(drop)
}

/// Executes a job that needs no files: nothing is verified or cached by content.
fn execute_in_linker(
    request: &ExecutionRequest<'_>,
    context: &Context<'_>,
    outcome: &mut JobAttempt,
) -> Result<(), Cause> {
    outcome.ran(context.execute.execute(request)?);
    Ok(())
}

/// Executes a job without a cached result. Returns the time at which verification of the result began.
fn execute(
    work: &VerifiedJob<'_>,
    mut request: ExecutionRequest<'_>,
    outcome: &mut JobAttempt,
) -> Result<Instant, Cause> {
    let mut is_second = false;
    loop {
        let executed = work.context.execute.execute(&request)?;
        if executed.interrupted {
            outcome.phases.command = Some(executed.span);
            outcome.executed = Some(executed);
            return Err(Cause::Interrupted { label: request.job.label.clone() });
        }
        let kept = executed.kept;
        outcome.ran(executed);
        let begun = Instant::now();
        let accepted = outcome.executed.as_ref().map(|executed| work.accept(executed, &outcome.undeclared));
        let Some(Err(cause)) = accepted else { return Ok(begun) };
        // Other actions write into their places, where an earlier output may be.
        let is_of_object = work.job.backend.is_some() && cause.refusal().is_some_and(Refusal::is_of_object);
        if kept && !request.anew {
            // An engine's cached result may be another client's mistake.
            outcome
                .refused
                .push(format!("{cause}; the engine's cached result is dropped, and it is executed anew"));
        } else if is_of_object && !is_second {
            // A full disk or a worker may be at fault, and the next attempt may succeed.
            is_second = true;
            outcome.refused.push(format!("{cause}; it is tried once more"));
        } else {
            return Err(cause);
        }
        work.clear();
        request.anew = true;
    }
}

/// Verifies the inputs of a backend compilation. Returns the expected format and contents of its object.
fn check_inputs(job: &Job, context: &Context<'_>) -> Result<Expectation, Refused> {
    // The check below refuses unreadable inputs in clearer words.
    let _ = job.inputs().try_for_each(|input| context.digests.watch(input));
    job.backend.as_ref().map_or(Ok(Expectation::default()), |backend| context.modules.check(backend))
}

/// The result of a cache lookup.
enum CacheLookup {
    Miss,
    /// A result: the standard error of its command, how long that took, and whether nobody observed its reads.
    Hit {
        stderr: String,
        took: Option<Duration>,
        is_unobserved: bool,
    },
    /// An invalid result, and the reason; without a reason where the cache itself has lost it.
    Invalid(Option<String>),
}

/// A job after verification of its inputs.
struct VerifiedJob<'a> {
    job: &'a Job,
    context: &'a Context<'a>,
    outputs: &'a [Output<'a>],
    /// Expected format and contents of the object.
    expected: Expectation,
    /// `None` for a job without caching.
    described: Option<&'a Described<'a>>,
    /// The linker, if caches have the object by the linker's key. It has loaded the inputs, so they are not checked.
    keyed: Option<&'a dyn Linker>,
}

impl VerifiedJob<'_> {
    fn check(&self, status: ExitStatus, stderr: &Captured) -> Result<(), Refused> {
        let Some(linker) = self.keyed else {
            return check_result(&self.job.label, status, stderr, self.outputs, &self.expected);
        };
        let expected = linker.expectation(&self.job.label).map_err(Refusal::from);
        let expected = expected.map_err(Refused::about(&self.job.label))?;
        check_result(&self.job.label, status, stderr, self.outputs, &expected)
    }

    /// Looks for a cached result. The outputs of a hit are in the command's output files, and are verified like a
    /// command's.
    fn find(&self, site: Site) -> Result<CacheLookup, IoError> {
        match self.described {
            Some(described) => self.find_as(described, site),
            None => Ok(CacheLookup::Miss),
        }
    }

    /// Returns an input that has changed since the first look at it.
    fn changed_input(&self) -> Result<Option<String>, IoError> {
        for input in self.job.inputs().filter(|_| self.keyed.is_none()) {
            if !self.context.digests.is_unchanged(input)? {
                return Ok(Some(input.to_string()));
            }
        }
        Ok(None)
    }

    fn find_as(&self, described: &Described<'_>, site: Site) -> Result<CacheLookup, IoError> {
        let mut hit = None;
        for cache in self.context.caches {
            hit = cache.find(described, self.outputs, site)?;
            if hit.is_some() {
                break;
            }
        }
        let Some(hit) = hit else {
            self.clear();
            return Ok(CacheLookup::Miss);
        };
        let stderr = Captured::from(hit.stderr.as_slice());
        if let Err(refused) = self.check(ExitStatus::default(), &stderr) {
            self.clear();
            let is_lost = matches!(*refused.refusal, Refusal::NoOutput { .. });
            return Ok(CacheLookup::Invalid((!is_lost).then(|| refused.to_string())));
        }
        self.fill()?;
        if hit.is_far {
            self.keep(&stderr.text(), Measured::default(), true, false, None);
        }
        let Hit { took, is_unobserved, .. } = hit;
        Ok(CacheLookup::Hit { stderr: stderr.text(), took, is_unobserved })
    }

    /// Removes files that could pass for the outputs of a command that writes nothing.
    fn clear(&self) {
        for Output { file, .. } in self.outputs {
            // A file that cannot be removed is refused again.
            if fs::remove_file(file).is_err() {
                let _ = fs::remove_dir_all(file);
            }
        }
    }

    /// Verifies the command's outputs, and stores them in the caches.
    fn accept(&self, executed: &Executed, undeclared: &Undeclared) -> Result<(), Cause> {
        let job = self.job;
        let io = |source| Cause::Io { label: job.label.clone(), source };
        // Comes first: a compiler's message about a half-made change does not help.
        if let Some(path) = self.changed_input().map_err(io)? {
            return Err(Refused::about(&job.label)(Refusal::InputChanged { path }).into());
        }
        if self.context.linker.is_none() || executed.worker.is_some() {
            self.check(executed.status, &executed.stderr)?;
        }
        self.fill().map_err(io)?;
        // Its key does not cover undeclared inputs.
        if undeclared.is_empty() {
            let by_engine = executed.worker.is_some();
            let other = self.context.linker.and_then(|linker| linker.other_key(&self.job.label));
            let other = other.map(|key| Described::of_key(&key));
            let is_unobserved = undeclared.is_unobserved;
            let wall = executed.same_imports.unwrap_or(executed.measured.wall);
            let measured = Measured { wall, ..executed.measured };
            self.keep(&executed.stderr.text(), measured, by_engine, is_unobserved, other.as_ref());
        }
        Ok(())
    }

    /// Creates optional outputs for which the compiler had no contents.
    fn fill(&self) -> Result<(), IoError> {
        let is_lacking = |output: &&Output<'_>| output.role == Role::DwoIfAny && !output.file.exists();
        for Output { file, .. } in self.outputs.iter().filter(is_lacking) {
            fs::write(file, "").map_err(IoError::on("write", file))?;
        }
        Ok(())
    }

    /// Stores a verified result in the caches, if there are any; in those of other machines also as `other`.
    fn keep(
        &self,
        stderr: &str,
        measured: Measured,
        by_engine: bool,
        is_unobserved: bool,
        other: Option<&Described<'_>>,
    ) {
        let Some(described) = self.described else { return };
        let output = |&Output { role, name, ref file, .. }| NewOutput { role, name: name.as_str(), file };
        let outputs: Vec<_> = self.outputs.iter().map(output).collect();
        let (module, stderr) = (self.job.label.as_str(), stderr.as_bytes());
        let result =
            NewResult { module, outputs: &outputs, stderr, measured, by_engine, is_unobserved, note: "" };
        for cache in self.context.caches {
            cache.keep(described, &result);
            if let Some(other) = other.filter(|_| cache.is_far()) {
                cache.keep(other, &NewResult { by_engine: false, ..result });
            }
        }
    }
}
