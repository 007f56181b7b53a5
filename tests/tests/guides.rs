//! Each command of distlto that the guides name, on a real link: it does not fail.
//!
//! Read from the pages: text in backquotes and lines of sessions. Words in capitals stand for the parts of the link.
//! `readme.rs` and `recipes.rs` run the lines for build systems.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::{capture, succeed, told};
use distlto_tests::store;
use distlto_tests::toolchain::{Toolchain, repository};

const PAGES: [&str; 6] =
    ["README", "docs/start", "docs/caches", "docs/why", "docs/migration", "docs/troubleshooting"];
const SOURCES: [(&str, &str); 3] = [
    ("main", "int a(int);\nint main(int count, char **words) { return a(count); }\n"),
    (
        "a",
        "int c(int), weakf(int), noin(int), deep(int);\n__attribute__((noinline)) int a(int x) {\n\
         return c(x) + weakf(x) + noin(x) + deep(x);\n}\n",
    ),
    (
        "c",
        "int c(int x) { return x * 3; }\n__attribute__((weak)) int weakf(int x) { return x + 1; }\n\
         __attribute__((noinline)) int noin(int x) { return x - 1; }\nint deep(int s) {\nLONG return s;\n}\n",
    ),
];
/// How often a statement stands in the function that is too large to be imported.
const STATEMENTS: usize = 26;
/// Commands that a sentence names without their arguments.
const NAMES: [&str; 4] = ["link", "diff", "inspect", "explain"];
/// Other programs, whose lines other tests run, and a server.
const ELSEWHERE: [&str; 7] = ["ninja", "cmake", "cargo", "clang++", "clang++-22", "make", "remote"];

/// A link of three modules, made twice with an edit between.
struct Linked {
    folder: Folder,
    link: String,
}

impl Linked {
    fn create() -> Result<Self> {
        let folder = Folder::create(Toolchain::from_env()?, "guides")?;
        let clang = folder.toolchain.tool("clang")?.display().to_string();
        let lld = folder.toolchain.tool("ld.lld")?.display().to_string();
        let link = format!("{clang} --ld-path={lld} -O2 -flto=thin main.o a.o libx.a -o app");
        let linked = Self { folder, link };
        for (name, text) in SOURCES {
            let long: String = (0..STATEMENTS)
                .map(|at| format!("s ^= s * {} + (s >> {});\n", at * 7 + 3, at % 5 + 1))
                .collect();
            linked.folder.write(&format!("{name}.c"), text.replace("LONG", &long))?;
        }
        linked.folder.write("Makefile", "all:\n")?;
        let compile = format!("{clang} -O2 -flto=thin -c main.c a.c c.c && rm -f libx.a");
        let archive = format!("{} rcs libx.a c.o", linked.folder.toolchain.tool("llvm-ar")?.display());
        for edit in ["true", "sed -i 's/x \\* 3/x * 5/' c.c"] {
            let script = format!("{edit} && {compile} && {archive} && distlto {}", linked.link);
            succeed(&mut linked.shell(&script)?)?;
        }
        Ok(linked)
    }

    fn shell(&self, script: &str) -> Result<Command> {
        let mut shell = Command::new("sh");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places = [distlto::directory()?.to_owned()].into_iter().chain(std::env::split_paths(&path));
        shell.args(["-ec", script]).current_dir(&self.folder.path).env("PATH", std::env::join_paths(places)?);
        store::give(&mut shell);
        Ok(shell)
    }

    /// A command with the parts of this link; `None` for one that other tests run.
    fn filled(&self, command: &str) -> Option<String> {
        let words: Vec<&str> = command.split(' ').collect();
        let subcommand = words.get(1)?;
        if ELSEWHERE.contains(subcommand) {
            return None;
        }
        if words.len() == 2 && NAMES.contains(subcommand) {
            return Some(format!("distlto {subcommand} --help"));
        }
        let mut text = format!("{command} ");
        for (word, part) in [
            ("[OPTIONS] -- COMMAND", format!("-- {}", self.link)),
            ("BUILD-COMMAND", "make".to_owned()),
            ("LINK COMMAND", self.link.clone()),
            ("clang++ ...", self.link.clone()),
            ("OLD NEW", "app app".to_owned()),
            (" P ", " app ".to_owned()),
            ("MODULE", "a.o".to_owned()),
            ("FROM", "'libx.a(c.o)'".to_owned()),
            ("/srv/distlto", "shared".to_owned()),
        ] {
            text = text.replace(word, &part);
        }
        Some(text.trim_end().to_owned())
    }
}

/// The lines that a page shows below a command of a session.
fn shown<'p>(page: &'p str, command: &str) -> Vec<&'p str> {
    let start = format!("$ {command}");
    let below = page.lines().skip_while(|line| *line != start).skip(1);
    below.take_while(|line| !line.starts_with("$ ") && !line.starts_with("```")).collect()
}

/// The commands of distlto on a page, in its order.
fn commands(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_fenced = false;
    for line in page.lines() {
        if line.starts_with("```") {
            is_fenced = !is_fenced;
        } else if is_fenced {
            let line = line.trim_start_matches("$ ").split("  #").next().unwrap_or_default();
            found
                .extend(Some(line.trim_end()).filter(|line| line.starts_with("distlto ")).map(str::to_owned));
        } else {
            let spans = line.split('`').skip(1).step_by(2).filter(|span| span.starts_with("distlto "));
            found.extend(spans.map(str::to_owned));
        }
    }
    found
}

fn read(page: &str) -> Result<String> {
    let path = repository().join(Path::new(page).with_extension("md"));
    fs::read_to_string(&path).with_context(|| path.display().to_string())
}

#[test]
fn the_commands_of_the_guides_work() -> Result<()> {
    let linked = Linked::create()?;
    let (mut wrong, mut tried) = (String::new(), 0);
    for page in PAGES {
        let text = read(page)?;
        for command in commands(&text) {
            let Some(filled) = linked.filled(&command) else { continue };
            // The quick start has files of its own.
            if filled.contains("greet.o") {
                continue;
            }
            tried += 1;
            let mut shell = linked.shell(&filled)?;
            let output = capture(&mut shell)?;
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            let lacks = |line: &&str| !printed.lines().any(|one| one == *line);
            let lacking: Vec<_> =
                shown(&text, &command).into_iter().filter(lacks).map(str::to_owned).collect();
            if !output.status.success() || !lacking.is_empty() {
                wrong +=
                    &format!("{page}: {command}: not printed: {lacking:#?}\n{}\n", told(&shell, &output));
            }
        }
    }
    ensure!(wrong.is_empty(), "{wrong}");
    ensure!(tried > 30, "{tried} commands are on the pages");
    Ok(())
}
