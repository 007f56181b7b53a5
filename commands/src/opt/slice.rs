//! `distlto-opt --slice`: the backends of a slice, run in the slice's directory, where modules have their names of the
//! shards.
//!
//! Does not depend on how a slice was cut (`distlto_planner::slices`). Runs one backend after the other: parallel runs
//! are up to the build system.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use distlto_executor::cancel::Cancel;
use distlto_executor::job::Job;
use distlto_executor::output::Role;
use distlto_executor::verify::Backend;
use distlto_planner::graph::{self, Action, ActionGraph, BackendWork, FileId, json};
use distlto_planner::slices::{GRAPH, reworded};
use distlto_prepare::io_error::IoError;
use distlto_prepare::message::say;
use distlto_prepare::regular;
use distlto_prepare::write::write_atomically;
use miette::Report;

use super::{OptArgs, OptError, compile, report_outcome};

/// Runs all backends of the slice. Returns 0, or the exit code of the first that fails.
pub(super) fn run(args: &OptArgs, cancel: &Cancel) -> Result<u8, Report> {
    let slice = args.slice.as_deref().unwrap_or(Utf8Path::new("."));
    let path = slice.join(GRAPH);
    let bytes = regular::read(path.as_std_path()).map_err(IoError::on("read", &path))?;
    let graph = json::read(&bytes).map_err(|source| OptError::Slice { path, source })?;
    let places = Places::of(args)?;
    let backends: Vec<_> =
        graph.actions().filter_map(|(id, action)| Some((id, action, action.backend()?))).collect();
    if let Some(out) = &args.out {
        match backends.len() {
            0 => return nothing(out, args.dwo.as_deref()).map(|()| 0),
            1 => has_dwo(args.dwo.as_deref(), slice, backends[0].2)?,
            count => return Err(OptError::ManyObjects { slice: slice.to_owned(), count }.into()),
        }
    }
    let results = args.results(cancel)?;
    for (id, action, backend) in backends {
        let compilation = SliceCompilation::of(&graph, id, backend, &places)?;
        let job = compilation.job(&graph, action, backend);
        if args.verbose {
            say(format_args!("+ {}", job.command_line(Some(slice.as_std_path()))));
        }
        let attempt = compile(&job, None, Some(slice.as_std_path()), &results, cancel);
        let code = report_outcome(&job, attempt, Some(slice.as_std_path()), cancel)?;
        if code != 0 {
            return Ok(code);
        }
    }
    Ok(0)
}

/// Refuses a name for split debug information that the backend does not write: a build system has declared that file.
fn has_dwo(dwo: Option<&Utf8Path>, slice: &Utf8Path, backend: &BackendWork) -> Result<(), Report> {
    match dwo {
        Some(dwo) if backend.dwo.is_none() => {
            Err(OptError::NoSplitDwarf { dwo: dwo.to_owned(), slice: slice.to_owned() }.into())
        }
        _ => Ok(()),
    }
}

/// Writes an empty file for the object of a module that is not compiled: it is machine code, or the link does not load
/// it.
fn nothing(out: &Utf8Path, dwo: Option<&Utf8Path>) -> Result<(), Report> {
    for place in [Some(out), dwo].into_iter().flatten() {
        write_atomically(place.as_std_path(), b"")?;
    }
    Ok(())
}

/// Where the outputs go. Commands run in the slice, so their places are absolute; objects name them as they are spelled.
struct Places<'a> {
    args: &'a OptArgs,
    here: Utf8PathBuf,
}

impl<'a> Places<'a> {
    fn of(args: &'a OptArgs) -> Result<Self, Report> {
        let here = std::env::current_dir().and_then(|here| {
            Utf8PathBuf::from_path_buf(here).map_err(|_| std::io::ErrorKind::InvalidFilename.into())
        });
        let here = here.map_err(IoError::on("use the working directory", "."))?;
        if let Some(objects) = &args.objects {
            fs::create_dir_all(objects).map_err(IoError::on("create directory", objects))?;
        }
        Ok(Self { args, here })
    }

    /// As the command line spells it.
    fn spelled(&self, name: &Utf8Path, is_dwo: bool) -> Utf8PathBuf {
        let one = if is_dwo { &self.args.dwo } else { &self.args.out };
        match (&self.args.objects, one) {
            (Some(objects), _) => objects.join(name),
            (None, Some(one)) => one.clone(),
            // Split debug information without a path.
            (None, None) => self.args.out.as_deref().unwrap_or(name).with_extension("dwo"),
        }
    }
}

/// One backend with its words and outputs.
struct SliceCompilation {
    words: Vec<String>,
    outputs: Vec<(Utf8PathBuf, Role)>,
}

impl SliceCompilation {
    fn of(
        graph: &ActionGraph,
        id: graph::ActionId,
        backend: &BackendWork,
        places: &Places<'_>,
    ) -> Result<Self, Report> {
        let mut outputs = Vec::new();
        let mut names = Vec::new();
        for (file, role) in
            [(Some(backend.object), Role::Object), (backend.dwo, Role::Dwo)].into_iter().filter_map(named)
        {
            let name = graph.path(file);
            let spelled = places.spelled(name, role == Role::Dwo);
            let place = places.here.join(&spelled);
            if let Some(parent) = place.parent() {
                fs::create_dir_all(parent).map_err(IoError::on("create directory", parent))?;
            }
            names.push((name.to_string(), place.to_string()));
            outputs.push((place, role));
            if role == Role::Dwo {
                names.push((DWO_NAME.to_owned(), spelled.into_string()));
            }
        }
        let mut words: Vec<String> = graph.command(id).into_iter().map(str::to_owned).collect();
        if let Some(dwo) = backend.dwo {
            mark_dwo_name(&mut words, graph.path(dwo).as_str());
        }
        let mut words = reworded(&words, &names);
        // A compiler of the build, named from where the command was started.
        if let Some(program) = words.first_mut().filter(|program| program.contains('/')) {
            *program = places.here.join(&*program).into_string();
        }
        Ok(Self { words, outputs })
    }

    fn job(self, graph: &ActionGraph, action: &Action, backend: &BackendWork) -> Job {
        let text = |file: FileId| graph.path(file).to_string();
        let backend = Backend {
            module: text(backend.module),
            shard: text(backend.shard),
            others: backend.others().map(text).collect(),
        };
        let (label, Self { words, outputs }) = (action.label.clone(), self);
        Job { label, words, backend: Some(backend), outputs }
    }
}

fn named((file, role): (Option<FileId>, Role)) -> Option<(FileId, Role)> {
    Some((file?, role))
}

/// The placeholder for the object's own name of its split debug information.
const DWO_NAME: &str = "\0dwo";

/// The name in the object is not the place where the compiler writes.
fn mark_dwo_name(words: &mut [String], dwo: &str) {
    for at in 2..words.len() {
        if words[at] == dwo && words[at - 2] == "-split-dwarf-file" {
            words[at] = DWO_NAME.to_owned();
        }
    }
}
