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
}

/// One word of a command, with the names taken out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Part {
    Word(Word),
    Module,
    ModuleBaseName,
    Shard,
    Object,
}

/// A command with the names taken out.
type Shape = Vec<Part>;

/// What drivers answered so far: for each shape of a command, the `-cc1` command of that shape, if there is one.
#[derive(Debug, Default)]
pub struct Frontends {
    known: Mutex<HashMap<Shape, Option<Arc<Shape>>>>,
}

impl Frontends {
    /// The `-cc1` command that a driver's command would run. `ask` runs the driver with `-###` and gives what it
    /// prints on standard error; it is called once for each shape of a command.
    pub fn command(
        &self,
        words: &[Word],
        names: Names<'_>,
        ask: impl FnOnce(&[Word]) -> Option<Vec<u8>>,
    ) -> Option<Vec<Word>> {
        let shape: Shape = words.iter().map(|word| names.take_out(word)).collect();
        // Held while the driver answers: other workers want the same answer.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let template = known
            .entry(shape)
            .or_insert_with(|| {
                let mut question = words.to_vec();
                question.push(b"-###".to_vec());
                learn(&words[0], &ask(&question)?, names).map(Arc::new)
            })
            .clone()?;
        drop(known);
        Some(template.iter().map(|part| names.put_in(part)).collect())
    }
}

impl Names<'_> {
    fn take_out(&self, word: &Word) -> Part {
        match word {
            word if word == self.module.as_bytes() => Part::Module,
            word if word == self.object.as_bytes() => Part::Object,
            word if word.strip_prefix(b"-fthinlto-index=") == Some(self.shard.as_bytes()) => Part::Shard,
            word => Part::Word(word.clone()),
        }
    }

    fn put_in(&self, part: &Part) -> Word {
        match part {
            Part::Word(word) => word.clone(),
            Part::Module => self.module.into(),
            Part::ModuleBaseName => self.base_name().into(),
            Part::Shard => format!("-fthinlto-index={}", self.shard).into_bytes(),
            Part::Object => self.object.into(),
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

/// The shape of the one `-cc1` command in a driver's answer. `None` if the driver is a wrapper around another program,
/// would run anything else besides, or names the compilation where this does not expect it.
fn learn(program: &[u8], answer: &[u8], names: Names<'_>) -> Option<Shape> {
    let jobs = driver::parse(answer).jobs;
    let [job] = jobs.as_slice() else { return None };
    let (frontend, arguments) = job.split_first()?;
    let same = real(frontend)? == real(program)?;
    if !same || arguments.first().is_none_or(|word| word != b"-cc1") {
        return None;
    }
    let mut parts = vec![Part::Word(program.to_vec())];
    let mut after_main_file_name = false;
    for word in arguments {
        let part = match names.take_out(word) {
            Part::Word(word) if after_main_file_name && word == names.base_name().as_bytes() => {
                Part::ModuleBaseName
            }
            Part::Word(word) if names.is_in(&word) => return None,
            part => part,
        };
        after_main_file_name = word == b"-main-file-name";
        parts.push(part);
    }
    let once = |wanted: &Part| parts.iter().filter(|&part| part == wanted).count() == 1;
    [Part::Module, Part::Shard, Part::Object].iter().all(once).then_some(parts)
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
        Names { module, shard: "s.bc", object }
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
}
