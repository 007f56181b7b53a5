//! The files of a directory to places of their own: `distlto archive-mapper`, Buck2's `dist_lto_archive_mapper`.
//!
//! The rule for Darwin gives each member of an archive's objects directory a path that it can declare. Files and
//! mapping must correspond exactly, which is checked before anything is copied.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use crate::copy;
use crate::error::PrepareError;
use crate::io_error::IoError;

/// Copy each file of a directory to a path of its own
///
/// Takes the options of Buck2's dist_lto_archive_mapper. A file that no option names, and a name without a file, are
/// errors; nothing is copied then.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = crate::exit::help())]
pub struct ArchiveMapperArgs {
    /// Copy the files of this directory
    #[arg(long = "objects_dir", alias = "objects-dir", value_name = "DIR")]
    pub objects_dir: PathBuf,
    /// Copy the file NAME to DEST, its mode included; repeatable
    #[arg(
        long = "object_to_map",
        alias = "object-to-map",
        num_args = 2,
        value_names = ["NAME", "DEST"],
        allow_hyphen_values = true
    )]
    pub object_to_map: Vec<OsString>,
}

/// Copies all files; the exit code is 0.
pub fn run(args: &ArchiveMapperArgs) -> Result<u8, PrepareError> {
    let pairs: Vec<(&OsStr, &Path)> =
        args.object_to_map.chunks_exact(2).map(|pair| (pair[0].as_os_str(), Path::new(&pair[1]))).collect();
    let directory = &args.objects_dir;
    let listed = fs::read_dir(directory).map_err(IoError::on("list", directory))?;
    let names: Result<Vec<OsString>, _> = listed.map(|entry| Ok(entry?.file_name())).collect();
    let names = names.map_err(IoError::on("list", directory))?;
    check(&names, &pairs)
        .map_err(|problem| PrepareError::Mapping { directory: directory.clone(), problem })?;
    for (name, destination) in pairs {
        copy::copy(&directory.join(name), destination)?;
    }
    Ok(0)
}

/// Whether each file has a destination and each destination one file.
fn check(files: &[OsString], pairs: &[(&OsStr, &Path)]) -> Result<(), String> {
    let files: BTreeSet<&OsStr> = files.iter().map(OsString::as_os_str).collect();
    let mapped: BTreeSet<&OsStr> = pairs.iter().map(|&(name, _)| name).collect();
    if let Some(file) = files.difference(&mapped).next() {
        return Err(format!("its file `{}` has no destination", file.display()));
    }
    if let Some(name) = mapped.difference(&files).next() {
        return Err(format!("it has no file `{}`", name.display()));
    }
    let mut taken: BTreeMap<&Path, &OsStr> = BTreeMap::new();
    for &(name, destination) in pairs {
        let first = *taken.entry(destination).or_insert(name);
        if first != name {
            return Err(format!(
                "its files `{}` and `{}` have one destination, {}",
                first.display(),
                name.display(),
                destination.display()
            ));
        }
    }
    Ok(())
}
