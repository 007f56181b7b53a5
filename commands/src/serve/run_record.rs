//! Adds the output, the tools and the end of a link to its record.
//!
//! Decides nothing. A record is kept with the link's state; a link without state has none.

use std::path::Path;

use distlto_planner::keep;
use distlto_planner::state::Place;
use distlto_planner::words::lossy;
use distlto_prepare::{exit, regular};
use distlto_record::action::ActionStatus;
use distlto_record::cause::{FailureCause, FailureKind};
use distlto_record::run::Tool;
use miette::Diagnostic;

use super::link::Link;
use crate::link::error::LinkError;
use crate::link::identity;

impl Link<'_> {
    /// Records the output, the linker, and the linker's directory if it runs elsewhere.
    pub fn record_link(&self) {
        let name = lossy(&self.command.linker[0]);
        let file = identity::located(&name).map(|file| identity::file_line(&file));
        let linker = Tool { role: "linker".to_owned(), name, identity: file.into_iter().collect() };
        self.reporter.describe(|run| {
            run.output = Some(self.command.line.output().to_owned());
            run.linker_directory = self.directory.as_ref().map(|directory| directory.display().to_string());
            run.tools.push(linker);
        });
    }

    /// Records the compiler, from the note that has just been written.
    pub fn record_compiler(&self) {
        let note = regular::read(Path::new(&keep::toolchain_place(self.state()))).unwrap_or_default();
        let note = String::from_utf8_lossy(&note);
        let mut lines = note.lines().map(str::to_owned);
        let Some(name) = lines.next().and_then(|line| Some(line.strip_prefix("compiler ")?.to_owned()))
        else {
            return;
        };
        let compiler = Tool { role: "compiler".to_owned(), name, identity: lines.collect() };
        self.reporter.describe(|run| {
            // A link may begin anew, without stable names.
            run.tools.retain(|tool| tool.role != compiler.role);
            run.tools.push(compiler);
        });
    }

    /// Returns the cause if a link failed without a failed backend.
    fn linker_failed(&self, code: u8) -> Option<FailureCause> {
        let mut failed = code != 0;
        self.reporter
            .describe(|run| failed &= run.actions.iter().all(|action| action.result != ActionStatus::Failed));
        failed.then(|| FailureCause {
            kind: FailureKind::Failed,
            class: "distlto::failed".to_owned(),
            text: format!("{} ended with exit code {code}", lossy(&self.command.linker[0])),
            help: None,
        })
    }

    /// Records the graph that has just been kept.
    pub fn record_graph(&self) {
        self.reporter.graph(&Place::LinkGraph.path(self.state()));
    }

    /// Records the end of the link: its exit code, or an error.
    pub fn keep_run(&self, ended: &Result<u8, LinkError>) {
        let state = Path::new(self.state());
        match ended {
            Ok(code) => self.reporter.keep(state, *code, self.linker_failed(*code)),
            Err(error) => {
                let (kind, code) = match error {
                    _ if self.build.cancel.is_cancelled() => {
                        (FailureKind::Interrupted, self.build.cancel.exit_code())
                    }
                    error => (FailureKind::Failed, exit::code_of(error)),
                };
                self.reporter.keep(state, code, Some(FailureCause::of(kind, error as &dyn Diagnostic)));
            }
        }
    }
}
