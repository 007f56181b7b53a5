//! GNU make and Ninja of Debian's unstable release: the first of either that have job slots in a fifo, 4.4 and 1.13.
//!
//! They lie in a folder of their own with the libraries that they need. Nothing of the system is touched.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::debian::{self, Closure};
use crate::shell::{remove, target};

const CLOSURE: Closure =
    Closure { packages: &["make", "ninja-build"], without: &["python3", "guile-3.0-libs"], release: "sid" };

const PROGRAMS: [&str; 2] = ["make", "ninja"];

/// Makes them usable: 10 MiB to download.
pub fn install() -> Result<()> {
    let to = folder();
    // Scripts name the folder, so a copy of it is of no use.
    let is_here = fs::read_to_string(to.join("make"))
        .is_ok_and(|text| text.contains(&*to.join("usr/bin").to_string_lossy()));
    if is_here {
        return Ok(());
    }
    remove(&to)?;
    // Renamed when it is whole.
    let partial = to.with_extension("partial");
    remove(&partial)?;
    debian::unpack_closure(&CLOSURE, &to.with_extension("downloads"), &partial)?;
    for program in PROGRAMS {
        let real = format!("usr/bin/{program}");
        fs::metadata(partial.join(&real)).with_context(|| format!("the packages hold no {real}"))?;
        debian::wrap(&partial, &to, &real, program)?;
    }
    Ok(fs::rename(partial, to)?)
}

fn folder() -> PathBuf {
    target().join("builders")
}
