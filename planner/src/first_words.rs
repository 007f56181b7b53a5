//! The first part of the final link's line: the loaded files, in order, each as the linker is to be given it.
//!
//! Consecutive members of one archive are one excerpt, and an archive that was loaded from its first member to its last
//! stands for itself. A native object that loses definitions to modules is a copy without them, and one more says what modules
//! claim of symbols. Reads symbol tables where
//! the order depends on them; what has to be written is handed out.

use std::collections::{HashMap, HashSet};

use distlto_prepare::definitions::{definitions, without};
use distlto_prepare::error::PrepareError;
use distlto_prepare::mentions::{Claim, mentions, saying};
use distlto_prepare::names::escape_path;
use rayon::prelude::*;

use crate::claims::claims;
use crate::fates::{Fates, ModuleFate};
use crate::inputs::{LinkInputs, Slot};
use crate::link_line::LinkOption;
use crate::load_order::{LoadedPart, LostSymbols, PlacedFile, lost, ordered};
use crate::loaded::{Loaded, LoadedFiles};
use crate::module_names::Symbols;
use crate::needed::needed;
use crate::shard::{guid, stand_aside};
use crate::state::Place;

/// The loaded files on the final link's line.
#[derive(Debug, Default)]
pub struct FirstWords {
    /// The words.
    pub words: Vec<String>,
    /// Excerpts of archives and copies of objects that the words name, and their content.
    pub excerpts: Vec<(String, Vec<u8>)>,
    /// The files they are taken from.
    pub sources: Vec<String>,
    /// Whether native objects and modules stand in another order than in a link of one step.
    pub order_differs: bool,
    /// A symbol of which modules say what cannot be said in the final link.
    pub unsaid: Option<String>,
}

/// What the thin link decided of modules' symbols.
pub struct Decided<'a> {
    /// By module id.
    pub shards: HashMap<&'a str, &'a [u8]>,
    /// The object of regular LTO.
    pub regular: Option<&'a [u8]>,
}

/// Puts the loaded files on a line. `object_of` names a module's native object; `regular` is where the object of regular LTO lies.
pub fn first_words(
    state: &str,
    inputs: &LinkInputs,
    fates: &Fates,
    (loaded, decided): (&LoadedFiles, &Decided<'_>),
    object_of: impl Fn(&str) -> String,
    regular: Option<&str>,
) -> Result<FirstWords, PrepareError> {
    let parts: Vec<LoadedPart<usize>> = (0..loaded.files.len())
        .map(|at| match &loaded.files[at] {
            Loaded::Module(id) if fates.of_module(id, false) == ModuleFate::Object => LoadedPart::Module(at),
            Loaded::Module(_) => LoadedPart::Merged(at),
            Loaded::Native { .. } | Loaded::Member { .. } => LoadedPart::Native(at),
        })
        .collect();
    let mut symbols = symbols(loaded, &parts);
    decided.set_aside(loaded, &parts, &mut symbols);
    let lost = lost(&parts, &symbols, takes_first_of_many(inputs));
    let Copies { copies, are_all } = copies(loaded, &lost, writes_relocatable(inputs));
    let exact = are_all && !lost.unknown;
    let mut writer = Writer { state, loaded, copies, runs: HashMap::new(), found: FirstWords::default() };
    writer.found.order_differs = !exact || !loaded.unnamed.is_empty() || loaded.in_scripts;
    let demanded = loaded.demanded.iter().map(String::as_str);
    writer.found.words =
        needed(&symbols).into_iter().chain(demanded).map(|name| format!("--undefined={name}")).collect();
    let mut run: Option<(usize, Vec<usize>)> = None;
    for placed in ordered(&parts, regular.is_some(), exact) {
        let at = match placed {
            PlacedFile::Regular => None,
            PlacedFile::Native(at) | PlacedFile::Module(at) => Some(at),
        };
        let file = at.map(|at| (at, &loaded.files[at]));
        match (file, &mut run) {
            (Some((at, Loaded::Member { archive, .. })), Some((same, members))) if same == archive => {
                members.push(at);
                continue;
            }
            _ => writer.members(run.take())?,
        }
        match file {
            None => writer.found.words.extend(regular.map(str::to_owned)),
            Some((_, Loaded::Module(id))) => writer.found.words.push(object_of(id)),
            Some((at, Loaded::Native { words, path })) => writer.native(at, words, path),
            Some((at, Loaded::Member { archive, .. })) => run = Some((*archive, vec![at])),
        }
    }
    writer.members(run)?;
    if !writes_relocatable(inputs) {
        writer.claims(&claims(&parts, &symbols));
    }
    writer.found.sources.extend(loaded.archives.iter().map(|(path, _)| path.clone()));
    Ok(writer.found)
}

impl Decided<'_> {
    /// Finds the modules' weak definitions that do not count, among those that native objects have too.
    fn set_aside(&self, loaded: &LoadedFiles, parts: &[LoadedPart<usize>], symbols: &mut [Symbols]) {
        let is_native = |part: &LoadedPart<usize>| matches!(part, LoadedPart::Native(_));
        let natives = parts.iter().zip(&*symbols).filter(|(part, _)| is_native(part));
        let rivals: HashSet<Vec<u8>> =
            natives.flat_map(|(_, symbols)| &symbols.names.weak).cloned().collect();
        let (regular, common) =
            self.regular.map(|object| (definitions(object), mentions(object).common)).unwrap_or_default();
        let in_regular = |name: &Vec<u8>| {
            regular.weak.contains(name) || regular.strong.contains(name) || common.contains_key(name)
        };
        symbols.par_iter_mut().zip(parts).filter(|(_, part)| !is_native(part)).for_each(|(symbols, part)| {
            let (LoadedPart::Native(at) | LoadedPart::Merged(at) | LoadedPart::Module(at)) = *part;
            let mut shared: HashSet<Vec<u8>> = symbols.names.weak.intersection(&rivals).cloned().collect();
            let Loaded::Module(id) = &loaded.files[at] else { return };
            if shared.is_empty() {
                return;
            }
            match (part, self.shards.get(id.as_str())) {
                (LoadedPart::Merged(_), _) => shared.retain(|name| !in_regular(name)),
                (_, Some(shard)) => {
                    // A shard that cannot be read is refused where it is checked.
                    let aside = stand_aside(shard, id).unwrap_or_default();
                    shared.retain(|name| aside.contains(&guid(name)));
                }
                (_, None) => shared.clear(),
            }
            symbols.aside = shared;
        });
    }
}

/// Native objects without what they lose.
struct Copies {
    copies: HashMap<usize, Vec<u8>>,
    are_all: bool,
}

/// Makes them. What a script brings cannot be another file; and a relocatable output keeps every section.
fn copies(loaded: &LoadedFiles, lost: &LostSymbols<usize>, relocatable: bool) -> Copies {
    let copy = |(at, lost): &(usize, _)| {
        let file = &loaded.files[*at];
        let replaceable = match file {
            Loaded::Native { words, path } => words == std::slice::from_ref(path),
            _ => true,
        };
        let bytes = loaded.read(file).filter(|_| replaceable && !relocatable)?;
        Some((*at, without(&bytes, lost)?))
    };
    let copies: HashMap<usize, Vec<u8>> = lost.of.par_iter().filter_map(copy).collect();
    Copies { are_all: copies.len() == lost.of.len(), copies }
}

struct Writer<'a> {
    state: &'a str,
    loaded: &'a LoadedFiles,
    /// By place in the order of loading.
    copies: HashMap<usize, Vec<u8>>,
    /// How many files there are that are made of one.
    runs: HashMap<&'a str, usize>,
    found: FirstWords,
}

impl<'a> Writer<'a> {
    /// Where something that is made of a file lies: under its name, which the linker may go by.
    fn place(&mut self, path: &'a str) -> String {
        let number = self.runs.entry(path).or_default();
        *number += 1;
        let escaped = escape_path(path.as_bytes());
        let base = escaped.rsplit('/').next().unwrap_or(&escaped);
        format!("{}/{escaped}/{number}/{base}", directory(self.state))
    }

    fn native(&mut self, at: usize, words: &[String], path: &'a str) {
        let Some(copy) = self.copies.remove(&at) else {
            self.found.words.extend_from_slice(words);
            return;
        };
        let place = self.place(path);
        self.found.words.push(place.clone());
        self.found.excerpts.push((place, copy));
        self.found.sources.push(path.to_owned());
    }

    /// What modules say of symbols for which other files' definitions count, said by an object of no other use.
    fn claims(&mut self, claims: &[Claim<'_>]) {
        let Some(first) = claims.first() else { return };
        let natives = self.loaded.files.iter().filter(|file| !matches!(file, Loaded::Module(_)));
        let object = natives.filter_map(|file| self.loaded.read(file)).find_map(|like| saying(&like, claims));
        match object {
            Some(object) => {
                let place = format!("{}/claims.o", directory(self.state));
                self.found.words.push(place.clone());
                self.found.excerpts.push((place, object));
            }
            None => self.found.unsaid = Some(String::from_utf8_lossy(first.name).into_owned()),
        }
    }

    /// Consecutive members of one archive.
    fn members(&mut self, run: Option<(usize, Vec<usize>)>) -> Result<(), PrepareError> {
        let Some((archive, run)) = run else { return Ok(()) };
        let (path, excerpts) = &self.loaded.archives[archive];
        let members: Vec<(usize, Option<Vec<u8>>)> = run
            .into_iter()
            .filter_map(|at| match &self.loaded.files[at] {
                Loaded::Member { member, .. } => Some((*member, self.copies.remove(&at))),
                _ => None,
            })
            .collect();
        let is_all = members.len() == excerpts.count()
            && members.is_sorted_by_key(|(member, _)| *member)
            && members.iter().all(|(_, copy)| copy.is_none());
        let place = if is_all {
            path.clone()
        } else {
            let place = self.place(path);
            self.found.excerpts.push((place.clone(), excerpts.archive(&members)?));
            place
        };
        self.found.words.extend(["--whole-archive".to_owned(), place, "--no-whole-archive".to_owned()]);
        Ok(())
    }
}

/// Where excerpts lie.
pub fn directory(state: &str) -> String {
    Place::Loaded.of(state)
}

/// What the files say of symbols; modules are read again where one of them refers weakly to what no native object does.
fn symbols(loaded: &LoadedFiles, parts: &[LoadedPart<usize>]) -> Vec<Symbols> {
    let native = |part: &LoadedPart<usize>| match *part {
        LoadedPart::Native(at) => loaded.symbols(&loaded.files[at], &HashSet::new()),
        LoadedPart::Merged(_) | LoadedPart::Module(_) => Symbols::default(),
    };
    let mut found: Vec<Symbols> = parts.par_iter().map(native).collect();
    let mut asked = None;
    loop {
        let weakly: HashSet<_> = found.iter().flat_map(|symbols| &symbols.weakly).cloned().collect();
        if asked.as_ref() == Some(&weakly) {
            return found;
        }
        found.par_iter_mut().zip(parts).for_each(|(found, part)| {
            if let LoadedPart::Merged(at) | LoadedPart::Module(at) = *part {
                *found = loaded.symbols(&loaded.files[at], &weakly);
            }
        });
        asked = Some(weakly);
    }
}

fn has(inputs: &LinkInputs, wanted: impl Fn(&LinkOption) -> bool) -> bool {
    inputs.slots.iter().any(|slot| matches!(slot, Slot::Option(option) if wanted(option)))
}

/// Whether the first of several definitions of a name counts, instead of being an error.
fn takes_first_of_many(inputs: &LinkInputs) -> bool {
    has(inputs, |option| {
        option.name == "allow-multiple-definition"
            || (option.name == "z" && option.value.as_deref() == Some("muldefs"))
    })
}

fn writes_relocatable(inputs: &LinkInputs) -> bool {
    has(inputs, |option| option.name == "relocatable")
}
