//! The linker command that a driver gave for a link, kept so that the next run need not ask again.
//!
//! Asking costs a start of the compiler. The answer depends on the command, the environment (both in the key), the
//! driver, the linker, and which GCC and library directories there are: it is kept while all those stand as they did.

use std::path::{Path, PathBuf};

use distlto_planner::link_command::{DriverReads, LinkCommand};
use distlto_planner::link_line::LinkLine;
use distlto_planner::search_path::program_file;
use distlto_planner::state::Place;
use distlto_planner::words::{Word, lossy, path_of};
use distlto_prepare::io_error::IoError;
use distlto_prepare::regular;
use distlto_prepare::write::write_if_changed;
use serde::{Deserialize, Serialize};

use super::file_state::FileState;
use super::identity;
use super::state::LinkKey;
use distlto_executor::variables;

const VERSION: u32 = 3;

#[derive(Serialize, Deserialize)]
struct Record {
    version: u32,
    key: String,
    linker: Vec<Word>,
    words: Vec<Word>,
    compiler: Option<Word>,
    driver: DriverReads,
    /// Of the whole environment, where a wrapper answered.
    environment: Option<String>,
    depends_on: Vec<FileState>,
    absent: Vec<PathBuf>,
}

fn place(directory: &str) -> PathBuf {
    Place::LinkLine.of(directory).into()
}

/// The answer of an earlier run, if it still holds.
pub fn load(directory: &str, key: &LinkKey) -> Option<LinkCommand> {
    let text = regular::read(&place(directory)).ok()?;
    let record: Record = serde_json::from_slice(&text).ok()?;
    let holds = record.version == VERSION
        && record.key == key.to_string()
        && record.environment.is_none_or(|environment| environment == variables::environment().to_string())
        && record.depends_on.iter().all(FileState::holds)
        && record.absent.iter().all(|path| !path.exists());
    let line = LinkLine::read(record.words).ok()?;
    holds.then_some(LinkCommand {
        linker: record.linker,
        line,
        compilations: Vec::new(),
        compiler: record.compiler,
        driver: record.driver,
    })
}

/// Keeps an answer. A command that also compiles is asked about each time: its sources are its inputs.
pub fn save(directory: &str, key: &LinkKey, link: &LinkCommand) -> Result<(), IoError> {
    if !link.compilations.is_empty() {
        return Ok(());
    }
    let (depends_on, absent) = depends_on(link);
    let record = Record {
        version: VERSION,
        key: key.to_string(),
        linker: link.linker.clone(),
        words: link.line.words().to_vec(),
        compiler: link.compiler.clone(),
        driver: link.driver.clone(),
        environment: wrapper(link).then(|| variables::environment().to_string()),
        depends_on,
        absent,
    };
    let text = serde_json::to_vec(&record).expect("bytes and numbers serialise");
    write_if_changed(&place(directory), &text).map(|_| ())
}

fn wrapper(link: &LinkCommand) -> bool {
    let driver = link.driver.program.as_ref().and_then(|driver| identity::located(&lossy(driver)));
    driver.is_some_and(|driver| identity::behind(&driver, &link.driver).is_some())
}

/// The states of what the answer depends on, and what of it is not there.
fn depends_on(link: &LinkCommand) -> (Vec<FileState>, Vec<PathBuf>) {
    let program = |word: &Word| {
        let path = path_of(word);
        program_file(&path)
    };
    let programs = link.linker.first().into_iter().chain(&link.compiler).chain(&link.driver.program);
    let programs = programs.filter_map(program);
    // A new GCC or a new multi-architecture directory shows in the directory above the one that was chosen.
    let above = link.line.words().iter().filter_map(|word| word.strip_prefix(b"-L")).map(path_of).filter_map(
        |path| {
            let real = path.canonicalize().ok()?;
            real.parent().filter(|parent| *parent != Path::new("/")).map(Path::to_owned)
        },
    );
    let driver = link.driver.files.iter().chain(&link.driver.searched).cloned();
    let mut paths: Vec<PathBuf> = programs.chain(above).chain(driver).collect();
    paths.sort_unstable();
    paths.dedup();
    let (mut states, mut absent) = (Vec::new(), Vec::new());
    for path in paths {
        match FileState::of(&path) {
            Some(state) => states.push(state),
            None => absent.push(path),
        }
    }
    (states, absent)
}
