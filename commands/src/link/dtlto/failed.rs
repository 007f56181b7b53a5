//! What is kept of a backend that failed, so that a person can repeat it when the linker has removed its files.
//!
//! The shard, the module and those that it imports from, as far as they are lld's temporaries, in a directory of the state
//! that the next link empties. The shard names them by their places there.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use camino::Utf8PathBuf;
use distlto_planner::backend_flags::BackendFiles;
use distlto_planner::keep::ModulePlaces;
use distlto_planner::words::{shell_line, shell_quote};
use distlto_prepare::io_error::IoError;
use distlto_prepare::names::escape_path;

use super::modules::{CompileSettings, LinkModule, triple};
use super::shards;

/// What the failed backends of a link are repeated with.
pub struct FailedBackends<'a> {
    /// The state directory.
    pub state: &'a str,
    /// What is told to the compiler.
    pub compilation: &'a CompileSettings,
    /// The modules of the link.
    pub modules: &'a [LinkModule],
}

fn directory(state: &str) -> String {
    format!("{state}/failed")
}

/// Removes what the last link kept.
pub fn sweep(state: &str) -> Result<(), IoError> {
    let directory = directory(state);
    match fs::remove_dir_all(&directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(IoError::on("remove", &directory)(error))
        }
        _ => Ok(()),
    }
}

impl FailedBackends<'_> {
    /// Keeps the files of a module's backend; returns a line for a shell that runs it again.
    pub fn keep(&self, module: &LinkModule) -> Result<String, IoError> {
        let directory = directory(self.state);
        let temporaries: Vec<(&LinkModule, String)> = self
            .modules
            .iter()
            .filter(|other| other.name.is_temporary)
            .filter(|other| other.path == module.path || module.imports.contains(&other.path))
            .map(|other| (other, format!("{directory}/modules/{}", escape_path(other.name.label.as_bytes()))))
            .collect();
        for (module, place) in &temporaries {
            copy(&module.path, place)?;
        }
        let labels: HashMap<&str, &str> =
            temporaries.iter().map(|(module, place)| (module.path.as_str(), place.as_str())).collect();
        shards::keep(&directory, module, &labels)?;
        let places = ModulePlaces::of(&directory, &module.name.label);
        let object = Path::new(&places.object);
        make_parent(object)?;
        let flags = &self.compilation.flags;
        let dwo =
            flags.dwo_directory.is_some().then(|| Utf8PathBuf::from(&places.object).with_extension("dwo"));
        let names = BackendFiles {
            module: labels.get(module.path.as_str()).copied().unwrap_or(&module.path),
            shard: &places.shard,
            object: &places.object,
            dwo: dwo.as_ref().map(|dwo| dwo.as_str()),
        };
        let mut command = flags.shared_words(&self.compilation.compiler);
        command.extend(names.args(&triple(&module.path)));
        let here = std::env::current_dir().map_err(IoError::on("find", "the working directory"))?;
        let line = shell_line(command.iter().map(String::as_str));
        Ok(format!("cd {} && {line}", shell_quote(&here.to_string_lossy())))
    }
}

fn copy(from: &str, to: &str) -> Result<(), IoError> {
    make_parent(Path::new(to))?;
    fs::copy(from, to).map(drop).map_err(IoError::on("write", to))
}

fn make_parent(path: &Path) -> Result<(), IoError> {
    let Some(parent) = path.parent() else { return Ok(()) };
    fs::create_dir_all(parent).map_err(IoError::on("create directory", parent))
}
