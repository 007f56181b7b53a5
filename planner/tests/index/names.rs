//! Names of inputs and outputs that some tool on the way cannot take as they are.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;

use super::link::{Folder, Linked};

#[test]
fn paths_that_climb_and_absolute_ones() {
    let folder = Folder::calling(&["a", "b", "c"]);
    folder.thin("a.o", "a", 1);
    folder.thin("b.o", "b", 2);
    fs::create_dir_all("below/here").expect("making a directory");
    folder.thin("below/c.o", "c", 3);
    std::env::set_current_dir("below/here").expect("entering it");
    let absolute = folder.path().join("b.o").display().to_string();
    let linked = Linked::of(&["../../main.o", "../../a.o", &absolute, "../c.o"]);
    assert_eq!(linked.ids(), ["../../main.o", "../../a.o", &absolute, "../c.o"]);
    assert!(
        linked
            .words()
            .starts_with("§objects/%2E%2E/%2E%2E/main.o.o §objects/%2E%2E/%2E%2E/a.o.o §objects/%2F/")
    );
    assert!(linked.words().ends_with("/b.o.o §objects/%2E%2E/c.o.o"));
}

#[test]
fn odd_names_of_objects() {
    let names: [&[u8]; 7] = [b"a\xff.o", b"b\n.o", b"@c.o", b"d;x.o", b"e e'\"$.o", b"%2E.o", b"./-g.o"];
    let functions = ["a", "b", "c", "d", "e", "f", "g"];
    let folder = Folder::calling(&functions);
    for (value, (name, function)) in names.iter().zip(functions).enumerate() {
        folder.thin(OsStr::from_bytes(name), function, u32::try_from(value).expect("a few"));
    }
    let inputs: Vec<OsString> =
        [&b"main.o"[..]].into_iter().chain(names).map(|name| OsStr::from_bytes(name).to_owned()).collect();
    let linked = Linked::of(&inputs);
    let alias = |name: &str| format!("prog.distlto/inputs/{name}");
    assert_eq!(
        linked.ids(),
        [
            "main.o",
            &alias("a%FF.o"),
            &alias("b%0A.o"),
            &alias("@c.o"),
            "d;x.o",
            "e e'\"$.o",
            "%2E.o",
            "./-g.o"
        ]
    );
}

/// Archives, native objects and FatLTO objects with names that no plan can hold.
#[test]
fn odd_names_of_other_inputs() {
    let folder = Folder::calling(&["a", "b", "c"]);
    folder.thin("a.o", "a", 1);
    folder.archive("rcs", "lib.a", &["a.o"]);
    fs::rename("lib.a", OsStr::from_bytes(b"lib\xff.a")).expect("renaming");
    fs::remove_file("a.o").expect("removing the member's original");
    folder.compile(OsStr::from_bytes(b"b\xff.o"), &super::link::returning("b", 2), &[]);
    let fat = ["-flto=thin", "-ffat-lto-objects"];
    folder.compile(OsStr::from_bytes(b"c\xff.o"), &super::link::returning("c", 3), &fat);
    let names: [&[u8]; 5] = [b"main.o", b"lib\xff.a", b"b\xff.o", b"c\xff.o", b"-Wl,--fat-lto-objects"];
    let linked = Linked::of(&names.map(OsStr::from_bytes));
    assert_eq!(
        linked.words(),
        "§inputs/b%FF.o §objects/main.o.o §objects/§members/§inputs/lib%2525FF.a/a.o.o \
         §objects/§inputs/§inputs/c%2525FF.o.o --fat-lto-objects"
    );
}

/// A semicolon would split the linker's option for where shards go.
#[test]
fn odd_names_of_outputs() {
    let folder = Folder::calling(&["a"]);
    folder.thin("a.o", "a", 1);
    fs::create_dir("out;dir é").expect("making a directory");
    let linked = Linked::to("out;dir é/prog", &["main.o", "a.o"]);
    assert_eq!(linked.words(), "§objects/main.o.o §objects/a.o.o");
}
