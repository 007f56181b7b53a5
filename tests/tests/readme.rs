//! What `README.md` shows a newcomer: the session of its quick start prints what the page says. Each of its lines for a build
//! system and of those in `docs/recipes.md`, pasted into a project that knows nothing of distlto, links that by distlto.
//!
//! Both are read from the page. Programs come from `cargo xtask install`, under the names that it gives them.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail, ensure};
use distlto_tests::distlto;
use distlto_tests::example::as_a_user;
use distlto_tests::folder::Folder;
use distlto_tests::run::{capture, succeed};
use distlto_tests::toolchain::{NEWEST, Toolchain, repository};

/// Rows whose line a test pastes.
const PASTED: [&str; 10] = [
    "a command line",
    "make",
    "CMake",
    "Meson",
    "cargo",
    "rustc",
    "Ninja",
    "Linux 7.2",
    "lld's DTLTO",
    "others",
];

/// Rows that are no line for a shell, and a word of each that other tests use, in a build system that takes long to start.
const USED_ELSEWHERE: [(&str, &str); 2] = [("Buck2", "distlto_thin_lto"), ("Bazel", "distlto_link")];

const GREET: (&str, &str) = ("greet.cpp", include_str!("../../examples/hello/greet.cpp"));

/// A program of C++ that uses a shared library of C and loads a module, and a program of C.
const SOURCES: [(&str, &str); 6] = [
    GREET,
    (
        "main.cpp",
        "#include <dlfcn.h>\n#include <cstdio>\nvoid greet(const char *name);\nextern \"C\" const char *word();\n\
         int main(int, char **words) {\n  greet(word());\n  void *module = dlopen(words[1], RTLD_NOW);\n  \
         if (!module) { std::puts(dlerror()); return 1; }\n  \
         std::puts(reinterpret_cast<const char *(*)()>(dlsym(module, \"plug\"))());\n}\n",
    ),
    ("spell.c", "const char *spell(int i) { return i ? \"again\" : \"once\"; }\n"),
    ("word.c", "const char *spell(int);\nconst char *word(void) { return spell(0); }\n"),
    ("plug.c", "const char *spell(int);\nconst char *plug(void) { return spell(1); }\n"),
    (
        "program.c",
        "#include <stdio.h>\nconst char *spell(int);\nint main(void) { puts(spell(0)); return 0; }\n",
    ),
];

/// What a build makes of [`SOURCES`].
const OUTPUTS: [&str; 4] = ["P", "program", "libword.so", "libplug.so"];

/// The prefix of an installation, made once for the tests of this process.
fn prefix() -> Result<&'static Path> {
    static INSTALLED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let install = || {
        let folder = Folder::create(Toolchain { version: NEWEST }, "readme/prefix")?;
        let mut xtask = distlto::xtask();
        xtask.args(["install", "--debug", "--prefix"]).arg(&folder.path).env_remove("DESTDIR");
        succeed(&mut xtask)?;
        Ok(folder.path)
    };
    match INSTALLED.get_or_init(|| install().map_err(|error: anyhow::Error| format!("{error:#}"))) {
        Ok(path) => Ok(path),
        Err(error) => bail!("{error}"),
    }
}

/// A folder of a newcomer with distlto installed.
struct Place {
    folder: Folder,
    path: OsString,
}

impl Place {
    fn create(name: &str, files: &[(&str, &str)]) -> Result<Self> {
        let folder = Folder::create(Toolchain { version: NEWEST }, &format!("readme/{name}"))?;
        for (name, text) in files {
            folder.write(name, text)?;
        }
        let search = env::var_os("PATH").context("PATH is set")?;
        let path = env::join_paths([prefix()?.join("bin")].into_iter().chain(env::split_paths(&search)))?;
        Ok(Self { folder, path })
    }

    fn shell(&self, line: &str) -> Command {
        let mut shell = Command::new("sh");
        as_a_user(&mut shell, &self.path);
        shell.args(["-c", line]).current_dir(&self.folder.path);
        shell
    }

    fn run(&self, line: &str) -> Result<String> {
        Ok(String::from_utf8(succeed(&mut self.shell(line))?.stdout)?)
    }

    /// Runs the line of a row.
    fn paste(&self, system: &str) -> Result<()> {
        let row = rows()?.into_iter().find(|row| row.system == system);
        let line = row.with_context(|| format!("no page has a row `{system}`"))?.line;
        let line = line.strip_prefix('`').and_then(|line| line.strip_suffix('`'));
        let line = line.filter(|line| !line.contains('`')).context("the row is one line to paste")?;
        self.run(line).map(|_| ())
    }

    /// Whether distlto has linked this file, of several modules.
    fn linked(&self, output: &str) -> Result<()> {
        let said = self.run(&format!("distlto inspect {output}"))?;
        let modules = said.lines().next().unwrap_or_default().split([':', ' ']).nth_back(3);
        let modules = modules.and_then(|number| number.parse().ok());
        ensure!(modules.is_some_and(|modules: usize| modules > 1), "{output}: {said}");
        Ok(())
    }

    /// Whether distlto has linked all of [`OUTPUTS`], in this folder, and they run.
    fn built(&self, folder: &str) -> Result<()> {
        for output in OUTPUTS {
            self.linked(&format!("{folder}/{output}"))?;
        }
        let said = self.run(&format!("cd {folder} && LD_LIBRARY_PATH=. ./P ./libplug.so && ./program"))?;
        ensure!(said == "hello, once\nagain\nonce\n", "{said}");
        Ok(())
    }
}

/// A row for a build system.
struct Row {
    system: String,
    line: String,
}

fn page() -> Result<String> {
    Ok(fs::read_to_string(repository().join("README.md"))?)
}

/// The text below a heading.
fn section<'a>(page: &'a str, heading: &str) -> Result<&'a str> {
    let (_, after) = page.split_once(&format!("\n## {heading}\n")).context("the page has this heading")?;
    Ok(after.split("\n## ").next().unwrap_or(after))
}

fn rows() -> Result<Vec<Row>> {
    let recipes = fs::read_to_string(repository().join("docs/recipes.md"))?;
    let page = page()?;
    let tables = [section(&page, "Adopting it")?, section(&recipes, "Other build systems")?];
    let rows = tables.map(|table| table.lines().filter(|line| line.starts_with("| ")).skip(1));
    rows.into_iter()
        .flatten()
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [system, line] = cells.as_slice() else { bail!("{line}: a row has two cells") };
            let system = system.strip_prefix('[').and_then(|link| link.split_once(']'));
            let system = system.map_or(cells[0], |(system, _)| system);
            Ok(Row { system: system.to_owned(), line: (*line).to_owned() })
        })
        .collect()
}

#[test]
fn every_row_is_tried() -> Result<()> {
    let rows = rows()?;
    let systems: Vec<&str> = rows.iter().map(|row| row.system.as_str()).collect();
    let elsewhere = USED_ELSEWHERE.map(|(system, _)| system);
    let mut tried = [&PASTED[..], &elsewhere].concat();
    tried.sort_by_key(|system| systems.iter().position(|name| name == system));
    ensure!(tried == systems, "the pages have rows for {systems:?}, and tests for {tried:?}");
    for (system, name) in USED_ELSEWHERE {
        let row = rows.iter().find(|row| row.system == system).context("its row was found")?;
        ensure!(row.line.contains(name), "{system}: {name} is not in {}", row.line);
        let folders = ["tests", "examples"].map(|folder| repository().join(folder));
        let mut search = Command::new("grep");
        search.args(["--recursive", "--files-with-matches", "--exclude=readme.rs", name]).args(folders);
        succeed(&mut search).with_context(|| format!("{system}: no test uses {name}"))?;
    }
    Ok(())
}

/// Objects of bitcode, for lines that link them.
fn objects(name: &str) -> Result<Place> {
    let main = include_str!("../../examples/hello/main.cpp");
    let place = Place::create(name, &[GREET, ("main.cpp", main)])?;
    place.run("clang++-22 -O2 -flto=thin -c *.cpp")?;
    Ok(place)
}

fn greets(place: &Place) -> Result<()> {
    let said = place.run("./P")?;
    ensure!(said == "hello, world\n", "{said}");
    Ok(())
}

#[test]
fn a_command_line() -> Result<()> {
    let place = objects("command-line")?;
    place.paste("a command line")?;
    place.linked("P")?;
    greets(&place)
}

#[test]
fn ninja_and_others_run_a_plan() -> Result<()> {
    for system in ["Ninja", "others"] {
        let place = objects(system)?;
        place.paste(system)?;
        place.linked("P")?;
        greets(&place)?;
    }
    Ok(())
}

#[test]
fn dtlto_of_lld() -> Result<()> {
    let place = objects("dtlto")?;
    place.paste("lld's DTLTO")?;
    greets(&place)?;
    // Only then does a distributor leave a record.
    let with_state = |line: &str| format!("export DISTLTO_STATE=$PWD/state\n{line}");
    let line = rows()?.into_iter().find(|row| row.system == "lld's DTLTO").context("it was pasted")?.line;
    place.run(&with_state(line.trim_matches('`')))?;
    let said = place.run(&with_state("distlto inspect P"))?;
    ensure!(said.starts_with("P: 2 modules"), "{said}");
    Ok(())
}

#[test]
fn make() -> Result<()> {
    let makefile = "\
all: P program libword.so libplug.so
P: main.o libgreet.a libword.so
\t$(CXX) $(LDFLAGS) $^ -o $@
program: program.o spell.o
libgreet.a: greet.o
\t$(AR) rcs $@ $^
libword.so: word.o spell.o
\t$(CC) $(LDFLAGS) -shared -Wl,-soname,$@ $^ -o $@
libplug.so: plug.o spell.o
\t$(CC) $(LDFLAGS) -shared $^ -o $@
word.o plug.o spell.o: CPPFLAGS += -fPIC
";
    let place = Place::create("make", &[&SOURCES[..], &[("Makefile", makefile)]].concat())?;
    place.paste("make")?;
    place.built(".")
}

#[test]
fn cmake() -> Result<()> {
    let project = "\
cmake_minimum_required(VERSION 3.5)
project(greeting C CXX)
add_library(word SHARED word.c spell.c)
add_library(plug MODULE plug.c spell.c)
add_library(greet STATIC greet.cpp)
add_executable(P main.cpp)
target_link_libraries(P greet word ${CMAKE_DL_LIBS})
add_executable(program program.c spell.c)
";
    let place = Place::create("cmake", &[&SOURCES[..], &[("CMakeLists.txt", project)]].concat())?;
    place.paste("CMake")?;
    place.built("build")
}

#[test]
fn meson() -> Result<()> {
    let project = "\
project('greeting', 'c', 'cpp')
word = shared_library('word', 'word.c', 'spell.c')
shared_module('plug', 'plug.c', 'spell.c')
greet = static_library('greet', 'greet.cpp')
executable('P', 'main.cpp', link_with: [greet, word])
executable('program', 'program.c', 'spell.c')
";
    let place = Place::create("meson", &[&SOURCES[..], &[("meson.build", project)]].concat())?;
    place.paste("Meson")?;
    place.built("build")
}

const RUST: [(&str, &str); 2] = [
    ("main.rs", "mod words;\nfn main() { println!(\"hello, {}\", words::name()); }\n"),
    ("words.rs", "#[inline(never)]\npub fn name() -> &'static str { \"world\" }\n"),
];

#[test]
fn rustc() -> Result<()> {
    let place = Place::create("rustc", &RUST)?;
    place.paste("rustc")?;
    place.linked("main")?;
    ensure!(place.run("./main")? == "hello, world\n");
    Ok(())
}

#[test]
fn cargo() -> Result<()> {
    let manifest = "[package]\nname = \"greeting\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
    let [main, words] = RUST.map(|(name, text)| (format!("src/{name}"), text));
    let files = [("Cargo.toml", manifest), (main.0.as_str(), main.1), (words.0.as_str(), words.1)];
    let place = Place::create("cargo", &files)?;
    place.paste("cargo")?;
    // Cargo links beside the place where it shows the program.
    place.linked("$(ls target/release/deps/greeting-* | grep -v '[.]d$')")?;
    ensure!(place.run("target/release/greeting")? == "hello, world\n");
    Ok(())
}

/// The row of the kernel, in a program that is built as one is.
#[test]
fn kernel() -> Result<()> {
    let place = Place::create("kernel", &[])?;
    let example = repository().join("examples/kbuild");
    succeed(Command::new("cp").arg("-RT").arg(example).arg(&place.folder.path))?;
    // The page installs below the user's own folder.
    symlink(prefix()?, place.folder.path.join(".local"))?;
    let line = rows()?.into_iter().find(|row| row.system == "Linux 7.2").context("it has a row")?.line;
    place.run(&format!("export HOME=$PWD\n{}", line.trim_matches('`')))?;
    ensure!(place.run("./vmlinux")? == "work 42, time 21, length 6, entry 42\n");
    // Kbuild writes down by which command each file was made.
    place.run("grep --recursive --quiet --include='.*.cmd' 'distlto opt' .")?;
    Ok(())
}

/// A command of a session, and the lines that it is said to print.
struct Shown {
    command: String,
    lines: Vec<String>,
}

/// The commands of all blocks of a section.
fn session(text: &str) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    let blocks = text.split("```").skip(1).step_by(2);
    for line in blocks.flat_map(str::lines).filter(|line| !line.is_empty()) {
        match (line.strip_prefix("$ "), shown.last_mut()) {
            (Some(command), _) => shown.push(Shown { command: command.to_owned(), lines: Vec::new() }),
            (None, Some(last)) => last.lines.push(line.to_owned()),
            (None, None) => {}
        }
    }
    shown
}

/// A line without what differs from run to run: times, which backend ends first, and the place of the store.
fn steady(line: &str) -> String {
    let name = |word: &str| match word.split_once("/distlto/links-v1/") {
        Some((_, place)) => place.rsplit_once('/').map_or(place, |(_, name)| name).to_owned(),
        None => word.to_owned(),
    };
    let line = line.split(' ').map(name).collect::<Vec<_>>().join(" ");
    let line = line.as_str();
    let line = line.strip_prefix('[').and_then(|line| line.split_once("] ")).map_or(line, |(_, line)| line);
    match (line.starts_with("opt "), line.split_once(" (")) {
        (true, Some((module, _))) => module.to_owned(),
        _ => line.to_owned(),
    }
}

/// Whether a command printed what is shown: these lines, where `...` stands for any others; backends in any order.
fn prints(output: &Output, shown: &Shown) -> Result<()> {
    let text = [&output.stderr[..], &output.stdout].concat();
    let text = String::from_utf8(text)?;
    let printed: Vec<String> = text.lines().map(steady).collect();
    let mut rest = printed.as_slice();
    let mut any = false;
    for line in shown.lines.iter().map(|line| steady(line)) {
        if line == "..." {
            any = true;
            continue;
        }
        let found = if line.starts_with("opt ") {
            printed.contains(&line)
        } else {
            let at = rest.iter().position(|other| *other == line);
            rest = at.map_or(&[], |at| &rest[at + 1..]);
            at.is_some_and(|at| any || at == 0)
        };
        ensure!(found, "$ {}\n`{line}` is not where README.md has it:\n{text}", shown.command);
        any = line.starts_with("opt ");
    }
    ensure!(any || rest.is_empty(), "$ {}\nREADME.md does not end here:\n{text}", shown.command);
    Ok(())
}

#[test]
fn the_quick_start_prints_what_it_shows() -> Result<()> {
    let page = page()?;
    let session = session(section(&page, "Quick start")?);
    let place = Place::create("quick-start", &[])?;
    ensure!(session.len() == 6, "{} commands were read", session.len());
    for shown in &session {
        let output = capture(&mut place.shell(&shown.command))?;
        ensure!(output.status.success(), "$ {}\n{output:?}", shown.command);
        prints(&output, shown)?;
    }
    Ok(())
}
