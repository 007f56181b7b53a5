//! The link command: finds its linker, and checks whether backends of our own can link its line.
//!
//! A driver is asked for the linker's command. Without a command the linker is `ld.lld` of PATH, or the newest
//! `ld.lld-N`.

use distlto_executor::execute::spawn::PLAIN;
use distlto_planner::backend_flags;
use distlto_planner::link_command::{self, GivenCommand, LinkCommand, Resolved};
use distlto_planner::linker::options::last;
use distlto_planner::runner::Runner;
use distlto_planner::search_path::this_or_newest;
use distlto_planner::words::{Word, lossy};

use super::{Doctor, TOOL};
use crate::index::{self, Asked};
use crate::link::error::LinkError;
use crate::link::options::LinkOptions;
use crate::run_args::RunArgs;
use crate::scratch::scratch;
use crate::serve::collection::Collection;
use crate::tool::ToolRunner;

/// The examined linker if no command is given.
const LINKER: &str = "ld.lld";

impl Doctor<'_> {
    /// Returns the link that the command would run; `None` if it is no link by lld.
    pub(super) fn command(&mut self, words: &[Word]) -> Option<LinkCommand> {
        let runner = ToolRunner { spawner: &PLAIN, cancel: self.cancel, directory: None };
        let without = [this_or_newest(LINKER).into_bytes()];
        let (words, is_given) = if words.is_empty() { (&without[..], false) } else { (words, true) };
        if is_given {
            self.report.about("link command");
        }
        match link_command::resolve(&GivenCommand::new(words), &runner) {
            Ok(Resolved::Link(link)) => {
                if is_given {
                    self.link(words, &link);
                }
                Some(link)
            }
            Ok(Resolved::Other { linker: Some(linker), .. }) => {
                self.fatal(
                    TOOL,
                    &format!(
                        "it links by {linker}, and only lld asks for objects: add -fuse-ld=lld to its flags"
                    ),
                );
                None
            }
            Ok(Resolved::Other { linker: None, .. }) => {
                self.no_link(words, &runner);
                None
            }
            Err(error) => {
                self.fails("it cannot be looked at", &error);
                None
            }
        }
    }

    /// Reports a driver that prints no link, or fails.
    fn no_link(&mut self, words: &[Word], runner: &dyn Runner) {
        let mut question = words.to_vec();
        question.push(b"-###".to_vec());
        let name = lossy(&words[0]);
        match runner.run(&question) {
            Ok(answer) if !answer.status.success() => {
                self.fatal(TOOL, &format!("{name} -### fails, so that nothing is known of the link"));
                self.report.quote(&lossy(&answer.stderr));
            }
            Ok(_) => self.fatal(2, &format!("{name} links nothing here: name a command that links")),
            Err(error) => self.fatal(TOOL, &format!("cannot run {name}: {error}")),
        }
    }

    fn link(&mut self, words: &[Word], link: &LinkCommand) {
        let arguments = link.line.arguments();
        self.report.good(&format!("it links {} by {}", link.line.output(), lossy(&link.linker[0])));
        self.modules(words);
        if last(arguments, "thinlto-cache-dir").is_some() {
            self.report.note("--thinlto-cache-dir has no effect: objects are kept with the state, and --cache DIR shares them");
        }
        match backend_flags::of_distributed_line(arguments, None, &[]) {
            Ok(_) => self.report.good("clang has a spelling for each of its options that change code"),
            Err(error) => self.fails("its options", &error),
        }
    }

    /// Reports how many modules the linker loads, by asking the linker.
    fn modules(&mut self, words: &[Word]) {
        let run = RunArgs { quiet: true, ..RunArgs::default() };
        let options = LinkOptions { run, ..LinkOptions::default() };
        let scratch = match scratch("doctor") {
            Ok(scratch) => scratch,
            Err(error) => return self.fails("there is no place for a trial", &error),
        };
        match index::ask(words, &options, Collection::new(&scratch.path().to_string_lossy()), self.cancel) {
            Ok(Asked::Link(asked)) if asked.link.modules.is_empty() => self.report.note(
                "the linker loads no ThinLTO bitcode: as it is it links by itself (compile with -flto=thin)",
            ),
            Ok(Asked::Link(asked)) => {
                let members = asked.link.modules.iter().filter(|(_, module)| module.archive.is_some());
                self.report.good(&format!(
                    "the linker loads {} ThinLTO modules, {} of them members of archives",
                    asked.link.modules.len(),
                    members.count()
                ));
            }
            Ok(Asked::Failed(code)) => {
                self.report
                    .note(&format!("its thin link ended with exit code {code}: are all its inputs there?"));
            }
            Err(LinkError::LeftAlone { why, .. }) => {
                self.report.note(&format!("its linker links by itself: {why}"))
            }
            Err(error) => self.fails("its linker cannot be asked", &error),
        }
    }
}
