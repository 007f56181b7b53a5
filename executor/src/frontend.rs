//! Backends without the driver: clang's own `-cc1` command, learned once for all compilations with the same flags.
//!
//! A driver looks for GCC installations and works out defaults before every compilation, which takes as long as a
//! small module's whole code generation. What it would run is the same each time but for three names, so it is
//! asked once with `-###`. Anything unexpected in its answer, and the driver itself is run. Knows nothing of processes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use distlto_planner::driver;
use distlto_planner::front::in_search_path;
use distlto_planner::words::{Word, path_of};

/// From this many compilations on, asking is worth its time.
pub const MANY: usize = 16;

/// The names by which one compilation differs from the next.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    /// The module.
    pub module: &'a str,
    /// Its index shard.
    pub shard: &'a str,
    /// The object.
    pub object: &'a str,
    /// What else it writes.
    pub others: &'a [&'a str],
}

/// One word of a command, with the names taken out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Part {
    /// A word that is the same for all compilations.
    Word(Word),
    /// The module.
    Module,
    /// The module's file name.
    ModuleBaseName,
    /// `-fthinlto-index=` with the shard.
    Shard,
    /// The object.
    Object,
    /// What else is written, by its place in [`Names::others`].
    Other(usize),
}

/// A command with the names taken out.
type Shape = Vec<Part>;

/// The `-cc1` command of all compilations of one shape.
#[derive(Debug)]
pub struct Template {
    /// The compiler, as its driver named it.
    pub compiler: PathBuf,
    /// The words after it.
    pub arguments: Vec<Part>,
    /// The program that the driver's command named; `None` if that leads to another file than the compiler, such as a
    /// wrapper around it, which may do more than run it.
    program: Option<Word>,
}

/// A driver's answer, if it can be used.
type Known = Option<Arc<Template>>;

/// What drivers answered so far: for each shape of a command and number of other outputs, the `-cc1` command of that shape, if there is one.
#[derive(Debug, Default)]
pub struct Frontends {
    known: Mutex<HashMap<(Shape, usize), Known>>,
}

impl Frontends {
    /// The `-cc1` command to run in place of a driver's command. See [`Self::template`].
    pub fn command(
        &self,
        words: &[Word],
        names: Names<'_>,
        ask: impl FnOnce(&[Word]) -> Option<Vec<u8>>,
    ) -> Option<Vec<Word>> {
        let template = self.template(words, names, ask)?;
        let program = template.program.clone()?;
        Some([program].into_iter().chain(template.arguments.iter().map(|part| names.put_in(part))).collect())
    }

    /// The `-cc1` command that a driver's command would run. `ask` runs the driver with `-###` and gives what it
    /// prints on standard error; it is called once for each shape of a command.
    pub fn template(
        &self,
        words: &[Word],
        names: Names<'_>,
        ask: impl FnOnce(&[Word]) -> Option<Vec<u8>>,
    ) -> Option<Arc<Template>> {
        let shape: Shape = words.iter().map(|word| names.take_out(word)).collect();
        // Held while the driver answers: other workers want the same answer.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .entry((shape, names.others.len()))
            .or_insert_with(|| {
                let mut question = words.to_vec();
                question.push(b"-###".to_vec());
                learn(&words[0], &ask(&question)?, names).map(Arc::new)
            })
            .clone()
    }
}

impl Names<'_> {
    fn take_out(&self, word: &Word) -> Part {
        match word {
            word if word == self.module.as_bytes() => Part::Module,
            word if word == self.object.as_bytes() => Part::Object,
            word if word.strip_prefix(b"-fthinlto-index=") == Some(self.shard.as_bytes()) => Part::Shard,
            word => match self.others.iter().position(|other| word == other.as_bytes()) {
                Some(at) => Part::Other(at),
                None => Part::Word(word.clone()),
            },
        }
    }

    fn put_in(&self, part: &Part) -> Word {
        match part {
            Part::Word(word) => word.clone(),
            Part::Module => self.module.into(),
            Part::ModuleBaseName => self.base_name().into(),
            Part::Shard => format!("-fthinlto-index={}", self.shard).into_bytes(),
            Part::Object => self.object.into(),
            Part::Other(at) => self.others[*at].into(),
        }
    }

    fn base_name(&self) -> &str {
        self.module.rsplit('/').next().unwrap_or(self.module)
    }

    /// Whether a word that should be the same for all compilations names a file after this one: `one.gcno`.
    fn is_in(&self, word: &[u8]) -> bool {
        let stem = |path: &str| Some(format!("{}.", Path::new(path).file_stem()?.to_str()?));
        [self.module, self.object, self.shard]
            .iter()
            .filter_map(|path| stem(path))
            .any(|name| word.windows(name.len()).any(|part| part == name.as_bytes()))
    }
}

/// The shape of the one `-cc1` command in a driver's answer. `None` if it would run anything else besides, or names the
/// compilation where this does not expect it.
fn learn(program: &[u8], answer: &[u8], names: Names<'_>) -> Option<Template> {
    let jobs = driver::parse(answer).jobs;
    let [job] = jobs.as_slice() else { return None };
    let (frontend, arguments) = job.split_first()?;
    let compiler = real(frontend)?;
    let same = compiler == real(program)?;
    if arguments.first().is_none_or(|word| word != b"-cc1") {
        return None;
    }
    let mut parts = Vec::new();
    let mut after_main_file_name = false;
    for word in arguments {
        let part = match names.take_out(word) {
            // The word may be the module's whole name.
            _ if after_main_file_name && word == names.base_name().as_bytes() => Part::ModuleBaseName,
            Part::Word(word) if names.is_in(&word) => return None,
            part => part,
        };
        after_main_file_name = word == b"-main-file-name";
        parts.push(part);
    }
    let once = |wanted: &Part| parts.iter().filter(|&part| part == wanted).count() == 1;
    let whole = [Part::Module, Part::Shard, Part::Object].iter().all(once);
    whole.then(|| Template { compiler, arguments: parts, program: same.then(|| program.to_vec()) })
}

/// The file that a program's name leads to.
fn real(program: &[u8]) -> Option<PathBuf> {
    let path = path_of(program);
    let found = if program.contains(&b'/') { path } else { in_search_path(&path)? };
    found.canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn words(line: &str) -> Vec<Word> {
        line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    fn names<'a>(module: &'a str, object: &'a str) -> Names<'a> {
        Names { module, shard: "s.bc", object, others: &[] }
    }

    /// The answer of a driver that is this test program, so that the name leads to a file.
    fn answer(arguments: &str) -> Vec<u8> {
        let own = std::env::current_exe().expect("a program");
        format!("clang version 22\n \"{}\" {arguments}\n", own.display()).into_bytes()
    }

    fn own() -> String {
        std::env::current_exe().expect("a program").display().to_string()
    }

    #[test]
    fn a_driver_is_asked_once_for_each_set_of_flags() {
        let frontends = Frontends::default();
        let asked = Cell::new(0);
        let ask = |module: &str, object: &str, flag: &str| {
            let line = format!("{} -c {flag} -x ir {module} -fthinlto-index=s.bc -o {object}", own());
            frontends.command(&words(&line), names(module, object), |question| {
                asked.set(asked.get() + 1);
                assert_eq!(question.last().map(Vec::as_slice), Some(&b"-###"[..]));
                let base = module.rsplit('/').next().expect("a name");
                Some(answer(&format!(
                    "\"-cc1\" \"{flag}\" \"-main-file-name\" \"{base}\" \"-fthinlto-index=s.bc\" \"-o\" \"{object}\" \"{module}\""
                )))
            })
        };
        let expected = |module: &str, base: &str, object: &str, flag: &str| {
            words(&format!(
                "{} -cc1 {flag} -main-file-name {base} -fthinlto-index=s.bc -o {object} {module}",
                own()
            ))
        };
        assert_eq!(ask("d/one.o", "x/1.o", "-O2"), Some(expected("d/one.o", "one.o", "x/1.o", "-O2")));
        assert_eq!(ask("e/two.o", "y/2.o", "-O2"), Some(expected("e/two.o", "two.o", "y/2.o", "-O2")));
        assert_eq!(asked.get(), 1);
        assert_eq!(ask("e/two.o", "y/2.o", "-O3"), Some(expected("e/two.o", "two.o", "y/2.o", "-O3")));
        assert_eq!(asked.get(), 2);
    }

    #[test]
    fn anything_unexpected_leaves_the_driver_in_charge() {
        let line = format!("{} -c -x ir one.o -fthinlto-index=s.bc -o 1.native", own());
        let refused = |text: Vec<u8>| {
            let command =
                Frontends::default().command(&words(&line), names("one.o", "1.native"), |_| Some(text));
            assert_eq!(command, None);
        };
        let rest = "\"-fthinlto-index=s.bc\" \"-o\" \"1.native\" \"one.o\"";
        refused(answer(&format!("\"-cc1as\" {rest}")));
        refused(answer(&format!("\"-cc1\" {rest} \"-coverage-notes-file\" \"one.gcno\"")));
        refused(answer("\"-cc1\" \"-fthinlto-index=s.bc\" \"-o\" \"1.native\""));
        refused([answer(&format!("\"-cc1\" {rest}")), answer("\"-x\"")].concat());
        refused(format!(" \"/bin/sh\" \"-cc1\" {rest}\n").into_bytes());
        refused(Vec::new());
    }

    #[test]
    fn what_a_wrapper_would_run_is_known_and_not_run_without_it() {
        let line = words("/bin/sh -c -x ir one.o -fthinlto-index=s.bc -o 1.native");
        let text = answer(
            "\"-cc1\" \"-main-file-name\" \"one.o\" \"-fthinlto-index=s.bc\" \"-split\" \"1.dwo\" \"-o\" \"1.native\" \"one.o\"",
        );
        let names = Names { others: &["1.dwo"], ..names("one.o", "1.native") };
        let frontends = Frontends::default();
        let template = frontends.template(&line, names, |_| Some(text)).expect("one command");
        assert_eq!(
            template.compiler,
            std::env::current_exe().and_then(|own| own.canonicalize()).expect("a program")
        );
        let mut expected: Vec<_> = words("-cc1 -main-file-name").into_iter().map(Part::Word).collect();
        expected.extend([Part::ModuleBaseName, Part::Shard, Part::Word(b"-split".to_vec()), Part::Other(0)]);
        expected.extend([Part::Word(b"-o".to_vec()), Part::Object, Part::Module]);
        assert_eq!(template.arguments, expected);
        assert_eq!(frontends.command(&line, names, |_| None), None);
    }
}
