//! The user's own settings for cargo: flags of rustc, linkers and LTO, from variables, configuration files and profiles.
//!
//! Where cargo takes flags from is in its book: <https://doc.rust-lang.org/cargo/reference/config.html#buildrustflags>.
//! Pure.

use std::collections::BTreeMap;
use std::ffi::OsString;

use serde::Deserialize;

/// Separates flags in the variable that counts first.
const SEPARATOR: &str = "\u{1f}";
const ENCODED: &str = "CARGO_ENCODED_RUSTFLAGS";
const PLAIN: &str = "RUSTFLAGS";
const BUILD: &str = "CARGO_BUILD_RUSTFLAGS";
/// Flags that select a linker or LTO, without `-C`, up to `=`.
const OWN: [&str; 6] =
    ["lto", "linker", "linker-flavor", "linker-features", "link-self-contained", "linker-plugin-lto"];
/// Selects a linker behind a driver.
const OWN_ARGUMENT: &str = "-fuse-ld";

/// cargo's configuration, as `cargo config get --format json` prints it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Configuration {
    build: Build,
    target: BTreeMap<String, Target>,
    profile: BTreeMap<String, Profile>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Build {
    rustc: Option<String>,
    rustflags: Flags,
    target: Flags,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Target {
    rustflags: Flags,
    linker: Option<String>,
}

/// A list, or words in one string.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Flags {
    Words(String),
    List(Vec<String>),
}

impl Default for Flags {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl Flags {
    fn words(&self) -> Vec<&str> {
        match self {
            Self::Words(text) => text.split_ascii_whitespace().collect(),
            Self::List(words) => words.iter().map(String::as_str).collect(),
        }
    }
}

/// The parts of a manifest that concern LTO.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Manifest {
    profile: BTreeMap<String, Profile>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Profile {
    inherits: Option<String>,
    lto: Option<Lto>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Lto {
    Name(String),
    Flag(bool),
}

/// All that a user may have set.
pub struct UserSettings<'a> {
    pub configuration: &'a Configuration,
    pub manifest: &'a Manifest,
    /// The environment.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
}

/// What a user has chosen instead of a link by distlto.
#[derive(Debug, PartialEq, Eq)]
pub enum Choice {
    /// LTO by the linker: distlto serves that as it is.
    LinkerLto,
    /// This, so that nothing is to be set.
    Other(String),
}

impl UserSettings<'_> {
    /// The compiler, unless it is the usual one.
    pub fn rustc(&self) -> Option<OsString> {
        let named = ["RUSTC", "CARGO_BUILD_RUSTC"].iter().find_map(|name| (self.variable)(name));
        named.or_else(|| self.configuration.build.rustc.as_ref().map(OsString::from))
    }

    /// The targets that are not on the command line.
    pub fn targets(&self) -> Vec<String> {
        match (self.variable)("CARGO_BUILD_TARGET") {
            Some(target) => vec![target.to_string_lossy().into_owned()],
            None => self.configuration.build.target.words().into_iter().map(str::to_owned).collect(),
        }
    }

    /// What the user has chosen for a target, if anything.
    pub fn choice(&self, target: &str, profile: &str) -> Option<Choice> {
        let variable = of_target(target, "LINKER");
        if (self.variable)(&variable).is_some() {
            return Some(Choice::Other(format!("{variable} is set")));
        }
        let tables = self.configuration.target.iter().filter(|(name, _)| is_of(name, target));
        for (name, table) in tables.clone() {
            if table.linker.is_some() {
                return Some(Choice::Other(format!("the configuration has a linker for {name}")));
            }
        }
        let from_tables = tables.flat_map(|(_, table)| table.rustflags.words());
        let from_files = from_tables.chain(self.configuration.build.rustflags.words()).map(str::to_owned);
        let variables = [ENCODED, PLAIN, BUILD, &of_target(target, PLAIN)];
        let words: Vec<String> =
            variables.iter().flat_map(|name| self.words(name)).chain(from_files).collect();
        if codegen_flags(&words).any(|flag| flag == "linker-plugin-lto" || flag == "linker-plugin-lto=yes") {
            return Some(Choice::LinkerLto);
        }
        if let Some(flag) = codegen_flags(&words).find(|flag| is_own(flag)) {
            return Some(Choice::Other(format!("the flags of rustc have {flag}")));
        }
        let is_off = |lto: &Lto| matches!(lto, Lto::Name(name) if name == "off");
        self.lto(profile)
            .filter(|lto| is_off(lto))
            .map(|_| Choice::Other(format!("the profile {profile} has lto = \"off\"")))
    }

    /// Whether a profile asks rustc for LTO of the whole program.
    pub fn has_other_lto(&self, profile: &str) -> bool {
        match self.lto(profile) {
            Some(Lto::Name(name)) => name != "thin" && name != "off",
            Some(Lto::Flag(is_on)) => *is_on,
            None => false,
        }
    }

    /// The setting of a profile, which it may have from others.
    fn lto(&self, profile: &str) -> Option<&Lto> {
        let mut name = profile;
        // Cargo refuses a circle.
        for _ in 0..64 {
            let tables = [&self.configuration.profile, &self.manifest.profile];
            let tables = tables.iter().filter_map(|profiles| profiles.get(name));
            if let Some(lto) = tables.clone().find_map(|table| table.lto.as_ref()) {
                return Some(lto);
            }
            let inherited = tables.filter_map(|table| table.inherits.as_deref()).next();
            name = inherited.or_else(|| (name == "bench").then_some("release"))?;
        }
        None
    }

    /// A variable with the user's flags and these. cargo takes flags from one of several places, and joins a variable
    /// with the lists of files. `None` if nothing tells which place it takes.
    pub fn with_flags(&self, target: &str, flags: &[String]) -> Option<(String, OsString)> {
        let added = |name: String, separator: &str| {
            let mut value = (self.variable)(&name).unwrap_or_default();
            for flag in flags {
                if !value.is_empty() {
                    value.push(separator);
                }
                value.push(flag);
            }
            (name, value)
        };
        if (self.variable)(ENCODED).is_some() {
            return Some(added(ENCODED.to_owned(), SEPARATOR));
        }
        if (self.variable)(PLAIN).is_some() {
            return Some(added(PLAIN.to_owned(), " "));
        }
        let variable = of_target(target, PLAIN);
        let has_flags =
            |name: &str, table: &Target| is_of(name, target) && !table.rustflags.words().is_empty();
        let tables = || self.configuration.target.iter().filter(|(name, table)| has_flags(name, table));
        if (self.variable)(&variable).is_some() || tables().any(|(name, _)| name == target) {
            return Some(added(variable, " "));
        }
        let has_build =
            (self.variable)(BUILD).is_some() || !self.configuration.build.rustflags.words().is_empty();
        match (tables().next().is_some(), has_build) {
            (false, _) => Some(added(BUILD.to_owned(), " ")),
            (true, false) => Some(added(variable, " ")),
            // Only cargo knows whether the table's condition holds.
            (true, true) => None,
        }
    }

    /// The flags in a variable.
    fn words(&self, name: &str) -> Vec<String> {
        let value = (self.variable)(name).unwrap_or_default();
        let separators = [' ', '\u{1f}'];
        let value = value.to_string_lossy();
        value.split(separators).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }
}

/// The variable with a setting for a target.
fn of_target(target: &str, setting: &str) -> String {
    format!("CARGO_TARGET_{}_{setting}", target.to_uppercase().replace(['-', '.'], "_"))
}

/// Whether a table of targets may be for this one: it names it, or has a condition.
fn is_of(table: &str, target: &str) -> bool {
    table == target || table.starts_with("cfg(")
}

/// The values of `-C` and `--codegen`.
fn codegen_flags(words: &[String]) -> impl Iterator<Item = &str> {
    words.iter().enumerate().filter_map(|(at, word)| {
        let next = || words.get(at + 1).map(String::as_str);
        match word.as_str() {
            "-C" | "--codegen" => next(),
            word => word.strip_prefix("-C").or_else(|| word.strip_prefix("--codegen=")),
        }
    })
}

fn is_own(flag: &str) -> bool {
    let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
    OWN.contains(&name) || name.starts_with("link-arg") && value.contains(OWN_ARGUMENT)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::{Choice, Configuration, Manifest, UserSettings};

    const TARGET: &str = "x86_64-unknown-linux-gnu";

    fn with<T>(
        (configuration, manifest): (&str, &str),
        variables: &[(&str, &str)],
        look: impl Fn(&UserSettings<'_>) -> T,
    ) -> T {
        let configuration: Configuration = serde_json::from_str(configuration).expect("JSON");
        let manifest: Manifest = toml::from_str(manifest).expect("TOML");
        let variable = |name: &str| {
            variables.iter().find(|(found, _)| *found == name).map(|(_, value)| OsString::from(value))
        };
        look(&UserSettings { configuration: &configuration, manifest: &manifest, variable: &variable })
    }

    fn added(configuration: &str, variables: &[(&str, &str)]) -> Option<(String, String)> {
        let flags = ["-Ca".to_owned(), "-Cb".to_owned()];
        with((configuration, ""), variables, |settings| settings.with_flags(TARGET, &flags))
            .map(|(name, value)| (name, value.to_string_lossy().into_owned()))
    }

    #[test]
    fn flags_are_added_where_cargo_takes_them() {
        let of = |name: &str, value: &str| Some((name.to_owned(), value.to_owned()));
        let target = "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS";
        let table = format!(r#"{{"target":{{"{TARGET}":{{"rustflags":"-Cx"}}}}}}"#);
        let condition = r#"{"target":{"cfg(unix)":{"rustflags":["-Cx"]}}}"#;
        let both = r#"{"target":{"cfg(unix)":{"rustflags":["-Cx"]}},"build":{"rustflags":["-Cy"]}}"#;
        assert_eq!(added("{}", &[]), of("CARGO_BUILD_RUSTFLAGS", "-Ca -Cb"));
        assert_eq!(added("{}", &[("RUSTFLAGS", "-g")]), of("RUSTFLAGS", "-g -Ca -Cb"));
        let encoded = [("CARGO_ENCODED_RUSTFLAGS", "-g\u{1f}-x"), ("RUSTFLAGS", "-y")];
        assert_eq!(added("{}", &encoded), of("CARGO_ENCODED_RUSTFLAGS", "-g\u{1f}-x\u{1f}-Ca\u{1f}-Cb"));
        assert_eq!(added(&table, &[]), of(target, "-Ca -Cb"));
        assert_eq!(added(condition, &[]), of(target, "-Ca -Cb"));
        assert_eq!(added(both, &[]), None);
        assert_eq!(added(both, &[("RUSTFLAGS", "")]), of("RUSTFLAGS", "-Ca -Cb"));
    }

    #[test]
    fn choices_of_the_user_are_found() {
        let choice = |configuration: &str, manifest: &str, variables: &[(&str, &str)]| {
            with((configuration, manifest), variables, |settings| settings.choice(TARGET, "dist"))
        };
        for (configuration, manifest, flags) in [
            ("{}", "", "-Clinker=gcc"),
            ("{}", "", "-C lto=fat"),
            ("{}", "", "-Clink-arg=-fuse-ld=mold"),
            (r#"{"target":{"cfg(unix)":{"linker":"gcc"}}}"#, "", ""),
            (r#"{"build":{"rustflags":"-Clinker=gcc"}}"#, "", ""),
            ("{}", "[profile.dist]\ninherits = \"release\"\n[profile.release]\nlto = \"off\"", ""),
            (r#"{"profile":{"dist":{"lto":"off"}}}"#, "[profile.dist]\nlto = true", ""),
        ] {
            let found = choice(configuration, manifest, &[("RUSTFLAGS", flags)]);
            assert!(matches!(found, Some(Choice::Other(_))), "{configuration} {manifest} {flags}: {found:?}");
        }
        assert_eq!(choice("{}", "", &[("RUSTFLAGS", "-g -C linker-plugin-lto")]), Some(Choice::LinkerLto));
        let usual = "[profile.dist]\ninherits = \"release\"\nlto = \"fat\"\n[profile.release]\nlto = true";
        let other = r#"{"target":{"wasm32-wasip1":{"linker":"x"}}}"#;
        assert_eq!(choice(other, usual, &[("RUSTFLAGS", "-Ctarget-cpu=native --cfg lto")]), None);
    }
}
