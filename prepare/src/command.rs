//! The command line of `distlto-prepare`, for its own program and for the subcommand `prepare` of `distlto`.
//!
//! Knows the options and where the results go; unpacking itself is [`crate::unpack`], and [`crate::buck2`] in the form
//! that Buck2's rules read.

use std::path::{Path, PathBuf};

use crate::buck2::{self, LinkerType};
use crate::error::PrepareError;
use crate::store::Store;
use crate::unpack::{self, Unpack};
use crate::warning::warn;
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
    /// only if its content differs. In Buck2's form it holds members and nothing else.
    #[arg(long, value_name = "DIR")]
    pub objects_out: PathBuf,
    /// Write the manifest as JSON (- for standard output)
    ///
    /// It lists every member in the archive's order: its name, what kind of file it is, its size, and, if it was
    /// written, its file and digest. Buck2's form lists the objects alone.
    #[arg(long, value_name = "FILE")]
    pub manifest_out: Option<PathBuf>,
    /// Keep unpacked members in this store, and take them from there
    ///
    /// An unmodified archive is then never unpacked twice. Several runs may use one store at a time;
    /// `distlto cache prune` keeps it small.
    #[arg(long, value_name = "DIR", conflicts_with = "buck2")]
    pub store: Option<PathBuf>,
    /// Take this slice of a universal file, named as for clang -arch
    #[arg(long, value_name = "ARCH", conflicts_with = "buck2")]
    pub architecture: Option<String>,
    /// Write the bitcode of FatLTO members instead of their native objects
    #[arg(long)]
    pub fat_lto: bool,
    #[command(
        flatten,
        next_help_heading = "Options of Buck2's rules, which give objects directory and manifest the form that these read"
    )]
    buck2: Buck2,
}

/// The options that only Buck2's rules give. They decide the form of the results.
#[derive(Debug, Clone, clap::Args)]
#[group(id = "buck2", multiple = true)]
struct Buck2 {
    /// The archive's name in the build; not looked at
    ///
    /// The results are those of Buck2's stock tools, with six differences. What linkers ignore in an archive (text, empty
    /// members, metadata of rlibs) is left out. The members of a nested archive stand in its place. Those of a thin
    /// archive are copied into the objects directory. Names that do not end in `.o` get that end, since drivers go by it.
    /// Spaces, quotes and what is not ASCII are percent-encoded in names of files, since the rules write these into
    /// argument files without quotes. An archive without objects has one that is empty, since the rule for gnu fails
    /// without any.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The archiver; not needed
    #[arg(long, value_name = "FILE")]
    ar: Option<PathBuf>,
    /// Take this slice of a universal file; the manifest is that of the rule for Darwin
    #[arg(long, value_name = "ARCH")]
    target_architecture: Option<String>,
    /// The tool for universal files; not needed; the manifest is that of the rule for Darwin
    #[arg(long, value_name = "FILE")]
    lipo: Option<PathBuf>,
}

impl Buck2 {
    /// Returns the kind of manifest that is asked for, if it is one of Buck2's.
    fn linker(&self) -> Option<LinkerType> {
        if self.target_architecture.is_some() || self.lipo.is_some() {
            Some(LinkerType::Darwin)
        } else {
            (self.name.is_some() || self.ar.is_some()).then_some(LinkerType::Gnu)
        }
    }
}

/// Unpacks and writes the manifest; the exit code is 0.
pub fn run(args: Args) -> Result<u8, PrepareError> {
    let manifest = match args.buck2.linker() {
        Some(linker) => for_buck2(&args, linker)?,
        None => in_general(&args)?,
    };
    match &args.manifest_out {
        Some(path) if path.as_os_str() == "-" => write::to_standard_output(manifest.as_bytes())?,
        Some(path) => {
            write::write_if_changed(path, manifest.as_bytes())?;
        }
        None => {}
    }
    Ok(0)
}

fn in_general(args: &Args) -> Result<String, PrepareError> {
    let store = Store::of_run(args.store.as_deref())?;
    let manifest = unpack::unpack(&Unpack {
        archive: &args.archive,
        directory: &args.objects_out,
        store: store.as_ref(),
        architecture: args.architecture.as_deref(),
        fat_lto: args.fat_lto,
    })?;
    if let Some(trouble) = store.as_ref().and_then(Store::trouble) {
        warn(trouble);
    }
    Ok(manifest.to_json())
}

fn for_buck2(args: &Args, linker: LinkerType) -> Result<String, PrepareError> {
    let unpacked = buck2::unpack(&buck2::RuleUnpack {
        linker,
        archive: &args.archive,
        directory: &args.objects_out,
        architecture: args.buck2.target_architecture.as_deref(),
        fat_lto: args.fat_lto,
    })?;
    let manifest = unpacked.manifest(linker, &args.objects_out)?;
    warn_of_left_out(&args.archive, &unpacked);
    Ok(manifest)
}

/// Warns as lld does when it is given the archive; the manifest does not list these members.
fn warn_of_left_out(archive: &Path, unpacked: &buck2::Unpacked) {
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
