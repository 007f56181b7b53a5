//! Results of an action cache that are damaged, gone, or of no use are recognised and made anew.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Result, anyhow, ensure};
use distlto_reapi_server::{Break, Cut, Faults, Options, Server};
use tempfile::TempDir;

use crate::program::{Checkout, MODULES, warnings};

/// A server whose action cache has every result of the program, in a folder of its own.
fn filled(faults: Faults) -> Result<(TempDir, Server)> {
    static FILLED: OnceLock<Result<TempDir, String>> = OnceLock::new();
    let fill = || -> Result<TempDir> {
        let folder = tempfile::tempdir()?;
        let server = serve(&folder, Faults::default())?;
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
    let server = serve(&folder, faults)?;
    Ok((folder, server))
}

/// A server with what the folder has.
fn serve(folder: &TempDir, faults: Faults) -> Result<Server> {
    Server::start(Options { state: Some(folder.path().to_owned()), ..Options::default() }, faults)
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
    let (_folder, server) = filled(Faults::default())?;
    let said = Checkout::new()?.linked(&server, &["--remote-fallback=never"])?;
    let counts = server.counts();
    ensure!(warnings(&said).is_empty(), "{said}");
    ensure!(counts.all_executed() == 0 && counts.blobs_uploaded == 0, "{counts:#?}");
    ensure!(counts.cache_hits == MODULES, "{counts:#?}");
    Ok(())
}

struct Fault {
    name: &'static str,
    set: fn(&mut Faults),
    left: fn(&Faults) -> u32,
    /// Whether the actions run anew whose results are concerned.
    anew: bool,
}

/// An object of 32 bits: whole, and for another machine.
const FOREIGN: &str = "\u{7f}ELF\u{1}\u{1}\u{1}\0\0\0\0\0\0\0\0\0\u{1}\0\u{3}\0\u{1}\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\u{34}\0\0\0\0\0\0\0\0\0\0\0";

const FAULTS: &[Fault] = &[
    Fault {
        name: "wrong bytes once",
        // Only one: the client asks once more, and to be lied to again would be of no use.
        set: |faults| faults.wrong_bytes = 1,
        left: |faults| faults.wrong_bytes,
        anew: false,
    },
    Fault {
        name: "blobs are gone",
        set: |faults| faults.hollow_results = 5,
        left: |faults| faults.hollow_results,
        anew: true,
    },
    Fault {
        name: "empty objects",
        set: |faults| faults.poison_results = 5,
        left: |faults| faults.poison_results,
        anew: true,
    },
    Fault {
        name: "objects of another format",
        set: |faults| (faults.poison_results, faults.poison) = (5, "no object".to_owned()),
        left: |faults| faults.poison_results,
        anew: true,
    },
    Fault {
        name: "objects for another machine",
        set: |faults| (faults.poison_results, faults.poison) = (5, FOREIGN.to_owned()),
        left: |faults| faults.poison_results,
        anew: true,
    },
    Fault {
        name: "no outputs",
        set: |faults| faults.bare_results = 5,
        left: |faults| faults.bare_results,
        anew: true,
    },
    Fault {
        name: "cut streams",
        set: |faults| {
            faults.batch_limit = 1500;
            faults.cut_reads = Some(Cut { streams: 4, after: 700, how: Break::Status });
        },
        left: |faults| faults.cut_reads.map_or(0, |cut| cut.streams),
        anew: false,
    },
    Fault {
        name: "streams that end early",
        set: |faults| {
            faults.batch_limit = 1500;
            faults.cut_reads = Some(Cut { streams: 4, after: 700, how: Break::End });
        },
        left: |faults| faults.cut_reads.map_or(0, |cut| cut.streams),
        anew: false,
    },
    Fault {
        name: "streams cut with their connection",
        set: |faults| {
            faults.batch_limit = 1500;
            faults.cut_reads = Some(Cut { streams: 4, after: 700, how: Break::Connection });
        },
        left: |faults| faults.cut_reads.map_or(0, |cut| cut.streams),
        anew: false,
    },
];

#[test]
fn what_a_cache_has_is_checked() -> Result<()> {
    let mut wrong = Vec::new();
    for Fault { name, set, left, anew } in FAULTS {
        let mut faults = Faults::default();
        set(&mut faults);
        let (folder, server) = filled(faults)?;
        let checked = Checkout::new()?.linked(&server, &[]).and_then(|said| {
            let mut after = Faults::default();
            server.change(|faults| after = faults.clone());
            let counts = server.counts();
            ensure!(left(&after) == 0, "the fault was not met: {counts:#?}");
            let ran = counts.all_executed() + counts.of("UpdateActionResult");
            ensure!((ran > 0) == *anew, "{said}\n{counts:#?}");
            ensure!(warnings(&said).len() <= 1, "{said}");
            // What was of no use is replaced. Asked of another server: calls of a race that was lost may still come to this one.
            drop(server);
            let server = serve(&folder, Faults::default())?;
            let again = Checkout::new()?.linked(&server, &[])?;
            let more = server.counts();
            ensure!(more.of("Execute") == 0 && more.cache_hits == MODULES, "{again}\n{more:#?}");
            Ok(())
        });
        if let Err(error) = checked {
            wrong.push(format!("{name}: {error:#}"));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n\n"));
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
        let (_folder, server) = filled(faults)?;
        Checkout::new()?.linked(&server, &[])?;
    }
    Ok(())
}
