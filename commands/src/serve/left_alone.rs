//! Links that are left to their linkers, each with the reason.
//!
//! Does not decide how a served link is compiled.

use distlto_planner::link_command::LinkCommand;
use distlto_planner::link_line::{Argument, options};
use distlto_planner::link_options;
use distlto_planner::linker::coff;
use distlto_planner::linker::flavour::Flavour;
use distlto_planner::linker::options::{last, value};
use distlto_prepare::io_error::IoError;

use super::build::Build;
use super::linkers;
use super::process::Process;
use crate::link::state;

/// The linker's option for a distributor.
pub const DISTRIBUTOR: &str = "thinlto-distributor";
/// Why a link with that option is left alone.
pub const OWN_DISTRIBUTOR: &str = "the link has a distributor of its own";
/// The option by which a linker compiles the bitcode in native objects, without its dash.
const FAT_OBJECTS: &str = "fat-lto-objects";
/// Hold options of COFF's linker.
const COFF_VARIABLES: [&str; 2] = ["LINK", "_LINK_"];
/// Options that have another effect when a linker asks: they write its command line or its own objects to files, or
/// files that it then always or never writes.
const ALONE: [&str; 4] =
    ["reproduce", "lto-obj-path", "thinlto-emit-imports-files", "thinlto-emit-index-files"];
/// Options on the names of shards. A linker takes no notice of them while it links, and refuses them when it asks.
const ON_NAMES: [&str; 2] = ["thinlto-prefix-replace", "thinlto-object-suffix-replace"];
/// Options whose effect ours replace, so that the linker would not see a value that it refuses.
const REPLACED: [&str; 3] = [CACHE_POLICY, "thinlto-jobs", "threads"];
const CACHE_POLICY: &str = "thinlto-cache-policy";
/// Options that have the linker make a directory, and us none, or another one.
const DIRECTORIES: [&str; 2] = ["thinlto-cache-dir", SPLITS];
/// Asks for split debug information in a directory.
const SPLITS: &str = "plugin-opt=dwo_dir=";
/// Acts like lld's option `--reproduce`.
const REPRODUCE: &str = "LLD_REPRODUCE";

/// Returns why a link is its linker's; `None` for one that can be served.
pub fn why(
    build: &Build<'_>,
    process: &Process,
    link: &LinkCommand,
    flavour: Option<Flavour>,
) -> Result<Option<String>, IoError> {
    let arguments = link.line.arguments();
    let is_distributed = flavour.is_some_and(Flavour::is_distributed);
    let first = || {
        if link_options::writes_itself(arguments) {
            return Some("the line asks for output that only the linker writes".to_owned());
        }
        let undistributed = if is_distributed { undistributed(build, process, link) } else { None };
        undistributed.map(str::to_owned).or_else(|| by_option(arguments))
    };
    if let Some(why) = first() {
        return Ok(Some(why));
    }
    if flavour.is_none()
        && let Some(option) = refused(process, arguments).map_err(IoError::on("ask", &process.program))?
    {
        return Ok(Some(format!("the linker refuses {option}")));
    }
    Ok(without_directory(process, arguments).or_else(|| {
        // One that is gone needs no answer.
        let reproduces = process.has_variable(REPRODUCE).unwrap_or_default();
        let is_special = || state::is_special(&process.directory.join(link.line.output()));
        match reproduces {
            true => Some(format!("{REPRODUCE} asks for output that a linker writes only when it is alone")),
            false => is_special().then(|| "its output is no file".to_owned()),
        }
    }))
}

fn by_option(arguments: &[Argument]) -> Option<String> {
    let named = |names: &[&str]| names.iter().find_map(|name| last(arguments, name));
    if let Some(option) = named(&ALONE) {
        return Some(format!("--{} asks for output that a linker writes only when it is alone", option.name));
    }
    named(&ON_NAMES).map(|option| format!("--{} is for a thin link alone", option.name))
}

/// An option that ours would replace, and that the linker refuses.
fn refused(process: &Process, arguments: &[Argument]) -> std::io::Result<Option<String>> {
    for (name, option) in REPLACED.iter().filter_map(|name| Some((name, last(arguments, name)?))) {
        let is_number = |value: &str| value == "all" || value.parse::<u32>().is_ok();
        let is_plain = *name != CACHE_POLICY && value(option).is_some_and(is_number);
        if !is_plain && !linkers::accepts(process, option.words.iter())? {
            return Ok(Some(option.words.join(" ")));
        }
    }
    Ok(None)
}

fn without_directory(process: &Process, arguments: &[Argument]) -> Option<String> {
    let is_no_directory = |value: &&str| {
        let directory = process.directory.join(value);
        directory.ancestors().find(|place| place.exists()).is_some_and(|place| !place.is_dir())
    };
    let mut values = DIRECTORIES.iter().filter_map(|name| value(last(arguments, name)?));
    values.find(is_no_directory).map(|value| format!("no directory can be made at {value}"))
}

/// Returns why a linker for Windows links without a distributor.
fn undistributed(build: &Build<'_>, process: &Process, link: &LinkCommand) -> Option<&'static str> {
    let arguments = link.line.arguments();
    let is_ascii = |argument: &Argument| match argument {
        Argument::Input(input) => input.is_ascii(),
        _ => true,
    };
    let has_options = COFF_VARIABLES.iter().any(|name| process.has_variable(name).unwrap_or_default());
    match () {
        () if options(arguments).any(|option| option.name == coff::LIBRARY) => Some("it makes a library"),
        () if last(arguments, DISTRIBUTOR).is_some() => Some(OWN_DISTRIBUTOR),
        () if last(arguments, SPLITS).is_some() => Some("a distributor does not split debug information"),
        // The linker writes other names than theirs into shards.
        () if !arguments.iter().all(is_ascii) => Some("a distributor cannot name an input beyond ASCII"),
        () if has_fat_objects(arguments) => Some("a distributor compiles no FatLTO objects"),
        () if build.options.flags_from.is_some() => {
            Some("a distributor has one set of flags for all modules")
        }
        () => has_options.then_some("LINK or _LINK_ has options"),
    }
}

/// Whether the last word on FatLTO objects has them compiled; the other one ends in `:no`.
fn has_fat_objects(arguments: &[Argument]) -> bool {
    let words = options(arguments).flat_map(|option| &option.words);
    let mut words = words.map(|word| word.trim_start_matches(['-', '/']));
    words.rfind(|word| word.starts_with(FAT_OBJECTS)).is_some_and(|word| word == FAT_OBJECTS)
}
