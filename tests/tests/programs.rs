//! Runs every case of `cases/` that applies to the LLVM chosen by `DISTLTO_TEST_LLVM`.
//!
//! `cargo test -p distlto-tests --test programs -- FILTER` runs some of them.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use clap::ValueEnum;
use distlto_tests::campaign::formats::Format;
use distlto_tests::case::Case;
use distlto_tests::check::check;
use distlto_tests::formatted;
use distlto_tests::toolchain::Toolchain;
use libtest_mimic::{Arguments, Failed, Trial};

static IDENTICAL: AtomicUsize = AtomicUsize::new(0);
static COMPILED: AtomicUsize = AtomicUsize::new(0);

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let listed = Toolchain::from_env().and_then(|toolchain| Ok((toolchain, trials(toolchain)?)));
    let (toolchain, (trials, elsewhere)) = match listed {
        Ok(listed) => listed,
        Err(error) => {
            eprintln!("error: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let quiet = arguments.list;
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !quiet {
        let (identical, compiled) = (IDENTICAL.load(Ordering::Relaxed), COMPILED.load(Ordering::Relaxed));
        let version = toolchain.version;
        println!("LLVM {version}: {compiled} native objects, {identical} compared and identical");
        println!("LLVM {version}: {elsewhere} further cases are for other versions");
    }
    conclusion.exit_code()
}

/// The cases for a version, the slow ones first, and the number of the others.
fn trials(toolchain: Toolchain) -> Result<(Vec<Trial>, usize)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let mut cases = Vec::new();
    for folder in sorted(&root)?.iter().filter(|path| path.is_dir()) {
        for path in sorted(folder)? {
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let name = path.strip_prefix(&root)?.with_extension("");
            cases.push(Case::parse(name.to_str().context("names of cases are UTF-8")?, &text)?);
        }
    }
    cases.sort_by_key(|case| (!case.name.starts_with("third-party/"), case.name.clone()));
    let all = cases.len();
    cases.retain(|case| case.llvm.hold(toolchain.version));
    let elsewhere = all - cases.len();
    let mut trials = Vec::new();
    for case in cases {
        for &format in Format::value_variants() {
            let name = format!("{format:?}").to_lowercase();
            if toolchain.version >= format.oldest() && case.is_for(&name) {
                let (case, trial) = (case.clone(), format!("{}/{name}", case.name));
                let check = move || formatted::check(&case, format, toolchain);
                trials.push(Trial::test(trial, move || check().map_err(|error| format!("{error:#}").into())));
            }
        }
        if case.is_for("elf") {
            trials.push(Trial::test(case.name.clone(), move || run(&case, toolchain)));
        }
    }
    Ok((trials, elsewhere))
}

fn run(case: &Case, toolchain: Toolchain) -> Result<(), Failed> {
    let compared = check(case, toolchain).map_err(|error| format!("{error:#}"))?;
    IDENTICAL.fetch_add(compared.identical, Ordering::Relaxed);
    COMPILED.fetch_add(compared.compiled, Ordering::Relaxed);
    if case.name.starts_with("third-party/") {
        let name = &case.name;
        let of = if compared.identical > 0 {
            format!("{} identical of ", compared.identical)
        } else {
            String::new()
        };
        println!("{name}: {of}{} native objects", compared.compiled);
    }
    Ok(())
}

fn sorted(dir: &Path) -> Result<Vec<std::path::PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}
