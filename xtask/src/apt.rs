//! Packages of this system, by apt: installed where a program is missing, or named in the command that installs them.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::{Result, bail};

use crate::shell::{find, output, run, shown};

/// Installs the packages of those programs that are not there.
pub fn provide(programs: &[(&str, &str)]) -> Result<()> {
    let missing = programs.iter().filter(|(_, program)| find(program).is_none());
    let missing: Vec<String> = missing.map(|&(package, _)| package.to_owned()).collect();
    if missing.is_empty() { Ok(()) } else { install(&missing) }
}

/// Installs packages.
pub fn install(packages: &[String]) -> Result<()> {
    let root = output(Command::new("id").arg("-u"))?.trim() == "0";
    let sudo = || {
        let asked =
            Command::new("sudo").args(["-n", "true"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    };
    let apt = |arguments: &[&str]| {
        let mut command = Command::new(if root { "env" } else { "sudo" });
        command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]).args(arguments);
        command
    };
    let mut install = apt(&["install", "--yes", "--no-install-recommends"]);
    install.args(packages);
    if find("apt-get").is_none() || !(root || sudo()) {
        bail!(
            "these packages are missing and cannot be installed without rights; run\n  {}",
            shown(&install).replacen("env ", "sudo ", 1)
        );
    }
    // apt says how much that is before it begins, and then what it does.
    eprintln!("not installed, and needed: {}; apt-get installs them", packages.join(", "));
    if !lists_are_fresh() {
        run(&mut apt(&["update"]))?;
    }
    if run(&mut install).is_err() {
        // Lists may be younger than a day and still name packages that the mirror has replaced.
        run(&mut apt(&["update"]))?;
        run(&mut install)?;
    }
    Ok(())
}

/// Whether apt knows packages, and learned of them within a day.
fn lists_are_fresh() -> bool {
    let Ok(lists) = fs::read_dir(Path::new("/var/lib/apt/lists")) else { return false };
    let newest = lists
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().contains("Packages"))
        .filter_map(|entry| entry.metadata().ok()?.modified().ok())
        .max();
    let age = newest.and_then(|newest| SystemTime::now().duration_since(newest).ok());
    age.is_some_and(|age| age < Duration::from_secs(24 * 60 * 60))
}
