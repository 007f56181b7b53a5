//! The link plan: all that a thin link decided, as plain values that serialise.
//!
//! One plan holds one link: the archives that were unpacked, the thin link, each module with its shard and
//! imports, and the final link. It is what `distlto-index` writes and what an action graph is built from.
//! Knows nothing of files on disk or of processes.

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

/// The version of the format; a reader refuses any other.
pub const VERSION: u32 = 1;

/// One distributed ThinLTO link. All paths are relative to the link's working directory, or absolute where
/// the link line's were.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkPlan {
    /// [`VERSION`].
    pub version: u32,
    /// The program or library that the link makes.
    pub output: Utf8PathBuf,
    /// Archives with bitcode members, in link order.
    pub archives: Vec<ArchivePlan>,
    /// The thin link.
    pub thin_link: Step,
    /// The compiler and the flags that every backend compilation shares.
    pub backend: Vec<String>,
    /// The ThinLTO modules that the linker loaded, in link order.
    pub modules: Vec<ObjectPlan>,
    /// The final link.
    pub link: Step,
}

/// A command of the link that is not a backend compilation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
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
pub struct ObjectPlan {
    /// The module id: the module's path as the linker saw it.
    pub id: Utf8PathBuf,
    /// The module's index shard.
    pub shard: Utf8PathBuf,
    /// The modules it imports from, sorted.
    pub imports: Vec<Utf8PathBuf>,
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
