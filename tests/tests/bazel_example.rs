//! `examples/bazel` in real Bazel, as its README says: by a WORKSPACE in the older version, by modules in the newer one.

use anyhow::Result;
use distlto_tests::bazel::Version;
use distlto_tests::bazel::workspace::Workspace;
use distlto_tests::toolchain::repository;

#[test]
fn by_a_workspace() -> Result<()> {
    let example = copy(Version::Four)?;
    example.edit("WORKSPACE", "../../rules/bazel", &rules())?;
    check(&example)
}

#[test]
fn by_modules() -> Result<()> {
    let example = copy(Version::Seven)?.by_modules();
    example.edit("MODULE.bazel", "../../rules/bazel", &rules())?;
    check(&example)?;
    // Needs cc rules, which the older version fetches.
    let compiler = "--repo_env=CC=clang-22";
    let actions = example.build(&["//cc:hello", "//cc:hello_thinlto", compiler])?;
    // hello.cc and greeting.cc, which are compiled once for each of the two.
    assert_eq!(actions.ran("DistltoOpt").len(), 2, "{actions}");
    assert_eq!(example.say("cc/hello")?, example.say("cc/hello_thinlto")?);
    let said = example.test(&["//cc:greeting_thinlto_test", compiler])?;
    assert!(said.contains("//cc:greeting_thinlto_test") && said.contains("PASSED"), "{said}");
    Ok(())
}

fn copy(version: Version) -> Result<Workspace> {
    let workspace = Workspace::create(version, "example")?;
    workspace.copy(&repository().join("examples/bazel"))?;
    Ok(workspace)
}

fn rules() -> String {
    repository().join("rules/bazel").display().to_string()
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
    let said = example.test(&["//tests/..."])?;
    assert_eq!(said.matches("PASSED").count(), 3, "{said}");
    Ok(())
}
