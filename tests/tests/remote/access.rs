//! Who may do what: caches that are only read, platforms, credentials, two links at once, servers that are only a cache.

use std::fs;

use anyhow::{Context, Result, ensure};
use distlto_reapi_server::{Authority, Certificates, Faults, Options, Server};
use distlto_record::run::{self, EngineUse, Lookups};
use distlto_tests::run::capture;

use super::program::{Checkout, MODULES, Running, refused, warnings};

#[test]
fn a_platform_that_nobody_has_is_not_waited_for() -> Result<()> {
    let server = Server::start(Options::default(), Faults::default())?;
    // In any longer time this machine's own slot could do everything.
    let options = ["--remote-platform=OSFamily=none", "--remote-queue-time=0s"];
    let said = Checkout::new()?.linked(&server, &options)?;
    ensure!(server.counts().all_executed() == 0 && warnings(&said).len() <= 1, "{said}");
    let checkout = Checkout::new()?;
    let never = [&options[..], &["--remote-fallback=never"]].concat();
    let (code, said) = refused(checkout.remote_link(&server.url(), &never)?, &checkout)?;
    ensure!(code == 7 && said.contains("queued") && said.contains("platform"), "{code}: {said}");
    Ok(())
}

#[test]
fn a_cache_alone_is_filled_and_read() -> Result<()> {
    let server = Server::start(Options::default(), Faults { no_execution: true, ..Faults::default() })?;
    let url = server.url();
    // With what the link's record has of the server, the last uploads too.
    let link = |mode: &str| -> Result<(String, EngineUse)> {
        let checkout = Checkout::new()?;
        let words = ["--remote-upload-time=1m", "--remote-cache", &url, "--remote-cache-mode", mode];
        let said = Running::start(checkout.link(&words)?)?.right(&checkout)?;
        let files = run::list(&distlto_tests::distlto::state_dir(&checkout.path.join("program"))?)?;
        let recorded = run::read(files.last().context("the link left a record")?)?;
        Ok((said, recorded.engines.into_iter().next().context("it used a server")?))
    };
    let (said, _) = link("read-only")?;
    ensure!(warnings(&said).is_empty() && server.counts().blobs_uploaded == 0, "{said}");
    let (_, uploaded) = link("read-write")?;
    let filled = server.counts();
    let bytes = uploaded.bytes_up;
    ensure!(bytes == filled.blob_bytes_uploaded && bytes > 0, "{bytes} of {filled:#?}");
    ensure!(filled.of("UpdateActionResult") == MODULES + 1 && filled.cache_hits == 0, "{filled:#?}");
    // And the list of them.
    ensure!(filled.of("GetActionResult") == 2 * (MODULES + 1), "each is looked up once: {filled:#?}");
    for mode in ["read-only", "read-write"] {
        let Lookups { asked, found, .. } = link(mode)?.1.lookups;
        ensure!((asked, found) == (MODULES, MODULES), "{asked} {found}");
    }
    let read = server.counts();
    ensure!(read.blobs_uploaded == filled.blobs_uploaded, "{read:#?}");

    // Here is room for one job, and the server answers none before it has all of them.
    let checkout = Checkout::new()?;
    server.change(|faults| faults.gather_lookups = 8);
    let said = Running::start(checkout.link(&["-j1", "-v", "--remote-cache", &url])?)?.right(&checkout)?;
    ensure!(warnings(&said).is_empty() && said.contains("14 from the cache"), "{said}");

    // It executes nothing, which is told.
    let said = Checkout::new()?.linked(&server, &[])?;
    ensure!(warnings(&said).len() == 1 && said.contains("executes no actions"), "{said}");
    Ok(())
}

/// Whether the server says so before, or when it is asked to keep something.
#[test]
fn an_action_cache_that_may_not_be_written_is_read() -> Result<()> {
    let denied = "PERMISSION_DENIED:UpdateActionResult:always".parse().expect("a refusal");
    for faults in [
        Faults { read_only_cache: true, ..Faults::default() },
        Faults { refuse: vec![denied], ..Faults::default() },
    ] {
        let server = Server::start(Options::default(), faults)?;
        let said = Checkout::new()?.linked(&server, &[])?;
        ensure!(warnings(&said).len() == 1 && server.counts().all_executed() > 0, "{said}");
        ensure!(said.contains("action cache"), "{said}");
    }
    Ok(())
}

#[test]
fn two_links_at_once() -> Result<()> {
    let server = Server::start(Options::default(), Faults::default())?;
    let checkouts = [Checkout::new()?, Checkout::new()?];
    let start = |checkout: &Checkout| Running::start(checkout.remote_link(&server.url(), &[])?);
    let links = checkouts.iter().map(start).collect::<Result<Vec<_>>>()?;
    for (link, checkout) in links.into_iter().zip(&checkouts) {
        let said = link.right(checkout)?;
        ensure!(warnings(&said).is_empty(), "{said}");
    }
    Ok(())
}

#[test]
fn certificates_and_credentials() -> Result<()> {
    let authority = Authority::new()?;
    let (certificate, key) = authority.sign(&["127.0.0.1"])?;
    let certificates = Some(Certificates { certificate, key, client_roots: Some(authority.root()) });
    let options = Options { certificates, ..Options::default() };
    let wanted = Some("authorization: Bearer s3cr3t".to_owned());
    let server = Server::start(options, Faults { authenticate: wanted, ..Faults::default() })?;
    let checkout = Checkout::new()?;
    let (certificate, key) = authority.sign(&["client"])?;
    fs::write(checkout.path.join("root.pem"), authority.root())?;
    fs::write(checkout.path.join("client.pem"), format!("{certificate}{key}"))?;
    let tls = ["--remote-tls-ca=root.pem", "--remote-tls-cert=client.pem", "--remote-fallback=never"];
    let (code, said) = refused(checkout.remote_link(&server.url(), &tls)?, &checkout)?;
    ensure!(code == 7 && said.contains("UNAUTHENTICATED"), "{code}: {said}");
    let (code, said) = refused(checkout.remote_link(&server.url(), &tls[2..])?, &checkout)?;
    ensure!(code == 7 && said.contains("certificate"), "{code}: {said}");
    let mut link = checkout.remote_link(&server.url(), &[&tls[..], &["-v"]].concat())?;
    link.env("DISTLTO_REMOTE_HEADERS", "authorization: Bearer s3cr3t");
    let output = capture(&mut link)?;
    checkout.check()?;
    let said = [output.stdout, output.stderr].concat();
    ensure!(!String::from_utf8_lossy(&said).contains("s3cr3t"), "a secret is told");
    ensure!(server.counts().all_executed() > 0);
    Ok(())
}

/// What is wrong with it is told by distlto, and not below what a linker says of its distributor.
#[test]
fn configuration_is_read_before_the_linker_starts() -> Result<()> {
    let check = |words: &[&str], file: &str, code: i32, why: &str| -> Result<()> {
        let checkout = Checkout::new()?;
        fs::write(checkout.path.join("distlto.toml"), file)?;
        let (found, said) = refused(checkout.link(words)?, &checkout)?;
        ensure!(found == code && said.contains(why), "exit code {found}: {said}");
        ensure!(!said.contains("ld.lld") && !said.contains("DTLTO"), "{said}");
        Ok(())
    };
    for way in [&[][..], &["--plain-shards"]] {
        let with = |words: &[&'static str]| [way, words].concat();
        check(&with(&[]), "[remote]\ncache-mod = 1\n", 3, "distlto.toml:2:1: unknown field `cache-mod`")?;
        check(&with(&["--remote=http://h:1"]), "", 2, "http://h:1 speaks plain HTTP")?;
        check(
            &with(&[]),
            "[remote]\nurl = \"https://h:1\"\n",
            2,
            "https://h:1 speaks plain HTTP, so it is a cache that executes nothing: name it by --remote-cache",
        )?;
        check(&with(&["--remote=grpcs://h:1", "--remote-tls-ca=none.pem"]), "", 3, "none.pem: ")?;
    }
    Ok(())
}
