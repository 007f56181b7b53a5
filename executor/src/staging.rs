//! The place of a command's outputs before they are accepted: a directory of its own beside their final place.
//!
//! Outputs keep their file names in it. Killed compilers leave their temporaries in it, so removing it removes
//! everything. The next command reuses an empty one: file systems are slow to make and to remove directories.
//! Independent of the outputs' contents. The rule that nothing is half-written is that of `distlto_prepare::write`.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{fs, mem};

use camino::{Utf8Path, Utf8PathBuf};
use distlto_prepare::io_error::IoError;
use distlto_prepare::mutex::lock;
use distlto_prepare::regular;
use distlto_prepare::write::TEMPORARY_PREFIX;
use tempfile::TempDir;

use crate::output::{Output, Role};

/// Maps directories of outputs to directories of their temporaries, on the same file system. The next run can sweep a
/// run's own directory there, without a lock on files of others.
pub type Places = BTreeMap<Utf8PathBuf, Utf8PathBuf>;

/// Where the commands of one run stage their outputs. Dropping it removes the directories.
#[derive(Debug)]
pub struct StagingArea<'a> {
    directory: Option<&'a Path>,
    places: Option<&'a Places>,
    /// Empty unused directories, by parent directory.
    idle: Mutex<HashMap<PathBuf, Vec<TempDir>>>,
}

impl<'a> StagingArea<'a> {
    /// Makes an area. Paths are relative to `directory`. A temporary directory lies in that of its output, or in the
    /// place that `places` gives it.
    pub fn new(directory: Option<&'a Path>, places: Option<&'a Places>) -> Self {
        Self { directory, places, idle: Mutex::default() }
    }

    /// A path of a command as one that this process can open.
    fn file(&self, path: &Utf8Path) -> PathBuf {
        match self.directory {
            Some(directory) => directory.join(path),
            None if path.as_str().is_empty() => PathBuf::from("."),
            None => path.into(),
        }
    }

    fn take(&self, parent: PathBuf) -> Result<Temporary, IoError> {
        let idle = lock(&self.idle).get_mut(&parent).and_then(Vec::pop);
        // Somebody may have removed everything meanwhile.
        match idle.filter(|directory| directory.path().is_dir()) {
            Some(directory) => Ok(Temporary { parent, directory }),
            None => Temporary::make(parent),
        }
    }

    /// Makes an empty directory available again; removes any other with its contents.
    fn give_back(&self, Temporary { parent, directory }: Temporary) {
        if fs::read_dir(directory.path()).is_ok_and(|mut entries| entries.next().is_none()) {
            lock(&self.idle).entry(parent).or_default().push(directory);
        }
    }
}

/// A temporary directory.
#[derive(Debug)]
struct Temporary {
    /// Its parent directory.
    parent: PathBuf,
    directory: TempDir,
}

impl Temporary {
    fn make(parent: PathBuf) -> Result<Self, IoError> {
        fs::create_dir_all(&parent).map_err(IoError::on("create directory", &parent))?;
        let made = tempfile::Builder::new().prefix(TEMPORARY_PREFIX).tempdir_in(&parent);
        let directory = made.map_err(IoError::on("write into", &parent))?;
        Ok(Self { parent, directory })
    }
}

/// The outputs of one command on their way to their places. Dropping it removes uncommitted ones.
#[derive(Debug)]
pub struct Staging<'a> {
    area: &'a StagingArea<'a>,
    // One for each directory that outputs go to; a rename must not cross file systems.
    temporaries: BTreeMap<Utf8PathBuf, Temporary>,
    staged: Vec<Staged>,
}

/// One output.
#[derive(Debug)]
struct Staged {
    /// Its place, as the command names it.
    output: Utf8PathBuf,
    /// Destination of the command's output, relative to the same directory.
    temporary: Utf8PathBuf,
}

impl<'a> Staging<'a> {
    /// Makes a temporary directory for each directory of `outputs`, and that directory itself if it is missing.
    pub fn new<'o>(
        area: &'a StagingArea<'a>,
        outputs: impl IntoIterator<Item = &'o Utf8Path>,
    ) -> Result<Self, IoError> {
        let mut staging = Self { area, temporaries: BTreeMap::new(), staged: Vec::new() };
        for output in outputs {
            let temporary = staging.temporary(output)?;
            staging.staged.push(Staged { output: output.to_owned(), temporary });
        }
        Ok(staging)
    }

    fn temporary(&mut self, output: &Utf8Path) -> Result<Utf8PathBuf, IoError> {
        let place = self.file(output);
        // A rename would replace a device as readily as a file.
        regular::check_place(&place).map_err(IoError::on("write", &place))?;
        let Some(name) = output.file_name() else {
            return Err(IoError::on("write", place)(std::io::ErrorKind::IsADirectory.into()));
        };
        let parent = output.parent().unwrap_or(Utf8Path::new(""));
        let above = self.area.places.and_then(|places| places.get(parent)).map_or(parent, |place| place);
        if !self.temporaries.contains_key(parent) {
            let made = self.area.take(self.file(above))?;
            self.temporaries.insert(parent.to_owned(), made);
        }
        let made = self.temporaries[parent].directory.path();
        // The name is our prefix and letters that `tempfile` draws.
        let own = made.file_name().and_then(|name| name.to_str()).unwrap_or(TEMPORARY_PREFIX);
        Ok(above.join(own).join(name))
    }

    /// Returns the outputs of a command. The staged ones, if any, come first.
    pub fn outputs<'o>(&'o self, outputs: &'o [(Utf8PathBuf, Role)]) -> Vec<Output<'o>> {
        let temporaries = self.staged.iter().map(|staged| Some(&*staged.temporary));
        let output = |((name, role), temporary): (&'o (Utf8PathBuf, Role), Option<&'o Utf8Path>)| {
            let written = temporary.unwrap_or(name);
            Output { name, role: *role, written, place: self.file(name), file: self.file(written) }
        };
        outputs.iter().zip(temporaries.chain(std::iter::repeat(None))).map(output).collect()
    }

    /// A path of the command as one that this process can open.
    pub fn file(&self, path: &Utf8Path) -> PathBuf {
        self.area.file(path)
    }

    /// Puts every output into its place, the first one last: an object is never newer than the files that belong to it.
    pub fn commit(&self) -> Result<(), IoError> {
        for Staged { output, temporary } in self.staged.iter().rev() {
            let place = self.file(output);
            fs::rename(self.file(temporary), &place).map_err(IoError::on("rename into place", &place))?;
        }
        Ok(())
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        mem::take(&mut self.temporaries).into_values().for_each(|temporary| self.area.give_back(temporary));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporaries_lie_where_they_are_told_to() {
        let place = tempfile::tempdir().unwrap();
        let places = Places::from([("out".into(), "out/own".into())]);
        let area = StagingArea::new(Some(place.path()), Some(&places));
        let staging = Staging::new(&area, ["out/a.o".into(), "b.o".into()]).unwrap();
        let [a, b] = &staging.staged[..] else { panic!("two outputs") };
        assert!(a.temporary.starts_with("out/own") && !b.temporary.starts_with("out"), "{a:?} {b:?}");
        for staged in [a, b] {
            fs::write(staging.file(&staged.temporary), "x").unwrap();
        }
        staging.commit().unwrap();
        drop(staging);
        drop(area);
        assert!(place.path().join("out/a.o").is_file() && place.path().join("b.o").is_file());
        assert_eq!(fs::read_dir(place.path().join("out/own")).unwrap().count(), 0);
    }

    #[test]
    fn only_an_empty_directory_is_used_again() {
        let place = tempfile::tempdir().unwrap();
        let area = StagingArea::new(Some(place.path()), None);
        let stage = || Staging::new(&area, ["a.o".into()]).unwrap();
        let written = |staging: &Staging<'_>| staging.staged[0].temporary.clone();
        let (first, beside) = (stage(), stage());
        let [empty, left] = [&first, &beside].map(written);
        assert_ne!(empty, left);
        fs::write(beside.file(&left), "x").unwrap();
        drop(first);
        drop(beside);
        let (again, anew) = (stage(), stage());
        assert_eq!(written(&again), empty);
        assert!(written(&anew) != left && !anew.file(&left).exists());
    }
}
