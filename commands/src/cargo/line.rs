//! The parts of a cargo command line that decide how its programs are linked. Pure.

use distlto_planner::words::{Word, lossy, path_of};

/// Subcommands that link, and the profile that each has without an option.
const SUBCOMMANDS: [(&[&str], &str); 4] = [
    (&["build", "b", "run", "r", "rustc", "nextest"], "dev"),
    (&["test", "t"], "test"),
    (&["bench"], "bench"),
    (&["install"], "release"),
];
/// Options of cargo itself whose value is the next word.
const WITH_VALUES: [&str; 4] = ["--color", "--config", "-Z", "-C"];

/// A cargo command that links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CargoLine {
    /// The program, with rustup's toolchain: `+nightly`.
    pub cargo: Vec<Word>,
    /// The name of the profile.
    pub profile: String,
    /// The values of `--target`.
    pub targets: Vec<String>,
    /// Options that name more configuration.
    pub configuration: Vec<Word>,
    /// The value of `--manifest-path`.
    pub manifest: Option<Word>,
    /// The packages that it names; those of the workspace or the folder where there are none.
    pub packages: Vec<String>,
    /// Whether it is for the whole workspace.
    pub is_of_workspace: bool,
    /// The kinds of library that it makes instead of the manifest's.
    pub crate_types: Vec<String>,
}

impl CargoLine {
    /// Reads a command; `None` if it is not cargo, or links nothing.
    pub fn read(command: &[Word]) -> Option<Self> {
        let (program, words) = command.split_first()?;
        if path_of(program).file_name()? != "cargo" {
            return None;
        }
        let toolchain = words.first().filter(|word| word.starts_with(b"+"));
        let end = words.iter().position(|word| word == b"--").unwrap_or(words.len());
        let words = &words[usize::from(toolchain.is_some())..end];
        let mut before = words.iter();
        let subcommand = loop {
            let word = lossy(before.next()?);
            if WITH_VALUES.contains(&&*word) {
                before.next();
            } else if !word.starts_with('-') {
                break word;
            }
        };
        let (_, default) = SUBCOMMANDS.iter().find(|(names, _)| names.contains(&&*subcommand))?;
        let flag = |name: &str| words.iter().any(|word| word == name.as_bytes());
        let profile = match values(words, "--profile").chain(values(words, "--cargo-profile")).last() {
            Some(profile) => lossy(profile),
            None if flag("--release") || flag("-r") => "release".to_owned(),
            None if flag("--debug") => "dev".to_owned(),
            None => (*default).to_owned(),
        };
        let configuration =
            values(words, "--config").flat_map(|value| [b"--config".to_vec(), value.to_vec()]);
        Some(Self {
            cargo: [program].into_iter().chain(toolchain).cloned().collect(),
            profile,
            targets: values(words, "--target").map(lossy).collect(),
            configuration: configuration.collect(),
            manifest: values(words, "--manifest-path").last().map(<[u8]>::to_vec),
            packages: values(words, "--package").chain(values(words, "-p")).map(lossy).collect(),
            is_of_workspace: flag("--workspace") || flag("--all"),
            crate_types: values(words, "--crate-type").map(lossy).collect(),
        })
    }
}

/// The values of an option, each in the next word or after `=`.
fn values<'w>(words: &'w [Word], name: &'w str) -> impl Iterator<Item = &'w [u8]> {
    words.iter().enumerate().filter_map(move |(at, word)| match word.strip_prefix(name.as_bytes())? {
        [] => words.get(at + 1).map(Vec::as_slice),
        [b'=', value @ ..] => Some(value),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use distlto_planner::words::Word;

    use super::CargoLine;

    fn read(line: &str) -> Option<CargoLine> {
        CargoLine::read(&line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<Word>>())
    }

    #[test]
    fn profiles_are_those_of_cargo() {
        for (line, profile) in [
            ("cargo build --release", "release"),
            ("cargo b -r -- --profile x", "release"),
            ("cargo build", "dev"),
            ("/usr/bin/cargo +nightly --config a.b=1 run --profile dist", "dist"),
            ("cargo --color always test --release", "release"),
            ("cargo t", "test"),
            ("cargo bench", "bench"),
            ("cargo nextest run --cargo-profile=fast", "fast"),
            ("cargo install --path .", "release"),
            ("cargo install x --debug", "dev"),
        ] {
            assert_eq!(read(line).map(|line| line.profile).as_deref(), Some(profile), "{line}");
        }
    }

    #[test]
    fn other_commands_link_nothing() {
        for line in ["cargo", "cargo check --release", "cargo --version", "make build", "xcargo build"] {
            assert_eq!(read(line), None, "{line}");
        }
    }

    #[test]
    fn what_selects_configuration_is_kept() {
        let line =
            read("cargo +beta --config a=1 build --config=b=2 --target x --manifest-path d/Cargo.toml -r");
        let line = line.expect("a cargo line");
        assert_eq!(line.cargo, [b"cargo".to_vec(), b"+beta".to_vec()]);
        assert_eq!(line.configuration.join(&b' '), b"--config a=1 --config b=2");
        assert_eq!(line.targets, ["x"]);
        assert!(line.packages.is_empty() && !line.is_of_workspace);
        assert_eq!(line.manifest.as_deref(), Some(&b"d/Cargo.toml"[..]));
    }
}
