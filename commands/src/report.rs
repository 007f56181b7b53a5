//! The report of a check, a sentence a line or as JSON, with the number of problems.
//!
//! The output of other programs is printed as plain text, even with control characters in it. Does not depend on the
//! subject of the check.

use std::io;

use anstream::{AutoStream, ColorChoice};
use clap::builder::styling::AnsiColor;
use distlto_prepare::io_error::IoError;
use distlto_prepare::text::printable;
use distlto_prepare::write::to_standard_output;
use miette::Diagnostic;
use serde_json::{Value, json};

/// Sentences so far.
#[derive(Debug, Default)]
pub struct CheckedSentences {
    wrong: usize,
    about: String,
    /// Where readers are programs: the sentences, which are printed at the end.
    kept: Option<Vec<Value>>,
    /// Why a sentence could not be printed.
    unprinted: Option<IoError>,
}

impl CheckedSentences {
    /// A report that keeps its sentences.
    pub fn keeping() -> Self {
        Self { kept: Some(Vec::new()), ..Self::default() }
    }

    /// Sets the subject of the following sentences.
    pub fn about(&mut self, what: &str) {
        what.clone_into(&mut self.about);
        if self.kept.is_none() {
            self.print(what);
        }
    }

    /// Reports a good result.
    pub fn good(&mut self, sentence: &str) {
        self.line("ok", sentence);
    }

    /// Reports a fact that is good to know.
    pub fn note(&mut self, sentence: &str) {
        self.line("note", sentence);
    }

    /// Reports a problem, with its remedy.
    pub fn wrong(&mut self, sentence: &str) {
        self.wrong += 1;
        self.line("WRONG", sentence);
    }

    /// Reports a failure, with its remedy if there is one.
    pub fn failed(&mut self, what: &str, error: &dyn Diagnostic) {
        let help = error.help().map_or_else(String::new, |help| format!("; {help}"));
        self.wrong(&format!("{what}: {error}{help}"));
    }

    /// Adds to the last sentence the output of another program.
    pub fn quote(&mut self, text: &str) {
        for text in text.lines().filter(|text| !text.is_empty()) {
            match &mut self.kept {
                None => self.print(&format!("           {text}")),
                Some(kept) => {
                    if let Some(Value::Array(said)) = kept.last_mut().map(|last| &mut last["said"]) {
                        said.push(text.into());
                    }
                }
            }
        }
    }

    /// Returns the number of problems.
    pub fn count_wrong(&self) -> usize {
        self.wrong
    }

    /// The sentences that were kept.
    pub fn kept(&mut self) -> Option<Vec<Value>> {
        self.kept.take()
    }

    /// Prints a line of text.
    pub fn print(&mut self, text: &str) {
        if self.unprinted.is_none() {
            self.unprinted = to_standard_output(format!("{}\n", printable(text)).as_bytes()).err();
        }
    }

    /// Prints the verdict, in colour on a terminal. The error is why not all of the sentences could be printed.
    pub fn end(self, verdict: &str, is_good: bool) -> Result<(), IoError> {
        let colour = if is_good { AnsiColor::Green } else { AnsiColor::Red }.on_default().bold();
        let (on, off) = match AutoStream::choice(&io::stdout()) {
            ColorChoice::Never => (String::new(), String::new()),
            _ => (colour.render().to_string(), colour.render_reset().to_string()),
        };
        let printed = to_standard_output(format!("{on}{}{off}\n", printable(verdict)).as_bytes());
        self.unprinted.map_or(printed, Err)
    }

    /// The exit code, after a verdict that follows from the sentences alone.
    pub fn finish(self) -> Result<u8, IoError> {
        let wrong = self.wrong;
        let verdict = match wrong {
            0 => "everything can be used as it is configured".to_owned(),
            wrong => is_wrong(wrong),
        };
        self.end(&verdict, wrong == 0)?;
        Ok(u8::from(wrong > 0))
    }

    fn line(&mut self, level: &str, sentence: &str) {
        match &mut self.kept {
            None => self.print(&format!("  {level:<5}  {sentence}")),
            Some(kept) => kept.push(json!({
                "about": self.about, "level": level.to_lowercase(), "sentence": sentence, "said": [],
            })),
        }
    }
}

/// How much is wrong, in words.
pub fn is_wrong(count: usize) -> String {
    match count {
        1 => "1 thing is wrong".to_owned(),
        many => format!("{many} things are wrong"),
    }
}
