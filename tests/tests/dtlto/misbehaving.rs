//! Compilers that fail, in any of the ways they do: the link fails, and what is said names the module and the command.
//!
//! lld by itself takes an empty object for a module without code; clang writes one and exits 0 (LLVM issue 75441).

use anyhow::{Result, ensure};
use distlto_tests::run::{fail, succeed};

use super::small::Small;

/// Links with a compiler that does `body` for module `a.o`; gives what is said.
fn refused(name: &str, body: &str) -> Result<String> {
    let small = Small::create(name)?;
    small.compiler(&format!("case \"$module\" in *'a.o at '*) {body} ;; esac"))?;
    let (_, said) = fail(&mut small.link_with_script(&[])?)?;
    ensure!(said.contains("liba.a(a.o at "), "{name}: no module is named:\n{said}");
    ensure!(said.contains("distributor execution failed"), "{name}: the linker did not fail:\n{said}");
    let repeat = said.lines().find(|line| line.trim_start().starts_with("repeat: cd "));
    let object = repeat.is_some_and(|line| line.contains(".native.o") && !line.contains(".distlto-tmp"));
    ensure!(object, "{name}: no command to repeat it:\n{said}");
    let left = small.beside_output()?;
    ensure!(left.is_empty(), "{name}: beside the output are {left:?}");
    succeed(&mut small.link(&[])?)?;
    ensure!(small.say()? == "11\n", "{name}: the next link is wrong");
    Ok(said)
}

fn expect(name: &str, body: &str, text: &str) -> Result<()> {
    let said = refused(name, body)?;
    ensure!(said.contains(text), "{name}: expected `{text}` in\n{said}");
    Ok(())
}

#[test]
fn an_empty_object() -> Result<()> {
    expect("empty", ": > \"$out\"; exit 0", "wrote an empty")
}

#[test]
fn no_object() -> Result<()> {
    expect("nothing", "exit 0", "did not write")
}

#[test]
fn a_truncated_object() -> Result<()> {
    expect(
        "truncated",
        "\"$clang\" \"$@\"; head -c 300 \"$out\" > cut; cat cut > \"$out\"; exit 0",
        "truncated",
    )
}

#[test]
fn an_object_for_another_machine() -> Result<()> {
    let body = "echo 'int x;' | \"$clang\" --target=aarch64-linux-gnu -c -x c - -o \"$out\"; exit 0";
    expect("foreign", body, "aarch64")
}

#[test]
fn bitcode_in_place_of_an_object() -> Result<()> {
    expect("bitcode", "cat \"$module\" > \"$out\"; exit 0", "bitcode")
}

#[test]
fn an_error_with_exit_code_0() -> Result<()> {
    let text = "Error running ThinLTO backend: no";
    expect("says-error", &format!("\"$clang\" \"$@\"; echo '{text}' >&2; exit 0"), text)
}

#[test]
fn an_exit_code() -> Result<()> {
    expect("exit-code", "echo 'what the compiler says' >&2; exit 3", "what the compiler says")
}

#[test]
fn a_signal() -> Result<()> {
    expect("signal", "kill -KILL $$", "SIGKILL")
}

/// Of megabytes of output the beginning and the end are shown.
#[test]
fn a_flood() -> Result<()> {
    let said =
        refused("flood", "echo the first; yes line | head -c 20000000 >&2; echo the last >&2; exit 1")?;
    ensure!(
        said.len() < 2_000_000 && said.contains("omitted") && said.contains("the last"),
        "{}",
        said.len()
    );
    Ok(())
}

#[test]
fn a_compiler_that_cannot_be_started() -> Result<()> {
    let small = Small::create("no-compiler")?;
    let mut link = small.link(&[])?;
    link.arg("-Wl,--thinlto-remote-compiler=/no/such/clang");
    let (_, said) = fail(&mut link)?;
    ensure!(said.contains("cannot run /no/such/clang") && said.contains("main.o"), "{said}");
    Ok(())
}

/// lld names no compiler unless it is told one.
#[test]
fn a_linker_that_names_no_compiler() -> Result<()> {
    let small = Small::create("empty-compiler")?;
    let distributor = distlto_tests::distlto::distributor()?.display();
    let line = format!("%lld --thinlto-distributor={distributor} -e main main.o liba.a -o out/program");
    let (_, said) = fail(&mut small.folder.command(&line, "")?)?;
    ensure!(said.contains("--thinlto-remote-compiler="), "no remedy is named:\n{said}");
    Ok(())
}

/// Without the option the first failure ends the run; with it every module is compiled and every failure told.
#[test]
fn keep_going_tells_all_failures() -> Result<()> {
    let small = Small::create("keep-going")?;
    small.compiler("echo \"$module\" >> ran; case \"$module\" in *main.o) ;; *) exit 1 ;; esac")?;
    let (_, said) = fail(&mut small.link_with_script(&["--keep-going,-j,1"])?)?;
    let ran = std::fs::read_to_string(small.path("ran"))?;
    ensure!(ran.lines().count() == 3, "compiled were:\n{ran}");
    let repeated = said.lines().filter(|line| line.trim_start().starts_with("repeat: ")).count();
    ensure!(repeated == 2 && said.contains("2 of 3 backends failed"), "{said}");
    std::fs::remove_file(small.path("ran"))?;
    small.compiler("echo \"$module\" >> ran; exit 1")?;
    let (_, said) = fail(&mut small.link_with_script(&["-j,1"])?)?;
    let ran = std::fs::read_to_string(small.path("ran"))?;
    ensure!(ran.lines().count() == 1 && said.contains("2 not started"), "compiled were:\n{ran}\n{said}");
    Ok(())
}
