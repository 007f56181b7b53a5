//! Writes the manual pages of distlto into a directory: `cargo run --example manual -- DIR`. `cargo xtask install` calls it.

mod pages;

use std::error::Error;
use std::path::PathBuf;

use clap::CommandFactory;
use distlto::arguments::Cli;
use distlto_prepare::write::write_if_changed;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args_os().nth(1).ok_or("usage: manual DIR")?;
    for page in pages::pages(Cli::command())? {
        write_if_changed(&PathBuf::from(&directory).join(page.name), &page.text)?;
    }
    Ok(())
}
