//! What `cargo xtask bazel table` prints: what runs again after each kind of change, and what the native feature refuses.

use anyhow::Result;
use distlto_reapi_server::{Faults, Options, Server};
use distlto_tests::bazel::table::Table;
use distlto_tests::bazel::{Version, mistakes, native, program};

fn main() -> Result<()> {
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
