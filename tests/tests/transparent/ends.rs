//! How a command ends: exit codes, what a linker that was interrupted leaves, and whose the state is.

use std::fs;
use std::os::unix::fs::{PermissionsExt, lchown};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::run::{succeed, wait};

use super::{Pair, files};

#[test]
fn exit_codes_are_the_commands_own() -> Result<()> {
    let pair = Pair::create("exit-codes")?;
    for (script, code) in [
        ("$link sh -c 'exit 42'", 42),
        ("{ $link sh -c 'kill -TERM $$'; exit $?; } 2>&-", 143),
        ("$link %lld a.o b.o --no-such-option -o P", 1),
        ("$link %clang --no-such-option a.o -o P", 1),
        ("$link false", 1),
        ("$link sh -c 'echo out; echo err >&2; exit 3'", 3),
        ("$link sh -c '%clang -flto=thin -fuse-ld=lld a.o b.o -o P && exit 9'", 9),
    ] {
        let ended = pair.same(script)?;
        ensure!(ended.code == Some(code), "{script}: {ended:?}");
    }
    Ok(())
}

/// Its library wants to be the first that is loaded.
#[test]
fn programs_with_gccs_address_sanitizer_run() -> Result<()> {
    let pair = Pair::create("sanitizer")?;
    pair.same("echo 'int main(void) { return 3; }' > s.c && gcc -fsanitize=address s.c -o s")?;
    for script in
        ["$link ./s", "$link sh -c 'ASAN_OPTIONS=detect_leaks=0 ./s'", "ASAN_OPTIONS=exitcode=9 $link ./s"]
    {
        let ended = pair.same(script)?;
        ensure!(ended.code == Some(3), "{script}: {ended:?}");
    }
    Ok(())
}

/// A state that cannot be used is said, and the link is done.
#[test]
fn the_state_may_belong_to_another_user() -> Result<()> {
    let pair = Pair::create("others-state")?;
    let script = "$link %clang -O2 -flto=thin -fuse-ld=lld a.o b.o -o P";
    pair.same_program(script)?;
    give(&distlto::state_dir(&pair.served.path.join("P"))?)
        .context("root's right to give a file away (CAP_CHOWN)")?;
    for edit in ["x + 4", "x + 2 + 2"] {
        pair.write("b.c", &format!("__attribute__((noinline)) int b(int x) {{ return {edit}; }}\n"))?;
        pair.both("%clang -O2 -flto=thin -c b.c")?;
        pair.same_program(script)?;
    }
    Ok(())
}

fn give(path: &Path) -> Result<()> {
    lchown(path, Some(65_534), None)?;
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path())?;
        }
    }
    Ok(())
}

/// Members of an archive are those that lld's DTLTO would unpack beside the output.
#[test]
fn an_interrupted_link_leaves_nothing_beside_its_output() -> Result<()> {
    let pair = Pair::create("interrupted")?;
    pair.both("%ar rcs libb.a b.o")?;
    let folder = &pair.served;
    let clang = folder.toolchain.tool("clang")?;
    let slow = format!(
        "#!/bin/sh\ncase \"$*\" in *-fthinlto-index=*) if [ -e slow ]; then echo $$ >> running; exec sleep 600; fi ;; esac\n\
         exec {} \"$@\"\n",
        clang.display()
    );
    let compiler = folder.write("tools/cc", slow)?;
    fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755))?;
    let link = || -> Result<Command> {
        let mut link = Command::new(distlto::binary()?);
        link.args(["link", "--compiler=tools/cc", "--"]).arg(&clang);
        link.args(["-O2", "-flto=thin", "-fuse-ld=lld", "a.o", "libb.a", "-o", "P"]);
        link.current_dir(&folder.path)
            .env_remove("DISTLTO_STATE")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        distlto_tests::store::give(&mut link);
        Ok(link)
    };
    for signal in ["INT", "TERM"] {
        folder.write(
            "b.c",
            format!("__attribute__((noinline)) int b(int x) {{ return x + /* {signal} */ 4; }}\n"),
        )?;
        succeed(&mut folder.command("%clang -O2 -g -flto=thin -c b.c", "")?)?;
        succeed(&mut folder.command("%ar rcs libb.a b.o", "")?)?;
        folder.write("slow", "")?;
        let before = files(&folder.path)?;
        let mut linking = link()?.spawn()?;
        let running = folder.path.join("running");
        wait("the backend", || fs::read_to_string(&running).is_ok_and(|text| text.ends_with('\n')))?;
        succeed(Command::new("kill").args([&format!("-{signal}"), &linking.id().to_string()]))?;
        let code = linking.wait()?.code();
        ensure!(code == Some(if signal == "INT" { 130 } else { 143 }), "SIG{signal}: exit code {code:?}");
        fs::remove_file(&running)?;
        let after = files(&folder.path)?;
        ensure!(before == after, "SIG{signal} leaves {:?} of {:?}", after.keys(), before.keys());
        fs::remove_file(folder.path.join("slow"))?;
        succeed(&mut link()?)?;
    }
    Ok(())
}
