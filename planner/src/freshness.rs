//! Which actions have to run, and why: compares what an action would read with what it read last time.
//!
//! Content decides; times never do. Knows nothing of how actions run: a runner appends to the
//! [`ActionLog`] what an action read and wrote, and asks again before the next run.

mod line;
mod log;

use std::collections::HashMap;
use std::fmt;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use distlto_prepare::frame;
use distlto_prepare::io_error::IoError;
use rayon::prelude::*;

use crate::digests::{Digest, FileDigests, Hasher};
use crate::graph::{Action, ActionGraph, ActionId, FileId};

pub use log::{ActionLog, RanAction};
use log::{LogContents, Stored};

/// Why an action has to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The log has no record of it.
    NeverRun,
    /// A file that it writes is not there.
    OutputMissing(Utf8PathBuf),
    /// A file that it writes is not as it left it.
    OutputChanged(Utf8PathBuf),
    /// Its command has other words.
    CommandChanged,
    /// It reads other files than before.
    InputsChanged {
        /// Files that it did not read before, sorted.
        added: Vec<Utf8PathBuf>,
        /// Files that it read before only, sorted.
        removed: Vec<Utf8PathBuf>,
        /// Files that it read before too, and whose content differs, in the order in which it reads them.
        changed: Vec<Utf8PathBuf>,
    },
    /// The content of a file that it reads differs; the first such file.
    InputChanged(Utf8PathBuf),
    /// The action of this label runs, and writes a file that this one reads. What it writes may turn out to
    /// be what was there, so this is a reason for a dry run only: a runner runs the dependency, and then
    /// asks [`check_action`].
    DependencyRuns(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverRun => out.write_str("there is no record of an earlier run"),
            Self::OutputMissing(path) => write!(out, "its output {path} is missing"),
            Self::OutputChanged(path) => write!(out, "its output {path} was changed by something else"),
            Self::CommandChanged => out.write_str("its command changed"),
            Self::InputsChanged { added, removed, changed } => {
                let some = |what: &str, files: &[Utf8PathBuf]| {
                    (!files.is_empty()).then(|| format!("{what} {}", Files(files)))
                };
                let lists = [some("also reads", added), some("no longer reads", removed)];
                let lists: Vec<String> = lists.into_iter().flatten().collect();
                write!(out, "it {}", lists.join(" and "))?;
                if changed.is_empty() {
                    Ok(())
                } else {
                    write!(out, ", and its input {} changed", Files(changed))
                }
            }
            Self::InputChanged(path) => write!(out, "its input {path} changed"),
            Self::DependencyRuns(label) => write!(out, "it reads what {label} writes, which runs"),
        }
    }
}

/// A list of files for a sentence: the first one, and how many more.
struct Files<'a>(&'a [Utf8PathBuf]);

impl fmt::Display for Files<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => out.write_str("nothing"),
            [one] => write!(out, "{one}"),
            [first, rest @ ..] => write!(out, "{first} and {} more", rest.len()),
        }
    }
}

/// What would run, and why, for the wanted actions and all that they depend on, in an order they can run
/// in; `None` for an action that is up to date. Writes nothing. An error is an input that no action makes
/// and that cannot be read, or an output that cannot be.
pub fn check(
    graph: &ActionGraph,
    wanted: &[ActionId],
    log: &ActionLog,
    digests: &FileDigests,
) -> Result<Vec<(ActionId, Option<Reason>)>, IoError> {
    let contents = log.contents();
    let actions = with_dependencies(graph, wanted);
    let records: Vec<_> = actions.par_iter().map(|&id| contents.record(graph, id)).collect();

    // Each file is looked at once, however many actions read it; those of unrecorded actions not at all.
    let mut asked = vec![false; graph.files().len()];
    for (&id, _) in actions.iter().zip(&records).filter(|(_, record)| record.is_some()) {
        let action = graph.action(id);
        for file in action.inputs().chain(action.outputs()) {
            asked[file.0 as usize] = true;
        }
    }
    let files: Vec<_> = graph.files().collect();
    let states = files
        .par_iter()
        .zip(asked)
        .with_min_len(64)
        .map(|(path, asked)| {
            Ok(FileNow {
                digest: if asked { content(digests, path)? } else { None },
                logged: if asked { contents.path(path) } else { None },
            })
        })
        .collect::<Result<Vec<_>, IoError>>()?;
    let file = |id: FileId| Ok(states[id.0 as usize]);

    let prefixes: Vec<_> = graph.prefixes().map(prefix_hasher).collect();
    let own = actions
        .par_iter()
        .zip(&records)
        .with_min_len(64)
        .map(|(&id, &record)| {
            let action = graph.action(id);
            let hasher = action.prefix.map(|prefix| prefixes[prefix.0 as usize].clone()).unwrap_or_default();
            own_reason(graph, action, record, &contents, command_digest(hasher, action), file)
        })
        .collect::<Result<Vec<_>, IoError>>()?;

    let mut runs = vec![false; graph.actions().len()];
    let mut found = Vec::with_capacity(actions.len());
    for (&id, own) in actions.iter().zip(own) {
        let reason = own.or_else(|| {
            let runs = |id: &ActionId| runs[id.index()];
            let dependency = graph.dependencies(id).into_iter().find(runs)?;
            Some(Reason::DependencyRuns(graph.action(dependency).label.clone()))
        });
        runs[id.index()] = reason.is_some();
        found.push((id, reason));
    }
    Ok(found)
}

/// Whether one action has to run, its dependencies having run. The digests of its inputs that this looks up
/// are the ones that [`finished`] records, so an input that changes while the action runs is seen next time.
/// An input that is missing is an error, as the action could not run.
pub fn check_action(
    graph: &ActionGraph,
    id: ActionId,
    log: &ActionLog,
    digests: &FileDigests,
) -> Result<Option<Reason>, IoError> {
    let action = graph.action(id);
    for input in action.inputs() {
        digests.digest(graph.path(input))?;
    }
    let contents = log.contents();
    let record = contents.record(graph, id);
    let hasher = action.prefix.map(|prefix| prefix_hasher(graph.prefix_words(prefix))).unwrap_or_default();
    own_reason(graph, action, record, &contents, command_digest(hasher, action), |id| {
        let path = graph.path(id);
        Ok(FileNow { digest: content(digests, path)?, logged: contents.path(path) })
    })
}

/// Records that an action ran: appends to the log what it read, as [`check_action`] saw it, and what it
/// wrote. Forgets the outputs' earlier digests.
pub fn finished(
    graph: &ActionGraph,
    id: ActionId,
    log: &ActionLog,
    digests: &FileDigests,
) -> Result<(), IoError> {
    for output in graph.action(id).outputs() {
        digests.forget(graph.path(output));
    }
    record(graph, id, log, digests)
}

/// The same without forgetting.
fn record(graph: &ActionGraph, id: ActionId, log: &ActionLog, digests: &FileDigests) -> Result<(), IoError> {
    let action = graph.action(id);
    let hasher = action.prefix.map(|prefix| prefix_hasher(graph.prefix_words(prefix))).unwrap_or_default();
    let version = |id| -> Result<_, IoError> {
        let path = graph.path(id);
        Ok((path.to_owned(), digests.digest(path)?))
    };
    log.append(&RanAction {
        command: command_digest(hasher, action),
        inputs: action.inputs().map(version).collect::<Result<_, _>>()?,
        outputs: action.outputs().map(version).collect::<Result<_, _>>()?,
    })
}

/// Which of an action's inputs are not what they were when it last ran; a file that cannot be looked at is one.
pub fn changed_inputs(
    graph: &ActionGraph,
    id: ActionId,
    log: &ActionLog,
    digests: &FileDigests,
) -> Vec<Utf8PathBuf> {
    let contents = log.contents();
    let Some(record) = contents.record(graph, id) else { return Vec::new() };
    let known: HashMap<u32, Digest> = record.inputs.iter().map(|&number| contents.version(number)).collect();
    let paths = graph.action(id).inputs().map(|input| graph.path(input));
    let is_other = |path: &&Utf8Path| {
        let known = contents.path(path).and_then(|path| known.get(&path).copied());
        known.is_none() || known != digests.digest(path).ok()
    };
    paths.filter(is_other).map(Utf8Path::to_owned).collect()
}

/// What an action wrote when it last ran, with the contents; nothing if the log has no record of it.
pub fn last_written(graph: &ActionGraph, id: ActionId, log: &ActionLog) -> Vec<(Utf8PathBuf, Digest)> {
    let contents = log.contents();
    let outputs = contents.record(graph, id).map_or(&[][..], |record| &record.outputs);
    let written = |&number| {
        let (path, digest) = contents.version(number);
        (contents.name(path).to_owned(), digest)
    };
    outputs.iter().map(written).collect()
}

/// A file as it is and as the log knows it.
#[derive(Debug, Clone, Copy)]
struct FileNow {
    /// `None` for a file that is not there.
    digest: Option<Digest>,
    /// The log's number of the path, if any record names it.
    logged: Option<u32>,
}

fn own_reason(
    graph: &ActionGraph,
    action: &Action,
    record: Option<&Stored>,
    contents: &LogContents<'_>,
    command: Digest,
    file: impl Fn(FileId) -> Result<FileNow, IoError>,
) -> Result<Option<Reason>, IoError> {
    let Some(record) = record else { return Ok(Some(Reason::NeverRun)) };
    if record.command != command {
        return Ok(Some(Reason::CommandChanged));
    }
    for id in action.outputs() {
        let state = file(id)?;
        let path = || graph.path(id).to_owned();
        match state.digest {
            None => return Ok(Some(Reason::OutputMissing(path()))),
            Some(digest) if record.outputs.iter().any(|&v| contents.is(v, state.logged, digest)) => {}
            Some(_) => return Ok(Some(Reason::OutputChanged(path()))),
        }
    }
    let mut changed = None;
    let mut same_files = action.inputs().count() == record.inputs.len();
    for (index, id) in action.inputs().enumerate() {
        let state = file(id)?;
        if state.digest.is_none() && graph.producer(id).is_none() {
            let path = graph.path(id).as_std_path();
            return Err(IoError::on("read", path)(io::ErrorKind::NotFound.into()));
        }
        let recorded = record.inputs.get(index).map(|&version| contents.version(version));
        same_files &= state.logged.is_some() && recorded.map(|(path, _)| path) == state.logged;
        if changed.is_none() && recorded.map(|(_, digest)| digest) != state.digest {
            changed = Some(id);
        }
    }
    if !same_files {
        return compare_inputs(graph, action, record, contents, file);
    }
    Ok(changed.map(|id| Reason::InputChanged(graph.path(id).to_owned())))
}

/// Compares inputs whose lists differ, be it in order only.
fn compare_inputs(
    graph: &ActionGraph,
    action: &Action,
    record: &Stored,
    contents: &LogContents<'_>,
    file: impl Fn(FileId) -> Result<FileNow, IoError>,
) -> Result<Option<Reason>, IoError> {
    let mut recorded: Vec<_> = record.inputs.iter().map(|&version| contents.version(version)).collect();
    recorded.sort_unstable();
    recorded.dedup();
    let mut kept = vec![false; recorded.len()];
    let (mut added, mut changed) = (Vec::new(), Vec::new());
    for id in action.inputs() {
        let state = file(id)?;
        let place = state.logged.map(|logged| recorded.binary_search_by_key(&logged, |&(path, _)| path));
        match place {
            Some(Ok(place)) => {
                kept[place] = true;
                if Some(recorded[place].1) != state.digest {
                    changed.push(graph.path(id).to_owned());
                }
            }
            _ => added.push(graph.path(id).to_owned()),
        }
    }
    let removed = recorded.iter().zip(&kept).filter(|(_, kept)| !**kept);
    let mut removed: Vec<_> = removed.map(|(&(path, _), _)| contents.name(path).to_owned()).collect();
    if added.is_empty() && removed.is_empty() {
        return Ok(changed.into_iter().next().map(Reason::InputChanged));
    }
    added.sort_unstable();
    removed.sort_unstable();
    Ok(Some(Reason::InputsChanged { added, removed, changed }))
}

/// A file's content, or `None` if there is no such file.
fn content(digests: &FileDigests, path: &Utf8Path) -> Result<Option<Digest>, IoError> {
    match digests.digest(path) {
        Ok(digest) => Ok(Some(digest)),
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
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

/// The state of a command's digest after its shared words: they are hashed once for all actions, and the
/// digest does not depend on how many words are shared.
fn prefix_hasher(words: &[String]) -> Hasher {
    let mut hasher = Hasher::default();
    hasher.update(&framed(words));
    hasher
}

fn command_digest(mut hasher: Hasher, action: &Action) -> Digest {
    hasher.update(&framed(&action.args));
    hasher.finish()
}

/// Words, each after its length, so that no two lists of words are the same bytes.
fn framed(words: &[String]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(words.iter().map(|word| word.len() + 8).sum());
    for word in words {
        frame::push(&mut bytes, word);
    }
    bytes
}
