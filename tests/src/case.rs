//! A case: one text file that holds directives and the sources they speak of, in the manner of LLVM's split-file.
//!
//! `//# key: value` lines come first (`//#   more` continues one), then `//--- name` begins each source;
//! `cases/README.md` lists the keys.
//! Pure: turns text into values and knows nothing of compilers or the file system.

use anyhow::{Context, Result, bail, ensure};

/// One program to be compiled, linked in several ways, run and compared.
#[derive(Debug, Default, Clone)]
pub struct Case {
    /// Folder and stem of the case's file: `archives/thin`.
    pub name: String,
    /// The files the case writes.
    pub sections: Vec<Section>,
    /// LLVM versions it applies to.
    pub llvm: Versions,
    /// Flags of every compilation.
    pub flags: Vec<String>,
    /// Flags of the compilation of one section, by name.
    pub flags_of: Vec<(String, String)>,
    /// Compiles nothing by itself: the steps or the link do.
    pub compiles_nothing: bool,
    /// Patterns of further sources.
    pub sources: Vec<String>,
    /// Commands before compiling.
    pub before: Vec<String>,
    /// Commands between compiling and linking.
    pub steps: Vec<String>,
    /// The linker driver, `%clang` or `%clang++` by the sources where absent.
    pub driver: Option<String>,
    /// Arguments of the link, all objects where absent.
    pub link: Option<String>,
    /// Flags that lld drops on the way to the distributor, handed to DTLTO's compiler so that it can be an oracle.
    pub remote: Vec<String>,
    /// Why DTLTO is no oracle for this case.
    pub without_dtlto: Option<String>,
    /// Why backends by clang make another program.
    pub without_graph: Option<String>,
    /// Why a served link makes another program than the linker alone.
    pub otherwise: Option<String>,
    /// Commands after linking, with the output at hand.
    pub after: Vec<String>,
    /// Commands that show what the program does; the program itself where absent.
    pub run: Option<Vec<String>>,
    /// Exit code of the last of these.
    pub exit: i32,
    /// How many modules are compiled by backends.
    pub modules: Option<usize>,
    /// Every way of linking fails, and distlto says this.
    pub fails: Option<String>,
    /// The formats beside ELF's that it is not for.
    pub not_for: Vec<String>,
    /// The only format that it is for, where that is not ELF.
    pub only_for: Option<String>,
}

/// A file of a case.
#[derive(Debug, Clone)]
pub struct Section {
    /// Path relative to the case's folder.
    pub name: String,
    /// Content.
    pub text: String,
}

/// A range of LLVM versions, both ends included.
#[derive(Debug, Clone, Copy)]
pub struct Versions {
    low: u32,
    high: u32,
}

impl Default for Versions {
    fn default() -> Self {
        Self { low: 0, high: u32::MAX }
    }
}

impl Versions {
    /// Whether a version lies in the range.
    pub fn hold(self, version: u32) -> bool {
        (self.low..=self.high).contains(&version)
    }

    /// `22`, `>=19` or `<=16`.
    fn parse(text: &str) -> Result<Self> {
        let number = |digits: &str| {
            digits
                .trim()
                .parse()
                .with_context(|| format!("expected a version such as `>=19`, found `{text}`"))
        };
        Ok(if let Some(low) = text.strip_prefix(">=") {
            Self { low: number(low)?, ..Self::default() }
        } else if let Some(high) = text.strip_prefix("<=") {
            Self { high: number(high)?, ..Self::default() }
        } else {
            Self { low: number(text)?, high: number(text)? }
        })
    }
}

impl Case {
    /// Reads a case from the text of its file. Errors name the line.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let mut case = Self { name: name.to_owned(), ..Self::default() };
        let mut directives: Vec<(String, String)> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let place = format!("tests/cases/{name}:{}", number + 1);
            if let Some(file) = line.strip_prefix("//--- ") {
                case.sections.push(Section { name: file.trim().to_owned(), text: String::new() });
            } else if let Some(section) = case.sections.last_mut() {
                section.text.push_str(line);
                section.text.push('\n');
            } else if let Some(more) = line.strip_prefix("//#   ") {
                let (_, begun) =
                    directives.last_mut().with_context(|| format!("{place}: continues nothing"))?;
                *begun = format!("{begun} {}", more.trim());
            } else if let Some(directive) = line.strip_prefix("//# ") {
                directives.push((place, directive.to_owned()));
            } else {
                let comment = line.is_empty() || line.starts_with("//");
                ensure!(comment, "{place}: expected a comment, a directive or `//--- name`");
            }
        }
        for (place, directive) in directives {
            let (key, value) =
                directive.split_once(':').with_context(|| format!("{place}: expected `//# key: value`"))?;
            case.set(key.trim(), value.trim()).context(place)?;
        }
        ensure!(
            !case.sections.is_empty() || !case.sources.is_empty() || !case.before.is_empty(),
            "tests/cases/{name} has no source"
        );
        Ok(case)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let text = value.to_owned();
        match key {
            "llvm" => self.llvm = Versions::parse(value)?,
            "flags" => self.flags.push(text),
            "compile" if value == "none" => self.compiles_nothing = true,
            "sources" => self.sources.push(text),
            "before" => self.before.push(text),
            "step" => self.steps.push(text),
            "driver" => self.driver = Some(text),
            "link" => match &mut self.link {
                Some(link) => {
                    link.push(' ');
                    link.push_str(value);
                }
                None => self.link = Some(text),
            },
            "remote" => self.remote.push(text),
            "without dtlto" => self.without_dtlto = Some(text),
            "without graph" => self.without_graph = Some(text),
            "otherwise" => self.otherwise = Some(text),
            "after" => self.after.push(text),
            "run" if value == "none" => self.run = Some(Vec::new()),
            "run" => self.run.get_or_insert_default().push(text),
            "exit" => self.exit = value.parse().context("expected an exit code")?,
            "modules" => self.modules = Some(value.parse().context("expected a count")?),
            "for" => self.only_for = Some(text),
            "fails" => self.fails = Some(text),
            _ => match key.split_once(' ') {
                Some(("flags", file)) => self.flags_of.push((file.trim().to_owned(), text)),
                Some(("not", formats)) if formats.starts_with("for ") && !value.is_empty() => {
                    self.not_for.extend(formats.split_whitespace().skip(1).map(str::to_owned));
                }
                _ => bail!("unknown directive `{key}`; tests/cases/README.md lists the known ones"),
            },
        }
        Ok(())
    }

    /// Whether the case is for this format: ELF, or another where it leaves compiling and linking to the harness.
    pub fn is_for(&self, format: &str) -> bool {
        match &self.only_for {
            Some(only) => only == format,
            None => format == "elf" || self.is_portable() && !self.not_for.iter().any(|not| not == format),
        }
    }

    fn is_portable(&self) -> bool {
        let Self { driver, before, sources, compiles_nothing, run, .. } = self;
        driver.is_none() && before.is_empty() && sources.is_empty() && !compiles_nothing && run.is_none()
    }

    /// Whether the case holds C++ and so is linked by `clang++`.
    pub fn is_cpp(&self) -> bool {
        let cpp = |name: &str| [".cpp", ".cc"].iter().any(|suffix| name.ends_with(suffix));
        self.sections.iter().any(|section| cpp(&section.name)) || self.sources.iter().any(|name| cpp(name))
    }
}
