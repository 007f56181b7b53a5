//! Copying one file for a build system: content and mode, atomically.
//!
//! `distlto copy` takes the options of Buck2's `dist_lto_copy`, which is Python's `shutil.copy`. Does not depend on the
//! content of the file.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::PrepareError;
use crate::input::Input;
use crate::io_error::IoError;
use crate::write;

/// The bits of a mode that `chmod` sets.
const MODE: u32 = 0o7777;

/// Copy a file, its mode included
///
/// Takes the options of Buck2's dist_lto_copy. The file is whole at every moment. A symbolic link is followed.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = crate::exit::help())]
pub struct CopyArgs {
    /// Copy this file
    #[arg(long, value_name = "FILE")]
    pub from: PathBuf,
    /// Write it to this file, or under its own name into this directory
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
}

/// Copies; the exit code is 0.
pub fn run(args: &CopyArgs) -> Result<u8, PrepareError> {
    match args.from.file_name() {
        Some(name) if args.to.is_dir() => copy(&args.from, &args.to.join(name))?,
        _ => copy(&args.from, &args.to)?,
    }
    Ok(0)
}

/// Makes `to` a file with the content and the mode of the regular file `from`, unless it is one.
pub fn copy(from: &Path, to: &Path) -> Result<(), PrepareError> {
    let source = fs::metadata(from).map_err(IoError::on("read", from))?;
    if !source.is_file() {
        return Err(PrepareError::NotRegular { path: from.to_owned() });
    }
    let mode = source.permissions().mode() & MODE;
    let target = fs::metadata(to).ok().filter(|target| target.is_file() && target.len() == source.len());
    if let Some(target) = target
        && write::holds(to, &Input::open(from)?)?
    {
        if target.permissions().mode() & MODE != mode {
            fs::set_permissions(to, Permissions::from_mode(mode))
                .map_err(IoError::on("change the mode of", to))?;
        }
        return Ok(());
    }
    let mut source = fs::File::open(from).map_err(IoError::on("read", from))?;
    write::place(to, |temporary| {
        let mut target = fs::File::create_new(temporary)?;
        // The kernel copies, or shares the blocks where the file system can.
        std::io::copy(&mut source, &mut target)?;
        target.set_permissions(Permissions::from_mode(mode))
    })?;
    Ok(())
}
