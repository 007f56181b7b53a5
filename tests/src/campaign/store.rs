//! Many links at once on one store: some are killed, and others remove from the store what these links use.
//!
//! A seed decides which modules each program has, which links are killed, and when. The oracle is lld alone. In the end every link is
//! made once more, which may find anything that the others have left.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::links::Request;
use super::random::Random;
use crate::distlto;
use crate::run::{capture, succeed, told};
use crate::store::{self, CACHE};
use crate::toolchain::Toolchain;

/// Modules that programs are made of.
const POOL: usize = 40;
/// So many kilobytes the store may take: less than the objects of all.
const SIZE: &str = "600K";

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// Links that ran at once.
    pub links: usize,
    /// Those of them that were killed.
    pub killed: usize,
    /// How often the store was pruned or looked through meanwhile.
    pub cleanings: usize,
    /// Files that were removed from the store.
    pub removed: u64,
    /// What was wrong.
    pub wrong: Vec<String>,
}

impl fmt::Display for Found {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { links, killed, cleanings, removed, wrong } = self;
        write!(
            out,
            "{links} links at once, {killed} killed; the store was cleaned {cleanings} times, {removed} files removed; wrong {}",
            wrong.len()
        )
    }
}

struct Programs {
    directory: PathBuf,
    toolchain: Toolchain,
}

/// Runs the campaign; tells what is wrong as it is found. `count` links run at once.
pub fn store(request: &Request, toolchain: Toolchain) -> Result<Found> {
    let directory = request.directory.join(format!("store-{}", request.seed));
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    store::prepare(&directory)?;
    let programs = Programs { directory, toolchain };
    let mut random = Random::new(request.seed ^ 0x7374_6f72);
    programs.compile()?;
    let lines: Vec<Vec<String>> = (0..request.count).map(|at| programs.line(&mut random, at)).collect();
    for line in &lines {
        succeed(&mut programs.clang(line))?;
        fs::rename(programs.directory.join(&line[0]), programs.directory.join(format!("{}.lld", line[0])))?;
    }
    let mut found = Found { links: lines.len(), ..Found::default() };
    let is_over = AtomicBool::new(false);
    let ended = scope(|scope| {
        let cleaning = scope.spawn(|| programs.clean(&is_over));
        let ended = programs.at_once(&lines, &mut random);
        is_over.store(true, Ordering::Relaxed);
        let (cleanings, removed) = cleaning.join().map_err(|_| anyhow::anyhow!("cleaning panicked"))??;
        (found.cleanings, found.removed) = (cleanings, removed);
        ended
    })?;
    for (line, is_killed) in lines.iter().zip(ended) {
        found.killed += usize::from(is_killed);
        if !is_killed {
            found.wrong.extend(programs.other(line, "at once")?);
        }
        succeed(&mut programs.link(line)?)?;
        found.wrong.extend(programs.other(line, "again")?);
    }
    found.wrong.extend(programs.damaged()?);
    found.wrong.iter().for_each(|message| println!("{message}"));
    if !request.keep {
        fs::remove_dir_all(&programs.directory)?;
    }
    Ok(found)
}

impl Programs {
    fn compile(&self) -> Result<()> {
        let mut command = Command::new(self.toolchain.tool("clang")?);
        command.args(["-O2", "-flto=thin", "-c"]).current_dir(&self.directory);
        for at in 0..POOL {
            let next = (at * 7 + 3) % POOL;
            let body = format!(
                "__attribute__((weak)) int f{next}(int);\nint table{at}[64];\nint f{at}(int x) {{\n  \
                 for (int i = 0; i < x % 64; i++) table{at}[i] += x ^ {at};\n  \
                 return x > 0 && f{next} ? f{next}(x - 1) + {at} : table{at}[x & 63];\n}}\n"
            );
            let name = format!("f{at}.c");
            fs::write(self.directory.join(&name), body)?;
            command.arg(name);
        }
        fs::write(
            self.directory.join("main.c"),
            "extern int first(int);\nint main(void) { return first(9) & 1; }\n",
        )?;
        succeed(command.arg("main.c")).map(drop)
    }

    /// The output of a program, then the words that it takes.
    fn line(&self, random: &mut Random, at: usize) -> Vec<String> {
        let modules: BTreeSet<usize> = (0..random.between(3, 14)).map(|_| random.below(POOL)).collect();
        let first = modules.iter().next().copied().unwrap_or_default();
        let own = [format!("p{at}"), "main.o".to_owned(), format!("-Wl,--defsym=first=f{first}")];
        own.into_iter().chain(modules.into_iter().map(|module| format!("f{module}.o"))).collect()
    }

    fn clang(&self, line: &[String]) -> Command {
        let mut command = Command::new(format!("clang-{}", self.toolchain.version));
        if let Ok(clang) = self.toolchain.tool("clang") {
            command = Command::new(clang);
        }
        command.args(["-O2", "-flto=thin", "-fuse-ld=lld", "-o"]).args(line).current_dir(&self.directory);
        command
    }

    fn distlto(&self) -> Result<Command> {
        let mut command = Command::new(distlto::binary()?);
        command.current_dir(&self.directory).env("XDG_CACHE_HOME", self.directory.join(CACHE));
        for name in ["DISTLTO_CACHE", "DISTLTO_STATE", "DISTLTO_LINK_OPTIONS"] {
            command.env_remove(name);
        }
        Ok(command)
    }

    fn link(&self, line: &[String]) -> Result<Command> {
        let clang = self.clang(line);
        let mut command = self.distlto()?;
        command.args(["link", "--cache-size", SIZE, "--"]).arg(clang.get_program()).args(clang.get_args());
        Ok(command)
    }

    /// Starts all links and waits for them; says of each whether it was killed.
    fn at_once(&self, lines: &[Vec<String>], random: &mut Random) -> Result<Vec<bool>> {
        let mut running: Vec<(Child, Option<Instant>)> = Vec::new();
        for line in lines {
            let mut command = self.link(line)?;
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let killed = random
                .chance(20)
                .then(|| Instant::now() + Duration::from_millis(random.between(20, 40 * lines.len()) as u64));
            running.push((command.spawn().context("cannot start distlto")?, killed));
        }
        let mut ended: Vec<Option<bool>> = vec![None; lines.len()];
        while ended.contains(&None) {
            for ((child, killed), ended) in
                running.iter_mut().zip(&mut ended).filter(|(_, ended)| ended.is_none())
            {
                if let Some(status) = child.try_wait()? {
                    // One that was to be killed may have been quicker.
                    ensure!(status.success(), "a link ended with {status}");
                    *ended = Some(false);
                } else if killed.is_some_and(|at| Instant::now() > at) {
                    child.kill()?;
                    child.wait()?;
                    *ended = Some(true);
                }
            }
            sleep(Duration::from_millis(2));
        }
        Ok(ended.into_iter().flatten().collect())
    }

    /// Prunes the store until the links have ended; how often, and how many files that has removed.
    fn clean(&self, is_over: &AtomicBool) -> Result<(usize, u64)> {
        let (mut cleanings, mut removed) = (0, 0);
        while !is_over.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(100));
            let size = if cleanings % 3 == 0 { "0" } else { "200K" };
            let mut prune = self.distlto()?;
            let output = capture(prune.args(["cache", "prune", "--json", "--max-size", size]))?;
            // Before the first link there is none.
            if output.status.success() {
                let said: serde_json::Value = serde_json::from_slice(&output.stdout)?;
                removed += said["cache"]["removed_files"].as_u64().unwrap_or(0);
                cleanings += 1;
            }
        }
        Ok((cleanings, removed))
    }

    /// Says so if a program is another one than lld's.
    fn other(&self, line: &[String], when: &str) -> Result<Option<String>> {
        let name = &line[0];
        let read = |name: &str| fs::read(self.directory.join(name)).with_context(|| format!("no {name}"));
        let is_other = read(name)? != read(&format!("{name}.lld"))?;
        Ok(is_other.then(|| format!("{name}, linked {when}, is not lld's: {}", line.join(" "))))
    }

    /// Says so if the store holds something damaged.
    fn damaged(&self) -> Result<Option<String>> {
        let mut verify = self.distlto()?;
        let output = capture(verify.args(["cache", "verify"]))?;
        Ok((!output.status.success()).then(|| told(&verify, &output)))
    }
}
