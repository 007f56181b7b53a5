//! All output of a command, from its beginning to its end: to people, to readers of events, to a log, into a trace.
//!
//! Records everything, and hands it on. At the end it concludes: one summary from the record, and the trace, which is
//! written however the command ended. Events may come from any thread.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use camino::Utf8Path;
use distlto_planner::digests::Digest;
use distlto_planner::graph::{ActionGraph, ActionId};
use distlto_planner::shard::{self, Shard};
use distlto_prepare::io_error::IoError;
use distlto_prepare::message::say;
use distlto_prepare::mutex::lock;
use distlto_prepare::regular;
use distlto_prepare::warning::warn;
use distlto_prepare::write::write_atomically;

use super::event::{Phase, Progress, ProgressEvent, Style};
use super::json::JsonProgress;
use super::recorded::{Recorded, SharedRecord};
use super::shell::TextProgress;
use crate::action::ActionRecord;
use crate::cause::FailureCause;
use crate::report::Counts;
use crate::report::summary::{Expensive, Summary};
use crate::run::{self, GraphFile, RunRecord};
use crate::trace;
use crate::usage::LinkUsage;
use crate::why::Change;

/// How often a log gets a line of progress.
const PERIOD: Duration = Duration::from_secs(10);

/// The program that reports, and how much.
#[derive(Debug, Clone, Copy)]
pub struct Profile {
    /// The program's name, with which its lines begin.
    pub program: &'static str,
    /// Whether a person started it, rather than a linker.
    pub is_command: bool,
    /// A run that took this long is worth a line even where no terminal is.
    pub worth_a_line: Duration,
    /// Whether it is one of the links of a build, which prints too: it says how a long link stands, and no more.
    pub is_of_build: bool,
}

impl Profile {
    /// A command of its own: `distlto link`, `distlto run`.
    pub const COMMAND: Self =
        Self { program: "distlto", is_command: true, worth_a_line: PERIOD, is_of_build: false };
    /// A link of a build.
    pub const LINK_OF_BUILD: Self = Self { is_of_build: true, ..Self::COMMAND };
    /// A distributor inside of a link, between the link's own output. Tests of a configure script link small programs,
    /// and some take any output for a warning.
    pub const DISTRIBUTOR: Self = Self {
        program: "distlto-distribute",
        is_command: false,
        worth_a_line: Duration::from_secs(1),
        ..Self::COMMAND
    };
}

/// Reports events.
pub struct Reporter {
    profile: Profile,
    style: Style,
    recorded: SharedRecord,
    inner: Mutex<Box<dyn Progress + Send>>,
    log: Option<Mutex<JsonProgress<File>>>,
    trace: Option<PathBuf>,
    /// Of all runs so far.
    counts: Mutex<Option<Counts>>,
    concluded: AtomicBool,
}

impl Reporter {
    /// From here on. A trace is written to a file in a directory that is there.
    pub fn new(
        profile: Profile,
        style: Style,
        trace: Option<&Path>,
        log: Option<JsonProgress<File>>,
    ) -> Result<Self, IoError> {
        if let Some(parent) = trace.and_then(Path::parent).filter(|parent| !parent.as_os_str().is_empty()) {
            // Hours of work are not to end in this.
            parent.read_dir().map_err(IoError::on("write the trace into", parent))?;
        }
        let mut recorded = Recorded::new(Instant::now());
        recorded.run = begun(profile.program);
        let recorded = recorded.shared();
        let log_lines = || TextProgress::log(recorded.clone(), style, io::stderr());
        let inner: Box<dyn Progress + Send> = match style {
            Style { json: true, .. } => Box::new(JsonProgress::new(io::stdout())),
            Style { verbose: true, .. } | Style { quiet: true, .. } => Box::new(log_lines()),
            _ if profile.is_of_build => Box::new(log_lines().every(PERIOD, profile)),
            _ if draws() => Box::new(TextProgress::terminal(recorded.clone())),
            _ => Box::new(log_lines().every(PERIOD, profile)),
        };
        Ok(Self {
            profile,
            style,
            recorded,
            inner: Mutex::new(inner),
            log: log.map(Mutex::new),
            trace: trace.map(Path::to_owned),
            counts: Mutex::default(),
            concluded: AtomicBool::new(false),
        })
    }

    /// Shows a part of the command while it lasts.
    pub fn during<T>(&self, name: &'static str, body: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        self.report(ProgressEvent::Phase(Phase { name, start, end: None }));
        let result = body();
        self.report(ProgressEvent::Phase(Phase { name, start, end: Some(Instant::now()) }));
        result
    }

    /// Adds facts to the record that no event has.
    pub fn describe(&self, add: impl FnOnce(&mut RunRecord)) {
        add(&mut lock(&self.recorded).run);
    }

    /// Records the file of the plan or graph. A file that cannot be read is left out of the record.
    pub fn graph(&self, file: &Path) {
        let digest = regular::read(file).ok().map(|bytes| Digest::of(&bytes).to_string());
        let graph = digest.map(|digest| GraphFile { file: file.display().to_string(), digest });
        self.describe(|run| run.graph = graph);
    }

    /// The command has ended, with this exit code and for this reason: writes the record into its state directory.
    pub fn keep(&self, state: &Path, exit_code: u8, failure: Option<FailureCause>) {
        self.conclude("", None, None);
        let mut recorded = lock(&self.recorded);
        let wall_us = recorded.since(Instant::now());
        let run = &mut recorded.run;
        run.wall_us = wall_us;
        run.exit_code = Some(exit_code);
        run.failure = failure;
        run.state = Some(state.display().to_string());
        run.bound_samples();
        if let Err(error) = run::write(state, run) {
            // The link is done or has failed for a reason of its own.
            say(format_args!("{}: warning: no record of the run was kept: {error}", self.profile.program));
        }
    }

    /// The use of the link whose record was kept.
    pub fn usage(&self) -> LinkUsage {
        LinkUsage::of(&lock(&self.recorded).run)
    }

    /// Records the actions of a graph that is about to be run, also those that will not be started.
    pub fn record_actions(&self, actions: Vec<ActionRecord>) {
        lock(&self.recorded).actions(actions);
    }

    /// Records actions that arrive while a run lasts, in any order with the run's own events. After an earlier run of
    /// the command, call [`Reporter::record_actions`] first, if only with nothing: the numbers of actions begin anew.
    pub fn record_more_actions(&self, actions: Vec<ActionRecord>) {
        lock(&self.recorded).more_actions(actions);
    }

    /// Records why an action has to run, found after its dependencies had run.
    pub fn because(&self, action: ActionId, why: Vec<Change>) {
        lock(&self.recorded).because(action, why);
    }

    /// Records the outputs of an action: each file with its content's digest.
    pub fn wrote(&self, action: ActionId, outputs: impl IntoIterator<Item = (String, String)>) {
        lock(&self.recorded).wrote(action, outputs);
    }

    /// Ends the command: reports the summary, and writes the trace. The link is called `what`; `graph` was run in
    /// `directory`.
    pub fn conclude(&self, what: &str, graph: Option<&ActionGraph>, directory: Option<&Path>) {
        if self.concluded.swap(true, Ordering::Relaxed) {
            return;
        }
        let recorded = lock(&self.recorded);
        let now = recorded.since(Instant::now());
        let mut summary = Summary::of(&recorded.run, now);
        let trace = self.trace.as_deref().map(|path| (path, trace::to_bytes(&recorded.run, now)));
        drop(recorded);
        if let Some(graph) = graph.filter(|_| self.style.json || self.style.verbose || self.log.is_some()) {
            fill_imports(&mut summary, graph, directory);
        }
        let counts = lock(&self.counts).take();
        if let Some(counts) = counts {
            let event = ProgressEvent::Concluded(counts, &summary);
            if self.style.json {
                lock(&self.inner).report(event);
            }
            self.log(event);
            self.say(what, &summary, counts);
        }
        if let Some((path, trace)) = trace
            && let Err(error) = write_atomically(path, &trace)
        {
            // The link is done or has failed for a reason of its own.
            warn(format_args!("no trace was written: {error}"));
        }
    }

    /// The summary for people.
    fn say(&self, what: &str, summary: &Summary, counts: Counts) {
        let started = summary.ran + summary.cached + summary.same_imports + summary.failed > 0;
        let is_of_build = self.profile.is_of_build && !self.style.verbose;
        if self.style.json || self.style.quiet || is_of_build || !started {
            return;
        }
        let failed = counts.unfinished() > 0;
        let seen = io::stderr().is_terminal() || summary.makespan >= self.profile.worth_a_line;
        if self.style.verbose || seen && !failed {
            say(format_args!("{}: {}", self.profile.program, summary.sentence(what)));
        }
        if self.style.verbose && !failed {
            summary.lines().iter().for_each(say);
        }
    }

    fn log(&self, event: ProgressEvent<'_>) {
        if let Some(log) = &self.log {
            lock(log).report(event);
        }
    }

    /// Adds up the counts of a run that ended, and shows them.
    fn ended(&self, inner: &dyn Progress, counts: Counts, wall: Duration) {
        let mut all = lock(&self.counts);
        let sum = all.unwrap_or_default() + counts;
        *all = Some(sum);
        lock(&self.recorded).run.counts = sum;
        let failed = counts.unfinished() > 0;
        // A distributor has a line of its own for a failure, and the conclusion reports a success.
        let shown = if failed && self.profile.is_command {
            counts
        } else {
            Counts { done: counts.done, ..Counts::default() }
        };
        if !self.style.json && (failed || !self.style.verbose) {
            inner.report(ProgressEvent::Ended(shown, wall));
        }
    }
}

/// Returns the record of a command at its beginning.
fn begun(program: &str) -> RunRecord {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    RunRecord {
        version: run::VERSION,
        begun_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        program: format!("{program} {}", env!("CARGO_PKG_VERSION")),
        process: std::process::id(),
        command_line: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        host: Some(rustix::system::uname().nodename().to_string_lossy().into_owned()),
        directory: std::env::current_dir().unwrap_or_default().display().to_string(),
        ..RunRecord::default()
    }
}

/// Fills in instructions and imports of expensive backends, from the few index shards that a summary names. No link
/// fails for its summary, so an unreadable shard is left out. The graph's actions are those that ran in `directory`, by label.
fn fill_imports(summary: &mut Summary, graph: &ActionGraph, directory: Option<&Path>) {
    for one in &mut summary.expensive {
        // Not there if the summary is one of several graphs.
        let _ = fill_one(one, graph, directory);
    }
}

fn fill_one(one: &mut Expensive, graph: &ActionGraph, directory: Option<&Path>) -> Option<()> {
    let mut labelled = graph.actions().map(|(_, action)| action).filter(|action| action.label == one.label);
    let backend = labelled.find_map(|action| action.backend())?;
    let place = |path: &Utf8Path| match directory {
        Some(directory) => directory.join(path),
        None => path.as_std_path().to_owned(),
    };
    let shard = shard::read(&regular::read(&place(graph.path(backend.shard))).ok()?).ok()?;
    // A module in an archive is known by its label.
    let own = [graph.path(backend.module).as_str(), &one.label].into_iter().find(|own| names(&shard, own))?;
    let imports = shard.imported_from(own).map(|import| (import.name().into_owned(), import.instructions));
    one.imports = imports.collect();
    one.imports.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    one.own_instructions = shard.cost(own).ok()?.own_instructions;
    Some(())
}

fn names(shard: &Shard, module: &str) -> bool {
    shard.modules.iter().any(|named| named.path == module.as_bytes())
}

/// Whether a line on standard error can be drawn again.
fn draws() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.conclude("", None, None);
    }
}

impl Progress for Reporter {
    fn report(&self, event: ProgressEvent<'_>) {
        let now = Instant::now();
        // Locked first: events are shown in the order in which they are recorded.
        let inner = lock(&self.inner);
        let mut recorded = lock(&self.recorded);
        // A phase that is reported only after its end was never drawn.
        let was_drawn = match event {
            ProgressEvent::Phase(phase) => phase.end.is_none() || recorded.is_known(phase),
            _ => true,
        };
        recorded.report(event, now);
        drop(recorded);
        match event {
            ProgressEvent::Ended(counts, wall) => return self.ended(&**inner, counts, wall),
            ProgressEvent::Noted(text) if self.style.verbose && !self.style.json => {
                say(format_args!("{}: note: {text}", self.profile.program));
            }
            _ => {}
        }
        if was_drawn || self.style.json {
            inner.report(event);
        }
        if !matches!(event, ProgressEvent::Printed(_)) {
            self.log(event);
        }
    }
}
