//! What the inputs of a link line are, and the form in which a distributed link takes them.
//!
//! Reads the files that the line names; starts nothing. An archive with bitcode is unpacked, since the id of an
//! archived module (`lib.a(m.o at 78)`) names no file that a backend could open. Every bitcode input gets a path of
//! its own that is valid UTF-8: that path is its module id. The rules are those of facts on `--thinlto-index-only`
//! in LLVM 14 to 22: see `docs/thin-link.md`.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use distlto_prepare::error::Error as PrepareError;
use distlto_prepare::input::Input;
use distlto_prepare::kind::{self, Kind};
use distlto_prepare::names::escape_path;
use distlto_prepare::peek::holds_bitcode;
use distlto_prepare::store::Store;
use distlto_prepare::unpack::{Unpack, unpack_all};
use distlto_prepare::write::{IoError, write_if_changed};
use miette::Diagnostic;
use rayon::prelude::*;
use thiserror::Error;

use crate::alias::{Aliases, needs_alias};
use crate::bitcode::BitcodeError;
use crate::link_line::{Argument, LinkOption};
use crate::module::{self, Module};
use crate::search::Search;
use crate::words::{lossy, path_of};

/// Why inputs could not be taken.
#[derive(Debug, Error, Diagnostic)]
pub enum InputError {
    /// A file could not be read or written.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
    /// An archive or object could not be read or unpacked.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Prepare(#[from] PrepareError),
    /// A bitcode input is malformed.
    #[error("{}: {source}", path.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help("the file is truncated or damaged: compile it, or build its archive, again")
    )]
    Bitcode {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where in the file.
        source: BitcodeError,
    },
    /// A linker option that would make the inputs others than those the line names.
    #[error("{option} cannot be used in a distributed link")]
    #[diagnostic(code(distlto::untranslatable), help("{remedy}"))]
    Option {
        /// The option as it was written.
        option: String,
        /// What to do instead.
        remedy: &'static str,
    },
}

/// One part of a link line.
#[derive(Debug, Clone, PartialEq)]
pub enum Slot {
    /// An option, with its words.
    Option(LinkOption),
    /// An input that is not bitcode, with its words.
    Other {
        /// As they were written, or an alias.
        words: Vec<String>,
        /// Whether it stands between `--start-lib` and `--end-lib`.
        lazy: bool,
    },
    /// A bitcode object.
    Module {
        /// The module.
        input: ModuleInput,
        /// Whether the linker loads it only when a symbol needs it.
        lazy: bool,
    },
    /// An archive with bitcode members, unpacked.
    Archive {
        /// Which of [`Inputs::archives`].
        index: usize,
        /// Whether its members are loaded only when a symbol needs them: not under `--whole-archive`.
        lazy: bool,
    },
}

/// A bitcode object of the link.
#[derive(Debug, Clone, PartialEq)]
pub struct ModuleInput {
    /// The module id: its path, as the linker and the backends are given it.
    pub id: String,
    /// What its bitcode says of itself.
    pub module: Module,
}

/// An archive whose members were put into files.
#[derive(Debug, Clone, PartialEq)]
pub struct UnpackedArchive {
    /// The archive's path, as the line names it or as its `-l` was resolved.
    pub path: String,
    /// The directory that holds the members.
    pub directory: String,
    /// The members that a linker takes, in archive order.
    pub members: Vec<MemberInput>,
}

/// A member of an unpacked archive.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberInput {
    /// Its path.
    pub path: String,
    /// What its bitcode says of itself; `None` for a native object.
    pub module: Option<Module>,
}

/// A link line whose inputs are known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Inputs {
    /// The parts of the line in order.
    pub slots: Vec<Slot>,
    /// The archives that were unpacked, in link order.
    pub archives: Vec<UnpackedArchive>,
    /// Files that the line names or that its libraries are, sorted.
    pub files: Vec<PathBuf>,
    /// Places where a library was looked for in vain, sorted.
    pub absent: Vec<PathBuf>,
}

impl Inputs {
    /// Every bitcode object: plain ones and members.
    pub fn modules(&self) -> impl Iterator<Item = (&str, &Module)> {
        let plain = self.slots.iter().filter_map(|slot| match slot {
            Slot::Module { input, .. } => Some((input.id.as_str(), &input.module)),
            _ => None,
        });
        let members = self.archives.iter().flat_map(|archive| {
            archive.members.iter().filter_map(|member| Some((member.path.as_str(), member.module.as_ref()?)))
        });
        plain.chain(members)
    }
}

/// Where inputs that need another form are put.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// The link's state directory; valid UTF-8 since the output's name is.
    pub state: &'a str,
    /// Shared storage for unpacked members.
    pub store: Option<&'a Store>,
}

/// An input of the line before its file was looked at.
struct Named {
    path: PathBuf,
    words: Vec<String>,
    in_lib: bool,
    whole_archive: bool,
    binary: bool,
}

enum Part {
    Option(LinkOption),
    Input(Named),
}

/// Finds out what every input of a line is, unpacks archives, and gives odd names an alias.
pub fn resolve(arguments: &[Argument], places: Places<'_>) -> Result<Inputs, InputError> {
    let mut inputs = Inputs::default();
    let fat_lto = crate::link_line::is_on(arguments, "fat-lto-objects", "no-fat-lto-objects");
    let parts = name_parts(arguments, &mut inputs)?;
    let looked_at: Vec<Looked> = parts
        .par_iter()
        .map(|part| match part {
            Part::Option(_) => Ok(Looked::Other),
            Part::Input(named) => look(named, fat_lto),
        })
        .collect::<Result<_, _>>()?;
    let mut builder = Builder {
        inputs,
        places,
        aliases: Aliases::new(places.state),
        requests: Vec::new(),
        once: Once::of(&parts, &looked_at),
    };
    for (part, looked) in parts.into_iter().zip(looked_at) {
        builder.add(part, looked)?;
    }
    builder.finish(fat_lto)
}

/// Walks the line, keeping the states that decide how an input is taken.
fn name_parts(arguments: &[Argument], inputs: &mut Inputs) -> Result<Vec<Part>, InputError> {
    let search = Search::of(arguments);
    let mut state = LineState::default();
    let mut parts = Vec::with_capacity(arguments.len());
    for argument in arguments {
        match argument {
            Argument::Option(option) => {
                refuse(option)?;
                state.step(option);
                inputs.files.extend(file_of(option));
                parts.push(Part::Option(option.clone()));
            }
            Argument::Input(word) => {
                let path = path_of(word);
                let words = vec![lossy(word)];
                parts.push(Part::Input(state.input(path, words)));
            }
            Argument::Library(name) => {
                let found = search.library(name, state.current.only_static);
                inputs.absent.extend(found.absent);
                let words = vec![format!("-l{name}")];
                match found.file {
                    Some(path) => parts.push(Part::Input(state.input(path, words))),
                    // The linker says so in its own words.
                    None => parts.push(Part::Option(LinkOption {
                        name: "library".to_owned(),
                        value: None,
                        words,
                    })),
                }
            }
        }
    }
    Ok(parts)
}

#[derive(Clone, Copy, Default)]
struct Toggles {
    whole_archive: bool,
    only_static: bool,
}

#[derive(Default)]
struct LineState {
    current: Toggles,
    pushed: Vec<Toggles>,
    in_lib: bool,
    binary: bool,
}

impl LineState {
    fn step(&mut self, option: &LinkOption) {
        match option.name.as_str() {
            "whole-archive" => self.current.whole_archive = true,
            "no-whole-archive" => self.current.whole_archive = false,
            "Bstatic" => self.current.only_static = true,
            "Bdynamic" => self.current.only_static = false,
            "push-state" => self.pushed.push(self.current),
            "pop-state" => self.current = self.pushed.pop().unwrap_or(self.current),
            "start-lib" => self.in_lib = true,
            "end-lib" => self.in_lib = false,
            "format" => self.binary = option.value.as_deref() == Some("binary"),
            _ => {}
        }
    }

    fn input(&self, path: PathBuf, words: Vec<String>) -> Named {
        Named {
            path,
            words,
            in_lib: self.in_lib,
            whole_archive: self.current.whole_archive,
            binary: self.binary,
        }
    }
}

/// Options that change which inputs there are, so that what was planned would not be what is linked.
fn refuse(option: &LinkOption) -> Result<(), InputError> {
    let remedy = if option.name.starts_with("remap-inputs") {
        "name the replaced inputs on the link line"
    } else if option.name.contains("thinlto-object-suffix-replace")
        || option.name.contains("thinlto-prefix-replace")
    {
        "distlto chooses where shards go; remove the option"
    } else {
        return Ok(());
    };
    Err(InputError::Option { option: option.words.join(" "), remedy })
}

/// The file that an option names and the linker reads.
fn file_of(option: &LinkOption) -> Option<PathBuf> {
    const NAMING: &[&str] = &[
        "call-graph-ordering-file",
        "default-script",
        "dynamic-list",
        "export-dynamic-symbol-list",
        "in-implib",
        "just-symbols",
        "retain-symbols-file",
        "script",
        "symbol-ordering-file",
        "version-script",
    ];
    let value = option.value.as_deref().filter(|_| NAMING.contains(&option.name.as_str()))?;
    Some(PathBuf::from(value)).filter(|path| path.exists())
}

/// What one input turned out to be.
enum Looked {
    Other,
    Module { module: Box<Module>, bitcode: Option<Vec<u8>> },
    Archive,
}

fn look(named: &Named, fat_lto: bool) -> Result<Looked, InputError> {
    if named.binary || !named.path.is_file() {
        return Ok(Looked::Other);
    }
    let path = &named.path;
    match kind::classify_file(path)? {
        Kind::Bitcode { .. } => {
            let module = read_module(path)?;
            Ok(Looked::Module { module: Box::new(module), bitcode: None })
        }
        Kind::FatLto(_) if fat_lto => {
            let bytes = Input::open(path)?;
            let Some(bitcode) = kind::bitcode_of(&bytes) else { return Ok(Looked::Other) };
            let module =
                module::read(bitcode).map_err(|source| InputError::Bitcode { path: path.clone(), source })?;
            Ok(Looked::Module { module: Box::new(module), bitcode: Some(bitcode.to_vec()) })
        }
        Kind::Archive { .. } if holds_bitcode(path, fat_lto)? => Ok(Looked::Archive),
        _ => Ok(Looked::Other),
    }
}

fn read_module(path: &Path) -> Result<Module, InputError> {
    let bytes = Input::open(path)?;
    module::read(&bytes).map_err(|source| InputError::Bitcode { path: path.to_owned(), source })
}

/// Which inputs are given more than once. A file that is loaded in any case makes every lazy mention of it
/// empty, and of several lazy mentions only the first can be loaded; a second one would only overwrite the first
/// one's shard with a stub (LLVM names shards by path, and two spellings can be one path).
struct Once {
    loaded: HashSet<PathBuf>,
    lazy: HashSet<PathBuf>,
}

impl Once {
    fn of(parts: &[Part], looked_at: &[Looked]) -> Self {
        let loaded = parts
            .iter()
            .zip(looked_at)
            .filter_map(|(part, looked)| match (part, looked) {
                (Part::Input(named), Looked::Module { .. }) if !named.in_lib => Some(identity(&named.path)),
                (Part::Input(named), Looked::Archive) if named.whole_archive => Some(identity(&named.path)),
                _ => None,
            })
            .collect();
        Self { loaded, lazy: HashSet::new() }
    }

    /// Whether a lazy mention of this file can still bring something.
    fn takes_lazy(&mut self, path: &Path) -> bool {
        let identity = identity(path);
        !self.loaded.contains(&identity) && self.lazy.insert(identity)
    }
}

/// One value for all spellings of a path. Not the inode: members of unlike archives may be hard links to one blob.
fn identity(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

struct Request {
    archive: PathBuf,
    directory: String,
}

struct Builder<'a> {
    inputs: Inputs,
    places: Places<'a>,
    aliases: Aliases,
    requests: Vec<Request>,
    once: Once,
}

impl Builder<'_> {
    fn add(&mut self, part: Part, looked: Looked) -> Result<(), InputError> {
        let named = match part {
            Part::Option(option) => {
                self.inputs.slots.push(Slot::Option(option));
                return Ok(());
            }
            Part::Input(named) => named,
        };
        self.inputs.files.push(named.path.clone());
        match looked {
            Looked::Other => {
                let plain = named.words[0].starts_with("-l") || !needs_alias(&named.path);
                let words = match plain || !named.path.exists() {
                    true => named.words,
                    false => vec![self.aliases.link(&named.path)?],
                };
                self.inputs.slots.push(Slot::Other { words, lazy: named.in_lib });
            }
            Looked::Module { module, bitcode } => {
                if named.in_lib && !self.once.takes_lazy(&named.path) {
                    return Ok(());
                }
                let id = match bitcode {
                    Some(bitcode) => {
                        let id = self.aliases.reserve(&named.path);
                        write_if_changed(Path::new(&id), &bitcode)?;
                        id
                    }
                    None => self.aliases.name(&named.path)?,
                };
                let input = ModuleInput { id, module: *module };
                self.inputs.slots.push(Slot::Module { input, lazy: named.in_lib });
            }
            Looked::Archive => {
                let lazy = named.in_lib || !named.whole_archive;
                if lazy && !self.once.takes_lazy(&named.path) {
                    return Ok(());
                }
                let path = self.aliases.archive(&named.path)?;
                let directory = format!("{}/members/{}", self.places.state, escape_path(path.as_bytes()));
                // A whole archive may be named twice; the linker then says what it thinks of that.
                let index = match self.requests.iter().position(|request| request.directory == directory) {
                    Some(index) => index,
                    None => {
                        self.requests
                            .push(Request { archive: named.path.clone(), directory: directory.clone() });
                        self.inputs.archives.push(UnpackedArchive { path, directory, members: Vec::new() });
                        self.requests.len() - 1
                    }
                };
                self.inputs.slots.push(Slot::Archive { index, lazy });
            }
        }
        Ok(())
    }

    fn finish(mut self, fat_lto: bool) -> Result<Inputs, InputError> {
        let requests: Vec<_> = self
            .requests
            .iter()
            .map(|request| Unpack {
                archive: &request.archive,
                directory: Path::new(&request.directory),
                store: self.places.store,
                architecture: None,
                fat_lto,
            })
            .collect();
        for (archive, manifest) in self.inputs.archives.iter_mut().zip(unpack_all(&requests)) {
            let manifest = manifest?;
            archive.members = manifest
                .written()
                .collect::<Vec<_>>()
                .into_par_iter()
                .map(|(member, file)| {
                    let path = format!("{}/{file}", archive.directory);
                    let bitcode = matches!(member.kind, Kind::Bitcode { .. })
                        || (fat_lto && matches!(member.kind, Kind::FatLto(_)));
                    let module = bitcode.then(|| read_module(Path::new(&path))).transpose()?;
                    Ok(MemberInput { path, module })
                })
                .collect::<Result<_, InputError>>()?;
        }
        self.inputs.files.sort_unstable();
        self.inputs.files.dedup();
        self.inputs.absent.sort_unstable();
        self.inputs.absent.dedup();
        Ok(self.inputs)
    }
}

/// Inputs by id, for looking up what a module is.
pub fn by_id(inputs: &Inputs) -> HashMap<&str, &Module> {
    inputs.modules().collect()
}
