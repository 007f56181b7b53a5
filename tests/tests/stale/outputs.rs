//! Files that a link writes beside the program: made again when they are gone.

use std::fs;
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
