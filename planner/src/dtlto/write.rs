//! A job file of the current shape, from any job file that was read.
//!
//! lld's own job file comes out byte for byte, except that a file listed twice in one job is listed once. Pure.

use std::io::{self, Write};

use serde::Serialize;

use super::JobFile;
use crate::graph::{ActionId, FileId};

#[derive(Serialize)]
struct Common<'a> {
    linker_output: &'a str,
    args: &'a [String],
    inputs: Vec<&'a str>,
}

#[derive(Serialize)]
struct Job<'a> {
    args: &'a [String],
    inputs: Vec<&'a str>,
    outputs: Vec<&'a str>,
}

/// Writes the jobs as lld writes them. Version 0.0 does not name the linker's output: `a.out` beside the first object
/// stands for it.
pub fn current(file: &JobFile, out: &mut impl Write) -> io::Result<()> {
    let beside = file.jobs.first().map(|&job| file.object(job).with_file_name("a.out"));
    let linker_output = file.linker_output.as_ref().or(beside.as_ref()).map_or("a.out", |path| path.as_str());
    let inputs = file.common_inputs.iter().map(|path| path.as_str()).collect();
    out.write_all(b"{\"common\":")?;
    serde_json::to_writer(&mut *out, &Common { linker_output, args: &file.common_args, inputs })?;
    out.write_all(b",\"jobs\":[")?;
    let common: Vec<_> = file.common_inputs.iter().filter_map(|path| file.graph.find_file(path)).collect();
    for (at, &id) in file.jobs.iter().enumerate() {
        if at > 0 {
            out.write_all(b",")?;
        }
        serde_json::to_writer(&mut *out, &job(file, id, &common))?;
    }
    out.write_all(b"]}")
}

fn job<'a>(file: &'a JobFile, id: ActionId, common: &[FileId]) -> Job<'a> {
    let action = file.graph.action(id);
    let path = |id: FileId| file.graph.path(id).as_str();
    // The common inputs end each job's; one that a job names itself is only there once.
    let own = action.inputs().filter(|input| !common.contains(input));
    // The module in the command's spelling: the graph keeps the first spelling of a file.
    let module = action.backend().map(|backend| backend.module);
    let spelled = |input: FileId| if module == Some(input) { &action.label } else { path(input) };
    Job {
        args: &action.args,
        inputs: own.map(spelled).collect(),
        outputs: action.outputs().map(path).collect(),
    }
}
