//! One program of many modules that all tests of this file link, each in a copy of its own, and what a link of it has to make.
//!
//! The objects are those of a link on this machine alone, the program is that of lld with the simplest distributor.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, ensure};
use distlto_reapi_server::Server;
use distlto_tests::campaign::ways::BY_SOURCE;
use distlto_tests::distlto;
use distlto_tests::run::{capture, succeed, told};
use distlto_tests::store;
use distlto_tests::toolchain::{NEWEST, Toolchain};
use tempfile::TempDir;

/// So many modules, `main` among them.
pub const MODULES: u64 = 14;
const LLVM: Toolchain = Toolchain { version: NEWEST };
const FLAGS: [&str; 3] = ["-O2", "-flto=thin", "-fuse-ld=lld"];
const VARIABLES: [&str; 4] = ["DISTLTO_CACHE", "DISTLTO_STATE", "DISTLTO_LINK_OPTIONS", "DISTLTO_REMOTE"];

/// The objects by file name.
pub type Objects = BTreeMap<String, Vec<u8>>;

/// What is built once for all tests of this process.
struct Built {
    folder: TempDir,
    program: Vec<u8>,
    objects: Objects,
}

fn built() -> Result<&'static Built> {
    static BUILT: OnceLock<Result<Built, String>> = OnceLock::new();
    BUILT
        .get_or_init(|| build().map_err(|error| format!("{error:#}")))
        .as_ref()
        .map_err(|error| anyhow!("{error}"))
}

/// Each module calls the next two, so that every one imports something.
fn source(number: u64) -> String {
    if number == 0 {
        return "#include <stdio.h>\nint f1(int);\nint main(void) { printf(\"%d\\n\", f1(3)); return 0; }\n"
            .to_owned();
    }
    let mut text = String::new();
    let calls: String = [number + 1, number + 2]
        .iter()
        .filter(|other| **other < MODULES)
        .map(|other| {
            let _ = writeln!(text, "int f{other}(int);");
            format!(" + f{other}(x + {number})")
        })
        .collect();
    let _ = writeln!(text, "static int table_{number}[64];");
    let _ = writeln!(
        text,
        "int f{number}(int x) {{\n  for (int i = 0; i < 64; i++) table_{number}[i] += x * i + {number};"
    );
    let _ = writeln!(text, "  return table_{number}[x & 63] % 1000{calls};\n}}");
    text
}

/// Makes a module of a source.
pub fn compile(folder: &Path, name: &str) -> Result<()> {
    let mut compile = Command::new(LLVM.tool("clang")?);
    compile.args(["-O2", "-flto=thin", "-c"]).arg(format!("{name}.c")).current_dir(folder);
    succeed(&mut compile).map(drop)
}

fn build() -> Result<Built> {
    let folder = tempfile::tempdir()?;
    let path = folder.path();
    fs::create_dir(path.join("checkout"))?;
    for number in 0..MODULES {
        fs::write(path.join(format!("checkout/m{number}.c")), source(number))?;
        compile(&path.join("checkout"), &format!("m{number}"))?;
    }
    let checkout = Checkout { path: path.join("checkout"), _folder: None };
    let mut plain = Command::new(LLVM.tool("clang")?);
    plain.args(words()).args(inputs()).arg(BY_SOURCE).current_dir(&checkout.path);
    succeed(&mut plain)?;
    let program = fs::read(checkout.path.join("program"))?;
    fs::remove_file(checkout.path.join("program"))?;
    let copy = Checkout::copy_of(&checkout.path)?;
    succeed(&mut copy.link(&[])?)?;
    ensure!(copy.program()? == program, "a link on this machine is not lld's");
    let objects = copy.objects()?;
    ensure!(objects.len() as u64 == MODULES, "{} objects", objects.len());
    Ok(Built { program, objects, folder })
}

fn inputs() -> Vec<String> {
    (0..MODULES).map(|number| format!("m{number}.o")).collect()
}

fn words() -> impl Iterator<Item = &'static str> {
    FLAGS.into_iter().chain(["-o", "program"])
}

/// A copy of the program's objects in a folder of its own.
pub struct Checkout {
    pub path: PathBuf,
    /// Removed at the end.
    _folder: Option<TempDir>,
}

impl Checkout {
    /// One more.
    pub fn new() -> Result<Self> {
        let folder = built()?.folder.path();
        Self::copy_of(&folder.join("checkout"))
    }

    fn copy_of(from: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        // Names of another length than those of other copies.
        let path = folder.path().join("a-checkout-of-its-own");
        store::prepare(&path)?;
        for number in 0..MODULES {
            let name = format!("m{number}.o");
            fs::copy(from.join(&name), path.join(&name))?;
        }
        Ok(Self { path, _folder: Some(folder) })
    }

    /// `distlto link` with options, without anything of this machine's configuration.
    pub fn link(&self, options: &[&str]) -> Result<Command> {
        self.link_of(options, &inputs())
    }

    /// The same of other modules.
    pub fn link_of(&self, options: &[&str], inputs: &[String]) -> Result<Command> {
        let mut command = self.command(distlto::binary()?)?;
        command.arg("link").args(options).arg("--").arg(LLVM.tool("clang")?).args(words()).args(inputs);
        Ok(command)
    }

    /// The link of the same by lld with a distributor.
    pub fn plain_link(&self) -> Result<Command> {
        let mut command = self.command(&LLVM.tool("clang")?)?;
        command
            .args(words())
            .args(inputs())
            .arg(format!("-fthinlto-distributor={}", distlto::distributor()?.display()));
        Ok(command)
    }

    /// A program that is run in the folder.
    pub fn command(&self, program: &Path) -> Result<Command> {
        let mut command = Command::new(program);
        command.current_dir(&self.path).env("XDG_CONFIG_HOME", self.path.join("config"));
        store::give(&mut command);
        for name in VARIABLES {
            command.env_remove(name);
        }
        // Another test's server may have had this one's port, and been dead; and nothing is dropped since a machine is slow.
        command.env("DISTLTO_LEDGER", self.path.join("ledger")).env("DISTLTO_REMOTE_UPLOAD_TIME", "10m");
        Ok(command)
    }

    pub fn program(&self) -> Result<Vec<u8>> {
        Ok(fs::read(self.path.join("program"))?)
    }

    pub fn objects(&self) -> Result<Objects> {
        let found = distlto::objects(&self.path.join("program"))?;
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(found.into_iter().map(|(path, bytes)| (name(&path), bytes)).collect())
    }

    /// Makes sure that a link has made what it has to make, and left nothing else.
    pub fn check(&self) -> Result<()> {
        self.check_program()?;
        let expected = &built()?.objects;
        let found = self.objects()?;
        let differ = |name: &&String| found.get(*name) != expected.get(*name);
        let wrong: Vec<_> = expected.keys().filter(differ).collect();
        ensure!(
            wrong.is_empty() && found.len() == expected.len(),
            "other objects: {wrong:?} of {}",
            found.len()
        );
        self.check_temporaries()
    }

    /// The same of the program alone.
    pub fn check_program(&self) -> Result<()> {
        ensure!(self.program()? == built()?.program, "another program");
        Ok(())
    }

    /// Makes sure that nothing is left that was in the making.
    pub fn check_temporaries(&self) -> Result<()> {
        let mut waiting = vec![self.path.clone()];
        while let Some(dir) = waiting.pop() {
            for entry in fs::read_dir(dir)? {
                let path = entry?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let is_left = [".distlto-tmp-", ".reapi-"].iter().any(|prefix| name.starts_with(prefix));
                ensure!(!is_left && !name.ends_with(".downloaded"), "{} is left", path.display());
                if path.is_dir() {
                    waiting.push(path);
                }
            }
        }
        Ok(())
    }

    /// Forgets what was linked.
    pub fn clear(&self) -> Result<()> {
        fs::remove_file(self.path.join("program"))?;
        distlto::forget(&self.path.join("program"))
    }

    /// Links on a server, to the right end; gives what was said.
    pub fn linked(&self, server: &Server, options: &[&str]) -> Result<String> {
        Running::start(self.remote_link(&server.url(), options)?)?.right(self)
    }

    /// The link with a server, and as little as can be on this machine.
    pub fn remote_link(&self, url: &str, options: &[&str]) -> Result<Command> {
        self.link(&[&["-j1", "--remote", url], options].concat())
    }
}

/// A link under way.
pub struct Running {
    command: Command,
    child: Child,
}

impl Running {
    pub fn start(mut command: Command) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().context("cannot start distlto")?;
        Ok(Self { command, child })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn has_ended(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    pub fn end(self) -> Result<Ended> {
        let Self { command, child } = self;
        let output = child.wait_with_output()?;
        Ok(Ended { command, output })
    }

    /// The end of a link that makes the right thing.
    pub fn right(self, checkout: &Checkout) -> Result<String> {
        let ended = self.end()?;
        ensure!(ended.output.status.success(), "{}", ended.told());
        checkout.check().with_context(|| ended.told())?;
        Ok(ended.said())
    }
}

/// A link that ended.
pub struct Ended {
    command: Command,
    pub output: Output,
}

impl Ended {
    pub fn told(&self) -> String {
        told(&self.command, &self.output)
    }

    pub fn said(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }
}

/// Runs a link that has to fail; gives its exit code and what it said.
pub fn refused(mut command: Command, checkout: &Checkout) -> Result<(i32, String)> {
    let output = capture(&mut command)?;
    let code = output.status.code().filter(|code| *code != 0).with_context(|| told(&command, &output))?;
    ensure!(!checkout.path.join("program").exists(), "there is a program: {}", told(&command, &output));
    checkout.check_temporaries()?;
    Ok((code, String::from_utf8_lossy(&output.stderr).into_owned()))
}

/// Warnings in what was said.
pub fn warnings(said: &str) -> Vec<&str> {
    said.lines().filter(|line| line.contains("warning: ")).collect()
}
