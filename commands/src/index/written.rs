//! Writes the files of an index directory: shards, `toolchain` and the graph.
//!
//! Does not run linkers.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use camino::Utf8PathBuf;
use distlto_planner::backend_flags::BackendFiles;
use distlto_planner::graph::build::{BackendParts, LinkParts};
use distlto_planner::graph::{ActionGraph, json};
use distlto_planner::keep::{self, ModulePlaces};
use distlto_planner::runner::Runner;
use distlto_planner::shard;
use distlto_planner::state::Place;
use distlto_planner::words::{Word, lossy};
use distlto_prepare::io_error::IoError;
use distlto_prepare::write::{remove, write_if_changed};
use rayon::prelude::*;

use super::{AskedLink, IndexArgs};
use crate::link::error::LinkError;
use crate::link::identity;
use crate::serve::describe::Described;
use crate::serve::module::triple;

/// An index directory.
pub(super) struct Index<'a> {
    pub args: &'a IndexArgs,
    pub command: &'a [Word],
    pub directory: &'a str,
    pub runner: &'a dyn Runner,
}

impl Index<'_> {
    /// Writes the files of a link, and removes those of an earlier thin link that are no longer needed.
    pub fn write(&self, asked: &AskedLink) -> Result<ActionGraph, LinkError> {
        let directory = self.directory;
        let compilation = &asked.link.settings;
        let lines = identity::of(&compilation.compiler, asked.link.command.installed.as_deref(), self.runner);
        keep::toolchain(directory, &compilation.compiler, &lines)?;
        asked.link.modules.par_iter().try_for_each(|(_, module)| {
            keep::shard_at(Path::new(&ModulePlaces::of(directory, &module.label).shard), &module.shard)
                .map(drop)
        })?;
        let graph = parts(asked, self.command, directory, Some(self.args))?.to_graph()?;
        write_if_changed(&Place::Graph.path(directory), &json::to_bytes(&graph))?;
        let named: HashSet<PathBuf> = graph.files().map(|path| path.as_std_path().to_owned()).collect();
        for place in [Place::Shards, Place::Members, Place::Objects] {
            sweep(&place.path(directory), &named)?;
        }
        Ok(graph)
    }
}

/// The parts of a link's graph. `args`: the options of the thin link action; without them there is none.
pub(super) fn parts(
    asked: &AskedLink,
    command: &[Word],
    directory: &str,
    args: Option<&IndexArgs>,
) -> Result<LinkParts, LinkError> {
    let graph = Place::Graph.of(directory);
    let toolchain = Utf8PathBuf::from(keep::toolchain_place(directory));
    let command = command.iter().map(|word| lossy(word));
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let plain = args.is_some_and(|args| args.plain_shards).then(|| "--plain-shards".to_owned());
    let link = words(&["distlto", "link", "--graph", &graph]).into_iter().chain(plain);
    let backend = |(id, module): &(String, Described)| backend(asked, id, module, directory, &toolchain);
    let mut written: Vec<Utf8PathBuf> = asked.link.written.iter().map(Utf8PathBuf::from).collect();
    written.push(toolchain.clone());
    Ok(LinkParts {
        output: asked.link.command.line.output().into(),
        thin_link: args.map(|args| {
            let index = args.words(directory).into_iter().chain(["--".to_owned()]).chain(command.clone());
            (index.collect(), graph.clone().into())
        }),
        written,
        command: link.chain(["--".to_owned()]).chain(command.clone()).collect(),
        inputs: asked.inputs.clone(),
        backends: asked.link.modules.par_iter().map(backend).collect::<Result<_, _>>()?,
    })
}

fn backend(
    asked: &AskedLink,
    id: &str,
    module: &Described,
    directory: &str,
    toolchain: &Utf8PathBuf,
) -> Result<BackendParts, LinkError> {
    let compilation = &asked.link.settings;
    let Described { label, file, imports, shard, cost, .. } = module;
    let places = ModulePlaces::of(directory, label);
    let dwo = compilation.flags.dwo(label);
    let files = BackendFiles {
        module: file,
        shard: &places.shard,
        object: &places.object,
        dwo: dwo.as_ref().map(|dwo| dwo.as_str()),
    };
    let mut args = module.flags.args.clone();
    args.extend(files.args(&triple(Path::new(file))));
    let digest = shard::digest(shard).map_err(|source| LinkError::Shard { module: id.to_owned(), source })?;
    let mut inputs = compilation.flags.inputs.clone();
    inputs.push(toolchain.clone());
    Ok(BackendParts {
        label: label.clone(),
        shared: compilation.shared_words().to_vec(),
        args,
        module: file.into(),
        shard: places.shard.into(),
        digest: Some(digest),
        imports: imports.iter().map(Utf8PathBuf::from).collect(),
        inputs,
        object: places.object.into(),
        outputs: dwo.into_iter().collect(),
        cost: *cost,
    })
}

impl IndexArgs {
    /// The command of the thin link action, up to the link command.
    fn words(&self, directory: &str) -> Vec<String> {
        let mut words = vec!["distlto-index".to_owned(), "--index".to_owned(), directory.to_owned()];
        let mut add = |option: &str, value: &str| words.push(format!("{option}={value}"));
        self.compiler.iter().for_each(|compiler| add("--compiler", compiler));
        self.backend_args.iter().for_each(|argument| add("--backend-arg", argument));
        self.flags_from.iter().for_each(|source| add("--flags-from", &source.to_string()));
        words.extend(self.plain_shards.then(|| "--plain-shards".to_owned()));
        words
    }
}

/// Removes files that are not named, and directories that are left empty.
fn sweep(directory: &Path, named: &HashSet<PathBuf>) -> Result<(), IoError> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(IoError::on("read", directory))?,
    };
    for entry in entries {
        let entry = entry.map_err(IoError::on("read", directory))?;
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            sweep(&path, named)?;
            // Full ones stay.
            let _ = fs::remove_dir(&path);
        } else if !named.contains(&path) {
            remove(&path)?;
        }
    }
    Ok(())
}
