//! `distlto config`: each option of a link with its value and the place that it comes from.
//!
//! The options are in `options`, the files in `file`; `trust` decides which files count. Values that may be secret are not
//! printed.

pub mod file;
pub mod options;
pub mod trust;

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command};
use distlto_executor::cache::store::limits::default_size;
use distlto_executor::variables::REMOTE_HEADERS;
use distlto_prepare::exit;
use distlto_prepare::text::printable;
use distlto_prepare::write::to_standard_output;
use distlto_record::progress::text::size;
use serde::Serialize;
use serde_json::json;

use crate::link::args::LinkArgs;
use crate::remote::values::{ChosenServer, UrlText, parse_headers};
use crate::store::own_cache;
use file::{ConfigError, Key};
use trust::{ConfigFiles, ConfigPlaces, Sourced};

/// Print each option of a link with its value and where that comes from
///
/// A command line counts most, then the variable, then distlto.toml of the project (in the working directory or above it,
/// up to that of the repository), then the user's ~/.config/distlto/config.toml. A key of these files is the name of an
/// option without its dashes, such as jobs = 8, and options of servers are in the table [remote]. DISTLTO_CONFIG names another file than the
/// user's; if it is empty, no file is read.
#[derive(Debug, Args)]
#[command(after_help = exit::help())]
pub struct ConfigArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// One option.
#[derive(Debug, Default, Serialize)]
struct Setting {
    option: String,
    /// The value as a command line has it; none if nothing sets it.
    value: Option<String>,
    /// A file with its line, a variable, or none for the default.
    origin: Option<String>,
}

/// Prints them.
pub fn run(args: &ConfigArgs) -> Result<u8, ConfigError> {
    let around = ConfigPlaces::of_process();
    let files = ConfigFiles::read(&around)?;
    let found = options::of_files(&files)?;
    let command = LinkArgs::augment_args(Command::new("distlto"));
    let mut words = options::with_variable(["distlto", "link", "--", "linker"].map(Into::into).to_vec());
    words.remove(1);
    let matches = options::matches(command.clone(), &words, || found.clone());
    let matches = matches.unwrap_or_else(|answer| options::refuse(answer));
    let mut settings = Vec::new();
    for option in command.get_arguments().filter(|option| option.get_env().is_some()) {
        settings.extend(match options::key(option) {
            Some(key) => {
                let place = found.get(&key).map(|value| place(&value.file, value.line));
                vec![setting(option, &matches, place)]
            }
            None => remote(option, &matches, &files),
        });
    }
    settings.extend(headers(&around, &files));
    settings.sort_by(|one, other| one.option.cmp(&other.option));
    let text = if args.json { json(&settings) } else { table(&settings, &command) };
    to_standard_output(text.as_bytes()).map_err(ConfigError::from)?;
    Ok(0)
}

/// An option by its own rules. `place` is where a file sets it.
fn setting(option: &Arg, matches: &ArgMatches, place: Option<String>) -> Setting {
    let (id, name) = (option.get_id().as_str(), option.get_long().unwrap_or_default());
    let origin = match matches.value_source(id) {
        Some(ValueSource::CommandLine) => Some(options::VARIABLE.to_owned()),
        Some(ValueSource::EnvVariable) => option.get_env().map(|name| name.to_string_lossy().into_owned()),
        _ => place,
    };
    let raw: Vec<_> =
        matches.get_raw(id).into_iter().flatten().map(|value| value.to_string_lossy()).collect();
    let value = match option.get_action() {
        ArgAction::Count => matches.get_count(id).to_string(),
        action if action.takes_values() => raw.join(" "),
        _ => matches.get_flag(id).to_string(),
    };
    Setting { option: name.to_owned(), value: origin.is_some().then_some(value), origin }
}

/// An option of servers. Files have it in the table `[remote]`.
fn remote(option: &Arg, matches: &ArgMatches, files: &ConfigFiles) -> Vec<Setting> {
    let own = setting(option, matches, None);
    let key = match own.option.strip_prefix("remote-") {
        Some(name) => format!("remote.{}", name.replacen("tls-", "tls.", 1)),
        None => "remote.url".to_owned(),
    };
    if key == "remote.platform" {
        return platform(own, files);
    }
    let mut setting = match own.origin {
        Some(_) => own,
        None => Setting { option: own.option, ..first_of(files, &key).unwrap_or_default() },
    };
    if ["remote.url", "remote.cache"].contains(&key.as_str()) {
        setting.value = setting.value.map(|text| shown(&text));
    }
    vec![setting]
}

/// The value of the first file that has a key.
fn first_of(files: &ConfigFiles, name: &str) -> Option<Setting> {
    keys(files).find(|(_, key)| key.name == name).map(|(path, key)| Setting {
        option: name.to_owned(),
        value: key.values.as_ref().map(|values| values.join(" ")),
        origin: Some(place(path, key.place.0)),
    })
}

/// Properties of workers, each from the source that counts most for it.
fn platform(own: Setting, files: &ConfigFiles) -> Vec<Setting> {
    let mut properties = BTreeMap::new();
    let given = own.value.as_deref().unwrap_or_default().lines().filter_map(|line| line.split_once('='));
    for (name, value) in given {
        properties.insert(name.trim().to_owned(), (value.to_owned(), own.origin.clone()));
    }
    for (path, key) in keys(files) {
        if let (Some(name), Some(values)) = (key.name.strip_prefix("remote.platform."), &key.values) {
            let value = (values.join(" "), Some(place(path, key.place.0)));
            properties.entry(name.to_owned()).or_insert(value);
        }
    }
    if properties.is_empty() {
        return vec![Setting { value: None, ..own }];
    }
    let property = |(name, (value, origin))| Setting {
        option: own.option.clone(),
        value: Some(format!("{name}={value}")),
        origin,
    };
    properties.into_iter().map(property).collect()
}

/// The names of headers; their values are secret.
fn headers(around: &ConfigPlaces, files: &ConfigFiles) -> Vec<Setting> {
    let header = |name: &str, origin: String| Setting {
        option: "remote-headers".to_owned(),
        value: Some(format!("{name}: (secret)")),
        origin: Some(origin),
    };
    let given = around.headers.iter().filter_map(|text| parse_headers(text.to_str()?).ok()).flatten();
    let given = given.map(|(name, _)| header(&name, REMOTE_HEADERS.to_owned()));
    let in_files = keys(files).filter_map(|(path, key)| {
        Some(header(key.name.strip_prefix("remote.headers.")?, place(path, key.place.0)))
    });
    given.chain(in_files).collect()
}

/// The keys of all files, those that count most first.
fn keys(files: &ConfigFiles) -> impl Iterator<Item = (&Path, &Key)> {
    fn of<T>(found: &Sourced<T>) -> impl Iterator<Item = (&Path, &Key)> {
        found.keys.iter().map(|key| (found.path.as_path(), key))
    }
    files.checkout.iter().flat_map(of).chain(files.user.iter().flat_map(of))
}

fn place(path: &Path, line: usize) -> String {
    format!("{}:{line}", path.display())
}

/// A server's URL. One that is wrong may hold a password.
fn shown(text: &str) -> String {
    match text.parse::<UrlText>().map(ChosenServer::try_from) {
        Ok(Ok(ChosenServer::At(endpoint))) => endpoint.to_string(),
        Ok(Ok(ChosenServer::Nowhere)) => String::new(),
        Ok(Err(_)) | Err(_) => "(no URL)".to_owned(),
    }
}

fn json(settings: &[Setting]) -> String {
    let lines: Vec<_> = settings.iter().map(|setting| json!(setting).to_string()).collect();
    format!("[{}]\n", lines.join(",\n "))
}

/// The value of an option that nothing sets, as far as it has one.
fn default_of(option: &Arg) -> Option<String> {
    let store = || own_cache().map(Path::to_owned);
    match option.get_long()? {
        "jobs" => Some(thread::available_parallelism().ok()?.to_string()),
        "cache" => Some(store()?.display().to_string()),
        "cache-size" => Some(size(default_size(&store()?))),
        _ if matches!(option.get_action(), ArgAction::Count) => Some("0".to_owned()),
        _ => (!option.get_action().takes_values()).then(|| "false".to_owned()),
    }
}

/// A line for each option: name, value, origin.
fn table(settings: &[Setting], command: &Command) -> String {
    let value = |setting: &Setting| {
        let option = command.get_arguments().find(|option| option.get_long() == Some(&setting.option));
        let value = setting.value.clone().or_else(|| default_of(option?));
        printable(&value.unwrap_or_else(|| "-".to_owned())).into_owned()
    };
    let rows: Vec<(&Setting, String)> = settings.iter().map(|setting| (setting, value(setting))).collect();
    let widest = |of: &dyn Fn(&(&Setting, String)) -> usize| rows.iter().map(of).max().unwrap_or(0).min(40);
    let names = widest(&|(setting, _)| setting.option.len());
    let values = widest(&|(_, value)| value.len());
    let line = |(setting, value): &(&Setting, String)| {
        let origin = setting.origin.as_deref().map_or("default".into(), printable);
        format!("{:names$}  {value:values$}  {origin}\n", setting.option)
    };
    rows.iter().map(line).collect()
}
