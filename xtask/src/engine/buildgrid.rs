//! BuildGrid in an environment of its own, with PostgreSQL and two workers of Debian's buildbox.
//!
//! Two workers of two slots each share this machine's processors: what is tried with them is scheduling and the loss of
//! a worker, not speed. A worker is lost by killing its number in `target/engines/run/buildgrid/processes`.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::apt;
use crate::debian::{self, Closure};
use crate::engine::casd::{MOUNTS, can_sandbox};
use crate::engine::processes::Processes;
use crate::engine::{folder, free_port, python};
use crate::shell::{output, quietly, remove, root};

/// Debian's release that has buildbox.
const RELEASE: &str = "sid";
/// The workers.
const WORKERS: [&str; 2] = ["one", "two"];
/// What both say of themselves.
pub const PLATFORM: [&str; 3] = ["OSFamily=linux", "ISA=x86-64", "toolchain=clang-22"];

/// Makes it usable.
pub fn install() -> Result<()> {
    apt::provide(&[("bubblewrap", "bwrap")])?;
    if postgres().is_err() {
        apt::install(&["postgresql".to_owned()])?;
        postgres()?;
    }
    // The wheels are those of Debian 12's Python.
    python::environment("buildgrid", "python3.11", &folder().join("buildgrid"))?;
    let buildbox = folder().join("buildbox");
    if !buildbox.is_dir() {
        let partial = folder().join("buildbox.partial");
        remove(&partial)?;
        let closure = Closure { packages: &["buildbox"], without: &[], release: RELEASE };
        debian::unpack_closure(&closure, &folder().join("downloads/buildbox"), &partial)?;
        // They call each other by these scripts.
        for program in ["buildbox-worker", "buildbox-run-bubblewrap"] {
            debian::wrap(&partial, &buildbox, &format!("usr/bin/{program}"), program)?;
        }
        fs::rename(partial, buildbox)?;
    }
    Ok(())
}

/// The folder of PostgreSQL's programs, which Debian does not put into PATH.
fn postgres() -> Result<PathBuf> {
    let mut found: Vec<PathBuf> = glob::glob("/usr/lib/postgresql/*/bin/initdb")?.flatten().collect();
    found.sort();
    let newest = found.pop().context("PostgreSQL is missing; install Debian's postgresql")?;
    Ok(newest.parent().context("a program has a folder")?.to_owned())
}

/// Starts all of it, the server on a port.
pub fn start(processes: &mut Processes, state: &Path, port: u16) -> Result<()> {
    can_sandbox()?;
    let database = start_database(processes, state)?;
    let programs = folder().join("buildgrid/bin");
    let bgd = programs.join("bgd");
    let url = format!("postgresql+psycopg2://{database}");
    let mut migrate = Command::new(&bgd);
    let migrated = migrate.args(["migrate", "apply", &url]).current_dir(state).output()?;
    if !migrated.status.success() {
        bail!("`bgd migrate apply` failed:\n{}", String::from_utf8_lossy(&migrated.stderr));
    }
    let template = fs::read_to_string(root().join("xtask/engines/buildgrid.yml"))?;
    let state_text = state.to_str().context("the path of the repository is no text")?;
    let configuration = template.replace("@PORT@", &port.to_string()).replace("@DATABASE@", &database);
    let file = state.join("buildgrid.yml");
    fs::write(&file, configuration.replace("@STATE@", state_text))?;
    fs::create_dir(state.join("blobs"))?;
    let path = [("PATH", OsStr::new("/usr/bin:/bin"))];
    let server: [&OsStr; 4] = [bgd.as_os_str(), "server".as_ref(), "start".as_ref(), file.as_os_str()];
    processes.start("server", &server, &path)?;
    processes.until_listening(port)?;
    for worker in WORKERS {
        start_worker(processes, state, port, worker)?;
    }
    processes.all_alive()
}

fn start_worker(processes: &mut Processes, state: &Path, port: u16, name: &str) -> Result<()> {
    let buildbox = folder().join("buildbox");
    let mut runner = OsString::from("--buildbox-run=");
    runner.push(buildbox.join("buildbox-run-bubblewrap"));
    let mut command: Vec<OsString> = vec![buildbox.join("buildbox-worker").into(), runner];
    // There is no casd beside the workers.
    command.push("--runner-arg=--disable-localcas".into());
    command.extend(MOUNTS.map(|mount| format!("--runner-arg=--ro-bind-mount={mount}").into()));
    for service in ["bots", "cas"] {
        command.push(format!("--{service}-remote=http://127.0.0.1:{port}").into());
    }
    command.push("--concurrent-jobs=2".into());
    for property in PLATFORM {
        command.extend(["--platform".into(), property.into()]);
    }
    command.push(name.into());
    let temporary = state.join(name);
    fs::create_dir(&temporary)?;
    let environment = [("PATH", OsStr::new("/usr/bin:/bin")), ("TMPDIR", temporary.as_os_str())];
    processes.start(&format!("worker-{name}"), &command, &environment)
}

/// Starts PostgreSQL on a free port, and gives what follows the scheme in its URL.
fn start_database(processes: &mut Processes, state: &Path) -> Result<String> {
    let (programs, data, port) = (postgres()?, state.join("database"), free_port()?);
    let mut initdb = Command::new("env");
    initdb.args(not_root()?).arg(programs.join("initdb"));
    initdb.args(["--auth=trust", "--username=buildgrid", "--no-sync", "--encoding=UTF8", "--no-locale"]);
    let made = initdb.arg("--pgdata").arg(&data).current_dir(state).output()?;
    if !made.status.success() {
        bail!("initdb failed:\n{}", String::from_utf8_lossy(&made.stderr));
    }
    let mut command: Vec<OsString> = not_root()?.iter().map(OsString::from).collect();
    command.extend([programs.join("postgres").into(), "-D".into(), data.into()]);
    let listen = format!("port={port}");
    // Nothing here outlives `down`, so nothing need be on the disk for good; paths of sockets have a limit.
    let settings = [
        &listen,
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=",
        "fsync=off",
        "max_connections=200",
    ];
    command.extend(settings.iter().flat_map(|setting| ["-c".into(), OsString::from(setting)]));
    processes.start("postgres", &command, &[("PATH", OsStr::new("/usr/bin:/bin"))])?;
    processes.until_listening(port)?;
    let server = ["--host=127.0.0.1", &format!("--port={port}"), "--username=buildgrid"];
    quietly(Command::new(programs.join("createdb")).args(server).arg("buildgrid"))?;
    Ok(format!("buildgrid@127.0.0.1:{port}/buildgrid"))
}

/// How PostgreSQL is run, which refuses to be root: as another user of a namespace, who owns what root owns.
fn not_root() -> Result<&'static [&'static str]> {
    let root = output(Command::new("id").arg("-u"))?.trim() == "0";
    Ok(if root { &["unshare", "--user", "--map-user=1000", "--map-group=1000"] } else { &[] })
}
