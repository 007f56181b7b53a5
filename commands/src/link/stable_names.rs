//! `--stable-names`: locals that other modules need are called after their source file, where LLVM calls them after
//! the hash of their module, which every edit changes and which stands in the code of all that import them.
//!
//! Two modules of one source name would define one name twice, so the modules of a link are looked at before the
//! backends run.

use distlto_planner::backend_flags::stable_names::ARGUMENTS;
use distlto_planner::runner::{Runner, ToolError};
use distlto_planner::words::Word;
use distlto_prepare::warning::warn;
use distlto_record::progress::{Progress, ProgressEvent};

use super::LinkError;

/// Whether a compiler can do it.
pub fn are_known(compiler: &str, runner: &dyn Runner) -> Result<bool, ToolError> {
    let words = [compiler].into_iter().chain(ARGUMENTS).chain(["-fsyntax-only", "-x", "c", "/dev/null"]);
    let question: Vec<Word> = words.map(|word| word.as_bytes().to_vec()).collect();
    let answer =
        runner.run(&question).map_err(|source| ToolError::Start { program: compiler.to_owned(), source })?;
    Ok(answer.status.success())
}

/// Says why a link does without; an error that has another reason is returned.
pub fn do_without(error: LinkError, progress: &dyn Progress) -> Result<(), LinkError> {
    if !matches!(error, LinkError::AlikeNames { .. } | LinkError::UnknownNames { .. }) {
        return Err(error);
    }
    let warning = format!("--stable-names is off for this link: {error}");
    warn(&warning);
    progress.report(ProgressEvent::Warned(&warning));
    Ok(())
}
