//! `examples/bazel` in real Bazel, as its README says: by a WORKSPACE in the older version, by modules in the newer one,
//! and on an engine.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use distlto_tests::bazel::Version;
use distlto_tests::bazel::example::create;
use distlto_tests::bazel::remote::{HERE, Remote, Row};
use distlto_tests::bazel::same::as_one_lld;
use distlto_tests::bazel::workspace::Workspace;
use distlto_tests::engine;

#[test]
fn by_a_workspace() -> Result<()> {
    check(&create(Version::Four, "example")?)
}

#[test]
fn by_modules() -> Result<()> {
    let example = create(Version::Seven, "example")?;
    check(&example)?;
    // main, checksum, vowels, length, rot13 of both languages, and text.
    as_of_one_lld(&example, "//app", &[], 7)?;
    as_of_one_lld(&example, "//plugin", &[], 2)?;
    // Needs cc rules, which the older version fetches.
    let compiler = "--repo_env=CC=clang-22";
    let actions = example.build(&["//cc:hello", "//cc:hello_thinlto", compiler])?;
    // hello.cc and greeting.cc, which are compiled once for each of the two.
    assert_eq!(actions.ran("DistltoOpt").len(), 2, "{actions}");
    as_of_one_lld(&example, "//cc:hello_thinlto", &[compiler], 2)?;
    assert_eq!(example.say("cc/hello")?, example.say("cc/hello_thinlto")?);
    let (said, _) = example.test(&["//cc:greeting_thinlto_test", compiler])?;
    assert!(said.contains("//cc:greeting_thinlto_test") && said.contains("PASSED"), "{said}");
    // A cc_library is no library of these rules.
    let (build, own) = ("app/BUILD.bazel", "        \"//checksum\",\n");
    example.edit(build, own, &format!("{own}        \"//cc:greeting\",\n"))?;
    let said = example.fail(&["//app", compiler])?;
    assert!(said.contains("'//cc:greeting' does not have mandatory providers: 'DistltoInfo'"), "{said}");
    example.edit(build, "        \"//cc:greeting\",\n", "")?;
    // In this test, as a server takes long to start.
    on_an_engine(&example)
}

/// What a target is, and each of its native objects, is what lld makes of the same line.
fn as_of_one_lld(example: &Workspace, target: &str, options: &[&str], modules: usize) -> Result<()> {
    let same = as_one_lld(example, target, options)?;
    ensure!(same.identical, "{target}: {same}");
    ensure!((same.equal, same.objects) == (modules, modules), "{target}: {same}");
    Ok(())
}

/// The program says of three words what their letters say by themselves, and the tests pass.
fn check(example: &Workspace) -> Result<()> {
    let said = example.run("//app")?;
    let words: Vec<&str> = include_str!("../../examples/bazel/app/words.txt").split_whitespace().collect();
    assert_eq!(said.lines().count(), words.len(), "{said}");
    for (line, word) in said.lines().zip(words) {
        let vowels = word.chars().filter(|letter| "aeiou".contains(*letter)).count();
        let upper = word.to_uppercase();
        assert!(line.starts_with(&format!("{word}: upper {upper}, ")), "{line}");
        assert!(line.ends_with(&format!("length {}, vowels {vowels}", word.len())), "{line}");
    }
    let (said, _) = example.test(&["//tests/..."])?;
    assert_eq!(said.matches("PASSED").count(), 3, "{said}");
    Ok(())
}

/// The engine runs all but rustc, on declared inputs alone, and has it for whoever asks; an edit runs what it concerns.
fn on_an_engine(example: &Workspace) -> Result<()> {
    let mut remote = Remote::new(example, engine::url()?)?;
    remote.all()?;
    let [cold, other, imported, leaf] = remote.rows.as_slice() else { unreachable!("there are four builds") };
    assert!(cold.cached().is_empty(), "{}", cold.actions);
    assert_eq!(cold.ran(false), BTreeSet::from([HERE]));
    let all: BTreeSet<&str> = cold.actions.0.iter().map(|action| action.output.as_str()).collect();
    for kind in ["DistltoCompile", "DistltoIndex", "DistltoOpt", "DistltoLink", "CppCompile"] {
        assert!(!cold.actions.ran(kind).is_empty(), "{}", cold.actions);
    }
    assert_eq!((other.cached(), other.ran(true), other.ran(false)), (all.clone(), [].into(), [].into()));
    // main.cc imports from rot13.cc, and nothing from main.cc.
    ran(
        imported,
        "rot13/_distlto/rot13/rot13.cc.o",
        &["app/_distlto/app/main", "rot13/_distlto/rot13/rot13"],
    )?;
    assert_eq!(&imported.cached() | &imported.ran(true), all, "{}", imported.actions);
    ran(leaf, "app/_distlto/app/main.cc.o", &["app/_distlto/app/main"])?;
    assert!(
        leaf.said.starts_with("thin: upper THIN, rot13 =guva, ") && leaf.said.contains("size 4"),
        "{}",
        leaf.said
    );
    let packed = remote.packed()?;
    assert_eq!(packed.ran("DistltoDwp"), ["app/app.dwp"], "{packed}");
    let (said, tests) = remote.tested()?;
    assert_eq!(said.matches("PASSED").count(), 3, "{said}");
    assert!(!tests.ran("TestRunner").is_empty(), "{tests}");
    for (actions, kind) in [(&packed, "DistltoDwp"), (&tests, "TestRunner")] {
        let mut of = actions.0.iter().filter(|one| one.mnemonic == kind);
        assert!(of.all(|one| one.runner == "remote"), "{actions}");
    }
    let said = remote.undeclared()?;
    assert!(said.contains("'checksum/checksum.h' file not found"), "{said}");
    Ok(())
}

/// Nothing ran but this compilation, these backends, which are those whose slices differ, and the program's links.
fn ran(row: &Row, compiled: &str, backends: &[&str]) -> Result<()> {
    let backends: BTreeSet<String> =
        backends.iter().map(|name| format!("app/app.thinlto/objects/{name}.cc.o.o")).collect();
    ensure!(row.had_to == backends, "after {} these slices differ: {:?}", row.after, row.had_to);
    let mut expected = BTreeSet::from([compiled, "app/app.thinlto/explain.txt", "app/app"]);
    expected.extend(backends.iter().map(String::as_str));
    ensure!(row.ran(true) == expected && row.ran(false).is_empty(), "after {}:\n{}", row.after, row.actions);
    Ok(())
}
