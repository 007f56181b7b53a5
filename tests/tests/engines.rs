//! The engines that other tests use do what these expect of them: they run a compiler, on declared inputs alone, and
//! cache what came of it. By raw stubs, without any client of distlto.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, anyhow};
use distlto_reapi_server::Digest;
use distlto_reapi_server::plain::{Plain, Wanted};
use distlto_tests::engine;
use distlto_tests::run::succeed;
use distlto_tests::toolchain::{NEWEST, Toolchain};

const SOURCE: &[u8] = b"int twice(int x) { return 2 * x; }\n";

#[test]
fn a_compiler_runs_once_and_makes_what_it_makes_here() -> Result<()> {
    let url = engine::url()?;
    let compiler = Toolchain { version: NEWEST }.tool("clang")?;
    let compiler = compiler.to_str().context("a compiler's path is text")?;
    let words = [compiler, "-c", "-O2", "twice.c", "-o", "out/twice.o"];
    // An action that no run before this one has left in a cache.
    let salt = std::process::id().to_le_bytes();
    let wanted = Wanted {
        words: &words,
        inputs: &[("twice.c", SOURCE)],
        outputs: &["out/twice.o"],
        environment: &[("PATH", "/usr/bin:/bin")],
        salt: &salt,
        ..Wanted::default()
    };
    let client = Plain::new(url)?;
    let first = client.run(&wanted).with_context(|| format!("on {url}"))?;
    let result = first.result.as_ref().with_context(|| format!("no result in {first:?}"))?;
    let said = client.said(result)?;
    assert_eq!((result.exit_code, first.cached_result), (0, false), "{said:?}");
    let object = result.output_files.first().and_then(|file| file.digest.clone());
    let object: Digest = object.ok_or_else(|| anyhow!("no object in {result:?}"))?;

    let here = tempfile::tempdir()?;
    fs::write(here.path().join("twice.c"), SOURCE)?;
    fs::create_dir(here.path().join("out"))?;
    succeed(Command::new(compiler).args(&words[1..]).current_dir(here.path()))?;
    assert_eq!(client.download(&object)?, fs::read(here.path().join("out/twice.o"))?);

    assert!(client.run(&wanted)?.cached_result, "the second one is run again");
    Ok(())
}

#[test]
fn an_action_sees_its_inputs_alone() -> Result<()> {
    let client = Plain::new(engine::url()?)?;
    let words = ["sh", "-c", "ls -A; ls -d /*; env | grep -c SECRET; exit 3"];
    let environment = [("PATH", "/usr/bin:/bin")];
    let inputs: [(&str, &[u8]); 2] = [("a", b"1"), ("b", b"2")];
    let wanted = Wanted { words: &words, inputs: &inputs, environment: &environment, ..Wanted::default() };
    let result = client.run(&wanted)?.result.context("no result")?;
    let (out, error) = client.said(&result)?;
    assert_eq!(result.exit_code, 3, "{error}");
    assert!(out.starts_with("a\nb\n") && !out.contains("/etc\n") && out.contains("/usr\n"), "{out}");
    // Failures are not kept for others.
    assert!(client.cached(&client.describe(&wanted)?).is_err());
    Ok(())
}
