//! `cargo xtask compare --engine`: whether links on an engine of remote execution make what links on this machine make.
//!
//! Objects are compared byte for byte with those of a link without an engine. What is linked again has to come from the
//! action cache alone: from another folder, by lld, whose own DTLTO has `distlto-distribute` to run the jobs, and from a fresh
//! checkout at the same path, all compiled anew. At another path CMake's modules are others: they say where their source lies.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::bench::program::{self, Program};
use crate::bench::remote::ran::Link;
use crate::engine::{Name as Engine, Own};
use crate::linked::{self, Linked, Objects};
use crate::projects::{self, bench_directory};
use crate::{setup, shell};

/// Compares the programs of these projects, of which a new engine has seen nothing.
pub fn run(names: &[projects::Name], engine: Engine) -> Result<()> {
    setup::programs()?;
    let distlto = shell::distlto()?;
    for &name in names {
        let engine = Own::start(engine)?;
        Comparison { distlto: &distlto, engine: &engine }.program(name)?;
    }
    Ok(())
}

struct Comparison<'a> {
    distlto: &'a Path,
    engine: &'a Own,
}

impl Comparison<'_> {
    fn program(&self, name: projects::Name) -> Result<()> {
        let project = name.open(&bench_directory())?;
        let program = program::of_project(&project)?;
        let other = program.elsewhere()?;
        println!("{} on {}", program.name, self.engine.url);
        self.link(&program, "compared-here", &[])?;
        let expected = linked::objects(&program.state("compared-here"))?;
        self.same("nothing cached", &program, "compared", &expected)?;
        ensure!(Link::newest(&program.state("compared"))?.elsewhere() > 0, "the engine executed nothing");
        self.cached("again, under another name", &program, "compared-again", &expected)?;
        self.cached("again, in another folder", &other, "compared", &expected)?;
        self.all_by_lld(&program, &other)?;
        shell::remove(&project.sources)?;
        shell::remove(&project.build)?;
        let fresh = program::of_project(&name.open(&bench_directory())?)?;
        self.cached("again, from a fresh checkout", &fresh, "compared", &expected)
    }

    /// Links at the engine, which has to make the same objects.
    fn same(&self, what: &str, program: &Program, output: &str, expected: &Objects) -> Result<Linked> {
        let found = self.link(program, output, &self.remote())?;
        let objects = linked::objects(&program.state(output))?;
        let differing = expected.iter().filter(|(name, object)| objects.get(*name) != Some(*object)).count();
        let there = Link::newest(&program.state(output))?.elsewhere();
        println!(
            "{what:36} {there:4} at the engine {:4} from its cache {:4} ran in all {:4} objects {differing} different",
            found.cached,
            found.ran,
            objects.len()
        );
        ensure!(differing == 0 && objects.len() == expected.len(), "{what}: other objects than here");
        Ok(found)
    }

    /// The same where the action cache has to have all.
    fn cached(&self, what: &str, program: &Program, output: &str, expected: &Objects) -> Result<()> {
        let ran = self.same(what, program, output, expected)?.ran;
        ensure!(ran == 0, "{what}: {ran} backends ran");
        Ok(())
    }

    fn all_by_lld(&self, program: &Program, other: &Program) -> Result<()> {
        self.by_lld(program, &[], "compared-lld")?;
        let expected = std::fs::read(program.dir.join("compared-lld"))?;
        // `distlto link` gives compilers what lld's DTLTO forgets, so the first one's commands are new.
        for (what, program, is_cached) in [("lld", program, false), ("lld, in another folder", other, true)] {
            let found = self.by_lld(program, &self.remote(), "compared-lld")?;
            let is_same = std::fs::read(program.dir.join("compared-lld"))? == expected;
            let same = if is_same { "the same program" } else { "ANOTHER PROGRAM" };
            println!("{what:36} {:26} from its cache {:4} ran in all {same}", found.cached, found.ran);
            ensure!(is_same, "{what}: another program than here");
            ensure!(!is_cached || found.ran == 0, "{what}: {} backends ran", found.ran);
        }
        Ok(())
    }

    /// One job at a time here, so that the engine has most of the work.
    fn remote(&self) -> Vec<String> {
        let mut options = vec!["-j1".to_owned(), format!("--remote={}", self.engine.url)];
        // All is to be found in the cache then.
        options.push("--remote-upload-time=10m".to_owned());
        let platform = self.engine.platform.iter().map(|property| format!("--remote-platform={property}"));
        options.extend(platform);
        options
    }

    fn link(&self, program: &Program, output: &str, options: &[String]) -> Result<Linked> {
        program.remove(output)?;
        let mut command = Command::new(self.distlto);
        command.args(["link", "--json"]).args(options).arg("--").args(&program.words);
        linked::with_store(&mut command, &program.state(output));
        linked::link(command.args(["-o", output]).current_dir(&program.dir))
    }

    fn by_lld(&self, program: &Program, options: &[String], output: &str) -> Result<Linked> {
        program.remove(output)?;
        let mut command = program.link(&program.words[0], output);
        let distributor = self.distlto.with_file_name("distlto-distribute");
        command.arg(format!("-fthinlto-distributor={}", distributor.display()));
        command.args(options.iter().map(|option| format!("-Xthinlto-distributor={option}")));
        linked::link(command.arg("-Xthinlto-distributor=--json"))
    }
}
