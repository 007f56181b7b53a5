//! Files that only the linker or the driver knows of: scripts, members of thin archives, configuration, response files,
//! files behind options that nobody knows.

use std::fs;
use std::os::unix::fs::symlink;

use anyhow::{Result, ensure};

use super::{Link, WAYS, in_every_way};

#[test]
fn a_file_that_a_linker_script_includes() -> Result<()> {
    in_every_way("include", |link| {
        link.write("part.ld", "one = 1;\n")?;
        link.write("whole.ld", "INCLUDE part.ld\n")?;
        link.with(&["whole.ld"]).changed_by(|link| link.write("part.ld", "other = 1;\n"))
    })
}

#[test]
fn a_script_that_is_found_along_the_search_path() -> Result<()> {
    in_every_way("script-by-name", |link| {
        link.write("scripts/x.ld", "SECTIONS { one = 1; } INSERT AFTER .text;\n")?;
        link.with(&["-Wl,-T,x.ld", "-Lscripts"])
            .changed_by(|link| link.write("scripts/x.ld", "SECTIONS { other = 1; } INSERT AFTER .text;\n"))
    })
}

#[test]
fn a_library_that_a_linker_script_names() -> Result<()> {
    in_every_way("script-names", |link| {
        link.native("g", "int g(void) { return 1; }\n")?;
        link.archive("libg.a", "rcs", &["g.o"])?;
        link.write("libscript.a", "GROUP ( libg.a )\n")?;
        link.with(&["-L.", "-lscript", "-Wl,-u,g"]).changed_by(|link| {
            link.native("g", "int g(void) { return 2; }\n")?;
            link.archive("libg.a", "rcs", &["g.o"])
        })
    })
}

#[test]
fn a_member_of_a_native_thin_archive() -> Result<()> {
    in_every_way("thin-member", |link| {
        link.native("g", "int g(void) { return 1; }\n")?;
        link.archive("libg.a", "rcsT", &["g.o"])?;
        link.with(&["libg.a", "-Wl,-u,g"]).changed_by(|link| link.native("g", "int g(void) { return 2; }\n"))
    })
}

#[test]
fn a_native_input_that_is_a_symbolic_link() -> Result<()> {
    in_every_way("symbolic-link", |link| {
        link.native("one", "int g(void) { return 1; }\n")?;
        link.native("two", "int g(void) { return 2; }\n")?;
        symlink("one.o", link.path("g.o"))?;
        link.with(&["g.o"]).changed_by(|link| {
            fs::remove_file(link.path("g.o"))?;
            Ok(symlink("two.o", link.path("g.o"))?)
        })
    })
}

/// The linker itself switches the link once it has read it, so that the file that is there after the link is not the one
/// that was linked.
#[test]
fn a_symbolic_link_that_is_switched_while_the_final_link_runs() -> Result<()> {
    in_every_way("switched", |link| {
        link.native("one", "int g(void) { return 1; }\n")?;
        link.native("two", "int g(void) { return 2; }\n")?;
        symlink("one.o", link.path("g.o"))?;
        link.script(
            "ld.lld",
            &format!(
                "'{}' \"$@\" || exit\ncase \" $* \" in *index-only*|*--help*) ;; \
                 *) [ ! -e switch ] || {{ ln -sf two.o g.o; rm switch; }} ;; esac\n",
                link.tool("ld.lld")?
            ),
        )?;
        link.write("switch", "")?;
        let path = format!("--ld-path={}", link.path("ld.lld").display());
        let mut link = link.with(&["g.o", &path]);
        let (first, _) = link.run("program")?;
        link.then(&first, |_| Ok(()))
    })
}

#[test]
fn a_configuration_file_of_the_driver() -> Result<()> {
    in_every_way("configuration", |link| {
        link.write("x.cfg", "-Wl,--defsym=one=1\n")?;
        let config = format!("--config={}", link.path("x.cfg").display());
        link.with(&[&config]).changed_by(|link| link.write("x.cfg", "-Wl,--defsym=other=1\n"))
    })
}

#[test]
fn a_file_that_a_configuration_file_includes() -> Result<()> {
    in_every_way("configuration-includes", |link| {
        link.write("x.cfg", "@x.inc\n")?;
        link.write("x.inc", "-Wl,--defsym=one=1\n")?;
        let config = format!("--config={}", link.path("x.cfg").display());
        link.with(&[&config]).changed_by(|link| link.write("x.inc", "-Wl,--defsym=other=1\n"))
    })
}

#[test]
fn a_configuration_file_that_appears() -> Result<()> {
    in_every_way("configuration-appears", |link| {
        fs::create_dir(link.path("system"))?;
        let system = format!("--config-system-dir={}", link.path("system").display());
        link.with(&[&system]).changed_by(|link| link.write("system/clang.cfg", "-Wl,--defsym=one=1\n"))
    })
}

#[test]
fn response_files_within_response_files() -> Result<()> {
    for (name, word) in [("nested", "@a.rsp"), ("for-linker", "-Wl,@a.rsp"), ("by-word", "-Xlinker")] {
        in_every_way(&format!("response-{name}"), |link| {
            let driver = name == "nested";
            link.write("a.rsp", "@b.rsp\n")?;
            let text = |symbol: &str| match driver {
                true => format!("-Wl,--defsym={symbol}=1\n"),
                false => format!("--defsym={symbol}=1\n"),
            };
            link.write("b.rsp", &text("one"))?;
            let words = if word == "-Xlinker" { vec![word, "@a.rsp"] } else { vec![word] };
            link.with(&words).changed_by(|link| link.write("b.rsp", &text("other")))
        })?;
    }
    Ok(())
}

/// Has `f.c` include the data of a file that its backend reads.
fn including(link: Link, data: &str) -> Result<Link> {
    let data_of = "__asm__(\".data\\n.globl data\\ndata: .incbin \\\"data.bin\\\"\\n.byte 0\\n.text\\n\");\n";
    link.write("f.c", &format!("{data_of}extern char data[]; int f(int n) {{ return data[0] + n; }}\n"))?;
    link.write("data.bin", data)?;
    link.lto("f.c")?;
    Ok(link)
}

#[test]
fn a_file_that_the_assembler_includes() -> Result<()> {
    in_every_way("assembler", |link| {
        including(link, "one")?.changed_by(|link| link.write("data.bin", "another"))
    })
}

#[test]
fn a_cache_gives_no_folder_the_data_of_another() -> Result<()> {
    let cache = Link::new("assembler-cache", WAYS[0])?.path("cache").display().to_string();
    for (name, data) in [("assembler-here", "here"), ("assembler-there", "there")] {
        let mut link = including(Link::new(name, WAYS[0])?, data)?;
        link.set("DISTLTO_CACHE", &cache);
        // The second time its compiler's reads are known.
        for _ in 0..2 {
            let (program, _) = link.run("program")?;
            ensure!(memmem(&program, data.as_bytes()), "the program of {name} has other data");
            fs::remove_file(link.path("program"))?;
        }
    }
    Ok(())
}

fn memmem(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_file_behind_an_option_of_llvm() -> Result<()> {
    in_every_way("workload", |link| {
        link.write("f.c", "int f(int n) { return n * 7; }\n")?;
        link.lto("f.c")?;
        link.write("work.json", "{\"main\": []}\n")?;
        link.with(&["-Wl,-mllvm,-thinlto-workload-def=work.json"])
            .changed_by(|link| link.write("work.json", "{\"main\": [\"f\"]}\n"))
    })
}

#[test]
fn files_that_options_of_the_linker_name() -> Result<()> {
    for (name, option, one, other) in [
        ("order", "--symbol-ordering-file=", "main\nf\n", "f\nmain\n"),
        ("versions", "--version-script=", "{ global: f; local: *; };\n", "{ global: main; local: *; };\n"),
        ("exports", "--dynamic-list=", "{ f; };\n", "{ main; };\n"),
        ("blocks", "--lto-basic-block-sections=", "v1\nf f\nc 0\n", "v1\nf other\nc 0\n"),
    ] {
        in_every_way(&format!("option-{name}"), |link| {
            link.write("list", one)?;
            let word = format!("-Wl,{option}list");
            link.with(&[&word]).changed_by(|link| link.write("list", other))
        })
        .map_err(|error| error.context(option))?;
    }
    Ok(())
}
