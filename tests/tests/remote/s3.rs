//! Buckets of S3, on a real server that checks signatures.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::thread;

use anyhow::{Result, ensure};
use distlto_tests::distlto;
use distlto_tests::run::capture;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use tempfile::TempDir;

use super::program::{Checkout, MODULES, Running, warnings};

const KEY: &str = "key-of-the-tests";
const SECRET: &str = "secret-of-the-tests";

/// A server with the bucket `objects`, until the process ends.
struct Server {
    folder: TempDir,
    url: String,
}

impl Server {
    fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::create_dir(folder.path().join("objects"))?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let url = format!("http://{}", listener.local_addr()?);
        let root = folder.path().to_owned();
        thread::spawn(move || serve(listener, &root));
        Ok(Self { folder, url })
    }

    /// A command with the account of this server.
    fn give(&self, command: &mut Command, secret: Option<&str>) {
        command.env("AWS_ENDPOINT_URL", &self.url);
        if let Some(secret) = secret {
            command.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", secret);
        }
    }

    fn linked(&self, secret: Option<&str>, options: &[&str]) -> Result<String> {
        let checkout = Checkout::new()?;
        let mut link = checkout
            .link(&[&["-j1", "--remote-upload-time=1m", "--remote-retry-time=0s"], options].concat())?;
        self.give(&mut link, secret);
        Running::start(link)?.right(&checkout)
    }

    /// How many files a folder of the bucket has.
    fn files(&self, folder: &str) -> Result<u64> {
        let folder = self.folder.path().join("objects").join(folder);
        Ok(if folder.is_dir() { fs::read_dir(folder)?.count() as u64 } else { 0 })
    }
}

/// Serves the folders of `root` as buckets.
fn serve(listener: TcpListener, root: &Path) -> Result<()> {
    let files = FileSystem::new(root).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    let mut builder = S3ServiceBuilder::new(files);
    builder.set_auth(SimpleAuth::from_single(KEY, SECRET));
    let service = builder.build();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        loop {
            let (stream, _) = listener.accept().await?;
            let service = service.clone();
            tokio::spawn(async move {
                let server = auto::Builder::new(TokioExecutor::new());
                // A client may end as it likes.
                let _ = server.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    })
}

const BUCKET: &str = "--remote-cache=s3://objects/of/the/team";

#[test]
fn links_share_a_bucket() -> Result<()> {
    let server = Server::start()?;
    let said = server.linked(Some(SECRET), &[BUCKET])?;
    ensure!(warnings(&said).is_empty(), "{said}");
    let files = || -> Result<_> { Ok((server.files("of/the/team/ac")?, server.files("of/the/team/cas")?)) };
    // The objects are in the results. One more lists them.
    ensure!(files()? == (MODULES + 1, 0), "{:?}: {said}", files()?);
    let said = server.linked(Some(SECRET), &["-v", BUCKET])?;
    ensure!(warnings(&said).is_empty() && said.contains("14 from the cache"), "{said}");
    ensure!(files()? == (MODULES + 1, 0), "{:?}: {said}", files()?);
    Ok(())
}

#[test]
fn a_bucket_without_the_right_key_is_done_without() -> Result<()> {
    let server = Server::start()?;
    for (secret, count) in [(None, 2), (Some("another secret"), 1)] {
        let said = server.linked(secret, &[BUCKET])?;
        let warned = warnings(&said);
        ensure!(warned.len() == count && said.contains("HTTP 403 Forbidden"), "{said}");
        ensure!(warned.iter().all(|line| line.contains("s3://objects/of/the/team")), "{said}");
        ensure!(secret.is_some() || warned[0].contains("AWS_ACCESS_KEY_ID"), "{said}");
        ensure!(!said.contains("Signature=") && !said.contains("another secret"), "{said}");
    }
    ensure!(server.files("of")? == 0);
    Ok(())
}

#[test]
fn the_check_tries_a_bucket() -> Result<()> {
    let server = Server::start()?;
    let checkout = Checkout::new()?;
    let mut command = checkout.command(distlto::binary()?)?;
    server.give(command.args(["remote", "check", "s3://objects"]), Some(SECRET));
    let output = capture(&mut command)?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{said}{output:?}");
    ensure!(said.contains("its action cache keeps results, and gives them back"), "{said}");
    Ok(())
}
