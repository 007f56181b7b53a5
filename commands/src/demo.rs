//! `distlto demo`: links a small generated program cold, again, after an edit, and with a broken compiler.
//!
//! Runs the commands that a user would type, by a shell, and shows what they print. Every number is of this run. Does not
//! depend on how a link works.

mod project;
mod shown;

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use distlto_executor::cancel::Cancel;
use distlto_executor::execute::spawn::PLAIN;
use distlto_planner::runner::{Runner, ToolOutput};
use distlto_planner::search_path::{program_file, versions_of};
use distlto_planner::words::{Word, lossy, shell_quote, word_of};
use distlto_prepare::exit;
use distlto_prepare::io_error::IoError;
use distlto_prepare::message::show;
use distlto_prepare::text::printable_lines;
use distlto_prepare::write::to_standard_output;
use miette::Diagnostic;
use tempfile::TempDir;
use thiserror::Error;

use crate::scratch::scratch;
use crate::serve::linkers::can_ask;
use crate::tool::ToolRunner;

/// Variables of distlto that stay: where its library is, and whether links wait for each other.
const KEPT: [&str; 2] = ["DISTLTO_HOOK", "DISTLTO_LEDGER"];

/// The program that is linked.
const PROGRAM: &str = "parts";

/// How a link's lines begin that count backends.
const COUNTS: &[&str] = &["distlto: parts: "];

/// Show distlto at work on a small program that it writes, in half a minute
///
/// Compiles 13 modules of C++ and links them cold, again, after an edit, and with a compiler that writes empty objects. Prints
/// each command with its result and its time, and writes a page. Needs clang and lld of one version, 15 or later, and neither
/// network nor root. Settings, caches and statistics of the user are not used.
#[derive(Debug, Args)]
#[command(after_help = exit::help())]
pub struct DemoArgs {
    /// Make the project in this directory, absent or empty [default: one below TMPDIR, which stays too]
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

/// Why the demonstration ended early.
#[derive(Debug, Error, Diagnostic)]
pub enum DemoError {
    /// There is no pair of compiler and linker.
    #[error("PATH has no clang++ with the ld.lld of its version, 15 or later")]
    #[diagnostic(
        code(distlto::tool),
        help(
            "install both, on Debian or Ubuntu with: sudo apt-get install clang-19 lld-19 (or another version from 15 on)"
        )
    )]
    NoTools,
    /// The folder has files that could be lost.
    #[error("{} is not empty", .0.display())]
    #[diagnostic(code(distlto::usage), help("name a directory for --keep that is absent or empty"))]
    NotEmpty(PathBuf),
    /// A command did something else than was expected.
    #[error("this was to {expected}: {line}")]
    #[diagnostic(code(distlto::failed), help("the project is in {}; `distlto doctor` checks this machine", .folder.display()))]
    Unexpected {
        /// The command.
        line: String,
        /// The expectation.
        expected: &'static str,
        /// The project.
        folder: PathBuf,
    },
    /// The demonstration was cancelled.
    #[error("interrupted")]
    #[diagnostic(code(distlto::interrupted))]
    Interrupted,
    /// A file cannot be read or written.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
}

/// The compiler, without a version.
const DRIVER: &str = "clang++";

/// One command: its purpose, itself, and the beginnings of the lines that matter. Without these all lines do.
struct Step {
    why: &'static str,
    line: String,
    shows: &'static [&'static str],
}

/// A project, and how commands run in it.
struct Demo<'a> {
    folder: &'a Path,
    /// The words before each command: its environment.
    environment: Vec<Word>,
    cancel: &'a Cancel,
}

/// Shows everything.
pub fn run(args: &DemoArgs, cancel: &Cancel) -> Result<u8, DemoError> {
    let compiler = compiler()?;
    let temporary = args.keep.is_none().then(|| scratch("demo")).transpose()?;
    let folder = match (&args.keep, &temporary) {
        (Some(folder), _) => empty(folder)?,
        (None, temporary) => temporary.as_ref().map(|made| made.path().to_owned()).unwrap_or_default(),
    };
    project::write(&folder)?;
    let demo = Demo { folder: &folder, environment: environment(&folder)?, cancel };
    let result = demo.show(&compiler);
    if matches!(result, Ok(()) | Err(DemoError::Unexpected { .. })) {
        // It holds the page, or shows what was unexpected.
        let _ = temporary.map(TempDir::keep);
    }
    match result {
        Err(DemoError::Interrupted) => Ok(cancel.exit_code()),
        result => result.map(|()| 0),
    }
}

/// The directory that the user named.
fn empty(folder: &Path) -> Result<PathBuf, DemoError> {
    std::fs::create_dir_all(folder).map_err(IoError::on("create directory", folder))?;
    let mut entries = folder.read_dir().map_err(IoError::on("read", folder))?;
    match entries.next() {
        Some(_) => Err(DemoError::NotEmpty(folder.to_owned())),
        None => Ok(folder.canonicalize().map_err(IoError::on("find", folder))?),
    }
}

/// The clang++ of PATH, else the newest `clang++-N`, that has a linker of its version which can ask.
fn compiler() -> Result<String, DemoError> {
    let suffixes =
        [String::new()].into_iter().chain(versions_of("ld.lld").map(|version| format!("-{version}")));
    for suffix in suffixes {
        let compiler = format!("{DRIVER}{suffix}");
        let linker = program_file(Path::new(&format!("ld.lld{suffix}")));
        if let Some(linker) = linker.filter(|_| program_file(Path::new(&compiler)).is_some())
            && can_ask(&linker).map_err(IoError::on("read", &linker))?
        {
            return Ok(compiler);
        }
    }
    Err(DemoError::NoTools)
}

/// A store of its own, so that the first link is cold, and this very distlto; without the user's settings.
fn environment(folder: &Path) -> Result<Vec<Word>, IoError> {
    let program = env::current_exe().map_err(IoError::on("find", "this program"))?;
    let inherited = env::var_os("PATH").unwrap_or_default();
    let places = program.parent().map(Path::to_owned).into_iter().chain(env::split_paths(&inherited));
    let path = env::join_paths(places)
        .map_err(|error| IoError::on("use", &program)(io::Error::new(io::ErrorKind::InvalidInput, error)))?;
    let mut words: Vec<OsString> = vec!["env".into()];
    let is_ours = |name: &OsStr| {
        name.to_str().is_some_and(|name| name.starts_with("DISTLTO_") && !KEPT.contains(&name))
    };
    for (name, _) in env::vars_os().filter(|(name, _)| is_ours(name)) {
        words.extend(["-u".into(), name]);
    }
    for (name, value) in [
        ("PATH", path.as_os_str()),
        ("XDG_CACHE_HOME", folder.join("cache").as_os_str()),
        ("XDG_CONFIG_HOME", folder.join("config").as_os_str()),
    ] {
        let mut word = OsString::from(name);
        word.push("=");
        word.push(value);
        words.push(word);
    }
    Ok(words.into_iter().chain(["sh".into(), "-c".into()]).map(word_of).collect())
}

impl Demo<'_> {
    fn show(&self, compiler: &str) -> Result<(), DemoError> {
        let compile = format!("{compiler} -O2 -flto=thin -c");
        // The lld without a version may be another one.
        let version = compiler.strip_prefix(DRIVER).unwrap_or_default();
        let link = format!("{compiler} -O2 -flto=thin -fuse-ld=lld{version} *.o -o");
        let served = format!("distlto link -v -- {link} {PROGRAM}");
        print(&format!("{}: 13 modules of C++, by {compiler}\n", self.folder.display()))?;
        self.well("Compile to bitcode", format!("{compile} *.cpp"), &[])?;
        self.well("A cold link: every backend runs", served.clone(), COUNTS)?;
        self.compare(&link)?;
        let first = self.runs("The program")?;
        self.well("Link again: nothing to do", served.clone(), COUNTS)?;
        let (file, old, new) = project::EDITED;
        let edit = format!("sed -i 's/{old}/{new}/' {file} && \\\n    {compile} {file}");
        self.well("Edit a function, and compile its file", edit, &[])?;
        self.well("Link: the backends of that file and of its importers run", served, COUNTS)?;
        self.well("A page on that link", format!("distlto report {PROGRAM}"), &[])?;
        let edited = self.runs("The program has changed")?;
        let broken = format!("distlto link -j1 --compiler ./badclang -- \\\n    {link} {PROGRAM}");
        self.ill("A compiler that exits with 0 and writes empty objects is refused", broken)?;
        let kept = self.runs("The earlier program is still there")?;
        if first == edited || edited != kept {
            let expected = "change after the edit, and then no more";
            return Err(self.unexpected(&format!("./{PROGRAM}"), expected, first + &edited + &kept));
        }
        let folder = self.folder.display().to_string();
        let remove = shell_quote(&folder);
        print(&format!("\nThe page is {folder}/report.html\nTo remove all of it: rm -r {remove}\n"))
    }

    /// Links by lld alone, and compares the programs.
    fn compare(&self, link: &str) -> Result<(), DemoError> {
        let line = format!("{link} alone && cksum alone {PROGRAM}");
        let said = self.well("lld alone makes the same bytes", line.clone(), &[])?;
        let mut sums = said.lines().map(|line| line.split(' ').take(2).collect::<Vec<_>>());
        match sums.next() == sums.next() {
            true => Ok(()),
            false => Err(self.unexpected(&line, "print the same sum twice", said)),
        }
    }

    /// Runs the program. Returns its output.
    fn runs(&self, why: &'static str) -> Result<String, DemoError> {
        self.well(why, format!("./{PROGRAM}"), &[])
    }

    /// A command that succeeds. Returns its standard output.
    fn well(
        &self,
        why: &'static str,
        line: String,
        shows: &'static [&'static str],
    ) -> Result<String, DemoError> {
        let output = self.step(&Step { why, line: line.clone(), shows })?;
        match output.status.success() {
            true => Ok(lossy(&output.stdout)),
            false => Err(self.unexpected(&line, "succeed", lossy(&output.stderr))),
        }
    }

    /// A link that fails.
    fn ill(&self, why: &'static str, line: String) -> Result<(), DemoError> {
        let output = self.step(&Step { why, line: line.clone(), shows: &["error: ", "  help: "] })?;
        match output.status.success() {
            true => Err(self.unexpected(&line, "fail", lossy(&output.stderr))),
            false => Ok(()),
        }
    }

    /// The error of a command that has printed this.
    fn unexpected(&self, line: &str, expected: &'static str, said: String) -> DemoError {
        show(said.as_bytes());
        DemoError::Unexpected { line: line.to_owned(), expected, folder: self.folder.to_owned() }
    }

    /// Runs a command, and shows it with its output, exit code and time.
    fn step(&self, step: &Step) -> Result<ToolOutput, DemoError> {
        print(&format!("\n# {}\n$ {}\n", step.why, step.line))?;
        let runner = ToolRunner { spawner: &PLAIN, cancel: self.cancel, directory: Some(self.folder) };
        let command = [&self.environment[..], &[step.line.clone().into_bytes()]].concat();
        let start = Instant::now();
        let output = runner.run(&command).map_err(IoError::on("run", "sh"))?;
        let seconds = start.elapsed().as_secs_f64();
        if self.cancel.is_cancelled() {
            return Err(DemoError::Interrupted);
        }
        let said = lossy(&output.stdout) + &lossy(&output.stderr);
        let said = said.replace(&format!("{}/", self.folder.display()), "");
        let end = match output.status.code() {
            Some(0) => format!("{seconds:.2} s"),
            Some(code) => format!("exit code {code}, {seconds:.2} s"),
            None => format!("{}, {seconds:.2} s", output.status),
        };
        print(&format!("{}({end})\n", shown::excerpt(&said, step.shows)))?;
        Ok(output)
    }
}

fn print(text: &str) -> Result<(), DemoError> {
    Ok(to_standard_output(printable_lines(text).as_bytes())?)
}
