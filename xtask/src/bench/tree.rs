//! A Buck2 output tree as large as one likes, for measuring the planner: meta, index directory, argument file.
//!
//! Paths and contents follow from an object's number, so that whoever works on the tree needs no list in memory: a
//! process that starts others lends them its own size in what the kernel reports. Formats: docs/design/buck2-files.md.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

const GEN: &str = "buck-out/v2/gen/root/5f1c2d3e4b6a7980";

/// Objects of one library.
const LIBRARY: usize = 100;

/// Where the thin link leaves its results, as the command line says it.
pub const INDEX: &str = "buck-out/v2/gen/root/5f1c2d3e4b6a7980/__app__/thin_lto_index";
/// The planner's input.
pub const META: &str = "app.thinlto.meta.json";
/// The argument file of the thin link.
pub const ARGUMENTS: &str = "app.thinlto_index_argsfile";
/// The planner's output for the final link's inputs.
pub const LINK_PLAN: &str = "app.link-plan.json";
/// The planner's output for the final link's argument file.
pub const FINAL: &str = "app.final_link_index";
/// The driver that pretends to link.
pub const DRIVER: &str = "clang++";

/// A tree of `objects` modules that import `imports` others each.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'a> {
    /// Where it lies; every path in it is relative to here.
    pub root: &'a Path,
    /// How many modules.
    pub objects: usize,
    /// How many imports each has.
    pub imports: usize,
}

impl Tree<'_> {
    /// The module's path.
    pub fn object(&self, number: usize) -> String {
        format!("{GEN}/__lib{}__/__objects__/src/o{number}.cpp.o", number / LIBRARY)
    }

    /// Where the rule wants the shard.
    pub fn shard(&self, number: usize) -> String {
        format!("{GEN}/__app__/liblib{}.a/src/o{number}.cpp.o.thinlto.bc", number / LIBRARY)
    }

    /// Where the rule wants the plan.
    pub fn plan(&self, number: usize) -> String {
        format!("{GEN}/__app__/liblib{}.a/src/o{number}.cpp.o.opt.plan", number / LIBRARY)
    }

    /// A file of the index directory, where the thin link leaves it.
    pub fn indexed(&self, number: usize, suffix: &str) -> String {
        format!("{INDEX}/{}{suffix}", self.object(number))
    }

    /// Writes all of it. `shard` is what each module's shard holds: the planner reads the link's flags from one.
    pub fn write(&self, shard: &[u8]) -> Result<()> {
        let libraries = self.objects.div_ceil(LIBRARY);
        for library in 0..libraries {
            let number = library * LIBRARY;
            for file in [self.shard(number), self.indexed(number, "")] {
                fs::create_dir_all(self.path(&file).parent().context("a path has a parent")?)?;
            }
        }
        for number in 0..self.objects {
            let mut imported: Vec<_> = (0..self.imports)
                .map(|place| self.object((number + 1 + 37 * place) % self.objects))
                .collect();
            imported.sort_unstable();
            imported.push(String::new());
            fs::write(self.path(&self.indexed(number, ".imports")), imported.join("\n"))?;
            fs::write(self.path(&self.indexed(number, ".thinlto.bc")), shard)?;
        }
        self.list(&format!("{INDEX}/index"), &format!("{INDEX}/"))?;
        self.list(&format!("{INDEX}/index.full"), &format!("{INDEX}/"))?;
        self.list(ARGUMENTS, "")?;
        self.meta(libraries)?;
        self.linker()?;
        self.put_aside()
    }

    /// Undoes a planner's work: shards go back to where the thin link left them, and plans away.
    pub fn restore(&self) -> Result<()> {
        for number in 0..self.objects {
            fs::rename(self.path(&self.shard(number)), self.path(&self.indexed(number, ".thinlto.bc")))?;
            fs::remove_file(self.path(&self.plan(number)))?;
        }
        fs::remove_file(self.path(LINK_PLAN))?;
        fs::remove_file(self.path(FINAL))?;
        self.put_aside()
    }

    /// A path from outside of the tree.
    pub fn path(&self, inside: &str) -> PathBuf {
        self.root.join(inside)
    }

    /// The index directory is there only after the linker has run, which puts it into its place.
    fn put_aside(&self) -> Result<()> {
        Ok(fs::rename(self.path(INDEX), self.path("aside"))?)
    }

    fn list(&self, name: &str, prefix: &str) -> Result<()> {
        let mut file = BufWriter::new(File::create(self.path(name))?);
        for number in 0..self.objects {
            writeln!(file, "{prefix}{}", self.object(number))?;
        }
        Ok(file.flush()?)
    }

    fn meta(&self, libraries: usize) -> Result<()> {
        let mut file = BufWriter::new(File::create(self.path(META))?);
        write!(file, "[")?;
        for library in 0..libraries {
            let separator = if library == 0 { "" } else { "," };
            write!(file, "{separator}{{\"pre_flags\":[],\"post_flags\":[],\"linkables\":[")?;
            let first = library * LIBRARY;
            for number in first..(first + LIBRARY).min(self.objects) {
                let separator = if number == first { "" } else { "," };
                write!(
                    file,
                    "{separator}{{\"type\":\"bitcode\",\"idx\":{number},\"path\":\"{}\",\"output\":\"{}\",\"plan_output\":\"{}\"}}",
                    self.object(number),
                    self.shard(number),
                    self.plan(number)
                )?;
            }
            write!(file, "]}}")?;
        }
        writeln!(file, "]")?;
        Ok(file.flush()?)
    }

    /// A driver and a linker that cost next to nothing: the thin link is not what is measured.
    fn linker(&self) -> Result<()> {
        let script = |name: &str, text: &str| -> Result<()> {
            use std::os::unix::fs::PermissionsExt;
            let path = self.path(name);
            fs::write(&path, text)?;
            Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
        };
        let linker = self.path("ld.lld");
        script(
            "ld.lld",
            "#!/bin/sh\ncase \"$*\" in *--help*) echo \"  --thinlto-full-index write index.full\" ;; esac\n",
        )?;
        script(
            DRIVER,
            &format!(
                "#!/bin/sh\ncase \"$*\" in\n*-###*) echo ' \"{}\" \"-o\" \"app\" \"@{ARGUMENTS}\"' >&2 ;;\n*) exec mv -T aside {INDEX} ;;\nesac\n",
                linker.display()
            ),
        )
    }
}
