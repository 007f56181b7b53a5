//! `distlto_link` and `distlto_link_test` of targets that use the cc rules as projects do: all attributes, shared libraries,
//! directories of sources, split debug information.
//!
//! Only the newer Bazel has cc rules without a network. One server builds everything, as its start is slow.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use distlto_tests::bazel::Version;
use distlto_tests::bazel::same::as_one_lld;
use distlto_tests::bazel::workspace::Workspace;
use distlto_tests::run::{capture, succeed};
use distlto_tests::toolchain::repository;

#[test]
fn targets_of_the_cc_rules() -> Result<()> {
    let mut workspace = Workspace::create(Version::Seven, "cc")?;
    workspace.copy(&repository().join("tests/data/bazel-cc"))?;
    workspace.options.push("--repo_env=CC=clang-22".to_owned());
    unoptimised(&workspace)?;
    workspace.options.push("--compilation_mode=opt".to_owned());
    every_attribute_is_known(&workspace)?;
    attributes_are_taken_over(&workspace)?;
    tests_run_as_before(&workspace)?;
    programs_are_those_of_one_lld(&workspace)?;
    tests_share_backends(&workspace)?;
    what_cannot_be_linked(&workspace)?;
    debug_information_is_split(&workspace)
}

/// The answer to a query.
fn query(workspace: &Workspace, words: &[&str]) -> Result<String> {
    // The options that choose between WORKSPACE and modules.
    let common =
        workspace.options.iter().filter(|option| option.contains("workspace") || option.contains("bzlmod"));
    let output = succeed(workspace.bazel("query")?.args(common).args(words))?;
    Ok(String::from_utf8(output.stdout)?)
}

/// The values of all `name="..."` or `value="..."` of some XML.
fn quoted<'x>(xml: &'x str, key: &str) -> impl Iterator<Item = &'x str> {
    let mark = format!("{key}=\"");
    xml.split_whitespace().filter_map(move |word| word.strip_prefix(mark.as_str())?.split('"').next())
}

/// The lists of `distlto_link` cover every attribute of Bazel's cc_binary and cc_test.
fn every_attribute_is_known(workspace: &Workspace) -> Result<()> {
    let xml = |query_of: &str| query(workspace, &["--output=xml", "--xml:default_values", query_of]);
    let theirs = xml("kind('cc_(binary|test) rule', //pkg:all)")?;
    // A build file cannot set attributes with other names, nor these two, which are the parts of a licence.
    let settable = |name: &&str| {
        name.starts_with(|first: char| first.is_ascii_lowercase())
            && !["exceptions", "license-types"].contains(name)
    };
    let theirs: BTreeSet<&str> = quoted(&theirs, "name").filter(settable).collect();
    let known = xml("//lists:known")?;
    let known: BTreeSet<&str> = quoted(&known, "value").filter(|value| !value.contains('/')).collect();
    ensure!(theirs.len() > 40, "cc_binary and cc_test have few attributes: {theirs:?}");
    let unknown: Vec<_> = theirs.difference(&known).collect();
    ensure!(
        unknown.is_empty(),
        "say in rules/bazel/private/forward.bzl how these are taken over: {unknown:?}"
    );
    Ok(())
}

/// The rule's own target has the attributes by which Bazel runs it.
fn attributes_are_taken_over(workspace: &Workspace) -> Result<()> {
    let found = "attr(tags, tagged, attr(timeout, long, attr(flaky, 1, attr(shard_count, 2, attr(size, small, \
                 attr(args, words, attr(testonly, 1, //pkg:all)))))))";
    let found = query(workspace, &[found])?;
    ensure!(found.split_whitespace().eq(["//pkg:plain_test", "//pkg:plain_thinlto_test"]), "{found}");
    // Which names its binary with the package.
    let found = query(workspace, &["attr(size, large, //pkg:all)"])?;
    ensure!(found.split_whitespace().eq(["//pkg:short_test", "//pkg:short_thinlto_test"]), "{found}");
    Ok(())
}

/// Arguments, variables and files reach the tests, and constructors of unneeded libraries run, as in the cc_test itself.
fn tests_run_as_before(workspace: &Workspace) -> Result<()> {
    let targets =
        ["//pkg:plain_test", "//pkg:plain_thinlto_test", "//pkg:short_thinlto_test", "//other:repeated_test"];
    let mut test = workspace.bazel("test")?;
    test.args(&workspace.options).args(targets).arg("--test_output=errors").env("INHERITED", "yes");
    let said = String::from_utf8(succeed(&mut test)?.stdout)?;
    ensure!(said.matches("PASSED").count() == targets.len(), "{said}");
    let mut test = workspace.bazel("test")?;
    test.args(&workspace.options)
        .args(["//pkg:plain_thinlto_test", "--test_output=errors"])
        .env_remove("INHERITED");
    let output = capture(&mut test)?;
    let said = String::from_utf8(output.stdout)?;
    ensure!(!output.status.success() && said.contains("inherited"), "{said}");
    Ok(())
}

/// Directories of sources, shared libraries and objects with machine code beside bitcode.
fn programs_are_those_of_one_lld(workspace: &Workspace) -> Result<()> {
    // What it prints, and how many modules it has.
    let programs = [("on_tree", 3), ("of_tree", 3), ("on_shared", 1), ("fat", 2)];
    for (name, modules) in programs {
        let (plain, ours) = (format!("//pkg:{name}"), format!("//pkg:{name}_thinlto"));
        workspace.build(&[&plain, &ours])?;
        let said = workspace.say(&format!("pkg/{name}"))?;
        ensure!(workspace.say(&format!("pkg/{name}_thinlto"))? == said, "{name}");
        ensure!(workspace.run(&ours)? == said, "{name}");
        let same = as_one_lld(workspace, &ours, &[])?;
        ensure!(same.identical && (same.equal, same.objects) == (modules, modules), "{name}: {same}");
    }
    workspace.build(&["//pkg:shared_thinlto"])?;
    let same = as_one_lld(workspace, "//pkg:shared_thinlto", &[])?;
    ensure!(same.identical, "{same}");
    // The library is that of the program's own configuration, and not that of `on_shared`.
    let program = fs::read(workspace.output("pkg/on_shared_thinlto"))?;
    ensure!(!contains(&program, b"on_shared.runfiles"), "the program looks into the runfiles of another");
    Ok(())
}

/// Two tests have one backend for each object of their libraries, and the linker compiles their own sources.
fn tests_share_backends(workspace: &Workspace) -> Result<()> {
    let tests = ["//pkg:one_shared_test", "//pkg:other_shared_test"];
    let (said, actions) = workspace.test(&tests)?;
    ensure!(said.matches("PASSED").count() == tests.len(), "{said}");
    let backends: BTreeSet<_> =
        actions.ran("DistltoOpt").into_iter().filter_map(|path| path.rsplit('/').next()).collect();
    ensure!(backends == ["always.o.separate.o", "registry.o.separate.o"].into(), "{actions}");
    ensure!(actions.ran("DistltoOpt").len() == backends.len(), "{actions}");
    ensure!(
        actions.ran("DistltoIndex").is_empty() && actions.ran("DistltoLink").len() == tests.len(),
        "{actions}"
    );
    Ok(())
}

/// A library is no program, and arguments are taken over from the same package alone.
fn what_cannot_be_linked(workspace: &Workspace) -> Result<()> {
    for (target, sentence) in [
        ("//pkg:library_thinlto", "//pkg:registry is no cc_binary, cc_test or cc_shared_library"),
        ("//other:elsewhere_test", "//pkg:plain_test has `args`"),
    ] {
        let said = workspace.fail(&[target])?;
        ensure!(said.contains(sentence), "{said}");
    }
    Ok(())
}

/// By the attribute and by the option, in each mode; the files have the names of a cc_binary.
fn debug_information_is_split(workspace: &Workspace) -> Result<()> {
    let dwp =
        |name: &str| Ok::<_, anyhow::Error>(fs::read(workspace.output(&format!("pkg/{name}_thinlto.dwp")))?);
    workspace.build(&[
        "//pkg:split_thinlto.dwp",
        "//pkg:on_tree_thinlto.dwp",
        "//pkg:on_tree_thinlto.stripped",
    ])?;
    ensure!(contains(&dwp("split")?, b".debug_cu_index"), "no debug information is packed");
    ensure!(dwp("on_tree")?.is_empty(), "debug information is split without being asked for");
    for options in [
        &["--fission=yes"][..],
        &["--fission=dbg", "--compilation_mode=dbg"],
        &["--fission=yes", "--compilation_mode=fastbuild"],
    ] {
        let names =
            ["on_tree_thinlto", "on_tree_thinlto.dwp", "on_tree_thinlto.stripped", "shared_thinlto.dwp"];
        let targets = names.map(|name| format!("//pkg:{name}"));
        let targets = targets.iter().map(String::as_str);
        workspace.build(&targets.chain(options.iter().copied()).collect::<Vec<_>>())?;
        let packed = dwp("on_tree")?;
        // The functions of all modules, whether known before the link or not.
        for word in [&b".debug_cu_index"[..], b"one", b"two", b"tree_main.cc"] {
            ensure!(contains(&packed, word), "{options:?}: no {}", String::from_utf8_lossy(word));
        }
        stripped(workspace, &workspace.output("pkg/on_tree_thinlto.stripped"))
            .with_context(|| format!("{options:?}"))?;
    }
    Ok(())
}

/// A stripped program runs, and has less than the program.
fn stripped(workspace: &Workspace, path: &Path) -> Result<()> {
    let size = |path: &Path| Ok::<_, anyhow::Error>(fs::metadata(path)?.len());
    ensure!(size(path)? < size(&path.with_extension(""))?, "nothing is stripped");
    ensure!(workspace.say("pkg/on_tree_thinlto.stripped")? == "3\n", "it prints something else");
    Ok(())
}

/// Bazel's default mode has no optimisation; the thin link says so, once.
fn unoptimised(workspace: &Workspace) -> Result<()> {
    for (options, count) in [(&[][..], 1), (&["--compilation_mode=opt"], 0)] {
        let output = workspace.try_build(&[&["//pkg:on_tree_thinlto"], options].concat())?;
        let said = String::from_utf8(output.stderr)?;
        ensure!(output.status.success(), "{said}");
        ensure!(said.matches("-O0 makes every function noinline").count() == count, "{options:?}: {said}");
    }
    Ok(())
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
