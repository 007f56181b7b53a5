//! The command line of `distlto-prepare`, for its own program and for the subcommand `prepare` of `distlto`.
//!
//! Knows the options and where the results go; unpacking itself is [`crate::unpack`].

use std::path::{Path, PathBuf};

use crate::error::PrepareError;
use crate::unpack::{self, LinkerType};
use crate::warning::warn;
use crate::write;

/// Unpack an archive into member objects and a manifest
///
/// The results are those of the stock tools of Buck2's prelude, whose rules read them, with six differences. What linkers
/// ignore in an archive (text, empty members, metadata of rlibs) is left out. The members of a nested archive stand in its
/// place. Those of a thin archive are copied into the objects directory. Names that do not end in `.o` get that end, since
/// drivers go by it. Spaces, quotes and what is not ASCII are percent-encoded in names of files, since the rules write
/// these into argument files without quotes. An archive without objects has one that is empty, since the rule for gnu
/// fails without any.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = crate::exit::help())]
pub struct PrepareArgs {
    /// Unpack this archive
    ///
    /// GNU, BSD, COFF or AIX format, thin or regular, an rlib, or a Mach-O universal file. Archives inside of it
    /// are unpacked too.
    #[arg(long, value_name = "FILE")]
    pub archive: PathBuf,
    /// Put the members into this directory
    ///
    /// It is made if missing, and holds members of this archive and nothing else. A member is written only if its content
    /// differs.
    #[arg(long, value_name = "DIR")]
    pub objects_out: PathBuf,
    /// Write the manifest as JSON (- for standard output)
    ///
    /// It lists the objects: by their paths for the rule for gnu, by the names of their files for the rule for Darwin.
    #[arg(long, value_name = "FILE")]
    pub manifest_out: Option<PathBuf>,
    /// Write the bitcode of FatLTO members instead of their native objects
    #[arg(long)]
    pub fat_lto: bool,
    /// Take this slice of a universal file, named as for clang -arch; the manifest is that of the rule for Darwin
    #[arg(long, value_name = "ARCH")]
    target_architecture: Option<String>,
    /// The tool for universal files; not needed; the manifest is that of the rule for Darwin
    #[arg(long, value_name = "FILE")]
    lipo: Option<PathBuf>,
    /// The archive's name in the build; not looked at
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The archiver; not needed
    #[arg(long, value_name = "FILE")]
    ar: Option<PathBuf>,
}

/// Unpacks and writes the manifest; the exit code is 0.
pub fn run(args: &PrepareArgs) -> Result<u8, PrepareError> {
    let linker = match args.target_architecture.is_some() || args.lipo.is_some() {
        true => LinkerType::Darwin,
        false => LinkerType::Gnu,
    };
    let unpacked = unpack::unpack(&unpack::Unpack {
        linker,
        archive: &args.archive,
        directory: &args.objects_out,
        architecture: args.target_architecture.as_deref(),
        fat_lto: args.fat_lto,
    })?;
    let manifest = unpacked.manifest(linker, &args.objects_out)?;
    warn_of_left_out(&args.archive, &unpacked);
    match &args.manifest_out {
        Some(path) if path.as_os_str() == "-" => write::to_standard_output(manifest.as_bytes())?,
        Some(path) => {
            write::write_if_changed(path, manifest.as_bytes())?;
        }
        None => {}
    }
    Ok(0)
}

/// Warns as lld does when it is given the archive; the manifest does not list these members.
fn warn_of_left_out(archive: &Path, unpacked: &unpack::Unpacked) {
    if let Some((name, kind)) = unpacked.left_out.first() {
        let archive = archive.display();
        let more = match unpacked.left_out.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more like it"),
        };
        warn(format_args!(
            "{archive}: the member `{name}` is {kind} and not an object; it is left out{more}"
        ));
    }
}
