//! What a linker is called, reads, writes and names.

use std::fs;
use std::process::Command;

use anyhow::{Result, ensure};
use distlto_tests::distlto::binary;
use distlto_tests::run::succeed;
use distlto_tests::toolchain::system_tool;

use super::Pair;

#[test]
fn the_linker_may_be_called_ld() -> Result<()> {
    let pair = Pair::create("called-ld")?;
    for (name, make) in [("linked", "ln -s %lld linked/ld"), ("copied", "cp -L %lld copied/ld")] {
        pair.both(&format!("mkdir {name}"))?;
        pair.both(make)?;
        pair.same_program(&format!(
            "$link %clang -O2 -flto=thin --ld-path=$PWD/{name}/ld a.o b.o -o P && rm -r {name}"
        ))?;
    }
    Ok(())
}

#[test]
fn gcc_links_by_lld() -> Result<()> {
    let pair = Pair::create("gcc")?;
    system_tool("gcc")?;
    pair.both("mkdir tools")?;
    pair.both("ln -s %lld tools/ld.lld")?;
    pair.same_program("$link gcc -fuse-ld=lld -B tools a.o b.o -o P")?;
    pair.same_program("$link gcc -fuse-ld=lld -B tools a.o b.o -static -o P")?;
    Ok(())
}

/// Starts `LINKER` as a linker that loads no library of ours; of its options it says what that would say.
const STATIC: &str = r#"
#include <stdlib.h>
#include <unistd.h>
__attribute__((used)) static const char options[] = "--thinlto-emit-index-files --thinlto-distributor=";
int main(int count, char **words) {
  unsetenv("LD_PRELOAD");
  execv(LINKER, words);
  return 1;
}
"#;

#[test]
fn a_static_linker_gets_a_distributor() -> Result<()> {
    let pair = Pair::with_dtlto("static")?;
    let linker = pair.plain.toolchain.tool("ld.lld")?;
    pair.write("static.c", &format!("#define LINKER \"{}\"\n{STATIC}", linker.display()))?;
    pair.both("mkdir static")?;
    pair.both("%clang -static static.c -o static/ld.lld")?;
    let words = "%clang -O2 -flto=thin --ld-path=$PWD/static/ld.lld a.o b.o -o P";
    let ended = pair.same(&format!("$link {words} && ./P"))?;
    ensure!(ended.code == Some(7), "{ended:?}");
    // With -vv a distributor prints commands.
    let (_, output) =
        pair.run(&pair.served, &format!("$link {words}"), &format!("{} link -vv --", binary()?.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && said.matches("-fthinlto-index=").count() == 2, "{said}");
    // It cannot be asked what it would do, and does nothing.
    pair.both("rm P")?;
    let (_, output) = pair.run(
        &pair.served,
        &format!("$link {words}"),
        &format!("{} link --dry-run --", binary()?.display()),
    )?;
    ensure!(output.status.success() && !pair.served.path.join("P").exists(), "{output:?}");
    Ok(())
}

/// Bitcode that no word of the line names.
#[test]
fn a_script_may_name_an_archive() -> Result<()> {
    let pair = Pair::create("group")?;
    pair.both("mkdir lib")?;
    pair.both("%ar rcs lib/libparts.a b.o")?;
    pair.write("lib/libgroup.so", "GROUP ( libparts.a )\n")?;
    pair.write("input.ld", "INPUT ( lib/libparts.a )\n")?;
    for words in
        ["a.o -Llib -lgroup", "a.o input.ld", "-nostartfiles -nostdlib -Wl,-e,main a.o lib/libgroup.so"]
    {
        let ended = pair.same(&format!("$link %clang -O2 -flto=thin -fuse-ld=lld {words} -o P"))?;
        ensure!(ended.code == Some(0), "{words}: {ended:?}");
        pair.asked()?;
    }
    Ok(())
}

#[test]
fn a_script_may_name_the_output() -> Result<()> {
    let pair = Pair::create("output")?;
    pair.write("named.ld", "OUTPUT(named)\n")?;
    let script = "$link %lld -shared a.o b.o named.ld";
    for edit in ["", "x + 5", "x + 6"] {
        if !edit.is_empty() {
            pair.write("b.c", &format!("int b(int x) {{ return {edit}; }}\n"))?;
            pair.both("%clang -O2 -flto=thin -c b.c")?;
        }
        let ended = pair.same(script)?;
        ensure!(ended.code == Some(0) && pair.served.path.join("named").exists(), "{ended:?}");
    }
    // It is made again when it is gone.
    pair.both("rm named")?;
    pair.same(script)?;
    ensure!(pair.served.path.join("named").exists());
    Ok(())
}

#[test]
fn an_output_may_have_a_long_name() -> Result<()> {
    let pair = Pair::create("long-name")?;
    // 255 bytes is what Linux takes, and lld adds to the name while it writes.
    for length in [230, 231, 240, 244, 245, 250, 255, 256] {
        let name = "p".repeat(length);
        pair.same(&format!("$link %clang -O2 -flto=thin -fuse-ld=lld a.o b.o -o {name}"))?;
        ensure!(pair.served.path.join(&name).exists() == (length <= 244), "{length} bytes");
    }
    Ok(())
}

#[test]
fn a_link_is_packed_for_reproducing() -> Result<()> {
    let pair = Pair::create("reproduce")?;
    for script in [
        "$link %clang -O2 -flto=thin -fuse-ld=lld a.o b.o -Wl,--reproduce=repro.tar -o P",
        "LLD_REPRODUCE=repro.tar $link %clang -O2 -flto=thin -fuse-ld=lld a.o b.o -o P",
    ] {
        let script =
            format!("{script} && tar xOf repro.tar repro/response.txt | sed s,${{PWD#/}},, && rm repro.tar");
        let ended = pair.same(&script)?;
        ensure!(ended.code == Some(0) && ended.stdout.contains("-o P"), "{ended:?}");
    }
    Ok(())
}

/// Names of the output and of its objects are in what the linker writes and says.
#[test]
fn maps_and_messages_name_the_output() -> Result<()> {
    let pair = Pair::with_names("names")?;
    pair.write("c.c", "int missing(void);\nint main(void) { return missing(); }\n")?;
    pair.write("d.c", "int b(int x) { return x; }\n")?;
    pair.write("n.c", "int b(int x) { return x; }\n")?;
    pair.both("%clang -O2 -flto=thin -c c.c d.c")?;
    pair.both("%clang -O2 -c n.c")?;
    pair.both("%ar rcs libb.a b.o")?;
    for words in [
        "-Wl,-Map=map",
        "-Wl,-Map=map,--cref",
        "-Wl,-M",
        "-Wl,--cref",
        "-Wl,--print-gc-sections,--gc-sections",
        "-Wl,--why-extract=why",
        "-Wl,--dependency-file=depends",
        "-Wl,--trace-symbol=b",
        "-Wl,--print-icf-sections,--icf=all",
        "-Wl,--print-archive-stats=stats",
    ] {
        let ended =
            pair.same_program(&format!("$link %clang -O2 -flto=thin -fuse-ld=lld {words} a.o libb.a -o P"))?;
        ensure!(!ended.stdout.contains(".distlto") && !ended.stderr.contains(".distlto"), "{ended:?}");
    }
    let map = fs::read_to_string(pair.served.path.join("map"))?;
    ensure!(map.contains("P.lto."), "{map}");
    for words in
        ["b.o c.o", "a.o b.o d.o", "a.o b.o n.o", "-shared -Wl,-z,defs c.o", "a.o -lnowhere", "gone.o"]
    {
        // lld removes an earlier program, distlto puts it back.
        pair.both("rm -f P")?;
        let ended = pair.same(&format!("$link %clang -O2 -flto=thin -fuse-ld=lld {words} -o P"))?;
        ensure!(ended.code == Some(1) && ended.stderr.contains("error: "), "{words}: {ended:?}");
    }
    Ok(())
}

#[test]
fn a_version_script_has_the_name_of_the_output() -> Result<()> {
    let pair = Pair::create("version-script")?;
    pair.write("versions", "V1 { global: b; local: *; };\n")?;
    pair.same(
        "$link %clang -O2 -fPIC -shared -flto=thin -fuse-ld=lld -Wl,--version-script=versions b.o -o libv.so",
    )?;
    pair.asked()?;
    let mut readelf = Command::new(pair.served.toolchain.tool("llvm-readelf")?);
    let said = succeed(readelf.arg("-V").arg(pair.served.path.join("libv.so")))?;
    let said = String::from_utf8(said.stdout)?;
    ensure!(said.contains("Name: libv.so"), "{said}");
    Ok(())
}

/// Patterns of a linker script see the names that the linker gives to its own objects.
#[test]
fn a_linker_script_matches_the_linkers_objects() -> Result<()> {
    let pair = Pair::with_names("patterns")?;
    for (number, pattern) in ["*b.o", "P.lto.*", "P.lto.b.o", "*.lto.b.o", "*a.o"].into_iter().enumerate() {
        pair.write(
            "sections.ld",
            &format!(
                "SECTIONS {{ .first : {{ {pattern}(.text .text.*) }} .text : {{ *(.text .text.*) }} }}\n"
            ),
        )?;
        let ended =
            pair.same(&format!("$link %lld -e main -T sections.ld a.o b.o -Map=map-{number} -o P"))?;
        ensure!(ended.code == Some(0), "{pattern}: {ended:?}");
        let map = fs::read_to_string(pair.served.path.join(format!("map-{number}")))?;
        let first =
            map.split_once(" .first\n").map(|(_, rest)| rest.split(" .text\n").next().unwrap_or_default());
        ensure!(first.is_some_and(|first| first.contains("P.lto.")), "{pattern} matches nothing:\n{map}");
    }
    pair.asked()
}

/// What a linker writes of its own backends, which are not its own where it asks.
#[test]
fn files_of_the_linkers_own_backends_are_written() -> Result<()> {
    let pair = Pair::with_names("own-backends")?;
    for (words, file) in [
        ("-Wl,--lto-obj-path=obj", "obj1"),
        ("-Wl,-plugin-opt=obj-path=obj", "obj2"),
        ("-Wl,--thinlto-emit-imports-files", "P"),
        ("-Wl,--thinlto-emit-index-files", "b.o.thinlto.bc"),
        ("-Wl,--thinlto-emit-index-files,--thinlto-emit-imports-files", "a.o.thinlto.bc"),
        ("-Wl,--thinlto-index-only=list", "list"),
        ("-Wl,--lto-emit-asm", "P.lto.a.s"),
        ("-Wl,--opt-remarks-filename,remarks", "remarks"),
        ("-Wl,-plugin-opt=stats-file=stats", "stats"),
    ] {
        let ended = pair.same(&format!("$link %clang -O2 -flto=thin -fuse-ld=lld {words} a.o b.o -o P"))?;
        ensure!(ended.code == Some(0), "{words}: {ended:?}");
        pair.served.glob(&format!("{file}*"), "")?;
        pair.both("sh -c 'rm -rf P* obj* *.imports *.thinlto.bc'")?;
    }
    Ok(())
}

/// The linker ignores the first two, and merges modules by the third.
#[test]
fn options_that_a_linker_takes_only_alone() -> Result<()> {
    let pair = Pair::create("only-alone")?;
    for option in [
        "--thinlto-prefix-replace='a;b'",
        "--thinlto-object-suffix-replace='.o;.x'",
        "-mllvm,-thinlto-assume-merged",
    ] {
        let ended =
            pair.same(&format!("$link %clang -O2 -flto=thin -fuse-ld=lld -Wl,{option} a.o b.o -o P"))?;
        ensure!(ended.code == Some(0), "{option}: {ended:?}");
    }
    Ok(())
}

/// Remarks go to standard output, and a failing thin link has said what is wrong.
#[test]
fn messages_of_a_linker_are_all_that_is_said() -> Result<()> {
    let pair = Pair::create("messages")?;
    pair.write("b.c", "int b(int x) { return x + 4; }\n")?;
    pair.both("%clang -O2 -flto=thin -c b.c")?;
    let remarks = "$link %lld -e main -plugin-opt=-pass-remarks=inline a.o b.o -o P";
    let ended = pair.same(&format!("{remarks} && rm P && {remarks}"))?;
    ensure!(ended.code == Some(0) && ended.stdout.contains("inlined"), "{ended:?}");
    let ended = pair.same("$link %lld -e main --thinlto-index-only a.o b.o missing.o -o P")?;
    ensure!(ended.code == Some(1), "{ended:?}");
    let ended = pair.same("$link %lld -e main --thinlto-index-only --version a.o b.o -o P")?;
    ensure!(ended.code == Some(0), "{ended:?}");
    Ok(())
}

/// Ours replace these, so that the linker would not see them.
#[test]
fn values_that_the_linker_refuses_are_refused() -> Result<()> {
    let pair = Pair::create("refused-values")?;
    let jobs = ["2x", "-1", "heavyweight", "99999999999"].map(|value| format!("--thinlto-jobs={value}"));
    let policies = ["none=1", "prune_after=1x", "0"].map(|value| format!("--thinlto-cache-policy={value}"));
    // Two threads of lld may both say that they cannot open a file of the cache.
    let others = ["--threads=2x", "--thinlto-cache-dir=a.c,--thinlto-jobs=1"].map(str::to_owned);
    for option in jobs.iter().chain(&policies).chain(&others) {
        let ended =
            pair.same(&format!("$link %clang -O2 -flto=thin -fuse-ld=lld -Wl,{option} a.o b.o -o P"))?;
        ensure!(ended.code == Some(1), "{option}: {ended:?}");
    }
    for option in
        ["--threads=1", "--thinlto-jobs=all", "--thinlto-jobs=", "--thinlto-cache-policy=prune_after=2h"]
    {
        pair.same_program(&format!("$link %clang -O2 -flto=thin -fuse-ld=lld -Wl,{option} a.o b.o -o P"))?;
    }
    Ok(())
}
