//! An output of an action: its role, its place, and its file until it is accepted.

use std::path::PathBuf;

use camino::Utf8Path;
use serde::{Deserialize, Serialize};

/// The required kind of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A relocatable native object.
    Object,
    /// Split debug information; a native file that may hold nothing but its headers.
    Dwo,
    /// The same where the compiler may have none to write; an empty file then.
    DwoIfAny,
    /// Any file that is not empty: a program, an archive.
    File,
    /// Any file, such as an import list, which is empty for a module that imports nothing.
    Any,
}

/// An output of a job on the way to its place.
#[derive(Debug)]
pub struct Output<'a> {
    /// As the command names it.
    pub name: &'a Utf8Path,
    /// Its required kind.
    pub role: Role,
    /// Where the command is to write it, as it is to name it: the same where the output is not staged.
    pub written: &'a Utf8Path,
    /// Its place.
    pub place: PathBuf,
    /// Where it is before it is accepted.
    pub file: PathBuf,
}
