//! Kinds of inputs and the groups they stand in.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::link::{Folder, Linked, command_of, plan_of, returning, succeed};

/// `a.o` and `b.o`, called by `main.o`, and `unused.o`.
fn two() -> Folder {
    let folder = Folder::calling(&["a", "b"]);
    folder.thin("a.o", "a", 1);
    folder.thin("b.o", "b", 2);
    folder.thin("unused.o", "unused", 3);
    folder
}

#[test]
fn plain_objects() {
    let _folder = two();
    let linked = Linked::of(&["main.o", "a.o", "b.o"]);
    assert_eq!(linked.words(), "§objects/main.o.o §objects/a.o.o §objects/b.o.o");
    assert_eq!(linked.ids(), ["main.o", "a.o", "b.o"]);
}

#[test]
fn unloaded_members_come_last_and_lazily() {
    let folder = two();
    folder.archive("rcs", "lib.a", &["a.o", "unused.o"]);
    folder.archive("rcsT", "thin.a", &["b.o"]);
    let linked = Linked::of(&["main.o", "lib.a", "thin.a", "lib.a"]);
    assert_eq!(
        linked.words(),
        "§objects/main.o.o §objects/§members/lib.a/a.o.o §objects/§members/thin.a/b.o.o \
         --start-lib §members/lib.a/unused.o --end-lib"
    );
    let [regular, thin] = &linked.plan.archives[..] else { panic!("two archives") };
    assert_eq!(
        (&regular.inputs[..], &thin.inputs[..]),
        (&["lib.a".into()][..], &["b.o".into(), "thin.a".into()][..])
    );
}

#[test]
fn a_whole_archive_is_loaded() {
    let folder = two();
    folder.archive("rcs", "lib.a", &["a.o", "b.o", "unused.o"]);
    let linked = Linked::of(&["main.o", "-Wl,--whole-archive", "lib.a", "-Wl,--no-whole-archive"]);
    let ids = ["a", "b", "unused"].map(|name| format!("prog.distlto/members/lib.a/{name}.o"));
    assert_eq!(linked.ids()[1..], ids);
}

#[test]
fn lazy_objects() {
    let _folder = two();
    let linked = Linked::of(&["main.o", "-Wl,--start-lib", "unused.o", "a.o", "-Wl,--end-lib", "b.o"]);
    assert_eq!(
        linked.words(),
        "§objects/main.o.o §objects/a.o.o §objects/b.o.o --start-lib unused.o --end-lib"
    );
}

/// The stub of the lazy mention would overwrite the shard of the other.
#[test]
fn one_file_given_as_loaded_and_as_lazy() {
    let _folder = two();
    let behind = ["a.o", "main.o", "b.o", "-Wl,--start-lib", "./a.o", "-Wl,--end-lib"];
    assert_eq!(Linked::of(&behind).words(), "§objects/a.o.o §objects/main.o.o §objects/b.o.o");
    let before = ["-Wl,--start-lib", "./a.o", "-Wl,--end-lib", "a.o", "main.o", "b.o"];
    assert_eq!(
        Linked::of(&before).words(),
        "§objects/a.o.o §objects/main.o.o §objects/b.o.o --start-lib §inputs/%2E/a.o --end-lib"
    );
    let needed = ["main.o", "-Wl,--start-lib", "a.o", "-Wl,--end-lib", "a.o", "b.o"];
    let error = plan_of(&command_of("prog", &needed), "prog.distlto", None).expect_err("it is loaded twice");
    assert!(error.to_string().contains("the thin link failed"), "{error}");
    let lazy = ["-Wl,--start-lib", "a.o", "./a.o", "-Wl,--end-lib"];
    let linked = Linked::of(&[&["main.o", "b.o"][..], &lazy].concat());
    assert_eq!(linked.ids(), ["main.o", "b.o", "a.o"]);
}

#[test]
fn regular_lto_code_is_one_object_more() {
    for flags in [&["-flto"][..], &["-emit-llvm"]] {
        let folder = two();
        folder.compile("a.o", &returning("a", 1), flags);
        let linked = Linked::of(&["main.o", "a.o", "b.o"]);
        assert_eq!(linked.words(), "§regular-lto.o §objects/main.o.o §objects/b.o.o", "{flags:?}");
    }
}

const POLYMORPHIC: &str = "#include <stdio.h>
struct Base { virtual int f(); virtual ~Base() {} };
struct Derived : Base { int f() override; };
Base *make();\n";

#[test]
fn a_split_unit_has_a_shard_and_regular_code() {
    let folder = Folder::new();
    let flags = ["-flto=thin", "-fsplit-lto-unit", "-fwhole-program-vtables", "-fvisibility=hidden"];
    let uses =
        format!("{POLYMORPHIC}int main() {{ Base *b = make(); printf(\"%d\\n\", b->f()); delete b; }}\n");
    let makes = format!(
        "{POLYMORPHIC}int Base::f() {{ return 1; }} int Derived::f() {{ return 2; }} Base *make() {{ return new Derived; }}\n"
    );
    folder.compile_as("c++", "main.o", &uses, &flags);
    folder.compile_as("c++", "makes.o", &makes, &flags);
    let linked = Linked::of(&["-Wl,--lto-whole-program-visibility", "main.o", "makes.o", "-lstdc++"]);
    assert_eq!(
        linked.words(),
        "§regular-lto.o §objects/main.o.o §objects/makes.o.o --lto-whole-program-visibility -lstdc++"
    );
}

#[test]
fn native_objects_come_first() {
    let folder = two();
    folder.compile("a.o", &returning("a", 1), &[]);
    let linked = Linked::of(&["main.o", "a.o", "b.o"]);
    assert_eq!(linked.words(), "a.o §objects/main.o.o §objects/b.o.o");
    folder.archive("rcs", "lib.a", &["b.o", "a.o"]);
    let linked = Linked::of(&["main.o", "lib.a"]);
    assert_eq!(linked.words(), "§members/lib.a/a.o §objects/main.o.o §objects/§members/lib.a/b.o.o");
}

/// The linker would load the member again, or not at all where no reference is left: it is given the member alone.
#[test]
fn loaded_members_of_native_archives_are_excerpts() {
    let folder = two();
    folder.compile("a.o", &returning("a", 1), &[]);
    folder.compile("b.o", &returning("b", 2), &[]);
    folder.compile("unused.o", &returning("unused", 3), &[]);
    folder.archive("rcs", "lib.a", &["a.o", "unused.o", "b.o"]);
    let linked = Linked::of(&["main.o", "lib.a"]);
    let excerpt = "--whole-archive §loaded/lib.a/1/lib.a --no-whole-archive";
    assert_eq!(linked.words(), format!("{excerpt} §objects/main.o.o lib.a"));
    let place = "prog.distlto/loaded/lib.a/1/lib.a";
    assert!(linked.plan.thin_link.outputs.contains(&place.into()));
    assert!(linked.plan.link.inputs.contains(&place.into()));
    folder.archive("rcs", "all.a", &["a.o", "b.o"]);
    let linked = Linked::of(&["main.o", "all.a"]);
    assert_eq!(linked.words(), "--whole-archive all.a --no-whole-archive §objects/main.o.o all.a");
    assert!(!Path::new(place).exists());
}

/// A weak definition of a module's that was loaded first beats a native one, though native objects come first.
#[test]
fn a_native_object_is_given_without_what_a_module_defines_first() {
    let folder = two();
    let weak = |function: &str, value: u32| {
        format!(
            "{}__attribute__((weak)) int shared(void) {{ return {value}; }}\n",
            returning(function, value)
        )
    };
    folder.compile("a.o", &weak("a", 1), &["-flto=thin"]);
    folder.compile("b.o", &weak("b", 2), &[]);
    folder.compile("unused.o", &returning("unused", 3), &[]);
    let linked = Linked::of(&["unused.o", "main.o", "a.o", "b.o"]);
    assert_eq!(linked.words(), "unused.o §loaded/b.o/1/b.o §objects/main.o.o §objects/a.o.o");
    let linked = Linked::of(&["unused.o", "main.o", "b.o", "a.o"]);
    assert_eq!(linked.words(), "unused.o b.o §objects/main.o.o §objects/a.o.o");
}

#[test]
fn fat_objects_are_taken_apart() {
    let folder = two();
    let fat = ["-flto=thin", "-ffat-lto-objects"];
    folder.compile("a.o", &returning("a", 1), &fat);
    folder.compile("b.o", &returning("b", 2), &fat);
    folder.archive("rcs", "lib.a", &["b.o"]);
    let linked = Linked::of(&["main.o", "a.o", "lib.a", "-Wl,--fat-lto-objects"]);
    assert_eq!(linked.ids(), ["main.o", "prog.distlto/inputs/a.o", "prog.distlto/members/lib.a/b.o"]);
    let thin = &linked.plan.thin_link;
    assert!(thin.inputs.contains(&"a.o".into()) && thin.outputs.contains(&"prog.distlto/inputs/a.o".into()));
    assert!(linked.plan.archives[0].fat_lto);
    // Without the option they are native.
    assert_eq!(Linked::of(&["main.o", "a.o", "lib.a"]).ids(), ["main.o"]);
}

#[test]
fn a_linker_script_that_names_an_archive_is_refused() {
    let folder = two();
    folder.archive("rcs", "lib.a", &["a.o"]);
    fs::write("script.o", "INPUT(lib.a)\n").expect("writing a script");
    let error = plan_of(&command_of("prog", &["main.o", "b.o", "script.o"]), "prog.distlto", None)
        .expect_err("no backend can open an archive's member");
    let text = error.to_string();
    assert!(text.contains("lib.a(a.o at ") && text.contains("which the link line does not name"), "{text}");
}

#[test]
fn an_excluded_archive_is_refused_where_a_shared_library_wants_its_symbols() {
    let folder = two();
    folder.archive("rcs", "lib.a", &["a.o"]);
    for (library, wanted) in [("a", "a"), ("other", "other")] {
        let object = format!("wants_{library}.o");
        folder.compile(
            &object,
            &format!("int {wanted}(void); int f(void) {{ return {wanted}(); }}"),
            &["-fPIC"],
        );
        let output = format!("lib{library}.so");
        succeed(Command::new("ld.lld-22").args(["-shared", &object, "-o", &output]));
    }
    let line = |library| {
        ["main.o", "b.o", "lib.a", "-Wl,--exclude-libs=lib.a", "-Wl,--allow-shlib-undefined", library]
    };
    assert_eq!(Linked::of(&line("./libother.so")).ids().len(), 3);
    let plan = |words: &[&str]| plan_of(&command_of("prog", words), "prog.distlto", None);
    let wanted = plan(&line("./liba.so")).expect_err("lld would hide what the library wants").to_string();
    assert!(wanted.contains("--exclude-libs=lib.a names lib.a"), "{wanted}");
    let exported = plan(&line("-Wl,--export-dynamic")).expect_err("it would be exported").to_string();
    assert_eq!(exported, wanted);
}

#[test]
fn objects_of_a_script_are_given_one_by_one() {
    let folder = two();
    folder.compile("a.o", &returning("a", 1), &[]);
    fs::write(folder.path().join("script.ld"), "INPUT(a.o)\n").expect("writing a script");
    let linked = Linked::of(&["main.o", "b.o", "script.ld"]);
    assert_eq!(linked.words(), "a.o §objects/main.o.o §objects/b.o.o");
    fs::write(folder.path().join("script.ld"), "x = 1; INPUT(a.o)\n").expect("writing a script");
    let linked = Linked::of(&["main.o", "b.o", "script.ld"]);
    assert_eq!(linked.words(), "script.ld §objects/main.o.o §objects/b.o.o");
}

#[test]
fn what_a_link_no_longer_needs_is_removed() {
    let folder = two();
    folder.compile("b.o", &returning("b", 2), &["-flto"]);
    Linked::of(&["main.o", "a.o", "b.o", "unused.o"]);
    let state = folder.path().join("prog.distlto");
    let files =
        ["shards/unused.o.thinlto.bc", "shards/unused.o.imports", "objects/unused.o.o", "regular-lto.o"];
    assert!(files.iter().all(|file| state.join(file).exists()));
    folder.thin("b.o", "b", 2);
    Linked::of(&["main.o", "a.o", "b.o"]);
    assert!(files.iter().all(|file| !state.join(file).exists()));
}

/// A driver's own compilations have happened by the time of the plan; their objects are inputs as any other.
#[test]
fn sources_on_the_line_are_compiled_under_stable_names() {
    let folder = two();
    fs::write(folder.path().join("c.c"), returning("b", 2)).expect("writing a source");
    let first =
        plan_of(&command_of("prog", &["main.o", "a.o", "c.c"]), "prog.distlto", None).expect("a plan");
    let second =
        plan_of(&command_of("prog", &["main.o", "a.o", "c.c"]), "prog.distlto", None).expect("a plan");
    assert_eq!(first, second);
    assert_eq!(first.modules[2].id, "prog.distlto/compiled/0-c.c.o");
}
