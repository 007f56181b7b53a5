//! A Buck2 project root for one case, and the planner's work in it.
//!
//! The working directory belongs to the whole process, so cases take turns.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use distlto_planner::buck2::error::Buck2PlanError;
use distlto_planner::buck2::gnu::GnuLink;
use distlto_planner::buck2::index_directory::IndexDirectory;
use distlto_planner::buck2::meta;
use distlto_planner::buck2::modules::LinkedModules;

use crate::working_directory::WorkingDirectory;

/// A directory that is the working directory while this value lives.
pub struct Project {
    _directory: WorkingDirectory,
}

impl Project {
    /// An empty one.
    pub fn create() -> Self {
        Self { _directory: WorkingDirectory::enter() }
    }
}

/// Writes a file below the root, with its directories.
pub fn write(path: &str, content: impl AsRef<[u8]>) {
    if let Some(parent) = Path::new(path).parent() {
        fs::create_dir_all(parent).expect("made");
    }
    fs::write(path, content).expect("written");
}

/// What the planner does after a thin link; its lists go to `link-plan.json` and `final_list`.
pub fn finish(meta_file: &str, index: &str, arguments: &[u8]) -> Result<Vec<String>, Buck2PlanError> {
    let text = fs::read(meta_file).expect("a meta file");
    let meta = meta::read(Path::new(meta_file), &text).expect("a good meta file");
    GnuLink {
        meta: &meta,
        modules: &LinkedModules::of(&meta),
        directory: &IndexDirectory::new(index),
        link_plan: "link-plan.json",
        final_list: "final_list",
        arguments,
        brought: &|_| false,
    }
    .finish()
}

/// Every file below a directory, with what tells whether it was written anew.
pub fn files(directory: &str) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(directory) else { return found };
    for entry in entries {
        let path = entry.expect("listed").path();
        if path.is_dir() {
            found.extend(files(path.to_str().expect("UTF-8")));
        } else {
            found.push((path.clone(), fs::metadata(&path).expect("a file").ino()));
        }
    }
    found.sort();
    found
}
