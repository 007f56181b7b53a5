//! The action log: what each action read and wrote when it last ran, in a file that only grows.
//!
//! A killed run loses at most the line it was writing. A damaged line costs its record only, and the latest
//! record of an action counts. A file most of which is out of date is written anew, atomically, before the
//! first append to it. Knows nothing of what the files' contents are now.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use camino::{Utf8Path, Utf8PathBuf};
use distlto_prepare::io_error::IoError;
use distlto_prepare::regular::{self, Links};
use distlto_prepare::write::write_atomically;
use indexmap::IndexSet;
use rayon::prelude::*;

use super::line::{self, LogLine};
use crate::digests::Digest;
use crate::graph::{ActionGraph, ActionId};

const HEADER: &str = "distlto action log 2\n";

/// Lines out of date beyond the live ones that are kept, so that small logs are not rewritten all the time.
const SLACK: usize = 1024;

/// Damaged lines that are reported one by one.
const NOTES: usize = 10;

/// What one action read and wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RanAction {
    /// The digest of its command's words.
    pub command: Digest,
    /// The files that it read, with their contents.
    pub inputs: Vec<(Utf8PathBuf, Digest)>,
    /// The files that it wrote, with their contents. The first one names the action; without one, the
    /// action is not recorded and runs every time.
    pub outputs: Vec<(Utf8PathBuf, Digest)>,
}

/// A record in terms of the log's numbers.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) command: Digest,
    pub(super) inputs: Vec<u32>,
    pub(super) outputs: Vec<u32>,
}

/// The log of one state directory. Reading it writes nothing; the first append mends the file.
#[derive(Debug)]
pub struct ActionLog {
    path: PathBuf,
    inner: RwLock<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    paths: IndexSet<Utf8PathBuf>,
    /// Files' contents by number: the path's index, and the content. `None` for a damaged line.
    versions: Vec<Option<(u32, Digest)>>,
    /// Numbers by content, made when the first record is appended.
    numbers: Option<HashMap<(u32, Digest), u32>>,
    /// By the path's index of the first output.
    records: HashMap<u32, Stored>,
    /// Lines of the file, the header left out.
    lines: usize,
    /// The file is missing, torn or damaged, or of another version.
    rewrite: bool,
    file: Option<File>,
}

/// What the log holds while a check goes on.
pub(super) struct LogContents<'a>(RwLockReadGuard<'a, Inner>);

impl LogContents<'_> {
    pub(super) fn path(&self, path: &Utf8Path) -> Option<u32> {
        self.0.paths.get_index_of(path).map(|index| index as u32)
    }

    pub(super) fn name(&self, path: u32) -> &Utf8Path {
        &self.0.paths[path as usize]
    }

    pub(super) fn record(&self, graph: &ActionGraph, id: ActionId) -> Option<&Stored> {
        let output = graph.action(id).outputs().next()?;
        self.0.records.get(&self.path(graph.path(output))?)
    }

    /// A number that a record holds.
    pub(super) fn version(&self, number: u32) -> (u32, Digest) {
        self.0.versions[number as usize]
            .expect("records with undefined numbers are dropped when they are read")
    }

    pub(super) fn is(&self, number: u32, path: Option<u32>, digest: Digest) -> bool {
        let (known, content) = self.version(number);
        path == Some(known) && content == digest
    }
}

impl ActionLog {
    /// Reads a log. The second value says in sentences what of it could not be used; a missing log and a
    /// torn last line are not worth one.
    pub fn load(path: &Path) -> Result<(Self, Vec<String>), IoError> {
        let bytes = regular::read_if_there(path)?.unwrap_or_default();
        let (inner, mut notes) = Inner::decode(&bytes);
        notes.iter_mut().for_each(|note| *note = format!("{}: {note}", path.display()));
        Ok((Self { path: path.to_owned(), inner: RwLock::new(inner) }, notes))
    }

    pub(super) fn contents(&self) -> LogContents<'_> {
        LogContents(self.inner.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds the record of an action that finished, in place of its earlier one. From any thread.
    pub fn append(&self, record: &RanAction) -> Result<(), IoError> {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        if inner.rewrite {
            inner.rewrite(&self.path)?;
        }
        let mut text = Vec::new();
        inner.insert(record, &mut text);
        let result = inner.append(&self.path, &text);
        // A write that failed half-way left half a line.
        inner.rewrite |= result.is_err();
        result.map_err(IoError::on("write", &self.path))
    }
}

impl Inner {
    fn decode(bytes: &[u8]) -> (Self, Vec<String>) {
        let mut inner = Self::default();
        let mut notes = Vec::new();
        let Some(body) = bytes.strip_prefix(HEADER.as_bytes()) else {
            inner.rewrite = true;
            if !HEADER.as_bytes().starts_with(bytes) {
                notes.push("of another version, or no action log; starting afresh".to_owned());
            }
            return (inner, notes);
        };
        let limit = body.len();
        let mut dropped = 0usize;
        let lines: Vec<_> = body.split_inclusive(|&byte| byte == b'\n').collect();
        // Lines stand alone until their numbers are looked up, so all threads can read them.
        let read = lines.par_iter().with_min_len(256).map(|line| {
            let (text, torn) = line.strip_suffix(b"\n").map_or((*line, true), |text| (text, false));
            (line::read(text), torn)
        });
        for (line, torn) in read.collect::<Vec<_>>() {
            inner.lines += 1;
            inner.rewrite |= torn;
            if line.and_then(|line| inner.take(line, limit)).is_none() {
                inner.rewrite = true;
                if !torn {
                    dropped += 1;
                    if dropped <= NOTES {
                        // The header is line 1.
                        notes.push(format!("line {} is damaged; its action runs again", inner.lines + 1));
                    }
                }
            }
        }
        if dropped > NOTES {
            notes.push(format!("{} more lines are damaged", dropped - NOTES));
        }
        inner.rewrite |= inner.is_mostly_old();
        (inner, notes)
    }

    /// Takes one line in; `None` if it makes no sense after those before it.
    fn take(&mut self, line: LogLine<'_>, limit: usize) -> Option<()> {
        match line {
            LogLine::File { number, digest, path } => {
                let index = number as usize;
                // Every number has a line, so there are fewer numbers than bytes.
                if index >= limit || self.versions.get(index).is_some_and(Option::is_some) {
                    return None;
                }
                let path = self.path(Utf8Path::new(&path));
                if self.versions.len() <= index {
                    self.versions.resize(index + 1, None);
                }
                self.versions[index] = Some((path, digest));
            }
            LogLine::Action { command, inputs, outputs } => {
                let version = |number: &u32| *self.versions.get(*number as usize)?;
                let (first, _) = version(outputs.first()?)?;
                // The action's earlier record stays. It holds whenever all that it names is as it says.
                if !inputs.iter().chain(&outputs).all(|number| version(number).is_some()) {
                    return None;
                }
                self.records.insert(first, Stored { command, inputs, outputs });
            }
        }
        Some(())
    }

    fn path(&mut self, path: &Utf8Path) -> u32 {
        let index = match self.paths.get_index_of(path) {
            Some(index) => index,
            None => self.paths.insert_full(path.to_owned()).0,
        };
        u32::try_from(index).expect("over four billion paths do not fit in memory")
    }

    /// Takes a record in, and appends its lines to `text`.
    fn insert(&mut self, record: &RanAction, text: &mut Vec<u8>) {
        let inputs = self.number_all(&record.inputs, text);
        let outputs = self.number_all(&record.outputs, text);
        if let Some(first) = outputs.first().and_then(|&number| self.versions[number as usize]) {
            line::write_action(text, record.command, &inputs, &outputs);
            self.lines += 1;
            self.records.insert(first.0, Stored { command: record.command, inputs, outputs });
        }
    }

    fn number_all(&mut self, files: &[(Utf8PathBuf, Digest)], text: &mut Vec<u8>) -> Vec<u32> {
        files.iter().map(|(path, digest)| self.number(path, *digest, text)).collect()
    }

    fn number(&mut self, path: &Utf8Path, digest: Digest, text: &mut Vec<u8>) -> u32 {
        let index = self.path(path);
        let versions = &mut self.versions;
        let numbers = self.numbers.get_or_insert_with(|| {
            let numbered = versions.iter().zip(0u32..);
            numbered.filter_map(|(version, number)| version.map(|version| (version, number))).collect()
        });
        *numbers.entry((index, digest)).or_insert_with(|| {
            let number = u32::try_from(versions.len()).expect("over four billion files do not fit in memory");
            versions.push(Some((index, digest)));
            self.lines += 1;
            line::write_file(text, number, digest, path.as_str());
            number
        })
    }

    /// Whether the file is more than twice as long as what it says.
    fn is_mostly_old(&self) -> bool {
        let mut live = vec![false; self.versions.len()];
        for record in self.records.values() {
            record.inputs.iter().chain(&record.outputs).for_each(|&number| live[number as usize] = true);
        }
        let live = live.iter().filter(|live| **live).count();
        self.lines > SLACK + 2 * (self.records.len() + live)
    }

    /// Writes the file anew with live content only.
    fn rewrite(&mut self, path: &Path) -> Result<(), IoError> {
        let text = self.encode();
        write_atomically(path, &text)?;
        (*self, _) = Self::decode(&text);
        Ok(())
    }

    fn encode(&self) -> Vec<u8> {
        let mut records: Vec<_> = self.records.iter().collect();
        records.sort_unstable_by_key(|&(&path, _)| &self.paths[path as usize]);
        let mut text = HEADER.as_bytes().to_vec();
        let mut renumbered: Vec<Option<u32>> = vec![None; self.versions.len()];
        let mut next = 0;
        for (_, record) in records {
            let mut renumber = |number: &u32| {
                *renumbered[*number as usize].get_or_insert_with(|| {
                    let (path, digest) = self.versions[*number as usize]
                        .expect("records with undefined numbers are dropped when they are read");
                    line::write_file(&mut text, next, digest, self.paths[path as usize].as_str());
                    next += 1;
                    next - 1
                })
            };
            let inputs: Vec<_> = record.inputs.iter().map(&mut renumber).collect();
            let outputs: Vec<_> = record.outputs.iter().map(&mut renumber).collect();
            line::write_action(&mut text, record.command, &inputs, &outputs);
        }
        text
    }

    fn append(&mut self, path: &Path, text: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let (file, _) = regular::open_with(OpenOptions::new().append(true), Links::Follow, path)?;
                none.insert(file)
            }
        };
        file.write_all(text)
    }
}
