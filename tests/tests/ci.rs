//! The jobs of `docs/caches.md` that keep a folder, as a CI service performs them: in a new checkout each time, with the folder
//! that the job before left.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::succeed;
use distlto_tests::toolchain::{Toolchain, repository};

const MAKEFILE: &str = "prog: main.o b.o\n\t%clang -fuse-ld=lld main.o b.o -o $@\n%.o: %.c\n\t%clang -O2 -flto=thin -c $< -o $@\n";

/// A job of the page.
struct Job {
    /// The value of DISTLTO_CACHE.
    cache: String,
    /// The folder that the service keeps, relative to the checkout.
    kept: String,
    lines: Vec<String>,
}

/// The jobs in the blocks of the page that prune a folder.
fn jobs() -> Result<Vec<Job>> {
    let page = fs::read_to_string(repository().join("docs/caches.md"))?;
    let blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.filter(|block| block.contains("distlto cache prune")).map(job).collect()
}

fn job(block: &str) -> Result<Job> {
    let value = |key: &str| {
        let found = block.lines().find_map(|line| line.trim().strip_prefix(key));
        found
            .map(|value| value.trim().trim_matches(['[', ']']).to_owned())
            .with_context(|| format!("no {key}"))
    };
    let command = |line: &str| {
        let line = line.trim().strip_prefix("- ")?;
        let line = line.strip_prefix("run: ").unwrap_or(line);
        line.starts_with("distlto ").then(|| line.to_owned())
    };
    Ok(Job {
        cache: value("DISTLTO_CACHE:")?,
        kept: value("path:").or_else(|_| value("paths:"))?,
        lines: block.lines().filter_map(command).collect(),
    })
}

/// Runs a job in this checkout, and returns the messages.
fn perform(job: &Job, checkout: &Path, path: &OsString) -> Result<String> {
    let place = checkout.display().to_string();
    let cache = job.cache.replace("${{ github.workspace }}", &place).replace("$CI_PROJECT_DIR", &place);
    ensure!(Path::new(&cache) == checkout.join(&job.kept), "{cache} is not kept, but {}", job.kept);
    let mut said = String::new();
    for line in &job.lines {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(checkout).env("PATH", path).env("DISTLTO_CACHE", &cache);
        said += &String::from_utf8(succeed(&mut shell)?.stderr)?;
    }
    Ok(said)
}

#[test]
fn a_job_finds_the_objects_of_the_one_before() -> Result<()> {
    let toolchain = Toolchain::from_env()?;
    let tools = distlto::binary()?.parent().context("a program has a directory")?.to_owned();
    let search = env::var_os("PATH").context("PATH is set")?;
    let path = env::join_paths([tools].into_iter().chain(env::split_paths(&search)))?;
    let jobs = jobs()?;
    ensure!(jobs.len() == 2, "GitHub and GitLab");
    for (number, job) in jobs.iter().enumerate() {
        ensure!(job.lines.len() == 2, "{:?}", job.lines);
        let folder = Folder::create(toolchain, &format!("ci/{number}"))?;
        let clang = folder.expand("%clang", "")?;
        for name in ["one", "two"] {
            folder.write(&format!("{name}/Makefile"), MAKEFILE.replace("%clang", &clang))?;
            folder.write(&format!("{name}/main.c"), "int b(int);\nint main(void) { return b(1) - 5; }\n")?;
            folder.write(&format!("{name}/b.c"), "int b(int x) { return x + 4; }\n")?;
        }
        let [one, two] = ["one", "two"].map(|name| folder.path.join(name));
        let said = perform(job, &one, &path)?;
        ensure!(said.contains(": 2 backends ran; the next build finds these objects"), "{said}");
        succeed(Command::new("mv").arg(one.join(&job.kept)).arg(&two))?;
        let said = perform(job, &two, &path)?;
        ensure!(said.contains(": 0 backends ran, 2 objects found"), "{said}");
    }
    Ok(())
}
