//! `index.full` from a stock linker's trace: what is in it, in which order, and what the user sees of the trace.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use anyhow::{Result, ensure};
use distlto_tests::run::succeed;

use super::rule::{INDEX, Rule, below};

const MAIN: &str = "int f(void); int main(void) { return f(); }";

fn index_full(rule: &Rule) -> Result<Vec<String>> {
    rule.lines(&below("index.full"))
}

#[test]
fn what_the_driver_adds_is_left_out_and_what_the_user_gives_stays() -> Result<()> {
    let mut rule = Rule::create("driver")?;
    rule.object("main.o", "#include <math.h>\nint main(int c, char **v) { return (int)sin(c); }", true)?;
    rule.run()?;
    ensure!(index_full(&rule)? == [below("main.o")], "{:?}", index_full(&rule)?);

    // The driver adds this library too, and it is a linker script where it is the C library's.
    rule.flags(&["-lm"]);
    rule.run()?;
    let loaded = index_full(&rule)?;
    ensure!(loaded[0] == below("main.o") && loaded.len() > 1, "{loaded:?}");
    ensure!(loaded[1..].iter().all(|file| file.contains("libm")), "{loaded:?}");
    Ok(())
}

#[test]
fn files_are_in_the_order_of_loading() -> Result<()> {
    let mut rule = Rule::create("order")?;
    rule.object("main.o", MAIN, true)?;
    rule.arguments.push("-Wl,--start-lib".to_owned());
    rule.object("d/g.o", "int g(void) { return 4; }", true)?;
    rule.object("d/unused.o", "int unused(void) { return 5; }", true)?;
    rule.object("d/native lazy.o", "int n(void) { return 6; }", false)?;
    rule.object("d/f f.o", "int g(void); int n(void); int f(void) { return g() + n(); }", true)?;
    rule.arguments.push("-Wl,--end-lib".to_owned());
    rule.run()?;
    let loaded = index_full(&rule)?;
    let expected = [below("main.o"), below("d/f f.o"), below("d/g.o"), "d/native lazy.o".to_owned()];
    ensure!(loaded == expected, "{loaded:?}");
    let extracted = rule.lines(&below("index"))?;
    ensure!(extracted == [below("main.o"), below("d/f f.o"), below("d/g.o")], "{extracted:?}");
    let last = rule.lines("out/final")?;
    let expected =
        ["", "out/0/main.o.opt.o", "\"out/4/d/f f.o.opt.o\"", "out/1/d/g.o.opt.o", "\"d/native lazy.o\""];
    ensure!(last == expected, "{last:?}");
    Ok(())
}

#[test]
fn opaque_archives_are_named_once_with_their_words() -> Result<()> {
    let mut rule = Rule::create("archives")?;
    rule.object("main.o", MAIN, true)?;
    for (object, source) in
        [("f.o", "int g(void); int f(void) { return g(); }"), ("g (1).o", "int g(void) { return 0; }")]
    {
        rule.compile(object, source, false)?;
    }
    rule.compile("w.o", "__attribute__((constructor)) void w(void) {}", false)?;
    rule.compile("unused.o", "int unused(void) { return 0; }", false)?;
    rule.archive("libf (x).a", &["f.o", "g (1).o"])?;
    rule.archive("libwhole.a", &["w.o"])?;
    rule.archive("libunused.a", &["unused.o"])?;
    rule.opaque("libunused.a", &["libunused.a"]);
    rule.opaque("libwhole.a", &["-Wl,--whole-archive", "libwhole.a", "-Wl,--no-whole-archive"]);
    rule.arguments.push("-Wl,--start-group".to_owned());
    rule.opaque("libf (x).a", &["'libf (x).a'"]);
    rule.arguments.push("-Wl,--end-group".to_owned());
    rule.run()?;
    let loaded = index_full(&rule)?;
    ensure!(loaded == [below("main.o"), "libwhole.a".to_owned(), "libf (x).a".to_owned()], "{loaded:?}");
    let last = rule.lines("out/final")?;
    let whole = ["-Wl,--whole-archive", "libwhole.a", "-Wl,--no-whole-archive"];
    ensure!(last[2..5] == whole && last[5..] == ["'libf (x).a'"], "{last:?}");
    Ok(())
}

#[test]
fn what_a_linker_script_names_stands_where_the_script_does() -> Result<()> {
    let mut rule = Rule::create("script")?;
    rule.object("main.o", MAIN, true)?;
    rule.compile("f.o", "int f(void) { return 0; }", false)?;
    rule.folder.write("lib/libs.so", "/* a script */ INPUT(libreal.a AS_NEEDED(-lmore))\n")?;
    rule.archive("lib/libreal.a", &["f.o"])?;
    rule.flags(&["-Llib", "-ls"]);
    rule.object("after.o", "int after;", true)?;
    rule.compile("more.o", "int more;", false)?;
    rule.archive("lib/libmore.a", &["more.o"])?;
    rule.run()?;
    let loaded = index_full(&rule)?;
    ensure!(loaded == [below("main.o"), "lib/libreal.a".to_owned(), below("after.o")], "{loaded:?}");
    ensure!(rule.lines("out/final")?[0] == "-Llib");
    Ok(())
}

#[test]
fn the_option_may_stand_in_response_files_and_lists() -> Result<()> {
    for (name, argument, more) in [
        ("nested", "@nested.rsp", "-O2"),
        ("list", "-Wl,-z,now,--thinlto-full-index,-z,relro", "-O2"),
        ("single-dash", "-O2", "-Wl,-thinlto-full-index"),
        ("linkers-file", "-O2", "-Wl,@linker.rsp"),
        ("absent", "-O2", "-O2"),
    ] {
        let mut rule = Rule::create(&format!("option-{name}"))?;
        rule.more = vec!["-Xlinker".to_owned(), "-znow".to_owned(), more.to_owned()];
        rule.folder.write("nested.rsp", "-O2 -Xlinker --thinlto-full-index\n")?;
        rule.folder.write("linker.rsp", "--thinlto-full-index")?;
        rule.object("main.o", "int main(void) { return 0; }", true)?;
        rule.arguments.push(argument.to_owned());
        rule.run()?;
        ensure!(index_full(&rule)? == [below("main.o")], "{name}: {:?}", index_full(&rule)?);
    }
    Ok(())
}

#[test]
fn the_trace_is_ours_and_messages_are_the_users() -> Result<()> {
    let mut rule = Rule::create("messages")?;
    rule.object("main.o", "int main(void) { return 0; }", true)?;
    rule.more.extend(["-Wl,--trace-symbol=main", "-Wl,-z,unheard-of"].map(str::to_owned));
    let said = rule.run()?;
    let (out, err) = (String::from_utf8(said.stdout)?, String::from_utf8(said.stderr)?);
    ensure!(out.lines().any(|line| line == "main.o: definition of main"), "{out:?}");
    ensure!(out.lines().all(|line| line.contains(": ")), "{out:?}");
    ensure!(err.contains("warning: unknown -z value: unheard-of"), "{err:?}");
    rule.more.push("-Wl,-t".to_owned());
    let out = String::from_utf8(rule.run()?.stdout)?;
    ensure!(out.lines().any(|line| line == "main.o"), "{out:?}");
    Ok(())
}

/// A linker with the option, as one company has it: it lists everything, what the driver adds too.
const PRIVATE: &str = r#"#!/bin/sh
for word; do
    case "$word" in
        --version) echo LLD; exit 0 ;;
        --thinlto-full-index) full=1 ;;
        *) set -- "$@" "$word" ;;
    esac
    shift
done
"%lld" "$@" || exit
echo asked >> asked
if [ "$full" ]; then
    for word; do
        case "$word" in
            main.o|f.o) echo "%index/$word" ;;
            *crt*.o|*.so.*|extra.o) echo "$word" ;;
        esac
    done > %index/index.full
fi
"#;

#[test]
fn a_linker_that_has_the_option_is_used_as_it_is() -> Result<()> {
    let mut rule = Rule::create("private")?;
    let lld = rule.folder.toolchain.tool("ld.lld")?;
    let text = PRIVATE.replace("%lld", &lld.display().to_string()).replace("%index", INDEX);
    let script = rule.folder.write("private/ld.lld", text)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    rule.driver[2] = format!("--ld-path={}", script.display());
    rule.object("main.o", MAIN, true)?;
    rule.object("f.o", "int f(void) { return 0; }", true)?;
    rule.compile("extra.o", "int extra;", false)?;
    rule.arguments.push("extra.o".to_owned());
    rule.run()?;
    ensure!(rule.lines("asked")?.len() == 1, "the link ran more than once");
    let listed = index_full(&rule)?;
    ensure!(listed.iter().any(|file| file.ends_with("crti.o")), "{listed:?}");
    let last = rule.lines("out/final")?;
    ensure!(last == ["", "out/0/main.o.opt.o", "out/1/f.o.opt.o", "extra.o"], "{last:?}");
    Ok(())
}

#[test]
fn what_the_final_link_has_anyway_is_not_listed_for_it() -> Result<()> {
    let mut rule = Rule::create("beside")?;
    rule.object("main.o", MAIN, true)?;
    rule.compile("f.o", "int w(void); int f(void) { return w(); }", false)?;
    rule.more.push("f.o".to_owned());
    rule.compile("flag.o", "int flag;", false)?;
    rule.compile("w.o", "int w(void) { return 0; }", false)?;
    rule.folder.write("lib/.keep", "")?;
    rule.archive("lib/libw.a", &["w.o"])?;
    let flags = ["flag.o", "-Llib", "-Wl,--whole-archive", "-lw", "-Wl,--no-whole-archive"];
    rule.flags(&flags);
    rule.run()?;
    let loaded = index_full(&rule)?;
    ensure!(loaded == [below("main.o"), "flag.o".to_owned(), "lib/libw.a".to_owned()], "{loaded:?}");
    let last = rule.lines("out/final")?;
    ensure!(last[..2] == ["-Llib", "out/0/main.o.opt.o"] && last[2..] == flags, "{last:?}");
    // Listed a second time, either would define its symbols twice.
    rule.folder.write("out/0/main.o.opt.o", "")?;
    rule.compile("out/0/main.o.opt.o", MAIN, false)?;
    let mut link = std::process::Command::new(&rule.driver[0]);
    link.args(&rule.driver[1..]).args(["@out/final", "f.o", "-o", "app"]).current_dir(&rule.folder.path);
    succeed(&mut link).map(drop)
}
