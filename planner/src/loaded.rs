//! From the linker's trace of loaded files to what the final link is given for each of them.
//!
//! The trace names members of archives (`lib.a(m.o)`), which a link line cannot: the final link is given an excerpt of the
//! archive, an archive of the same name with those members only, and takes it whole. So a member keeps its archive's name,
//! which `--exclude-libs`, section patterns and map files go by, and only what was loaded is copied. Reads archives,
//! linker scripts and symbol tables; writes nothing, and knows nothing of which symbols count.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::path::Path;

use distlto_prepare::definitions::{definitions, weak_references};
use distlto_prepare::error::PrepareError;
use distlto_prepare::excerpt::Excerpts;
use distlto_prepare::kind::{Kind, classify, classify_file};
use distlto_prepare::mentions::{Mentions, mentions};

use crate::fates::ThinLinkOutcome;
use crate::inputs::{LinkInputs, NativeInput, Slot};
use crate::linker::elf::{script, script_objects};
use crate::module_names::{self, Symbols};
use crate::thin_link::traced_member;

/// A file that the thin link loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loaded {
    /// Bitcode, by its id.
    Module(String),
    /// A native object, or a script that brings some: the words for it, and the object.
    Native {
        /// The words.
        words: Vec<String>,
        /// The object.
        path: String,
    },
    /// A member of an archive, by its place in [`LoadedFiles::archives`] and its place there.
    Member {
        /// The archive.
        archive: usize,
        /// The member.
        member: usize,
    },
}

/// Everything that the thin link loaded, but for what the line brings by itself: shared libraries, data.
#[derive(Default)]
pub struct LoadedFiles {
    /// In the order of loading.
    pub files: Vec<Loaded>,
    /// Archives that members are taken from, by the linker's name for them.
    pub archives: Vec<(String, Excerpts)>,
    /// Which of the line's slots are among the files.
    pub slots: HashSet<usize>,
    /// Members that the linker has to find again, since the trace does not tell which ones they are.
    pub unnamed: Vec<String>,
    /// Whether some objects come with a script that brings other things too.
    pub in_scripts: bool,
    /// Names that must have a definition though no file of the final link says so.
    pub demanded: Vec<String>,
}

impl LoadedFiles {
    /// Reads a trace.
    pub fn of(inputs: &LinkInputs, trace: &[String]) -> Result<Self, PrepareError> {
        let mut reader = Reader::of(inputs);
        for line in trace {
            reader.line(line)?;
        }
        Ok(reader.loaded)
    }

    /// Bitcode that the linker loaded and that is none of the inputs, by its id or its archive.
    pub fn unprepared(
        &self,
        inputs: &LinkInputs,
        outcome: &ThinLinkOutcome,
    ) -> Result<Option<String>, PrepareError> {
        let known: HashSet<&str> = inputs.modules().map(|(id, _)| id).collect();
        if let Some(id) = outcome.indexed.iter().find(|id| !known.contains(id.as_str())) {
            return Ok(Some(id.clone()));
        }
        // Modules of regular LTO have no place in the index.
        for file in &self.files {
            let Loaded::Member { archive, member } = file else { continue };
            let (path, excerpts) = &self.archives[*archive];
            let kind = classify(&excerpts.member(*member)?);
            if matches!(kind, Kind::Bitcode { .. }) || (inputs.fat_lto && matches!(kind, Kind::FatLto(_))) {
                return Ok(Some(path.clone()));
            }
        }
        Ok(None)
    }

    /// The object of a native file, to look at its symbols.
    pub fn read(&self, file: &Loaded) -> Option<Vec<u8>> {
        match file {
            Loaded::Module(id) => fs::read(id).ok(),
            Loaded::Native { path, .. } => fs::read(path).ok(),
            Loaded::Member { archive, member } => self.archives[*archive].1.member(*member).ok(),
        }
    }

    /// What a file defines and refers to; of what a module needs only the names `asked` for. A module that cannot be read may
    /// define any name.
    pub fn symbols(&self, file: &Loaded, asked: &HashSet<Vec<u8>>) -> Symbols {
        let bytes = self.read(file).unwrap_or_default();
        match file {
            Loaded::Module(_) => module_names::read(&bytes, asked)
                .unwrap_or_else(|_| Symbols { others: true, ..Symbols::default() }),
            Loaded::Native { .. } | Loaded::Member { .. } => {
                let weakly = weak_references(&bytes);
                let Mentions { common, narrowed } = mentions(&bytes);
                Symbols { names: definitions(&bytes), weakly, common, narrowed, ..Symbols::default() }
            }
        }
    }
}

struct Reader<'a> {
    loaded: LoadedFiles,
    inputs: &'a LinkInputs,
    modules: HashSet<&'a str>,
    /// Native members of unpacked archives.
    members: HashSet<&'a str>,
    /// Native objects of the line by path, and of scripts that bring nothing else.
    objects: HashMap<String, VecDeque<usize>>,
    archives: HashMap<String, Option<usize>>,
}

impl<'a> Reader<'a> {
    fn of(inputs: &'a LinkInputs) -> Self {
        let mut objects: HashMap<String, VecDeque<usize>> = HashMap::new();
        for (slot, found) in inputs.slots.iter().enumerate() {
            let Slot::Other { input, lazy } = found else { continue };
            let paths = match input.native {
                NativeInput::Object => vec![input.path.clone()],
                NativeInput::Script if !lazy => {
                    script_objects::objects(Path::new(&input.path)).unwrap_or_default()
                }
                _ => Vec::new(),
            };
            for path in paths {
                objects.entry(path).or_default().push_back(slot);
            }
        }
        let members = inputs.archives.iter().flat_map(|archive| &archive.members);
        Self {
            loaded: LoadedFiles::default(),
            inputs,
            modules: inputs.modules().map(|(id, _)| id).collect(),
            members: members.filter(|of| of.module.is_none()).map(|of| of.path.as_str()).collect(),
            objects,
            archives: HashMap::new(),
        }
    }

    fn line(&mut self, line: &str) -> Result<(), PrepareError> {
        if self.modules.contains(line) {
            self.loaded.files.push(Loaded::Module(line.to_owned()));
        } else if self.members.contains(line) {
            self.native(vec![line.to_owned()], line);
        } else if let Some(slot) = self.objects.get_mut(line).and_then(VecDeque::pop_front) {
            self.native(vec![line.to_owned()], line);
            self.loaded.slots.insert(slot);
        } else if let Some((archive, member)) = traced_member(line) {
            self.member(line, archive, member)?;
        } else if matches!(classify_file(Path::new(line)), Ok(Kind::Native(_) | Kind::FatLto(_)))
            && let Some(slot) = self.script_with(line)
            && let Slot::Other { input, .. } = &self.inputs.slots[slot]
        {
            self.native(vec![input.path.clone()], line);
            self.loaded.slots.insert(slot);
            self.loaded.in_scripts = true;
        }
        Ok(())
    }

    fn native(&mut self, words: Vec<String>, path: &str) {
        self.loaded.files.push(Loaded::Native { words, path: path.to_owned() });
    }

    fn member(&mut self, line: &str, archive: &str, member: &str) -> Result<(), PrepareError> {
        let index = match self.archives.get(archive) {
            Some(index) => *index,
            None => {
                let is_archive = matches!(classify_file(Path::new(archive)), Ok(Kind::Archive { .. }));
                let index = is_archive.then_some(self.loaded.archives.len());
                if is_archive {
                    let excerpts = Excerpts::open(Path::new(archive))?;
                    self.loaded.archives.push((archive.to_owned(), excerpts));
                }
                self.archives.insert(archive.to_owned(), index);
                index
            }
        };
        let Some(archive) = index else { return Ok(()) };
        match self.loaded.archives[archive].1.place(member.as_bytes()) {
            Some(member) => self.loaded.files.push(Loaded::Member { archive, member }),
            None => self.loaded.unnamed.push(line.to_owned()),
        }
        Ok(())
    }

    /// The first script of the line, none of whose objects was seen so far, that names the object.
    fn script_with(&self, object: &str) -> Option<usize> {
        let base = Path::new(object).file_name();
        let names_it =
            |text: &str| script::inputs(text).iter().any(|name| Path::new(name).file_name() == base);
        self.inputs.slots.iter().enumerate().position(|(slot, found)| match found {
            Slot::Other { input, .. } if input.native == NativeInput::Script => {
                !self.loaded.slots.contains(&slot)
                    && fs::read_to_string(&input.path).is_ok_and(|text| names_it(&text))
            }
            _ => false,
        })
    }
}
