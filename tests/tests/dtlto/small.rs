//! A small program of three modules, two of them members of an archive, to see how its links begin and end. A script
//! stands in for the compiler of its backends where a test wants one that misbehaves.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::{capture, succeed, told};
use distlto_tests::toolchain::Toolchain;

const SOURCES: [(&str, &str); 3] = [
    ("main", "#include <stdio.h>\nint a(int);\nint main(void) { printf(\"%d\\n\", a(1)); return 0; }\n"),
    ("a", "int b(int);\nint a(int x) { return b(x) + 1; }\n"),
    ("b", "int b(int x) { return x * 10; }\n"),
];

/// The program, compiled, in a folder of its own.
pub struct Small {
    pub folder: Folder,
}

impl Small {
    pub fn create(name: &str) -> Result<Self> {
        let folder = Folder::create(Toolchain::from_env()?, &format!("dtlto/{name}"))?;
        for (name, text) in SOURCES {
            folder.write(&format!("{name}.c"), text)?;
            let line = format!("%clang -O2 -flto=thin -c {name}.c -o {name}.o");
            succeed(&mut folder.command(&line, "")?)?;
        }
        succeed(&mut folder.command("%ar rcs liba.a a.o b.o", "")?)?;
        fs::create_dir(folder.path.join("out"))?;
        Ok(Self { folder })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path.join(name)
    }

    /// A link with these options of the distributor.
    pub fn link(&self, options: &[&str]) -> Result<Command> {
        self.link_by(distlto::distributor()?, options)
    }

    /// A link with another distributor.
    pub fn link_by(&self, distributor: &Path, options: &[&str]) -> Result<Command> {
        let line = "%clang -O2 -flto=thin -fuse-ld=lld main.o liba.a -o out/program";
        let mut command = self.folder.command(line, "")?;
        command.arg(format!("-fthinlto-distributor={}", utf8(distributor)?));
        command.args(options.iter().map(|option| format!("-Xthinlto-distributor={option}")));
        Ok(command)
    }

    /// A link whose backends are compiled by the script `compiler`.
    pub fn link_with_script(&self, options: &[&str]) -> Result<Command> {
        let mut command = self.link(options)?;
        command.arg(format!("-Wl,--thinlto-remote-compiler={}", utf8(&self.path("compiler"))?));
        Ok(command)
    }

    /// Writes the script `compiler`. In it `$clang` is the real compiler, `$module` the module and `$out` the object.
    pub fn compiler(&self, body: &str) -> Result<()> {
        let clang = self.folder.toolchain.tool("clang")?;
        let head = "out=; module=; last=\nfor word; do\n  case \"$word\" in -fthinlto-index=*) ;; *.o) [ \"$last\" = -o ] || module=$word ;; esac\n  [ \"$last\" = -o ] && out=$word\n  last=$word\ndone\n";
        self.script("compiler", &format!("clang='{}'\n{head}{body}\nexec \"$clang\" \"$@\"\n", utf8(&clang)?))
    }

    /// Written beside its place and renamed, as a script that is being written cannot be run.
    pub fn script(&self, name: &str, text: &str) -> Result<()> {
        let temporary = self.folder.write(&format!("{name}.new"), format!("#!/bin/sh\n{text}"))?;
        fs::set_permissions(&temporary, fs::Permissions::from_mode(0o755))?;
        fs::rename(&temporary, self.path(name)).context("a script is renamed")
    }

    /// What the program says.
    pub fn say(&self) -> Result<String> {
        let mut program = Command::new(self.path("out/program"));
        let output = capture(&mut program)?;
        ensure!(output.status.success(), "{}", told(&program, &output));
        String::from_utf8(output.stdout).context("programs print UTF-8")
    }

    /// What lies in the directory of the output.
    pub fn beside_output(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path("out"))? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    /// Waits for a file that a script writes, and gives its text.
    pub fn wait_for(&self, name: &str) -> Result<String> {
        let start = Instant::now();
        loop {
            if let Ok(text) = fs::read_to_string(self.path(name))
                && text.ends_with('\n')
            {
                return Ok(text);
            }
            ensure!(start.elapsed() < Duration::from_secs(300), "{name} never came");
            sleep(Duration::from_millis(5));
        }
    }
}

pub fn utf8(path: &Path) -> Result<&str> {
    path.to_str().context("the target directory's name is UTF-8")
}
