//! Files that a link writes beside the program: made again when they are gone.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use distlto_tests::run::succeed;

use super::{Link, WAYS, in_every_way};

#[test]
fn outputs_beside_the_program_are_made_again() -> Result<()> {
    for (name, option, file) in [
        ("map", "-Map=side", "side"),
        ("dependencies", "--dependency-file=side", "side"),
        ("why", "--why-extract=side", "side"),
        ("archives", "--print-archive-stats=side", "side"),
        ("reproduce", "--reproduce=side", "side"),
        ("trace", "--time-trace", "program.time-trace"),
        ("trace-file", "--time-trace=side", "side"),
    ] {
        in_every_way(&format!("output-{name}"), |link| {
            let word = format!("-Wl,{option}");
            let link = link.with(&[&word]);
            link.run("program")?;
            ensure!(link.path(file).is_file(), "{option} writes no {file}: the case shows nothing");
            fs::remove_file(link.path(file))?;
            link.run("program")?;
            ensure!(link.path(file).is_file(), "{file} of {option} is not made again");
            Ok(())
        })
        .map_err(|error| error.context(option))?;
    }
    Ok(())
}

#[test]
fn split_debug_information_is_made_again() -> Result<()> {
    in_every_way("output-split", |link| {
        for source in ["main.c", "f.c"] {
            link.compile(source, &["-flto=thin", "-g"])?;
        }
        let link = link.with(&["-g", "-gsplit-dwarf", "-Wl,--plugin-opt=dwo_dir=split"]);
        link.run("program")?;
        for change in [|place: &Path| fs::remove_file(place), |place: &Path| fs::write(place, "")] {
            let place = link.path("split/f.o.dwo");
            let before = fs::read(&place)?;
            change(&place)?;
            link.run("program")?;
            ensure!(fs::read(&place)? == before, "it is not made again");
        }
        Ok(())
    })
}

/// As the linker's own backends do in each link.
#[test]
fn a_warning_of_a_backend_is_printed_by_each_link() -> Result<()> {
    let link = Link::new("warning", WAYS[0])?;
    let text =
        "int f(int n) { volatile char a[9999]; for (int i = 0; i < n; i++) a[i] = i; return a[n / 2]; }\n";
    link.write("f.c", text)?;
    link.compile("f.c", &["-flto=thin", "-Wframe-larger-than=100"])?;
    for round in ["the first", "one without a change", "one after another edit"] {
        let ended = succeed(&mut link.command("program")?)?;
        let said = String::from_utf8_lossy(&ended.stderr);
        ensure!(said.matches("stack frame size").count() == 1, "in {round}: {said}");
        let was_made = said.contains("opt f.o");
        ensure!(said.contains("nothing to do") == (round == "one without a change"), "in {round}: {said}");
        ensure!(was_made == (round == "the first"), "in {round}: {said}");
        if round == "one without a change" {
            link.write("main.c", "int f(int); int main(int n, char **v) { return f(n) + 1; }\n")?;
            link.lto("main.c")?;
        }
    }
    Ok(())
}

/// A user's dependency file names what the linker's would in a link of its own.
#[test]
fn a_dependency_file_names_what_one_linker_reads() -> Result<()> {
    let link = Link::new("own-dependencies", WAYS[0])?;
    link.write("g.c", "int g(void) { return 1; }\n")?;
    link.lto("g.c")?;
    link.archive("libg.a", "rcs", &["g.o"])?;
    let link = link.with(&["libg.a", "-Wl,-u,g", "-Wl,--dependency-file=program.d"]);
    link.run("program")?;
    let ours = fs::read_to_string(link.path("program.d"))?;
    let command = link.command("program")?;
    let words: Vec<_> = command.get_args().skip_while(|word| *word != "--").skip(1).collect();
    let mut plain = Command::new(words[0]);
    succeed(plain.args(&words[1..]).current_dir(&link.folder.path))?;
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(|line| line.trim_end_matches(" \\").to_owned()).collect();
        lines.sort();
        lines
    };
    let theirs = fs::read_to_string(link.path("program.d"))?;
    ensure!(sorted(&ours) == sorted(&theirs), "ours:\n{ours}\nlld's:\n{theirs}");
    Ok(())
}
