//! What the inputs of a link line are, and the form in which a distributed link takes them.
//!
//! Reads the files that the line names; starts nothing. An archive with bitcode is unpacked, since the id of an
//! archived module (`lib.a(m.o at 78)`) names no file that a backend could open. Every bitcode input gets a path of
//! its own that is valid UTF-8: that path is its module id. The rules are those of facts on `--thinlto-index-only`
//! in LLVM 14 to 22: see `docs/thin-link.md`.

mod line;
mod look;
mod once;

use std::collections::{BTreeSet, HashMap};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use distlto_prepare::error::PrepareError;
use distlto_prepare::io_error::IoError;
use distlto_prepare::kind::Kind;
use distlto_prepare::names::escape_path;
use distlto_prepare::store::Store;
use distlto_prepare::unpack::{Unpack, unpack_all};
use distlto_prepare::write::write_if_changed;
use miette::Diagnostic;
use rayon::prelude::*;
use thiserror::Error;

use crate::alias::{Aliases, needs_alias};
use crate::bitcode::BitcodeError;
use crate::link_line::{Argument, LinkOption, options};
use crate::module::{Module, SummaryKind};
use crate::state::Place;
use crate::words::lossy;
use line::{LinePart, Named, name_parts, refuse};
use look::{Looked, file_of, look, read_module, sources_of};
use once::{Lazy, Once};

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
    /// An object without content, which lld would pass over.
    #[error("{} is empty: its module would be missing from the program", path.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help("compile it again; a compiler that was killed or ran out of space leaves such a file")
    )]
    EmptyObject {
        /// The file.
        path: PathBuf,
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
    /// An input that is not bitcode.
    Other {
        /// The input.
        input: OtherInput,
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
    /// An archive with bitcode members, or with members of one name, unpacked.
    Archive {
        /// Which of [`LinkInputs::archives`].
        index: usize,
        /// Whether its members are loaded only when a symbol needs them: not under `--whole-archive`.
        lazy: bool,
    },
}

/// An input that is not bitcode.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherInput {
    /// Its words, as they were written, or an alias.
    pub words: Vec<String>,
    /// Its path, or an alias; for a library, where it was found.
    pub path: String,
    /// What it is.
    pub native: NativeInput,
}

/// What an input that is not bitcode is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NativeInput {
    /// A relocatable object.
    Object,
    /// An archive without bitcode, all of whose members have names of their own.
    Archive,
    /// Text: the linker takes it for a script.
    Script,
    /// A shared library, data to embed, a file that is not there.
    Else,
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
    /// The files that unpacking reads, sorted: the archive and, of a thin one, its members' own files.
    pub sources: Vec<String>,
    /// The members that a linker takes, in archive order.
    pub members: Vec<MemberInput>,
}

/// A member of an unpacked archive.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberInput {
    /// Its path.
    pub path: String,
    /// What it was before it was unpacked: a thin archive's member is a file of its own, any other is a name in the archive.
    pub origin: MemberOrigin,
    /// What its bitcode says of itself; `None` for a native object.
    pub module: Option<Module>,
}

/// Where a member of an archive comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberOrigin {
    /// From a file of its own.
    File(PathBuf),
    /// From the archive, by this name.
    Member(String),
}

/// A link line whose inputs are known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LinkInputs {
    /// The parts of the line in order.
    pub slots: Vec<Slot>,
    /// The archives that were unpacked, in link order.
    pub archives: Vec<UnpackedArchive>,
    /// Files that the line names or that its libraries are, by alias where they have one, sorted.
    pub files: Vec<PathBuf>,
    /// Places where a library was looked for in vain, sorted.
    pub absent: Vec<PathBuf>,
    /// The line's words, with the alias of each input whose own name cannot be text; they resolve to these inputs.
    pub words: Vec<String>,
    /// Bitcode parts of FatLTO objects, written below the state directory.
    pub extracted: BTreeSet<String>,
    /// Whether FatLTO objects are taken for bitcode.
    pub fat_lto: bool,
}

impl LinkInputs {
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
pub struct InputPlaces<'a> {
    /// The link's state directory; valid UTF-8 since the output's name is.
    pub state: &'a str,
    /// Shared storage for unpacked members.
    pub store: Option<&'a Store>,
}

/// Finds out what every input of a line is, unpacks archives, and gives odd names an alias.
pub fn resolve(arguments: &[Argument], places: InputPlaces<'_>) -> Result<LinkInputs, InputError> {
    options(arguments).try_for_each(refuse)?;
    let fat_lto = takes_fat_lto(arguments);
    let mut inputs = LinkInputs { fat_lto, ..LinkInputs::default() };
    let parts = name_parts(arguments, &mut inputs);
    let looked_at = look_at(&parts, fat_lto)?;
    let mut builder = Builder {
        inputs,
        places,
        aliases: Aliases::new(places.state),
        requests: Vec::new(),
        once: Once::of(&parts, &looked_at),
    };
    for (at, (part, looked)) in parts.into_iter().zip(looked_at).enumerate() {
        builder.add(at, part, looked)?;
    }
    builder.finish()
}

fn takes_fat_lto(arguments: &[Argument]) -> bool {
    crate::link_line::is_on(arguments, "fat-lto-objects", "no-fat-lto-objects")
}

fn look_at(parts: &[LinePart], fat_lto: bool) -> Result<Vec<Looked>, InputError> {
    parts
        .par_iter()
        .map(|part| match part {
            LinePart::Option(_) => Ok(Looked::Other(NativeInput::Else)),
            LinePart::Input(named) => look(named, fat_lto),
        })
        .collect()
}

/// What of a line is bitcode, found out without unpacking or renaming anything.
#[derive(Debug, Default)]
pub struct Bitcode {
    /// The objects, by path; those in archives are not among them.
    pub objects: Vec<(PathBuf, Module)>,
    /// How many archives hold bitcode.
    pub archives: usize,
}

impl Bitcode {
    /// Looks at each input of a line.
    pub fn among(arguments: &[Argument]) -> Result<Self, InputError> {
        let parts = name_parts(arguments, &mut LinkInputs::default());
        let mut found = Self::default();
        for (part, looked) in parts.iter().zip(look_at(&parts, takes_fat_lto(arguments))?) {
            match (part, looked) {
                (LinePart::Input(named), Looked::Module { module, .. }) => {
                    found.objects.push((named.path.clone(), *module));
                }
                (_, Looked::Archive { .. }) => found.archives += 1,
                _ => {}
            }
        }
        Ok(found)
    }

    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.archives == 0
    }

    /// How many of the objects ThinLTO compiles on their own.
    pub fn thin(&self) -> usize {
        self.objects.iter().filter(|(_, module)| module.summary == SummaryKind::ThinLto).count()
    }

    /// Whether there is bitcode, and all of it is merged into one module. Of archives that is not known.
    pub fn is_full_lto(&self) -> bool {
        !self.objects.is_empty() && self.archives == 0 && self.thin() == 0
    }
}

struct UnpackRequest {
    archive: PathBuf,
    directory: String,
    thin: bool,
}

struct Builder<'a> {
    inputs: LinkInputs,
    places: InputPlaces<'a>,
    aliases: Aliases,
    requests: Vec<UnpackRequest>,
    once: Once,
}

impl Builder<'_> {
    fn add(&mut self, at: usize, part: LinePart, looked: Looked) -> Result<(), InputError> {
        let mut named = match part {
            LinePart::Option(option) => {
                self.inputs.words.extend_from_slice(&option.words);
                self.inputs.slots.push(Slot::Option(option));
                return Ok(());
            }
            LinePart::Input(named) => named,
        };
        let plain = self.plain_name(&mut named)?;
        self.inputs.files.push(plain.as_deref().map_or_else(|| named.path.clone(), PathBuf::from));
        self.inputs.words.extend_from_slice(&named.words);
        let lazy = match looked {
            Looked::Archive { .. } => named.in_lib || !named.whole_archive,
            _ => named.in_lib,
        };
        let mention = match looked {
            Looked::Module { .. } | Looked::Archive { .. } if lazy => self.once.lazy(at, &named.path),
            _ => Lazy::Alone,
        };
        if mention == Lazy::Empty {
            return Ok(());
        }
        let slot = match looked {
            Looked::Other(native) => {
                let path = plain.unwrap_or_else(|| lossy(named.path.as_os_str().as_bytes()));
                Slot::Other { input: OtherInput { words: named.words, path, native }, lazy }
            }
            Looked::Module { module, bitcode } => {
                let id = match plain {
                    None if mention == Lazy::Canonical => self.aliases.link(&named.path)?,
                    plain => self.module_id(&named.path, plain, bitcode)?,
                };
                Slot::Module { input: ModuleInput { id, module: *module }, lazy }
            }
            Looked::Archive { thin } => {
                let path = plain.unwrap_or_else(|| lossy(named.path.as_os_str().as_bytes()));
                Slot::Archive { index: self.archive(path, named.path, thin, mention), lazy }
            }
        };
        self.inputs.slots.push(slot);
        Ok(())
    }

    /// An alias for an input with an odd name, which then stands on the line, unless it was found as a library.
    fn plain_name(&mut self, named: &mut Named) -> Result<Option<String>, InputError> {
        if !needs_alias(&named.path) || !named.path.exists() {
            return Ok(None);
        }
        let alias = self.aliases.link(&named.path)?;
        if !named.words[0].starts_with("-l") {
            named.words = vec![alias.clone()];
        }
        Ok(Some(alias))
    }

    fn module_id(
        &mut self,
        path: &Path,
        plain: Option<String>,
        bitcode: Option<Vec<u8>>,
    ) -> Result<String, InputError> {
        match (bitcode, plain) {
            (Some(bitcode), plain) => {
                // By the alias, so that the plain words give the same id.
                let id = self.aliases.reserve(plain.as_deref().map_or(path, Path::new));
                write_if_changed(Path::new(&id), &bitcode)?;
                self.inputs.extracted.insert(id.clone());
                Ok(id)
            }
            (None, Some(alias)) => Ok(alias),
            (None, None) => Ok(self.aliases.name(path)?),
        }
    }

    /// The index of an archive that is to be unpacked; `path` is its name in the plan.
    fn archive(&mut self, path: String, archive: PathBuf, thin: bool, mention: Lazy) -> usize {
        // `%lazy` is the encoding of no name.
        let lazy = if mention == Lazy::Canonical { "/%lazy" } else { "" };
        let members = Place::Members.of(self.places.state);
        let directory = format!("{members}{lazy}/{}", escape_path(path.as_bytes()));
        // A whole archive may be named twice; the linker then says what it thinks of that.
        if let Some(index) = self.requests.iter().position(|request| request.directory == directory) {
            return index;
        }
        self.requests.push(UnpackRequest { archive, directory: directory.clone(), thin });
        let (sources, members) = (Vec::new(), Vec::new());
        self.inputs.archives.push(UnpackedArchive { path, directory, sources, members });
        self.requests.len() - 1
    }

    fn finish(mut self) -> Result<LinkInputs, InputError> {
        let fat_lto = self.inputs.fat_lto;
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
        let unpacked = unpack_all(&requests).into_iter().zip(&self.requests);
        for (archive, (manifest, request)) in self.inputs.archives.iter_mut().zip(unpacked) {
            let manifest = manifest?;
            archive.sources = sources_of(&archive.path, &request.archive, request.thin, &manifest);
            archive.members = manifest
                .written()
                .collect::<Vec<_>>()
                .into_par_iter()
                .map(|(member, file)| {
                    let path = format!("{}/{file}", archive.directory);
                    let bitcode = matches!(member.kind, Kind::Bitcode { .. })
                        || (fat_lto && matches!(member.kind, Kind::FatLto(_)));
                    let module = bitcode.then(|| read_module(Path::new(&path))).transpose()?;
                    let origin = match request.thin {
                        true => MemberOrigin::File(file_of(&request.archive, &member.name)),
                        false => MemberOrigin::Member(member.name.clone()),
                    };
                    Ok(MemberInput { path, origin, module })
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
pub fn by_id(inputs: &LinkInputs) -> HashMap<&str, &Module> {
    inputs.modules().collect()
}
