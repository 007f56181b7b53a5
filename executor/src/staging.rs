//! Where a command writes before its outputs are accepted: a directory of its own beside their place.
//!
//! Outputs keep their file names in it, and compilers leave their own temporaries in it when they are killed,
//! so removing it removes everything. Knows nothing of what the outputs hold; the rule that nothing is
//! half-written is that of `distlto_prepare::write`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use distlto_prepare::regular;
use distlto_prepare::write::{IoError, TEMPORARY_PREFIX};
use miette::Diagnostic;
use tempfile::TempDir;
use thiserror::Error;

use crate::verify::Role;

/// Options whose value, in the same word, is an output.
const JOINED: &[&str] = &["-o", "-save-precodegen-ir="];

/// A command that does not say where its outputs go.
#[derive(Debug, Error, Diagnostic)]
#[error("the command of {label} does not name its output {output} (no `-o {output}` among its words)")]
#[diagnostic(
    code(distlto::bad_input),
    help("write the action's outputs into its command exactly as in its list of outputs")
)]
pub struct NoPlace {
    /// The action.
    pub label: String,
    /// The output.
    pub output: Utf8PathBuf,
}

/// For directories that outputs go to: where their temporaries lie instead, on the same file system. A run that has a
/// directory of its own there can be swept by the next one, without a lock on what is not its own.
pub type Places = BTreeMap<Utf8PathBuf, Utf8PathBuf>;

/// The outputs of one command on their way to their places. Dropping it removes what was not committed.
#[derive(Debug)]
pub struct Staging {
    directory: Option<PathBuf>,
    // One for each directory that outputs go to; a rename must not cross file systems.
    temporaries: BTreeMap<Utf8PathBuf, TempDir>,
    staged: Vec<Staged>,
}

/// An output of a job on the way to its place.
#[derive(Debug)]
pub struct Output<'a> {
    /// As the command names it.
    pub name: &'a Utf8Path,
    /// What it has to be.
    pub role: Role,
    /// Its place.
    pub place: PathBuf,
    /// Where it is before it is accepted.
    pub file: PathBuf,
}

/// One output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    /// Its place, as the command names it.
    pub output: Utf8PathBuf,
    /// Where the command is to write it, relative to the same directory.
    pub temporary: Utf8PathBuf,
}

impl Staging {
    /// Makes the directories of `outputs` and a temporary one in each, or in the place that `places` gives it. Paths
    /// are relative to `directory`.
    pub fn new(
        directory: Option<&Path>,
        outputs: &[&Utf8Path],
        places: Option<&Places>,
    ) -> Result<Self, IoError> {
        let mut staging = Self {
            directory: directory.map(Path::to_owned),
            temporaries: BTreeMap::new(),
            staged: Vec::new(),
        };
        for &output in outputs {
            let temporary = staging.temporary(output, places)?;
            staging.staged.push(Staged { output: output.to_owned(), temporary });
        }
        Ok(staging)
    }

    fn temporary(&mut self, output: &Utf8Path, places: Option<&Places>) -> Result<Utf8PathBuf, IoError> {
        let place = self.file(output);
        // A rename would put a file in a device's place as readily as in a file's.
        regular::check_place(&place).map_err(IoError::on("write", &place))?;
        let Some(name) = output.file_name() else {
            return Err(IoError::on("write", place)(std::io::ErrorKind::IsADirectory.into()));
        };
        let parent = output.parent().unwrap_or(Utf8Path::new(""));
        let above = places.and_then(|places| places.get(parent)).map_or(parent, |place| place);
        if !self.temporaries.contains_key(parent) {
            let made = make_temporary(&self.file(above))?;
            self.temporaries.insert(parent.to_owned(), made);
        }
        let made = self.temporaries[parent].path();
        // The name is our prefix and letters that `tempfile` draws.
        let own = made.file_name().and_then(|name| name.to_str()).unwrap_or(TEMPORARY_PREFIX);
        Ok(above.join(own).join(name))
    }

    /// The outputs in the order in which they were given.
    pub fn staged(&self) -> &[Staged] {
        &self.staged
    }

    /// A path of the command as one that this process can open.
    pub fn file(&self, path: &Utf8Path) -> PathBuf {
        match &self.directory {
            Some(directory) => directory.join(path),
            None if path.as_str().is_empty() => PathBuf::from("."),
            None => path.into(),
        }
    }

    /// The command with every output replaced by its temporary.
    ///
    /// An output is named by `-o OUT`, `-oOUT`, as split debug information by `-split-dwarf-output OUT`, or as
    /// optimised bitcode by `-save-precodegen-ir=OUT`.
    /// Only the driver's `-o` says where split debug information goes when the command is silent, and its name
    /// stands in the object too; so a `.dwo` output that is not named is given to the compiler explicitly.
    pub fn redirect(&self, label: &str, words: &[&str]) -> Result<Vec<String>, NoPlace> {
        let mut redirected: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        for Staged { output, temporary } in &self.staged {
            let mut named = false;
            for at in 0..words.len() {
                if words[at] == output.as_str() && takes_output(&words[..at]) {
                    redirected[at] = temporary.to_string();
                    named = true;
                } else if let Some(option) =
                    JOINED.iter().find(|&option| words[at].strip_prefix(option) == Some(output.as_str()))
                {
                    redirected[at] = format!("{option}{temporary}");
                    named = true;
                }
            }
            if !named && output.extension() == Some("dwo") {
                let options =
                    ["-split-dwarf-file", output.as_str(), "-split-dwarf-output", temporary.as_str()];
                redirected
                    .splice(1.min(words.len())..1.min(words.len()), options.into_iter().flat_map(for_cc1));
                named = true;
            }
            if !named {
                return Err(NoPlace { label: label.to_owned(), output: output.clone() });
            }
        }
        Ok(redirected)
    }

    /// Puts every output into its place, the first one last: an object is never newer than what belongs to it.
    pub fn commit(self) -> Result<(), IoError> {
        for Staged { output, temporary } in self.staged.iter().rev() {
            let place = self.file(output);
            fs::rename(self.file(temporary), &place).map_err(IoError::on("rename into place", &place))?;
        }
        Ok(())
    }
}

/// Whether the words before an output say that it is one.
fn takes_output(before: &[&str]) -> bool {
    match before {
        [.., "-split-dwarf-output", "-Xclang"] => true,
        [.., last] => matches!(*last, "-o" | "--output" | "-split-dwarf-output"),
        [] => false,
    }
}

/// A word that the driver hands to the compiler proper.
fn for_cc1(word: &str) -> [String; 2] {
    ["-Xclang".to_owned(), word.to_owned()]
}

fn make_temporary(parent: &Path) -> Result<TempDir, IoError> {
    fs::create_dir_all(parent).map_err(IoError::on("create directory", parent))?;
    tempfile::Builder::new()
        .prefix(TEMPORARY_PREFIX)
        .tempdir_in(parent)
        .map_err(IoError::on("write into", parent))
}

/// Removes what a killed run left in a directory. Only for one who holds the lock of everything that writes there.
/// Returns how many entries were removed.
pub fn sweep(directory: &Path) -> Result<usize, IoError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(IoError::on("read directory", directory)(error)),
    };
    let mut removed = 0;
    for entry in entries {
        let entry = entry.map_err(IoError::on("read directory", directory))?;
        if !entry.file_name().as_encoded_bytes().starts_with(TEMPORARY_PREFIX.as_bytes()) {
            continue;
        }
        let path = entry.path();
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }
            .map_err(IoError::on("remove", &path))?;
        removed += 1;
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_name_an_output_are_replaced() {
        let place = tempfile::tempdir().unwrap();
        let staging =
            Staging::new(Some(place.path()), &["out/a b.o".into(), "out/a b.dwo".into()], None).unwrap();
        let [object, dwo] = staging.staged() else { panic!("two outputs") };
        assert!(object.temporary.starts_with("out") && object.temporary.ends_with("a b.o"));
        let words = ["cc", "-DX=out/a b.o", "out/a b.o", "-o", "out/a b.o", "-Wa,-oout/a b.o"];
        let redirected = staging.redirect("m", &words).unwrap();
        let (new, old) = (object.temporary.as_str(), "out/a b.o");
        assert_eq!(redirected[9..], ["-DX=out/a b.o", old, "-o", new, "-Wa,-oout/a b.o"]);
        let split =
            ["-Xclang", "-split-dwarf-file", "-Xclang", "out/a b.dwo", "-Xclang", "-split-dwarf-output"];
        assert_eq!(redirected[1..7], split);
        assert_eq!(redirected[8], dwo.temporary.as_str());
        assert!(staging.redirect("m", &["cc", "-o", "other.o"]).is_err());
    }

    #[test]
    fn temporaries_lie_where_they_are_told_to() {
        let place = tempfile::tempdir().unwrap();
        let places = Places::from([("out".into(), "out/own".into())]);
        let staging =
            Staging::new(Some(place.path()), &["out/a.o".into(), "b.o".into()], Some(&places)).unwrap();
        let [a, b] = staging.staged() else { panic!("two outputs") };
        assert!(a.temporary.starts_with("out/own") && !b.temporary.starts_with("out"), "{a:?} {b:?}");
        for staged in [a, b] {
            fs::write(staging.file(&staged.temporary), "x").unwrap();
        }
        staging.commit().unwrap();
        assert!(place.path().join("out/a.o").is_file() && place.path().join("b.o").is_file());
        assert_eq!(fs::read_dir(place.path().join("out/own")).unwrap().count(), 0);
    }

    #[test]
    fn dropping_removes_everything_and_sweeping_what_a_killed_run_left() {
        let place = tempfile::tempdir().unwrap();
        let staging = Staging::new(Some(place.path()), &["a.o".into()], None).unwrap();
        fs::write(staging.file(&staging.staged()[0].temporary), "x").unwrap();
        drop(staging);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        fs::create_dir(place.path().join(".distlto-tmp-dead")).unwrap();
        fs::write(place.path().join(".distlto-tmp-dead/a.o"), "x").unwrap();
        fs::write(place.path().join(".distlto-tmp-file"), "x").unwrap();
        fs::write(place.path().join("kept"), "x").unwrap();
        assert_eq!(sweep(place.path()).unwrap(), 2);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
