//! Compiler, linker and hook: reports their versions, and whether together they can perform a link.
//!
//! Versions are shown and not judged: a link of some lines decides.

use std::path::Path;

use distlto_executor::execute::spawn::LocalSpawner;
use distlto_executor::hook;
use distlto_executor::program_files;
use distlto_planner::link_command::{LinkCommand, compiler_of};
use distlto_planner::runner::{Runner, ToolError};
use distlto_planner::search_path::program_file;
use distlto_planner::words::{Word, lossy, path_of, word_of};

use distlto_prepare::io_error::IoError;

use super::{Doctor, TOOL};
use crate::serve::linkers;
use crate::tool::ToolRunner;
use crate::trial::Trial;

impl Doctor<'_> {
    /// Reports on all tools. `is_given` is true if the user named the linker.
    pub(super) fn tools(&mut self, link: Option<&LinkCommand>, is_given: bool) {
        let spawner = LocalSpawner::observing();
        let runner = ToolRunner { spawner: &spawner, cancel: self.cancel, directory: None };
        let linker = link.filter(|link| self.linker(link, is_given, &runner));
        self.report.about("compiler");
        // The driver of a link by another linker is not known to be one.
        let is_known = link.is_some() || !is_given || self.args.compiler.is_some();
        let compiler = if is_known { self.compiler(link, &runner) } else { self.driver(&runner) };
        if let (Some(link), Some(compiler)) = (linker, &compiler) {
            let thin_link = "--plugin-opt=thinlto-index-only";
            let trial = Trial::new(compiler, &link.linker, thin_link, &spawner, self.cancel);
            match trial.and_then(|trial| trial.finish()) {
                Ok(()) => self.report.good("compiler and linker do a ThinLTO link of some lines together"),
                Err(failed) => {
                    self.fatal(
                        TOOL,
                        &format!(
                            "compiler and linker do not fit together, {} fails: use both of one LLVM version",
                            failed.what
                        ),
                    );
                    self.report.quote(&failed.said);
                }
            }
        }
        self.report.about("library");
        self.library();
    }

    /// Whether there is a linker that works.
    fn linker(&mut self, link: &LinkCommand, is_given: bool, runner: &dyn Runner) -> bool {
        self.report.about("linker");
        let name = lossy(&link.linker[0]);
        let Some(said) = self.version(&link.linker, runner) else {
            if !is_given {
                self.report
                    .quote("name the link command to look at another: distlto doctor -- clang++-22 ...");
            }
            return false;
        };
        if !said.contains("LLD") {
            self.fatal(TOOL, &format!("{name} does not call itself LLD: {said}"));
            return false;
        }
        let file = program_file(&path_of(&link.linker[0])).unwrap_or_default();
        match linkers::can_ask(&file) {
            Ok(true) => self.report.good("it asks distlto for its objects"),
            Ok(false) if program_files::is_script(&file) => {
                self.report.note("it is a script: a linker that it runs asks")
            }
            Ok(false) => {
                let sentence = "it cannot ask for objects, and links by itself: install lld 15 or later";
                self.fatal(TOOL, sentence);
            }
            Err(error) => {
                self.fails("it cannot be read", &IoError::on("read", &file)(error));
                return false;
            }
        }
        true
    }

    /// The program of a command without lld, if it is clang.
    fn driver(&mut self, runner: &dyn Runner) -> Option<String> {
        let name = self.args.command.first()?.to_string_lossy().into_owned();
        self.version(&[word_of(name.clone().into())], runner).map(|_| name)
    }

    /// The compiler for the backends, if it works.
    fn compiler(&mut self, link: Option<&LinkCommand>, runner: &dyn Runner) -> Option<String> {
        let asked = self.args.compiler.as_deref();
        let found = match link {
            Some(link) => compiler_of(link, asked),
            None => asked
                .map(str::to_owned)
                .or_else(|| program_file(Path::new("clang")).map(|_| "clang".to_owned()))
                .ok_or_else(|| ToolError::NoCompiler { linker: "ld.lld".to_owned() }),
        };
        match found {
            Ok(compiler) => {
                let said = self.version(&[word_of(compiler.clone().into())], runner)?;
                if !said.contains("clang version") {
                    self.fatal(TOOL, &format!("{compiler} does not call itself clang: {said}"));
                    return None;
                }
                Some(compiler)
            }
            Err(error) => {
                self.fails("there is no compiler", &error);
                None
            }
        }
    }

    /// Returns the first line that a program prints for `--version`, and reports it.
    fn version(&mut self, program: &[Word], runner: &dyn Runner) -> Option<String> {
        let name = lossy(&program[0]);
        let place = program_file(&path_of(&program[0])).and_then(|file| file.canonicalize().ok());
        let Some(place) = place else {
            self.fatal(TOOL, &format!("{name} is missing: install it, or put its directory into PATH"));
            return None;
        };
        let question = [program, &[b"--version".to_vec()]].concat();
        let failed = match runner.run(&question) {
            Ok(answer) if answer.status.success() => {
                let said = lossy(&answer.stdout);
                let said = said.lines().next().unwrap_or_default().to_owned();
                let place = place.to_string_lossy();
                let place = if place == name { String::new() } else { format!(" is {place}") };
                self.report.good(&format!("{name}{place}: {said}"));
                return Some(said);
            }
            Ok(answer) => answer.status.to_string(),
            Err(error) => error.to_string(),
        };
        self.fatal(TOOL, &format!("{name} ({}) cannot be asked for its version: {failed}", place.display()));
        None
    }

    fn library(&mut self) {
        let variable = hook::VARIABLE;
        match hook::find_library() {
            Some(library) if library.is_file() => {
                self.report.good(&format!("{} is loaded into linkers", library.display()));
            }
            Some(library) => self.report.note(&format!(
                "{variable} names {}, which is no file: linkers link by themselves",
                library.display()
            )),
            None => {
                let lack = hook::lack_of_library().unwrap_or_else(|| format!("{variable} switches it off"));
                self.report.note(&format!("{lack}: linkers link by themselves"));
            }
        }
    }
}
