//! Where a command writes before its outputs are accepted: a directory of its own beside their place.
//!
//! Outputs keep their file names in it, and compilers leave their own temporaries in it when they are killed,
//! so removing it removes everything. Knows nothing of what the outputs hold; the rule that nothing is
//! half-written is that of `distlto_prepare::write`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use distlto_prepare::io_error::IoError;
use distlto_prepare::regular;
use distlto_prepare::write::TEMPORARY_PREFIX;
use tempfile::TempDir;

use crate::output::{Output, Role};

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

/// One output.
#[derive(Debug)]
struct Staged {
    /// Its place, as the command names it.
    output: Utf8PathBuf,
    /// Where the command is to write it, relative to the same directory.
    temporary: Utf8PathBuf,
}

impl Staging {
    /// Makes the directories of `outputs` and a temporary one in each, or in the place that `places` gives it. Paths
    /// are relative to `directory`.
    pub fn new<'a>(
        directory: Option<&Path>,
        outputs: impl IntoIterator<Item = &'a Utf8Path>,
        places: Option<&Places>,
    ) -> Result<Self, IoError> {
        let mut staging = Self {
            directory: directory.map(Path::to_owned),
            temporaries: BTreeMap::new(),
            staged: Vec::new(),
        };
        for output in outputs {
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

    /// Outputs of which the first ones, or none, are staged.
    pub fn outputs<'a>(&'a self, outputs: &'a [(&'a Utf8Path, Role)]) -> Vec<Output<'a>> {
        let temporaries = self.staged.iter().map(|staged| Some(&*staged.temporary));
        let output = |(&(name, role), temporary): (&(&'a Utf8Path, Role), Option<&'a Utf8Path>)| {
            let written = temporary.unwrap_or(name);
            Output { name, role, written, place: self.file(name), file: self.file(written) }
        };
        outputs.iter().zip(temporaries.chain(std::iter::repeat(None))).map(output).collect()
    }

    /// A path of the command as one that this process can open.
    pub fn file(&self, path: &Utf8Path) -> PathBuf {
        match &self.directory {
            Some(directory) => directory.join(path),
            None if path.as_str().is_empty() => PathBuf::from("."),
            None => path.into(),
        }
    }

    /// Puts every output into its place, the first one last: an object is never newer than what belongs to it. The temporary
    /// directories go when this value does.
    pub fn commit(&self) -> Result<(), IoError> {
        for Staged { output, temporary } in self.staged.iter().rev() {
            let place = self.file(output);
            fs::rename(self.file(temporary), &place).map_err(IoError::on("rename into place", &place))?;
        }
        Ok(())
    }
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
    fn temporaries_lie_where_they_are_told_to() {
        let place = tempfile::tempdir().unwrap();
        let places = Places::from([("out".into(), "out/own".into())]);
        let staging =
            Staging::new(Some(place.path()), ["out/a.o".into(), "b.o".into()], Some(&places)).unwrap();
        let [a, b] = &staging.staged[..] else { panic!("two outputs") };
        assert!(a.temporary.starts_with("out/own") && !b.temporary.starts_with("out"), "{a:?} {b:?}");
        for staged in [a, b] {
            fs::write(staging.file(&staged.temporary), "x").unwrap();
        }
        staging.commit().unwrap();
        drop(staging);
        assert!(place.path().join("out/a.o").is_file() && place.path().join("b.o").is_file());
        assert_eq!(fs::read_dir(place.path().join("out/own")).unwrap().count(), 0);
    }

    #[test]
    fn dropping_removes_everything_and_sweeping_what_a_killed_run_left() {
        let place = tempfile::tempdir().unwrap();
        let staging = Staging::new(Some(place.path()), ["a.o".into()], None).unwrap();
        fs::write(staging.file(&staging.staged[0].temporary), "x").unwrap();
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
