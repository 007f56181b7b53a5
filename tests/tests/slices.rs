//! `distlto-index --slices` and `distlto-opt --slice`: slices that are the same wherever the link is, what an edit changes
//! in them, and what is wrong with a request. That programs are right is for the cases, which are linked by slices too.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::{fail, succeed};
use distlto_tests::toolchain::{NEWEST, Toolchain};

const SOURCES: [(&str, &str); 4] = [
    ("main.c", "int f(int), g(int), h(int);\nint main(void) { return f(1) + g(2) + h(3); }\n"),
    ("f.c", "int g(int);\nint f(int x) { return g(x) + 1; }\n"),
    ("g.c", "int g(int x) { return x * 3; }\n"),
    ("h.c", "int h(int x) { return x - 4; }\n"),
];

/// `main.o` and `f.o` are announced, the members of an archive are not.
const REQUEST: &str = "object\tmain\tbin/main.o\tout/main\tout/main.o\nobject\tf\tbin/f.o\tout/f\tout/f.o\n\
    rest\tout/rest/0\tout/objects/0\nrest\tout/rest/1\tout/objects/1\nroot\tbin\nlink\tout/link.args\n";

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
        self.run("mkdir -p bin/")?;
        for (source, _) in SOURCES {
            let object = source.replace(".c", ".o");
            self.run(&format!("%clang -O2 -fPIC -flto=thin -c {source} -o bin/{object}"))?;
        }
        self.run("rm -f bin/lib.a")?;
        self.run("%ar rcD bin/lib.a bin/g.o bin/h.o")
    }

    fn index(&self, request: &str) -> Result<Command> {
        let request = request.replace("\tbin", &format!("\t{}", self.bin));
        self.folder.write("request", request)?;
        let link =
            format!("%clang -flto=thin -fuse-ld=lld {0}/main.o {0}/f.o {0}/lib.a -o program", self.bin);
        let mut command = Command::new(distlto::binary()?);
        command.args(["index", "--slices", "request", "--index", "out/state", "--"]);
        command.args(self.folder.words(&link, ".")?).current_dir(&self.folder.path);
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
    let (code, said) = fail(&mut link.index("link\ta\nobjects\tmain\n")?)?;
    ensure!(code == 3 && said.contains("request: line 2 is no record"), "{code}: {said}");
    let slice = link.folder.path.join("out/rest/1");
    fs::create_dir_all(&slice)?;
    fs::write(slice.join("graph.json"), "{}")?;
    let mut opt = Command::new(distlto::binary()?);
    opt.args(["opt", "--slice", "out/rest/1", "--out", "x.o"]).current_dir(&link.folder.path);
    let (code, said) = fail(&mut opt)?;
    ensure!(code == 3 && said.contains("out/rest/1/graph.json: "), "{code}: {said}");
    Ok(())
}

#[test]
fn a_slice_of_several_backends_has_no_single_object() -> Result<()> {
    let link = Link::create("several", "bin")?;
    let one = REQUEST.replace("rest\tout/rest/1\tout/objects/1\n", "");
    succeed(&mut link.index(&one)?)?;
    let mut opt = Command::new(distlto::binary()?);
    opt.args(["opt", "--slice", "out/rest/0", "--out", "x.o"]).current_dir(&link.folder.path);
    let (code, said) = fail(&mut opt)?;
    ensure!(code == 2 && said.contains("holds 2 backends"), "{code}: {said}");
    ensure!(!link.folder.path.join("x.o").exists(), "nothing is written");
    Ok(())
}
