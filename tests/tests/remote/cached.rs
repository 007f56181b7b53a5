//! Results of an action cache that are damaged, gone, or of no use are recognised and made anew.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Result, anyhow, ensure};
use distlto_reapi_server::{Break, Counts, Faults, Options, Server};
use tempfile::TempDir;

use super::faults::{Fault, all_streams, cut, each, is_used_up};
use super::program::{Checkout, MODULES, Running, warnings};

/// A folder of a server whose action cache has every result of the program.
fn filled() -> Result<TempDir> {
    static FILLED: OnceLock<Result<TempDir, String>> = OnceLock::new();
    let fill = || -> Result<TempDir> {
        let folder = tempfile::tempdir()?;
        let server = Server::start(on(&folder), Faults::default())?;
        Checkout::new()?.linked(&server, &[])?;
        let counts = server.counts();
        let calls: u64 = counts.calls.values().sum();
        println!("{calls} calls for {MODULES} actions, {} bytes uploaded", counts.blob_bytes_uploaded);
        ensure!(counts.blobs_uploaded_again == 0 && calls < 10 * MODULES, "{counts:#?}");
        Ok(folder)
    };
    let filled = FILLED.get_or_init(|| fill().map_err(|error| format!("{error:#}")));
    let filled = filled.as_ref().map_err(|error| anyhow!("{error}"))?;
    let folder = tempfile::tempdir()?;
    for part in ["blobs", "results"] {
        copy_files(&filled.path().join(part), &folder.path().join(part))?;
    }
    Ok(folder)
}

/// Options of a server that has what is in the folder.
fn on(folder: &TempDir) -> Options {
    Options { state: Some(folder.path().to_owned()), ..Options::default() }
}

fn copy_files(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

#[test]
fn the_second_link_executes_and_uploads_nothing() -> Result<()> {
    let folder = filled()?;
    let server = Server::start(on(&folder), Faults::default())?;
    let said = Checkout::new()?.linked(&server, &["--remote-fallback=never"])?;
    let counts = server.counts();
    ensure!(warnings(&said).is_empty(), "{said}");
    ensure!(counts.all_executed() == 0 && counts.blobs_uploaded == 0, "{counts:#?}");
    ensure!(counts.cache_hits == MODULES, "{counts:#?}");
    Ok(())
}

/// A link that asks a server for objects alone, and has it find all of them.
fn finds_all(server: &Server) -> Result<()> {
    let checkout = Checkout::new()?;
    let link = checkout.link(&["-v", "--remote-cache", &server.url()])?;
    let said = Running::start(link)?.right(&checkout)?;
    ensure!(warnings(&said).is_empty() && said.contains("14 from the cache"), "{said}");
    Ok(())
}

#[test]
fn results_of_an_engine_serve_machines_without_one() -> Result<()> {
    let server = Server::start(Options::default(), Faults::default())?;
    let said = Checkout::new()?.linked(&server, &["--remote-cache", &server.url()])?;
    ensure!(warnings(&said).is_empty() && server.counts().all_executed() > 0, "{said}");
    finds_all(&server)
}

#[test]
fn a_cache_that_wants_actions_gets_them() -> Result<()> {
    let faults = Faults { no_execution: true, wants_actions: true, ..Faults::default() };
    let server = Server::start(Options::default(), faults)?;
    let checkout = Checkout::new()?;
    let link = checkout.link(&["--remote-cache", &server.url()])?;
    let said = Running::start(link)?.right(&checkout)?;
    ensure!(warnings(&said).is_empty(), "{said}");
    finds_all(&server)
}

/// An object of 32 bits: whole, and for another machine.
const FOREIGN: &str = "\u{7f}ELF\u{1}\u{1}\u{1}\0\0\0\0\0\0\0\0\0\u{1}\0\u{3}\0\u{1}\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\u{34}\0\0\0\0\0\0\0\0\0\0\0";

fn cut_reads(faults: &mut Faults, how: Break) {
    all_streams(faults);
    faults.cut_reads = cut(4, 700, how);
}

/// How many results are wrong.
const WRONG: u32 = 5;

fn poison(faults: &mut Faults, with: &str) {
    (faults.poison_results, faults.poison) = (WRONG, with.to_owned());
}

fn reads_were_cut(left: &Faults, _: &Counts) -> bool {
    is_used_up(left.cut_reads)
}

fn results_were_poisoned(left: &Faults, _: &Counts) -> bool {
    left.poison_results == 0
}

/// The results are used all the same.
const ON_THE_WAY: &[Fault] = &[
    // Only one: the client asks once more, and must not be lied to again.
    Fault::new("wrong bytes once", |faults| faults.wrong_bytes = 1, |left, _| left.wrong_bytes == 0),
    Fault::new("cut streams", |faults| cut_reads(faults, Break::Status), reads_were_cut),
    Fault::new("streams that end early", |faults| cut_reads(faults, Break::End), reads_were_cut),
    Fault::new(
        "streams cut with their connection",
        |faults| cut_reads(faults, Break::Connection),
        reads_were_cut,
    ),
];

/// The actions run anew.
const OF_NO_USE: &[Fault] = &[
    Fault::new("blobs are gone", |faults| faults.hollow_results = 5, |left, _| left.hollow_results == 0),
    Fault::new("empty objects", |faults| poison(faults, ""), results_were_poisoned),
    Fault::new("objects of another format", |faults| poison(faults, "no object"), results_were_poisoned),
    Fault::new("objects for another machine", |faults| poison(faults, FOREIGN), results_were_poisoned),
    Fault::new("no outputs", |faults| faults.bare_results = 5, |left, _| left.bare_results == 0),
];

#[test]
fn what_a_cache_has_is_checked() -> Result<()> {
    each(ON_THE_WAY, |fault| check(fault, false))?;
    each(OF_NO_USE, |fault| check(fault, true))
}

/// Links on a cache with a fault, which makes actions run anew or not; the next link finds everything.
fn check(fault: &Fault, anew: bool) -> Result<()> {
    let folder = filled()?;
    let (said, counts) = fault.link(on(&folder))?;
    let ran = counts.all_executed() + counts.of("UpdateActionResult");
    ensure!((ran > 0) == anew, "{said}\n{counts:#?}");
    // A wrong object is named with its module; what else a cache lacks is said once.
    let named = warnings(&said).iter().filter(|line| line.contains("the cached result is dropped")).count();
    ensure!(named <= WRONG as usize && warnings(&said).len() - named <= 1, "{said}");
    // Another server: calls of a race that was lost may still come to the first one.
    let server = Server::start(on(&folder), Faults::default())?;
    let again = Checkout::new()?.linked(&server, &[])?;
    let more = server.counts();
    ensure!(more.of("Execute") == 0 && more.cache_hits == MODULES, "{again}\n{more:#?}");
    Ok(())
}

/// Damage that lasts: nothing of it is used, and that is told.
#[test]
fn a_server_that_always_lies_is_not_believed() -> Result<()> {
    for faults in [
        Faults { wrong_bytes: u32::MAX, ..Faults::default() },
        Faults { hollow_results: u32::MAX, ..Faults::default() },
        Faults { poison_results: u32::MAX, poison: FOREIGN.to_owned(), ..Faults::default() },
    ] {
        let folder = filled()?;
        let server = Server::start(on(&folder), faults)?;
        Checkout::new()?.linked(&server, &[])?;
    }
    Ok(())
}
