//! The command line of `distlto-prepare`, for its own program and for the subcommand `prepare` of `distlto`.
//!
//! Knows the options and where the results go; unpacking itself is [`crate::unpack`].

use std::path::PathBuf;

use crate::error::Error;
use crate::manifest::Manifest;
use crate::store::Store;
use crate::unpack::{self, Unpack};
use crate::write;

/// Unpack an archive into member objects and a manifest
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = crate::exit::help())]
pub struct Args {
    /// Unpack this archive
    ///
    /// GNU, BSD, COFF or AIX format, thin or regular, an rlib, or a Mach-O universal file. Archives inside of it
    /// are unpacked too.
    #[arg(long, value_name = "FILE")]
    pub archive: PathBuf,
    /// Put the members into this directory
    ///
    /// It is made if missing. Members that the archive no longer has are removed from it, and a member is written
    /// only if its content differs.
    #[arg(long, value_name = "DIR")]
    pub objects_out: PathBuf,
    /// Write the manifest as JSON (- for standard output)
    ///
    /// It lists every member in the archive's order: its name, what kind of file it is, its size, and, if it was
    /// written, its file and digest.
    #[arg(long, value_name = "FILE")]
    pub manifest_out: Option<PathBuf>,
    /// Keep unpacked members in this store, and take them from there
    ///
    /// An unmodified archive is then never unpacked twice. Several runs may use one store at a time;
    /// `distlto cache prune` keeps it small.
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// Take this slice of a universal file, named as for clang -arch
    #[arg(long, value_name = "ARCH")]
    pub architecture: Option<String>,
    /// Write the bitcode of FatLTO members instead of their native objects
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
