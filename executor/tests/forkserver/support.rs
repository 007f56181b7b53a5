//! What the fork server's tests share: the library, a probe program, and running a command either way.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as Tool;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use distlto_executor::cancel::Cancel;
use distlto_executor::execute::forkserver::ForkServer;
use distlto_executor::execute::forkserver::library::LIBRARY;
use distlto_executor::execute::process::{Command, Finished, GRACE, Spawner, run};
use distlto_executor::execute::spawn::LocalSpawner;
use rustix::process::{Pid, Signal, kill_process};

/// The library as this build made it. Cargo builds a cdylib for no dependant, so it is asked to, unless it has been.
pub fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let built =
            std::env::var_os("DISTLTO_TEST_BIN").map(|distlto| Path::new(&distlto).with_file_name(LIBRARY));
        let library = built.unwrap_or_else(|| {
            let here = Path::new(env!("CARGO_MANIFEST_DIR"));
            tool(here, &[env!("CARGO"), "build", "--quiet", "--package", "distlto-hook"]);
            let program = std::env::current_exe().unwrap();
            let profile =
                program.ancestors().find(|path| path.ends_with("debug") || path.ends_with("release"));
            profile.unwrap().with_file_name("debug").join(LIBRARY)
        });
        assert!(library.is_file(), "{} was not built", library.display());
        library
    })
}

/// Servers with that library.
pub fn servers() -> ForkServer<LocalSpawner> {
    ForkServer::with_library(Some(library().to_owned()), LocalSpawner)
}

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

/// A directory with the compiled probe in it.
pub fn probe(flags: &[&str]) -> (tempfile::TempDir, String) {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("probe").to_str().unwrap().to_owned();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/forkserver/probe.c");
    tool(place.path(), &[&["clang-22", source, "-o", &program], flags].concat());
    (place, program)
}

pub fn command(program: &str, args: &[&str], directory: &Path) -> Command {
    let args = args.iter().map(OsString::from).collect();
    Command { program: program.into(), args, directory: Some(directory.to_owned()), tunes_heap: false }
}

pub fn finish(spawner: &dyn Spawner, command: &Command) -> Finished {
    run(command, spawner, &Cancel::new().unwrap(), GRACE).unwrap()
}

/// Runs a command both ways and compares what it tells; returns the served run.
pub fn finish_alike(servers: &dyn Spawner, command: &Command) -> Finished {
    let [served, plain] = [servers, &LocalSpawner].map(|spawner| finish(spawner, command));
    // Line by line, so that a failure does not print the whole environment.
    let (ours, theirs) = (served.stdout.text(), plain.stdout.text());
    let differing: Vec<_> =
        ours.lines().zip(theirs.lines()).filter(|(ours, theirs)| ours != theirs).collect();
    assert!(differing.is_empty(), "{differing:#?}");
    assert_eq!(ours.lines().count(), theirs.lines().count());
    assert_eq!(served.stderr.text(), plain.stderr.text());
    assert_eq!(served.ended.status, plain.ended.status);
    served
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

/// How many descriptors a process has open.
pub fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Signals a process that is there.
pub fn kill(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
}

/// Compiles modules that call each other to bitcode; returns their names.
pub fn modules_of(at: &Path, version: u32, modules: usize) -> Vec<String> {
    let clang = which(&format!("clang-{version}"));
    let mut source = String::new();
    for module in 0..modules {
        let next = (module + 1) % modules;
        source.clear();
        source +=
            &format!("int f{next}(int); extern int printf(const char *, ...); static int calls{module};\n");
        source += &format!(
            "int f{module}(int x) {{ calls{module}++; for (int i = 0; i < {module}; i++) x ^= x << i;"
        );
        source += &format!(" return x <= 0 ? printf(\"%d\", x) : f{next}(x - {module} - 1); }}\n");
        if module == 0 {
            source += "int main(int argc, char **argv) { return f0(argc); }\n";
        }
        fs::write(at.join(format!("m{module}.c")), &source).unwrap();
        tool(at, &[&clang, "-O2", "-flto=thin", "-c", &format!("m{module}.c")]);
    }
    (0..modules).map(|module| format!("m{module}.o")).collect()
}
