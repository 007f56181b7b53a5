//! The command that prints a job file in another form, or lists the options that lld would leave out of a link.
//!
//! Reads and prints; the work is done by `read`, `write` and `dropped`. Starts no process itself: the given [`Runner`]
//! runs a driver to get its link line.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufWriter, Read, Write};

use camino::{Utf8Path, Utf8PathBuf};
use clap::{Args, ValueEnum};
use distlto_prepare::exit;
use distlto_prepare::io_error::IoError;
use distlto_prepare::message::note;
use distlto_prepare::write::to_standard_output;
use miette::Diagnostic;
use thiserror::Error;

use distlto_planner::dtlto::{self, JobFile, JobFileError, Placed, cost, dropped, identifier, write};
use distlto_planner::graph::json;
use distlto_planner::invocation::{ProgramKind, program};
use distlto_planner::link_command::{self, GivenCommand, LinkCommandError, Resolved};
use distlto_planner::runner::Runner;
use distlto_planner::words::{Word, lossy, shell_line, word_of};

/// Print a DTLTO job file, or say what lld leaves out through a distributor
///
/// lld gives its distributor one job file, which is gone when the link ends; distlto-distribute --save-job keeps it.
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help())]
pub struct JobsArgs {
    /// The job file, as lld writes it or of version 0.0 (- for standard input)
    #[arg(value_name = "JOBFILE", required_unless_present = "check_line")]
    pub file: Option<Utf8PathBuf>,
    /// Print the jobs in this form
    #[arg(long, value_enum, value_name = "FORM", default_value_t = JobFormat::Graph)]
    pub to: JobFormat,
    /// Say what of the link command after -- lld would not tell the compiler, and which option mends it
    #[arg(long, requires = "command", conflicts_with_all = ["file", "to"])]
    pub check_line: bool,
    /// With --check-line: the link command, a compiler driver or ld.lld with its arguments
    #[arg(last = true, conflicts_with = "file", value_name = "LINKER")]
    pub command: Vec<OsString>,
}

/// What a job file is printed as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum JobFormat {
    /// An action graph in JSON (docs/action-graph.md)
    Graph,
    /// A job file as lld 22 writes it
    Jobs,
    /// Shell commands, one a line, to be run in lld's working directory
    Commands,
}

/// Why nothing was printed.
#[derive(Debug, Error, Diagnostic)]
pub enum JobsError {
    /// A file could not be read or written.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
    /// No such job file.
    #[error("{path} does not exist")]
    #[diagnostic(
        code(distlto::bad_input),
        help(
            "lld removes its job file when the link ends; keep a copy with distlto-distribute --save-job DIR"
        )
    )]
    Missing {
        /// The path.
        path: Utf8PathBuf,
    },
    /// A job file that cannot be used.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Job(#[from] JobFileError),
    /// A link command that cannot be resolved.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Front(#[from] LinkCommandError),
    /// Another command.
    #[error("the command does not link with ld.lld")]
    #[diagnostic(
        code(distlto::usage),
        help("give the command that links the program, with -fuse-ld=lld if a compiler driver does it")
    )]
    NotALink,
}

/// Runs the command.
pub fn run(args: &JobsArgs, runner: &dyn Runner) -> Result<u8, JobsError> {
    match &args.file {
        Some(path) => print(path, args.to)?,
        None => {
            let command: Vec<_> = args.command.iter().cloned().map(word_of).collect();
            to_standard_output(check_line(&command, runner)?.as_bytes())?;
        }
    }
    Ok(0)
}

fn print(path: &Utf8Path, form: JobFormat) -> Result<(), JobsError> {
    let (bytes, name) = bytes(path)?;
    let (mut file, placed) = dtlto::read_placed(&bytes, &name)?;
    drop(bytes);
    notes(&file, &placed.unwrap_or_default()).into_iter().for_each(note);
    if form == JobFormat::Graph {
        cost::set_costs(&mut file, None);
    }
    let mut out = BufWriter::new(io::stdout().lock());
    let written = write_as(&file, form, &mut out);
    match written.and_then(|()| out.flush()) {
        // A reader that goes away early has seen enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(IoError::on("write", "standard output")(error).into())
        }
        _ => Ok(()),
    }
}

/// Writes the jobs in a form.
pub fn write_as(file: &JobFile, form: JobFormat, out: &mut impl Write) -> io::Result<()> {
    match form {
        JobFormat::Graph => json::write(&file.graph, out),
        JobFormat::Jobs => {
            write::current(file, out)?;
            out.write_all(b"\n")
        }
        JobFormat::Commands => {
            file.jobs.iter().try_for_each(|&job| writeln!(out, "{}", shell_line(file.graph.command(job))))
        }
    }
}

fn bytes(path: &Utf8Path) -> Result<(Vec<u8>, String), JobsError> {
    if path == "-" {
        let mut bytes = Vec::new();
        let name = "standard input";
        io::stdin().lock().read_to_end(&mut bytes).map_err(IoError::on("read", name))?;
        return Ok((bytes, name.to_owned()));
    }
    match fs::read(path) {
        Ok(bytes) => Ok((bytes, path.to_string())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(JobsError::Missing { path: path.to_owned() })
        }
        Err(error) => Err(IoError::on("read", path)(error).into()),
    }
}

/// Lists the preparations that the commands need and that no form can express.
fn notes(file: &JobFile, placed: &Placed) -> Vec<String> {
    let mut notes: Vec<_> = placed
        .iter()
        .map(|(id, path)| format!("the commands expect the content of {path} at {id:?}"))
        .collect();
    let modules = file.jobs.iter().map(|&job| file.module(job)).filter(|id| !placed.contains_key(*id));
    for module in modules {
        if let Some(member) = identifier::members(module).first()
            && !Utf8Path::new(module).exists()
        {
            let identifier::ArchiveMember { archive, member, offset } = member;
            notes.push(format!("the commands expect {member} of {archive} (offset {offset}) at {module:?}"));
        }
    }
    notes.extend(
        file.garbled()
            .filter(|path| !path.exists())
            .map(|path| format!("{path:?} does not exist: its name was not UTF-8, and lld garbled it")),
    );
    notes
}

/// Returns one line for each option that lld would leave out.
pub fn check_line(command: &[Word], runner: &dyn Runner) -> Result<String, JobsError> {
    let Resolved::Link(link) = link_command::resolve(&GivenCommand::new(command), runner)? else {
        return Err(JobsError::NotALink);
    };
    let found = dropped::of_link_line(link.line.arguments());
    let direct = program(&lossy(&command[0]), command.get(1).map(Vec::as_slice)) == ProgramKind::Lld;
    let mut text = String::new();
    for dropped in &found {
        let line = if direct { dropped.to_string() } else { dropped.for_driver().to_string() };
        text.push_str(&line);
        text.push('\n');
    }
    if found.is_empty() {
        text.push_str("lld passes every option of this link line on to the compiler\n");
    }
    Ok(text)
}
