//! Programs of `tests/cases` that tell one way of linking from another, built by distlto's own rules and by lld in process.
//!
//! The file with `main` is the program's own; each other one is a library, which the linker loads where something refers to
//! it. The actions that the rules declare are run, and both programs have to be equal byte for byte.

use std::fmt::Write;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_tests::case::Case;
use distlto_tests::run::succeed;
use distlto_tests::toolchain::repository;

use super::example;
use super::project::Project;

const CASES: [&str; 8] = [
    "cpp/exceptions.cpp",
    "fidelity/competing.cpp",
    "fidelity/load-order.cpp",
    "fidelity/lost-group.cpp",
    "fidelity/nobodys-copy.cpp",
    "fidelity/reference-gone.cpp",
    "fidelity/second-definition.cpp",
    "fidelity/weak-member.cpp",
];

/// A case's files in a folder of the project, `main`'s first.
struct Program {
    folder: String,
    sources: Vec<(String, Option<String>)>,
    headers: Vec<String>,
}

impl Program {
    fn write(project: &Project, name: &str) -> Result<Self> {
        let text = fs::read_to_string(repository().join("tests/cases").join(name))?;
        let case = Case::parse(name, &text)?;
        let folder = name.replace(['/', '.'], "-");
        let mut program = Self { folder: folder.clone(), sources: Vec::new(), headers: Vec::new() };
        for section in &case.sections {
            let place = project.root.join(&folder).join(&section.name);
            fs::create_dir_all(place.parent().context("a file lies in a directory")?)?;
            fs::write(place, &section.text)?;
            let flags =
                case.flags_of.iter().find(|(of, _)| *of == section.name).map(|(_, flags)| flags.clone());
            let main = section.text.contains("int main(");
            match section.name.rsplit('.').next() {
                Some("c" | "cpp" | "S") if main => program.sources.insert(0, (section.name.clone(), flags)),
                Some("c" | "cpp" | "S") => program.sources.push((section.name.clone(), flags)),
                _ => program.headers.push(section.name.clone()),
            }
        }
        ensure!(program.sources.len() > 1, "{name} is one file");
        Ok(program)
    }

    /// Its package's build file.
    fn build_file(&self) -> Result<String> {
        let mut text =
            "load(\"@distlto//:distlto.bzl\", \"distlto_binary\", \"distlto_library\")\n".to_owned();
        let deps: Vec<_> = (1..self.sources.len()).map(|number| format!(":library{number}")).collect();
        for (number, (source, flags)) in self.sources.iter().enumerate() {
            let (rule, name, deps) = match number {
                0 => ("distlto_binary", "program".to_owned(), &deps[..]),
                _ => ("distlto_library", format!("library{number}"), &[][..]),
            };
            let flags: Vec<_> = flags.iter().flat_map(|flags| flags.split(' ')).collect();
            let headers = &self.headers;
            writeln!(
                text,
                "{rule}(name = {name:?}, srcs = [{source:?}], headers = {headers:?}, compiler_flags = {flags:?}, \
                 deps = {deps:?})"
            )?;
        }
        Ok(text)
    }
}

#[test]
fn programs_are_those_of_lld_in_process() -> Result<()> {
    let mut project = example("programs")?;
    let mut unlike = Vec::new();
    for name in CASES {
        let program = Program::write(&project, name)?;
        let folder = &program.folder;
        fs::write(project.root.join(folder).join("BUCK"), program.build_file()?)?;
        let built = project.build(&format!("//{folder}:program")).with_context(|| name.to_owned())?;
        let line = format!("@buck-out/{folder}/__program__/program.thinlto/line");
        let mut link = Command::new("clang++-22");
        link.args(["-fuse-ld=lld", "-flto=thin", &line, "-o", "in-process"]);
        succeed(link.current_dir(&project.root))?;
        if fs::read(&built.outputs[0])? != fs::read(project.root.join("in-process"))? {
            unlike.push(name);
        }
    }
    ensure!(unlike.is_empty(), "{unlike:?}");
    Ok(())
}
