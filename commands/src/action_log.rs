//! The log of a graph's actions: their inputs and outputs in the last run, and which of them have to run again.
//!
//! Content decides; times never do. The log grows as actions end, so that a killed run repeats only unfinished
//! actions. Its lines define files, each a path with a content under a number, and actions by these numbers.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, RwLock};

use camino::{Utf8Path, Utf8PathBuf};
use distlto_executor::run::{Hooks, Made};
use distlto_planner::digests::{Digest, FileDigests};
use distlto_planner::graph::{ActionGraph, ActionId, FileId};
use distlto_planner::state::Place;
use distlto_prepare::frame::Framed;
use distlto_prepare::io_error::IoError;
use distlto_prepare::json_lines::{JsonLines, line};
use distlto_prepare::mutex::lock;
use distlto_record::action::{ActionRecord, ActionStatus};
use distlto_record::progress::Reporter;
use distlto_record::why::{Change, ChangeKind, Explainer};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

const HEADER: &str = "distlto actions 1\n";

/// Outdated lines beyond the live ones that a log may have, so that small logs are not rewritten all the time.
const SLACK: usize = 1024;

/// A line of the log.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum LogLine {
    File { number: u32, path: Utf8PathBuf, content: String },
    Action(LoggedAction),
}

/// An action when it ran last. Its first output names it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct LoggedAction {
    /// The digest of its command.
    command: String,
    /// Numbers of files.
    inputs: Vec<u32>,
    outputs: Vec<u32>,
}

/// A path with a content.
type Version = (Utf8PathBuf, Digest);

/// The entries of a log.
#[derive(Debug, Default)]
struct Logged {
    files: HashMap<u32, Version>,
    numbers: HashMap<Version, u32>,
    actions: HashMap<Utf8PathBuf, LoggedAction>,
}

/// The log of one graph, with the contents of files as they are now.
#[derive(Debug)]
pub struct ActionLog {
    lines: Mutex<JsonLines>,
    logged: RwLock<Logged>,
    digests: FileDigests,
    digests_path: PathBuf,
}

impl ActionLog {
    /// Reads the log in a state directory. Relative paths of files begin in `root`. Unusable parts cost time only.
    pub fn read(directory: &Path, root: &Path) -> Self {
        Self::of(directory, root).0
    }

    /// The same for a run, which holds the lock of the directory. Drops outdated lines if they are the most.
    pub fn open(directory: &Path, root: &Path) -> Result<Self, IoError> {
        let (log, lines) = Self::of(directory, root);
        let live = log.with(Logged::live);
        if lines > SLACK + 2 * live.len() {
            let live: Vec<String> = live.iter().map(line).collect();
            lock(&log.lines).replace(&live)?;
        }
        Ok(log)
    }

    fn of(directory: &Path, root: &Path) -> (Self, usize) {
        let lines = JsonLines::new(&Place::ActionLog.path(directory), HEADER);
        let read: Vec<LogLine> = lines.read();
        let count = read.len();
        let mut logged = Logged::default();
        read.into_iter().for_each(|line| logged.take(line));
        let digests_path = Place::Digests.path(directory);
        let (digests, _) = FileDigests::load(&digests_path, root);
        (Self { lines: Mutex::new(lines), logged: RwLock::new(logged), digests, digests_path }, count)
    }

    fn with<T>(&self, use_it: impl FnOnce(&Logged) -> T) -> T {
        use_it(&self.logged.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The contents of files.
    pub fn digests(&self) -> &FileDigests {
        &self.digests
    }

    /// Why an action has to run, its dependencies having run; nothing if it is up to date. An input that no action
    /// makes and that is missing is an error.
    pub fn changes(&self, explainer: &Explainer<'_>, id: ActionId) -> Result<Vec<Change>, IoError> {
        let graph = explainer.graph();
        self.with(|logged| {
            let Some(earlier) = logged.action(graph, id) else {
                return Ok(vec![Change::of(ChangeKind::FirstTime)]);
            };
            if earlier.command != command(graph, id) {
                return Ok(vec![Change::of(ChangeKind::Command)]);
            }
            let versions = |numbers: &[u32]| -> HashMap<&Utf8Path, Digest> {
                let versions = numbers.iter().filter_map(|number| logged.files.get(number));
                versions.map(|(path, content)| (path.as_path(), *content)).collect()
            };
            let written = versions(&earlier.outputs);
            for path in graph.action(id).outputs().map(|output| graph.path(output)) {
                let what = match self.content(path)? {
                    None => ChangeKind::OutputMissing,
                    Some(content) if written.get(path) != Some(&content) => ChangeKind::OutputChanged,
                    Some(_) => continue,
                };
                return Ok(vec![Change::named(what, path.as_str())]);
            }
            self.changed_inputs(explainer, id, versions(&earlier.inputs))
        })
    }

    fn changed_inputs(
        &self,
        explainer: &Explainer<'_>,
        id: ActionId,
        mut read: HashMap<&Utf8Path, Digest>,
    ) -> Result<Vec<Change>, IoError> {
        let graph = explainer.graph();
        let (mut changed, mut added) = (Vec::new(), Vec::new());
        let mut inputs: HashSet<FileId> = HashSet::new();
        for input in graph.action(id).inputs().filter(|input| inputs.insert(*input)) {
            let path = graph.path(input);
            let now = self.content(path)?;
            if now.is_none() && graph.producer(input).is_none() {
                return Err(IoError::on("read", path)(io::ErrorKind::NotFound.into()));
            }
            match read.remove(path) {
                None => added.push(Change::named(ChangeKind::InputAdded, path.as_str())),
                before if before != now => changed.push(explainer.input(id, path)),
                Some(_) => {}
            }
        }
        let mut removed: Vec<_> = read.into_keys().collect();
        removed.sort_unstable();
        let removed = removed.into_iter().map(|path| Change::named(ChangeKind::InputRemoved, path.as_str()));
        Ok(changed.into_iter().chain(added).chain(removed).collect())
    }

    /// Returns why actions and all their dependencies may have to run, in an order they can run in. An action that
    /// reads the output of an outdated one may have to: the output may turn out to be the same.
    pub fn changes_of_all(
        &self,
        explainer: &Explainer<'_>,
        wanted: &[ActionId],
    ) -> Result<Vec<(ActionId, Vec<Change>)>, IoError> {
        let graph = explainer.graph();
        let actions = with_dependencies(graph, wanted);
        let own = actions.par_iter().with_min_len(16).map(|&id| Ok((id, self.changes(explainer, id)?)));
        let mut found = own.collect::<Result<Vec<_>, IoError>>()?;
        let mut runs = vec![false; graph.actions().len()];
        for (id, why) in &mut found {
            if why.is_empty()
                && let Some(dependency) = graph.dependencies(*id).into_iter().find(|id| runs[id.index()])
            {
                why.push(Change::named(ChangeKind::Dependency, &graph.action(dependency).label));
            }
            runs[id.index()] = !why.is_empty();
        }
        Ok(found)
    }

    /// Describes actions before they run: why they have to, or that they are up to date.
    pub fn known(&self, graph: &ActionGraph, found: Vec<(ActionId, Vec<Change>)>) -> Vec<ActionRecord> {
        self.with(|logged| {
            let known = |(id, why): (ActionId, Vec<Change>)| {
                let mut action = ActionRecord::of(graph, id);
                let written = logged.action(graph, id).map_or(&[][..], |earlier| &earlier.outputs);
                for (path, content) in written.iter().filter_map(|number| logged.files.get(number)) {
                    if let Some(output) = action.outputs.iter_mut().find(|output| output.path == *path) {
                        output.before = Some(content.to_string());
                    }
                }
                if why.is_empty() {
                    action.result = ActionStatus::Kept;
                    action.outputs.iter_mut().for_each(|output| output.after.clone_from(&output.before));
                }
                action.why = why;
                action
            };
            found.into_iter().map(known).collect()
        })
    }

    /// Records that an action ran.
    pub fn finished(&self, graph: &ActionGraph, id: ActionId) -> Result<(), IoError> {
        let action = graph.action(id);
        action.outputs().for_each(|output| self.digests.forget(graph.path(output)));
        let version = |file: FileId| -> Result<Version, IoError> {
            let path = graph.path(file);
            Ok((path.to_owned(), self.digests.digest(path)?))
        };
        let inputs = action.inputs().map(version).collect::<Result<Vec<_>, IoError>>()?;
        let outputs = action.outputs().map(version).collect::<Result<Vec<_>, IoError>>()?;
        let mut logged = self.logged.write().unwrap_or_else(PoisonError::into_inner);
        let mut new = Vec::new();
        let mut numbers = |versions: Vec<Version>| {
            versions.into_iter().map(|version| logged.number(version, &mut new)).collect()
        };
        let (inputs, outputs) = (numbers(inputs), numbers(outputs));
        new.push(LogLine::Action(LoggedAction { command: command(graph, id), inputs, outputs }));
        let mut lines = lock(&self.lines);
        for line in new {
            lines.append(&line)?;
            logged.take(line);
        }
        Ok(())
    }

    /// Saves the digests for the next run.
    pub fn save(&self) -> Result<(), IoError> {
        self.digests.save(&self.digests_path)
    }

    /// A file's content, or `None` if there is no such file.
    fn content(&self, path: &Utf8Path) -> Result<Option<Digest>, IoError> {
        match self.digests.digest(path) {
            Ok(digest) => Ok(Some(digest)),
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Logged {
    /// Adds a line. An action with an undefined file is left out: the line of that file is damaged.
    fn take(&mut self, line: LogLine) {
        match line {
            LogLine::File { number, path, content } => {
                // A damaged number may be that of another file.
                if let (Some(content), false) = (Digest::parse(&content), self.files.contains_key(&number)) {
                    self.numbers.insert((path.clone(), content), number);
                    self.files.insert(number, (path, content));
                }
            }
            LogLine::Action(action) => {
                let is_whole =
                    action.inputs.iter().chain(&action.outputs).all(|number| self.files.contains_key(number));
                let name = action.outputs.first().and_then(|number| self.files.get(number));
                if let (true, Some((name, _))) = (is_whole, name) {
                    self.actions.insert(name.clone(), action);
                }
            }
        }
    }

    fn action(&self, graph: &ActionGraph, id: ActionId) -> Option<&LoggedAction> {
        let output = graph.action(id).outputs().next()?;
        self.actions.get(graph.path(output))
    }

    /// The number of a file, which a line defines if it is new.
    fn number(&mut self, version: Version, new: &mut Vec<LogLine>) -> u32 {
        if let Some(&number) = self.numbers.get(&version) {
            return number;
        }
        let free = |number: &u32| !self.files.contains_key(number);
        let number =
            (self.files.len() as u32..).find(free).expect("over four billion files do not fit in memory");
        self.numbers.insert(version.clone(), number);
        self.files.insert(number, version.clone());
        let (path, content) = version;
        new.push(LogLine::File { number, path, content: content.to_string() });
        number
    }

    /// The lines that are not outdated.
    fn live(&self) -> Vec<LogLine> {
        let used = self.actions.values().flat_map(|action| action.inputs.iter().chain(&action.outputs));
        let used: HashSet<u32> = used.copied().collect();
        let files = used.into_iter().filter_map(|number| {
            let (path, content) = self.files.get(&number)?;
            Some(LogLine::File { number, path: path.clone(), content: content.to_string() })
        });
        files.chain(self.actions.values().cloned().map(LogLine::Action)).collect()
    }
}

/// The digest of an action's command.
fn command(graph: &ActionGraph, id: ActionId) -> String {
    let mut framed = Framed::new("distlto command 1");
    graph.command(id).iter().for_each(|word| framed.add("word", word));
    framed.finish().hex()
}

/// The actions and all that they depend on, in the graph's order.
fn with_dependencies(graph: &ActionGraph, wanted: &[ActionId]) -> Vec<ActionId> {
    let mut seen = vec![false; graph.actions().len()];
    let mut left = wanted.to_vec();
    while let Some(id) = left.pop() {
        if !std::mem::replace(&mut seen[id.index()], true) {
            left.extend(graph.dependencies(id));
        }
    }
    graph.actions().map(|(id, _)| id).filter(|id| seen[id.index()]).collect()
}

/// Records each action of a run as it finishes, and reports its outputs.
pub struct Recording<'a> {
    graph: &'a ActionGraph,
    log: &'a ActionLog,
    reporter: &'a Reporter,
    error: RefCell<Option<IoError>>,
}

impl<'a> Recording<'a> {
    /// Into this log.
    pub fn new(graph: &'a ActionGraph, log: &'a ActionLog, reporter: &'a Reporter) -> Self {
        Self { graph, log, reporter, error: RefCell::new(None) }
    }

    fn record(&self, action: ActionId) -> Result<(), IoError> {
        self.log.finished(self.graph, action)?;
        let outputs = self.graph.action(action).outputs().map(|output| self.graph.path(output));
        let written = outputs.map(|path| Ok((path.to_string(), self.log.digests.digest(path)?.to_string())));
        self.reporter.wrote(action, written.collect::<Result<Vec<_>, IoError>>()?);
        Ok(())
    }

    /// The first record that could not be written.
    pub fn result(self) -> Result<(), IoError> {
        self.error.into_inner().map_or(Ok(()), Err)
    }
}

impl Hooks for Recording<'_> {
    fn finished(&self, action: ActionId, made: &Made<'_>) {
        // Its undeclared inputs are not in the graph, so it runs again each time.
        if !made.undeclared.is_empty() {
            return;
        }
        if let Err(error) = self.record(action) {
            self.error.borrow_mut().get_or_insert(error);
        }
    }
}
