//! The results of links: native objects, and names of directories in them.
//!
//! Does not depend on how the links are made.

use std::borrow::Cow;

use distlto_executor::cache::store::{Cache, CacheLimits};
use distlto_planner::link_line::last_value;
use distlto_planner::state;
use distlto_prepare::input::Input;
use distlto_prepare::io_error::IoError;
use miette::Report;

use super::{DISTLTO, MadeLink, PLACES, Ways};
use crate::serve::module_record::{self, RecordedObject};

impl Ways<'_> {
    /// Returns distlto's object of each module, in link order: none if lld did it all by itself.
    pub fn made(&self) -> Vec<RecordedObject> {
        let sources = self.sources().to_string_lossy().into_owned();
        let mut objects = module_record::in_order(&self.state());
        for object in &mut objects {
            // Without the directory that is gone afterwards.
            if let Some(source) = state::made_of(&object.label, &sources) {
                object.label = source.to_owned();
            }
        }
        objects
    }

    /// Returns the objects of lld's backends, in the order of the modules; `None` if their number is not `modules`.
    pub fn objects_of(&self, made: &MadeLink, modules: usize) -> Result<Option<Vec<Input>>, Report> {
        // Before the modules' objects are those of regular LTO.
        let regular = last_value(&self.arguments, "lto-partitions").and_then(|value| value.parse().ok());
        let first: usize = regular.unwrap_or(1).max(1);
        let mut found = Vec::new();
        while let Some(object) = made.beside(&format!("object{}", first + found.len()))? {
            found.push(object);
        }
        if found.len() != modules {
            return Ok(None);
        }
        Ok(Some(found))
    }

    /// The bytes with one name in place of those of the ways' directories.
    pub fn neutral<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let mut bytes = Cow::Borrowed(bytes);
        let one = self.place(PLACES[0]).into_os_string().into_encoded_bytes();
        for place in &PLACES[1..] {
            let name = self.place(place).into_os_string().into_encoded_bytes();
            let found: Vec<usize> = bytes
                .windows(name.len())
                .enumerate()
                .filter(|(_, part)| *part == name)
                .map(|(at, _)| at)
                .collect();
            for at in found {
                bytes.to_mut()[at..at + one.len()].copy_from_slice(&one);
            }
        }
        bytes
    }

    /// Where distlto has put its objects.
    pub fn opened_store(&self) -> Result<Cache, IoError> {
        Cache::open(&self.store(), CacheLimits::default())
    }

    /// The state of distlto's link.
    fn state(&self) -> String {
        let folder = self.place(DISTLTO).join("state");
        state::directory(&self.linked().to_string_lossy(), &folder.to_string_lossy())
    }
}
