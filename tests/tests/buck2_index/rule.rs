//! What the prelude's rule for `gnu` does around the planner: meta file, argument file, command line.
//!
//! The command line is that of a recorded run, with other names.

use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::{Context, Result};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::{capture, succeed};
use distlto_tests::toolchain::Toolchain;
use serde_json::{Value, json};

/// Where the linker writes.
pub const INDEX: &str = "out/index-directory";

/// A link that a rule could ask for.
pub struct Rule {
    pub folder: Folder,
    /// The entries of the meta file.
    pub meta: Vec<Value>,
    /// The lines of the argument file.
    pub arguments: Vec<String>,
    /// The driver and what stands before the argument file.
    pub driver: Vec<String>,
    /// What stands after it.
    pub more: Vec<String>,
}

impl Rule {
    /// A link of nothing, with `--thinlto-full-index` where the rule has it.
    pub fn create(name: &str) -> Result<Self> {
        let folder = Folder::create(Toolchain::from_env()?, &format!("buck2-index/{name}"))?;
        let tool = |name| -> Result<String> { Ok(folder.toolchain.tool(name)?.display().to_string()) };
        let driver =
            vec![tool("clang++")?, "-fuse-ld=lld".to_owned(), format!("--ld-path={}", tool("ld.lld")?)];
        let more = vec!["-Wl,--thinlto-full-index".to_owned()];
        Ok(Self { folder, meta: Vec::new(), arguments: Vec::new(), driver, more })
    }

    /// Compiles a C source to an object, to bitcode if `lto`.
    pub fn compile(&self, object: &str, source: &str, lto: bool) -> Result<()> {
        let name = format!("sources/{object}.c");
        self.folder.write(&name, source)?;
        self.folder.write(object, "")?;
        let mut clang = Command::new(self.folder.toolchain.tool("clang")?);
        clang.args(["-O2", "-ffunction-sections", "-c", &name, "-o", object]);
        clang.args(lto.then_some("-flto=thin")).current_dir(&self.folder.path);
        succeed(&mut clang).map(drop)
    }

    /// Puts objects into an archive.
    pub fn archive(&self, archive: &str, objects: &[&str]) -> Result<()> {
        let mut ar = Command::new(self.folder.toolchain.tool("llvm-ar")?);
        succeed(ar.arg("rcs").arg(archive).args(objects).current_dir(&self.folder.path)).map(drop)
    }

    /// Adds an entry with one object, compiled from a C source.
    pub fn object(&mut self, object: &str, source: &str, lto: bool) -> Result<()> {
        self.compile(object, source, lto)?;
        let index = self.meta.len();
        self.meta.push(json!({"pre_flags": [], "post_flags": [], "linkables": [{
            "type": "bitcode", "path": object, "idx": index,
            "output": format!("out/{index}/{object}.thinlto.bc"),
            "plan_output": format!("out/{index}/{object}.opt.plan"),
        }]}));
        self.arguments.push(if object.contains(' ') { format!("'{object}'") } else { object.to_owned() });
        Ok(())
    }

    /// Adds an entry with something that is linked as it is.
    pub fn opaque(&mut self, file: &str, words: &[&str]) {
        self.meta.push(json!({"pre_flags": [], "post_flags": [], "linkables": [{
            "type": "cmd_args", "cmd_args": words, "object": {"type": "archive", "archive": file},
        }]}));
        self.arguments.extend(words.iter().map(|&word| word.to_owned()));
    }

    /// Adds an entry of flags.
    pub fn flags(&mut self, flags: &[&str]) {
        self.meta.push(json!({"pre_flags": [flags], "post_flags": [], "linkables": []}));
        self.arguments.extend(flags.iter().map(|&flag| flag.to_owned()));
    }

    /// The rule's command.
    pub fn command(&self) -> Result<Command> {
        self.folder.write("meta.json", Value::Array(self.meta.clone()).to_string())?;
        self.folder.write("app.thinlto_index_argsfile", self.arguments.join("\n"))?;
        let mut command = Command::new(distlto::binary()?);
        command.args(["index", "--meta", "meta.json", "--index", INDEX]);
        command.args(["--link-plan", "out/link-plan.json", "--final-link-index", "out/final", "--"]);
        command.args(&self.driver).args(["@app.thinlto_index_argsfile", "-o", "out/app"]);
        command.args([
            &format!("-Wl,--thinlto-index-only={INDEX}/index"),
            "-Wl,--thinlto-emit-imports-files",
            &format!("-Wl,--thinlto-prefix-replace=;{INDEX}/"),
        ]);
        command.args(&self.more).current_dir(&self.folder.path);
        Ok(command)
    }

    /// Runs it; it has to succeed.
    pub fn run(&self) -> Result<Output> {
        succeed(&mut self.command()?)
    }

    /// Runs it, whatever it does.
    pub fn try_run(&self) -> Result<Output> {
        capture(&mut self.command()?)
    }

    /// The lines of a file.
    pub fn lines(&self, file: &str) -> Result<Vec<String>> {
        let text = std::fs::read_to_string(self.path(file)).with_context(|| file.to_owned())?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// A JSON file.
    pub fn json(&self, file: &str) -> Result<Value> {
        Ok(serde_json::from_slice(&std::fs::read(self.path(file)).with_context(|| file.to_owned())?)?)
    }

    /// A path below the folder.
    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.path.join(file)
    }
}

/// How `index.full` names a bitcode file.
pub fn below(file: &str) -> String {
    format!("{INDEX}/{file}")
}
