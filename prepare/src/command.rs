//! The command line of `distlto-prepare`, for its own program and for the subcommand `prepare` of `distlto`.
//!
//! Knows the options and where the results go; unpacking itself is [`crate::unpack`].

use std::path::PathBuf;

use crate::error::Error;
use crate::manifest::Manifest;
use crate::store::Store;
use crate::unpack::{self, Unpack};
use crate::write;

/// Unpack an archive into a directory of member objects.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The archive: GNU, BSD, COFF or AIX format, thin or regular, an rlib, or a Mach-O universal file.
    #[arg(long, value_name = "FILE")]
    pub archive: PathBuf,
    /// Where the members go; made if missing. Members the archive no longer has are removed from it.
    #[arg(long, value_name = "DIR")]
    pub objects_out: PathBuf,
    /// Write the manifest, JSON, to this file (`-` for standard output).
    #[arg(long, value_name = "FILE")]
    pub manifest_out: Option<PathBuf>,
    /// Keep unpacked members in this store and take them from there.
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// The slice of a universal file to take, named as for `clang -arch`.
    #[arg(long, value_name = "ARCH")]
    pub architecture: Option<String>,
    /// Write the bitcode of FatLTO members instead of their native objects.
    #[arg(long)]
    pub fat_lto: bool,
}

/// Unpacks and writes the manifest; the exit code is 0.
pub fn run(args: Args) -> Result<u8, Error> {
    let store = args.store.as_deref().map(Store::open).transpose()?;
    let manifest = unpack::unpack(&Unpack {
        archive: &args.archive,
        directory: &args.objects_out,
        store: store.as_ref(),
        architecture: args.architecture.as_deref(),
        fat_lto: args.fat_lto,
    })?;
    if let Some(trouble) = store.as_ref().and_then(Store::trouble) {
        eprintln!("warning: {trouble}");
    }
    write_manifest(&args, &manifest)?;
    Ok(0)
}

fn write_manifest(args: &Args, manifest: &Manifest) -> Result<(), Error> {
    match &args.manifest_out {
        Some(path) if path.as_os_str() == "-" => write::to_standard_output(manifest.to_json().as_bytes())?,
        Some(path) => {
            write::write_if_changed(path, manifest.to_json().as_bytes())?;
        }
        None => {}
    }
    Ok(())
}
