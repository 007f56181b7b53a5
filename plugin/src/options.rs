//! The plugin's options: the text after the colon in `--thinlto-distribute=distlto:...`, and the environment.
//!
//! A list `key=value,key,...` in both places. The command line's list comes after the environment's, and so wins. A
//! comma in a value is written twice. Pure: the caller passes the environment's text.

/// The environment variable with options for every link.
pub const VARIABLE: &str = "DISTLTO_DTLTO_OPTIONS";

/// How to compile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The most compilers at once; as many as processors when `None`.
    pub jobs: Option<u16>,
    /// The compiler; found by itself when `None`.
    pub compiler: Option<String>,
    /// Arguments after the linker's own.
    pub args: Vec<String>,
    /// Whether the rest is compiled after a failure.
    pub keep_going: bool,
    /// Whether every compilation is shown on standard error.
    pub verbose: bool,
    /// The file that events are appended to as JSON lines.
    pub log: Option<String>,
}

impl Options {
    /// The options of one call. `name` is `<Name>[:<detail>]`. The error is an option that is none.
    pub fn parse(environment: &str, name: &str) -> Result<Self, String> {
        let detail = name.split_once(':').map_or("", |(_, detail)| detail);
        let mut options = Self::default();
        for (place, text) in [(VARIABLE, environment), ("--thinlto-distribute", detail)] {
            for option in split(text) {
                options.set(&option).map_err(|problem| {
                    format!(
                        "{place}: the option {option:?} {problem}\n  help: options are jobs=N, compiler=CLANG, arg=WORD (as \
                         often as needed), keep-going, verbose and log=FILE, with commas between them; a comma in a value is \
                         written twice"
                    )
                })?;
            }
        }
        Ok(options)
    }

    /// Returns them in the spelling of `distlto-distribute`. Without `verbose` it prints no hints, which are about
    /// options of lld.
    pub fn words(&self) -> Vec<String> {
        let mut words = vec![if self.verbose { "-vv" } else { "--quiet" }.to_owned()];
        words.extend(self.keep_going.then(|| "--keep-going".to_owned()));
        words.extend(self.jobs.map(|jobs| format!("--jobs={jobs}")));
        words.extend(self.log.as_ref().map(|log| format!("--log={log}")));
        words
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
                self.jobs = Some(jobs.ok_or("is not a number from 1 to 65535")?);
            }
            "compiler" => self.compiler = Some(filled()?.to_owned()),
            "arg" => self.args.push(filled()?.to_owned()),
            "keep-going" => self.keep_going = yes(value)?,
            "verbose" => self.verbose = yes(value)?,
            "log" => self.log = Some(filled()?.to_owned()),
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
    fn a_mistake_is_named_with_its_place() {
        for (option, problem) in [
            ("job=4", "is not known"),
            ("jobs", "needs a value"),
            ("jobs=0", "is not a number from 1 to 65535"),
            ("jobs=-1", "is not a number from 1 to 65535"),
            ("jobs=99999999999999999999", "is not a number from 1 to 65535"),
            ("compiler=", "needs a value"),
            ("verbose=maybe", "takes yes or no"),
        ] {
            let said = |place: &str| format!("{place}: the option {option:?} {problem}");
            let named = Options::parse("", &format!("distlto:verbose,{option}")).unwrap_err();
            assert!(named.starts_with(&said("--thinlto-distribute")), "{named}");
            let named = Options::parse(option, "distlto").unwrap_err();
            assert!(named.starts_with(&said(VARIABLE)), "{named}");
        }
    }

    proptest! {
        #[test]
        fn any_value_can_be_written(value in "[^\0]{1,20}") {
            let written = value.replace(',', ",,");
            let options = Options::parse("", &format!("distlto:arg={written},verbose")).unwrap();
            let expected = Options { args: vec![value], verbose: true, ..Options::default() };
            prop_assert_eq!(options, expected);
        }
    }
}
