//! The rules of `rules/bazel` in real Bazel, of two versions: what is built, what runs again, what caches have.
//!
//! Each version has one workspace and one server, as a server takes long to start: its test is a sequence of builds.
//! What ran is Bazel's own account.

use anyhow::Result;
use distlto_tests::bazel::{Version, program, table};

#[test]
fn the_older_one() -> Result<()> {
    check(Version::Four)
}

#[test]
fn the_newer_one() -> Result<()> {
    check(Version::Seven)
}

fn check(version: Version) -> Result<()> {
    let workspace = program::create(version, "table")?;
    for row in table::rows(version, &workspace)? {
        println!("{}: {}; had to: {:?}", row.change, row.actions.summary(), row.had_to);
        print!("{}", row.actions);
    }
    Ok(())
}
