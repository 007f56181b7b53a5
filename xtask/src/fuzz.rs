//! `cargo xtask fuzz`: every parser by libFuzzer, with coverage, beginning with what a real link reads and leaves.
//!
//! Everything lies below `target/fuzz`: the seeds, what was found to reach further, and inputs that end a parser. The
//! compiler of this workspace does it; no other toolchain is needed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use crate::install::files;
use crate::shell::{cargo, quietly, remove, run, target};

/// The parsers of `tests/fuzz/src/main.rs`.
const PARSERS: [&str; 10] =
    ["archive", "buck2", "graph", "job-file", "module", "native", "record", "shard", "text", "thing"];

/// What makes a program tell libFuzzer where it has been, and end where a release would go on.
const FLAGS: [&str; 8] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "-Cdebug-assertions",
    "-Coverflow-checks",
];

/// A greater seed would make every try slow.
const LARGEST_SEED: u64 = 64 << 10;

/// Tries these parsers, all where none is named, each for so many seconds. Whether none of them ended.
pub fn fuzz(names: &[String], seconds: u64) -> Result<bool> {
    for name in names {
        ensure!(PARSERS.contains(&name.as_str()), "{name} is none of {}", PARSERS.join(", "));
    }
    let folder = target().join("fuzz");
    let seeds = seeds(&folder)?;
    let program = build(&folder)?;
    let mut is_well = true;
    for name in PARSERS.iter().filter(|name| names.is_empty() || names.iter().any(|asked| asked == *name)) {
        let corpus = folder.join("corpus").join(name);
        fs::create_dir_all(&corpus)?;
        let mut fuzzer = Command::new(&program);
        fuzzer.env("DISTLTO_FUZZ", name).arg(&corpus).arg(&seeds).current_dir(&folder);
        fuzzer.args([
            "-rss_limit_mb=2048",
            "-timeout=20",
            "-print_final_stats=1",
            "-verbosity=0",
            "-print_funcs=0",
        ]);
        fuzzer.arg(format!("-max_total_time={seconds}")).arg(format!("-artifact_prefix={name}-"));
        println!("{name}:");
        let is_sound = fuzzer.status()?.success();
        if !is_sound {
            println!(
                "{name} failed; the input lies in {} and is tried again by\n  DISTLTO_FUZZ={name} {} FILE",
                folder.display(),
                program.display()
            );
        }
        is_well &= is_sound;
    }
    Ok(is_well)
}

fn build(folder: &Path) -> Result<PathBuf> {
    // With a target the flags are for the program alone, not for what is run to build it.
    let (host, built) = (format!("{}-unknown-linux-gnu", std::env::consts::ARCH), folder.join("build"));
    let mut build = cargo();
    build.args(["build", "--release", "--package", "distlto-fuzz", "--features", "libfuzzer"]);
    build.args(["--target", &host]);
    build.env("CARGO_TARGET_DIR", &built).env("RUSTFLAGS", FLAGS.join(" "));
    run(&mut build)?;
    Ok(built.join(host).join("release/distlto-fuzz"))
}

/// A folder of everything that links of a small program read and leave.
fn seeds(folder: &Path) -> Result<PathBuf> {
    let (here, seeds) = (folder.join("link"), folder.join("seeds"));
    remove(&here)?;
    remove(&seeds)?;
    fs::create_dir_all(&here)?;
    fs::create_dir_all(&seeds)?;
    quietly(cargo().args(["build", "--quiet", "--package", "distlto"]))?;
    let distlto = target().join("debug/distlto");
    for (name, text) in [
        (
            "a.c",
            "int b(int), n(int);\nint main(int argc, char **argv) { (void)argv; return b(argc) + n(argc); }\n",
        ),
        ("b.c", "static int table[] = {1, 2, 3};\nint b(int x) { return table[x & 1]; }\n"),
        ("n.c", "__attribute__((weak)) int n(int x) { return x * 2; }\n"),
        ("keep-job.sh", "#!/bin/sh\nfor file; do :; done\ncp \"$file\" job.json\nexit 1\n"),
    ] {
        fs::write(here.join(name), text)?;
    }
    fs::set_permissions(here.join("keep-job.sh"), fs::Permissions::from_mode(0o755))?;
    let command = |words: &str| {
        let mut words = words.split(' ');
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).current_dir(&here).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let link = "clang-22 -O2 -flto=thin -fuse-ld=lld a.o lib.a n.o -Wl,--dependency-file=program.d";
    let ours = distlto.display();
    for words in [
        "clang-22 -O2 -flto=thin -c a.c b.c",
        "clang-22 -O2 -c n.c",
        "llvm-ar-22 rc lib.a b.o",
        "llvm-ar-22 rcT thin.a b.o",
        &format!("{ours} link -- {link} -Wl,--time-trace=trace.json -o program"),
        &format!("{ours} index --index index -- {link} -o two"),
    ] {
        quietly(&mut command(words))?;
    }
    // Its distributor keeps the job file and fails.
    let _ = command(&format!(
        "{link} -Wl,--thinlto-distributor=./keep-job.sh -Wl,--thinlto-remote-compiler=clang-22 -o job"
    ))
    .status()?;
    ensure!(here.join("job.json").is_file(), "lld handed over no job file");
    let told = command("clang-22 -### -c a.c").stderr(Stdio::piped()).output()?;
    fs::write(here.join("driver.txt"), told.stderr)?;
    for (number, file) in files(&here)?.iter().enumerate() {
        if file.metadata()?.len() <= LARGEST_SEED {
            fs::copy(file, seeds.join(number.to_string()))?;
        }
    }
    Ok(seeds)
}
