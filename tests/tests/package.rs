//! `cargo xtask package`: all forms hold one set, which links and is found where each thing is looked for; the same tree
//! gives the same bytes; Debian's checker finds nothing. And the crates can be packed for a registry.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cargo_metadata::MetadataCommand;
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::succeed;
use distlto_tests::third_party;
use distlto_tests::toolchain::{NEWEST, Toolchain, repository, system_tool};

/// Lua, by the rules for make.
const MAKEFILE: &str = "\
CC = clang-22
CFLAGS = -O1 -DLUA_USE_POSIX -I$(SOURCES)
LDLIBS = -lm
include $(PREFIX)/share/distlto/rules/make/distlto.mk
VPATH = $(SOURCES)
lua: main.o $(patsubst %.c,%.o,$(notdir $(wildcard $(SOURCES)/*.c)))
\t+$(CC_LINK) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@
";

/// Runs its argument.
const MAIN: &str = "\
#include \"lauxlib.h\"
#include \"lualib.h\"
int main(int count, char **words) {
  lua_State *state = luaL_newstate();
  luaL_openlibs(state);
  return count != 2 || luaL_dostring(state, words[1]);
}
";

/// What is made, from the build that the tests have.
struct Made {
    recipe: PathBuf,
    wheel: PathBuf,
    archive: PathBuf,
    package: PathBuf,
}

fn package(out: &Path) -> Result<Made> {
    let mut xtask = distlto::xtask();
    xtask.args(["package", "--debug", "--out"]);
    succeed(xtask.arg(out))?;
    let mut made: Vec<PathBuf> = fs::read_dir(out)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    made.sort();
    let [recipe, wheel, archive, package] = made.try_into().ok().context("four files are made")?;
    Ok(Made { recipe, wheel, archive, package })
}

/// What a command prints.
fn said(command: &mut Command) -> Result<String> {
    Ok(String::from_utf8(succeed(command)?.stdout)?)
}

#[test]
fn packages_hold_one_set_that_works() -> Result<()> {
    let folder = Folder::create(Toolchain { version: NEWEST }, "package")?;
    let at = |name: &str| folder.path.join(name);
    let Made { recipe, wheel, archive, package } = package(&at("one"))?;
    succeed(Command::new("lintian").args(["--fail-on", "error,warning", "--allow-root"]).arg(&package))?;
    let field = |name: &str| said(Command::new("dpkg-deb").arg("--field").arg(&package).arg(name));
    ensure!(field("Recommends")?.contains("clang") && field("Recommends")?.contains("lld"));

    succeed(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(at("deb")))?;
    fs::create_dir(at("tar"))?;
    succeed(
        Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(at("tar")).arg("--strip-components=1"),
    )?;
    let (of_package, of_archive) = (below(&at("deb/usr"))?, below(&at("tar"))?);
    let apart: Vec<_> = of_package.symmetric_difference(&of_archive).collect();
    ensure!(
        apart.iter().all(|path| path.starts_with("share/doc/distlto/") || path.starts_with("share/lintian/")),
        "only Debian's own documents differ: {apart:?}"
    );
    for name in
        ["bash-completion/completions/distlto", "zsh/site-functions/_distlto", "doc/distlto/docs/start.md"]
    {
        ensure!(of_package.contains(&format!("share/{name}")), "{name} is missing");
    }
    let licences = ["share/doc/distlto/LICENSE-MIT", "share/doc/distlto/crates.txt"];
    ensure!(licences.iter().all(|name| of_archive.contains(*name)), "{of_archive:?}");
    let of_wheel = install_wheel(&wheel, &at("venv"))?;
    let apart: Vec<_> = of_wheel.symmetric_difference(&of_archive).collect();
    ensure!(apart.is_empty(), "{apart:?}");
    for prefix in [at("deb/usr"), at("tar"), at("venv")] {
        use_installed(&folder, &prefix)?;
    }
    tag_is_true(&wheel, &at("venv"), &field("Depends")?)?;
    recipe_is_sound(&recipe, &archive, &at("tar/bin"))?;

    let again = self::package(&at("two"))?;
    for (one, two) in [(&package, &again.package), (&archive, &again.archive), (&wheel, &again.wheel)] {
        ensure!(fs::read(one)? == fs::read(two)?, "{} has other bytes the second time", one.display());
    }
    Ok(())
}

/// Has pip, which asks no registry, install a wheel. Returns the files of distlto, relative.
fn install_wheel(wheel: &Path, prefix: &Path) -> Result<BTreeSet<String>> {
    succeed(Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(prefix))?;
    let before = below(prefix)?;
    succeed(pip_of(prefix).args(["install", "--no-index", "--no-deps"]).arg(wheel))?;
    let shown = said(pip_of(prefix).args(["show", "distlto"]))?;
    ensure!(shown.contains("Version: 0") && shown.contains("License: Apache-2.0 OR MIT"), "{shown}");
    let installed = below(prefix)?;
    Ok(installed.difference(&before).filter(|path| !path.contains(".dist-info/")).cloned().collect())
}

fn pip_of(prefix: &Path) -> Command {
    let mut pip = Command::new("pip3");
    pip.arg("--python").arg(prefix.join("bin/python")).arg("--disable-pip-version-check");
    pip
}

/// The glibc in a wheel's name and among a package's dependencies is the newest of which its programs have a symbol, as readelf lists them.
fn tag_is_true(wheel: &Path, prefix: &Path, depends: &str) -> Result<()> {
    let name = wheel.file_name().and_then(|name| name.to_str()).context("a name")?;
    let mut newest = (0, 0);
    for program in ["bin/distlto", "lib/distlto/libdistlto_hook.so", "lib/libDTLTOdistlto.so"] {
        let text =
            said(Command::new("readelf").args(["--version-info", "--wide"]).arg(prefix.join(program)))?;
        for version in text.split("Name: GLIBC_").skip(1).filter_map(|rest| rest.split_whitespace().next()) {
            let mut numbers = version.split('.').map(str::parse::<u32>);
            if let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) {
                newest = newest.max((major, minor));
            }
        }
    }
    let tag = format!("-py3-none-manylinux_{}_{}_{}.whl", newest.0, newest.1, env::consts::ARCH);
    ensure!(name.ends_with(&tag), "{name} is no {tag}");
    let dependency = format!("libc6 (>= {}.{})", newest.0, newest.1);
    ensure!(depends.contains(&dependency), "{depends} is not {dependency}");
    Ok(())
}

/// A recipe that no engine for containers runs here: it adds the archive, finds distlto in it, apt knows its packages, and
/// what it asks of distlto succeeds with the programs of the archive.
fn recipe_is_sound(recipe: &Path, archive: &Path, programs: &Path) -> Result<()> {
    let text = fs::read_to_string(recipe)?.replace("\\\n", " ");
    let mut lines: Vec<(&str, &str)> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        lines.push(line.split_once(' ').with_context(|| line.to_owned())?);
    }
    let of =
        |word: &str| -> Vec<&str> { lines.iter().filter(|line| line.0 == word).map(|line| line.1).collect() };
    ensure!(lines.iter().all(|line| ["ARG", "FROM", "RUN", "ADD", "ENV"].contains(&line.0)), "{lines:?}");
    let name = archive.file_name().and_then(|name| name.to_str()).context("a name")?;
    ensure!(of("ADD") == [format!("{name} /opt/")], "{:?}", of("ADD"));
    let folder = name.strip_suffix(".tar.gz").context("an archive")?;
    ensure!(of("ENV") == [format!("PATH=/opt/{folder}/bin:${{PATH}}")], "{:?}", of("ENV"));
    let listed = said(Command::new("tar").arg("-tf").arg(archive))?;
    ensure!(listed.lines().any(|line| line == format!("{folder}/bin/distlto")), "{listed}");
    let inherited = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([programs.to_owned()].into_iter().chain(env::split_paths(&inherited)))?;
    let (ours, installing): (Vec<_>, Vec<_>) =
        of("RUN").into_iter().partition(|line| line.starts_with("distlto "));
    ensure!(ours.len() == 1 && installing.len() == 1, "{lines:?}");
    succeed(Command::new("sh").args(["-c", ours[0]]).env("PATH", path))?;
    for line in installing {
        succeed(Command::new("sh").args(["-n", "-c", line]))?;
        let words = line.split_once("--no-install-recommends").map_or("", |(_, words)| words);
        let words = words.split("&&").next().unwrap_or_default().replace("${LLVM}", "19");
        for package in words.split_whitespace() {
            succeed(Command::new("apt-cache").args(["show", package]))?;
        }
    }
    Ok(())
}

/// All files, relative.
fn below(directory: &Path) -> Result<BTreeSet<String>> {
    let said = said(Command::new("find").arg(directory).args(["-type", "f,l", "-printf", "%P\\n"]))?;
    Ok(said.lines().map(str::to_owned).collect())
}

/// Has an installed set link Lua, with nothing in PATH but itself and a toolchain, and looks for its pages and words as
/// others do.
fn use_installed(folder: &Folder, prefix: &Path) -> Result<()> {
    let tools = folder.path.join("tools");
    if !tools.is_dir() {
        fs::create_dir(&tools)?;
        for tool in ["clang", "ld.lld"] {
            symlink(folder.toolchain.tool(tool)?, tools.join(format!("{tool}-{NEWEST}")))?;
        }
        symlink(system_tool("make")?, tools.join("make"))?;
        folder.write("lua/Makefile", MAKEFILE)?;
        folder.write("lua/main.c", MAIN)?;
    }
    let path = env::join_paths([prefix.join("bin"), tools])?;
    let clean = |program: &str| {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", &path).current_dir(folder.path.join("lua"));
        command
    };
    let lua = third_party::sources("lua-src")?.join("lua-5.4.9");
    let mut make = clean("make");
    make.arg("-j2").arg(format!("PREFIX={}", prefix.display())).arg(format!("SOURCES={}", lua.display()));
    // Another prefix is another distlto, and is to do all of it.
    let left = folder.path.join("lua/lua");
    if left.is_file() {
        fs::remove_file(left)?;
    }
    succeed(&mut make)?;
    let program = folder.path.join("lua/lua").display().to_string();
    let printed = said(clean(&program).args(["print(6 * 7, string.rep('x', 3))"]))?;
    ensure!(printed == "42\txxx\n", "{printed}");
    ensure!(distlto::state_dir(&folder.path.join("lua/lua"))?.is_dir(), "distlto did not link it");
    let doctor =
        said(clean("distlto").args(["doctor", "--", "clang-22", "-fuse-ld=lld", "-flto=thin", "main.o"]))?;
    ensure!(!doctor.contains("not installed"), "{doctor}");

    let page = said(
        Command::new("man").arg("--manpath").arg(prefix.join("share/man")).args(["--where", "distlto-link"]),
    )?;
    ensure!(Path::new(page.trim()).starts_with(prefix), "{page}");
    let words = prefix.join("share/bash-completion/completions/distlto");
    let asked = format!("source {} && complete -p distlto", shlex::try_quote(&words.to_string_lossy())?);
    ensure!(said(Command::new("bash").args(["--norc", "-c", &asked]))?.contains("distlto"));
    Ok(())
}

#[test]
fn crates_can_be_published() -> Result<()> {
    let manifest = repository().join("Cargo.toml");
    let options = vec!["--locked".to_owned(), "--offline".to_owned()];
    let metadata = MetadataCommand::new().manifest_path(manifest).no_deps().other_options(options).exec()?;
    let (kept, published): (Vec<_>, Vec<_>) =
        metadata.packages.iter().partition(|package| package.publish.as_ref().is_some_and(Vec::is_empty));
    let mut kept: Vec<_> = kept.iter().map(|package| package.name.as_str()).collect();
    kept.sort_unstable();
    let expected = ["distlto-fuzz", "distlto-reapi-server", "distlto-tests", "xtask"];
    ensure!(kept == expected, "{kept:?} are not published");

    let out = Folder::create(Toolchain { version: NEWEST }, "crates")?.path;
    let mut pack = distlto::cargo();
    pack.args([
        "package",
        "--workspace",
        "--no-verify",
        "--allow-dirty",
        "--locked",
        "--offline",
        "--target-dir",
    ]);
    pack.arg(&out);
    // As `cargo publish` leaves out what is not published.
    pack.args(kept.iter().flat_map(|name| ["--exclude", name]));
    succeed(&mut pack)?;
    for package in published {
        let name = format!("{}-{}", package.name, package.version);
        let text = |field: &Option<String>| field.as_ref().is_some_and(|text| !text.is_empty());
        ensure!(text(&package.description) && text(&package.license), "{name} lacks a field");
        let mut tar = Command::new("tar");
        tar.arg("-C").arg(&out).arg("-xf").arg(out.join("package").join(format!("{name}.crate")));
        succeed(&mut tar)?;
        let files = below(&out.join(&name))?;
        for file in ["LICENSE-APACHE", "LICENSE-MIT", "README.md"] {
            ensure!(files.contains(file), "{name} has no {file}");
        }
        ensure!(
            !files.iter().any(|file| file.starts_with("tests/")),
            "{name} holds tests, which need the repository"
        );
        names_no_file_outside(&out.join(&name), &files)?;
    }
    Ok(())
}

/// What stands outside of a crate is not there for those who build it. Its tests are not built.
fn names_no_file_outside(folder: &Path, files: &BTreeSet<String>) -> Result<()> {
    let built =
        |file: &&String| file.starts_with("src/") && file.ends_with(".rs") && !file.ends_with("tests.rs");
    for file in files.iter().filter(built) {
        let source = fs::read_to_string(folder.join(file))?;
        let source = source.split("#[cfg(test)]").next().unwrap_or_default();
        let outside =
            |line: &&str| line.contains("\"../") && (line.contains("path =") || line.contains("include"));
        let found = source.lines().find(outside);
        ensure!(found.is_none(), "{}: {file} names a file outside: {found:?}", folder.display());
    }
    Ok(())
}
