//! A second user of the machine has prepared what a link of root's finds: a file above the build and in it, TMPDIR, HOME, a
//! cache, a store, the state beside the output, and calls the link's socket. The link goes on without, and says so.
//!
//! Root gives files away here, and becomes Debian's `nobody`.

use std::fs::{self, Permissions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use distlto_reapi_server::{Faults, Options, Server};
use distlto_tests::distlto;
use distlto_tests::run::{capture, succeed, told};
use distlto_tests::store;
use distlto_tests::toolchain::Toolchain;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use tempfile::TempDir;

/// `nobody` and `nogroup`.
const OTHER: u32 = 65_534;

/// A program of two modules, linked where and as the test says.
struct Build {
    place: TempDir,
}

impl Build {
    fn new() -> Result<Self> {
        let build = Self { place: tempfile::tempdir()? };
        build.mode("", 0o755)?;
        fs::create_dir(build.path("build"))?;
        fs::create_dir(build.path("home"))?;
        let clang = Toolchain::from_env()?.tool("clang")?;
        for (name, text) in [
            ("a", "int b(int);\nint main(void) { return b(3); }\n"),
            ("b", "int b(int x) { return x + 4; }\n"),
        ] {
            fs::write(build.path(&format!("build/{name}.c")), text)?;
            let (source, object) = (format!("{name}.c"), format!("{name}.o"));
            let words = ["-O2", "-flto=thin", "-c", &source, "-o", &object];
            succeed(Command::new(&clang).args(words).current_dir(build.path("build")))?;
        }
        Ok(build)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn mode(&self, name: &str, mode: u32) -> Result<()> {
        Ok(fs::set_permissions(self.path(name), Permissions::from_mode(mode))?)
    }

    /// A folder of this mode.
    fn folder(&self, name: &str, mode: u32) -> Result<()> {
        fs::create_dir_all(self.path(name))?;
        self.mode(name, mode)
    }

    /// Gives everything below a path away.
    fn give(&self, name: &str) -> Result<()> {
        give(&self.path(name))
    }

    /// The link, with an environment of its own.
    fn command(&self, options: &[&str]) -> Result<Command> {
        let clang = Toolchain::from_env()?.tool("clang")?;
        let mut command = Command::new(distlto::binary()?);
        command
            .current_dir(self.path("build"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.path("home")).env("DISTLTO_LEDGER", "off");
        // A cache that others use holds what a compiler makes.
        command.arg("link").args(options).arg("--compiler").arg(&clang).arg("--").arg(clang);
        command.args(["-O2", "-flto=thin", "-fuse-ld=lld", "a.o", "b.o", "-o", "p"]);
        Ok(command)
    }

    /// Links anew; what was said.
    fn link(&self, options: &[&str]) -> Result<String> {
        self.link_by(&mut self.command(options)?)
    }

    fn link_by(&self, command: &mut Command) -> Result<String> {
        let _ = fs::remove_file(self.path("build/p"));
        let output = capture(command)?;
        ensure!(output.status.success(), "{}", told(command, &output));
        let program = Command::new(self.path("build/p")).status()?;
        ensure!(program.code() == Some(7), "the program ends with {program}: {}", told(command, &output));
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn give(path: &Path) -> Result<()> {
    lchown(path, Some(OTHER), None).context("root's right to give a file away (CAP_CHOWN)")?;
    if path.symlink_metadata()?.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path())?;
        }
    }
    Ok(())
}

/// A file's owner, mode and content.
type Seen = (u32, u32, Vec<u8>);

/// All that is below a folder.
fn tree(path: &Path) -> Result<Vec<(PathBuf, Seen)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        let about = path.symlink_metadata()?;
        let bytes = if about.is_file() { fs::read(&path)? } else { Vec::new() };
        found.push((path.clone(), (about.uid(), about.mode(), bytes)));
        if about.is_dir() {
            found.extend(tree(&path)?);
        }
    }
    found.sort();
    Ok(found)
}

/// That one line of what was said has all of these words.
fn expect(said: &str, words: &[&str]) -> Result<()> {
    let lines = said.lines().filter(|line| words.iter().all(|word| line.contains(word)));
    ensure!(lines.count() == 1, "not once {words:?} in:\n{said}");
    Ok(())
}

fn configuration(server: &Server) -> String {
    format!("[remote]\ncache = \"{}\"\n", server.url())
}

#[test]
fn a_file_above_the_build_and_one_in_it_send_nothing_away() -> Result<()> {
    let server = Server::start(Options::default(), Faults::default())?;
    for name in ["distlto.toml", "build/distlto.toml"] {
        let build = Build::new()?;
        fs::write(build.path(name), configuration(&server))?;
        build.give(name)?;
        let said = build.link(&[])?;
        let file = build.path(name).display().to_string();
        expect(
            &said,
            &["warning: ", &file, " is passed over: it belongs to the user nobody (65534); chown 0 "],
        )?;
        ensure!(server.counts().of("GetCapabilities") == 0, "{said}");
    }
    // The folder of a repository is the last one.
    let build = Build::new()?;
    fs::write(build.path("distlto.toml"), configuration(&server))?;
    fs::create_dir(build.path("build/.git"))?;
    let said = build.link(&[])?;
    ensure!(!said.contains("distlto.toml") && server.counts().of("GetCapabilities") == 0, "{said}");
    Ok(())
}

#[test]
fn the_first_link_of_a_checkout_says_that_its_file_makes_it_remote() -> Result<()> {
    let server = Server::start(Options::default(), Faults::default())?;
    let build = Build::new()?;
    fs::write(build.path("build/distlto.toml"), configuration(&server))?;
    let file = build.path("build/distlto.toml").display().to_string();
    let words =
        ["distlto: note: ", &file, " has objects looked up at ", "; --no-remote and an empty DISTLTO_REMOTE"];
    expect(&build.link(&[])?, &words)?;
    fs::remove_dir_all(build.path("home/.cache/distlto/results-v1"))?;
    let said = build.link(&[])?;
    ensure!(!said.contains("distlto.toml"), "{said}");
    ensure!(server.counts().of("GetCapabilities") >= 2, "the server was not asked");
    // It is remembered in a folder of the user's own; without one it is said each time.
    for _ in 0..2 {
        expect(&build.link_by(build.command(&[])?.env_remove("HOME"))?, &words)?;
    }
    Ok(())
}

#[test]
fn nothing_is_remembered_where_another_user_could_have_prepared_it() -> Result<()> {
    let build = Build::new()?;
    // Without HOME: in no folder of all users.
    build.folder("tmp/distlto", 0o755)?;
    fs::write(build.path("tmp/distlto/compilers-v1"), "prepared")?;
    build.give("tmp/distlto")?;
    build.mode("tmp", 0o1777)?;
    let prepared = tree(&build.path("tmp/distlto"))?;
    let said = build.link_by(build.command(&[])?.env_remove("HOME").env("TMPDIR", build.path("tmp")))?;
    ensure!(said.is_empty(), "{said}");
    ensure!(tree(&build.path("tmp/distlto"))? == prepared, "it was written to");
    // The home of another user, as sudo leaves it.
    for prepare in ["home", "home/.cache", "home/.cache/distlto"] {
        let build = Build::new()?;
        build.folder("home/.cache/distlto", 0o755)?;
        lchown(build.path(prepare), Some(OTHER), None)?;
        let said = build.link(&[])?;
        let place = build.path("home/.cache/distlto").display().to_string();
        let rest = " belongs to the user nobody (65534); chown 0 ";
        expect(
            &said,
            &["warning: nothing is kept in ", &place, rest, "or set XDG_CACHE_HOME to a folder of your own"],
        )?;
        ensure!(fs::read_dir(&place)?.count() == 0, "something was left in {place}");
    }
    // Nor does a home that is not there matter.
    let said = build.link_by(build.command(&[])?.env("HOME", "/proc/nobody"))?;
    ensure!(said.is_empty(), "{said}");
    Ok(())
}

#[test]
fn a_cache_that_others_could_have_prepared_is_not_used() -> Result<()> {
    const OPTION: &str = "or give --cache-shared if you trust all who can write there";
    let build = Build::new()?;
    let cache = build.path("cache");
    let shown = format!("warning: the cache {} is not used: ", cache.display());
    let option = format!("--cache={}", cache.display());
    let hits = |said: &str| {
        ["0 of 2 backends were out of date", "2 from the cache", "2 cached"]
            .iter()
            .any(|words| said.contains(words))
    };
    ensure!(build.link(&[&option])?.is_empty(), "a cache of one's own is nothing to speak of");
    let said = build.link(&["-v", &option])?;
    ensure!(hits(&said), "{said}");
    // Another user's, whether it is full or empty, and one of all users, or below a folder of all.
    let full = tree(&cache)?;
    build.give("cache")?;
    for (change, words) in [
        (None, "it belongs to the user nobody (65534); chown 0 "),
        (Some(("cache", 0o777)), "it can be written by all users (mode 777); chmod go-w "),
        (Some(("", 0o777)), " can be written by all users (mode 777); chmod go-w "),
    ] {
        if let Some((name, mode)) = change {
            succeed(Command::new("chown").args(["-R", "0"]).arg(&cache))?;
            build.mode("cache", 0o755)?;
            build.mode(name, mode)?;
        }
        let said = build.link(&["-v", &option])?;
        expect(&said, &[&shown, words, OPTION])?;
        ensure!(!hits(&said), "{said}");
        build.mode("", 0o755)?;
    }
    ensure!(tree(&cache)?.len() == full.len(), "something was kept there");
    // Who says so shares it.
    build.give("cache")?;
    let said = build.link(&["-v", "--cache-shared", &option])?;
    ensure!(hits(&said) && !said.contains("warning"), "{said}");
    let said = build.link_by(build.command(&["-v", &option])?.env("DISTLTO_CACHE_SHARED", "1"))?;
    ensure!(hits(&said) && !said.contains("warning"), "{said}");
    // What others have kept does not count once nobody else can write there.
    lchown(&cache, Some(0), None)?;
    build.mode("cache", 0o755)?;
    let said = build.link(&["-v", &option])?;
    expect(&said, &["results that other users have kept there do not count"])?;
    ensure!(!hits(&said), "{said}");
    Ok(())
}

/// Folders are closed to others where the umask would have all write to what is made in them.
#[test]
fn nobody_else_can_write_to_what_is_kept_whatever_the_umask() -> Result<()> {
    let build = Build::new()?;
    let cache = build.path("cache").display().to_string();
    for (umask, mode) in [("000", 0o700), ("022", 0o755), ("077", 0o700)] {
        let command = build.command(&["--cache", &cache])?;
        let mut shell = Command::new("sh");
        shell.current_dir(build.path("build")).args(["-c", &format!("umask {umask}; exec \"$@\""), "sh"]);
        shell.arg(command.get_program()).args(command.get_args());
        shell.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        build.link_by(&mut shell)?;
        let place = Path::new(&cache);
        let found = place.metadata()?.mode() & 0o777;
        ensure!(found == mode, "{}: {found:o} with {umask}", place.display());
        reachable(place)?;
        fs::remove_dir_all(place)?;
    }
    Ok(())
}

/// That others can write to nothing that they reach.
fn reachable(path: &Path) -> Result<()> {
    let found = path.symlink_metadata()?;
    ensure!(found.is_symlink() || found.mode() & 0o022 == 0, "{}: {:o}", path.display(), found.mode());
    if found.is_dir() && found.mode() & 0o011 != 0 {
        for entry in fs::read_dir(path)? {
            reachable(&entry?.path())?;
        }
    }
    Ok(())
}

#[test]
fn state_that_others_could_have_prepared_is_not_used() -> Result<()> {
    let build = Build::new()?;
    let states = build.path("states").display().to_string();
    let link = || build.link(&["--state", &states]);
    ensure!(link()?.is_empty(), "there was something to say");
    let state = store::record_of(&build.path("build/p"), &states);
    let shown = format!("warning: the state in {} is not used: ", state.display());
    let remedy = format!("; remove it (rm -r {}), or name another place with --state; ", state.display());
    // A link of an earlier program, kept as if it were of this one.
    for (change, words) in [
        ((Some(OTHER), 0o755), "it belongs to the user nobody (65534)"),
        ((Some(0), 0o777), "it can be written by all users (mode 777)"),
    ] {
        fs::write(state.join("modules"), "prepared")?;
        give(&state)?;
        lchown(&state, change.0, None)?;
        fs::set_permissions(&state, Permissions::from_mode(change.1))?;
        let prepared = tree(&state)?;
        expect(&link()?, &[&shown, words, &remedy, "nothing of this link is kept for the next one"])?;
        ensure!(tree(&state)? == prepared, "it was written to");
        fs::remove_dir_all(&state)?;
        ensure!(link()?.is_empty(), "there was something to say");
    }
    // A link that leads a user to where another one wants.
    fs::rename(&state, build.path("own"))?;
    symlink(build.path("own"), &state)?;
    ensure!(link()?.is_empty(), "one's own link is followed");
    lchown(&state, Some(OTHER), None)?;
    expect(&link()?, &[&shown, "it belongs to the user nobody"])?;
    fs::remove_file(&state)?;
    // The way there counts too.
    build.mode("states", 0o777)?;
    expect(
        &link()?,
        &[
            &states,
            " can be written by all users (mode 777); chmod go-w ",
            "or name another place with --state",
        ],
    )?;
    Ok(())
}

/// lld waits until the test has called.
#[test]
fn who_calls_the_socket_and_is_silent_does_not_hold_the_link() -> Result<()> {
    let build = Build::new()?;
    let toolchain = Toolchain::from_env()?;
    let lld = toolchain.tool("ld.lld")?;
    let script = format!(
        "#!/bin/sh\necho \"$DISTLTO_SERVICE\" > where.new\nmv where.new where\nwhile [ ! -e go ]; do sleep 0.02; done\nexec {} \"$@\"\n",
        lld.display()
    );
    fs::write(build.path("build/ld.lld"), script)?;
    build.mode("build/ld.lld", 0o755)?;
    let mut command = build.command(&["-vv"])?;
    command.arg(format!("--ld-path={}", build.path("build/ld.lld").display()));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut link = command.spawn()?;
    let begun = Instant::now();
    while !build.path("build/where").exists() {
        ensure!(link.try_wait()?.is_none(), "{}", told(&command, &link.wait_with_output()?));
        ensure!(begun.elapsed() < Duration::from_secs(300), "the linker was not started");
        std::thread::sleep(Duration::from_millis(5));
    }
    let folder = PathBuf::from(fs::read_to_string(build.path("build/where"))?.trim());
    let socket = folder.join("socket");
    ensure!(folder.metadata()?.mode() & 0o777 == 0o700, "others can call");
    let other = ["--reuid=65534", "--regid=65534", "--clear-groups", "stat"];
    let refused = capture(Command::new("setpriv").args(other).arg(&socket).env("LC_ALL", "C"))?;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    ensure!(said.contains("Permission denied"), "setpriv needs root: {said}");
    let _silent = [silent_caller(&socket)?, silent_caller(&socket)?];
    fs::write(build.path("build/go"), "")?;
    let output = link.wait_with_output()?;
    ensure!(output.status.success(), "{}", told(&command, &output));
    ensure!(
        String::from_utf8_lossy(&output.stderr).contains("-fthinlto-index="),
        "{}",
        told(&command, &output)
    );
    ensure!(!folder.exists(), "the socket is left");
    Ok(())
}

/// Calls at the service's socket, and says nothing.
fn silent_caller(socket: &Path) -> Result<OwnedFd> {
    let caller = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None)?;
    rustix::net::connect(&caller, &SocketAddrUnix::new(socket)?)?;
    Ok(caller)
}

/// What root has prepared counts for others.
#[test]
fn files_of_root_are_obeyed_by_others() -> Result<()> {
    let build = Build::new()?;
    fs::write(build.path("build/distlto.toml"), "[remote]\nurl = \"grpc://127.0.0.1:1\"\n")?;
    build.mode("build/distlto.toml", 0o644)?;
    // Where the other user can reach it.
    let own = build.path("distlto");
    fs::copy(distlto::binary()?, &own)?;
    let doctor = |owner: Option<u32>| -> Result<String> {
        lchown(build.path("build/distlto.toml"), owner, None)?;
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&own).arg("doctor");
        command
            .current_dir(build.path("build"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let output = capture(&mut command)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let said = doctor(Some(0))?;
    expect(&said, &["backends run at grpc://127.0.0.1:1, which was not asked"])?;
    let said = doctor(Some(1))?;
    expect(&said, &["distlto.toml is passed over: it belongs to the user daemon (1); chown 65534 "])?;
    ensure!(!said.contains("backends run at"), "{said}");
    Ok(())
}
