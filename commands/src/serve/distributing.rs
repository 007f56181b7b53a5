//! Linkers that call a distributor: their thin links, and objects of a graph for them.
//!
//! Does not read job files.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use distlto_planner::dtlto::temporaries::is_temporary;
use distlto_planner::words::path_of;
use distlto_prepare::io_error::IoError;
use distlto_prepare::write::remove;

use super::asking::Asking;
use super::backends::{end, send, wait};
use super::callers::{Shared, give_role};
use super::graph::Answers;
use super::jobs::{Distributing, Jobs};
use super::preview::Heard;
use super::process::Process;
use super::protocol::{Answer, RESOLUTIONS_SUFFIX, Role};
use super::settings::CompileSettings;
use super::socket::Caller;
use crate::link::LinkError;

impl Shared<'_> {
    /// Makes a linker stop after its thin link, and returns its shards. All its files go to a folder of the service.
    pub fn thin_link_by_jobs(
        &self,
        caller: &Caller,
        process: &Process,
        notes: Option<&File>,
        asking: &mut Asking,
        folder: &Path,
    ) -> Result<Heard, LinkError> {
        let options = self.service.handing_over(asking, Some(&folder.join("program")))?;
        give_role(caller, process, notes, Role::Distributing, (folder, &options))?;
        let distributing = Distributing { caller, process, notes };
        let jobs = distributing.jobs(&mut asking.compilation).inspect_err(|_| end(caller))?;
        // Without, it is a link of no ThinLTO.
        let Some(jobs) = jobs else { return Ok(Heard::default()) };
        send(caller, jobs.ticket, Answer::End(0))?;
        Ok(jobs.heard)
    }
}

impl Distributing<'_> {
    /// Gives the linker the objects of a graph. Returns when the linker has ended.
    pub fn answer(&self, compilation: &mut CompileSettings, answers: &Answers) -> Result<(), LinkError> {
        let given = self.jobs(compilation).and_then(|jobs| match jobs {
            Some(jobs) => self.give(jobs, compilation, answers),
            None => Ok(()),
        });
        match &given {
            Ok(()) => wait(self.caller)?,
            Err(_) => end(self.caller),
        }
        given
    }

    fn give(&self, jobs: Jobs, compilation: &CompileSettings, answers: &Answers) -> Result<(), LinkError> {
        let objects = answers.objects(jobs.heard, &self.process.directory, compilation)?;
        for (object, place) in objects.iter().zip(&jobs.objects) {
            symlink(object, place).map_err(IoError::on("link", place))?;
        }
        Ok(send(self.caller, jobs.ticket, Answer::Object)?)
    }
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
