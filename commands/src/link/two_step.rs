//! The two-step way: a thin link, backends as actions of a graph, and a second run of the linker over their objects.
//!
//! For linkers without DTLTO, for those who ask for it, and the way of everybody who runs the backends elsewhere. Each step
//! is a function of another module; this one only knows their order.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::Path;

use distlto_planner::backend_flags::stable_names::are_in;
use distlto_planner::graph::{ActionGraph, ActionId, ActionKind};
use distlto_planner::index::{self, IndexError, Planned, PlannedLink};
use distlto_planner::link_line::Argument;
use distlto_planner::pending::Pending;
use distlto_planner::runner::Runner;
use distlto_planner::words::lossy;
use distlto_prepare::message::say;
use distlto_prepare::store::Store;
use distlto_prepare::threads;
use distlto_prepare::warning::warn;

use super::keeping::Keeping;
use super::phases::{FinalLink, PlanningPhases};
use super::{
    LinkError, NO_BITCODE, Session, WRITES_ITSELF, ahead, dry_run, final_link, identity, line_cache,
    nothing_to_do, stable_names, state, two_step_reads, unchanged,
};
use crate::linker_flags;
use crate::run_args::Assembly;
use crate::up_to_date::{Recording, Records};
use distlto_executor::execute::cc1::Cc1Commands;
use distlto_executor::run;
use distlto_record::progress::Progress;

impl Session<'_> {
    /// Plans, compiles and links. `None` when the command is to be run as it is.
    pub(super) fn two_step(&self) -> Result<Option<u8>, LinkError> {
        self.check_configuration()?;
        // Both programs load while the inputs are looked at, and the linker is needed twice.
        self.spawner.prewarm(OsStr::new(&lossy(&self.link.linker[0])), 2);
        if let Some(compiler) = &self.link.compiler {
            let compiler = lossy(compiler);
            self.options.run.prewarm(self.spawner, OsStr::new(&compiler), 1);
            self.options.run.prewarm_steps(self.spawner, OsStr::new(&compiler), &self.options.backend_args);
        }
        let arguments = self.link.line.arguments();
        let reads = two_step_reads::before(self.directory, self.link, arguments);
        let start = reads.start();
        let store = Store::of_run(self.options.store.as_deref())?;
        let phases = PlanningPhases::new(self.reporter, self.runner);
        let cc1_commands = Cc1Commands::default();
        let (planned, pending) = match self.plan(store.as_ref(), &phases, &cc1_commands) {
            Ok(Planned::Link(planned, pending)) => (planned, pending),
            Ok(Planned::Unchanged) => {
                self.say_why_whole(if index::writes_itself(arguments) { WRITES_ITSELF } else { NO_BITCODE });
                return Ok(None);
            }
            // A valid link, which only one linker can do.
            Err(error) if error.is_of_two_steps() => {
                let warning = format!("{error}: the linker links by itself");
                warn(&warning);
                self.reporter.warned(&warning);
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        if self.options.stable_names {
            let compiler =
                index::compiler_of(self.link, self.options.compiler.as_deref()).map_err(IndexError::from)?;
            let modules = planned.plan.modules.iter();
            let modules = modules.map(|module| (module.id.as_str(), module.id.as_std_path()));
            stable_names::check(&compiler, self.runner, modules)?;
        }
        self.say_of_cache(arguments);
        self.warn_of_ignored(&planned.not_done);
        let graph = planned.plan.to_graph()?;
        phases.planned();
        if let Some(path) = &self.options.save_plan {
            distlto_prepare::write::write_if_changed(path, &distlto_planner::graph::json::to_bytes(&graph))?;
        }
        let records = Records::open(Path::new(self.directory))?;
        if self.options.dry_run {
            let keeping =
                Keeping { graph: &graph, plan: &planned.plan, pending: &pending, records: &records };
            dry_run::tell(self, &graph, &keeping.known(&keeping.out_of_date()?), planned.jobs)?;
            pending.give_up()?;
            return Ok(Some(0));
        }
        self.tell_compiler();
        let result = self.compile_and_link(&planned, &pending, &cc1_commands, &graph, arguments, &records);
        self.reporter.conclude(planned.plan.output.as_str(), Some(&graph), None);
        let (code, linked) = result?;
        if code == 0 {
            line_cache::save(self.directory, self.key, self.link)?;
            let (reads, outputs) =
                two_step_reads::after(reads, self.directory, &planned.plan, self.link, arguments);
            if !linked {
                unchanged::touch_all(&outputs)?;
            }
            unchanged::record(self.directory, self.key, &reads, &outputs, &start, records.digests())?;
            records.save()?;
        }
        Ok(Some(code))
    }

    /// Plans, and asks meanwhile what the driver would run for a backend.
    fn plan(
        &self,
        store: Option<&Store>,
        runner: &dyn Runner,
        cc1_commands: &Cc1Commands,
    ) -> Result<Planned, IndexError> {
        std::thread::scope(|scope| {
            let preview = |backend| ahead::ask(self, cc1_commands, scope, backend);
            let identity = |compiler: &str| identity::of(compiler, &self.link.driver);
            index::plan(index::PlanRequest {
                link: self.link,
                state: self.directory,
                compiler: self.options.compiler.as_deref(),
                backend_args: &self.options.backend_args,
                flags_from: self.options.flags_from.as_ref(),
                store,
                runner,
                preview: Some(&preview),
                linker_flags: Some(&|arguments| linker_flags::ask(&self.link.linker, arguments, self.runner)),
                identity: Some(&identity),
            })
        })
    }

    /// Names the options that ask for what no distributed link writes.
    fn warn_of_ignored(&self, options: &[String]) {
        for option in options {
            let warning = format!("{option} is ignored: a distributed link writes objects only");
            warn(&warning);
            self.reporter.warned(&warning);
        }
    }

    /// Returns the exit code and whether the program was linked.
    fn compile_and_link(
        &self,
        planned: &PlannedLink,
        pending: &Pending,
        cc1_commands: &Cc1Commands,
        graph: &ActionGraph,
        arguments: &[Argument],
        records: &Records,
    ) -> Result<(u8, bool), LinkError> {
        let keeping = Keeping { graph, plan: &planned.plan, pending, records };
        let wanted = keeping.out_of_date()?;
        self.reporter.knows(keeping.known(&wanted));
        let wanted: Vec<ActionId> = wanted.into_iter().map(|(id, _)| id).collect();
        let (result, kept) = threads::both(
            || self.compile(planned, &keeping, cc1_commands, &wanted),
            || keeping.finish(self.cancel),
        );
        let result = result.and_then(|code| kept.map(|()| code).map_err(LinkError::from));
        self.tell_plan();
        records.save()?;
        let code = result?;
        if code != 0 {
            return Ok((code, false));
        }
        self.summarise(&planned.plan, wanted.len());
        if planned.order_differs && self.options.run.verbose && !self.options.run.json {
            say(format_args!(
                "distlto: {}: native objects define what modules define too: the order of constructors may differ from lld's",
                planned.plan.output
            ));
        }
        let compared: HashSet<&Path> = two_step_reads::compared(&planned.plan).collect();
        let holds = planned.plan.output.exists()
            && unchanged::is_unchanged_besides(self.directory, self.key, &compared);
        let links = graph.actions().filter(|(_, action)| action.kind() == ActionKind::Link).map(|(id, _)| id);
        let mut linked = false;
        for id in links {
            if holds && records.out_of_date(graph, &[id])?.is_empty() {
                continue;
            }
            let runner = FinalLink::new(self.reporter, self.runner);
            let tell = |said: &[u8]| self.tell_linker(said);
            let code = final_link::run(planned, self.directory, arguments, &runner, &planned.warnings, tell)?;
            if code != 0 {
                return Ok((code, false));
            }
            linked = true;
            records.finished(graph, id)?;
            records.save()?;
        }
        Ok((0, linked))
    }

    fn compile(
        &self,
        planned: &PlannedLink,
        keeping: &Keeping<'_>,
        cc1_commands: &Cc1Commands,
        wanted: &[ActionId],
    ) -> Result<u8, LinkError> {
        if wanted.is_empty() {
            nothing_to_do(self.options, self.reporter);
            return Ok(0);
        }
        if let Some(compiler) = planned.plan.backend.first().filter(|_| wanted.len() > 1) {
            self.options.run.prewarm(self.spawner, OsStr::new(compiler), wanted.len());
        }
        let jobserver = self.options.run.jobserver(wanted.len(), planned.jobs);
        let state = Some(self.directory.as_ref());
        let is_stable = are_in(keeping.graph);
        let assembly = Assembly::new(&self.options.run, self.spawner, self.cancel, state, is_stable)?;
        let history = state::history(self.directory);
        let mut run_options = assembly.options(self.reporter, Some(&history), planned.jobs);
        run_options.jobserver = jobserver.as_ref();
        let provide = |id| keeping.provide(id);
        run_options.cc1_commands = Some(cc1_commands);
        run_options.provide = Some(&provide);
        run_options.digests = Some(keeping.records.digests());
        let hooks = Recording::new(keeping.graph, keeping.records, self.reporter);
        let report = run::run(keeping.graph, wanted, &run_options, &hooks);
        hooks.result()?;
        Ok(report.exit_code())
    }
}
