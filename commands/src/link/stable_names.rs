//! `--stable-names`: locals that other modules need are called after their source file, where LLVM calls them after the hash of
//! their module, which every edit changes and which stands in the code of all that import them.
//!
//! Two modules of one source name would define one name twice, so the modules of a link are looked at before the backends run.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;

use distlto_planner::backend_flags::stable_names::ARGUMENTS;
use distlto_planner::module;
use distlto_planner::runner::{Runner, ToolError};
use distlto_planner::words::Word;
use distlto_prepare::error::PrepareError;
use distlto_prepare::input::Input;
use distlto_prepare::warning::warn;
use distlto_record::progress::Progress;
use rayon::prelude::*;

use super::{LinkError, LinkOptions};

/// The options of a link with them, and of the same without.
pub fn with_and_without(options: &LinkOptions) -> [LinkOptions; 2] {
    let without = LinkOptions { stable_names: false, ..options.clone() };
    let mut with = LinkOptions { stable_names: true, ..options.clone() };
    with.backend_args.extend(ARGUMENTS.map(str::to_owned));
    [with, without]
}

/// Fails if a compiler cannot do it, or if two modules, each with the name that people know it by, have one source name, or
/// none. Asked once the compiler has loaded, which it does during the thin link.
pub fn check<'a>(
    compiler: &str,
    runner: &dyn Runner,
    modules: impl Iterator<Item = (&'a str, &'a Path)> + Send,
) -> Result<(), LinkError> {
    let (known, distinct) = rayon::join(|| are_known(compiler, runner), || are_distinct(modules));
    if !known? {
        return Err(LinkError::UnknownNames { compiler: compiler.to_owned() });
    }
    distinct
}

/// Whether a compiler can do it.
pub fn are_known(compiler: &str, runner: &dyn Runner) -> Result<bool, ToolError> {
    let words = [compiler].into_iter().chain(ARGUMENTS).chain(["-fsyntax-only", "-x", "c", "/dev/null"]);
    let question: Vec<Word> = words.map(|word| word.as_bytes().to_vec()).collect();
    let answer =
        runner.run(&question).map_err(|source| ToolError::Start { program: compiler.to_owned(), source })?;
    Ok(answer.status.success())
}

fn are_distinct<'a>(modules: impl Iterator<Item = (&'a str, &'a Path)>) -> Result<(), LinkError> {
    let modules: Vec<_> = modules.collect();
    // What is no module fails its backend, which says so.
    let name = |&(_, path): &(&str, &Path)| Ok(module::source_name(&Input::open(path)?).ok());
    let names = modules.par_iter().with_min_len(16).map(name).collect::<Result<Vec<_>, PrepareError>>()?;
    let mut known: HashMap<String, &str> = HashMap::new();
    for ((label, _), name) in modules.into_iter().zip(names) {
        match name.map(|name| known.entry(name)) {
            Some(Entry::Occupied(other)) => {
                return Err(LinkError::AlikeNames {
                    one: (*other.get()).to_owned(),
                    other: label.to_owned(),
                    source_name: other.key().clone(),
                });
            }
            Some(Entry::Vacant(place)) => drop(place.insert(label)),
            None => {}
        }
    }
    Ok(())
}

/// Says why a link does without; an error that has another reason is returned.
pub fn do_without(error: LinkError, progress: &dyn Progress) -> Result<(), LinkError> {
    if !matches!(error, LinkError::AlikeNames { .. } | LinkError::UnknownNames { .. }) {
        return Err(error);
    }
    let warning = format!("--stable-names is off for this link: {error}");
    warn(&warning);
    progress.warned(&warning);
    Ok(())
}
