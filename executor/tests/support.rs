//! What tests with processes share.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command as Tool;
use std::time::{Duration, Instant};

use distlto_executor::cancel::Cancel;
use distlto_executor::execute::process::{Command, Finished, GRACE, Spawner, run};

/// Runs a tool that has to succeed.
pub fn tool(directory: &Path, words: &[&str]) {
    let output = Tool::new(words[0]).args(&words[1..]).current_dir(directory).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}; run `cargo xtask setup`", words[0]));
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The absolute path of a program in `PATH`.
pub fn which(name: &str) -> String {
    let path = std::env::var_os("PATH").unwrap();
    let found =
        std::env::split_paths(&path).map(|directory| directory.join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("{name} is missing; run `cargo xtask setup`")).to_str().unwrap().to_owned()
}

pub fn command(program: &str, args: &[&str], directory: &Path) -> Command {
    let args = args.iter().map(OsString::from).collect();
    Command {
        program: program.into(),
        args,
        directory: Some(directory.to_owned()),
        is_observed: false,
        import: None,
    }
}

pub fn finish(spawner: &dyn Spawner, command: &Command) -> Finished {
    run(command, spawner, &Cancel::new().unwrap(), GRACE).unwrap()
}

/// Waits until a condition holds; fails when it does not within ten seconds.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether a process runs: a zombie does not.
pub fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
