//! A file system of a few hundred KiB that can be filled, for a shell script of a test.
//!
//! A user namespace has one of its own where that is allowed. Containers mostly forbid that, and give a small `/dev/shm`
//! instead, which is filled but for what the test may have.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::run::{capture, succeed};

/// What a script is run in, with the small file system at `$SMALL`.
const MOUNT: &str = "mount -t tmpfs -o size=$KIB\"k\" tmpfs \"$SMALL\" && ";
/// As much of `/dev/shm` is filled.
const MOST: u64 = 1 << 30;

/// Runs a shell script in `place` with `$SMALL`, an empty file system of this many KiB; it must succeed. Gives what it
/// printed.
pub fn run(place: &Path, kib: u64, script: &str) -> Result<String> {
    let mount = tempfile::tempdir()?;
    let small = mount.path();
    for namespaces in ["-rm", "-m"] {
        let unshare = |script: &str| {
            let mut command = Command::new("unshare");
            command.args([namespaces, "sh", "-ec", &format!("{MOUNT}{script}")]).current_dir(place);
            command.env("SMALL", small).env("KIB", kib.to_string());
            command
        };
        if capture(&mut unshare("true")).is_ok_and(|output| output.status.success()) {
            return said(&mut unshare(script));
        }
    }
    in_shared_memory(place, kib, script)
}

fn in_shared_memory(place: &Path, kib: u64, script: &str) -> Result<String> {
    let shared = Path::new("/dev/shm");
    let found = rustix::fs::statvfs(shared)?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    if free > MOST {
        bail!(
            "a small file system is needed: allow user namespaces (`unshare -rm true` from util-linux), run as root with \
             CAP_SYS_ADMIN, or give this container a /dev/shm of less than 1 GiB (docker run --shm-size=64m)"
        );
    }
    ensure!(free > 2 * kib * 1024, "/dev/shm has no room for {} KiB", 2 * kib);
    let small = tempfile::tempdir_in(shared)?;
    let filling = (free - kib * 1024).to_string();
    succeed(Command::new("fallocate").args(["-l", &filling, "filling"]).current_dir(small.path()))?;
    let inside = small.path().join("small");
    std::fs::create_dir(&inside)?;
    said(Command::new("sh").args(["-ec", script]).current_dir(place).env("SMALL", &inside))
}

fn said(command: &mut Command) -> Result<String> {
    Ok(String::from_utf8_lossy(&succeed(command)?.stdout).into_owned())
}
