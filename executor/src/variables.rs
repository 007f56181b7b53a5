//! The environment variables that compilers read and that decide their outputs. They are a part of keys, which are made
//! before a compiler runs. Variables read by the processes of a link are observed.
//!
//! Found by experiment: a library preloaded into clang that writes down the arguments of `getenv`
//! (`tests/tests/stale/variables.rs` repeats that). Variables that only change messages are not here.
//! `CLANG_CONFIG_FILE_*` are settings of LLVM's own build and no variables.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use distlto_planner::digests::Digest;
use distlto_prepare::frame::Framed;

/// The program that reads a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// The system's loader, for every program.
    Loader,
    /// A compiler's driver. The output of `-###` shows the effect.
    Driver,
    /// A compilation itself.
    Compiler,
}

/// The variables.
const VARIABLES: &[(&str, Reader)] = &[
    ("AS_SECURE_LOG_FILE", Reader::Compiler),
    ("CCC_OVERRIDE_OPTIONS", Reader::Driver),
    ("CLANG_NO_DEFAULT_CONFIG", Reader::Driver),
    ("COMPILER_PATH", Reader::Driver),
    ("GCC_EXEC_PREFIX", Reader::Driver),
    ("LD_AUDIT", Reader::Loader),
    ("LD_LIBRARY_PATH", Reader::Loader),
    ("LD_PRELOAD", Reader::Loader),
    ("LIBRARY_PATH", Reader::Driver),
    ("LLVM_OVERRIDE_PRODUCER", Reader::Compiler),
    ("SDKROOT", Reader::Driver),
    ("SOURCE_DATE_EPOCH", Reader::Compiler),
];

/// Variables that shells, make and test runners change for every command.
const COUNTED: &[&str] = &["MAKEFLAGS", "MAKELEVEL", "MFLAGS", "OLDPWD", "SHLVL", "_"];

/// The variables that these read, and their values where they are set.
pub fn read_by(readers: &[Reader]) -> impl Iterator<Item = (&'static str, Option<OsString>)> {
    let wanted = VARIABLES.iter().filter(move |(_, reader)| readers.contains(reader));
    wanted.map(|(name, _)| (*name, std::env::var_os(name)))
}

/// The variables that any of them reads.
pub fn all() -> impl Iterator<Item = (&'static str, Option<OsString>)> {
    VARIABLES.iter().map(|(name, _)| (*name, std::env::var_os(name)))
}

/// Holds headers of calls to servers, in lines of `name: value`: a secret, which no program that is started gets.
pub const REMOTE_HEADERS: &str = "DISTLTO_REMOTE_HEADERS";

/// The variables that programs get.
pub fn of_programs() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| name != REMOTE_HEADERS)
}

/// Stands for all of the environment, for a program that may depend on any of it.
pub fn environment() -> Digest {
    let mut variables: Vec<_> =
        of_programs().filter(|(name, _)| COUNTED.iter().all(|counted| name != counted)).collect();
    variables.sort_unstable();
    let mut framed = Framed::new("distlto environment 1");
    for (name, value) in &variables {
        framed.add("name", name.as_bytes());
        framed.add("value", value.as_bytes());
    }
    framed.finish()
}
