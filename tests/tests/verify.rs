//! `distlto verify`: what it says of links whose results are alike, differ for a reason, or differ for none; against links
//! whose differences the test has put there.

use std::fs;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::{capture, succeed};
use distlto_tests::toolchain::Toolchain;
use serde_json::Value;

const MAIN: &str = "#include <cstdio>\nint a(int), b(int);\n\
                    int main(int count, char **) { std::printf(\"%d\\n\", a(count) + b(2)); }\n";
const A: &str = "int shared(int);\n__attribute__((noinline)) int a(int x) { return shared(x) + 1; }\n";
const SHARED: &str = "static int hidden(int x) { return x * 7; }\nint (*pointer)(int) = hidden;\n\
                      int shared(int x) { return x * 100 + hidden(x); }\n";
const NEAR: &str = "int shared(int);\n__attribute__((noinline)) int b(int x) { return shared(x) + 2; }\n";

struct Link {
    folder: Folder,
    words: Vec<String>,
}

impl Link {
    fn create(name: &str, sources: &[(&str, &str)]) -> Result<Self> {
        let folder = Folder::create(Toolchain::from_env()?, &format!("verify/{name}"))?;
        let clang = folder.toolchain.tool("clang++")?;
        let mut words = vec![clang.display().to_string()];
        words.extend(
            ["-O2", "-flto=thin", "-Wl,--build-id", "-o", "program", "-Wl,-Map=program.map"]
                .map(str::to_owned),
        );
        words.push(format!("--ld-path={}", folder.toolchain.tool("ld.lld")?.display()));
        for (name, text) in sources {
            let (source, object) = (format!("{name}.cpp"), format!("{name}.o"));
            folder.write(&source, text)?;
            let mut compile = Command::new(&clang);
            compile.args(["-O2", "-g", "-fPIE", "-flto=thin", "-c", &source, "-o", &object]);
            succeed(compile.current_dir(&folder.path))?;
            words.push(object);
        }
        Ok(Self { folder, words })
    }

    fn verify(&self, options: &[&str]) -> Result<Output> {
        let mut command = Command::new(distlto::binary()?);
        command.arg("verify").args(options).arg("--").args(&self.words).current_dir(&self.folder.path);
        capture(command.env_remove("DISTLTO_STATE").env_remove("DISTLTO_CACHE"))
    }

    /// What it found, which has to end with this exit code; the text has to hold the words.
    fn found(&self, options: &[&str], code: i32, words: &str) -> Result<Value> {
        let told = self.verify(options)?;
        let text = String::from_utf8_lossy(&told.stdout);
        ensure!(told.status.code() == Some(code) && text.contains(words), "{words}: {told:?}");
        let options: Vec<&str> = options.iter().chain(&["--json"]).copied().collect();
        let told = self.verify(&options)?;
        ensure!(told.status.code() == Some(code), "{told:?}");
        Ok(serde_json::from_slice(&told.stdout)?)
    }
}

#[test]
fn the_same_is_called_the_same_and_nothing_else_is_written() -> Result<()> {
    let link = Link::create("same", &[("main", MAIN), ("a", A), ("b", NEAR), ("shared", SHARED)])?;
    fs::write(link.folder.path.join("program"), "the user's own")?;
    let found = link.found(&[], 0, "--exact-names makes lld's own program, byte for byte\n")?;
    ensure!(found["same_program"] == true && found["unknown"] == 0, "{found}");
    ensure!(fs::read_to_string(link.folder.path.join("program"))? == "the user's own");
    ensure!(
        !link.folder.path.join("program.map").exists()
            && !distlto::state_dir(&link.folder.path.join("program"))?.exists()
    );
    Ok(())
}

/// lld writes the name of an output without a soname into the definitions of versions.
#[test]
fn a_library_with_versions_and_no_soname_is_the_same() -> Result<()> {
    let mut link = Link::create("versions", &[("a", A), ("shared", SHARED)])?;
    link.folder.write("versions", "ONE { global: *; };\n")?;
    link.words.extend(["-shared", "-Wl,--version-script=versions"].map(str::to_owned));
    let found = link.found(&[], 0, "--exact-names makes lld's own program, byte for byte\n")?;
    ensure!(found["same_program"] == true && found["unknown"] == 0, "{found}");
    Ok(())
}

#[test]
fn a_difference_that_nothing_explains_is_an_error() -> Result<()> {
    let link = Link::create("unknown", &[("main", MAIN), ("a", A), ("b", NEAR), ("shared", SHARED)])?;
    let clang = link.folder.toolchain.tool("clang++")?;
    // A compiler that does its work badly for distlto alone.
    let script = format!(
        "#!/bin/sh\ncase \" $* \" in *by-distlto*b.o.o*) exec '{0}' \"$@\" -O0 ;; esac\nexec '{0}' \"$@\"\n",
        clang.display()
    );
    link.folder.write("clang-bad", script)?;
    succeed(Command::new("chmod").arg("+x").arg(link.folder.path.join("clang-bad")))?;
    let found = link.found(&["--compiler=./clang-bad"], 1, "differences without a known cause")?;
    let objects = found["objects"].as_array().context("objects")?;
    let differs: Vec<_> = objects.iter().filter(|object| object["identical"] == false).collect();
    ensure!(differs.len() == 1 && differs[0]["module"] == "b.o" && differs[0]["cause"].is_null(), "{found}");
    ensure!(!differs[0]["difference"]["sections"].as_array().context("sections")?.is_empty(), "{found}");
    Ok(())
}

#[test]
fn a_link_that_fails_is_no_success() -> Result<()> {
    let link = Link::create("failing", &[("main", MAIN), ("a", A)])?;
    let found = link.found(&[], 1, "lld alone fails, and so does distlto\n")?;
    ensure!(found["same_status"] == true, "{found}");
    for (words, help) in [(&["true"][..], "no link by lld"), (&["ld.lld", "--version"], "no link by lld")] {
        let mut command = Command::new(distlto::binary()?);
        let output = capture(command.args(["verify", "--"]).args(words).current_dir(&link.folder.path))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(2) && said.contains(help), "{words:?}: {said}");
    }
    let output = link.verify(&["--keep", "."])?;
    ensure!(output.status.code() == Some(2), "{output:?}");
    Ok(())
}
