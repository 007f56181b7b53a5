//! Completes the shards of a job file from lld's symbol resolution, so that the objects equal those of lld in process.
//!
//! With `--save-temps=resolution` (COFF: `/lldsavetemps:resolution`), lld writes the resolution beside the output before the backends start, and does not remove
//! it. Modules have the same names in it as in the job file.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use distlto_planner::bitcode::BitcodeError;
use distlto_planner::dtlto::JobFile;
use distlto_planner::dtlto::temporaries::unpacked;
use distlto_planner::references::{self, References};
use distlto_prepare::input::Input;
use distlto_prepare::io_error::IoError;
use distlto_prepare::kind::{Format, Native, bitcode_of};
use distlto_prepare::member::{LocatedMember, MemberContent, located_members};
use distlto_prepare::write::{remove, write_atomically};
use miette::{Diagnostic, Report};
use thiserror::Error;

use crate::completion::{Completion, CompletionError, modules, of_modules};

/// Why shards were not completed.
#[derive(Debug, Error, Diagnostic)]
enum CompleteError {
    /// The linker's output has no name.
    #[error("the job file does not name the output, so the linker's resolution file is not known")]
    #[diagnostic(code(distlto::bad_input), help("leave out --complete-shards"))]
    NoOutput,
    /// A file is not an index shard.
    #[error("{}: {source}", path.display())]
    #[diagnostic(forward(source))]
    Shard {
        /// The file.
        path: PathBuf,
        /// The error in it.
        source: BitcodeError,
    },
}

/// Completes the shards of all jobs of the linker with this process number, and removes lld's file.
pub fn shards(file: &JobFile, process: Option<u32>) -> Result<(), Report> {
    let output = file.linker_output.as_ref().ok_or(CompleteError::NoOutput)?;
    let path = PathBuf::from(format!("{output}.resolution.txt"));
    let resolutions = fs::read(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Report::from(CompletionError::NotResolved { path: path.clone() }),
        _ => IoError::on("read", &path)(error).into(),
    })?;
    let read = &mut |id: &str| match Input::open(Path::new(id)) {
        Ok(input) => references(&input),
        Err(_) => of_member(process.and_then(|process| unpacked(id, process)).unwrap_or(id)),
    };
    let target = file.common_args.iter().find_map(|word| word.strip_prefix("--target="));
    let is_coff = target.and_then(Native::of_triple).is_some_and(|native| native.format == Format::Coff);
    let resolutions = match is_coff {
        true => {
            let compiled: HashSet<&str> = file.jobs.iter().map(|&job| file.module(job)).collect();
            let modules = modules(&resolutions);
            of_modules(modules.iter().map(String::as_str), &|module| compiled.contains(module), read)?
        }
        false => resolutions,
    };
    let mut completion = Completion::of(&resolutions, "");
    for &job in &file.jobs {
        let shard = Path::new(file.shard(job));
        let bytes = fs::read(shard).map_err(IoError::on("read", shard))?;
        let completed = completion.complete(&bytes, file.module(job), read);
        let completed =
            completed.map_err(|source| CompleteError::Shard { path: shard.to_owned(), source })?;
        write_atomically(shard, &completed)?;
    }
    Ok(remove(&path)?)
}

fn references(bytes: &[u8]) -> Option<References> {
    references::read(bitcode_of(bytes).unwrap_or(bytes)).ok().flatten()
}

/// The same for a member of an archive that is no file, since the linker itself compiles modules for full LTO. ELF's linker calls
/// it `lib.a(m.o at 78)`, COFF's `lib.am.o78`, with its number in place of 78 if all members are taken.
fn of_member(id: &str) -> Option<References> {
    let archives = id.char_indices().skip(1).map(|(at, _)| id.split_at(at));
    archives.filter(|(archive, _)| Path::new(archive).is_file()).find_map(|(archive, rest)| {
        let bytes = Input::open(Path::new(archive)).ok()?;
        let members = located_members(Path::new(archive), &bytes);
        let named = |(number, member): &(usize, LocatedMember)| {
            let (name, offset) = (String::from_utf8_lossy(&member.name), member.offset);
            let names =
                [format!("({name} at {offset})"), format!("{name}{offset}"), format!("{name}{number}")];
            names.iter().any(|name| name == rest)
        };
        match members.into_iter().enumerate().find(named)?.1.content {
            MemberContent::Inside(place) => references(&bytes[place]),
            MemberContent::Beside(file) => references(&Input::open(&file).ok()?),
        }
    })
}
