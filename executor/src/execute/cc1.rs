//! Backends without the driver: clang's own `-cc1` command, learned once for all compilations with the same flags.
//!
//! A driver looks for GCC installations and works out defaults before every compilation, which takes as long as a small
//! module's whole code generation. Its `-cc1` commands differ in three names only, so the driver is asked once with
//! `-###`. After an unexpected answer, the driver itself is run. Knows nothing of processes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use distlto_planner::driver;
use distlto_planner::search_path::program_file;
use distlto_planner::words::{Word, path_of};
use distlto_prepare::mutex::lock;

/// The option before the name of split debug information that stands in the object.
pub const SPLIT_FILE: &[u8] = b"-split-dwarf-file";

/// Compilations with their own names in unexpected places of the answer, until no driver is asked about their shape.
const ODD: usize = 4;

/// The names by which one compilation differs from the next.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    /// The module.
    pub module: &'a str,
    /// Its index shard.
    pub shard: &'a str,
    /// The object.
    pub object: &'a str,
    /// Its other outputs.
    pub others: &'a [&'a str],
}

/// One word of a command, with the names taken out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TemplateWord {
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
    /// Another output, by its index in [`Names::others`].
    Other(usize),
}

/// A command with the names taken out.
type Shape = Vec<TemplateWord>;

/// The `-cc1` command of all compilations of one shape.
#[derive(Debug)]
pub struct Template {
    /// The compiler, as its driver named it.
    pub compiler: PathBuf,
    /// The words after it.
    pub arguments: Vec<TemplateWord>,
    /// The program that the driver's command named; `None` if that leads to another file than the compiler, such as a
    /// wrapper around it, which may do more than run it.
    program: Option<Word>,
}

/// Knowledge about one shape.
#[derive(Debug)]
enum ShapeAnswer {
    /// Its `-cc1` command.
    Template(Arc<Template>),
    /// Modules with their own names in the answer, by chance or because of the flags. The next module's answer decides.
    Odd(Vec<String>),
    /// No answer can be used.
    Nothing,
}

/// Why an answer cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unfit {
    /// For this compilation: a word that others may share has its name in it.
    ByName,
    /// For none.
    Always,
}

/// Answers of drivers: the `-cc1` command, if any, for each shape of a command and number of other outputs.
#[derive(Debug, Default)]
pub struct Cc1Commands {
    known: Mutex<HashMap<(Shape, usize), ShapeAnswer>>,
}

impl Cc1Commands {
    /// Returns the `-cc1` command that a driver's command would run. `ask` runs the driver with `-###` and returns its
    /// standard error. It is called once for each shape of a command, and again if the answer names its compilation in
    /// an unexpected place.
    pub fn template(
        &self,
        words: &[Word],
        names: Names<'_>,
        ask: impl FnOnce(&[Word]) -> Option<Vec<u8>>,
    ) -> Option<Arc<Template>> {
        let shape: Shape = words.iter().map(|word| names.take_out(word)).collect();
        // Held while the driver answers: other workers want the same answer.
        let mut known = lock(&self.known);
        let known = known.entry((shape, names.others.len())).or_insert(ShapeAnswer::Odd(Vec::new()));
        if let ShapeAnswer::Odd(modules) = known {
            if modules.len() >= ODD || modules.iter().any(|module| module == names.module) {
                return None;
            }
            let mut question = words.to_vec();
            question.push(b"-###".to_vec());
            let answer = ask(&question).ok_or(Unfit::Always);
            match answer.and_then(|answer| learn(&words[0], &answer, names)) {
                Ok(template) => *known = ShapeAnswer::Template(Arc::new(template)),
                Err(Unfit::ByName) => modules.push(names.module.to_owned()),
                Err(Unfit::Always) => *known = ShapeAnswer::Nothing,
            }
        }
        match known {
            ShapeAnswer::Template(template) => Some(Arc::clone(template)),
            ShapeAnswer::Odd(_) | ShapeAnswer::Nothing => None,
        }
    }
}

impl Template {
    /// Returns the command of one compilation with the outputs of `names`. `called` are the names of its further
    /// outputs for the object to record. `None` if a wrapper is to run, or if the command does not name every further
    /// output.
    pub fn command(&self, names: Names<'_>, called: &[&str]) -> Option<Vec<Word>> {
        let mut words = vec![self.program.clone()?];
        let mut written = 0;
        for part in &self.arguments {
            words.push(match part {
                TemplateWord::Other(at) if words.last().is_some_and(|before| before == SPLIT_FILE) => {
                    called[*at].into()
                }
                part => {
                    written += usize::from(matches!(part, TemplateWord::Other(_)));
                    names.put_in(part)
                }
            });
        }
        (written == names.others.len()).then_some(words)
    }
}

impl Names<'_> {
    fn take_out(&self, word: &Word) -> TemplateWord {
        match word {
            word if word == self.module.as_bytes() => TemplateWord::Module,
            word if word == self.object.as_bytes() => TemplateWord::Object,
            word if word.strip_prefix(b"-fthinlto-index=") == Some(self.shard.as_bytes()) => {
                TemplateWord::Shard
            }
            word => match self.others.iter().position(|other| word == other.as_bytes()) {
                Some(at) => TemplateWord::Other(at),
                None => TemplateWord::Word(word.clone()),
            },
        }
    }

    fn put_in(&self, part: &TemplateWord) -> Word {
        match part {
            TemplateWord::Word(word) => word.clone(),
            TemplateWord::Module => self.module.into(),
            TemplateWord::ModuleBaseName => self.base_name().into(),
            TemplateWord::Shard => format!("-fthinlto-index={}", self.shard).into_bytes(),
            TemplateWord::Object => self.object.into(),
            TemplateWord::Other(at) => self.others[*at].into(),
        }
    }

    fn base_name(&self) -> &str {
        self.module.rsplit('/').next().unwrap_or(self.module)
    }

    /// Whether a word that should be the same for all compilations names a file after this one: `one.gcno`.
    fn is_in(&self, word: &[u8]) -> bool {
        let paths = [self.module, self.object, self.shard].into_iter().chain(self.others.iter().copied());
        paths.map(Path::new).any(|path| match (path.file_name(), path.file_stem()) {
            (Some(whole), Some(stem)) => names_file(word, whole.as_encoded_bytes(), stem.as_encoded_bytes()),
            _ => false,
        })
    }
}

/// Whether a word holds the name of a file that is `whole`, or `stem` and any extension. `4.2.1` is a version rather than
/// a file of `4.o`, and a directory is none of either.
fn names_file(word: &[u8], whole: &[u8], stem: &[u8]) -> bool {
    let ends = |byte: &u8| b"/,:;= \t\"'".contains(byte);
    let begins = |at: usize| match at.checked_sub(1).map(|before| word[before]) {
        Some(before) => !(before.is_ascii_alphanumeric() || b"._+".contains(&before)),
        None => true,
    };
    (0..word.len()).filter(|&at| begins(at)).any(|at| {
        let rest = &word[at..];
        let is_whole = || rest.strip_prefix(whole).is_some_and(|after| after.first().is_none_or(ends));
        let Some(after) = rest.strip_prefix(stem) else { return false };
        let extension = &after[..after.iter().position(ends).unwrap_or(after.len())];
        let is_directory = after.get(extension.len()) == Some(&b'/');
        let is_version = || stem.iter().chain(extension).all(|byte| byte.is_ascii_digit() || *byte == b'.');
        !is_directory && (is_whole() || (extension.first() == Some(&b'.') && !is_version()))
    })
}

/// The shape of the one `-cc1` command in a driver's answer. Unfit if it would run anything else besides, or names the
/// compilation where this does not expect it.
fn learn(program: &[u8], answer: &[u8], names: Names<'_>) -> Result<Template, Unfit> {
    let jobs = driver::parse(answer).jobs;
    let [job] = jobs.as_slice() else { return Err(Unfit::Always) };
    let (frontend, arguments) = job.split_first().ok_or(Unfit::Always)?;
    let compiler = real(frontend).ok_or(Unfit::Always)?;
    let same = compiler == real(program).ok_or(Unfit::Always)?;
    if arguments.first().is_none_or(|word| word != b"-cc1") {
        return Err(Unfit::Always);
    }
    let mut parts = Vec::new();
    let mut after_main_file_name = false;
    for word in arguments {
        let part = match names.take_out(word) {
            // The word may be the module's whole name.
            _ if after_main_file_name && word == names.base_name().as_bytes() => TemplateWord::ModuleBaseName,
            TemplateWord::Word(word) if names.is_in(&word) => return Err(Unfit::ByName),
            part => part,
        };
        after_main_file_name = word == b"-main-file-name";
        parts.push(part);
    }
    for wanted in [TemplateWord::Module, TemplateWord::Shard, TemplateWord::Object] {
        match parts.iter().filter(|&part| *part == wanted).count() {
            0 => return Err(Unfit::Always),
            1 => {}
            _ => return Err(Unfit::ByName),
        }
    }
    Ok(Template { compiler, arguments: parts, program: same.then(|| program.to_vec()) })
}

/// The file that a program's name leads to.
fn real(program: &[u8]) -> Option<PathBuf> {
    let path = path_of(program);
    let found = program_file(&path)?;
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
        let cc1_commands = Cc1Commands::default();
        let asked = Cell::new(0);
        let ask = |module: &str, object: &str, flag: &str| {
            let line = format!("{} -c {flag} -x ir {module} -fthinlto-index=s.bc -o {object}", own());
            let template = cc1_commands.template(&words(&line), names(module, object), |question| {
                asked.set(asked.get() + 1);
                assert_eq!(question.last().map(Vec::as_slice), Some(&b"-###"[..]));
                let base = module.rsplit('/').next().expect("a name");
                Some(answer(&format!(
                    "\"-cc1\" \"{flag}\" \"-main-file-name\" \"{base}\" \"-fthinlto-index=s.bc\" \"-o\" \"{object}\" \"{module}\""
                )))
            });
            template.and_then(|template| template.command(names(module, object), &[]))
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
            let names = names("one.o", "1.native");
            let template = Cc1Commands::default().template(&words(&line), names, |_| Some(text));
            assert_eq!(template.and_then(|template| template.command(names, &[])), None);
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
    fn names_of_files_are_told_from_versions_and_directories() {
        let is_in = |module: &str, word: &str| names(module, "x.native").is_in(word.as_bytes());
        for (module, word) in [
            ("d/one.o", "one.gcno"),
            ("one.o", "/tmp/b/one.o.d"),
            ("one.o", "-coverage-notes-file=b/one.gcno"),
            ("one.o", "clang -c one.o -o two"),
            ("one.o", "dump-one.dwo"),
            ("4.o", "-x=4.su"),
            ("4.2.1", "-fgnuc-version=4.2.1"),
            ("one", "-x=b/one"),
            ("a b.o", "/tmp/a b.gcno"),
        ] {
            assert!(is_in(module, word), "{module} {word}");
        }
        for (module, word) in [
            ("1.o", "-fgnuc-version=4.2.1"),
            ("2.o", "-fgnuc-version=4.2.1"),
            ("4.o", "-fgnuc-version=4.2.1"),
            ("4.2.o", "-fgnuc-version=4.2.1"),
            ("14.o", "/usr/lib/clang/14.0.6"),
            ("program.o", "-fdebug-compilation-dir=/b/program.p/x"),
            ("one.o", "/b/someone.prof"),
            ("one", "-x=one-sided"),
        ] {
            assert!(!is_in(module, word), "{module} {word}");
        }
    }
}
