//! `distlto remote check` against a server of the tests: what it says of good servers and of each that is not.
//!
//! Backends are real: clang compiles them here, and on a worker in this process, whose environment is empty.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use distlto_reapi_server::{Authority, Certificates, Faults, Options, Server, Worker};
use distlto_tests::distlto;
use distlto_tests::run::{capture, succeed, told};
use distlto_tests::toolchain::Toolchain;

/// A folder to check in, without any configuration but its own.
struct Place {
    folder: tempfile::TempDir,
    clang: PathBuf,
}

/// What a check said.
struct Said {
    code: Option<i32>,
    text: String,
    told: String,
}

impl Said {
    fn holds(&self, code: i32, sentences: &[&str]) -> Result<()> {
        ensure!(self.code == Some(code), "exit code {code} is expected: {}", self.told);
        for sentence in sentences {
            ensure!(self.text.contains(sentence), "{sentence:?} is not said: {}", self.told);
        }
        Ok(())
    }
}

impl Place {
    fn new() -> Result<Self> {
        let place = Self { folder: tempfile::tempdir()?, clang: Toolchain::from_env()?.tool("clang")? };
        fs::create_dir_all(place.path("work"))?;
        Ok(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str, mode: u32) -> Result<PathBuf> {
        let path = self.path(name);
        fs::create_dir_all(path.parent().context("it has a folder")?)?;
        fs::write(&path, text)?;
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
        Ok(path)
    }

    fn command(&self, words: &[&str]) -> Result<Command> {
        let mut command = Command::new(distlto::binary()?);
        let inherited = std::env::vars_os().map(|(name, _)| name);
        for name in inherited.filter(|name| name.to_string_lossy().starts_with("DISTLTO_REMOTE")) {
            command.env_remove(name);
        }
        command.env("XDG_CONFIG_HOME", self.path("config")).current_dir(self.path("work"));
        command.args(["remote", "check"]).args(words);
        if !words.contains(&"--compiler") {
            command.arg("--compiler").arg(&self.clang);
        }
        Ok(command)
    }

    fn check(&self, words: &[&str]) -> Result<Said> {
        said(&mut self.command(words)?)
    }

    /// A compiler of one's own, with its linker.
    fn compiler(&self) -> Result<PathBuf> {
        let real = succeed(Command::new(&self.clang).arg("-print-prog-name=clang"))?;
        let (own, linker) = (self.path("bin/clang"), Toolchain::from_env()?.tool("ld.lld")?);
        fs::create_dir_all(self.path("bin"))?;
        fs::copy(String::from_utf8(real.stdout)?.trim(), &own)?;
        if !self.path("bin/ld.lld").exists() {
            std::os::unix::fs::symlink(linker, self.path("bin/ld.lld"))?;
        }
        Ok(own)
    }
}

fn said(command: &mut Command) -> Result<Said> {
    let output = capture(command)?;
    Ok(heard(command, &output))
}

fn heard(command: &Command, output: &Output) -> Said {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    Said { code: output.status.code(), text, told: told(command, output) }
}

fn server(faults: Faults) -> Result<Server> {
    let mut worker = Worker::new("w1", 1);
    worker.platform.push(("OSFamily".to_owned(), "linux".to_owned()));
    Server::start(Options { workers: vec![worker], ..Options::default() }, faults)
}

#[test]
fn a_good_server_is_good_again_and_again() -> Result<()> {
    let (place, server) = (Place::new()?, server(Faults::default())?);
    for executed in 1..=2 {
        place.check(&[&server.url(), "--remote-platform", "OSFamily=linux"])?.holds(
            0,
            &[
                "ok     it speaks versions 2.0 to 2.3",
                "ok     it names blobs by SHA-256",
                "ok     it takes blobs compressed by zstd",
                "ok     it executes actions",
                "ok     a small blob",
                "ok     a large blob",
                "ok     its action cache keeps results, and gives them back",
                "ok     the server and the worker and this machine agree on what time it is",
                "ok     worker w1 compiled a backend",
                "ok     the worker's result is in the action cache",
                "everything can be used as it is configured",
            ],
        )?;
        // What an earlier check had executed is not taken for a worker that can.
        ensure!(server.counts().executed.get("w1") == Some(&executed), "{:?}", server.counts());
    }
    Ok(())
}

#[test]
fn what_is_configured_is_checked() -> Result<()> {
    let (place, server) = (Place::new()?, server(Faults::default())?);
    place.check(&[])?.holds(2, &["there is no server to check"])?;
    place.write("work/distlto.toml", &format!("[remote]\ncache = \"{}\"\n", server.url()), 0o644)?;
    place.check(&[])?.holds(0, &["it executes actions, too", "its action cache keeps results"])?;
    place.check(&["--no-remote"])?.holds(2, &["there is no server to check"])?;
    place.write("work/distlto.toml", "[remote]\ncache-mod = 1\n", 0o644)?;
    place.check(&[])?.holds(3, &["distlto.toml:2:1: unknown field `cache-mod`", "`cache-mode`"])
}

#[test]
fn a_cache_alone() -> Result<()> {
    let faults = Faults { no_execution: true, no_zstd: true, ..Faults::default() };
    let (place, server) = (Place::new()?, server(faults)?);
    let words =
        ["WRONG  it executes no actions: use it by --remote-cache", "note   it takes no blobs compressed"];
    place.check(&[&server.url()])?.holds(1, &words)?;
    let words =
        ["ok     it executes no actions, and is not asked to", "ok     its action cache keeps results"];
    place.check(&["--remote-cache", &server.url()])?.holds(0, &words)?;
    server.change(|faults| faults.read_only_cache = true);
    let words = ["WRONG  you may not write its action cache: use --remote-cache-mode read-only"];
    place.check(&["--remote-cache", &server.url()])?.holds(1, &words)?;
    let words = ["--remote-cache", &server.url(), "--remote-cache-mode", "read-only"];
    place.check(&words)?.holds(0, &["ok     you may not write its action cache, and do not"])
}

#[test]
fn an_action_cache_that_workers_alone_write() -> Result<()> {
    let (place, server) = (Place::new()?, server(Faults { read_only_cache: true, ..Faults::default() })?);
    let words =
        ["note   you may not write its action cache: it keeps its workers' results", "ok     worker w1"];
    place.check(&[&server.url()])?.holds(0, &words)
}

#[test]
fn a_platform_that_no_worker_has() -> Result<()> {
    let (place, server) = (Place::new()?, server(Faults::default())?);
    let url = server.url();
    let words = [&url, "--remote-platform", "OSFamily=mac", "--remote-queue-time", "1s"];
    let expected = ["WRONG  no worker took a backend within 1 s", "asked for is a worker with OSFamily=mac"];
    place.check(&words)?.holds(1, &expected)?;
    server.change(|faults| faults.refuse_platforms = true);
    let expected = ["WRONG  the server refuses the action", "OSFamily=mac", "no worker has this platform"];
    place.check(&words)?.holds(1, &expected)
}

#[test]
fn workers_without_the_compiler_and_with_another_one() -> Result<()> {
    let (place, server) = (Place::new()?, server(Faults::default())?);
    let url = server.url();
    let rows: [(&str, &[&str]); 4] = [
        ("", &["WRONG  worker w1 has no compiler", "bin/clang, or no /bin/sh (exit code 127)", "not found"]),
        (
            "echo 'illegal option' >&2; exit 1",
            &["the compiler fails on worker w1, and not here", "illegal option"],
        ),
        (": > object.o", &["the compiler fails on worker w1", "exit code 1"]),
        (
            "REAL \"$@\" && printf x >> object.o",
            &["WRONG  worker w1 makes another object", "calls itself the same"],
        ),
    ];
    for (there, expected) in rows {
        let compiler = place.compiler()?;
        server.change(|faults| faults.hold = true);
        let before = server.counts().of("Execute");
        let mut command = place.command(&[
            &url,
            "--remote-queue-time",
            "10m",
            "--compiler",
            &compiler.to_string_lossy(),
        ])?;
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        // All that is done here is done when the action is queued: what changes from here on is the worker's.
        while server.counts().of("Execute") == before && child.try_wait()?.is_none() {
            thread::sleep(Duration::from_millis(10));
        }
        fs::remove_file(&compiler)?;
        if !there.is_empty() {
            let there = there.replace("REAL", &place.clang.to_string_lossy());
            place.write("bin/clang", &format!("#!/bin/sh\n{there}\n"), 0o755)?;
        }
        server.change(|faults| faults.hold = false);
        heard(&command, &child.wait_with_output()?).holds(1, expected)?;
    }
    Ok(())
}

#[test]
fn servers_that_are_not_there_or_lie() -> Result<()> {
    let place = Place::new()?;
    let mut server = server(Faults { wrong_bytes: u32::MAX, ..Faults::default() })?;
    place.check(&[&server.url()])?.holds(1, &["WRONG  a small blob that was uploaded does not come back"])?;
    let url = server.url();
    place.check(&[&format!("{url}/path")])?.holds(2, &["a path follows the host"])?;
    place.check(&["grpc://user:hush@h:1"])?.holds(2, &["credentials belong in a header"])?;
    place.check(&[&url, "--remote-instance", "other"])?.holds(1, &["GetCapabilities"])?;
    server.stop();
    place.check(&[&url])?.holds(1, &["Connection refused", "check that the server runs"])
}

#[test]
fn tls_with_a_root_of_ones_own_and_a_certificate_for_the_client() -> Result<()> {
    let place = Place::new()?;
    let (authority, clients) = (Authority::new()?, Authority::new()?);
    let (certificate, key) = authority.sign(&["127.0.0.1"])?;
    let certificates = Certificates { certificate, key, client_roots: Some(clients.root()) };
    let options = Options { certificates: Some(certificates), ..Options::default() };
    let server = Server::start(options, Faults::default())?;
    let root = place.write("work/root.pem", &authority.root(), 0o644)?;
    let (certificate, key) = clients.sign(&["me"])?;
    // Both in one file.
    let own = place.write("work/me.pem", &format!("{certificate}{key}"), 0o600)?;
    let (url, root, own) = (server.url(), root.to_string_lossy(), own.to_string_lossy());
    let all = ["--remote-tls-ca", &root, "--remote-tls-cert", &own];
    place.check(&[&[&*url], &all[..]].concat())?.holds(0, &["ok     worker worker compiled a backend"])?;
    place.check(&[&url])?.holds(1, &["UnknownIssuer"])?;
    place.check(&[&[&*url], &all[..2]].concat())?.holds(1, &["error: "])?;
    // A checkout may not say so, unless it is trusted.
    let text = format!("[remote]\nurl = \"{url}\"\ntls = {{ ca = \"root.pem\", cert = \"me.pem\" }}\n");
    place.write("work/distlto.toml", &text, 0o644)?;
    place.check(&[])?.holds(3, &["sets tls.ca, tls.cert, which a checkout may do only if you trust it"])?;
    let trusted = format!("trusted = [\"{}\"]\n", place.path("work").display());
    place.write("config/distlto/config.toml", &trusted, 0o600)?;
    place.check(&[])?.holds(0, &["ok     worker worker compiled a backend"])
}

#[test]
fn headers_and_helpers_are_used_and_never_shown() -> Result<()> {
    let place = Place::new()?;
    let authenticate = Some("authorization:Bearer hush-2".to_owned());
    let server = server(Faults { authenticate, ..Faults::default() })?;
    let url = server.url();
    let expect = |said: Said, code: i32, sentences: &[&str]| -> Result<()> {
        ensure!(!said.text.contains("hush"), "a secret is shown: {}", said.told);
        said.holds(code, sentences)
    };
    expect(place.check(&[&url])?, 1, &["UNAUTHENTICATED", "check the headers"])?;
    let header = "DISTLTO_REMOTE_HEADERS";
    let mut command = place.command(&[&url])?;
    expect(said(command.env(header, "authorization: Bearer hush-1"))?, 1, &["UNAUTHENTICATED"])?;
    expect(said(command.env(header, "Authorization: Bearer hush-2"))?, 0, &["ok     worker w1"])?;
    expect(said(command.env(header, "Bearer hush-2"))?, 2, &["DISTLTO_REMOTE_HEADERS: line 1 is no header"])?;

    // Its first answer is one that the server takes no more; the second one has expired, by its own account.
    let text = "#!/bin/sh\n\
        cat > request\n\
        echo run >> runs\n\
        printf '{\"headers\": {\"authorization\": [\"Bearer hush-%s\"]}, \"expires\": \"2020-01-01T00:00:00Z\"}' \
        $(wc -l < runs)\n";
    place.write("work/tools/helper", text, 0o755)?;
    let helped = place.check(&[&url, "--remote-credential-helper", "tools/helper"])?;
    expect(helped, 0, &["ok     worker w1 compiled a backend"])?;
    ensure!(fs::read_to_string(place.path("work/runs"))?.lines().count() == 2);
    ensure!(fs::read_to_string(place.path("work/request"))?.contains("\"uri\""));

    // The environment's headers are not for a server that a checkout alone names.
    place.write("work/distlto.toml", &format!("[remote]\nurl = \"{url}\"\n"), 0o644)?;
    let mut command = place.command(&[])?;
    command.env(header, "authorization: Bearer hush-2");
    expect(said(&mut command)?, 1, &["gets none of your credentials", "trusted = [", "UNAUTHENTICATED"])?;
    let user = format!("[credentials.\"{url}\".headers]\nauthorization = \"Bearer hush-2\"\n");
    place.write("config/distlto/config.toml", &user, 0o600)?;
    expect(place.check(&[])?, 0, &["ok     worker w1 compiled a backend"])
}
