//! Terminals of a test's own: a pseudo-terminal's two ends.
//!
//! Knows nothing of what is drawn.

use std::fs::File;
use std::os::fd::OwnedFd;

use anyhow::Result;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// A terminal of so many columns: the end of whoever sits before it, which types by writing, and the program's end.
pub fn open(columns: u16) -> Result<(File, OwnedFd)> {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&terminal)?;
    unlockpt(&terminal)?;
    let name = ptsname(&terminal, Vec::new())?;
    let theirs: OwnedFd = File::options().read(true).write(true).open(name.to_str()?)?.into();
    tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
    Ok((File::from(terminal), theirs))
}
