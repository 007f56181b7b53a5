//! Everything that makes a real clang exit 0 with a wrong object is refused, the earlier object is intact,
//! and no temporary is left; with a new and an old clang.

use super::common::{Link, VERSIONS, cause, is_done};

/// Breaks a good link, compiles `a.o`, and expects a refusal that holds `expected`.
#[track_caller]
fn refused(expected: &str, break_it: impl Fn(&Link)) {
    for version in VERSIONS {
        let link = Link::new(version);
        assert!(is_done(&link.opt(&link.clang)));
        let good = link.read("out/a.o");
        assert!(!good.is_empty());
        break_it(&link);
        let report = link.opt(&link.clang);
        let cause = cause(&report);
        assert!(cause.contains(expected), "LLVM {version}: {cause}");
        assert!(cause.starts_with("a.o: "), "{cause}");
        assert_ne!(report.exit_code(), 0);
        assert_eq!(link.read("out/a.o"), good, "the earlier object is intact");
        assert_eq!(link.temporaries(), Vec::<std::path::PathBuf>::new());
    }
}

fn cut(link: &Link, name: &str, keep: impl Fn(usize) -> usize) {
    let bytes = link.read(name);
    link.write(name, &bytes[..keep(bytes.len())]);
}

fn native(link: &Link, name: &str) {
    link.tool(&[&link.clang, "-c", "b.c", "-o", name]);
}

#[test]
fn good_link_gives_the_object_of_a_bare_compiler() {
    for version in VERSIONS {
        let link = Link::new(version);
        let bare = ["-c", "-O2", "-fPIC", "a.o", "-fthinlto-index=a.o.thinlto.bc", "-o", "bare.o"];
        link.tool(&[&[link.clang.as_str()], &bare[..]].concat());
        let report = link.opt(&link.clang);
        assert!(is_done(&report), "{report:?}");
        assert_eq!(link.read("out/a.o"), link.read("bare.o"));
    }
}

#[test]
fn missing_shard() {
    refused("cannot read the index shard", |link| std::fs::remove_file(link.path("a.o.thinlto.bc")).unwrap());
}

#[test]
fn empty_shard() {
    refused("is empty", |link| link.write("a.o.thinlto.bc", ""));
}

#[test]
fn truncated_shard() {
    for less in [1, 4, 8, 60] {
        refused("the index shard", |link| cut(link, "a.o.thinlto.bc", |size| size - less));
    }
}

#[test]
fn shard_that_is_no_bitcode() {
    refused("the index shard", |link| link.write("a.o.thinlto.bc", "garbage, garbage, garbage"));
    refused("the index shard", |link| native(link, "a.o.thinlto.bc"));
}

#[test]
fn module_given_as_its_own_shard() {
    refused("a.o.thinlto.bc", |link| link.write("a.o.thinlto.bc", link.read("a.o")));
}

#[test]
fn shard_of_another_module() {
    refused("the shard is not that of module a.o", |link| {
        // b imports nothing, so its shard names only itself.
        link.write("a.o.thinlto.bc", link.read("b.o.thinlto.bc"));
    });
}

#[test]
fn missing_import() {
    refused("cannot read the import", |link| std::fs::remove_file(link.path("b.o")).unwrap());
}

#[test]
fn empty_import() {
    refused("b.o is empty file, not bitcode", |link| link.write("b.o", ""));
}

#[test]
fn truncated_import() {
    for keep in [3, 300, 1000, 1001] {
        refused("b.o", |link| cut(link, "b.o", |_| keep));
    }
    refused("the import", |link| cut(link, "b.o", |size| size - 4));
}

#[test]
fn native_import() {
    refused("x86-64 object, not bitcode", |link| native(link, "b.o"));
}

#[test]
fn another_module_in_an_imports_place() {
    refused("module b.o has changed since the thin link", |link| link.write("b.o", link.read("a.o")));
}

#[test]
fn module_changed_since_the_thin_link() {
    refused("module a.o has changed since the thin link", |link| {
        link.write("a.c", "int main(void) { return 4; }");
        link.tool(&[&link.clang, "-O2", "-flto=thin", "-c", "a.c", "-o", "a.o"]);
    });
}

#[test]
fn empty_truncated_and_native_module() {
    refused("not bitcode", |link| link.write("a.o", ""));
    refused("the module", |link| cut(link, "a.o", |size| size / 2));
    refused("not bitcode", |link| native(link, "a.o"));
}

#[test]
fn module_under_another_path_than_its_shard_says() {
    for version in VERSIONS {
        let link = Link::new(version);
        link.write("copy.o", link.read("a.o"));
        link.write("copy.o.thinlto.bc", link.read("a.o.thinlto.bc"));
        for module in ["copy.o", "./a.o"] {
            let text = cause(&link.opt_of(&link.clang, module));
            assert!(text.contains("the shard is not that of module"), "{text}");
            assert!(!link.path("out").join(module).exists());
        }
    }
}

#[test]
fn module_without_functions_is_no_failure() {
    for version in VERSIONS {
        let link = Link::new(version);
        link.write("b.c", "");
        link.tool(&[&link.clang, "-O2", "-flto=thin", "-c", "b.c", "-o", "b.o"]);
        link.thin_link(version, &["b.o"]);
        let report = link.opt_of(&link.clang, "b.o");
        assert!(is_done(&report), "{report:?}");
    }
}

#[test]
fn warnings_and_remarks_are_no_failures() {
    for version in VERSIONS {
        let link = Link::new(version);
        let compiler = link.compiler(&format!("exec {} -I. -Wl,x -Rpass=inline \"$@\"", link.clang));
        let report = link.opt(&compiler);
        assert!(is_done(&report), "{report:?}");
    }
}

/// The compilers say so themselves, each in its own words.
#[test]
fn bitcode_of_a_later_llvm_is_a_compiler_too_old() {
    let link = Link::new(22);
    for version in [19, 16, 15, 14] {
        let report = link.opt(&format!("clang-{version}"));
        let text = cause(&report);
        let versions = ["of LLVM 22.".to_owned(), format!("of LLVM {version}.")];
        // Some stumble over the shard alone.
        let summaries = ["version 12", if version < 18 { "version 9" } else { "version 10" }];
        let named = versions.iter().all(|version| text.contains(version));
        assert!(named || summaries.iter().all(|version| text.contains(version)), "{text}");
        assert_eq!(report.exit_code(), 7, "{text}");
    }
}

#[test]
fn shard_of_a_module_that_imports_from_this_one() {
    for version in VERSIONS {
        let link = Link::new(version);
        // What nobody imports.
        link.write("b.c", "int b1(int x) { return x * 7; } int b2(int x) { return x + 9; } __attribute__((noinline)) int big(int x) { return x * x; }");
        link.tool(&[&link.clang, "-O2", "-flto=thin", "-c", "b.c", "-o", "b.o"]);
        link.thin_link(version, &["a.o", "b.o"]);
        assert!(is_done(&link.opt_of(&link.clang, "b.o")), "its own shard");
        link.write("b.o.thinlto.bc", link.read("a.o.thinlto.bc"));
        let report = link.opt_of(&link.clang, "b.o");
        assert!(cause(&report).contains("is that of a module that imports from this one"), "{report:?}");
        assert_eq!(report.exit_code(), 3);
    }
}
