//! What `cargo xtask bazel` prints: `table`, what runs again after each kind of change, and what the native feature
//! refuses; `remote`, the example on a real engine; `compare SOURCES BUILD FILE LINE`, a program of someone else's in three ways.

use std::env;

use anyhow::{Result, bail, ensure};
use distlto_reapi_server::{Faults, Options, Server};
use distlto_tests::bazel::compare::{Subject, Way, measure};
use distlto_tests::bazel::log::Actions;
use distlto_tests::bazel::remote::Remote;
use distlto_tests::bazel::table::Table;
use distlto_tests::bazel::{Version, example, mistakes, native, program};
use distlto_tests::engine;

fn main() -> Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.as_slice() {
        [what] if what == "table" => table(),
        [what] if what == "remote" => remote(),
        [what, sources, build, file, line] if what == "compare" => compare(&Subject {
            sources: sources.into(),
            build: build.into(),
            edited: (file.clone(), line.clone()),
        }),
        _ => bail!("`table`, `remote`, or `compare` with sources, build directory, file and line"),
    }
}

/// The example on an engine.
fn remote() -> Result<()> {
    println!("| after | Bazel | ran on the engine | from its cache | ran here |\n|---|---|---|---|---|");
    let mut told = String::new();
    for version in [Version::Four, Version::Seven] {
        let example = example::create(version, "remote")?;
        let mut remote = Remote::new(&example, engine::url()?)?;
        remote.all()?;
        let tell = |after: &str, actions: &Actions| {
            let ran = actions.summary_of(|one| !one.cached && one.runner == "remote");
            let cached = actions.summary_of(|one| one.cached);
            let here = actions.summary_of(|one| !one.cached && one.runner != "remote");
            println!("| {after} | {} | {ran} | {cached} | {here} |", version.name());
        };
        remote.rows.iter().for_each(|row| tell(row.after, &row.actions));
        tell("`clean`, `fission = True` for //app", &remote.packed()?);
        tell("`bazel test //tests/...`", &remote.tested()?.1);
        told = remote.undeclared()?;
    }
    println!("\nWith a header that no target declares, the newer one says:\n{told}");
    Ok(())
}

/// Ratios to the link in process.
fn compare(subject: &Subject) -> Result<()> {
    let mut first = None;
    println!(
        "| way | link, cold | after an edit | actions after it | disk cache | added by the edit |\n|---|---|---|---|---|---|"
    );
    for way in Way::ALL {
        let figures = measure(subject, way)?;
        let times = [figures.cold.as_secs_f64(), figures.edit.as_secs_f64()];
        let bytes = figures.cache.map(|bytes| bytes as f64);
        let base = first.get_or_insert_with(|| (times, bytes, figures.said.clone()));
        assert_eq!(base.2, figures.said, "the programs differ");
        let ratio = |figure: f64, base: f64| format!("{:.2}", figure / base);
        println!(
            "| {way:?} | {} | {} | {} | {} | {} |",
            ratio(times[0], base.0[0]),
            ratio(times[1], base.0[1]),
            figures.ran.summary(),
            ratio(bytes[0], base.1[0]),
            ratio(bytes[1], base.1[1]),
        );
        if let Some(same) = &figures.same {
            println!("\n{way:?} beside one lld with the same words and files: {same}");
            ensure!(same.equal == same.objects && same.symbols, "the backends or symbols are not lld's");
        }
        eprintln!("{way:?}: cold {:.1} s, edit {:.1} s, cache {:?} bytes", times[0], times[1], figures.cache);
    }
    Ok(())
}

fn table() -> Result<()> {
    let server = Server::start(Options::default(), Faults::default())?;
    let older = program::create(Version::Four, "shown")?;
    let newer = program::create(Version::Seven, "shown")?;
    let mut tables = [Table::new(&older), Table::new(&newer)];
    for table in &mut tables {
        table.all(&server.url())?;
    }
    println!("| after | the older Bazel | the newer one |\n|---|---|---|");
    for (older, newer) in tables[0].rows.iter().zip(&tables[1].rows) {
        println!("| {} | {} | {} |", older.change, older.actions.summary(), newer.actions.summary());
    }
    println!("\n| input of Bazel's own thin_lto | without it | with it |\n|---|---|---|");
    for kind in native::KINDS {
        let outcome = native::outcome(&newer, kind)?;
        let told =
            |said: Option<String>| said.map_or_else(|| "builds".to_owned(), |said| said.replace('|', " "));
        println!("| {kind} | {} | {} |", told(outcome.without), told(outcome.with));
    }
    for mistake in &mistakes::MISTAKES {
        println!("\nWith {}, the newer one says:\n{}", mistake.name, mistake.tried(&newer)?);
    }
    Ok(())
}
