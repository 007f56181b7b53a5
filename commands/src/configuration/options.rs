//! Options of command lines from variables and configuration files.
//!
//! Each option that declares a variable `DISTLTO_KEY` has a key `key` in both files. A file's value becomes the option's
//! default, so a command line counts most, then a variable, the checkout's file and the user's. The option's own parser
//! checks it. `[remote]` has rules of its own.

use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Id, Parser};
use distlto_planner::response;
use distlto_planner::words::path_of;
use distlto_prepare::exit;
use distlto_prepare::message::note;
use distlto_prepare::mutex::lock;
use distlto_prepare::warning::warn;

use super::file::{CheckoutFile, ConfigError, Key, Tables, UserFile};
use super::trust::{ConfigFiles, ConfigPlaces, is_harmless};
use crate::link::args::LinkArgs;
use crate::store;

/// Holds options of `distlto link`, quoted as in a response file. They come before those of the command line.
pub const VARIABLE: &str = "DISTLTO_LINK_OPTIONS";

/// The warnings of this process about files.
static WARNED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The likeness from which one name may be a mistyped other one: of 0 to 1.
const ALIKE: f64 = 0.85;

/// The beginning of an option's variable.
const PREFIX: &str = "DISTLTO_";

/// Variables that are no option of `distlto link`, without their beginning.
const OTHERS: [&str; 10] = [
    "CONFIG",
    "DISTRIBUTE_OPTIONS",
    "DTLTO_OPTIONS",
    "HOOK",
    "IMPORT",
    "LEDGER",
    "LINK_OPTIONS",
    "NOTES_FD",
    "REMOTE_HEADERS",
    "SERVICE",
];

/// A value of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileValue {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// As on a command line, with paths from the file's folder.
    pub values: Vec<String>,
}

/// The options that files set, by key.
pub type FileOptions = BTreeMap<String, FileValue>;

/// The key of an option in configuration files, if it has one.
pub fn key(option: &Arg) -> Option<String> {
    let name = option.get_env()?.to_str()?.strip_prefix(PREFIX)?;
    (!name.starts_with("REMOTE")).then(|| name.to_ascii_lowercase().replace('_', "-"))
}

/// All options that have a key, as `distlto link` defines them.
pub fn all() -> Vec<(String, Arg)> {
    let command = LinkArgs::augment_args(Command::new("distlto"));
    command.get_arguments().filter_map(|option| Some((key(option)?, option.clone()))).collect()
}

/// The options of the files that there are. Those that only a trusted checkout may set are warned of and ignored: whoever
/// builds an unfamiliar checkout gets its build.
pub fn of_files(files: &ConfigFiles) -> Result<FileOptions, ConfigError> {
    let checkout = files.checkout.iter().map(|found| (&found.path, &found.keys, CheckoutFile::NAMES));
    let user = files.user.iter().map(|found| (&found.path, &found.keys, UserFile::NAMES));
    let user_path = files.user.as_ref().map(|user| user.path.as_path());
    let options = all();
    let mut found = FileOptions::new();
    for (path, keys, tables) in checkout.chain(user) {
        for key in keys.iter().filter(|key| !is_of_table(&key.name, tables)) {
            let value = checked(key, &options, path)?;
            let is_ignored =
                Some(path.as_path()) != user_path && !files.is_trusted && !is_harmless(&key.name);
            if is_ignored {
                let (path, remedy) = (path.display(), ConfigFiles::declare(path, user_path));
                let text = format!("{path} sets {}, which is ignored; {remedy}", key.name);
                // A process may read the files more than once.
                if lock(&WARNED).insert(text.clone()) {
                    warn(text);
                }
                continue;
            }
            found.entry(key.name.clone()).or_insert(value);
        }
    }
    Ok(found)
}

/// The options of the files that this process finds.
fn found() -> Result<FileOptions, ConfigError> {
    of_files(&ConfigFiles::read(&ConfigPlaces::of_process())?)
}

/// The folder for the records of links ([`store::links`]), for commands without the option `--cache`.
pub fn links(state: Option<&str>) -> Option<String> {
    let of_files = || match found() {
        Ok(mut found) => found.remove("cache")?.values.pop().map(PathBuf::from),
        Err(error) => {
            warn(format_args!("{error}: `cache` of configuration files is not used"));
            None
        }
    };
    let named = std::env::var_os(store::VARIABLE).map(PathBuf::from);
    store::links(state, named.or_else(of_files).as_deref())
}

/// Whether a key is that of a table, or in it.
fn is_of_table(name: &str, tables: &[&str]) -> bool {
    tables.contains(&name.split('.').next().unwrap_or(name))
}

/// Checks a value as the command line does.
fn checked(key: &Key, options: &[(String, Arg)], path: &Path) -> Result<FileValue, ConfigError> {
    let (line, column) = key.place;
    let wrong = |what: String| ConfigError::Malformed { path: path.to_owned(), line, column, what };
    let Some((name, option)) = options.iter().find(|(name, _)| *name == key.name) else {
        let names: Vec<_> = options.iter().map(|(name, _)| name.as_str()).collect();
        let of_servers =
            key.name.strip_prefix("remote-").map(|rest| format!("`{rest}` of the table [remote]"));
        let meant = of_servers.or_else(|| Some(format!("`{}`", similar(&key.name, names.iter().copied())?)));
        let advice = match meant {
            Some(meant) => format!("did you mean {meant}?"),
            None => format!("options are {}; the table is [remote]", names.join(", ")),
        };
        return Err(wrong(format!("unknown key `{}`; {advice}", key.name)));
    };
    let values =
        key.values.as_deref().ok_or_else(|| wrong(format!("`{name}` is an option, and no table")))?;
    if !option.get_action().takes_values() {
        let is_count = matches!(option.get_action(), ArgAction::Count);
        match values {
            [times] if is_count && times.parse::<u8>().is_ok() => {}
            [value] if !is_count && (value == "true" || value == "false") => {}
            _ if is_count => return Err(wrong(format!("`{name}` is a number, such as 1"))),
            _ => return Err(wrong(format!("`{name}` is true or false"))),
        }
        return Ok(FileValue { file: path.to_owned(), line, values: values.to_vec() });
    }
    let is_list = matches!(option.get_action(), ArgAction::Append);
    if values.len() != 1 && !is_list {
        return Err(wrong(format!("`{name}` has one value")));
    }
    let words = values.iter().map(|value| format!("--{name}={value}"));
    let command = Command::new("distlto").no_binary_name(true).arg(option.clone().env(None::<&str>));
    if let Err(error) = command.try_get_matches_from(words) {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        return Err(wrong(first.trim_start_matches("error: ").to_owned()));
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let resolved = |value: &String| match is_path(option) {
        true => folder.join(value).to_string_lossy().into_owned(),
        false => value.clone(),
    };
    Ok(FileValue { file: path.to_owned(), line, values: values.iter().map(resolved).collect() })
}

/// Whether the value is the path of a file.
fn is_path(option: &Arg) -> bool {
    let is_named = |names: &[clap::builder::Str]| names.iter().any(|name| name == "DIR" || name == "FILE");
    option.get_value_parser().type_id() == TypeId::of::<PathBuf>()
        || option.get_value_names().is_some_and(is_named)
}

/// The matches of a command line, with variables and the values of files. An option on the command line turns off those of
/// options that conflict with it.
pub fn matches(
    command: Command,
    words: &[OsString],
    files: impl FnOnce() -> FileOptions,
) -> Result<ArgMatches, clap::Error> {
    let Ok(line) = with_sources(command.clone(), None, &[]).try_get_matches_from(words) else {
        // The answer, such as a help text, has variables.
        return command.try_get_matches_from(words);
    };
    let (given, found) = match given(&command, &line) {
        Some((below, line)) if below.get_arguments().any(|option| key(option).is_some()) => {
            (conflicting(below, line), files())
        }
        _ => (Vec::new(), FileOptions::new()),
    };
    with_sources(command, Some(&found), &given).try_get_matches_from(words)
}

/// The command that a line names, with its matches; none if it is another program's.
fn given<'m>(command: &'m Command, line: &'m ArgMatches) -> Option<(&'m Command, &'m ArgMatches)> {
    match line.subcommand() {
        Some((name, line)) => given(command.find_subcommand(name)?, line),
        None => Some((command, line)),
    }
}

/// The options that conflict with one on the command line.
fn conflicting(command: &Command, line: &ArgMatches) -> Vec<Id> {
    let is_given =
        |option: &Arg| line.value_source(option.get_id().as_str()) == Some(ValueSource::CommandLine);
    let mut found = Vec::new();
    for option in command.get_arguments() {
        for other in command.get_arg_conflicts_with(option) {
            found.extend(is_given(option).then(|| other.get_id().clone()));
            found.extend(is_given(other).then(|| option.get_id().clone()));
        }
    }
    found
}

/// A command and those below it with the values of files as defaults; without files, variables do not count either, and
/// neither do both for the options that are `off`.
fn with_sources(command: Command, found: Option<&FileOptions>, off: &[Id]) -> Command {
    let command = command.mut_args(|option| match found {
        Some(found) if !off.contains(option.get_id()) => match key(&option).and_then(|key| found.get(&key)) {
            Some(value) => option.default_values(value.values.clone()),
            None => option,
        },
        _ => option.env(None::<&str>),
    });
    command.mut_subcommands(|below| with_sources(below, found, off))
}

/// The known name that is meant by a mistyped one.
pub fn similar<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    // A common beginning makes no two names alike.
    let bare = |name: &str| name.strip_prefix(PREFIX).unwrap_or(name).to_owned();
    let likeness = |known: &&str| strsim::jaro_winkler(&bare(name), &bare(known));
    let found =
        known.map(|known| (likeness(&known), known)).max_by(|one, other| one.0.total_cmp(&other.0))?;
    (found.0 > ALIKE).then_some(found.1)
}

/// Variables that are named like options and are none: perhaps mistyped.
fn unknown(names: impl Iterator<Item = String>) -> Vec<String> {
    let command = LinkArgs::augment_args(Command::new("distlto"));
    let is_option =
        |name: &str| command.get_arguments().any(|option| option.get_env().is_some_and(|own| own == name));
    let is_known = |name: &str| {
        name.strip_prefix(PREFIX).is_none_or(|rest| rest.starts_with("TEST_") || OTHERS.contains(&rest))
    };
    names.filter(|name| !is_known(name) && !is_option(name)).collect()
}

/// Parses the arguments of a program, with the options of configuration files and of [`VARIABLE`]. What is wrong ends it,
/// and so does a question that the arguments answer themselves, such as `--help`.
pub fn parse<P: Parser>(words: Vec<OsString>) -> P {
    let files = || {
        for name in unknown(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())) {
            let known =
                all().into_iter().filter_map(|(_, option)| Some(option.get_env()?.to_str()?.to_owned()));
            let known: Vec<String> = known.collect();
            let advice = match similar(&name, known.iter().map(String::as_str)) {
                Some(meant) => format!("did you mean {meant}?"),
                None => "`distlto config` lists the options".to_owned(),
            };
            let text = format!("{name} is no variable of distlto; {advice}");
            if store::is_first(&text) {
                warn(format_args!("{text} (said once)"));
            }
        }
        found().unwrap_or_else(|error| {
            exit::print(&error);
            std::process::exit(exit::code_of(&error).into())
        })
    };
    let words = with_variable(words);
    let matches = matches(P::command(), &words, files);
    let parsed = matches.and_then(|matches| P::from_arg_matches(&matches));
    parsed.unwrap_or_else(|answer| refuse(with_tip(answer, P::command(), &words)))
}

/// Adds a tip to a refusal: options of a build's links belong into a variable, the command of `distlto link` behind `--`, and
/// a wrong value may be a variable's.
fn with_tip(mut answer: clap::Error, mut command: Command, words: &[OsString]) -> clap::Error {
    command.build();
    let first = words.get(1).map(|word| word.as_encoded_bytes()).unwrap_or_default();
    let tip = match answer.kind() {
        ErrorKind::UnknownArgument if first == b"link" && !words.iter().any(|word| word == "--") => {
            "the link command stands behind --: distlto link -- clang++ ...".to_owned()
        }
        ErrorKind::UnknownArgument
            if first.starts_with(b"-") && command.is_allow_external_subcommands_set() =>
        {
            let shown = words[1..].iter().map(|word| word.to_string_lossy().into_owned());
            let (options, build): (Vec<_>, Vec<_>) = shown.partition(|word| word.starts_with('-'));
            let options =
                if options.len() == 1 { options.concat() } else { format!("'{}'", options.join(" ")) };
            let build = if build.is_empty() { "make".to_owned() } else { build.join(" ") };
            format!("the options of a build's links are in {VARIABLE}: {VARIABLE}={options} distlto {build}")
        }
        ErrorKind::ValueValidation | ErrorKind::InvalidValue => match variable_of(&answer) {
            Some(name) => format!("this is the value of {name}"),
            None => return answer,
        },
        _ => return answer,
    };
    answer.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    answer
}

/// The variable that has the value that is refused.
fn variable_of(answer: &clap::Error) -> Option<String> {
    let text = |kind| match answer.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (option, value) = (text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?);
    let mut command = LinkArgs::augment_args(Command::new("distlto"));
    command.build();
    let mut options = command.get_arguments().filter(|known| known.to_string() == option);
    let name = options.find_map(|known| known.get_env()?.to_str())?;
    std::env::var(name).is_ok_and(|found| found == value).then(|| name.to_owned())
}

/// The words with those of [`VARIABLE`], if they are of `distlto link`.
pub fn with_variable(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_some_and(|name| name == "link") {
        let text = std::env::var_os(VARIABLE).unwrap_or_default();
        let options = response::tokenize(text.as_encoded_bytes());
        words.splice(2..2, options.iter().map(|word| path_of(word).into_os_string()));
    }
    words
}

/// Ends the process with clap's answer, below the options of [`VARIABLE`].
pub fn refuse(answer: clap::Error) -> ! {
    if answer.use_stderr()
        && let Some(text) = std::env::var_os(VARIABLE).filter(|text| !text.is_empty())
    {
        note(format_args!("{VARIABLE} is {}", text.to_string_lossy()));
    }
    exit::refuse(answer)
}
