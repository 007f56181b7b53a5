//! Records of runs as files: `runs/<UTC time>-<process>.json` in a state directory, the last ones kept.
//!
//! Written by way of a temporary, so that a reader sees whole records only, and without a lock: names do not meet.
//! Other files there are passed over.

use std::fs;
use std::path::{Path, PathBuf};

use distlto_prepare::io_error::IoError;
use distlto_prepare::json::{self, JsonError, Unread};
use distlto_prepare::regular;
use distlto_prepare::write::{remove, write_atomically};
use jiff::Timestamp;
use miette::Diagnostic;
use thiserror::Error;

use super::{RunRecord, VERSION};

/// The folder's name in a state directory.
pub const FOLDER: &str = "runs";

/// How many records are kept.
pub const KEPT: usize = 10;

/// Why a file is no record that can be read.
#[derive(Debug, Error, Diagnostic)]
pub enum ReadError {
    /// It cannot be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
    /// It is of another version.
    #[error("{} is a run record of version {found}, and this program reads version {VERSION}", path.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help("read it with the distlto that wrote it, or run again to have a record of this version")
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
    /// It is malformed.
    #[error("{} is no run record: {source}", path.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help(
            "docs/run-record.md describes the file; remove it if it is damaged: the next run writes another"
        )
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The error and its place.
        source: JsonError,
    },
}

/// Reads a record.
pub fn read(path: &Path) -> Result<RunRecord, ReadError> {
    let bytes = regular::read(path).map_err(IoError::on("read", path))?;
    json::read_version(&bytes, VERSION, |record: &RunRecord| record.version.into()).map_err(|unread| {
        let path = path.to_owned();
        match unread {
            Unread::Version(found) => ReadError::Version { path, found },
            Unread::Json(source) => ReadError::Malformed { path, source },
        }
    })
}

/// Writes a record into a state directory and removes the oldest ones beyond [`KEPT`]. Returns its place.
pub fn write(state: &Path, record: &RunRecord) -> Result<PathBuf, IoError> {
    let path = state.join(FOLDER).join(name(record));
    write_atomically(&path, &record.to_bytes())?;
    let others: Vec<_> = list(state)?.into_iter().filter(|other| *other != path).collect();
    let surplus = (others.len() + 1).saturating_sub(KEPT);
    others[..surplus].iter().try_for_each(|old| remove(old))?;
    Ok(path)
}

/// The records of a state directory, the oldest first.
pub fn list(state: &Path) -> Result<Vec<PathBuf>, IoError> {
    let folder = state.join(FOLDER);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(IoError::on("list", &folder))?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(IoError::on("list", &folder))?;
        let is_ours = entry.file_name().to_str().is_some_and(is_name);
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            found.push(entry.path());
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// `20261121T221407.123Z-4711.json`: names sort by time.
fn name(record: &RunRecord) -> String {
    let begun = i64::try_from(record.begun_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    format!("{}-{}.json", begun.unwrap_or_default().strftime("%Y%m%dT%H%M%S.%3fZ"), record.process)
}

fn is_name(name: &str) -> bool {
    let Some((time, process)) = name.strip_suffix(".json").and_then(|name| name.split_once("Z-")) else {
        return false;
    };
    let fits = |(at, byte): (usize, u8)| match at {
        8 => byte == b'T',
        15 => byte == b'.',
        _ => byte.is_ascii_digit(),
    };
    time.len() == 19
        && time.bytes().enumerate().all(fits)
        && process.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{ActionRecord, ActionStatus};
    use crate::why::{Change, ChangeKind};
    use distlto_planner::graph::ActionKind;

    fn record(begun_ms: u64) -> RunRecord {
        let mut action = ActionRecord::new(0, ActionKind::ThinLink, "app", 7);
        action.why = vec![Change::named(ChangeKind::Import, "b.o")];
        action.result = ActionStatus::Done;
        RunRecord { version: VERSION, begun_ms, process: 7, actions: vec![action], ..RunRecord::default() }
    }

    #[test]
    fn a_clock_that_was_put_back_removes_no_record_of_its_own_run() {
        let state = tempfile::tempdir().expect("a directory");
        for second in 1..KEPT as u64 + 3 {
            write(state.path(), &record(second * 1000)).expect("written");
        }
        let path = write(state.path(), &record(500)).expect("written");
        assert!(path.exists() && list(state.path()).expect("listed").len() == KEPT);
    }

    #[test]
    fn what_is_no_record_is_refused_with_file_and_place() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("run.json");
        let refused = |bytes: &[u8]| {
            fs::write(&path, bytes).expect("written");
            read(&path).expect_err("refused").to_string().replace(&path.display().to_string(), "FILE")
        };
        let good = String::from_utf8(record(0).to_bytes()).expect("text");
        assert!(refused(b"").starts_with("FILE is no run record: line 1, column 0: EOF"), "{}", refused(b""));
        assert!(refused(b"{}").contains("missing field `version`"));
        assert_eq!(
            refused(good.replacen("\"version\":1", "\"version\":2", 1).as_bytes()),
            "FILE is a run record of version 2, and this program reads version 1"
        );
        let said = refused(good.replace("\"import\"", "\"impart\"").as_bytes());
        assert!(
            said.contains("actions[0].why[0].what (") && said.contains("): unknown variant `impart`"),
            "{said}"
        );
        let said = refused(good.replace("\"thin-link\"", "\"thin\"").as_bytes());
        assert!(
            said.contains("actions[0].kind (") && said.contains("): no kind of action: \"thin\""),
            "{said}"
        );
        assert!(refused(format!("{good}x").as_bytes()).contains("trailing characters"));
        for end in 0..good.len() - 2 {
            refused(&good.as_bytes()[..end]);
        }
    }
}
