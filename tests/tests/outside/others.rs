//! What outlives a command, and other users.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::run::{capture, succeed, told, wait};

use super::{copied_to, programs};

/// Runs a program as another user, which only root can.
const AS_OTHER: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

/// Answers every process that calls at the socket of a folder with another command line, as a service does for linkers. The
/// numbers are those of `hook/src/protocol.rs`.
const SQUATTER: &str = r#"
import array, os, socket, sys
folder, line = sys.argv[1], sys.argv[2:]
os.mkdir(folder)
os.chmod(folder, 0o777)
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(folder + "/socket")
os.chmod(folder + "/socket", 0o777)
listener.listen(100)
open(folder + "/ready", "w").close()
while True:
    caller, _ = listener.accept()
    words = os.memfd_create("words")
    os.write(words, b"\0".join(word.encode() for word in [folder] + line) + b"\0")
    caller.sendmsg([b"L"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [words]))])
"#;

/// distlto without places of the user's own: its socket lies in a folder where all may write.
fn build_in(shared: &Path, script: &str) -> Result<Command> {
    let mut command = Command::new(distlto::binary()?);
    command.args(["bash", "-c", script]).env_remove("HOME").env_remove("XDG_CACHE_HOME");
    command.env_remove("XDG_RUNTIME_DIR").env("TMPDIR", shared).current_dir(shared.join("own"));
    Ok(command)
}

fn shared_folder() -> Result<tempfile::TempDir> {
    let shared = tempfile::tempdir()?;
    fs::set_permissions(shared.path(), Permissions::from_mode(0o1777))?;
    fs::create_dir(shared.path().join("own"))?;
    for name in ["hello", "ld"] {
        fs::copy(programs()?.join("hello"), shared.path().join("own").join(name))?;
    }
    Ok(shared)
}

#[test]
fn a_daemon_obeys_nobody_who_takes_the_place_of_the_service() -> Result<()> {
    let shared = shared_folder()?;
    let own = |name: &str| shared.path().join("own").join(name);
    let daemon = "echo $DISTLTO_SERVICE > where; \
         setsid bash -c 'touch runs; while [ ! -e go ]; do sleep 0.02; done; \
         (./hello; ./ld -o P; bash -c \"exec -a clang ./hello\") > said.new 2>&1; mv said.new said' \
         > /dev/null 2>&1 < /dev/null & while [ ! -e runs ]; do sleep 0.02; done";
    succeed(&mut build_in(shared.path(), daemon)?)?;
    let folder = PathBuf::from(fs::read_to_string(own("where"))?.trim());
    ensure!(folder.starts_with(shared.path()) && !folder.exists(), "{} is not gone", folder.display());
    let mut squatter = Command::new(AS_OTHER[0]);
    squatter.args(&AS_OTHER[1..]).args(["/usr/bin/python3", "-c", SQUATTER]).arg(&folder);
    squatter.args(["/bin/sh", "-c", "echo PREPARED"]).stdin(Stdio::null());
    let mut squatter = squatter.spawn().context("setpriv and python3")?;
    let squatted = wait("another user's service", || folder.join("ready").exists());
    fs::write(own("go"), "")?;
    let ended = squatted.and_then(|()| wait("the daemon's programs", || own("said").exists()));
    squatter.kill()?;
    squatter.wait()?;
    ended?;
    let said = fs::read_to_string(own("said"))?;
    let lines: Vec<&str> = said.lines().collect();
    ensure!(
        matches!(lines[..], [one, two, three]
            if one.starts_with("1 words") && two.starts_with("3 words") && three.starts_with("1 words")),
        "{said}"
    );
    Ok(())
}

#[test]
fn nothing_of_the_service_outlives_the_command() -> Result<()> {
    let shared = shared_folder()?;
    let own = |name: &str| shared.path().join("own").join(name);
    let daemon = "setsid bash -c 'touch runs; while [ ! -e go ]; do sleep 0.02; done; env > said.new; \
         ls -l /proc/self/fd >> said.new; mv said.new said' > /dev/null 2>&1 < /dev/null & \
         while [ ! -e runs ]; do sleep 0.02; done";
    succeed(&mut build_in(shared.path(), daemon)?)?;
    fs::write(own("go"), "")?;
    wait("the daemon's programs", || own("said").exists())?;
    let said = fs::read_to_string(own("said"))?;
    let is_ours = |line: &&str| {
        line.contains("LD_PRELOAD") || line.contains("DISTLTO_SERVICE") || line.contains("socket:")
    };
    ensure!(!said.lines().any(|line| is_ours(&line)), "{said}");
    let left: Vec<_> = fs::read_dir(shared.path())?.flatten().map(|entry| entry.file_name()).collect();
    ensure!(left == ["own"], "{left:?}");
    Ok(())
}

#[test]
fn another_user_who_cannot_read_the_library_runs_without_it() -> Result<()> {
    let private = tempfile::tempdir()?;
    let hello = tempfile::tempdir()?;
    fs::set_permissions(hello.path(), Permissions::from_mode(0o755))?;
    let hello = hello.path().join("hello");
    fs::copy(programs()?.join("hello"), &hello)?;
    let program = copied_to(private.path())?;
    fs::set_permissions(private.path(), Permissions::from_mode(0o700))?;
    let hello = hello.to_str().context("UTF-8")?;
    for words in
        [&[&AS_OTHER[..], &[hello, hello]].concat()[..], &["su", "nobody", "-s", "/bin/sh", "-c", hello]]
    {
        let plain = capture(Command::new(words[0]).args(&words[1..]))?;
        let mut command = Command::new(&program);
        command.args(words).env("HOME", private.path()).env("XDG_CACHE_HOME", private.path());
        let output = capture(&mut command)?;
        ensure!(
            (output.status.code(), &output.stdout, &output.stderr)
                == (plain.status.code(), &plain.stdout, &plain.stderr),
            "{}",
            told(&command, &output)
        );
    }
    Ok(())
}

#[test]
fn the_folder_of_a_killed_command_goes_with_the_next() -> Result<()> {
    let shared = shared_folder()?;
    let own = |name: &str| shared.path().join("own").join(name);
    let mut killed =
        build_in(shared.path(), "echo $DISTLTO_SERVICE > where.new; mv where.new where; sleep 600")?
            .spawn()?;
    wait("the command", || own("where").exists())?;
    let folder = PathBuf::from(fs::read_to_string(own("where"))?.trim());
    killed.kill()?;
    killed.wait()?;
    ensure!(folder.exists(), "{} went by itself", folder.display());
    succeed(&mut build_in(shared.path(), "true")?)?;
    ensure!(!folder.exists(), "{} is left", folder.display());
    Ok(())
}
