//! The thin link of a linker that stops after it: the shards, and the modules that they describe.
//!
//! Compiles nothing.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use distlto_planner::shard;
use distlto_prepare::io_error::IoError;

use super::describe::{Described, Unfit, describe};
use super::modules::ModuleFiles;
use super::protocol::PACKET;
use super::settings::CompileSettings;
use super::socket::{Connection, Message, heard, read};
use crate::link::error::LinkError;

/// A linker's shards and its symbol resolution.
#[derive(Default)]
pub struct ThinLink {
    /// Each with the id of its module, in the order in which the linker wrote them.
    pub shards: Vec<(String, Vec<u8>)>,
    pub resolutions: Option<Vec<u8>>,
}

impl ThinLink {
    /// Receives a linker's shards until it ends. `folder` has them, by their numbers.
    pub fn receive(linker: &Connection, folder: &Path) -> Result<Self, IoError> {
        let (mut numbers, mut resolved) = (HashMap::new(), None);
        let mut bytes = vec![0; PACKET];
        loop {
            match linker.message(&mut bytes, None)? {
                Message::Resolution(file) => resolved = file,
                Message::Question(question, _) => {
                    // A module with an id that is not UTF-8 gets no backend.
                    if let Ok(id) = std::str::from_utf8(question.module) {
                        numbers.insert(id.to_owned(), question.ticket);
                    }
                }
                Message::Nothing | Message::Gone => break,
                _ => {}
            }
        }
        let mut numbers: Vec<_> = numbers.into_iter().map(|(id, number)| (number, id)).collect();
        numbers.sort_unstable();
        let shard = |(number, id): (u32, String)| {
            let path = folder.join(number.to_string());
            Ok((id, fs::read(&path).map_err(IoError::on("read the index shard", &path))?))
        };
        let shards = numbers.into_iter().map(shard).collect::<Result<_, IoError>>()?;
        let resolutions = resolved.map(|file| read(Some(file))).transpose().map_err(heard)?;
        Ok(Self { shards, resolutions })
    }

    /// Describes each module that the linker loads, by its id. Modules that the linker compiles itself are left out.
    pub fn modules(
        self,
        files: &mut ModuleFiles,
        settings: &CompileSettings,
    ) -> Result<Vec<(String, Described)>, LinkError> {
        let mut completion = self.resolutions.as_deref().map(|text| settings.completion(text));
        // A module that the linker did not load has a stub.
        let is_loaded = |bytes: &[u8]| shard::read(bytes).is_ok_and(|read| !read.is_stub());
        let loaded: Vec<_> = self.shards.into_iter().filter(|(_, bytes)| is_loaded(bytes)).collect();
        files.place(&loaded.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>())?;
        let mut modules = Vec::new();
        for (id, bytes) in loaded {
            match describe(files, completion.as_mut(), &id, &bytes) {
                Ok(mut described) => {
                    described.flags = settings.of_module(files, &id)?;
                    modules.push((id, described));
                }
                Err(Unfit::Because(why)) if settings.is_distributed() => {
                    return Err(LinkError::Unnamed { module: id, why });
                }
                Err(Unfit::Because(_)) => {}
                Err(Unfit::Io(error)) => return Err(error.into()),
            }
        }
        Ok(modules)
    }
}
