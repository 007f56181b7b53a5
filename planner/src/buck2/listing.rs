//! The linker's listings of indexed and loaded files: `index` and `index.full` of an index directory.
//!
//! A line of `index` is a bitcode file below the directory; a line of `index.full` is any file, a bitcode one
//! below the directory, in the order of loading.

use std::fs;

use distlto_prepare::io_error::IoError;

use super::error::Buck2PlanError;
use super::index_directory::{IndexDirectory, clean};
use super::modules::LinkedModules;

/// The listings of one link.
#[derive(Debug, Default)]
pub struct Listings {
    /// The content of `index`.
    pub index: Vec<u8>,
    /// The content of `index.full`.
    pub full: Vec<u8>,
}

impl Listings {
    /// Reads both.
    pub fn load(directory: &IndexDirectory) -> Result<Self, Buck2PlanError> {
        let read = |name| {
            let file = directory.file(name);
            match fs::read(&file) {
                Ok(text) => Ok(text),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    Err(Buck2PlanError::NoListing { file: file.into() })
                }
                Err(error) => Err(Buck2PlanError::from(IoError::on("read", file)(error))),
            }
        };
        Ok(Self { index: read("index")?, full: read("index.full")? })
    }
}

/// The content of the listings, by slot of the meta file.
#[derive(Debug)]
pub struct Listing<'l> {
    /// Slots that the linker has indexed.
    pub indexed: Vec<bool>,
    /// Slots that were loaded as bitcode.
    pub as_bitcode: Vec<bool>,
    /// Slots that were loaded as something else.
    pub as_native: Vec<bool>,
    /// The lines of `index.full`.
    pub loaded: Vec<LoadedLine<'l>>,
}

/// A line of `index.full`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadedLine<'l> {
    /// The line.
    pub line: &'l [u8],
    /// The slot, where it is an object or member of the meta file.
    pub slot: Option<usize>,
}

impl<'l> Listing<'l> {
    /// Looks up the module on each line.
    pub fn read(listings: &'l Listings, directory: &IndexDirectory, modules: &LinkedModules<'_>) -> Self {
        let none = vec![false; modules.slots.len()];
        let mut listing =
            Self { indexed: none.clone(), as_bitcode: none.clone(), as_native: none, loaded: Vec::new() };
        for line in lines(&listings.index) {
            if let Some(slot) = below(line, directory, modules) {
                listing.indexed[slot] = true;
            }
        }
        for line in lines(&listings.full) {
            let native = modules.find(line);
            let slot = native.or_else(|| below(line, directory, modules));
            if let Some(slot) = slot {
                let kind = if native.is_some() { &mut listing.as_native } else { &mut listing.as_bitcode };
                kind[slot] = true;
            }
            listing.loaded.push(LoadedLine { line, slot });
        }
        listing
    }
}

/// The slot of a bitcode file that a line names below the directory, in any spelling of either.
fn below(line: &[u8], directory: &IndexDirectory, modules: &LinkedModules<'_>) -> Option<usize> {
    match directory.module_of(line) {
        Some(path) => modules.find(path),
        None => {
            let (line, directory) = (clean(std::str::from_utf8(line).ok()?), clean(directory.path()));
            modules.find(line.strip_prefix(&directory)?.strip_prefix('/')?.as_bytes())
        }
    }
}

/// The lines of a listing that are not empty.
pub fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.is_empty())
}
