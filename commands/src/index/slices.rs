//! `distlto-index --slices`: writes a link's slices, and the response file of its final link.
//!
//! A module is on disk once for all slices, for a slice is as large as all that its backends import.
//! Knows nothing of what belongs into a slice.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use distlto_planner::graph::summary::GraphSummary;
use distlto_planner::graph::{ActionGraph, json};
use distlto_planner::link_command::LinkCommand;
use distlto_planner::link_plan::LinkPlan;
use distlto_planner::response;
use distlto_planner::slices::{self, GRAPH, Slice, SliceContent, SliceRequest};
use distlto_planner::words::Word;
use distlto_prepare::io_error::IoError;
use distlto_prepare::regular;
use distlto_prepare::share::Sharing;
use distlto_prepare::write::{remove, write_if_changed};

use crate::link::LinkError;

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

    /// Writes the slices of a plan, and leaves of its state directory what the final link reads.
    pub(super) fn write(&self, mut plan: LinkPlan, state: &str) -> Result<(), LinkError> {
        let read = |path: &Utf8Path| {
            regular::read(path.as_std_path()).map_err(IoError::on("read the index shard", path))
        };
        let slices = slices::cut(&mut plan, state, &self.request, &read)?;
        let mut sharing = Sharing::default();
        slices.iter().try_for_each(|slice| write(slice, &mut sharing))?;
        let graph = plan.to_graph()?;
        self.tell(&graph, &slices::explain(&plan, state, &self.request))?;
        let words: Vec<Word> = plan.link.command[1..].iter().map(|word| word.clone().into_bytes()).collect();
        self.link(&words)?;
        let kept: HashSet<&Path> = plan.link.inputs.iter().map(|path| path.as_std_path()).collect();
        Ok(prune(Path::new(state), &kept)?)
    }

    /// The slices of a link without bitcode: none has a backend, and the linker gets the line as it is.
    pub(super) fn of_native_link(&self, link: &LinkCommand, state: &str) -> Result<(), LinkError> {
        let objects = self.request.objects.iter().map(|object| &object.slice);
        let empty = |directory: &Utf8PathBuf| Slice { directory: directory.clone(), ..Slice::default() };
        let slices = objects.chain(self.request.trees.iter().map(|tree| &tree.slice)).map(empty);
        slices.into_iter().try_for_each(|slice| write(&slice, &mut Sharing::default()))?;
        self.tell(&Slice::default().graph, "")?;
        self.link(&[&link.linker[1..], link.line.words()].concat())?;
        fs::create_dir_all(state).map_err(IoError::on("create directory", state))?;
        Ok(prune(Path::new(state), &HashSet::new())?)
    }

    /// What people and other programs may ask for.
    fn tell(&self, graph: &ActionGraph, explained: &str) -> Result<(), IoError> {
        let wanted = &self.request;
        let texts = [
            (&wanted.graph, json::to_bytes(graph)),
            (&wanted.report, GraphSummary::of(graph).to_string().into_bytes()),
            (&wanted.explain, explained.as_bytes().to_vec()),
        ];
        for (place, text) in texts {
            if let Some(place) = place {
                write_if_changed(place.as_std_path(), &text)?;
            }
        }
        Ok(())
    }

    /// The words after the linker's name.
    fn link(&self, words: &[Word]) -> Result<(), IoError> {
        let Some(path) = &self.request.link else { return Ok(()) };
        write_if_changed(path.as_std_path(), &response::content(words.iter().map(Vec::as_slice))).map(drop)
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

/// Removes what is not among these files, and directories that are left empty; not the directory itself.
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
