//! Asks a linker with DTLTO for the flags of its backends, by a link of a module without code.
//!
//! An answer is remembered for the linker's files and the options of the line, in this process and in the user's cache
//! folder. So a linker is asked once, also if it has no DTLTO. [`distlto_planner::backend_flags::linker_flags`]
//! describes the purpose of the answer.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::{fs, io};

use distlto_executor::program_files;
use distlto_executor::variables::{self, Reader};
use distlto_planner::backend_flags::linker_flags::{LinkerFlags, question};
use distlto_planner::dtlto;
use distlto_planner::empty_module::empty_module;
use distlto_planner::keep::fingerprint;
use distlto_planner::link_line::Argument;
use distlto_planner::runner::Runner;
use distlto_planner::search_path::program_file;
use distlto_planner::words::{Word, lossy, word_of};
use distlto_prepare::frame::Framed;
use distlto_prepare::json_lines::{JsonLines, line};
use distlto_prepare::mutex::lock;
use serde::{Deserialize, Serialize};

use crate::store::own_cache;

/// The file in the cache folder, and its first line.
const REMEMBERED: &str = "linker-flags-v1";
const HEADER: &str = "distlto linker flags 1\n";
/// So many lines of it at most; then the older half is left out.
const MANY: usize = 200;
/// An option that a linker without DTLTO does not know.
const DISTRIBUTOR: &str = "--thinlto-distributor";
/// A distributor for a shell: keeps the job file.
const KEEP: [&str; 2] = ["-c", r#"cat "$1" >"$0""#];

/// Returns the flags that this linker passes to its backends on a line with these arguments; `None` if it does not say.
/// `linker` has the words before the line's own. `runner` runs it in the directory of the line's relative paths.
pub fn ask(linker: &[Word], arguments: &[Argument], runner: &dyn Runner) -> Option<LinkerFlags> {
    static ANSWERS: OnceLock<Mutex<Answers>> = OnceLock::new();
    let place = || own_cache().map(|cache| cache.join(REMEMBERED));
    let answers = ANSWERS.get_or_init(|| Mutex::new(Answers::load(place())));
    remembered(answers, linker, arguments, runner)
}

fn remembered(
    answers: &Mutex<Answers>,
    linker: &[Word],
    arguments: &[Argument],
    runner: &dyn Runner,
) -> Option<LinkerFlags> {
    let program = program_file(Path::new(&lossy(linker.first()?)))?.canonicalize().ok()?;
    let question = question(arguments);
    let key = key(linker, &program, &question);
    if let Some(known) = lock(answers).find(&key) {
        return known;
    }
    // Links that ask at once ask twice.
    let flags = asked(linker, &question, runner).ok()?;
    let files = [program.clone()].into_iter().chain(program_files::libraries(&program).unwrap_or_default());
    let files = files.map(|file| (file.clone(), fingerprint(&file))).collect();
    lock(answers).add(CachedFlags { key, files, flags: flags.clone() });
    flags
}

/// Returns the key of a question to a linker: its words, its program, and the loader's variables.
fn key(linker: &[Word], program: &Path, question: &[Word]) -> String {
    let mut framed = Framed::new("distlto question 1");
    framed.add("program", program.as_os_str().as_encoded_bytes());
    linker.iter().skip(1).for_each(|word| framed.add("linker", word));
    question.iter().for_each(|word| framed.add("question", word));
    for (name, value) in variables::read_by(&[Reader::Loader]) {
        framed.add(name, format!("{value:?}"));
    }
    framed.finish().hex()
}

/// Has the linker link a module without code, and reads its job file. `None` from a linker without DTLTO.
fn asked(linker: &[Word], question: &[Word], runner: &dyn Runner) -> io::Result<Option<LinkerFlags>> {
    let folder = tempfile::tempdir()?;
    let place = |name: &str| folder.path().join(name);
    let (module, job_file) = (place("empty.o"), place("job.json"));
    fs::write(&module, empty_module())?;
    let with = |option: &str, value: &[u8]| [option.as_bytes(), b"=", value].concat();
    let path = |path: &Path| word_of(path.as_os_str().to_owned());
    let mut command = [linker, question].concat();
    command.push(path(&module));
    command.extend([b"-o".to_vec(), path(&place("out"))]);
    command.push(with(DISTRIBUTOR, b"/bin/sh"));
    let distributor = KEEP.map(|word| word.as_bytes().to_vec()).into_iter().chain([path(&job_file)]);
    command.extend(distributor.map(|word| with("--thinlto-distributor-arg", &word)));
    command.push(with("--thinlto-remote-compiler", b"cc"));
    // There is no object of the module, so that it fails in any case.
    let said = runner.run(&command)?.stderr;
    if String::from_utf8_lossy(&said).contains(&format!("unknown argument '{DISTRIBUTOR}=")) {
        return Ok(None);
    }
    let bytes = fs::read(&job_file)?;
    let job_file = dtlto::read(&bytes, &job_file.to_string_lossy()).map_err(io::Error::other)?;
    Ok(Some(LinkerFlags::of(&job_file)))
}

/// An answer, with the conditions under which it is valid.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct CachedFlags {
    key: String,
    /// The linker's program and libraries, each with a fingerprint of its content.
    files: Vec<(PathBuf, String)>,
    /// `None` where it has no DTLTO.
    flags: Option<LinkerFlags>,
}

impl CachedFlags {
    fn holds(&self) -> bool {
        self.files.iter().all(|(file, known)| fingerprint(file) == *known)
    }
}

/// All known answers.
#[derive(Debug)]
struct Answers {
    file: Option<JsonLines>,
    known: HashMap<String, CachedFlags>,
}

impl Answers {
    fn load(place: Option<PathBuf>) -> Self {
        let mut file = place.map(|place| JsonLines::new(&place, HEADER));
        let mut records = file.as_ref().map(JsonLines::read::<CachedFlags>).unwrap_or_default();
        if let Some(file) = file.as_mut().filter(|_| records.len() > MANY) {
            records.drain(..records.len() - MANY / 2);
            // If it cannot be rewritten, it is only long.
            let _ = file.replace(&records.iter().map(line).collect::<Vec<_>>());
        }
        let known = records.into_iter().map(|answer| (answer.key.clone(), answer)).collect();
        Self { file, known }
    }

    fn find(&self, key: &str) -> Option<Option<LinkerFlags>> {
        self.known.get(key).filter(|answer| answer.holds()).map(|answer| answer.flags.clone())
    }

    fn add(&mut self, answer: CachedFlags) {
        if let Some(file) = &mut self.file {
            // An answer that cannot be stored is asked for again.
            let _ = file.append(&answer);
        }
        self.known.insert(answer.key.clone(), answer);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, ExitStatus};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use distlto_planner::link_line::parse;
    use distlto_planner::runner::ToolOutput;
    use distlto_planner::words::path_of;

    use super::*;

    /// Runs programs, and counts how many.
    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Runner for Counted {
        fn run(&self, command: &[Word]) -> io::Result<ToolOutput> {
            self.0.fetch_add(1, Ordering::Relaxed);
            let mut program = Command::new(path_of(&command[0]));
            let output = program.args(command[1..].iter().map(|word| path_of(word))).output()?;
            Ok(ToolOutput { status: output.status, stdout: output.stdout, stderr: output.stderr })
        }
    }

    /// A linker that fails.
    struct Broken;

    impl Runner for Broken {
        fn run(&self, _: &[Word]) -> io::Result<ToolOutput> {
            Ok(ToolOutput { status: ExitStatus::from_raw(256), stdout: Vec::new(), stderr: Vec::new() })
        }
    }

    fn arguments(line: &str) -> Vec<Argument> {
        parse(line.split_whitespace().map(|word| word.as_bytes().to_vec())).expect("a link line")
    }

    fn say(flags: Option<LinkerFlags>) -> String {
        flags.expect("an answer").args.join(" ")
    }

    #[test]
    fn a_linker_is_asked_once_for_each_set_of_options() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = Some(folder.path().join("linkers"));
        let linker = folder.path().join("linker");
        // The last word but one of its distributor names the file, `job`.
        let script = |flag: &str| {
            let text = format!(
                "#!/bin/sh\nfor word; do case \"$word\" in --thinlto-distributor-arg=/*) job=${{word#*=}};; esac; done\n\
                 cat >\"$job\" <<'END'\n{{\"common\": {{\"linker_output\": \"p\", \"args\": [\"cc\", \"-c\", \"--target=t\", \"{flag}\"], \
                 \"inputs\": []}}, \"jobs\": []}}\nEND\nexit 1\n"
            );
            let partial = linker.with_extension("partial");
            fs::write(&partial, text).expect("written");
            fs::set_permissions(&partial, fs::Permissions::from_mode(0o755)).expect("executable");
            fs::rename(partial, &linker).expect("in place");
        };
        script("-fone");
        let runner = Counted::default();
        let words = [word_of(linker.clone().into_os_string())];
        let ask = |answers: &Mutex<Answers>, line: &str| {
            say(remembered(answers, &words, &arguments(line), &runner))
        };
        let count = || runner.0.load(Ordering::Relaxed);
        let answers = Mutex::new(Answers::load(place.clone()));
        assert_eq!((ask(&answers, "-pie a.o -o p"), count()), ("-fone".to_owned(), 1));
        assert_eq!((ask(&answers, "-pie b.o -o q"), count()), ("-fone".to_owned(), 1), "other files");
        assert_eq!((ask(&answers, "a.o -o p"), count()), ("-fone".to_owned(), 2), "another option");
        let answers = Mutex::new(Answers::load(place.clone()));
        assert_eq!((ask(&answers, "a.o"), count()), ("-fone".to_owned(), 2), "another process");
        script("-ftwo");
        assert_eq!((ask(&answers, "a.o"), count()), ("-ftwo".to_owned(), 3), "another linker of the name");
        let answers = Mutex::new(Answers::load(place));
        assert_eq!((ask(&answers, "a.o"), count()), ("-ftwo".to_owned(), 3), "the last answer counts");
        assert_eq!(remembered(&answers, &words, &arguments("-r a.o"), &Broken), None);
        assert_eq!((ask(&answers, "-r a.o"), count()), ("-ftwo".to_owned(), 4), "a failure is no answer");
    }
}
