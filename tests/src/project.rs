//! A small program for tests of behaviour: the clang of its backends and its linker are scripts that write down what they are
//! asked to do and may be told to misbehave. Counts of what ran come from those scripts, not from the program under test.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_planner::digests::Digest;

use crate::distlto;
use crate::folder::Folder;
use crate::run::{capture, succeed, told};
use crate::store;
use crate::toolchain::Toolchain;

/// How a fake clang treats the backend compilation of one module, as a shell script in which `$out` is the object.
#[derive(Debug, Clone, Copy)]
pub struct Misbehaviour {
    /// For messages.
    pub name: &'static str,
    /// What runs in place of the compiler.
    pub script: &'static str,
}

/// Two modules that import from one, and the module that calls both.
pub const FORKED: [(&str, &str); 4] = [
    (
        "main.c",
        "#include <stdio.h>\nint a(int), b(int);\nint main(void) { printf(\"%d\\n\", a(1) + b(2)); return 0; }\n",
    ),
    ("a.c", "int shared(int);\n__attribute__((noinline)) int a(int x) { return shared(x) + 1; }\n"),
    ("b.c", "int shared(int);\n__attribute__((noinline)) int b(int x) { return shared(x) + 2; }\n"),
    ("shared.c", "int shared(int x) { return x * 100; }\n"),
];

/// A program of several modules in a folder of its own.
#[derive(Debug)]
pub struct Project {
    /// Where it lies.
    pub folder: Folder,
    /// The modules' objects, in link order.
    pub objects: Vec<String>,
    /// The output, relative to the folder.
    pub output: String,
    /// Further arguments of the link.
    pub flags: Vec<String>,
    /// Options of `distlto link`.
    pub options: Vec<&'static str>,
}

/// What one link ran.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Modules that were compiled, sorted.
    pub backends: Vec<String>,
    /// How often the linker wrote a program.
    pub links: usize,
}

impl Project {
    /// Writes and compiles the sources.
    pub fn create(name: &str, sources: &[(&str, &str)]) -> Result<Self> {
        let folder = Folder::create(Toolchain::from_env()?, &format!("behaviour/{name}"))?;
        let mut project = Self {
            folder,
            objects: Vec::new(),
            output: "program".to_owned(),
            flags: Vec::new(),
            options: Vec::new(),
        };
        for (name, text) in sources {
            project.folder.write(name, text)?;
            project.compile(name)?;
            project.objects.push(format!("{}.o", name.trim_end_matches(".c")));
        }
        project.behave()?;
        project.write_clang()?;
        let linker = project.tool("ld.lld")?;
        project.script(
            "ld.lld",
            &format!(
                "case \" $* \" in *thinlto-index-only*|*--version*|*--help*) ;; *) echo link >> '{log}' ;; esac\nexec '{linker}' \"$@\"\n",
                log = project.log().display(),
            ),
        )?;
        Ok(project)
    }

    /// Compiles one source to its object again.
    pub fn compile(&self, source: &str) -> Result<()> {
        let clang = self.tool("clang")?;
        let object = format!("{}.o", source.trim_end_matches(".c"));
        let mut command = Command::new(clang);
        command.args(["-O2", "-flto=thin", "-c", source, "-o", &object]).current_dir(&self.folder.path);
        succeed(&mut command).map(drop)
    }

    /// Replaces one text in a source, once, and compiles it.
    pub fn edit(&self, source: &str, from: &str, to: &str) -> Result<()> {
        let path = self.folder.path.join(source);
        let text = fs::read_to_string(&path)?;
        ensure!(text.contains(from), "{source} does not hold {from}");
        fs::write(&path, text.replacen(from, to, 1))?;
        self.compile(source)
    }

    /// The command that links the project with distlto.
    pub fn link(&self) -> Result<Command> {
        self.link_with(&[])
    }

    /// The same with options of `distlto link`.
    pub fn link_with(&self, options: &[&str]) -> Result<Command> {
        let mut command = Command::new(distlto::binary()?);
        command
            .arg("link")
            .args(&self.options)
            .args(options)
            .args(self.compiler(options)?)
            .arg("--")
            .args(self.linker_words()?)
            .current_dir(&self.folder.path);
        store::give(&mut command);
        Ok(command)
    }

    /// The command that writes the link's graph.
    pub fn index(&self) -> Result<Command> {
        let mut command = Command::new(distlto::binary()?);
        command.arg("index").args(self.compiler(&[])?).arg("--");
        command.args(self.linker_words()?).current_dir(&self.folder.path);
        Ok(command)
    }

    /// The link without distlto.
    pub fn plain_link(&self) -> Result<Command> {
        let words = self.linker_words()?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(&self.folder.path);
        Ok(command)
    }

    /// A script of this project.
    fn own_tool(&self, name: &str) -> Result<String> {
        let path = self.folder.path.join("tools").join(name);
        path.into_os_string().into_string().ok().context("the target directory's name is UTF-8")
    }

    /// The option that names the compiler of backends, unless these options do.
    fn compiler(&self, options: &[&str]) -> Result<Vec<String>> {
        let is_named = options.iter().chain(&self.options).any(|option| option.starts_with("--compiler"));
        Ok(if is_named { Vec::new() } else { vec!["--compiler".to_owned(), self.own_tool("clang")?] })
    }

    /// The command that links it without distlto.
    pub fn linker_words(&self) -> Result<Vec<String>> {
        let driver = self.folder.toolchain.tool("clang")?.to_string_lossy().into_owned();
        let mut words = vec![driver, "-O2".to_owned(), "-flto=thin".to_owned()];
        words.push(format!("--ld-path={}", self.own_tool("ld.lld")?));
        words.extend(["-o".to_owned(), self.output.clone()]);
        words.extend(self.flags.iter().cloned());
        words.extend(self.objects.iter().cloned());
        Ok(words)
    }

    /// Links, which must succeed, and says what that ran.
    pub fn relink(&self) -> Result<Ran> {
        self.forget()?;
        succeed(&mut self.link()?)?;
        self.ran()
    }

    /// What ran since the last call of `forget`.
    pub fn ran(&self) -> Result<Ran> {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        let mut backends: Vec<String> =
            log.lines().filter_map(|line| line.strip_prefix("backend ")).map(str::to_owned).collect();
        backends.sort();
        Ok(Ran { backends, links: log.lines().filter(|&line| line == "link").count() })
    }

    /// Empties the record of what ran.
    pub fn forget(&self) -> Result<()> {
        fs::write(self.log(), "").context("cannot empty the log")
    }

    /// Runs the program and gives what it prints.
    pub fn say(&self) -> Result<String> {
        let mut program = Command::new(self.path(&self.output));
        let output = capture(&mut program)?;
        ensure!(output.status.success(), "{}", told(&program, &output));
        String::from_utf8(output.stdout).context("programs print UTF-8")
    }

    /// The native objects of the last link, by name.
    pub fn native_objects(&self) -> Result<Vec<(PathBuf, Vec<u8>)>> {
        distlto::objects(&self.path(&self.output))
    }

    /// Where the store keeps a native object.
    pub fn stored(&self, object: &[u8]) -> Result<PathBuf> {
        Ok(store::blob(&store::of(&self.folder.path)?, &Digest::of(object).hex()))
    }

    /// Removes the record of the last link.
    pub fn forget_link(&self) -> Result<()> {
        fs::remove_dir_all(distlto::state_dir(&self.path(&self.output))?).context("no record of a link")
    }

    /// A path in the project's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path.join(name)
    }

    /// Every temporary that distlto has left in the folder.
    pub fn temporaries(&self) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        let mut waiting = vec![self.folder.path.clone()];
        while let Some(dir) = waiting.pop() {
            for entry in fs::read_dir(dir)? {
                let path = entry?.path();
                if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".distlto-tmp-")) {
                    found.push(path);
                } else if path.is_dir() {
                    waiting.push(path);
                }
            }
        }
        Ok(found)
    }

    /// Makes the fake clang an honest one. The script itself stays as it is: a compiler that changes runs everything.
    pub fn behave(&self) -> Result<()> {
        self.folder.write("tools/rule", "").map(drop)
    }

    /// Makes the fake clang misbehave when it compiles a module whose id ends in `module`.
    pub fn misbehave(&self, module: &str, how: Misbehaviour) -> Result<()> {
        let rule = format!("case \"$module\" in *{module}) {}\nexit 0 ;; esac\n", how.script);
        self.folder.write("tools/rule", rule).map(drop)
    }

    /// Has a script run in place of the linker's thin link: `$linker` is the linker, and `$prefix` the directory where it
    /// is told to write shards.
    pub fn replace_thin_link(&self, script: &str) -> Result<()> {
        let text = format!(
            r#"linker='{linker}'
case " $* " in
  *thinlto-index-only*)
    for word in "$@"; do
      case "$word" in --thinlto-prefix-replace=*) prefix=${{word#*;}} ;; esac
    done
    {script}
    exit 0 ;;
esac
exec "$linker" "$@"
"#,
            linker = self.tool("ld.lld")?,
        );
        self.script("ld.lld", &text)
    }

    fn write_clang(&self) -> Result<()> {
        let text = format!(
            r#"index= out= module= previous= asked=
for word in "$@"; do
  case "$word" in
    -fthinlto-index=*) index=yes ;;
    '-###') asked=yes ;;
    *.o) [ "$previous" = -o ] || module=$word ;;
  esac
  [ "$previous" = -o ] && out=$word
  previous=$word
done
clang='{clang}'
if [ -n "$index" ] && [ -n "$asked" ]; then
  echo 'asked' >> '{log}'
elif [ -n "$index" ]; then
  echo "backend $module" >> '{log}'
  . '{rule}'
fi
exec "$clang" "$@"
"#,
            clang = self.tool("clang")?,
            log = self.log().display(),
            rule = self.path("tools/rule").display(),
        );
        self.script("clang", &text)
    }

    /// Written beside its place and renamed, as a script that is being written cannot be run.
    fn script(&self, name: &str, text: &str) -> Result<()> {
        let temporary = self.folder.write(&format!("tools/{name}.new"), format!("#!/bin/sh\n{text}"))?;
        fs::set_permissions(&temporary, fs::Permissions::from_mode(0o755))?;
        fs::rename(&temporary, temporary.with_file_name(name))?;
        Ok(())
    }

    fn tool(&self, name: &str) -> Result<String> {
        let path = self.folder.toolchain.tool(name)?;
        path.into_os_string().into_string().ok().context("the paths of tools are UTF-8")
    }

    fn log(&self) -> PathBuf {
        self.folder.path.join("tools/log")
    }
}
