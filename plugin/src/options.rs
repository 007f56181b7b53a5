//! The plugin's options: what follows the colon in `--thinlto-distribute=distlto:...`, and the environment.
//!
//! A list `key=value,key,...` in both places, the name's after the environment's, so that the command line wins.
//! A comma in a value is written twice. Pure: the environment's text is handed in.

use std::path::PathBuf;

use distlto_commands::remote::args::RemoteArgs;
use distlto_commands::run_args::RunArgs;
use miette::Diagnostic;
use thiserror::Error;

/// The environment variable with options for every link.
pub const VARIABLE: &str = "DISTLTO_DTLTO_OPTIONS";

/// An option that is none.
#[derive(Debug, Error, Diagnostic)]
#[error("{place}: the option {option:?} {problem}")]
#[diagnostic(
    code(distlto::usage),
    help(
        "options are jobs=N, compiler=CLANG, arg=WORD (as often as needed), keep-going, verbose and log=FILE, with \
         commas between them; a comma in a value is written twice"
    )
)]
pub struct OptionError {
    /// Where it stands.
    place: &'static str,
    /// The option as it was written.
    option: String,
    /// What is wrong with it.
    problem: &'static str,
}

/// How to compile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginOptions {
    /// The most compilers at once; as many as processors when `None`.
    pub jobs: Option<usize>,
    /// The compiler; found by itself when `None`.
    pub compiler: Option<String>,
    /// Arguments after the linker's own.
    pub args: Vec<String>,
    /// Whether the rest is compiled after a failure.
    pub keep_going: bool,
    /// Whether every compilation is shown on standard error.
    pub verbose: bool,
    /// The file that events are appended to as JSON lines.
    pub log: Option<PathBuf>,
}

impl PluginOptions {
    /// The options of one call. `name` is `<Name>[:<detail>]`.
    pub fn parse(environment: Option<&str>, name: &str) -> Result<Self, OptionError> {
        let detail = name.split_once(':').map_or("", |(_, detail)| detail);
        let mut options = Self::default();
        for (place, text) in [(VARIABLE, environment.unwrap_or("")), ("--thinlto-distribute", detail)] {
            for option in split(text) {
                let problem = |problem| OptionError { place, option: option.clone(), problem };
                options.set(&option).map_err(problem)?;
            }
        }
        Ok(options)
    }

    /// What they say of the run, in the words of every command. The number of jobs is the link line's.
    pub fn run_args(&self) -> RunArgs {
        // A call names no engine, and an engine's threads cannot be left behind in the linker.
        let remote = RemoteArgs { no_remote: true, ..RemoteArgs::default() };
        // What there is to tell, the linker is told.
        RunArgs { keep_going: self.keep_going, quiet: true, remote, ..RunArgs::default() }
    }

    fn set(&mut self, option: &str) -> Result<(), &'static str> {
        let (key, value) = match option.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (option, None),
        };
        let filled = || value.filter(|value| !value.is_empty()).ok_or("needs a value");
        match key {
            "jobs" => {
                let jobs = filled()?.parse().ok().filter(|&jobs| jobs > 0);
                self.jobs = Some(jobs.ok_or("is not a number above 0")?);
            }
            "compiler" => self.compiler = Some(filled()?.to_owned()),
            "arg" => self.args.push(filled()?.to_owned()),
            "keep-going" => self.keep_going = yes(value)?,
            "verbose" => self.verbose = yes(value)?,
            "log" => self.log = Some(filled()?.into()),
            _ => return Err("is not known"),
        }
        Ok(())
    }
}

fn yes(value: Option<&str>) -> Result<bool, &'static str> {
    match value {
        None | Some("yes") => Ok(true),
        Some("no") => Ok(false),
        Some(_) => Err("takes yes or no"),
    }
}

/// The parts between single commas; of two commas in a row one stays.
fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == ',' && letters.next_if_eq(&',').is_none() {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(letter);
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn options_of_the_name_come_after_those_of_the_environment() {
        let parsed = PluginOptions::parse(
            Some("jobs=2,keep-going,arg=-mllvm,arg=-x=1,,2"),
            "distlto:jobs=4,compiler=a:b=c,keep-going=no,arg=-O3,verbose,log=l",
        );
        let expected = PluginOptions {
            jobs: Some(4),
            compiler: Some("a:b=c".to_owned()),
            args: ["-mllvm", "-x=1,2", "-O3"].map(str::to_owned).to_vec(),
            keep_going: false,
            verbose: true,
            log: Some("l".into()),
        };
        assert_eq!(parsed.unwrap(), expected);
        for none in ["distlto", "distlto:", "distlto:,", ""] {
            assert_eq!(PluginOptions::parse(None, none).unwrap(), PluginOptions::default(), "{none}");
        }
    }

    #[test]
    fn a_mistake_is_named_with_its_place() {
        for (option, problem) in [
            ("job=4", "is not known"),
            ("jobs", "needs a value"),
            ("jobs=0", "is not a number above 0"),
            ("jobs=-1", "is not a number above 0"),
            ("jobs=99999999999999999999", "is not a number above 0"),
            ("compiler=", "needs a value"),
            ("verbose=maybe", "takes yes or no"),
        ] {
            let said = |place: &str| format!("{place}: the option {option:?} {problem}");
            let named = PluginOptions::parse(None, &format!("distlto:verbose,{option}")).unwrap_err();
            assert_eq!(named.to_string(), said("--thinlto-distribute"));
            assert_eq!(
                PluginOptions::parse(Some(option), "distlto").unwrap_err().to_string(),
                said(VARIABLE)
            );
        }
    }

    proptest! {
        #[test]
        fn any_value_can_be_written(value in "[^\0]{1,20}") {
            let written = value.replace(',', ",,");
            let options = PluginOptions::parse(None, &format!("distlto:arg={written},verbose")).unwrap();
            let expected = PluginOptions { args: vec![value], verbose: true, ..PluginOptions::default() };
            prop_assert_eq!(options, expected);
        }
    }
}
