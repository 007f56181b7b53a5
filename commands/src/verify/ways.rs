//! The ways of making one link, each into a directory of its own: lld in process and distlto.
//!
//! Both have the linker's own line, without options that write elsewhere. All write the program to the same place, as its
//! name may stand in it. The directories' names are equally long and unmistakable, so that they can be found in the results.

mod results;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use distlto_planner::compile_jobs;
use distlto_planner::link_command::{LinkCommand, compiler_of};
use distlto_planner::link_line::{Argument, last_value, options};
use distlto_planner::linker::options::last;
use distlto_planner::response;
use distlto_planner::runner::{Runner, ToolError};
use distlto_planner::words::{Word, lossy};
use distlto_prepare::input::Input;
use distlto_prepare::io_error::IoError;
use distlto_prepare::write::write_atomically;
use miette::Report;

use super::args::VerifyArgs;
use crate::link::error::LinkError;
use crate::link::line::{own_program, without_further_outputs};
use crate::tool::{ToolRunner, exit_code};

/// The directory of each way.
const IN_PROCESS: &str = "in-process";
const DISTLTO: &str = "by-distlto";
const OBJECTS: &str = "lld-object";
/// Where sources of the command are compiled.
const SOURCES: &str = "sources";
/// Where every way writes the program, before it goes to the way's own directory.
const LINKED: &str = "linked";
const PLACES: [&str; 3] = [IN_PROCESS, DISTLTO, OBJECTS];
/// One name fits into the place of another.
const _: () = assert!(IN_PROCESS.len() == DISTLTO.len() && DISTLTO.len() == OBJECTS.len());

/// One link, ready to be made in every way.
pub struct Ways<'a> {
    args: &'a VerifyArgs,
    link: &'a LinkCommand,
    arguments: Vec<Argument>,
    /// The line without outputs.
    words: Vec<Word>,
    scratch: PathBuf,
    runner: &'a ToolRunner<'a>,
    /// The program, as the command names it.
    pub output: String,
}

/// A link that was made.
pub struct MadeLink {
    /// The exit code.
    pub code: u8,
    /// Its output on standard error.
    pub said: String,
    /// How long it took.
    pub wall: Duration,
    directory: PathBuf,
    program: PathBuf,
}

impl MadeLink {
    /// The program, if there is one.
    pub fn program(&self) -> Result<Option<Input>, Report> {
        if !self.program.is_file() { Ok(None) } else { Ok(Some(Input::open(&self.program)?)) }
    }

    /// A file beside it.
    fn beside(&self, name: &str) -> Result<Option<Input>, Report> {
        let path = self.directory.join(name);
        if path.is_file() { Ok(Some(Input::open(&path)?)) } else { Ok(None) }
    }
}

impl<'a> Ways<'a> {
    /// Compiles the sources that the command names, and examines the linker.
    pub fn new(
        args: &'a VerifyArgs,
        link: &'a LinkCommand,
        scratch: &Path,
        runner: &'a ToolRunner<'a>,
    ) -> Result<Self, Report> {
        let scratch = scratch.canonicalize().map_err(IoError::on("find", scratch))?;
        let sources = scratch.join(SOURCES);
        let line = compile_jobs::run(link, &sources.to_string_lossy(), runner);
        let line = line.map_err(LinkError::from)?;
        Ok(Self {
            args,
            link,
            words: without_further_outputs(line.arguments(), line.words()),
            arguments: line.arguments().to_vec(),
            scratch,
            runner,
            output: line.output().to_owned(),
        })
    }

    /// As lld does it alone.
    pub fn in_process(&self) -> Result<MadeLink, Report> {
        self.lld(IN_PROCESS, &self.without_distributor())
    }

    /// The same, and lld writes the objects beside: with one more of its own, which is why this is another link.
    pub fn objects(&self) -> Result<MadeLink, Report> {
        let mut words = self.without_distributor();
        words.push([b"--lto-obj-path=", self.place(OBJECTS).join("object").as_os_str().as_bytes()].concat());
        self.lld(OBJECTS, &words)
    }

    /// By distlto, with the names of locals that the line alone gives.
    pub fn distlto(&self) -> Result<MadeLink, Report> {
        let place = self.made_place(DISTLTO)?;
        let mut words: Vec<Word> = vec![own_program()?.into_os_string().into_encoded_bytes()];
        words.extend(["link", "--quiet", "--exact-names", "--state"].map(|word| word.as_bytes().to_vec()));
        words.push(self.place(DISTLTO).join("state").into_os_string().into_encoded_bytes());
        words.push(argument("--cache=", &self.store()));
        words.push(format!("--compiler={}", self.compiler()?).into_bytes());
        let extra = self.args.backend_args.iter();
        words.extend(extra.map(|argument| format!("--backend-arg={argument}").into_bytes()));
        words.push(b"--".to_vec());
        words.extend(self.link.linker.iter().cloned());
        let mut line = self.words.clone();
        line.extend(self.last_words(DISTLTO));
        // A response file cannot hold an empty word.
        let outside = line.iter().rposition(Vec::is_empty).map_or(0, |last| last + 1);
        let inside = line.split_off(outside);
        let response = self.place(DISTLTO).join("line.rsp");
        write_atomically(&response, &response::content(inside.iter().map(Vec::as_slice)))?;
        words.extend(line);
        words.push([b"@", response.as_os_str().as_bytes()].concat());
        self.run(DISTLTO, &words, place)
    }

    /// The last `--build-id` of the line.
    pub fn build_id(&self) -> Option<&str> {
        last(&self.arguments, "build-id").map(|option| option.name.as_str())
    }

    /// Whether debug information has files of its own.
    pub fn splits_debug(&self) -> bool {
        options(&self.arguments).any(|option| option.name.starts_with("plugin-opt=dwo_dir="))
    }

    /// Where distlto keeps the objects.
    fn store(&self) -> PathBuf {
        self.place(DISTLTO).join("store")
    }

    /// Where sources of the command are compiled.
    fn sources(&self) -> PathBuf {
        self.scratch.join(SOURCES)
    }

    fn place(&self, way: &str) -> PathBuf {
        self.scratch.join(way)
    }

    /// The program of a link that runs, in any way: lld writes this name into version definitions without a soname.
    fn linked(&self) -> PathBuf {
        self.program(LINKED)
    }

    fn program(&self, way: &str) -> PathBuf {
        self.place(way).join(Path::new(&self.output).file_name().unwrap_or(OsStr::new("a.out")))
    }

    fn made_place(&self, way: &str) -> Result<PathBuf, Report> {
        let place = self.place(way);
        fs::create_dir_all(&place).map_err(IoError::on("create directory", &place))?;
        Ok(place)
    }

    fn compiler(&self) -> Result<String, Report> {
        let named = last_value(&self.arguments, "thinlto-remote-compiler");
        let asked = self.args.compiler.as_deref().or(named);
        Ok(compiler_of(self.link, asked).map_err(LinkError::from)?)
    }

    fn without_distributor(&self) -> Vec<Word> {
        let names = last(&self.arguments, "thinlto-distributor").is_some();
        let words = names.then(|| b"--thinlto-distributor=".to_vec());
        words.into_iter().chain(self.without_cache()).collect()
    }

    /// Switches off a cache of the user's: it would be written to, and may hold objects of another link.
    fn without_cache(&self) -> Option<Word> {
        last(&self.arguments, "thinlto-cache-dir").map(|_| b"--thinlto-cache-dir=".to_vec())
    }

    fn last_words(&self, way: &str) -> Vec<Word> {
        let split =
            self.splits_debug().then(|| argument("--plugin-opt=dwo_dir=", &self.place(way).join("dwo")));
        let output = [b"-o".to_vec(), self.linked().into_os_string().into_encoded_bytes()];
        split.into_iter().chain(output).collect()
    }

    fn lld(&self, way: &str, after: &[Word]) -> Result<MadeLink, Report> {
        let place = self.made_place(way)?;
        let mut words = self.link.linker.clone();
        words.extend([&self.words, after].concat());
        words.extend(self.last_words(way));
        self.run(way, &words, place)
    }

    fn run(&self, way: &str, words: &[Word], directory: PathBuf) -> Result<MadeLink, Report> {
        self.made_place(LINKED)?;
        let start = Instant::now();
        let ended = self
            .runner
            .run(words)
            .map_err(|source| LinkError::from(ToolError::Start { program: lossy(&words[0]), source }))?;
        let wall = start.elapsed();
        let (linked, program) = (self.linked(), self.program(way));
        if linked.is_file() {
            fs::rename(&linked, &program).map_err(IoError::on("rename", &linked))?;
        }
        Ok(MadeLink {
            code: exit_code(ended.status),
            said: String::from_utf8_lossy(&ended.stderr).into_owned(),
            wall,
            directory,
            program,
        })
    }
}

fn argument(option: &str, path: &Path) -> Word {
    [option.as_bytes(), path.as_os_str().as_bytes()].concat()
}
