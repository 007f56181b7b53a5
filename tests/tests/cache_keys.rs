//! Equal work is found in the cache wherever it is done, and other work is not.
//!
//! Programs are real, and what the cache gives is compared byte for byte with what a compiler writes: through a
//! distributor with a serial run of the same jobs, and through `distlto link` with a link that has no cache. How many
//! backends were found is what `distlto cache stats` says.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_tests::build::build;
use distlto_tests::case::Case;
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::program::{files, objects};
use distlto_tests::project::Project;
use distlto_tests::run::{capture, succeed, told};
use distlto_tests::store;
use distlto_tests::toolchain::{Toolchain, repository};
use distlto_tests::way::Way;

/// A cache of a test's own.
struct Cache(tempfile::TempDir);

/// How many lookups there were, and how many found something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lookups {
    hits: u64,
    all: u64,
}

impl Cache {
    fn new() -> Result<Self> {
        Ok(Self(tempfile::tempdir()?))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// All lookups so far.
    fn lookups(&self) -> Result<Lookups> {
        let mut command = Command::new(distlto::binary()?);
        let output = succeed(command.args(["cache", "stats", "--cache"]).arg(self.path()))?;
        let text = String::from_utf8(output.stdout)?;
        let line = text.lines().find_map(|line| line.trim().strip_prefix("hits"));
        let (hits, all) = line.and_then(|line| line.trim().split_once(" of ")).context("it prints hits")?;
        Ok(Lookups { hits: hits.parse()?, all: all.parse()? })
    }

    /// The lookups of one command, which must succeed.
    fn during(&self, command: &mut Command) -> Result<Lookups> {
        let before = self.lookups().unwrap_or(Lookups { hits: 0, all: 0 });
        let output = succeed(command.env("DISTLTO_CACHE", self.path()))?;
        ensure!(
            !String::from_utf8_lossy(&output.stderr).contains("warning: cache"),
            "{}",
            told(command, &output)
        );
        let after = self.lookups()?;
        Ok(Lookups { hits: after.hits - before.hits, all: after.all - before.all })
    }
}

/// A case, compiled in a directory of its own.
fn built(case: &str, place: &str) -> Result<(Case, Folder)> {
    let path = repository().join("tests/cases").join(case);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let name = Path::new("cache").join(place).join(case).with_extension("");
    let case = Case::parse(name.to_str().context("names of cases are UTF-8")?, &text)?;
    let folder = build(&case, Toolchain::from_env()?)?;
    Ok((case, folder))
}

/// Links through lld's DTLTO in two directories. The distributor of the tests runs each job serially as well and compares
/// objects.
fn through_distributor(case: &str, modules: u64) -> Result<()> {
    let cache = Cache::new()?;
    let distributor = distlto::distributor()?.to_str().context("the target directory's name is UTF-8")?;
    let link = |place: &str| {
        let (case, folder) = built(case, place)?;
        let mut link = Way::Dtlto.command(&case, &folder)?;
        link.arg(format!("-Xthinlto-distributor=--then,{distributor}"));
        cache.during(&mut link)
    };
    let (cold, again) = (link("one")?, link("another")?);
    println!("{case}: {cold:?}, then in another directory and process {again:?}");
    ensure!(cold.all >= modules && again == Lookups { hits: cold.all, all: cold.all }, "{cold:?} {again:?}");
    Ok(())
}

#[test]
fn archives_whose_members_have_process_numbers() -> Result<()> {
    through_distributor("archives/regular.c", 2)
}

#[test]
fn lua_through_a_distributor() -> Result<()> {
    through_distributor("third-party/lua.c", 33)
}

#[test]
fn rust_and_cpp_through_a_distributor() -> Result<()> {
    through_distributor("rust/calls-cpp.cpp", 3)
}

/// `distlto link` on objects that are named by absolute paths.
fn link_of(folder: &Folder, words: &[&str]) -> Result<Command> {
    let mut link = distlto::link()?;
    link.arg(folder.toolchain.tool("clang++")?).args(["-O2", "-flto=thin", "-fuse-ld=lld", "-o", "program"]);
    link.args(folder.objects.iter().map(|object| folder.path.join(object))).args(words);
    link.current_dir(&folder.path);
    Ok(link)
}

fn objects_of(folder: &Folder) -> Result<Vec<Vec<u8>>> {
    objects_in(&store::of(&folder.path)?, &folder.path.join("program"))
}

/// The objects of a link, from its store.
fn objects_in(store: &Path, output: &Path) -> Result<Vec<Vec<u8>>> {
    let found = store::objects_in(store, &store::record_in(store, output))?;
    Ok(found.into_iter().map(|(_, bytes)| bytes).collect())
}

fn through_link(case: &str, words: &[&str], modules: u64) -> Result<()> {
    let cache = Cache::new()?;
    let (_, one) = built(case, "link-one")?;
    let cold = cache.during(&mut link_of(&one, words)?)?;
    let (_, another) = built(case, "link/another")?;
    succeed(link_of(&another, words)?.env_remove("DISTLTO_CACHE"))?;
    let plain = objects_of(&another)?;
    let warm = cache.during(&mut link_of(&another, words)?)?;
    println!("{case}: {cold:?}, then in another directory {warm:?}");
    ensure!(cold.hits == 0 && cold.all >= modules, "{cold:?}");
    ensure!(warm == Lookups { hits: cold.all, all: cold.all }, "{warm:?}");
    let output = another.path.join("program");
    ensure!(objects_in(cache.path(), &output)? == plain, "an object differs from that of a compiler");
    ensure!(plain.len() as u64 == warm.all, "{} objects", plain.len());
    succeed(&mut Command::new(another.path.join("program")))?;
    Ok(())
}

#[test]
fn lua_in_two_directories() -> Result<()> {
    through_link("third-party/lua.c", &["-lm"], 33)
}

#[test]
fn another_output_is_no_other_work() -> Result<()> {
    let cache = Cache::new()?;
    let (_, folder) = built("third-party/lua.c", "link-output")?;
    let cold = cache.during(&mut link_of(&folder, &["-lm"])?)?;
    let warm = cache.during(&mut link_of(&folder, &["-lm", "-o", "another name"])?)?;
    println!("lua: {cold:?}, then under another name {warm:?}");
    ensure!(cold.hits == 0 && cold.all >= 33, "{cold:?}");
    ensure!(warm == Lookups { hits: cold.all, all: cold.all }, "{warm:?}");
    let [one, another] =
        ["program", "another name"].map(|name| objects_in(cache.path(), &folder.path.join(name)));
    ensure!(one? == another?, "an object differs");
    Ok(())
}

/// With debug information that names the directory of the compilation, another directory is another module.
#[test]
fn directories_in_debug_information_are_content() -> Result<()> {
    let cache = Cache::new()?;
    let mut hits = Vec::new();
    for place in ["debug-one", "debug-other"] {
        let folder = Folder::create(Toolchain::from_env()?, &format!("cache/{place}"))?;
        folder.write("main.c", "int main(void) { return 0; }\n")?;
        let mut compile = Command::new(folder.toolchain.tool("clang")?);
        succeed(compile.args(["-g", "-flto=thin", "-c", "main.c"]).current_dir(&folder.path))?;
        let mut link = link_of(&folder, &["main.o"])?;
        hits.push(cache.during(&mut link)?.hits);
        fs::remove_file(folder.path.join("program"))?;
        hits.push(cache.during(&mut link)?.hits);
    }
    ensure!(hits == [0, 1, 0, 1], "{hits:?}");
    Ok(())
}

const SOURCES: [(&str, &str); 3] = [
    (
        "main.c",
        "#include <stdio.h>\nint a(int), b(int);\nint main(void) { printf(\"%d\\n\", a(1) + b(2)); return 0; }\n",
    ),
    ("a.c", "int b(int);\n__attribute__((noinline)) int a(int x) { return b(x) + 1; }\n"),
    ("b.c", "int b(int x) { return x * 100; }\n"),
];

/// A project that was linked with a cache, and is linked anew each time.
struct Linked {
    project: Project,
    cache: Cache,
}

impl Linked {
    fn new(name: &str) -> Result<Self> {
        Self::of(name, &SOURCES)
    }

    fn of(name: &str, sources: &[(&str, &str)]) -> Result<Self> {
        let mut linked = Self { project: Project::create(name, sources)?, cache: Cache::new()? };
        let mut all = linked.project.objects.clone();
        all.sort();
        ensure!(linked.backends(&[])? == all, "a cold link runs everything");
        ensure!(linked.backends(&[])?.is_empty(), "and the next one nothing");
        Ok(linked)
    }

    /// What is compiled in a link from nothing, as the fake compiler saw it.
    fn backends(&mut self, flags: &[&str]) -> Result<Vec<String>> {
        let record = store::record_in(self.cache.path(), &self.project.path("program"));
        if record.exists() {
            fs::remove_dir_all(record)?;
        }
        self.project.flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        self.project.forget()?;
        succeed(self.project.link()?.env("DISTLTO_CACHE", self.cache.path()))?;
        Ok(self.project.ran()?.backends)
    }

    fn expect(&mut self, flags: &[&str], backends: &[&str]) -> Result<()> {
        let ran = self.backends(flags)?;
        ensure!(ran == backends, "{flags:?} compiled {ran:?}");
        ensure!(self.backends(flags)?.is_empty(), "{flags:?} is not found again");
        Ok(())
    }
}

/// The compiler's command holds `-fgnuc-version=4.2.1`.
#[test]
fn modules_that_are_called_as_parts_of_versions_are() -> Result<()> {
    let sources = [("2.c", SOURCES[0].1), ("4.c", SOURCES[1].1), ("1.c", SOURCES[2].1)];
    Linked::of("cache-versions", &sources).map(drop)
}

const ALL: &[&str] = &["a.o", "b.o", "main.o"];

#[test]
fn split_debug_information_comes_back() -> Result<()> {
    let cache = Cache::new()?;
    let (_, folder) = built("options/split-dwarf.c", "split")?;
    let words = ["-g", "-gsplit-dwarf"];
    let forget = || {
        fs::remove_dir_all(folder.path.join("program-dwo"))
            .and_then(|()| fs::remove_file(folder.path.join("program")))
            .context("what the link wrote")
    };
    succeed(link_of(&folder, &words)?.env_remove("DISTLTO_CACHE"))?;
    let dwos = || files(&folder.path.join("program-dwo"), "dwo");
    let plain = (objects_of(&folder)?, dwos()?);
    ensure!(plain.1.len() == 2 && plain.1.iter().all(|(_, bytes)| bytes.starts_with(b"\x7fELF")));
    for hits in [0, 2] {
        forget()?;
        let lookups = cache.during(&mut link_of(&folder, &words)?)?;
        ensure!(lookups == Lookups { hits, all: 2 }, "{lookups:?} instead of {hits} hits");
        let output = folder.path.join("program");
        ensure!(
            (objects_in(cache.path(), &output)?, dwos()?) == plain,
            "other than a compiler's, with {hits} hits"
        );
    }
    succeed(&mut Command::new(folder.path.join("program")))?;
    Ok(())
}

/// `distlto run` finds what `distlto link` kept, and what it kept itself.
#[test]
fn a_graph_finds_its_results() -> Result<()> {
    let linked = Linked::new("cache-graph")?;
    let project = &linked.project;
    let cleaned = || {
        let _ = fs::remove_dir_all(project.path("program.distlto"));
        let _ = fs::remove_file(project.path("program"));
        project.forget()
    };
    let run = |cache: &Path| {
        let mut command = Command::new(distlto::binary()?);
        command.arg("run").arg("--cache").arg(cache).arg("graph.json").current_dir(&project.folder.path);
        succeed(&mut command)?;
        ensure!(project.say()? == "301\n", "{}", project.say()?);
        project.ran()
    };
    cleaned()?;
    succeed(&mut project.index()?)?;
    fs::copy(project.path("program.distlto/index/graph.json"), project.path("graph.json"))?;
    cleaned()?;
    // As in a graph.
    succeed(project.link_with(&["--exact-names"])?.env("DISTLTO_CACHE", linked.cache.path()))?;
    let contents = |place: &str| -> Result<Vec<Vec<u8>>> {
        let objects = objects(&project.path(place))?;
        Ok(objects.into_iter().map(|(_, bytes)| bytes).collect())
    };
    let linked_objects = objects_in(linked.cache.path(), &project.path("program"))?;
    let own = Cache::new()?;
    for (cache, backends) in [(&linked.cache, &[][..]), (&own, ALL), (&own, &[])] {
        cleaned()?;
        let ran = run(cache.path())?;
        ensure!(ran.backends == backends && ran.links == 2, "{ran:?}");
        ensure!(
            contents("program.distlto/index/objects")? == linked_objects,
            "other objects than the link's"
        );
    }
    ensure!(own.lookups()? == Lookups { hits: 3, all: 6 }, "{:?}", own.lookups()?);
    Ok(())
}

#[test]
fn another_flag_is_other_work() -> Result<()> {
    let mut linked = Linked::new("cache-flags")?;
    for flags in [&["-Wl,-O0", "-Wl,--lto-O1"][..], &["-Wl,-mllvm,-inline-threshold=3"], &["-march=haswell"]]
    {
        linked.expect(flags, ALL)?;
    }
    linked.expect(&[], &[])
}

#[test]
fn another_import_is_other_work_for_those_who_import_it() -> Result<()> {
    let mut linked = Linked::new("cache-import")?;
    linked.project.edit("b.c", "x * 100", "x * 7")?;
    linked.expect(&[], ALL)?;
    ensure!(linked.project.say()? == "22\n", "{}", linked.project.say()?);
    linked.project.edit("b.c", "x * 7", "x * 100")?;
    linked.expect(&[], &[])?;
    ensure!(linked.project.say()? == "301\n", "{}", linked.project.say()?);
    linked.project.edit("main.c", "b(2)", "b(3)")?;
    linked.expect(&[], &["main.o"])
}

#[test]
fn another_profile_is_other_work_under_any_name() -> Result<()> {
    let mut linked = Linked::new("cache-profile")?;
    linked.project.folder.write("one.prof", "a:1000:1\n 0: 1000\n")?;
    linked.project.folder.write("elsewhere/two.prof", "a:1000:1\n 0: 1000\n")?;
    linked.expect(&["-fprofile-sample-use=one.prof"], ALL)?;
    linked.expect(&["-fprofile-sample-use=elsewhere/two.prof"], &[])?;
    linked.project.folder.write("one.prof", "a:1000:1\n 0: 2000\n")?;
    linked.expect(&["-fprofile-sample-use=one.prof"], ALL)
}

#[test]
fn another_wrapper_is_another_compiler() -> Result<()> {
    let mut linked = Linked::new("cache-wrapper")?;
    let clang = linked.project.path("tools/clang");
    let text = fs::read_to_string(&clang)?;
    let time = fs::metadata(&clang)?.modified()?;
    // Of the same size and with the same time.
    fs::write(
        &clang,
        text.replacen("echo \"backend", "echo  'backend", 1).replacen("$module\" >>", "'$module >>", 1),
    )?;
    File::options().append(true).open(&clang)?.set_modified(time)?;
    let ran = linked.backends(&[])?;
    ensure!(ran.len() == 3, "{ran:?}");
    Ok(())
}

/// A copy of the real compiler, which finds its libraries by the system's loader.
fn copied_compiler(project: &Project) -> Result<PathBuf> {
    let real = project.folder.toolchain.tool("clang")?.canonicalize()?;
    let copy = project.path("tools/real-clang");
    fs::copy(real, &copy)?;
    Ok(copy)
}

#[test]
fn a_compiler_that_is_replaced_is_another_one() -> Result<()> {
    let mut linked = Linked::new("cache-compiler")?;
    let copy = copied_compiler(&linked.project)?;
    let script = linked.project.path("tools/clang");
    let text = fs::read_to_string(&script)?;
    let start = text.find("clang='").context("the script names a compiler")?;
    let end = text[start + 7..].find('\'').context("its name ends")? + start + 7;
    fs::write(&script, format!("{}clang='{}{}", &text[..start], copy.display(), &text[end..]))?;
    linked.expect(&[], ALL)?;
    // A byte of the section names, which nothing reads when a program runs; then the time that it had.
    let mut bytes = fs::read(&copy)?;
    let time = fs::metadata(&copy)?.modified()?;
    let name = b".shstrtab\0";
    let at = bytes.windows(name.len()).rposition(|part| part == name).context("a section .shstrtab")?;
    bytes[at + 1] = b't';
    fs::write(&copy, bytes)?;
    File::options().append(true).open(&copy)?.set_modified(time)?;
    linked.expect(&[], ALL)
}

#[test]
fn warnings_are_told_again() -> Result<()> {
    let mut linked = Linked::new("cache-warnings")?;
    linked.project.edit("main.c", "int a(int)", "int extra; int a(int)")?;
    let script = "echo 'main.c:1: warning: of the compiler' >&2; exec \"$clang\" \"$@\"";
    linked.project.misbehave("main.o", distlto_tests::project::Misbehaviour { name: "warns", script })?;
    ensure!(linked.backends(&[])? == ["main.o"], "it is compiled");
    fs::remove_file(linked.project.path("program"))?;
    linked.project.forget()?;
    let mut link = linked.project.link()?;
    let output = capture(link.env("DISTLTO_CACHE", linked.cache.path()))?;
    ensure!(linked.project.ran()?.backends.is_empty(), "it is compiled again");
    ensure!(
        String::from_utf8_lossy(&output.stderr).contains("warning: of the compiler"),
        "{}",
        told(&link, &output)
    );
    Ok(())
}

/// A cache that cannot be used is warned of, and the link is right.
#[test]
fn a_cache_that_is_no_directory_costs_a_warning() -> Result<()> {
    let project = Project::create("cache-broken", &SOURCES)?;
    let file = project.folder.write("file", "not a directory")?;
    let mut link = project.link_with(&["--cache", file.to_str().context("UTF-8")?])?;
    let output = succeed(&mut link)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(said.matches("warning: the cache").count() == 1 && said.contains("file"), "{said}");
    ensure!(project.say()? == "301\n", "{}", project.say()?);
    Ok(())
}
