//! The `-cc1` commands of compilers' drivers for a backend: a process asks the driver, and the answer is remembered.
//!
//! Asks drivers; `cc1` interprets their answers.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use distlto_planner::words::Word;

use super::cc1::{Cc1Commands, Names, Template};
use super::process::{self, Command, Spawner};
use crate::cancel::Cancel;

/// The drivers of one run.
pub struct Drivers<'a> {
    /// Their answers so far.
    pub answers: &'a Cc1Commands,
    /// Starts them.
    pub spawner: &'a dyn Spawner,
    /// Ends them early.
    pub cancel: &'a Cancel,
    /// How long one that was cancelled may take to end.
    pub grace: Duration,
    /// Where they run; the current directory when `None`.
    pub directory: Option<&'a Path>,
}

impl Drivers<'_> {
    /// The `-cc1` command that a driver's command would run.
    pub fn template(&self, words: &[Word], names: Names<'_>) -> Option<Arc<Template>> {
        self.answers.template(words, names, |question| self.ask(question))
    }

    /// Runs a driver's `-###` command and returns its standard error; `None` if it fails.
    fn ask(&self, question: &[Word]) -> Option<Vec<u8>> {
        let command = Command::of_words(question, self.directory)?;
        let answer = process::run(&command, self.spawner, self.cancel, self.grace).ok()?;
        answer.ended.status.success().then(|| answer.stderr.into_bytes())
    }
}
