//! `distlto index --slices` and `distlto opt --slice`: slices that are the same wherever the link is, what an edit changes
//! in them, the link with what they give, and what is wrong with a request. Cases are linked by slices too.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::{fail, succeed};
use distlto_tests::toolchain::{NEWEST, Toolchain};
use serde_json::Value;

const SOURCES: [(&str, &str); 4] = [
    ("main.c", "int f(int), g(int), h(int);\nint main(void) { return f(1) + g(2) + h(3); }\n"),
    ("f.c", "int g(int);\nint f(int x) { return g(x) + 1; }\n"),
    ("g.c", "int g(int x) { return x * 3; }\n"),
    ("h.c", "int h(int x) { return x - 4; }\n"),
];

/// `main.o` and `f.o` are announced, the members of an archive are not.
const REQUEST: &str = "object\tmain\tbin/main.o\tout/main\tout/main.o\nobject\tf\tbin/f.o\tout/f\tout/f.o\n\
    rest\tout/rest/0\tout/objects/0\nrest\tout/rest/1\tout/objects/1\nroot\tbin\ngraph\tout/graph.json\n";

struct Link {
    folder: Folder,
    /// Where the objects are, as a configuration of a build has it.
    bin: &'static str,
}

impl Link {
    fn create(name: &str, bin: &'static str) -> Result<Self> {
        let folder = Folder::create(Toolchain { version: NEWEST }, &format!("slices/{name}"))?;
        for (name, text) in SOURCES {
            folder.write(name, text)?;
        }
        let link = Self { folder, bin };
        link.build()?;
        Ok(link)
    }

    fn run(&self, line: &str) -> Result<()> {
        let line = line.replace("bin/", &format!("{}/", self.bin));
        succeed(&mut self.folder.command(&line, ".")?).map(drop)
    }

    fn build(&self) -> Result<()> {
        self.compile("-flto=thin")
    }

    fn compile(&self, flags: &str) -> Result<()> {
        self.run("mkdir -p bin/")?;
        for (source, _) in SOURCES {
            let object = source.replace(".c", ".o");
            self.run(&format!("%clang -O2 -fPIC {flags} -c {source} -o bin/{object}"))?;
        }
        self.run("rm -f bin/lib.a")?;
        self.run("%ar rcD bin/lib.a bin/g.o bin/h.o")
    }

    fn index(&self, request: &str) -> Result<Command> {
        let request = request.replace("\tbin", &format!("\t{}", self.bin));
        self.folder.write("request", request)?;
        let mut command = self.distlto(&["index", "--slices", "request", "--index", "out/state", "--"])?;
        command.args(self.line()?);
        Ok(command)
    }

    /// The link's own words; what it is of stands in a file.
    fn line(&self) -> Result<Vec<String>> {
        self.folder.write("objects.rsp", format!("{0}/main.o {0}/f.o {0}/lib.a", self.bin))?;
        self.folder.words("%clang -flto=thin -fuse-ld=lld @objects.rsp -o program", ".")
    }

    /// Runs the backends of all slices.
    fn backends(&self) -> Result<()> {
        let slices = [("main", "--out", "main.o"), ("f", "--out", "f.o")];
        let trees = [("rest/0", "--objects", "objects/0"), ("rest/1", "--objects", "objects/1")];
        for (slice, option, place) in slices.into_iter().chain(trees) {
            let words = ["opt", "--slice", &format!("out/{slice}"), option, &format!("out/{place}")];
            succeed(&mut self.distlto(&words)?)?;
        }
        Ok(())
    }

    fn link(&self) -> Result<Command> {
        let mut command = self.distlto(&["link", "--graph", "out/graph.json", "--"])?;
        command.args(self.line()?);
        Ok(command)
    }

    /// Links by the graph, and by the linker alone, into the same program.
    fn links_as_alone(&self) -> Result<()> {
        let program = self.folder.path.join("program");
        succeed(&mut self.link()?)?;
        let ours = fs::read(&program)?;
        let line = self.line()?;
        succeed(Command::new(&line[0]).args(&line[1..]).current_dir(&self.folder.path))?;
        ensure!(fs::read(&program)? == ours, "the linker alone makes another program");
        Ok(())
    }

    fn distlto(&self, words: &[impl AsRef<OsStr>]) -> Result<Command> {
        let mut command = Command::new(distlto::binary()?);
        command.args(words).current_dir(&self.folder.path);
        Ok(command)
    }

    /// Every file of every slice.
    fn slices(&self) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
        succeed(&mut self.index(REQUEST)?)?;
        let mut found = BTreeMap::new();
        for slice in ["main", "f", "rest/0", "rest/1"] {
            let place = Path::new("out").join(slice);
            for entry in fs::read_dir(self.folder.path.join(&place))? {
                let path = entry?.path();
                let name = place.join(path.file_name().context("entries have names")?);
                found.insert(name, fs::read(path)?);
            }
        }
        Ok(found)
    }
}

#[test]
fn slices_are_the_same_wherever_the_link_is() -> Result<()> {
    let one = Link::create("one", "bin")?.slices()?;
    let other = Link::create("other/deeper", "out-of/another/configuration")?.slices()?;
    ensure!(
        one.len() > 8,
        "each slice has a graph, and those with backends modules and shards: {:?}",
        one.keys()
    );
    for (name, bytes) in &one {
        ensure!(other.get(name) == Some(bytes), "{} differs", name.display());
    }
    ensure!(one.keys().eq(other.keys()), "{:?}", other.keys());
    Ok(())
}

#[test]
fn an_edit_changes_the_slices_that_read_it() -> Result<()> {
    let link = Link::create("edit", "bin")?;
    let before = link.slices()?;
    link.folder.write("f.c", SOURCES[1].1.replace("+ 1", "+ 5"))?;
    link.build()?;
    let after = link.slices()?;
    let in_slice = |name: &Path, slice: &str| name.starts_with(Path::new("out").join(slice));
    let differs = |slice: &str| {
        let of = |all: &BTreeMap<PathBuf, Vec<u8>>| {
            let own = all.iter().filter(|(name, _)| in_slice(name, slice));
            own.map(|(name, bytes)| (name.clone(), bytes.clone())).collect::<Vec<_>>()
        };
        of(&before) != of(&after)
    };
    ensure!(differs("f") && differs("main"), "main imports f");
    ensure!(!differs("rest/0") && !differs("rest/1"), "nothing in the archive imports f");
    Ok(())
}

#[test]
fn the_program_is_that_of_the_linker_alone() -> Result<()> {
    let link = Link::create("program", "bin")?;
    succeed(&mut link.index(REQUEST)?)?;
    let left = fs::read_dir(link.folder.path.join("out/state"))?.count();
    ensure!(left == 0, "{left} files are left in the directory of the index");
    link.backends()?;
    let mut names = Vec::new();
    for tree in ["out/objects/0", "out/objects/1"] {
        for entry in fs::read_dir(link.folder.path.join(tree))? {
            names.push(entry?.file_name());
        }
    }
    names.sort();
    ensure!(names == ["lib.a(g.o).o", "lib.a(h.o).o"], "{names:?}");
    link.links_as_alone()?;
    // The graph is of the objects as they were.
    link.folder.write("main.c", SOURCES[0].1.replace("g(2)", "g(5)"))?;
    link.build()?;
    let (code, said) = fail(&mut link.link()?)?;
    let told = "out/graph.json is out of date: the object of bin/main.o is another one now";
    ensure!(code == 3 && said.contains(told), "{code}: {said}");
    Ok(())
}

#[test]
fn without_bitcode_slices_are_empty_and_the_link_is_alone() -> Result<()> {
    let link = Link::create("native", "bin")?;
    link.compile("")?;
    succeed(&mut link.index(REQUEST)?)?;
    let graph = fs::read(link.folder.path.join("out/graph.json"))?;
    let graph: Value = serde_json::from_slice(&graph)?;
    let actions = graph["actions"].as_array().context("a graph has actions")?;
    let kinds: Vec<_> = actions.iter().filter_map(|action| action["kind"].as_str()).collect();
    ensure!(kinds == ["thin-link", "link"], "{kinds:?}");
    link.backends()?;
    ensure!(fs::metadata(link.folder.path.join("out/f.o"))?.len() == 0, "it stands for no object");
    link.links_as_alone()
}

#[test]
fn modules_that_may_be_written_to_are_copied_once() -> Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    let link = Link::create("copies", "bin")?;
    let object = link.folder.path.join("bin/f.o");
    link.slices()?;
    ensure!(fs::metadata(&object)?.nlink() == 1, "an object of the user's is shared with a slice");
    let copies = |slice: &str| -> Result<HashSet<u64>> {
        let files = fs::read_dir(link.folder.path.join("out").join(slice))?;
        let files = files.map(|file| Ok(file?.metadata()?)).collect::<Result<Vec<_>>>()?;
        Ok(files.iter().filter(|file| file.nlink() > 1).map(MetadataExt::ino).collect())
    };
    let (f, main) = (copies("f")?, copies("main")?);
    ensure!(!f.is_empty() && f.is_subset(&main), "main imports f, and its slice has no copy of its own");
    fs::set_permissions(&object, fs::Permissions::from_mode(0o444))?;
    link.slices()?;
    ensure!(fs::metadata(&object)?.nlink() == 3, "it is in its own slice, and in that of main");
    Ok(())
}

#[test]
fn what_is_wrong_with_a_request() -> Result<()> {
    let link = Link::create("wrong", "bin")?;
    let (code, said) = fail(&mut link.index("object\tmain\tbin/main.o\tout/main\tout/main.o\n")?)?;
    ensure!(code == 2 && said.contains("has no slice"), "{code}: {said}");
    let (code, said) = fail(&mut link.index("graph\ta\nobjects\tmain\n")?)?;
    ensure!(code == 3 && said.contains("request: line 2 is no record"), "{code}: {said}");
    let slice = link.folder.path.join("out/rest/1");
    fs::create_dir_all(&slice)?;
    fs::write(slice.join("graph.json"), "{}")?;
    let mut opt = link.distlto(&["opt", "--slice", "out/rest/1", "--out", "x.o"])?;
    let (code, said) = fail(&mut opt)?;
    ensure!(code == 3 && said.contains("out/rest/1/graph.json: "), "{code}: {said}");
    Ok(())
}

#[test]
fn a_slice_of_several_backends_has_no_single_object() -> Result<()> {
    let link = Link::create("several", "bin")?;
    let one = REQUEST.replace("rest\tout/rest/1\tout/objects/1\n", "");
    succeed(&mut link.index(&one)?)?;
    let mut opt = link.distlto(&["opt", "--slice", "out/rest/0", "--out", "x.o"])?;
    let (code, said) = fail(&mut opt)?;
    ensure!(code == 2 && said.contains("holds 2 backends"), "{code}: {said}");
    ensure!(!link.folder.path.join("x.o").exists(), "nothing is written");
    Ok(())
}

#[test]
fn a_slice_writes_every_output_or_fails() -> Result<()> {
    let link = Link::create("dwo", "bin")?;
    let words = ["opt", "--slice", "out/f", "--out", "out/f.o", "--dwo", "out/f.dwo"];
    succeed(&mut link.index(REQUEST)?)?;
    let (code, said) = fail(&mut link.distlto(&words)?)?;
    ensure!(code == 2 && said.contains("out/f.dwo") && said.contains("add -gsplit-dwarf"), "{code}: {said}");
    ensure!(!link.folder.path.join("out/f.o").exists(), "a refused command writes an object");
    link.compile("-flto=thin -g")?;
    succeed(link.index(REQUEST)?.arg("-gsplit-dwarf"))?;
    succeed(&mut link.distlto(&words)?)?;
    for name in ["out/f.o", "out/f.dwo"] {
        let bytes = fs::read(link.folder.path.join(name))?;
        ensure!(bytes.starts_with(b"\x7fELF"), "{name} is no object");
    }
    Ok(())
}

#[test]
fn a_link_without_optimisation_is_noted_once() -> Result<()> {
    const NOTE: &str = "4 modules import nothing, because -O0 makes every function noinline";
    let link = Link::create("unoptimised", "bin")?;
    for (flags, notes) in [("-flto=thin -O0", 1), ("-flto=thin", 0), ("-flto=thin -O0", 1)] {
        link.compile(flags)?;
        let said = String::from_utf8(succeed(&mut link.index(REQUEST)?)?.stderr)?;
        ensure!(said.matches(NOTE).count() == notes, "{flags}: {said}");
    }
    Ok(())
}
