//! `distlto-index --slices`: writes a link's slices.
//!
//! A module is on disk once for all slices, for a slice is as large as all that its backends import. Does not decide
//! on the content of a slice.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use camino::Utf8Path;
use distlto_planner::graph::summary::GraphSummary;
use distlto_planner::graph::{ActionGraph, json};
use distlto_planner::slices::{self, GRAPH, Slice, SliceContent, SliceRequest};
use distlto_prepare::io_error::IoError;
use distlto_prepare::regular;
use distlto_prepare::share::Sharing;
use distlto_prepare::write::{remove, write_if_changed};

use crate::link::error::LinkError;

/// The file that says which slices are wanted.
pub(super) struct Wanted {
    request: SliceRequest,
}

impl Wanted {
    pub(super) fn read(path: &Path) -> Result<Self, LinkError> {
        let text = fs::read_to_string(path).map_err(IoError::on("read", path))?;
        let request = SliceRequest::read(&text)
            .map_err(|source| LinkError::SliceRequest { path: path.to_owned(), source })?;
        Ok(Self { request })
    }

    /// Writes the slices of a link, and empties its index directory.
    pub(super) fn write(&self, graph: &ActionGraph, state: &str) -> Result<(), LinkError> {
        let read = |path: &Utf8Path| {
            regular::read(path.as_std_path()).map_err(IoError::on("read the index shard", path))
        };
        let (slices, graph) = slices::cut(graph, &self.request, &read)?;
        let mut sharing = Sharing::default();
        slices.iter().try_for_each(|slice| write(slice, &mut sharing))?;
        self.write_requested(&graph)?;
        Ok(prune(Path::new(state), &HashSet::new())?)
    }

    /// Writes the requested graph, report and explanation.
    fn write_requested(&self, graph: &ActionGraph) -> Result<(), IoError> {
        let wanted = &self.request;
        let texts = [
            (&wanted.graph, json::to_bytes(graph)),
            (&wanted.report, GraphSummary::of(graph).to_string().into_bytes()),
            (&wanted.explain, slices::explain(graph, wanted).into_bytes()),
        ];
        for (place, text) in texts {
            if let Some(place) = place {
                write_if_changed(place.as_std_path(), &text)?;
            }
        }
        Ok(())
    }
}

fn write(slice: &Slice, sharing: &mut Sharing) -> Result<(), IoError> {
    let directory = slice.directory.as_std_path();
    let named: HashSet<PathBuf> = slice.files.keys().map(|name| directory.join(name)).collect();
    prune(directory, &named.iter().map(PathBuf::as_path).collect())?;
    for (name, content) in &slice.files {
        let place = directory.join(name);
        match content {
            SliceContent::Bytes(bytes) => drop(write_if_changed(&place, bytes)?),
            SliceContent::File(file) => sharing.put(file.as_std_path(), &place)?,
        }
    }
    write_if_changed(&directory.join(GRAPH), &json::to_bytes(&slice.graph)).map(drop)
}

/// Removes files that are not in `kept`, and directories that are left empty; not the directory itself.
fn prune(directory: &Path, kept: &HashSet<&Path>) -> Result<(), IoError> {
    fs::create_dir_all(directory).map_err(IoError::on("create directory", directory))?;
    for entry in fs::read_dir(directory).map_err(IoError::on("read directory", directory))? {
        let entry = entry.map_err(IoError::on("read directory", directory))?;
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            prune(&path, kept)?;
            // Full ones stay.
            let _ = fs::remove_dir(&path);
        } else if !kept.contains(path.as_path()) {
            remove(&path)?;
        }
    }
    Ok(())
}
