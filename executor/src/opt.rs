//! `distlto-opt`: one backend compilation from the command line, for build systems that schedule by themselves.
//!
//! Reads its inputs' facts, makes the command (see `command`) and runs it as every path does (see `job`).

use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use distlto_planner::backend_flags::{self, BackendFlags, FlagError};
use distlto_planner::front::{self, FrontError, Resolved};
use distlto_planner::link_line::{self, LinkLineError};
use distlto_planner::words::Word;
use distlto_planner::{module, response};
use distlto_prepare::kind::Native;
use distlto_prepare::write::IoError;
use miette::Diagnostic;
use thiserror::Error;

use crate::cancel::{Cancel, cancel_on_signals};
use crate::capture::whole_lines;
use crate::command;
use crate::job::{self, Cause, Context, Job};
use crate::local::LocalSpawner;
use crate::process::GRACE;
use crate::tool::ToolRunner;
use crate::verify::{Backend, Modules, Refused, Role};

/// Compile one ThinLTO module with its imports to a native object
///
/// The object is put into its place only when the compiler succeeded and wrote a whole object of the module's
/// machine; otherwise an earlier one stays.
#[derive(Debug, Clone, Args)]
#[command(after_help = distlto_prepare::exit::help())]
pub struct OptArgs {
    /// Write the native object here
    #[arg(long, value_name = "OBJECT")]
    pub out: Utf8PathBuf,
    /// Compile this bitcode module
    ///
    /// The path is the module's id: spell it exactly as in the thin link. Clang compiles a module under another
    /// spelling to an object without its functions; this program refuses it.
    #[arg(long, value_name = "MODULE")]
    pub input: Utf8PathBuf,
    /// Take imports and linkage from this index shard; /dev/null imports nothing
    #[arg(long, value_name = "SHARD")]
    pub index: Utf8PathBuf,
    /// Check that each file of this list of imports is there
    #[arg(long, value_name = "FILE")]
    pub imports: Option<Utf8PathBuf>,
    /// Write split debug information here; the name ends in .dwo
    #[arg(long, value_name = "FILE")]
    pub dwo: Option<Utf8PathBuf>,
    /// Read the link's flags from this response file, and compile as lld's LTO would
    ///
    /// If the first word is an option, the words are flags of the compiler driver, which is asked what they make the
    /// linker do. Otherwise they are a whole link command, of a driver or of ld.lld. An option that would change
    /// code and has no spelling for a backend is an error.
    #[arg(long, value_name = "FILE")]
    pub args: Option<Utf8PathBuf>,
    /// Compile for this target [default: that of the module]
    #[arg(long, value_name = "TRIPLE")]
    pub target: Option<String>,
    /// Print the command
    #[arg(long, short)]
    pub verbose: bool,
    /// The compiler and arguments for it
    #[arg(last = true, required = true, value_name = "COMPILER")]
    pub compiler: Vec<String>,
}

/// Why there is no object.
#[derive(Debug, Error, Diagnostic)]
pub enum Error {
    /// The compilation was not run, failed, or was refused.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Failed(#[from] Cause),
    /// A file.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
    /// The link's flags could not be resolved by the driver.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Front(#[from] FrontError),
    /// The link line cannot be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    LinkLine(#[from] LinkLineError),
    /// A link option has no equivalent.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Flags(#[from] FlagError),
    /// The flags in the file do not make a link with ld.lld.
    #[error("{path}: these flags do not make a link with ld.lld by {program}")]
    #[diagnostic(
        code(distlto::usage),
        help("try `{program} -### -fuse-ld=lld -flto=thin @{path} MODULE` to see what the driver says")
    )]
    NotALink {
        /// The file of flags.
        path: Utf8PathBuf,
        /// The driver that was asked.
        program: String,
    },
    /// Split debug information that nobody asked to put anywhere.
    #[error("the link's flags split debug information (--plugin-opt=dwo_dir), but --dwo is not given")]
    #[diagnostic(code(distlto::usage), help("say with --dwo FILE.dwo where it goes"))]
    NoDwo,
    /// A name that compilers do not give split debug information.
    #[error("--dwo {path}: the name does not end in .dwo")]
    #[diagnostic(
        code(distlto::usage),
        help("name the file as the compiler would: the object's name with .dwo")
    )]
    DwoName {
        /// The name.
        path: Utf8PathBuf,
    },
    /// Signals cannot be caught.
    #[error("cannot prepare for signals: {0}")]
    #[diagnostic(code(distlto::io), help("check the limit of open files (ulimit -n)"))]
    Signals(io::Error),
}

/// Runs the compilation and prints what the compiler said. Returns the exit code: 0, or the compiler's own.
pub fn run(args: &OptArgs) -> Result<u8, Error> {
    let cancel = cancel_on_signals().map_err(Error::Signals)?;
    run_until(args, &cancel)
}

/// [`run`] with a token of the caller's.
pub fn run_until(args: &OptArgs, cancel: &Cancel) -> Result<u8, Error> {
    if let Some(path) = args.dwo.as_ref().filter(|path| path.extension() != Some("dwo")) {
        return Err(Error::DwoName { path: path.clone() });
    }
    let triple = match &args.target {
        Some(triple) => triple.clone(),
        None => triple_of(&args.input)?,
    };
    let flags = match &args.args {
        Some(path) => match link_flags(path, args, &triple, cancel) {
            // A driver that was ended with us has no link line; that is no fault of the flags.
            Err(_) if cancel.is_cancelled() => return Ok(cancel.exit_code()),
            flags => flags?,
        },
        None => BackendFlags::default(),
    };
    if flags.dwo_directory.is_some() && args.dwo.is_none() {
        return Err(Error::NoDwo);
    }
    let words = command::words(command::Backend {
        compiler: &args.compiler,
        triple: &triple,
        flags: &flags.args,
        module: &args.input,
        shard: &args.index,
        output: &args.out,
    });
    let imports = args.imports.as_deref().map_or_else(|| Ok(Vec::new()), imports_in)?;
    let others: Vec<_> =
        imports.iter().map(String::as_str).chain(flags.inputs.iter().map(|f| f.as_str())).collect();
    let outputs = [(Some(&args.out), Role::Object), (args.dwo.as_ref(), Role::Dwo)];
    let job = Job {
        label: args.input.as_str(),
        words: words.iter().map(String::as_str).collect(),
        backend: Some(Backend { module: args.input.as_str(), shard: args.index.as_str(), others: &others }),
        outputs: outputs.into_iter().filter_map(|(path, role)| Some((path?.as_path(), role))).collect(),
    };
    if args.verbose {
        eprintln!("+ {}", job.command_line(None));
        flags
            .not_done
            .iter()
            .for_each(|option| eprintln!("note: {option} is not done by a distributed link"));
    }
    let context = Context {
        spawner: &LocalSpawner,
        cancel,
        modules: &Modules::new(None),
        directory: None,
        expected: expected(args, &triple),
        grace: GRACE,
        frontends: None,
        places: None,
    };
    let attempt = job::run(&job, &context);
    if let Some(finished) = &attempt.finished {
        print!("{}", finished.stdout.text());
        eprint!("{}", whole_lines(&finished.stderr.text()));
    }
    match attempt.result {
        Ok(()) => Ok(0),
        Err(Cause::Interrupted { .. }) => Ok(cancel.exit_code()),
        Err(cause) => {
            let Some(code) = cause.exit_code() else { return Err(cause.into()) };
            distlto_prepare::exit::print(&cause);
            eprintln!("  repeat: {}", job.command_line(None));
            Ok(code)
        }
    }
}

/// What the object has to be. When the compiler's own arguments name a target, they decide.
fn expected(args: &OptArgs, triple: &str) -> Option<Native> {
    let given = args.compiler.get(1..).unwrap_or_default();
    let after = given.iter().position(|word| word == "-target" || word == "--target").map(|at| at + 1);
    let named = given.iter().rev().find_map(|word| word.strip_prefix("--target="));
    Native::of_triple(named.or(after.and_then(|at| given.get(at)).map(String::as_str)).unwrap_or(triple))
}

/// The module's own target; empty when it is not bitcode, which `verify` reports in full.
fn triple_of(module: &Utf8Path) -> Result<String, IoError> {
    let bytes = fs::read(module).map_err(IoError::on("read the module", module))?;
    Ok(module::read(&bytes).map(|module| module.triple).unwrap_or_default())
}

/// An import list: one module a line, as the thin link writes it.
fn imports_in(path: &Utf8Path) -> Result<Vec<String>, Error> {
    let text = fs::read_to_string(path).map_err(IoError::on("read the import list", path))?;
    Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// The backend flags for link flags in a file.
///
/// When the first word is an option, they are flags of the compiler driver, which alone knows what they make
/// the linker do: the driver is asked. Otherwise the words are a whole command, of a driver or of ld.lld.
fn link_flags(path: &Utf8Path, args: &OptArgs, triple: &str, cancel: &Cancel) -> Result<BackendFlags, Error> {
    let text = fs::read(path).map_err(IoError::on("read the link flags", path))?;
    let words = response::tokenize(&text);
    let driver = args.compiler.first().map_or_else(String::new, Clone::clone);
    let command = match words.first() {
        Some(first) if !first.starts_with(b"-") && !first.starts_with(b"@") => words,
        _ => driver_command(words, &driver, args, triple),
    };
    let runner = ToolRunner { spawner: &LocalSpawner, cancel, directory: None };
    let Resolved::Link(link) = front::resolve(&command, &runner)? else {
        return Err(Error::NotALink { path: path.to_owned(), program: driver });
    };
    let arguments = link_line::parse(link.words)?;
    let architecture = triple.split('-').next().unwrap_or_default();
    Ok(backend_flags::of_link_line(&arguments, architecture, &[])?)
}

/// A link of just this module with these flags, by lld and with ThinLTO unless they say so themselves.
fn driver_command(words: Vec<Word>, driver: &str, args: &OptArgs, triple: &str) -> Vec<Word> {
    let says = |start: &[u8]| words.iter().any(|word| word.starts_with(start));
    let mut command = vec![driver.as_bytes().to_vec()];
    if !triple.is_empty() && !says(b"--target") && !says(b"-target") {
        command.push(format!("--target={triple}").into_bytes());
    }
    for (option, said) in
        [("-fuse-ld=lld", says(b"-fuse-ld=") || says(b"--ld-path=")), ("-flto=thin", says(b"-flto"))]
    {
        if !said {
            command.push(option.as_bytes().to_vec());
        }
    }
    command.extend(words);
    command.push(args.input.as_str().as_bytes().to_vec());
    command
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        Cause::from(refused).into()
    }
}
