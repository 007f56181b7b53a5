//! A kernel in an emulated machine, with one program and all modules.

use std::ffi::OsStr;
use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::tree::Tree;
use crate::install::files;
use crate::setup::NEWEST;
use crate::shell::{quietly, root};

/// How long a machine may run, in seconds; one that hangs says nothing more.
const LONGEST: u32 = 600;

/// Boots it, and says what its program says of modules.
pub fn boot(tree: &Tree) -> Result<String> {
    let (list, archive, init) = (tree.at("boot.list"), tree.at("boot.cpio"), tree.at("boot.init"));
    let mut compile = Command::new(format!("clang-{NEWEST}"));
    quietly(compile.args(["-O1", "-static", "-o"]).arg(&init).arg(root().join("xtask/kernel/init.c")))?;
    let mut text = String::from("dir /dev 755 0 0\nnod /dev/console 600 0 0 c 5 1\ndir /modules 755 0 0\n");
    text += &format!("file /init {} 755 0 0\n", init.display());
    let modules = files(&tree.at(""))?;
    for module in modules.iter().filter(|path| path.extension() == Some(OsStr::new("ko"))) {
        let name = module.file_name().context("a module has a name")?.display();
        text += &format!("file /modules/{name} {} 644 0 0\n", module.display());
    }
    fs::write(&list, text)?;
    quietly(Command::new(tree.at("usr/gen_init_cpio")).arg("-o").arg(&archive).arg(&list))?;
    let mut machine = Command::new("timeout");
    machine.arg(LONGEST.to_string()).args([
        "qemu-system-x86_64",
        "-accel",
        "tcg",
        "-m",
        "256",
        "-nic",
        "none",
    ]);
    machine.args(["-display", "none", "-monitor", "none", "-serial", "stdio", "-no-reboot"]);
    machine.arg("-kernel").arg(tree.at("arch/x86/boot/bzImage")).arg("-initrd").arg(&archive);
    machine.args(["-append", "console=ttyS0 panic=-1"]).stdin(Stdio::null()).stderr(Stdio::inherit());
    let said = machine.output().context("cannot start timeout")?;
    let said = String::from_utf8_lossy(&said.stdout);
    let mut told = said.lines().filter_map(|line| Some(line.split_once("distlto: ")?.1.trim()));
    let last =
        told.next_back().with_context(|| format!("the kernel of {} does not boot:\n{said}", tree.name()))?;
    let numbers: Vec<&str> = last.split(' ').collect();
    ensure!(
        matches!(numbers[..], [loaded, "of", all, "modules", "are", "loaded"] if loaded == all && all != "0"),
        "not all modules of {} are loaded:\n{said}",
        tree.name()
    );
    Ok(format!("boots, {last}"))
}
