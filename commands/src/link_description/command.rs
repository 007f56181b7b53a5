//! A link that has not been made: its linker is asked for its modules, in a scratch directory, and no backend is run.

use distlto_executor::cancel::Cancel;
use distlto_planner::words::Word;
use miette::Report;

use super::LinkDescription;
use crate::index::{self, Asked};
use crate::link::error::LinkError;
use crate::link::options::LinkOptions;
use crate::run_args::RunArgs;
use crate::scratch::scratch;
use crate::serve::collection::Collection;

impl LinkDescription {
    /// Of a link command; the exit code of one that failed.
    pub fn of_command(words: &[Word], cancel: &Cancel) -> Result<Result<Self, u8>, Report> {
        let scratch = scratch("inspect")?;
        let directory = scratch.path().to_string_lossy();
        let run = RunArgs { quiet: true, ..RunArgs::default() };
        let options = LinkOptions { run, ..LinkOptions::default() };
        let asked = match index::ask(words, &options, Collection::new(&directory), cancel)? {
            Asked::Link(asked) => asked,
            Asked::Failed(code) => return Ok(Err(code)),
        };
        if asked.link.modules.is_empty() {
            return Err(LinkError::NothingToIndex.into());
        }
        let graph = index::graph_of(&asked, words, &directory)?;
        let mut seen = Self::of_graph(asked.link.command.line.output().into(), &graph);
        seen.notes = vec!["its thin link was performed, and nothing else".to_owned()];
        Ok(Ok(seen))
    }
}
