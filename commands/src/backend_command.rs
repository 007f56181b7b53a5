//! The words of one backend compilation: compiler, target, flags, module, shard, output.
//!
//! Pure. The order is that of the commands ld.lld 22 hands to a DTLTO distributor, so that equal compilations have
//! equal words.

use camino::Utf8Path;
use distlto_planner::clang::driver::find;

/// The parts of a backend compilation.
#[derive(Debug, Clone, Copy)]
pub struct BackendParts<'a> {
    /// The compiler, and programs before it.
    pub program: &'a [String],
    /// Arguments that the user gives verbatim; those come last among the flags, so they win.
    pub given: &'a [String],
    /// The target triple; empty for the compiler's default.
    pub triple: &'a str,
    /// The flags that the link line implies.
    pub flags: &'a [String],
    /// The module, spelled as its module id.
    pub module: &'a Utf8Path,
    /// Its index shard.
    pub shard: &'a Utf8Path,
    /// The native object.
    pub output: &'a Utf8Path,
}

/// The whole command.
pub fn words(backend: BackendParts<'_>) -> Vec<String> {
    let mut words = backend.program.to_vec();
    words.push("-c".to_owned());
    // Without a target, clang compiles for its own default one, with only a warning.
    if !backend.triple.is_empty() && target_of(backend.given).is_none() {
        words.push(format!("--target={}", backend.triple));
    }
    words.extend_from_slice(backend.flags);
    words.extend(backend.given.iter().filter(|word| *word != "-c").cloned());
    // By any other suffix clang takes the module for something to link.
    if !matches!(backend.module.extension(), Some("o" | "bc")) {
        words.extend(["-x", "ir"].map(str::to_owned));
    }
    words.push(backend.module.to_string());
    words.push(format!("-fthinlto-index={}", backend.shard));
    words.extend(["-o".to_owned(), backend.output.to_string()]);
    words
}

/// The target that arguments name, the last one of several.
pub fn target_of(arguments: &[String]) -> Option<&str> {
    (0..arguments.len()).rev().find_map(|at| {
        let known = find(arguments[at].as_bytes()).filter(|known| known.option.canonical == "target")?;
        match known.takes_next {
            true => arguments.get(at + 1).map(String::as_str),
            false => std::str::from_utf8(known.value).ok(),
        }
    })
}
