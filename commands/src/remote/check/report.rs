//! What a check tells, a sentence a line, and whether anything of it is wrong.
//!
//! A server's words are printed as text, whatever is in them. Knows nothing of servers.

use std::io::{self, Write};

use distlto_prepare::text::printable;
use miette::Diagnostic;

/// Sentences so far.
#[derive(Debug, Default)]
pub struct Report {
    wrong: usize,
}

impl Report {
    /// What the following sentences are about.
    pub fn about(&mut self, what: &str) {
        line(what);
    }

    /// Something is as it should be.
    pub fn good(&mut self, sentence: &str) {
        line(&format!("  ok     {sentence}"));
    }

    /// Something is good to know.
    pub fn note(&mut self, sentence: &str) {
        line(&format!("  note   {sentence}"));
    }

    /// Something is wrong, with what to do.
    pub fn wrong(&mut self, sentence: &str) {
        self.wrong += 1;
        line(&format!("  WRONG  {sentence}"));
    }

    /// What failed, as the client says it.
    pub fn failed(&mut self, what: &str, error: &distlto_reapi::Error) {
        let help = error.help().map_or_else(String::new, |help| format!("; {help}"));
        self.wrong(&format!("{what}: {error}{help}"));
    }

    /// More of the last sentence: what somebody else said.
    pub fn quote(&mut self, text: &str) {
        text.lines().filter(|text| !text.is_empty()).for_each(|text| line(&format!("           {text}")));
    }

    /// The exit code.
    pub fn finish(self) -> u8 {
        match self.wrong {
            0 => line("everything can be used as it is configured"),
            1 => line("1 thing is wrong"),
            many => line(&format!("{many} things are wrong")),
        }
        u8::from(self.wrong > 0)
    }
}

fn line(text: &str) {
    // A reader that has gone away wants no more of it.
    let _ = writeln!(io::stdout(), "{}", printable(text));
}
