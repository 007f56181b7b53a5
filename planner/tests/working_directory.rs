//! A temporary directory that is the working directory of the process: one test has it at a time, the others wait.

use std::env;
use std::sync::{Mutex, MutexGuard};

use distlto_prepare::mutex::lock;
use tempfile::TempDir;

static TURN: Mutex<()> = Mutex::new(());

/// Left and removed with this value.
pub struct WorkingDirectory {
    _directory: TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl WorkingDirectory {
    /// An empty one, once no other test has one.
    pub fn enter() -> Self {
        let turn = lock(&TURN);
        let directory = tempfile::tempdir().expect("a temporary directory");
        env::set_current_dir(directory.path()).expect("entered");
        Self { _directory: directory, _turn: turn }
    }
}

impl Drop for WorkingDirectory {
    fn drop(&mut self) {
        env::set_current_dir(env!("CARGO_MANIFEST_DIR")).expect("left");
    }
}
