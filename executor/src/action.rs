//! An action by content: command, environment, inputs by digest, outputs, platform. What is not in it decides nothing.
//!
//! Keys are functions of it (`cache::reapi`, `cache::semantic`), and it is all that another machine has to know to execute
//! it. Knows nothing of files, of caches and of who executes it.

use std::borrow::Cow;

use camino::Utf8Path;
use distlto_planner::digests::Digest;

use crate::verify::Role;

/// An action to execute.
#[derive(Debug, Clone)]
pub struct Description<'a> {
    /// The command's words; the first one is the program.
    pub words: &'a [&'a str],
    /// Variables that the command reads, in any order.
    pub environment: &'a [(String, String)],
    /// Where it runs: an absolute path.
    pub directory: &'a str,
    /// What it reads, as it names it, in any order; one file may be named more than once.
    pub inputs: Vec<(Cow<'a, str>, Digest)>,
    /// What it writes, as it names it, and what that has to be.
    pub outputs: &'a [(&'a Utf8Path, Role)],
    /// What a worker has to be, in any order.
    pub platform: &'a [(String, String)],
    /// What else decides its result: the compiler, which is no input.
    pub salt: Vec<u8>,
}
