//! Caches that speak plain HTTP: a real WebDAV server (Apache) in Bazel's layout, with TLS and credentials or without,
//! read-only, with damaged files, or silent.

use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use distlto_reapi::proto::{ActionResult, OutputFile};
use distlto_reapi::{Digest, DigestMessage};
use distlto_reapi_server::Authority;
use distlto_tests::distlto;
use distlto_tests::run::{capture, succeed};
use prost::Message;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::program::{Checkout, MODULES, Running, warnings};
use super::until;

const APACHE: &str = "/usr/sbin/apache2";
const MODULES_OF_APACHE: [&str; 9] = [
    "mpm_event",
    "authz_core",
    "authn_core",
    "authn_file",
    "authz_user",
    "auth_basic",
    "dav",
    "dav_fs",
    "ssl",
];

/// A server with a folder.
struct Apache {
    folder: TempDir,
    child: Child,
    port: u16,
    scheme: &'static str,
}

impl Drop for Apache {
    fn drop(&mut self) {
        // Killed, it would leave its own children.
        if let Some(id) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process(id, Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

impl Apache {
    /// A server that lets in whom `access` lets in, by TLS if there is an authority.
    fn start(access: &str, authority: Option<&Authority>) -> Result<Self> {
        ensure!(Path::new(APACHE).is_file(), "{APACHE} is missing; install it with `cargo xtask setup`");
        let folder = tempfile::tempdir()?;
        let path = folder.path();
        // It serves as another user if root starts it.
        fs::set_permissions(path, Permissions::from_mode(0o755))?;
        for name in ["root", "root/ac", "root/cas", "locks"] {
            fs::create_dir(path.join(name))?;
            fs::set_permissions(path.join(name), Permissions::from_mode(0o777))?;
        }
        fs::write(path.join("users"), USERS)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut text: String = MODULES_OF_APACHE
            .iter()
            .map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"))
            .collect();
        let place = path.display();
        text += &format!(
            "ServerName localhost\nServerRoot {place}\nListen 127.0.0.1:{port}\nPidFile {place}/pid\n\
             ErrorLog {place}/errors\nLogFormat \"%m %U %>s\" short\nCustomLog {place}/requests short\n\
             User www-data\nGroup www-data\nMutex file:{place}/locks\nDavLockDB {place}/locks/dav\n\
             DocumentRoot {place}/root\n<Directory {place}/root>\n  Dav On\n{access}\n</Directory>\n"
        );
        if let Some(authority) = authority {
            let (certificate, key) = authority.sign(&["localhost", "127.0.0.1"])?;
            fs::write(path.join("cert.pem"), certificate)?;
            fs::write(path.join("key.pem"), key)?;
            fs::write(path.join("root.pem"), authority.root())?;
            text += "SSLEngine on\nSSLCertificateFile cert.pem\nSSLCertificateKeyFile key.pem\n";
        }
        fs::write(path.join("conf"), text)?;
        let mut command = Command::new(APACHE);
        command.arg("-DFOREGROUND").arg("-f").arg(path.join("conf"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().context("cannot start Apache")?;
        let scheme = if authority.is_some() { "https" } else { "http" };
        let mut server = Self { folder, child, port, scheme };
        until(|| {
            ensure!(server.child.try_wait()?.is_none(), "Apache ended: {}", server.read("errors"));
            Ok(TcpStream::connect(("127.0.0.1", server.port)).is_ok())
        })?;
        Ok(server)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// How many requests of a method and a kind ended with a status, since the last question.
    fn requests(&self, of: &str, status: &str) -> Result<u64> {
        let text = self.read("requests");
        let counts = |line: &&str| line.starts_with(of) && line.ends_with(status);
        Ok(u64::try_from(text.lines().filter(counts).count())?)
    }

    fn forget_requests(&self) -> Result<()> {
        Ok(fs::write(self.path("requests"), "")?)
    }

    fn files(&self, kind: &str) -> Result<Vec<PathBuf>> {
        let entries = fs::read_dir(self.path("root").join(kind))?;
        let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        Ok(paths.into_iter().filter(|path| path.is_file()).collect())
    }

    /// A link with this cache and options.
    fn command(&self, checkout: &Checkout, options: &[&str]) -> Result<Command> {
        let url = format!("{}://localhost:{}/", self.scheme, self.port);
        checkout.link(&[&["-j1", "--remote-upload-time=1m", "--remote-cache", &url], options].concat())
    }

    fn linked(&self, options: &[&str]) -> Result<String> {
        let checkout = Checkout::new()?;
        Running::start(self.command(&checkout, options)?)?.right(&checkout)
    }
}

const OPEN: &str = "Require all granted";
const WHOLE: &str = "a cache has the whole link";
const READ_ONLY: &str = "<LimitExcept GET HEAD>\nRequire all denied\n</LimitExcept>";
const BASIC: &str = "AuthType Basic\nAuthName cache\nAuthUserFile users\nRequire valid-user";
/// `user` and the SHA-1 of `secret-word`, as Apache takes it.
const USERS: &str = "user:{SHA}jED9iczEtlwHO3MZFMLSzind1M0=\n";
/// Of `user:secret-word`.
const CREDENTIALS: &str = "Basic dXNlcjpzZWNyZXQtd29yZA==";

#[test]
fn a_link_puts_its_results_and_others_find_them() -> Result<()> {
    let server = Apache::start(OPEN, None)?;
    let said = server.linked(&[])?;
    ensure!(warnings(&said).is_empty(), "{said}");
    // The objects are in the results. One more lists them.
    ensure!(server.files("ac")?.len() as u64 == MODULES + 1 && server.files("cas")?.is_empty());
    server.forget_requests()?;
    let said = server.linked(&[])?;
    ensure!(warnings(&said).is_empty(), "{said}");
    let found = server.requests("GET /ac/", "200")?;
    ensure!(found == MODULES + 1 && server.requests("PUT", "")? == 0, "{}", server.read("requests"));
    // A mode, and an instance as a folder, which is not there.
    server.forget_requests()?;
    server.linked(&["--remote-cache-mode=read-only", "--remote-instance=other"])?;
    ensure!(server.requests("GET /other/ac/", "404")? == MODULES + 1 && server.requests("PUT", "")? == 0);
    Ok(())
}

#[test]
fn damaged_files_are_made_anew() -> Result<()> {
    let server = Apache::start(OPEN, None)?;
    server.linked(&[])?;
    let results = server.files("ac")?;
    fs::write(&results[0], "no result")?;
    fs::write(&results[1], "")?;
    fs::remove_file(&results[2])?;
    // One names no output by its content.
    let mut nameless = ActionResult::decode(&*fs::read(&results[3])?)?;
    nameless.output_files[0].digest = None;
    fs::write(&results[3], nameless.encode_to_vec())?;
    for result in &results[4..] {
        let mut bytes = fs::read(result)?;
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(result, bytes)?;
    }
    let said = server.linked(&[])?;
    ensure!(warnings(&said).iter().any(|line| line.contains("has other content")), "{said}");
    Ok(())
}

#[test]
fn tls_and_credentials() -> Result<()> {
    let authority = Authority::new()?;
    let server = Apache::start(BASIC, Some(&authority))?;
    let root = server.path("root.pem").display().to_string();
    let known = ["--remote-tls-ca", &root];
    for (options, credentials, words) in [
        (&known[..], Some(CREDENTIALS), None),
        (&known, None, Some("HTTP 401 Unauthorized")),
        (&known, Some("Basic d3Jvbmc6"), Some("HTTP 401 Unauthorized")),
        (&[], Some(CREDENTIALS), Some("certificate")),
    ] {
        let checkout = Checkout::new()?;
        let mut command = server.command(&checkout, &[options, &["--remote-retry-time=0s"]].concat())?;
        if let Some(credentials) = credentials {
            command.env("DISTLTO_REMOTE_HEADERS", format!("authorization: {credentials}"));
        }
        let said = Running::start(command)?.right(&checkout)?;
        let warned = warnings(&said);
        match words {
            None => ensure!(warned.is_empty() && server.files("ac")?.len() as u64 == MODULES + 1, "{said}"),
            Some(words) => ensure!(warned.len() == 1 && warned[0].contains(words), "{said}"),
        }
        ensure!(!said.contains("c2VjcmV0") && !said.contains("dXNlcj"), "{said}");
    }
    Ok(())
}

#[test]
fn a_cache_that_is_only_read_is_said_once() -> Result<()> {
    let server = Apache::start(READ_ONLY, None)?;
    let said = server.linked(&[])?;
    ensure!(warnings(&said).len() == 1 && said.contains("HTTP 403 Forbidden"), "{said}");
    ensure!(warnings(&server.linked(&["--remote-cache-mode=read-only"])?).is_empty());
    ensure!(server.files("ac")?.is_empty());
    Ok(())
}

#[test]
fn a_server_that_is_silent_or_gone_is_done_without() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let silent = listener.local_addr()?.to_string();
    for (server, words) in [(silent.as_str(), "15s"), ("127.0.0.1:9", "onnect")] {
        let checkout = Checkout::new()?;
        let url = format!("http://{server}");
        let options = ["-j1", "--remote-cache", &url, "--remote-retry-time=0s"];
        let said = Running::start(checkout.link(&options)?)?.right(&checkout)?;
        let warned = warnings(&said);
        ensure!(warned.len() == 1 && warned[0].contains(&url) && warned[0].contains(words), "{said}");
    }
    Ok(())
}

/// Serves a cache's folder over HTTP, so many files of it. Whoever asks for more hears nothing.
fn serve_some(folder: &Path, most: usize) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    let (folder, mut left) = (folder.to_owned(), most);
    std::thread::spawn(move || {
        let mut silent = Vec::new();
        for mut stream in listener.incoming().flatten() {
            // A client may have gone meanwhile.
            let _ = serve(&mut stream, &folder, &mut left);
            silent.extend((left == 0).then_some(stream));
        }
    });
    Ok(url)
}

/// Answers one request, unless it is for a file and none is left to be served.
fn serve(stream: &mut TcpStream, folder: &Path, left: &mut usize) -> io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines().map_while(io::Result::ok);
    let line = lines.next().unwrap_or_default();
    let _headers = lines.find(String::is_empty);
    let path = line.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
    let (status, body) = match fs::read(folder.join(path)) {
        Ok(_) if *left == 0 => return Ok(()),
        Ok(file) => ("200 OK", file),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    *left = left.saturating_sub(usize::from(status == "200 OK"));
    write!(stream, "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len())?;
    stream.write_all(&body)
}

#[test]
fn a_server_that_falls_silent_is_not_waited_for() -> Result<()> {
    let server = Apache::start(OPEN, None)?;
    server.linked(&[])?;
    // The list, and some objects.
    for most in [0, 1, 5] {
        let url = serve_some(&server.path("root"), most)?;
        let checkout = Checkout::new()?;
        // No test takes so long.
        let options =
            ["-j1", "-v", "--remote-retry-time=20m", "--remote-cache-mode=read-only", "--remote-cache", &url];
        let begun = Instant::now();
        let said = Running::start(checkout.link(&options)?)?.right(&checkout)?;
        ensure!(begun.elapsed() < Duration::from_secs(400) && warnings(&said).is_empty(), "{most}: {said}");
        ensure!(most > 1 || !said.contains("from the cache"), "{most}: {said}");
    }
    Ok(())
}

#[test]
fn the_check_tries_it() -> Result<()> {
    let server = Apache::start(OPEN, None)?;
    let checkout = Checkout::new()?;
    let mut command = checkout.command(distlto::binary()?)?;
    let url = format!("http://localhost:{}", server.port);
    command.args(["remote", "check", &url]);
    let output = capture(&mut command)?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success() && said.contains("plain HTTP"), "{said}{output:?}");
    ensure!(said.contains("its action cache keeps results, and gives them back"), "{said}");
    // A body without a byte is an error of nginx's.
    ensure!(server.requests("PUT /cas/e3b0c44298fc1c149afbf4c8996fb924", "")? == 0);
    Ok(())
}

/// A list of a link's objects only says what to fetch early.
/// What a server says of a whole link is compared, and its files go only where the line has them.
#[test]
fn a_whole_link_that_lies_is_made_here() -> Result<()> {
    let server = Apache::start(OPEN, None)?;
    let linked = || {
        let checkout = Checkout::new()?;
        let said = succeed(&mut server.command(&checkout, &["-v", "--share-links"])?)?.stderr;
        checkout.check_program()?;
        checkout.check_temporaries()?;
        Ok::<_, anyhow::Error>(String::from_utf8(said)?)
    };
    let said = linked()?;
    ensure!(warnings(&said).is_empty() && !said.contains(WHOLE), "{said}");
    let said = linked()?;
    ensure!(warnings(&said).is_empty() && said.contains(WHOLE), "{said}");
    let read = |path: &PathBuf| Ok::<_, anyhow::Error>(ActionResult::decode(&*fs::read(path)?)?);
    let entries = server.files("ac")?;
    let with = |name: &str| {
        let has_it = |path: &&PathBuf| read(path).is_ok_and(|entry| entry.output_files[0].path == name);
        entries.iter().find(has_it).with_context(|| format!("no entry has {name}"))
    };
    let (list, files) = (with("links")?, with("program")?);
    let (known, program) = (read(list)?, read(files)?);
    let text = String::from_utf8(known.output_files[0].contents.clone())?;
    let mut wrong =
        vec![text[..text.len() / 2].to_owned(), "{}".to_owned(), text.repeat(100), "[".repeat(1 << 20)];
    let reads = |more: &str| {
        text.replace("\"files\":{", &format!("\"files\":{{\"{more}\":\"{}/0\",", "0".repeat(64)))
    };
    wrong.extend(["m1.o", "/dev/zero", ".", "/nowhere", "\\u0000"].map(reads));
    for list_text in wrong {
        let mut entry = known.clone();
        entry.output_files[0].digest = Some(Digest::of(list_text.as_bytes()).message());
        entry.output_files[0].contents = list_text.into();
        fs::write(list, entry.encode_to_vec())?;
        let said = linked()?;
        ensure!(warnings(&said).is_empty() && !said.contains(WHOLE), "{said}");
    }
    let file = |name: &str| OutputFile { path: name.to_owned(), ..program.output_files[0].clone() };
    let there = |names: &[&str]| names.iter().map(|name| file(name)).collect::<Vec<_>>();
    let mut huge = program.output_files.clone();
    huge[0].digest.as_mut().context("a digest")?.size_bytes = 1 << 40;
    let mut flipped = program.output_files.clone();
    flipped[0].contents[1000] ^= 1;
    let wrong = [
        there(&["program", "../evil"]),
        there(&["program", "m1.o"]),
        there(&["evil"]),
        Vec::new(),
        huge,
        flipped,
    ];
    for output_files in wrong {
        // The link before this one has put it right.
        fs::write(list, known.encode_to_vec())?;
        let is_flipped =
            output_files.first().is_some_and(|file| file.contents != program.output_files[0].contents);
        fs::write(files, ActionResult { output_files, ..program.clone() }.encode_to_vec())?;
        let said = linked()?;
        ensure!(warnings(&said).is_empty() != is_flipped && !said.contains(WHOLE), "{said}");
    }
    let said = linked()?;
    ensure!(warnings(&said).is_empty() && said.contains(WHOLE), "{said}");
    Ok(())
}

#[test]
fn a_list_that_lies_costs_no_object() -> Result<()> {
    let server = Apache::start(OPEN, None)?;
    server.linked(&[])?;
    let is_list = |result: &ActionResult| result.output_files.iter().any(|file| file.path == "objects");
    let read = |path: &PathBuf| Ok::<_, anyhow::Error>(ActionResult::decode(&*fs::read(path)?)?);
    let results = server.files("ac")?;
    let mut lists = results.iter().filter(|path| read(path).is_ok_and(|result| is_list(&result)));
    let path = lists.next().context("the cache has a list")?;
    let truth = read(path)?.output_files[0].contents.clone();
    let entry = truth.len() / usize::try_from(MODULES)?;
    // The object of each module is said to be that of the next one.
    let mut turned = truth.clone();
    for (at, place) in turned.iter_mut().enumerate() {
        let is_object = (entry - 48..entry - 8).contains(&(at % entry));
        *place = if is_object { truth[(at + entry) % truth.len()] } else { *place };
    }
    let foreign = truth.iter().map(|byte| byte ^ 1).collect();
    for list in [turned, foreign, truth[..100].to_vec(), b"none".to_vec(), truth.repeat(1000)] {
        let mut result = read(path)?;
        result.output_files[0].digest = Some(Digest::of(&list).message());
        result.output_files[0].contents = list;
        fs::write(path, result.encode_to_vec())?;
        let said = server.linked(&["-v"])?;
        ensure!(warnings(&said).is_empty() && said.contains("14 from the cache"), "{said}");
    }
    Ok(())
}
