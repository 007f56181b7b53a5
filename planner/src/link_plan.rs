//! The link plan: all that a thin link decided, as plain values that serialise.
//!
//! One plan holds one link: the archives that were unpacked, the thin link, each module with its shard and
//! imports, and the final link. It is what `distlto-index` writes and what an action graph is built from.
//! Knows nothing of files on disk or of processes.

use camino::{Utf8Path, Utf8PathBuf};
use distlto_prepare::json::{self, JsonError, Unread};
use miette::Diagnostic;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::graph::error::GraphError;

/// The version of the format; a reader refuses any other.
pub const VERSION: u32 = 1;

/// One distributed ThinLTO link. All paths are relative to the link's working directory, or absolute where
/// the link line's were.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkPlan<Import = Utf8PathBuf> {
    /// [`VERSION`].
    pub version: u32,
    /// Whether one process of the linker does everything and hands its backends to distlto. The steps then say what was
    /// done, and cannot be run one by one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub by_linker: bool,
    /// The program or library that the link makes.
    pub output: Utf8PathBuf,
    /// Archives with bitcode members, in link order.
    pub archives: Vec<ArchivePlan>,
    /// The thin link.
    pub thin_link: PlanStep,
    /// The compiler and the flags that every backend compilation shares.
    pub backend: Vec<String>,
    /// The ThinLTO modules that the linker loaded, in link order.
    pub modules: Vec<ObjectPlan<Import>>,
    /// The final link.
    pub link: PlanStep,
}

/// A command of the link that is not a backend compilation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanStep {
    /// The program and its arguments, response files expanded.
    pub command: Vec<String>,
    /// Every file the command reads, sorted.
    pub inputs: Vec<Utf8PathBuf>,
    /// Every file the command writes, sorted, but for the shards and import lists of a thin link, which
    /// the modules name.
    pub outputs: Vec<Utf8PathBuf>,
}

/// An archive that was unpacked, so that its members have paths that a backend can open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchivePlan {
    /// The archive as the link line names it, or as its `-l` option was resolved.
    pub path: Utf8PathBuf,
    /// The directory that holds the members.
    pub directory: Utf8PathBuf,
    /// Whether FatLTO members are written as their bitcode.
    pub fat_lto: bool,
    /// Every file that unpacking reads, sorted: the archive and, of a thin one, its members' own files.
    pub inputs: Vec<Utf8PathBuf>,
    /// The members in archive order.
    pub members: Vec<MemberPlan>,
}

/// One member of an unpacked archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberPlan {
    /// The unpacked member; a module's id if the member is bitcode.
    pub path: Utf8PathBuf,
    /// Whether the member is ThinLTO bitcode.
    pub bitcode: bool,
    /// Whether the linker loaded it.
    pub loaded: bool,
}

/// One backend compilation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectPlan<Import = Utf8PathBuf> {
    /// The module id: the module's path as the linker saw it.
    pub id: Utf8PathBuf,
    /// The archive that holds the module, where it is in no file of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<Utf8PathBuf>,
    /// The module's index shard.
    pub shard: Utf8PathBuf,
    /// The modules it imports from, sorted.
    pub imports: Vec<Import>,
    /// Further files the compilation reads, such as profiles.
    pub extra_inputs: Vec<Utf8PathBuf>,
    /// The native object.
    pub object: Utf8PathBuf,
    /// Further files the compilation writes, such as a `.dwo`.
    pub extra_outputs: Vec<Utf8PathBuf>,
    /// Arguments after those that all backends share: the module, its shard, its output.
    pub args: Vec<String>,
    /// IR instructions of the module itself, from its shard; its size in bytes where the shard has none.
    pub own_instructions: u64,
    /// IR instructions imported from other modules, from its shard.
    pub imported_instructions: u64,
}

/// Why a text is not a link plan, or a link plan makes no action graph.
#[derive(Debug, Error, Diagnostic)]
pub enum PlanError {
    /// Not JSON, or JSON of another shape; the message says where.
    #[error("not a link plan: {0}")]
    #[diagnostic(
        code(distlto::bad_input),
        help("remove the file and run the thin link again; it writes the plan")
    )]
    Json(#[source] JsonError),
    /// A version that this program does not know.
    #[error("a link plan of version {found}; this program reads version {VERSION}")]
    #[diagnostic(
        code(distlto::bad_input),
        help("run the thin link again with the distlto-index of this release")
    )]
    Version {
        /// What the plan says.
        found: u64,
    },
    /// A list that must be sorted is not.
    #[error("{list} of {owner:?} are not sorted: {second:?} follows {first:?}")]
    #[diagnostic(
        code(distlto::bad_input),
        help("sort the list, by bytes or by path components; the same link then gives the same plan")
    )]
    Unsorted {
        /// Whose list it is: a module's id, or `the thin link`, ...
        owner: String,
        /// Which list.
        list: &'static str,
        /// A path.
        first: Utf8PathBuf,
        /// The next one.
        second: Utf8PathBuf,
    },
    /// A list names a file twice.
    #[error("{list} of {owner:?} name {path:?} twice")]
    #[diagnostic(code(distlto::bad_input), help("list each file once"))]
    Repeated {
        /// Whose list it is.
        owner: String,
        /// Which list.
        list: &'static str,
        /// The file.
        path: Utf8PathBuf,
    },
    /// Backend compilations without a compiler.
    #[error("the list of words that backend compilations share is empty; its first word is the compiler")]
    #[diagnostic(code(distlto::bad_input), help("run the thin link again; it writes the plan"))]
    NoCompiler,
    /// The plan's actions are no graph.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Graph(#[from] GraphError),
}

impl LinkPlan {
    /// Reads the plan's JSON; a plan of another version is an error that says so.
    pub fn read(bytes: &[u8]) -> Result<Self, PlanError> {
        Self::read_as(bytes)
    }

    /// The plan's JSON, indented, with a newline at its end.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self)
            .expect("a plan has no maps and no floats, so every value has a JSON form");
        bytes.push(b'\n');
        bytes
    }

    /// Whether lists that must be sorted are, and name nothing twice.
    pub(crate) fn check(&self) -> Result<(), PlanError> {
        if self.version != VERSION {
            return Err(PlanError::Version { found: self.version.into() });
        }
        if self.backend.is_empty() && !self.modules.is_empty() {
            return Err(PlanError::NoCompiler);
        }
        for (owner, step) in [("the thin link", &self.thin_link), ("the final link", &self.link)] {
            sorted(&step.inputs, owner, "the inputs")?;
            sorted(&step.outputs, owner, "the outputs")?;
        }
        for archive in &self.archives {
            sorted(&archive.inputs, archive.path.as_str(), "the inputs")?;
        }
        for module in &self.modules {
            sorted(&module.imports, module.id.as_str(), "the imports")?;
        }
        Ok(())
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

impl<'a, Import: Deserialize<'a>> LinkPlan<Import> {
    /// [`LinkPlan::read`] for who does not need each import as a path of its own: there may be millions.
    pub fn read_as(bytes: &'a [u8]) -> Result<Self, PlanError> {
        json::read_version(bytes, VERSION, |plan: &Self| plan.version.into()).map_err(|unread| match unread {
            Unread::Version(found) => PlanError::Version { found },
            Unread::Json(error) => PlanError::Json(error),
        })
    }
}

impl<Import> LinkPlan<Import> {
    /// All but the modules' imports.
    pub fn without_imports(self) -> LinkPlan {
        let Self { version, by_linker, output, archives, thin_link, backend, modules, link } = self;
        let modules = modules.into_iter().map(ObjectPlan::without_imports).collect();
        LinkPlan { version, by_linker, output, archives, thin_link, backend, modules, link }
    }
}

impl<Import> ObjectPlan<Import> {
    fn without_imports(self) -> ObjectPlan {
        ObjectPlan {
            id: self.id,
            archive: self.archive,
            shard: self.shard,
            imports: Vec::new(),
            extra_inputs: self.extra_inputs,
            object: self.object,
            extra_outputs: self.extra_outputs,
            args: self.args,
            own_instructions: self.own_instructions,
            imported_instructions: self.imported_instructions,
        }
    }
}

impl ObjectPlan {
    /// The file that holds the module.
    pub fn file(&self) -> &Utf8Path {
        self.archive.as_deref().unwrap_or(&self.id)
    }

    /// The module's import list, which the linker writes beside its shard: `m.o.imports` for
    /// `m.o.thinlto.bc`.
    pub fn imports_file(&self) -> Utf8PathBuf {
        let shard = self.shard.as_str();
        format!("{}.imports", shard.strip_suffix(".thinlto.bc").unwrap_or(shard)).into()
    }
}

/// lld sorts import lists by bytes and Rust sorts paths by components; either order is an order.
fn sorted(paths: &[Utf8PathBuf], owner: &str, list: &'static str) -> Result<(), PlanError> {
    let pairs = || paths.iter().zip(paths.iter().skip(1));
    let owner = || owner.to_owned();
    if let Some((path, _)) = pairs().find(|(a, b)| a == b) {
        return Err(PlanError::Repeated { owner: owner(), list, path: path.clone() });
    }
    let text = Utf8Path::as_str;
    match pairs().find(|(a, b)| text(a) > text(b)) {
        Some((first, second)) if !paths.is_sorted() => {
            Err(PlanError::Unsorted { owner: owner(), list, first: first.clone(), second: second.clone() })
        }
        _ => Ok(()),
    }
}
