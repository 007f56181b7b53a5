//! Records as lines of JSON below a header, in a file that grows as things end, so that a killed run keeps its finished
//! ones.
//!
//! A damaged line costs its record alone. Of two records of one thing the later one counts: the reader sees to that.
//! Does not depend on the kind of records.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::io_error::IoError;
use crate::regular::{self, Links};
use crate::write::write_if_changed;

/// One such file.
#[derive(Debug)]
pub struct JsonLines {
    place: PathBuf,
    header: &'static str,
    /// Once it was opened for appending.
    file: Option<File>,
}

impl JsonLines {
    /// Returns a file that may not be there yet. The header, which ends in a line break, names its content and version.
    pub fn new(place: &Path, header: &'static str) -> Self {
        Self { place: place.to_owned(), header, file: None }
    }

    /// The records that can be read, in their order; none of a file with another header.
    pub fn read<T: DeserializeOwned>(&self) -> Vec<T> {
        let text = regular::read(&self.place).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines = text.strip_prefix(self.header).unwrap_or_default().lines();
        lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Opens it for appending, which [`Self::append`] does too.
    pub fn open(&mut self) -> Result<&mut File, IoError> {
        if self.file.is_none() {
            let mut options = OpenOptions::new();
            options.read(true).append(true).create(true);
            let opened = regular::open_with(&mut options, Links::Refuse, &self.place);
            let (mut file, found) = opened.map_err(IoError::on("write", &self.place))?;
            let start = self.start(&file, found.len()).map_err(IoError::on("read", &self.place))?;
            file.write_all(start.as_bytes()).map_err(IoError::on("write", &self.place))?;
            self.file = Some(file);
        }
        // It has just been put there.
        Ok(self.file.as_mut().expect("an open file"))
    }

    /// Returns the text to write before a record: a killed run may have left half a line. A file with another header is
    /// emptied.
    fn start(&self, file: &File, length: u64) -> io::Result<&'static str> {
        let mut header = vec![0; self.header.len()];
        let is_ours = length >= header.len() as u64 && {
            file.read_exact_at(&mut header, 0)?;
            header == self.header.as_bytes()
        };
        if !is_ours {
            file.set_len(0)?;
            return Ok(self.header);
        }
        let mut last = [0];
        file.read_exact_at(&mut last, length - 1)?;
        Ok(if last == *b"\n" { "" } else { "\n" })
    }

    /// One more record.
    pub fn append(&mut self, record: &impl Serialize) -> Result<(), IoError> {
        let written = self.open()?.write_all(line(record).as_bytes());
        written.map_err(IoError::on("write", &self.place))
    }

    /// Has the file hold these lines alone, each of a record.
    pub fn replace(&mut self, lines: &[String]) -> Result<(), IoError> {
        // Another file takes its place.
        self.file = None;
        write_if_changed(&self.place, (self.header.to_owned() + &lines.concat()).as_bytes()).map(drop)
    }
}

/// A value as text: a line of JSON for programs, or as people read it.
pub fn shown(value: &(impl Serialize + Display), is_json: bool) -> String {
    if is_json { line(value) } else { value.to_string() }
}

/// A record as a line.
pub fn line(record: &impl Serialize) -> String {
    let mut text = serde_json::to_string(record).expect("strings, numbers and lists serialise");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_damaged_is_passed_over() {
        let place = tempfile::tempdir().expect("a directory");
        let place = place.path().join("lines");
        let mut lines = JsonLines::new(&place, "numbers 1\n");
        assert_eq!(lines.read::<u32>(), [0; 0]);
        [1, 2].iter().for_each(|number| lines.append(number).expect("written"));
        // As a killed run leaves it.
        lines.open().expect("open").write_all(b"{\"").expect("written");
        assert_eq!(JsonLines::new(&place, "numbers 1\n").read::<u32>(), [1, 2]);
        JsonLines::new(&place, "numbers 1\n").append(&3).expect("written");
        assert_eq!(JsonLines::new(&place, "numbers 1\n").read::<u32>(), [1, 2, 3]);
        assert_eq!(JsonLines::new(&place, "numbers 2\n").read::<u32>(), [0; 0]);
        lines.replace(&[line(&7)]).expect("written");
        assert_eq!(lines.read::<u32>(), [7]);
        lines.append(&8).expect("written");
        assert_eq!(lines.read::<u32>(), [7, 8]);
        JsonLines::new(&place, "numbers 2\n").append(&9).expect("written");
        assert_eq!(
            JsonLines::new(&place, "numbers 2\n").read::<u32>(),
            [9],
            "a file of another version is emptied"
        );
    }
}
