//! Rules about what Bazel and Buck2 load: buildifier's form for both, and its advice for Bazel.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::File;
use crate::bazel::buildifier;
use crate::shell::root;

/// Advice that is not followed: arguments are described in prose, and what few lines load needs no introduction.
const ADVICE: &str =
    "-function-docstring-args,-function-docstring-header,-function-docstring-return,-module-docstring";

/// Findings over all files.
pub fn check(files: &[File]) -> Result<Vec<String>> {
    let paths = || files.iter().map(|file| file.path.as_str()).filter(|path| is_starlark(path));
    let (bazel, buck): (Vec<&str>, Vec<&str>) = paths().partition(|path| path.contains("bazel"));
    let mut findings = ask(&["-lint=warn", &format!("-warnings={ADVICE}")], &bazel)?;
    findings.extend(ask(&["-lint=off"], &buck)?);
    Ok(findings)
}

fn is_starlark(path: &str) -> bool {
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".bzl")
        || ["BUCK", "BUILD", "BUILD.bazel", "MODULE.bazel", "WORKSPACE", "WORKSPACE.bazel"].contains(&&*name)
}

fn ask(options: &[&str], paths: &[&str]) -> Result<Vec<String>> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let program = buildifier::program();
    ensure!(program.is_file(), "buildifier is missing; install it with `cargo xtask bazel setup`");
    let mut command = Command::new(&program);
    command.arg("-mode=check").args(options).args(paths).current_dir(root());
    let said = command.output().with_context(|| format!("cannot start {}", program.display()))?;
    if said.status.success() {
        return Ok(Vec::new());
    }
    let text = [said.stdout, said.stderr].concat();
    let remedy = format!("mend it, or run `{} FILE` where it is only reformatted", program.display());
    Ok(vec![format!("{}{remedy}", String::from_utf8_lossy(&text))])
}
