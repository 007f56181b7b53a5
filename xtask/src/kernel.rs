//! `cargo xtask kernel`: Linux by upstream's own distributed ThinLTO, by `rules/kbuild`, and by `LD=distlto-ld.lld-22` alone.
//!
//! Bitcode is compiled once, by upstream's rules, and each way begins with a copy of that. What is told: backends that run
//! after edits, processor time, whether objects are the same, and whether each kernel boots and loads its modules.

mod boot;
mod tree;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::setup::NEWEST;
use crate::shell::{self, root, target};
use crate::{apt, install};
use tree::{Built, Edit, Sources, Tree};

/// Packages and what they bring, by which it is seen that they are there. Two are libraries.
const NEEDS: [(&str, &str); 10] = [
    ("clang-22", "clang-22"),
    ("lld-22", "ld.lld-22"),
    ("llvm-22", "llvm-ar-22"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("xz-utils", "xz"),
    ("libelf-dev", "/usr/include/libelf.h"),
    ("libc6-dev", "/usr/include/stdio.h"),
    ("qemu-system-x86", "qemu-system-x86_64"),
];

/// A function that little else is made of.
const LEAF: Edit = Edit {
    file: "kernel/async.c",
    line: "\tstruct worker *worker = current_wq_worker();\n",
    what: "edit of kernel/async.c",
};

/// An inline function that many files see.
const HEADER: Edit = Edit {
    file: "include/linux/hashtable.h",
    line: "\thlist_del_init(node);\n",
    what: "edit of hashtable.h",
};

/// Builds, compares and boots. Whether all objects are upstream's.
pub fn kernel(debug: bool, jobs: usize) -> Result<bool> {
    apt::provide(&NEEDS)?;
    let distlto = install::build(debug)?.join("distlto");
    let folder = target().join("kernel");
    let sources = Sources::unpack(&folder)?;
    for edit in [LEAF, HEADER] {
        sources.undo(&edit)?;
    }
    let base = Tree::base(&sources, &folder.join("base"), jobs)?;
    let trees = ways(&folder, &distlto)?
        .into_iter()
        .map(|(name, words)| base.copy(&folder.join(name), words))
        .collect::<Result<Vec<_>>>()?;
    println!("Linux {}\n", base.version()?);
    println!(
        "{:24} {:10} {:>9} {:>9} {:>8} {:>8} {:>10} {:>10} {:>8}",
        "step", "way", "compiled", "backends", "cpu s", "wall s", "objects", "vmlinux.o", "modules"
    );
    let mut same = true;
    for step in ["bitcode is there", "nothing changed"] {
        same &= compare(step, &trees)?;
    }
    for edit in [LEAF, HEADER] {
        sources.edit(&edit)?;
        let alike = compare(edit.what, &trees);
        sources.undo(&edit)?;
        same &= alike?;
    }
    println!();
    for tree in &trees {
        println!("{:10} {}", tree.name(), boot::boot(tree)?);
    }
    Ok(same)
}

/// The ways to build, with what make is told besides; upstream's is the first.
fn ways(folder: &Path, distlto: &Path) -> Result<Vec<(&'static str, Vec<String>)>> {
    let rules = root().join("rules/kbuild/distlto-kbuild.mk");
    let linker = stand_in(folder, distlto)?;
    Ok(vec![
        ("upstream", Vec::new()),
        ("rules", vec![format!("MAKEFILES={}", rules.display()), format!("DISTLTO={}", distlto.display())]),
        ("linker", vec![format!("LD={}", linker.display())]),
    ])
}

/// distlto by the name of a linker.
fn stand_in(folder: &Path, distlto: &Path) -> Result<PathBuf> {
    let link = folder.join(format!("distlto-ld.lld-{NEWEST}"));
    shell::remove(&link)?;
    std::os::unix::fs::symlink(distlto, &link)?;
    Ok(link)
}

/// Makes all trees and prints a row for each. Whether objects and kernel are upstream's everywhere.
fn compare(step: &str, trees: &[Tree]) -> Result<bool> {
    let mut upstream = None;
    let mut same = true;
    for tree in trees {
        let cost = tree.make(step)?;
        let built = tree.built()?;
        ensure!(!built.objects.is_empty(), "{} has made no native objects", tree.name());
        let theirs: &Built = upstream.get_or_insert_with(|| built.clone());
        let kernel = built.kernel == theirs.kernel;
        let objects = alike(&built.objects, &theirs.objects);
        same &= kernel && objects == (theirs.objects.len(), theirs.objects.len());
        let of = |(same, all): (usize, usize)| format!("{same}/{all}");
        println!(
            "{step:24} {:10} {:9} {:9} {:8.1} {:8.1} {:>10} {:>10} {:>8}",
            tree.name(),
            cost.compiled,
            cost.backends,
            cost.cpu,
            cost.wall,
            of(objects),
            if kernel { "same" } else { "differs" },
            of(alike(&built.modules, &theirs.modules)),
        );
    }
    Ok(same)
}

/// How many files are the same in both, of all that are in either.
fn alike(ours: &BTreeMap<PathBuf, String>, theirs: &BTreeMap<PathBuf, String>) -> (usize, usize) {
    let same = ours.iter().filter(|(path, digest)| theirs.get(*path) == Some(digest)).count();
    let only = ours.keys().filter(|path| !theirs.contains_key(*path)).count();
    (same, theirs.len() + only)
}
