//! Import lists in the terms of a meta file: which objects and archives a module imports from.
//!
//! The linker writes one path a line. Text and results are in buffers that are used again: a link of 100,000 objects
//! has tens of millions of imports. Independent of plans.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::sync::atomic::{AtomicBool, Ordering};

use distlto_prepare::io_error::IoError;

use super::error::Buck2PlanError;
use super::modules::{Brief, LinkedModules};

/// The buffer grows when it has fewer free bytes than this.
const SPARE: usize = 4 << 10;

/// One import list at a time.
#[derive(Debug, Default)]
pub struct ImportList {
    /// The list, followed by leftover bytes of longer lists.
    buffer: Vec<u8>,
    length: usize,
    /// Indices of imported objects, in the list's order.
    pub objects: Vec<u64>,
    /// Indices of imported archives, each once, by first occurrence.
    pub archives: Vec<u64>,
    /// Paths that the meta file does not list.
    pub unknown: Vec<String>,
    /// For each archive, the number of the list that named it last, so that each is counted once.
    named: Vec<u64>,
    number: u64,
}

impl ImportList {
    /// Reads a list. `false` where there is none.
    pub fn read(&mut self, file: &str) -> Result<bool, IoError> {
        let mut opened = match File::open(file) {
            Ok(opened) => opened,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(false);
            }
            Err(error) => return Err(IoError::on("read", file)(error)),
        };
        self.length = 0;
        loop {
            if self.buffer.len() - self.length < SPARE {
                self.buffer.resize((self.buffer.len() * 2).max(16 * SPARE), 0);
            }
            match opened.read(&mut self.buffer[self.length..]) {
                Ok(0) => return Ok(true),
                Ok(read) => self.length += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(IoError::on("read", file)(error)),
            }
        }
    }

    /// The list that was read last.
    pub fn text(&self) -> &[u8] {
        &self.buffer[..self.length]
    }

    /// Looks up the paths of the list that was read last, which is `importer`'s. Marks each imported slot in
    /// `imported`.
    pub fn look_up(
        &mut self,
        importer: &str,
        file: &str,
        modules: &LinkedModules<'_>,
        imported: &[AtomicBool],
    ) -> Result<(), Buck2PlanError> {
        self.objects.clear();
        self.archives.clear();
        self.unknown.clear();
        self.named.resize(modules.archives.len(), 0);
        self.number += 1;
        let text = &self.buffer[..self.length];
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', text).chain([text.len()]) {
            let line = &text[begin..end];
            begin = end + 1;
            if line.is_empty() {
                continue;
            }
            let Some(slot) = modules.find(line) else {
                self.unknown.push(unlisted(importer, file, &text[..end])?);
                continue;
            };
            // Most are marked already, and a line of memory that is only read stays with every processor.
            if !imported[slot].load(Ordering::Relaxed) {
                imported[slot].store(true, Ordering::Relaxed);
            }
            let Brief { index, archive } = modules.brief(slot);
            match archive {
                None => self.objects.push(index),
                Some(archive) => {
                    let archive = archive as usize;
                    if self.named[archive] != self.number {
                        self.named[archive] = self.number;
                        self.archives.push(index);
                    }
                }
            }
        }
        Ok(())
    }
}

/// A path that the meta file does not list, unless no backend could load it.
/// `text` is the list up to and with it.
fn unlisted(importer: &str, file: &str, text: &[u8]) -> Result<String, Buck2PlanError> {
    let begin = memchr::memrchr(b'\n', text).map_or(0, |end| end + 1);
    let Ok(path) = std::str::from_utf8(&text[begin..]) else {
        let line = 1 + memchr::memchr_iter(b'\n', text).count();
        return Err(Buck2PlanError::ImportNotUtf8 { file: file.into(), line });
    };
    match archive_of(path) {
        Some(archive) => Err(Buck2PlanError::ImportFromArchive {
            importer: importer.to_owned(),
            import: path.to_owned(),
            archive: archive.to_owned(),
        }),
        None => Ok(path.to_owned()),
    }
}

/// The archive of a member as lld spells one: `lib.a(m.o at 86)`.
fn archive_of(path: &str) -> Option<&str> {
    let (member, offset) = path.strip_suffix(')')?.rsplit_once(" at ")?;
    let digits = !offset.is_empty() && offset.bytes().all(|byte| byte.is_ascii_digit());
    let archive = member.split_once('(')?.0;
    (digits && !archive.is_empty()).then_some(archive)
}
