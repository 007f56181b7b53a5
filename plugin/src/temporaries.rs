//! Where a call's temporaries lie: in directories of its own beside the objects, which a later call removes when the
//! process was killed.
//!
//! The lock by which a dead call's directory is known is that of `run_directory`, shared with the distributor.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use distlto_commands::distribute::linker;
use distlto_executor::staging::Places;
use distlto_prepare::io_error::IoError;
use distlto_prepare::run_directory::{self, RunDirectory};

use crate::call::BackendNode;

/// One directory for each that objects go to. They go when this is dropped.
pub struct OwnDirectories(BTreeMap<Utf8PathBuf, RunDirectory>);

impl OwnDirectories {
    /// Makes them, after removing those of processes that were killed.
    pub fn make(nodes: &[BackendNode]) -> Result<Self, IoError> {
        let parents: BTreeSet<&Utf8Path> = nodes.iter().map(|node| parent_of(&node.object)).collect();
        let make = |parent: &Utf8Path| {
            let place = if parent.as_str().is_empty() { Path::new(".") } else { parent.as_std_path() };
            run_directory::sweep(place, linker::clean_up_after);
            Ok((parent.to_owned(), RunDirectory::make(place)?))
        };
        parents.into_iter().map(make).collect::<Result<_, _>>().map(Self)
    }

    /// One of them, if there are objects at all.
    pub fn any(&self) -> Option<&Path> {
        self.0.values().next().map(RunDirectory::path)
    }

    /// Where temporaries lie, both as the compiler is to see them.
    pub fn places(&self, seen: impl Fn(&Utf8Path) -> Utf8PathBuf) -> Places {
        let place = |(parent, own): (&Utf8PathBuf, &RunDirectory)| {
            // Its name is our prefix and letters that `tempfile` draws.
            let own = parent.join(own.path().file_name()?.to_str()?);
            let object = seen(&parent.join("object"));
            Some((parent_of(&object).to_owned(), seen(&own)))
        };
        self.0.iter().filter_map(place).collect()
    }
}

fn parent_of(path: &Utf8Path) -> &Utf8Path {
    path.parent().unwrap_or(Utf8Path::new(""))
}
