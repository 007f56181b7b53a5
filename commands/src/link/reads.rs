//! The reads of a link: files, paths that did not exist, and programs with the libraries that they load.
//!
//! Each file's state is recorded when it is reported, so that `unchanged` notices a change during the link. If any
//! state is unknown, nothing is recorded. Does not depend on how a link is done.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use distlto_planner::words::{Word, lossy, path_of};
use distlto_prepare::archive::files_beside;
use rayon::prelude::*;

use super::file_state::{FileState, Start};
use super::identity;
use crate::serve::module_record::RecordedObject;
use distlto_executor::program_files;

/// The reported reads of a link.
#[derive(Debug, Default)]
pub struct Reads {
    own: PathBuf,
    files: BTreeMap<PathBuf, FileState>,
    /// Files that processes of the link read.
    inputs: BTreeSet<PathBuf>,
    absent: BTreeSet<PathBuf>,
    programs: BTreeSet<PathBuf>,
    /// Variables that processes of the link asked for, with the values that this process has.
    variables: BTreeMap<String, Option<String>>,
    /// The warnings of backends.
    warnings: String,
    environment: bool,
    doubt: Option<String>,
}

/// The files that a link wrote.
#[derive(Debug, Clone)]
pub struct Outputs {
    /// The program first.
    files: Vec<PathBuf>,
}

impl Outputs {
    /// The program alone.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { files: vec![program.into()] }
    }

    /// Adds a file beside the program: a map, a dependency file. A file that was not written is left out.
    pub fn file(&mut self, path: impl Into<PathBuf>) {
        let path = path.into();
        if path.is_file() {
            self.files.push(path);
        }
    }

    /// All of them, the program first.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }
}

impl Reads {
    /// Starts with this program alone. Paths in the link's own state directory are left out.
    pub fn new(state: impl Into<PathBuf>) -> Self {
        let mut reads = Self { own: state.into(), ..Self::default() };
        // Another build of this program may link in another way.
        reads.files(std::env::current_exe().ok());
        reads
    }

    /// Adds a file in its present state. A file that was added before keeps its earlier state.
    pub fn file(&mut self, path: impl Into<PathBuf>) {
        self.files([path.into()]);
    }

    /// Adds files, which are looked at in parallel, and the files that thin archives name.
    pub fn files(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        let beside = self.states(paths, |path| {
            let state = FileState::of(path)?;
            // The linker judges a file that is no readable archive.
            Some((state, files_beside(path).unwrap_or_default()))
        });
        self.states(beside, |path| Some((FileState::of(path)?, Vec::new())));
    }

    /// Takes the states of those that are not known yet; returns the further files that `look` names.
    fn states(
        &mut self,
        paths: impl IntoIterator<Item = PathBuf>,
        look: impl Fn(&Path) -> Option<(FileState, Vec<PathBuf>)> + Sync,
    ) -> Vec<PathBuf> {
        let mut new: Vec<PathBuf> = paths.into_iter().filter(|path| self.is_new(path)).collect();
        new.sort_unstable();
        new.dedup();
        let looked: Vec<_> = new.par_iter().with_min_len(64).map(|path| look(path)).collect();
        let mut further = Vec::new();
        for (path, found) in new.into_iter().zip(looked) {
            match found {
                Some((state, named)) => {
                    further.extend(named);
                    self.files.insert(path, state);
                }
                None => self.doubt(format!("{} cannot be looked at", path.display())),
            }
        }
        further
    }

    fn is_new(&self, path: &Path) -> bool {
        !self.files.contains_key(path) && !path.starts_with(&self.own)
    }

    /// Places where something was looked for in vain. One that holds something was passed over for another reason.
    pub fn absent(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        self.absent.extend(paths.into_iter().filter(|path| !path.exists()));
    }

    /// A program that ran, by path or as a name to be found in `PATH`, with the libraries that it loads.
    pub fn program(&mut self, program: &Word) {
        let name = lossy(program);
        let Some(path) = identity::located(&name) else {
            return self.doubt(format!("{name} cannot be found"));
        };
        if name.contains('/') {
            self.file(path_of(program));
        } else {
            self.absent(in_vain("PATH", &path_of(program), None));
        }
        self.executable(path);
    }

    /// A compiler, by path or as a name, and the one behind it where it is a wrapper.
    pub fn compiler(&mut self, program: &Word, installed: Option<&Path>) {
        self.program(program);
        let wrapped = identity::located(&lossy(program)).and_then(|path| identity::behind(&path, installed));
        if let Some(behind) = wrapped {
            self.environment = true;
            self.executable(behind);
        }
    }

    fn executable(&mut self, path: PathBuf) {
        if !self.programs.insert(path.clone()) {
            return;
        }
        self.file(&path);
        if program_files::is_script(&path) {
            self.environment = true;
            return;
        }
        match program_files::libraries(&path) {
            Ok(libraries) => {
                let before = |path: &PathBuf| {
                    path.file_name().map(|name| in_vain("LD_LIBRARY_PATH", Path::new(name), Some(path)))
                };
                self.absent(libraries.iter().filter_map(before).flatten());
                self.files(libraries);
                self.files(Some(PathBuf::from("/etc/ld.so.cache")).filter(|cache| cache.exists()));
            }
            Err(why) => self.doubt(why),
        }
    }

    /// Files and directories that processes of the link were seen to read.
    pub fn observed(&mut self, paths: impl Iterator<Item = PathBuf>) {
        let paths: Vec<PathBuf> = paths.collect();
        self.inputs.extend(paths.iter().cloned());
        self.files(paths);
    }

    /// Adds the further reads of the compilers of these objects, and their warnings.
    pub fn objects<'o>(&mut self, objects: impl Iterator<Item = &'o RecordedObject> + Clone) {
        let path = |path: &str| std::path::absolute(path).unwrap_or_default();
        self.observed(objects.clone().flat_map(|object| &object.provenance.read).map(|(name, _)| path(name)));
        self.absent(
            objects.clone().flat_map(|object| &object.provenance.absent).map(|name| path(name.as_str())),
        );
        for object in objects {
            if object.key.is_empty() {
                self.doubt(format!("it is not known all that the compiler of {} reads", object.label));
            }
            self.warnings.push_str(&object.warnings);
        }
    }

    /// Returns the inputs with a known state.
    pub(super) fn inputs_read(&self) -> impl Iterator<Item = &Path> {
        self.inputs.iter().filter(|path| self.files.contains_key(*path)).map(PathBuf::as_path)
    }

    /// Variables that a process of the link asked for, with the values that it found. One that has another value in
    /// this process was set by another process of the link.
    pub fn variables(&mut self, asked: BTreeMap<Vec<u8>, Option<Vec<u8>>>) {
        for (name, value) in asked {
            let name = path_of(&name).into_os_string();
            let own = std::env::var_os(&name);
            if own.as_ref().map(|own| own.as_bytes()) != value.as_deref() {
                continue;
            }
            match (name.into_string(), own.map(OsString::into_string).transpose()) {
                (Ok(name), Ok(value)) => drop(self.variables.insert(name, value)),
                _ => self.environment = true,
            }
        }
    }

    /// The warnings of backends, which a link that has nothing to do prints again.
    pub(super) fn warnings(&self) -> &str {
        &self.warnings
    }

    /// The variables that the link's processes asked for, with this process's values.
    pub(super) fn variables_read(&self) -> &BTreeMap<String, Option<String>> {
        &self.variables
    }

    /// Notes that a program with unknown dependencies ran: any variable of the environment may matter.
    pub fn any_environment(&mut self) {
        self.environment = true;
    }

    /// Something that the link may have read and that cannot be compared: nothing is recorded.
    pub fn doubt(&mut self, why: impl Into<String>) {
        self.doubt.get_or_insert_with(|| why.into());
    }

    /// Returns the states for a later run to compare, and the paths that have to stay absent. An error names a doubt,
    /// or a file that may have changed since the link's start or since its state was taken.
    pub fn settled(&self, start: &Start) -> Result<(Vec<FileState>, Vec<PathBuf>), String> {
        if let Some(doubt) = &self.doubt {
            return Err(doubt.clone());
        }
        let files: Vec<&FileState> = self.files.values().collect();
        if let Some(file) = files.par_iter().with_min_len(64).find_any(|file| !start.holds(file)) {
            return Err(format!("{} has just changed", file.path().display()));
        }
        if let Some(path) = self.absent.iter().find(|path| path.exists()) {
            return Err(format!("{} was not there", path.display()));
        }
        Ok((files.into_iter().cloned().collect(), self.absent.iter().cloned().collect()))
    }

    /// Whether a program ran that may depend on any variable of the environment.
    pub(super) fn environment_matters(&self) -> bool {
        self.environment
    }
}

/// The places of a name in the directories of a variable, before the one where it was found, if it was found there.
fn in_vain(variable: &str, name: &Path, found: Option<&Path>) -> Vec<PathBuf> {
    let directories = std::env::var_os(variable).unwrap_or_default();
    let places = std::env::split_paths(&directories).map(|directory| directory.join(name));
    places.take_while(|place| Some(place.as_path()) != found && !place.is_file()).collect()
}
