//! Checks the jobs of a job file and builds their action graph.
//!
//! Both formats end here. An output is refused where lld would never ask for it: outside of the linker output's
//! directory and of the working directory, or where another job reads or writes. Independent of JSON.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

use super::JobFile;
use super::error::{JobFileFailure, Problem};
use super::paths::{PathId, Paths};
use crate::graph::{Action, ActionGraph, BackendWork, Decided, FileId, PrefixId, Work, is_dwo};
use crate::invocation::mode_of;

/// One job: its own words, then files. Inputs begin with module and shard, outputs with the object.
#[derive(Debug, Default)]
pub(super) struct UncheckedJob {
    pub args: Vec<String>,
    pub inputs: Vec<PathId>,
    pub outputs: Vec<PathId>,
}

/// The files at fixed positions. [`UncheckedJobs::check`] makes sure that they are there.
impl UncheckedJob {
    fn module(&self) -> PathId {
        self.inputs[0]
    }

    fn shard(&self) -> PathId {
        self.inputs[1]
    }

    fn imports(&self) -> &[PathId] {
        &self.inputs[2..]
    }

    fn object(&self) -> PathId {
        self.outputs[0]
    }

    fn besides(&self) -> &[PathId] {
        &self.outputs[1..]
    }
}

/// A job file that was read and not yet checked.
#[derive(Debug)]
pub(super) struct UncheckedJobs<'a> {
    pub linker_output: Option<Utf8PathBuf>,
    pub paths: Paths<'a>,
    pub common_args: Vec<String>,
    pub common_inputs: Vec<PathId>,
    pub jobs: Vec<UncheckedJob>,
}

/// A place in a job file: `jobs[12].inputs[3]`.
pub(super) fn of_job(job: usize, list: &str, index: usize) -> String {
    format!("jobs[{job}].{list}[{index}]")
}

/// A place in a job file: `common.modules[3]`.
pub(super) fn of_common(list: &str, index: usize) -> String {
    format!("common.{list}[{index}]")
}

impl UncheckedJobs<'_> {
    pub fn check(&self) -> Result<(), JobFileFailure> {
        self.check_compiler()?;
        for (index, job) in self.jobs.iter().enumerate() {
            if job.inputs.len() < 2 {
                let problem = Problem::NoModule { count: job.inputs.len() };
                return Err(JobFileFailure::at(format!("jobs[{index}].inputs"), problem));
            }
            if job.outputs.is_empty() {
                return Err(JobFileFailure::at(format!("jobs[{index}].outputs"), Problem::NoOutput));
            }
            if job.module() == job.shard() {
                let path = self.paths.text(job.module()).to_owned();
                return Err(JobFileFailure::at(of_job(index, "inputs", 1), Problem::ModuleIsShard { path }));
            }
            self.check_named(index, job)?;
        }
        self.check_outputs()
    }

    fn check_compiler(&self) -> Result<(), JobFileFailure> {
        match self.common_args.first() {
            Some(compiler) if !compiler.is_empty() => Ok(()),
            Some(_) => Err(JobFileFailure::at(of_common("args", 0), Problem::EmptyCompiler)),
            None => Err(JobFileFailure::at("common.args", Problem::NoCompiler)),
        }
    }

    /// The command names the files that the lists begin with; otherwise another file would be compiled or written
    /// than the one that is checked.
    fn check_named(&self, index: usize, job: &UncheckedJob) -> Result<(), JobFileFailure> {
        let named = |path| job.args.iter().any(|word| word.ends_with(self.paths.text(path)));
        for (list, at, path) in
            [("inputs", 0, job.module()), ("inputs", 1, job.shard()), ("outputs", 0, job.object())]
        {
            if !named(path) {
                let problem = Problem::NotInCommand { path: self.paths.text(path).to_owned() };
                return Err(JobFileFailure::at(of_job(index, list, at), problem));
            }
        }
        let module = self.paths.text(job.module());
        if module.starts_with(['-', '@']) && job.args.iter().any(|word| word == module) {
            let problem = Problem::ModuleIsOption { module: module.to_owned() };
            return Err(JobFileFailure::at(of_job(index, "inputs", 0), problem));
        }
        Ok(())
    }

    fn check_outputs(&self) -> Result<(), JobFileFailure> {
        let (_, files) = self.paths.files();
        let mut writers: Vec<Option<u32>> = vec![None; files.len()];
        for (index, job) in self.jobs.iter().enumerate() {
            for (at, &output) in job.outputs.iter().enumerate() {
                let place = || of_job(index, "outputs", at);
                let path = self.paths.path(output);
                if !self.may_write(path) {
                    let linker_output = self.linker_output.clone();
                    return Err(JobFileFailure::at(
                        place(),
                        Problem::Outside { path: path.to_owned(), linker_output },
                    ));
                }
                // A text of four billion jobs does not fit in memory.
                let this = u32::try_from(index).unwrap_or(u32::MAX);
                if let Some(other) = writers[files[output as usize].0 as usize].replace(this) {
                    let problem = Problem::TwoWriters { path: path.to_owned(), other: other as usize };
                    return Err(JobFileFailure::at(place(), problem));
                }
            }
        }
        let read = |path: PathId, place: String| match writers[files[path as usize].0 as usize] {
            Some(writer) => {
                let path = self.paths.path(path).to_owned();
                Err(JobFileFailure::at(place, Problem::InputIsWritten { path, writer: writer as usize }))
            }
            None => Ok(()),
        };
        for (at, &input) in self.common_inputs.iter().enumerate() {
            read(input, of_common("inputs", at))?;
        }
        for (index, job) in self.jobs.iter().enumerate() {
            // This loop sees each import of each job, so it makes places for messages on failure only.
            if let Some(at) =
                job.inputs.iter().position(|&input| writers[files[input as usize].0 as usize].is_some())
            {
                read(job.inputs[at], of_job(index, "inputs", at))?;
            }
        }
        Ok(())
    }

    /// lld writes objects beside its own output. A relative path that does not climb is inside of the working
    /// directory, which is allowed too, since later versions may have a place of their own there.
    fn may_write(&self, output: &Utf8Path) -> bool {
        let climbs = |path: &Utf8Path| path.components().any(|part| part == Utf8Component::ParentDir);
        if output.file_name().is_none() {
            return false;
        }
        if output.is_relative() && !climbs(output) {
            return true;
        }
        match &self.linker_output {
            Some(linker_output) => linker_output
                .parent()
                .and_then(|directory| output.strip_prefix(directory).ok())
                .is_some_and(|rest| rest.is_relative() && !climbs(rest)),
            None => !climbs(output),
        }
    }

    pub fn into_job_file(self) -> Result<JobFile, JobFileFailure> {
        let (table, files) = self.paths.files();
        let file = |path: PathId| files[path as usize];
        let mut last_seen = vec![0_usize; table.len()];
        let mut actions = Vec::with_capacity(self.jobs.len());
        let mut objects = Vec::with_capacity(self.jobs.len());
        for (index, job) in self.jobs.into_iter().enumerate() {
            let (module, shard, object) = (file(job.module()), file(job.shard()), file(job.object()));
            for FileId(named) in [module, shard] {
                last_seen[named as usize] = index + 1;
            }
            // A file that is listed twice is one input.
            let mut first_time = |paths: &[PathId]| -> Vec<FileId> {
                let files = paths.iter().map(|&path| file(path));
                let first = |&FileId(file): &FileId| {
                    std::mem::replace(&mut last_seen[file as usize], index + 1) != index + 1
                };
                files.filter(first).collect()
            };
            let imports = first_time(job.imports());
            let extra = first_time(&self.common_inputs);
            let written: Vec<FileId> = job.besides().iter().map(|&path| file(path)).collect();
            let dwo = written.iter().copied().find(|&FileId(written)| is_dwo(&table[written as usize]));
            let also = written.into_iter().filter(|&file| Some(file) != dwo).collect();
            objects.push(object);
            actions.push(Action {
                work: Work::Backend(BackendWork {
                    module,
                    shard,
                    imports,
                    extra,
                    object,
                    dwo,
                    also,
                    decided: Decided::default(),
                }),
                label: self.paths.text(job.module()).to_owned(),
                prefix: Some(PrefixId(0)),
                args: job.args,
                cost: 0,
            });
        }
        let objects: Vec<_> = objects.into_iter().map(|FileId(file)| table[file as usize].clone()).collect();
        let mode = self.common_args.first().and_then(|compiler| mode_of(compiler));
        let prefix = self.common_args.iter().map(String::as_str).chain(mode).map(str::to_owned).collect();
        let graph = ActionGraph::from_parts(table, vec![prefix], actions)
            .map_err(|error| JobFileFailure::at(String::new(), Problem::Graph(error)))?;
        let job = |object: &Utf8PathBuf| graph.find_file(object).and_then(|file| graph.producer(file));
        // Each job writes its object, and no other job does, so none is left out.
        let jobs = objects.iter().filter_map(job).collect();
        Ok(JobFile {
            linker_output: self.linker_output,
            jobs,
            common_args: self.common_args,
            common_inputs: self.common_inputs.iter().map(|&path| self.paths.path(path).to_owned()).collect(),
            graph,
        })
    }
}
