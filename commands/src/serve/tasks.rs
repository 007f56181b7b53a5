//! Tasks other than to link: a linker shows its modules for a dry run or a graph, or gets the objects of a graph.
//!
//! Compiles nothing.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use distlto_planner::dtlto::temporaries::is_temporary;
use distlto_planner::link_command::LinkCommand;
use distlto_planner::link_line::Argument;
use distlto_planner::words::path_of;
use distlto_prepare::io_error::IoError;
use distlto_prepare::write::remove;

use super::build::Build;
use super::collection::Collection;
use super::graph::GraphObjects;
use super::jobs::Distributor;
use super::link::{Link, LinkStart};
use super::modules::{self, Temporaries};
use super::preview::{self, Shown};
use super::previous_program::PreviousProgram;
use super::process::Process;
use super::protocol::{Answer, RESOLUTIONS_SUFFIX, Role};
use super::roles::{give_linker, handing_over};
use super::settings::CompileSettings;
use super::socket::Connection;
use super::thin_link::ThinLink;
use crate::link::error::LinkError;
use crate::link::state::LinkState;

impl<'b> Build<'b> {
    /// Reports the backends that a link would run. `earlier` is the state that its last one left.
    pub fn preview(
        &'b self,
        linker: &Connection,
        mut start: LinkStart<'b>,
        earlier: Option<LinkState>,
    ) -> Result<(), LinkError> {
        // A driver removes them when its linker ends.
        let kept = temporaries(&start.request.command);
        let settings = &start.request.settings;
        let shown = if settings.linker.is_some() && !settings.is_described {
            let request = &start.request;
            let process = start.process.writing_to(&start.cache.join("output"), &request.command);
            let names = (&request.command, &request.settings, request.stable_names);
            let words = self.asking(names, &start.cache);
            let notes = start.notes.as_ref();
            give_linker(linker, &process, &[notes], Role::Linker, (&start.cache, &words))?;
            Shown::Questions(linker)
        } else {
            Shown::Shards(thin_link(linker, &mut start)?, kept)
        };
        let state = LinkState::open_or_scratch(None)?;
        let link = Link::open(self, start, (state, earlier), Arc::clone(&self.reporter))?;
        if preview::report(&link, shown)? {
            self.seen().is_previewed = true;
        }
        Ok(())
    }

    /// Collects the modules of a link.
    pub fn collect(
        &self,
        linker: &Connection,
        mut start: LinkStart<'_>,
        collection: &Collection,
    ) -> Result<(), LinkError> {
        let kept = temporaries(&start.request.command);
        let thin_link = thin_link(linker, &mut start)?;
        let LinkStart { process, notes, request, .. } = start;
        let elsewhere = process.elsewhere();
        collection.add(thin_link, (request.command, request.settings), kept, elsewhere.as_deref())?;
        self.observe(process, notes);
        Ok(())
    }

    /// Gives a linker the objects of a graph.
    pub fn link_graph(
        &self,
        linker: &Connection,
        start: LinkStart<'_>,
        objects: &GraphObjects,
    ) -> Result<(), LinkError> {
        let LinkStart { process, notes, request, cache, .. } = start;
        let output = process.directory.join(request.command.line.output());
        // There is no state to keep it in.
        self.seen().previous.push(PreviousProgram::of(&output, Path::new("")));
        let root = process.elsewhere().unwrap_or_default();
        if !request.settings.is_distributed() {
            let words = self.asking((&request.command, &request.settings, false), &cache);
            give_linker(linker, &process, &[notes.as_ref()], Role::Linker, (&cache, &words))?;
            return objects.serve(linker, &root, &request.settings).inspect_err(|_| linker.end());
        }
        let mut settings = request.settings;
        let words = handing_over(&settings, None)?;
        give_linker(linker, &process, &[notes.as_ref()], Role::Distributing, (&cache, &words))?;
        let distributor = Distributor { connection: linker, process: &process, notes: notes.as_ref() };
        let given = distributor.give(&mut settings, objects);
        match &given {
            Ok(()) => linker.wait()?,
            Err(_) => linker.end(),
        }
        remove_saved(&process, request.command.line.output())?;
        self.observe(process, notes);
        given
    }
}

impl Distributor<'_> {
    fn give(&self, settings: &mut CompileSettings, graph: &GraphObjects) -> Result<(), LinkError> {
        let Some(jobs) = self.jobs(settings)? else { return Ok(()) };
        let objects = graph.objects(jobs.thin_link, &self.process.directory, settings)?;
        for (object, place) in objects.iter().zip(&jobs.objects) {
            symlink(object, place).map_err(IoError::on("link", place))?;
        }
        Ok(self.connection.answer(jobs.ticket, Answer::Object)?)
    }
}

/// Makes a linker stop after its thin link, and returns its shards. All its files go to its folder.
fn thin_link(linker: &Connection, start: &mut LinkStart<'_>) -> Result<ThinLink, LinkError> {
    let (process, folder, notes) = (&start.process, &start.cache, start.notes.as_ref());
    let settings = &mut start.request.settings;
    if settings.is_distributed() {
        let words = handing_over(settings, Some(&folder.join("program")))?;
        give_linker(linker, process, &[notes], Role::Distributing, (folder, &words))?;
        let distributor = Distributor { connection: linker, process, notes };
        let jobs = distributor.jobs(settings).inspect_err(|_| linker.end())?;
        // Without, it is a link of no ThinLTO.
        let Some(jobs) = jobs else { return Ok(ThinLink::default()) };
        linker.answer(jobs.ticket, Answer::End(0))?;
        return Ok(jobs.thin_link);
    }
    let list = format!("--thinlto-index-only={}", folder.join("list").display());
    let mut words = vec![list.into_bytes(), b"--thinlto-emit-index-files".to_vec()];
    words.extend(settings.resolving());
    give_linker(linker, process, &[notes], Role::Collector, (folder, &words))?;
    Ok(ThinLink::receive(linker, folder)?)
}

/// The modules of a link that its driver has compiled.
fn temporaries(command: &LinkCommand) -> Temporaries {
    modules::temporaries(command.line.arguments().iter().filter_map(|argument| match argument {
        Argument::Input(word) => Some(word),
        _ => None,
    }))
}

/// Removes the files that a linker with a distributor leaves beside its output when it saves its symbol resolution: those
/// of its jobs, and the resolution if no job needed it.
pub fn remove_saved(process: &Process, output: &str) -> Result<(), IoError> {
    let output = process.directory.join(output);
    let directory = output.parent().unwrap_or(&process.directory);
    let resolution = [output.as_os_str().as_bytes(), RESOLUTIONS_SUFFIX].concat();
    remove(&path_of(&resolution))?;
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|name| is_temporary(name, process.id)) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}
