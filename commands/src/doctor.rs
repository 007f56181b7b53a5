//! `distlto doctor`: reports the setup of this machine, and whether links by distlto will work.
//!
//! Every sentence follows from a check: programs are run and files are examined. Nothing is left behind. No server is
//! contacted. The exit code is the one that a link would end with. Does not depend on schedules.

mod command;
mod ledger;
mod machine;
mod places;
mod tools;

use std::ffi::OsString;

use clap::Args;
use distlto_executor::cancel::Cancel;
use distlto_executor::schedule::tokens::JobSlots;
use distlto_planner::state::VARIABLE;
use distlto_planner::words::{Word, word_of};
use distlto_prepare::exit;
use distlto_prepare::io_error::IoError;
use miette::Diagnostic;
use serde_json::json;

use crate::remote::args::RemoteArgs;
use crate::report::{CheckedSentences, is_wrong};
use crate::run_args::CacheArgs;

/// The exit code for `distlto::tool`.
const TOOL: u8 = 7;

/// Say what is seen here, and whether links by distlto will work
///
/// Compiler and linker are tried on some lines of C; memory, processors, the build's job slots, the links that run at
/// the moment, the folder of states, the cache and the configured servers are looked at. The exit code is 0 if links can work, and otherwise the one that they
/// would end with: 7 if a compiler or linker is missing or too old. A cache or job slots that cannot be used are WRONG, and
/// links work without it.
#[derive(Debug, Clone, Args)]
#[command(name = "doctor", after_help = exit::help())]
pub struct DoctorArgs {
    /// Look at this clang instead of the one that the link command names or implies
    #[arg(long, value_name = "CLANG")]
    pub compiler: Option<String>,
    /// The folder of states, as for `distlto link`
    #[arg(long, value_name = "DIR", env = VARIABLE)]
    pub state: Option<String>,
    /// Where results would be kept.
    #[command(flatten)]
    pub cache: CacheArgs,
    /// Which servers are configured.
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The link command to look at [default: ld.lld of PATH, or the newest ld.lld-N, and its clang]
    #[arg(last = true, value_name = "LINKER")]
    pub command: Vec<OsString>,
}

/// The report so far, and the verdict.
struct Doctor<'a> {
    args: &'a DoctorArgs,
    cancel: &'a Cancel,
    report: CheckedSentences,
    /// The exit code of a link here, by the checks so far.
    code: u8,
}

/// Runs all checks and prints the report. Returns the exit code.
pub fn run(args: &DoctorArgs, cancel: &Cancel) -> Result<u8, IoError> {
    let report = if args.json { CheckedSentences::keeping() } else { CheckedSentences::default() };
    let mut doctor = Doctor { args, cancel, report, code: 0 };
    let words: Vec<Word> = args.command.iter().cloned().map(word_of).collect();
    let link = doctor.command(&words);
    doctor.tools(link.as_ref(), !words.is_empty());
    doctor.machine(JobSlots::of(std::process::id()));
    doctor.places(link.as_ref().filter(|_| !words.is_empty()));
    doctor.remote();
    if cancel.is_cancelled() {
        return Ok(cancel.exit_code());
    }
    doctor.finish()
}

impl Doctor<'_> {
    /// Something is wrong without which no link can work.
    fn fatal(&mut self, code: u8, sentence: &str) {
        self.report.wrong(sentence);
        self.ends_with(code);
    }

    /// The same, of an error that a link would end with.
    fn fails(&mut self, what: &str, error: &dyn Diagnostic) {
        self.report.failed(what, error);
        self.ends_with(exit::code_of(error));
    }

    /// Sets the exit code, unless an earlier check has set it.
    fn ends_with(&mut self, code: u8) {
        if self.code == 0 {
            self.code = code;
        }
    }

    fn finish(mut self) -> Result<u8, IoError> {
        let wrong = self.report.count_wrong();
        let verdict = match (self.code, wrong) {
            (0, 0) => "yes: links by distlto can work here".to_owned(),
            (0, wrong) => format!("yes: links by distlto can work here, but {}", is_wrong(wrong)),
            (_, wrong) => format!("no: links by distlto cannot work here: {}", is_wrong(wrong)),
        };
        let code = self.code;
        let last = match self.report.kept() {
            None => verdict,
            Some(findings) => {
                json!({ "version": 1, "code": code, "verdict": verdict, "findings": findings }).to_string()
            }
        };
        self.report.end(&last, code == 0)?;
        Ok(code)
    }
}
