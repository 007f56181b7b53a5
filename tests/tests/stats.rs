//! What `distlto stats` counts, the line at the end of a build, and links that have to be served.

use std::process::Command;

use anyhow::{Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::{capture, fail, succeed};
use distlto_tests::toolchain::Toolchain;
use serde_json::Value;

/// Two programs of two modules, and one of full LTO.
const MAKEFILE: &str = "
all: one two
one two: %: main.o b.o
\t$(CLANG) -fuse-ld=lld main.o b.o -o $@
full: full.o
\t$(CLANG) -fuse-ld=lld full.o -o $@
foreign: main.o b.o
\t$(CLANG) -fuse-ld=bfd -flto=thin main.o b.o -o $@
alone: main.o b.o
\t$(CLANG) -fuse-ld=lld -Wl,--reproduce=alone.tar main.o b.o -o $@
%.o: %.c
\t$(CLANG) -O2 -flto=thin -c $< -o $@
full.o: main.c
\t$(CLANG) -O2 -flto -Db=main_b -c $< -o $@
";

const MAIN: &str = "int b(int x);\nint main(void) { return 0; }\nint main_b(int x) { return x; }\n";

fn project(name: &str) -> Result<Folder> {
    let toolchain = Toolchain::from_env()?;
    let folder = Folder::create(toolchain, &format!("stats/{name}"))?;
    folder.write("Makefile", MAKEFILE.replace("$(CLANG)", &folder.expand("%clang", "")?))?;
    folder.write("main.c", MAIN)?;
    folder.write("b.c", "int b(int x) { return x + 4; }\n")?;
    Ok(folder)
}

fn ask(folder: &Folder, words: &[&str]) -> Result<Command> {
    let mut command = Command::new(distlto::binary()?);
    command.args(words).current_dir(&folder.path);
    Ok(command)
}

fn stats(folder: &Folder, words: &[&str]) -> Result<Value> {
    let words = [&["stats", "--json"], words].concat();
    Ok(serde_json::from_slice(&succeed(&mut ask(folder, &words)?)?.stdout)?)
}

/// The line at the end of a build.
fn last_line(folder: &Folder, words: &[&str]) -> Result<String> {
    let output = succeed(&mut ask(folder, words)?)?;
    let text = String::from_utf8(output.stderr)?;
    Ok(text.lines().last().unwrap_or_default().to_owned())
}

#[test]
fn links_are_counted_over_all_builds() -> Result<()> {
    let folder = project("counted")?;
    let first = last_line(&folder, &["make"])?;
    ensure!(
        first.starts_with("distlto: 2 links in ") && first.contains(": 2 backends ran, 2 objects found (")
    );
    folder.write("b.c", "int b(int x) { return x + 5; }\n")?;
    ensure!(last_line(&folder, &["make", "one"])?.contains("distlto: 1 link in "));
    // No link, no line; a launcher of one link is silent.
    ensure!(last_line(&folder, &["make", "one"])?.is_empty());
    let line = folder.expand("%clang -fuse-ld=lld main.o b.o -o one", "")?;
    let words: Vec<&str> = line.split(' ').collect();
    for times in 0..3 {
        let output = succeed(&mut ask(&folder, &[&["env"], &words[..]].concat())?)?;
        ensure!(output.stderr.is_empty(), "{times}: {output:?}");
    }
    let found = stats(&folder, &[])?;
    ensure!(found["links"] == 6 && found["unchanged"] == 0 && found["ran"] == 3, "{found}");
    ensure!(found["kept"] == 9 && found["spared_us"].as_u64() > Some(0), "{found}");
    let elsewhere = folder.write("other/x", "")?;
    let elsewhere = elsewhere.parent().map(|path| path.display().to_string()).unwrap_or_default();
    ensure!(stats(&folder, &[&elsewhere])?["links"] == 0 && stats(&folder, &["."])?["links"] == 6);
    let table = String::from_utf8(succeed(&mut ask(&folder, &["stats", "--zero"])?)?.stdout)?;
    ensure!(
        table.starts_with("links ") && table.contains("backends that ran here             3\n"),
        "{table}"
    );
    ensure!(stats(&folder, &[])?["links"] == 0);
    Ok(())
}

#[test]
fn a_link_with_bitcode_that_is_not_served_says_so_and_can_be_refused() -> Result<()> {
    let folder = project("required")?;
    for (target, why) in [
        ("full", "its bitcode is of full LTO (compile with -flto=thin)"),
        (
            "foreign",
            "/usr/bin/x86_64-linux-gnu-ld.bfd cannot ask for objects; link with -fuse-ld=lld, lld 15 or later",
        ),
        ("alone", "--reproduce asks for output that a linker writes only when it is alone"),
    ] {
        let line = last_line(&folder, &["make", target])?;
        ensure!(line == format!("distlto: 1 link passed through: {why}"), "{line}");
        ensure!(stats(&folder, &["--zero"])?["passed_through"][why] == 1);
        // The earlier program stays, so that the next build links again.
        let earlier = std::fs::read(folder.path.join(target))?;
        folder.write("main.c", MAIN.replace("return 0", "return 7"))?;
        let mut make = ask(&folder, &["make", target])?;
        let (code, text) = fail(make.env("DISTLTO_REQUIRE", "1"))?;
        let error = format!("{target} does not ask for its objects: {why}\n");
        ensure!(code == 1 && text.contains(&error), "{code}: {text}");
        ensure!(text.contains("help: link it without --require"), "{text}");
        ensure!(stats(&folder, &["--zero"])?["failed"] == 1);
        // The link itself fails, so that its build does not go on.
        let script = format!("make {target} || echo refused");
        let output = capture(ask(&folder, &["sh", "-c", &script])?.env("DISTLTO_REQUIRE", "1"))?;
        ensure!(String::from_utf8_lossy(&output.stdout).contains("refused"), "{output:?}");
        stats(&folder, &["--zero"])?;
        ensure!(std::fs::read(folder.path.join(target))? == earlier, "{target} is another file");
        std::fs::remove_file(folder.path.join(target))?;
        let (code, _) = fail(&mut make)?;
        ensure!(code == 1 && !folder.path.join(target).exists(), "{target} is there, exit code {code}");
        stats(&folder, &["--zero"])?;
        folder.write("main.c", MAIN)?;
    }
    let output = capture(ask(&folder, &["make", "one"])?.env("DISTLTO_REQUIRE", "1"))?;
    ensure!(output.status.success(), "{output:?}");
    Ok(())
}

#[test]
fn a_build_of_o0_modules_says_so_once() -> Result<()> {
    let folder = project("unoptimised")?;
    let makefile = std::fs::read_to_string(folder.path.join("Makefile"))?;
    folder.write("Makefile", makefile.replace("-O2 -flto=thin", "-O0 -flto=thin"))?;
    // The second link finds the objects of the first one, and reads no module.
    let line = last_line(&folder, &["make"])?;
    ensure!(line.contains("; 1 link of -O0 modules, which import nothing"), "{line}");
    let found = stats(&folder, &[])?;
    ensure!(
        found["unoptimised"] == 1 && found["passed_through"].as_object().is_some_and(|all| all.is_empty())
    );
    Ok(())
}
