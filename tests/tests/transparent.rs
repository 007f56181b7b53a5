//! A command that is wrapped is the same command: what it prints, reads, writes and returns without distlto, it does with it.
//!
//! Each script runs in two folders with the same files, in one as it is and in the other with `distlto link --` in the place
//! of `$link`. Lines on standard error that begin with `distlto:` are distlto's own to say; all else is compared.

mod detection;
mod driver;
mod ends;
mod linker;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::{capture, succeed, told};
use distlto_tests::store;
use distlto_tests::toolchain::{NEWEST, Toolchain};

/// Two modules, one of which imports from the other.
const SOURCES: [(&str, &str); 2] = [
    ("a.c", "int b(int);\nint main(void) { return b(3); }\n"),
    ("b.c", "__attribute__((noinline)) int b(int x) { return x + 4; }\n"),
];

/// Two folders with the same files.
struct Pair {
    plain: Folder,
    served: Folder,
}

/// How a command ended, as far as it is the command's own.
#[derive(Debug, PartialEq, Eq)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Pair {
    /// Both folders, with [`SOURCES`] and their bitcode objects.
    fn create(name: &str) -> Result<Self> {
        Self::of(name, Toolchain::from_env()?)
    }

    /// The same for a linker whose objects have names: those of lld 16 are `lto.tmp` for modules that it compiles itself, and
    /// files of its cache for others.
    fn with_names(name: &str) -> Result<Self> {
        let asked = Toolchain::from_env()?;
        Self::of(name, Toolchain { version: if asked.version < 19 { NEWEST } else { asked.version } })
    }

    /// The same for a linker that can call a distributor.
    fn with_dtlto(name: &str) -> Result<Self> {
        let asked = Toolchain::from_env()?;
        Self::of(name, if asked.has_dtlto() { asked } else { Toolchain { version: NEWEST } })
    }

    fn of(name: &str, toolchain: Toolchain) -> Result<Self> {
        let folder = |way: &str| Folder::create(toolchain, &format!("transparent/{name}/{way}"));
        let pair = Self { plain: folder("plain")?, served: folder("served")? };
        for (name, text) in SOURCES {
            pair.write(name, text)?;
        }
        pair.both("%clang -O2 -flto=thin -c a.c b.c")?;
        Ok(pair)
    }

    fn folders(&self) -> [&Folder; 2] {
        [&self.plain, &self.served]
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        self.folders().into_iter().try_for_each(|folder| folder.write(name, text).map(drop))
    }

    /// Runs a command that makes inputs, in both folders.
    fn both(&self, line: &str) -> Result<()> {
        self.folders().into_iter().try_for_each(|folder| succeed(&mut folder.command(line, "")?).map(drop))
    }

    /// Runs a script in both folders, in which `$link` is nothing, or distlto. Compares all that can be seen of it, and returns
    /// that.
    fn same(&self, script: &str) -> Result<Ended> {
        self.same_but(script, |text| text)
    }

    /// The same for a command whose words differ from run to run: `mask` takes out what does.
    fn same_but(&self, script: &str, mask: impl Fn(String) -> String) -> Result<Ended> {
        let [plain, served] = [self.run(&self.plain, script, "")?, self.run(&self.served, script, &link()?)?];
        let ended = |(_, output): &(Command, Output)| Ended {
            code: output.status.code(),
            stdout: mask(self.common(&output.stdout)),
            stderr: mask(own_words(&self.common(&output.stderr))),
        };
        let [expected, found] = [ended(&plain), ended(&served)];
        let shown = || format!("{}\n{}", told(&plain.0, &plain.1), told(&served.0, &served.1));
        ensure!(expected == found, "distlto changes {script}:\n{}", shown());
        self.same_files().with_context(shown)?;
        Ok(found)
    }

    /// Links by a script, and runs the program `P` that it makes.
    fn same_program(&self, script: &str) -> Result<Ended> {
        let ended = self.same(script)?;
        ensure!(ended.code == Some(0), "{script}: {ended:?}");
        for folder in self.folders() {
            let code = Command::new(folder.path.join("P")).status().context("the program")?.code();
            ensure!(code == Some(7), "the program of {script} ends with {code:?}");
        }
        self.asked()?;
        Ok(ended)
    }

    /// That distlto's link has made its objects, rather than the linker.
    fn asked(&self) -> Result<()> {
        let links = store::of(&self.served.path)?.join("links-v1");
        let mut links = fs::read_dir(&links)?.flatten().map(|entry| entry.path());
        ensure!(
            links.any(|link| link.join("modules").is_file()),
            "no backend ran in {}: the linker was not asked",
            self.served.path.display()
        );
        Ok(())
    }

    /// That both folders hold the same files.
    fn same_files(&self) -> Result<()> {
        let [plain, served] = [files(&self.plain.path)?, files(&self.served.path)?];
        let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        ensure!(names(&plain) == names(&served), "files: {:?}, {:?}", names(&plain), names(&served));
        for (name, bytes) in plain {
            let [plain, served] = [&bytes, &served[&name]].map(|bytes| self.common(bytes));
            ensure!(plain == served, "{} differs:\n{plain}\n{served}", name.display());
        }
        Ok(())
    }

    /// Text of a run with names that stand for both folders.
    fn common(&self, bytes: &[u8]) -> String {
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        for folder in self.folders() {
            text = text.replace(&*folder.path.to_string_lossy(), "FOLDER");
        }
        text
    }

    fn run(&self, folder: &Folder, script: &str, link: &str) -> Result<(Command, Output)> {
        let temporary = folder.path.parent().context("a folder in a folder")?.join("tmp");
        fs::create_dir_all(&temporary)?;
        let mut command = Command::new("bash");
        command.args(["-c", &folder.expand(script, "")?]).current_dir(&folder.path);
        command.env("link", link).env("TMPDIR", &temporary).env_remove("DISTLTO_STATE");
        let output = capture(&mut command)?;
        let left: Vec<_> = fs::read_dir(&temporary)?.flatten().map(|entry| entry.file_name()).collect();
        ensure!(left.is_empty(), "{script} has left {left:?} in TMPDIR: {}", told(&command, &output));
        Ok((command, output))
    }
}

/// `distlto link --`, for a shell.
fn link() -> Result<String> {
    Ok(format!("{} link --", distlto::binary()?.display()))
}

/// Without what distlto adds.
fn own_words(text: &str) -> String {
    let is_own = |line: &&str| ["distlto:", "distlto-distribute:"].iter().any(|own| line.starts_with(own));
    text.split_inclusive('\n').filter(|line| !is_own(line)).collect()
}

/// All files below a folder with their contents, without the store.
fn files(folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.file_name().is_some_and(|name| name == store::CACHE) {
                continue;
            }
            if path.is_dir() {
                waiting.push(path);
            } else {
                let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
                found.insert(path.strip_prefix(folder)?.to_owned(), bytes);
            }
        }
    }
    Ok(found)
}

/// Text with the six characters that a compiler's temporaries have at random replaced.
fn without_random_names(text: String) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("/tmp/") {
        let end = after.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(after.len());
        let (name, tail) = after.split_at(end);
        let stem = name.rsplit_once('-').map_or(name, |(stem, _)| stem);
        masked.extend([before, "/tmp/", stem]);
        rest = tail;
    }
    masked + rest
}
