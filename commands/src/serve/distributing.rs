//! Linkers that call a distributor: for a link our own program runs, and for a graph the service answers in its place.
//!
//! Does not read job files.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::SystemTime;

use distlto_planner::dtlto::temporaries::is_temporary;
use distlto_planner::words::path_of;
use distlto_prepare::io_error::IoError;
use distlto_prepare::mutex::lock;
use distlto_prepare::write::remove;

use super::asking::Asking;
use super::backends::{end, send};
use super::callers::{Shared, temporaries};
use super::collected::{Collection, Task};
use super::graph::Answers;
use super::jobs::Distributing;
use super::observed::{Observed, Previous};
use super::process::Process;
use super::protocol::{Answer, PACKET, RESOLUTIONS_SUFFIX, Role};
use super::socket::{Caller, Received};
use crate::link::LinkError;

impl Shared<'_> {
    /// Answers a linker that calls a distributor. Returns when the linker has ended.
    pub fn distribute(
        &self,
        caller: &Caller,
        process: Process,
        notes: Option<File>,
        asking: Asking,
    ) -> Result<(), LinkError> {
        let done = match self.service.task {
            Task::Link | Task::Preview => return self.link(caller, process, notes, &asking),
            Task::Collect(collection) => {
                let collected = self.collect(caller, &process, notes.as_ref(), asking, collection);
                collected.inspect_err(|_| end(caller))
            }
            Task::Answer(answers) => self.answer(caller, &process, notes.as_ref(), asking, answers),
        };
        lock(&self.observed).push(Observed { process, notes });
        done
    }

    /// Collects the modules of a linker, which ends after its thin link. All its files go to a folder of the service.
    fn collect(
        &self,
        caller: &Caller,
        process: &Process,
        notes: Option<&File>,
        asking: Asking,
        collection: &Collection,
    ) -> Result<(), LinkError> {
        let here = std::env::current_dir().unwrap_or_default();
        let elsewhere = Some(process.directory.as_path()).filter(|directory| *directory != here);
        // A driver removes them when its linker ends.
        let kept = temporaries(&asking.link);
        let output = self.folder("link")?.join("program");
        self.begin_distributing(caller, process, notes, &asking, Some(&output))?;
        let Asking { link, mut compilation, .. } = asking;
        let distributing = Distributing { caller, process, notes, link: &link };
        // Without, it is a link of no ThinLTO.
        let Some(jobs) = distributing.jobs(&mut compilation)? else { return Ok(()) };
        send(caller, jobs.ticket, Answer::End(0))?;
        collection.add(jobs.heard, (link, compilation), kept, elsewhere)
    }

    /// Gives a linker the objects of a graph.
    fn answer(
        &self,
        caller: &Caller,
        process: &Process,
        notes: Option<&File>,
        mut asking: Asking,
        answers: &Answers,
    ) -> Result<(), LinkError> {
        let output = process.directory.join(asking.link.line.output());
        // A driver removes the program after its linker failed.
        lock(&self.previous).push(Previous::of(&output, Path::new("")));
        self.begin_distributing(caller, process, notes, &asking, None)?;
        let distributing = Distributing { caller, process, notes, link: &asking.link };
        let given = distributing.jobs(&mut asking.compilation).and_then(|jobs| {
            let Some(jobs) = jobs else { return Ok(()) };
            let objects = answers.objects(jobs.heard, &process.directory, &asking.compilation)?;
            for (object, place) in objects.iter().zip(&jobs.objects) {
                symlink(object, place).map_err(IoError::on("link", place))?;
            }
            Ok(send(caller, jobs.ticket, Answer::Object)?)
        });
        match &given {
            Ok(()) => wait(caller)?,
            Err(_) => end(caller),
        }
        remove_saved(process, asking.link.line.output())?;
        given
    }

    /// Has a linker hand over its jobs. `output`: the place of its program, if the link is not to replace that.
    fn begin_distributing(
        &self,
        caller: &Caller,
        process: &Process,
        notes: Option<&File>,
        asking: &Asking,
        output: Option<&Path>,
    ) -> Result<(), LinkError> {
        let failed = |error| IoError::on("answer", "the linker")(error);
        let words = self.service.handing_over(asking, output)?;
        let strings = process.strings(Path::new(""), &words).map_err(failed)?;
        let files: Vec<_> = [&strings].into_iter().chain(notes).map(AsFd::as_fd).collect();
        Ok(caller.send(&[Role::Distributing.to_byte()], &files).map_err(failed)?)
    }

    /// Makes a linker call our distributor, which has its backends run. Returns when the linker has ended.
    fn link(
        &self,
        caller: &Caller,
        process: Process,
        notes: Option<File>,
        asking: &Asking,
    ) -> Result<(), LinkError> {
        let failed = |error| IoError::on("answer", "the linker")(error);
        // A driver removes the program after its linker failed.
        let output = process.directory.join(asking.link.line.output());
        let begun = SystemTime::now();
        lock(&self.previous).push(Previous::of(&output, Path::new("")));
        let strings = process.strings(Path::new(""), &self.service.distributed(asking)?).map_err(failed)?;
        let files: Vec<_> = [&strings].into_iter().chain(&notes).map(AsFd::as_fd).collect();
        caller.send(&[Role::Program.to_byte()], &files).map_err(failed)?;
        wait(caller)?;
        self.service.add_distributed(&output, begun);
        if asking.compilation.is_completed {
            remove_saved(&process, asking.link.line.output())?;
        }
        lock(&self.observed).push(Observed { process, notes });
        Ok(())
    }
}

/// Waits until a linker has ended.
fn wait(caller: &Caller) -> Result<(), IoError> {
    let mut bytes = vec![0; PACKET];
    let heard = |error| IoError::on("hear", "the linker")(error);
    while !matches!(caller.receive(&mut bytes, None).map_err(heard)?, Received::Gone) {}
    Ok(())
}

/// Removes the files that a linker with a distributor leaves beside its output when it saves its symbol resolution: those
/// of its jobs, and the resolution if no job needed it.
fn remove_saved(process: &Process, output: &str) -> Result<(), IoError> {
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
