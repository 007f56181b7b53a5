//! The first part of the final link's line: the loaded files, in order, each as the linker is to be given it.
//!
//! Consecutive members of one archive are one excerpt, and an archive that was loaded from its first member to its last
//! stands for itself. Reads symbol tables where the order depends on them; what has to be written is handed out.

use std::collections::HashMap;

use distlto_prepare::definitions::competing;
use distlto_prepare::error::Error as PrepareError;
use distlto_prepare::names::escape_path;
use rayon::prelude::*;

use crate::fates::{Fate, Fates};
use crate::inputs::{Inputs, Slot};
use crate::load_order::{Defined, Part, Placed, natives_first};
use crate::loaded::{Loaded, LoadedFiles};
use crate::module_names;

/// The loaded files on the final link's line.
#[derive(Debug, Default)]
pub struct FirstWords {
    /// The words.
    pub words: Vec<String>,
    /// Excerpts of archives that the words name, and their content.
    pub excerpts: Vec<(String, Vec<u8>)>,
    /// The archives they are taken from.
    pub sources: Vec<String>,
    /// Whether native objects and modules stand in another order than in a link of one step.
    pub order_differs: bool,
}

/// Puts the loaded files on a line. `object_of` names a module's native object; `regular` is the object of regular LTO.
pub fn first_words(
    state: &str,
    inputs: &Inputs,
    fates: &Fates,
    loaded: &LoadedFiles,
    object_of: impl Fn(&str) -> String,
    regular: Option<&str>,
) -> Result<FirstWords, PrepareError> {
    let parts: Vec<Part<usize>> = (0..loaded.files.len())
        .map(|at| match &loaded.files[at] {
            Loaded::Module(id) if fates.of_module(id, false) == Fate::Object => Part::Module(at),
            Loaded::Module(_) => Part::Merged(at),
            Loaded::Native { .. } | Loaded::Member { .. } => Part::Native(at),
        })
        .collect();
    let first_counts = takes_first_of_many(inputs);
    let of_native = |at: usize| {
        loaded.read(&loaded.files[at]).map(|bytes| competing(&bytes, first_counts)).unwrap_or_default()
    };
    let of_modules = |places: &[usize]| places.par_iter().map(|&at| defined(loaded, at)).collect();
    let order = natives_first(&parts, regular.is_some(), of_native, of_modules);
    let mut writer = Writer { state, loaded, runs: HashMap::new(), found: FirstWords::default() };
    writer.found.order_differs = order.native_behind || !loaded.unnamed.is_empty();
    let mut run: Option<(usize, Vec<usize>)> = None;
    for placed in order.files {
        let file = match placed {
            Placed::Regular => None,
            Placed::Native(at) | Placed::Module(at) => Some(&loaded.files[at]),
        };
        match (file, &mut run) {
            (Some(Loaded::Member { archive, member }), Some((same, members))) if same == archive => {
                members.push(*member);
                continue;
            }
            _ => writer.members(run.take())?,
        }
        match file {
            None => writer.found.words.extend(regular.map(str::to_owned)),
            Some(Loaded::Module(id)) => writer.found.words.push(object_of(id)),
            Some(Loaded::Native { words, .. }) => writer.found.words.extend_from_slice(words),
            Some(Loaded::Member { archive, member }) => run = Some((*archive, vec![*member])),
        }
    }
    writer.members(run)?;
    writer.found.sources = loaded.archives.iter().map(|(path, _)| path.clone()).collect();
    Ok(writer.found)
}

struct Writer<'a> {
    state: &'a str,
    loaded: &'a LoadedFiles,
    /// How many excerpts there are of an archive.
    runs: HashMap<usize, usize>,
    found: FirstWords,
}

impl Writer<'_> {
    /// Consecutive members of one archive.
    fn members(&mut self, run: Option<(usize, Vec<usize>)>) -> Result<(), PrepareError> {
        let Some((archive, members)) = run else { return Ok(()) };
        let (path, excerpts) = &self.loaded.archives[archive];
        let is_all = members.len() == excerpts.count() && members.is_sorted();
        let place = if is_all {
            path.clone()
        } else {
            let number = self.runs.entry(archive).or_default();
            *number += 1;
            let escaped = escape_path(path.as_bytes());
            let base = escaped.rsplit('/').next().unwrap_or(&escaped);
            let place = format!("{}/{escaped}/{number}/{base}", directory(self.state));
            self.found.excerpts.push((place.clone(), excerpts.archive(&members)?));
            place
        };
        self.found.words.extend(["--whole-archive".to_owned(), place, "--no-whole-archive".to_owned()]);
        Ok(())
    }
}

/// Where excerpts lie.
pub fn directory(state: &str) -> String {
    format!("{state}/loaded")
}

/// A module that cannot be read may define any name.
fn defined(loaded: &LoadedFiles, at: usize) -> Defined {
    let bytes = loaded.read(&loaded.files[at]).unwrap_or_default();
    match module_names::read(&bytes) {
        Ok(found) => Defined { names: found.names, others: found.others },
        Err(_) => Defined { others: true, ..Defined::default() },
    }
}

/// Whether the first of several definitions of a name counts, instead of being an error.
fn takes_first_of_many(inputs: &Inputs) -> bool {
    inputs.slots.iter().any(|slot| match slot {
        Slot::Option(option) => {
            option.name == "allow-multiple-definition"
                || (option.name == "z" && option.value.as_deref() == Some("muldefs"))
        }
        _ => false,
    })
}
