//! One lld: the user's link line as it is, performed by one process of the linker, whose backends are ours.
//!
//! lld resolves symbols, runs the thin link, asks for the backends' objects (DTLTO) and links them, so the program is the
//! one that it makes. It is told a distributor, which hands the job file over to this process (`hand_over`); which
//! backends have to run is decided by content (`backends`, `kept`). The linker writes beside the output under another
//! name, since names of files beside the output stand in module ids and so decide the order of imports; the program
//! is then renamed into place. How lld is told of a distributor: LLVM's page DTLTO.

mod backends;
mod failed;
mod hand_over;
mod kept;
mod leaves;
mod line;
mod linker;
mod messages;
mod modules;
mod names;
mod parts;
mod shards;
mod sweep;
mod told;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Instant;

use distlto_planner::backend_flags::{self, FlagError};
use distlto_planner::compile_jobs;
use distlto_planner::index;
use distlto_planner::inputs::Bitcode;
use distlto_planner::keep;
use distlto_planner::link_line::{self, Argument};
use distlto_planner::runner::ToolError;
use distlto_planner::words::{Word, lossy, shell_line};
use distlto_prepare::exit;
use distlto_prepare::io_error::IoError;
use distlto_prepare::limits::Lack;
use distlto_prepare::message::say;
use distlto_prepare::threads;
use rustix::pipe::PipeFlags;

use super::file_state::Start;
use super::reads::Reads;
use super::{LinkError, NO_BITCODE, Session, WRITES_ITSELF, ahead, identity, stable_names};
use crate::linker_flags;
use crate::tool::exit_code;
use crate::up_to_date::Records;
use distlto_executor::execute::cc1::Cc1Commands;
use distlto_executor::execute::process::{Command, Finished, Spawner, signal_name};
use distlto_executor::execute::response_file;
use distlto_executor::execute::spawn::LocalSpawner;
use distlto_record::progress::{Phase, Progress};

use backends::Backends;
use hand_over::HandOver;
pub use hand_over::serve;
use kept::Kept;
use line::Line;
pub(crate) use line::{own_program, without_further_outputs};
use linker::Linker;
use modules::{CompileSettings, Ran};
pub(super) use sweep::before as sweep_before;

/// Why a link with `-r` has no backends: they would be for other code than that of one process.
const EACH_ITS_OWN: &str = "with -r the linker takes relocation and code model from each module, which only --flags-from or \
                            --backend-arg=-fPIC and the like can tell a backend";

/// How a link by the linker ended.
pub(super) enum End {
    /// It is done.
    Done(super::End),
    /// The linker cannot do it, for this reason.
    TwoStep(String),
    /// The system has not enough for a linker that runs beside all of this, for this reason.
    Lacks(String),
}

/// Links.
pub(super) fn run(session: &Session<'_>) -> Result<End, LinkError> {
    let looked = look(session)?;
    let bitcode = match looked {
        Looked::Known => None,
        Looked::Found(bitcode) => Some(bitcode),
        Looked::End(end) => return Ok(end),
    };
    session.check_configuration()?;
    let line = compile_jobs::run(session.link, session.directory, session.runner)
        .map_err(index::IndexError::from)?;
    let (arguments, words) = (line.arguments(), line.words());
    let compilation = compilation(session, arguments)?;
    if let Some(option) = compilation.flags.not_done.iter().find(|option| !option.contains("save-temps")) {
        session.say_why_whole(&format!("{option} asks for what only the linker's own backends write"));
        return Ok(End::Done(super::End::AsItIs));
    }
    let extra = &session.options.backend_args;
    let told = backend_flags::of_link_line(arguments, backend_flags::architecture(arguments), None, extra);
    if let Err(FlagError::RelocationModelUnknown) = told {
        session.say_why_whole(EACH_ITS_OWN);
        return Ok(End::Done(super::End::AsItIs));
    }
    let compiler = OsStr::new(&compilation.compiler);
    session.options.run.prewarm(session.spawner, compiler, 1);
    session.options.run.prewarm_steps(session.spawner, compiler, &session.options.backend_args);
    sweep::before(session)?;
    let link = Link { session, arguments, words, compilation: &compilation };
    link.run(bitcode.as_ref())
}

/// What is known of a link before it begins.
enum Looked {
    /// That it is one by the linker with backends, as it was last time.
    Known,
    /// The bitcode among its inputs.
    Found(Bitcode),
    End(End),
}

fn look(session: &Session<'_>) -> Result<Looked, LinkError> {
    let arguments = session.link.line.arguments();
    if index::writes_itself(arguments) {
        session.say_why_whole(WRITES_ITSELF);
        return Ok(Looked::End(End::Done(super::End::AsItIs)));
    }
    if let Some(odd) = line::odd_name(arguments) {
        return Ok(Looked::End(End::TwoStep(cannot_spell(&odd))));
    }
    if session.is_known {
        return Ok(Looked::Known);
    }
    if session.takes_distributor.get() == Some(&false) {
        return Ok(Looked::End(End::TwoStep(without_dtlto(session))));
    }
    session.spawner.prewarm(OsStr::new(&lossy(&session.link.linker[0])), 2);
    // The linker is asked while the inputs are looked at.
    let (bitcode, takes) = threads::both(
        || Bitcode::among(arguments).map_err(index::IndexError::from),
        || session.takes_distributor(),
    );
    if !takes? {
        return Ok(Looked::End(End::TwoStep(without_dtlto(session))));
    }
    let bitcode = bitcode?;
    // Sources on the line are not compiled yet.
    if bitcode.is_empty() && session.link.compilations.is_empty() {
        session.say_why_whole(NO_BITCODE);
        return Ok(Looked::End(End::Done(super::End::AsItIs)));
    }
    Ok(Looked::Found(bitcode))
}

fn cannot_spell(name: &str) -> String {
    format!("a linker with DTLTO cannot spell the name {name}")
}

fn without_dtlto(session: &Session<'_>) -> String {
    format!("{} has no DTLTO", lossy(&session.link.linker[0]))
}

fn compilation(session: &Session<'_>, arguments: &[Argument]) -> Result<CompileSettings, LinkError> {
    let named = link_line::last_value(arguments, "thinlto-remote-compiler");
    let asked = session.options.compiler.as_deref().or(named);
    let compiler = index::compiler_of(session.link, asked)?;
    let mut extra: Vec<String> = line::compiler_arguments(arguments);
    extra.extend_from_slice(&session.options.backend_args);
    let said = linker_flags::ask(&session.link.linker, arguments, session.runner);
    let flags = backend_flags::of_distributed_line(arguments, said.as_ref(), &extra);
    let flags = flags.map_err(index::IndexError::from)?;
    Ok(CompileSettings { compiler, flags, jobs: index::jobs_of(arguments) })
}

/// Notes what compiles, and reads the note.
fn toolchain(session: &Session<'_>, compilation: &CompileSettings) -> Result<Vec<u8>, IoError> {
    let identity = identity::of(&compilation.compiler, &session.link.driver);
    keep::toolchain(session.directory, &compilation.compiler, &identity)?;
    let place = keep::toolchain_place(session.directory);
    fs::read(&place).map_err(IoError::on("read", &place))
}

/// One link, with everything known that can be known before the linker runs.
struct Link<'a> {
    session: &'a Session<'a>,
    arguments: &'a [Argument],
    words: &'a [Word],
    compilation: &'a CompileSettings,
}

/// What the linker asked for while it ran.
struct Served {
    /// What is read, as far as it is known before the linker ends.
    reads: Reads,
    ran: Option<Ran>,
    /// When the final link began.
    final_link: Option<Instant>,
    /// Why the linker cannot do this link, if that is so.
    unable: Option<String>,
    /// Whether it was said what would run; then nothing ran.
    is_previewed: bool,
    /// Why its locals cannot have stable names.
    nameless: Option<LinkError>,
}

/// How the linker ended, and what it handed over.
struct Linked {
    finished: Finished,
    /// With the time when the link began to read.
    reads: (Reads, Start),
    ran: Option<Ran>,
    unable: Option<String>,
    /// The system's limit that it met.
    lack: Option<Lack>,
    is_previewed: bool,
    nameless: Option<LinkError>,
    /// What it printed.
    said: String,
}

impl Linked {
    fn new(served: Served, finished: Finished, start: Start) -> Self {
        Self {
            finished,
            reads: (served.reads, start),
            ran: served.ran,
            unable: served.unable,
            lack: None,
            is_previewed: served.is_previewed,
            nameless: served.nameless,
            said: String::new(),
        }
    }
}

/// How a dry run ended: the linker's own failure counts where it did not get to its backends.
fn end_of_dry_run(is_previewed: bool, code: u8) -> super::End {
    match (is_previewed, code) {
        (true, _) => super::End::Code(0),
        (false, 0) => super::End::AsItIs,
        (false, code) => super::End::Code(code),
    }
}

impl Link<'_> {
    fn run(&self, bitcode: Option<&Bitcode>) -> Result<End, LinkError> {
        let session = self.session;
        let hand_over = HandOver::listen(session.directory)?;
        let line = Line::new(session, self.arguments, self.words, &self.compilation.compiler, &hand_over)?;
        if session.options.run.verbose && !session.options.run.json {
            let words: Vec<String> = line.words.iter().map(|word| lossy(word)).collect();
            say(format_args!("distlto: {}", shell_line(words.iter().map(String::as_str))));
        }
        let records = Records::open(Path::new(session.earlier))?;
        let linked = self.link(&line, hand_over, &records, bitcode);
        if session.cancel.is_cancelled() {
            return Err(self.ended_early(linked.as_ref().ok()));
        }
        let linked = linked?;
        if let Some(error) = linked.nameless {
            return Err(error);
        }
        let code = exit_code(linked.finished.ended.status);
        let (code, ran) = match linked.ran {
            // What failed has been told, and its exit code says more than the linker's.
            Some(ran) if ran.code != 0 => (ran.code, Some(ran)),
            ran => (code, ran),
        };
        if let Some(lack) = linked.lack {
            return Ok(End::Lacks(lack.to_string()));
        }
        if code == exit::LIMIT {
            return Ok(End::Lacks("not all backends could be run beside the linker".to_owned()));
        }
        if let Some(reason) = linked.unable.filter(|_| code != 0) {
            return Ok(End::TwoStep(reason));
        }
        if session.options.dry_run {
            line.drop_written()?;
            return Ok(End::Done(end_of_dry_run(linked.is_previewed, code)));
        }
        session.tell_linker(linked.said.as_bytes());
        let Some(ran) = ran else {
            if code == 0 {
                line.commit(false, true)?;
                session.say_why_whole(match bitcode {
                    Some(bitcode) if bitcode.is_full_lto() => "all bitcode is that of full LTO (-flto)",
                    _ => "none of the modules that it loaded is ThinLTO bitcode",
                });
            }
            return Ok(End::Done(super::End::Needless(code)));
        };
        if code == 0 {
            line.commit(true, ran.modules.iter().any(|module| module.ran))?;
        }
        let graph = leaves::leave(self, &line, &records, &ran, linked.reads, code)?;
        if graph.is_some() {
            session.tell_plan();
        }
        session.reporter.conclude(&line.output.to_string_lossy(), graph.as_ref(), None);
        Ok(End::Done(super::End::Code(code)))
    }

    /// Runs the linker, and its backends when it asks for them.
    fn link(
        &self,
        line: &Line,
        hand_over: HandOver,
        records: &Records,
        bitcode: Option<&Bitcode>,
    ) -> Result<Linked, LinkError> {
        let session = self.session;
        let fitting = response_file::fit(&line.words)?;
        let start = |source| ToolError::Start { program: lossy(&line.words[0]), source };
        // There are words: the linker is the first.
        let command = Command::of_words(&fitting.words, None)
            .ok_or_else(|| start(io::ErrorKind::InvalidInput.into()))?;
        // A linker that was just asked something is loaded already.
        let spawner: &dyn Spawner = if session.is_known { &LocalSpawner } else { session.spawner };
        let (over, ended) =
            rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|error| start(error.into()))?;
        let inputs = line::inputs(self.arguments);
        line::check_inputs(&inputs)?;
        let link_start = line::start(&inputs);
        let (cc1_commands, kept) = (Cc1Commands::default(), Kept::load(session.earlier));
        let linker = Linker::new(over);
        thread::scope(|scope| {
            let running = threads::start_in(scope, "linker", || {
                let _ended = ended;
                linker.run(&command, spawner, session.cancel)
            });
            let running = running.map_err(&start)?;
            if let Some(backend) = bitcode.and_then(|bitcode| self.first_backend(bitcode)) {
                ahead::ask(session, &cc1_commands, scope, backend);
            }
            let served = self.serve(&linker, hand_over, records, &cc1_commands, &kept);
            let finished = running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            if let Ok(finished) = &finished
                && !finished.ended.status.success()
            {
                sweep::after_failure(session, &finished.processes)?;
            }
            let mut linked = Linked::new(served?, finished.map_err(start)?, link_start);
            linked.said = linker.messages.said();
            linked.unable = linked.unable.or_else(|| linker.messages.defect().map(str::to_owned));
            if !linked.finished.ended.status.success() {
                linked.lack = Lack::said(linked.said.as_bytes());
            }
            if linked.unable.is_none()
                && linked.lack.is_none()
                && linked.nameless.is_none()
                && !linked.is_previewed
            {
                linker.messages.release();
            }
            Ok(linked)
        })
    }

    /// Answers the linker until it ends. When this returns, nobody answers it any more.
    fn serve(
        &self,
        linker: &Linker,
        mut hand_over: HandOver,
        records: &Records,
        cc1_commands: &Cc1Commands,
        kept: &Kept,
    ) -> Result<Served, LinkError> {
        let session = self.session;
        let mut served = Served {
            reads: leaves::known_reads(self),
            ran: None,
            final_link: None,
            unable: None,
            is_previewed: false,
            nameless: None,
        };
        let identity = self.compilation.identity(&toolchain(session, self.compilation)?);
        session.tell_compiler();
        let compilation = self.compilation;
        let backends = Backends { session, compilation, identity, cc1_commands, records, kept };
        while let Some(request) = linker.request(&mut hand_over)? {
            session.reporter.had_phase("thin link", linker.begun);
            sweep::note(session, &request.job_file)?;
            let jobs = backends.read(&request.job_file)?;
            let defect = || linker.messages.defect().map(str::to_owned);
            if let Some(reason) = jobs.odd_name().map(cannot_spell).or_else(defect) {
                served.unable = Some(reason);
                request.answer(1);
                continue;
            }
            if session.options.stable_names
                && let Err(error) = stable_names::check(&compilation.compiler, session.runner, jobs.modules())
            {
                served.nameless = Some(error);
                request.answer(1);
                continue;
            }
            if session.options.dry_run {
                backends.preview(&jobs)?;
                served.is_previewed = true;
                request.answer(1);
                continue;
            }
            linker.messages.release();
            let ran = served.ran.insert(linker.while_it_waits(|| backends.run(&jobs))?);
            if ran.code == 0 {
                let start = Instant::now();
                session.reporter.phase(Phase { name: "final link", start, end: None });
                served.final_link = Some(start);
            }
            request.answer(ran.code);
        }
        if let Some(start) = served.final_link {
            session.reporter.phase(Phase { name: "final link", start, end: Some(Instant::now()) });
        }
        Ok(served)
    }

    /// A backend as the linker will want it, but for what its thin link says.
    fn first_backend(&self, bitcode: &Bitcode) -> Option<index::Preview> {
        line::first_backend(self.session.directory, self.compilation, bitcode)
    }

    /// Why a link was cancelled: by whoever asked for it, or since the linker is gone.
    fn ended_early(&self, linked: Option<&Linked>) -> LinkError {
        let cancel = self.session.cancel;
        match (cancel.signal(), linked.and_then(|linked| signal_name(linked.finished.ended.status))) {
            (None, Some((number, name))) => LinkError::LinkerGone {
                linker: lossy(&self.session.link.linker[0]),
                signal: format!("signal {number} ({name})"),
            },
            _ => LinkError::Interrupted { exit_code: cancel.exit_code() },
        }
    }
}
