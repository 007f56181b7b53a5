//! Libraries that appear earlier on a search path than the one that was found.

use anyhow::Result;

use super::{Link, in_every_way};

fn library(link: &Link, directory: &str, value: u32) -> Result<()> {
    link.native("g", &format!("int g(void) {{ return {value}; }}\n"))?;
    link.archive(&format!("{directory}/libg.a"), "rcs", &["g.o"])
}

#[test]
fn a_library_in_an_earlier_directory() -> Result<()> {
    in_every_way("earlier", |link| {
        library(&link, "second", 2)?;
        std::fs::create_dir(link.path("first"))?;
        link.with(&["-Lfirst", "-Lsecond", "-lg", "-Wl,-u,g"]).changed_by(|link| library(link, "first", 1))
    })
}

#[test]
fn a_library_that_an_object_asks_for() -> Result<()> {
    in_every_way("dependent", |link| {
        library(&link, "second", 2)?;
        std::fs::create_dir(link.path("first"))?;
        link.native("h", "#pragma comment(lib, \"g\")\nint g(void); int h(void) { return g(); }\n")?;
        link.with(&["h.o", "-Lfirst", "-Lsecond"]).changed_by(|link| library(link, "first", 1))
    })
}

#[test]
fn a_library_that_a_script_asks_for() -> Result<()> {
    in_every_way("script-library", |link| {
        library(&link, "second", 2)?;
        std::fs::create_dir(link.path("first"))?;
        link.write("needs.ld", "INPUT(-lg)\n")?;
        link.with(&["needs.ld", "-Lfirst", "-Lsecond", "-Wl,-u,g"])
            .changed_by(|link| library(link, "first", 1))
    })
}

#[test]
fn a_script_in_an_earlier_directory() -> Result<()> {
    in_every_way("earlier-script", |link| {
        link.write("second/x.ld", "SECTIONS { one = 1; } INSERT AFTER .text;\n")?;
        std::fs::create_dir(link.path("first"))?;
        link.with(&["-Wl,-T,x.ld", "-Lfirst", "-Lsecond"])
            .changed_by(|link| link.write("first/x.ld", "SECTIONS { other = 1; } INSERT AFTER .text;\n"))
    })
}
