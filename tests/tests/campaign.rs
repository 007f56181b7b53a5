//! A short run of all campaigns, with fixed seeds: random programs in every way, random edits, machines and
//! flags, options, thin links and backends for another build, servers that err, and services that are disturbed. `cargo xtask campaign` has the long one.

use anyhow::{Result, ensure};
use distlto_tests::campaign::edits::edits;
use distlto_tests::campaign::flags::flags;
use distlto_tests::campaign::formats::{self, Format};
use distlto_tests::campaign::index::index;
use distlto_tests::campaign::links::{Request, links};
use distlto_tests::campaign::options::options;
use distlto_tests::campaign::reads::reads;
use distlto_tests::campaign::remote;
use distlto_tests::campaign::service::service;
use distlto_tests::campaign::shared::shared;
use distlto_tests::campaign::store::store;
use distlto_tests::campaign::traces::traces;
use distlto_tests::campaign::ways::{DISTRIBUTE, DTLTO, GRAPH, NINJA, SERVED};
use distlto_tests::toolchain::{NEWEST, Toolchain, profile_dir};

const TOOLCHAIN: Toolchain = Toolchain { version: NEWEST };

fn request(name: &str, seed: u64, count: usize) -> Result<Request> {
    let directory = profile_dir()?.join("campaign").join(name);
    Ok(Request { seed, count, jobs: 2, directory, keep: false })
}

#[test]
fn random_programs_are_those_of_lld() -> Result<()> {
    let found = links(&request("links", 1, 30)?, TOOLCHAIN)?;
    println!("{}", found.table());
    ensure!(found.links == 30 && found.refused < 10, "few programs are linked: {found:?}");
    ensure!(found.counts(SERVED).compared > 15, "few programs are compared: {found:?}");
    for way in [DISTRIBUTE, DTLTO, SERVED, GRAPH, NINJA] {
        ensure!(found.counts(way).differences.is_empty(), "{}", found.messages.join("\n"));
    }
    Ok(())
}

#[test]
fn random_programs_are_those_of_an_older_lld() -> Result<()> {
    for version in [19, 16] {
        let toolchain = Toolchain { version };
        let found = links(&request(&format!("links-{version}"), 5_200_000, 8)?, toolchain)?;
        println!("{}", found.table());
        ensure!(found.links == 8 && found.refused < 4, "few programs are linked: {found:?}");
        for way in [SERVED, GRAPH, NINJA] {
            ensure!(found.counts(way).differences.is_empty(), "{}", found.messages.join("\n"));
        }
    }
    Ok(())
}

#[test]
fn a_relink_is_never_stale() -> Result<()> {
    let found = edits(&request("edits", 1, 15)?, TOOLCHAIN)?;
    println!("{}", found.table());
    for way in [SERVED, NINJA] {
        let counts = found.of(way);
        ensure!(counts.links == 18 && counts.stale.is_empty(), "{}", found.messages.join("\n"));
        ensure!(!way.keeps || counts.counted > 9, "backends of few links were counted: {found:?}");
        ensure!(counts.unequal == 0 && counts.mistold == 0, "{}", found.messages.join("\n"));
        ensure!(!way.keeps || counts.foretold > 9, "few dry runs were compared: {found:?}");
    }
    Ok(())
}

/// Edits after which lld numbers the values of a shard otherwise, calls members otherwise, leaves a stub beside a loaded
/// object, and links by itself what was a member of an archive.
#[test]
fn what_ran_is_what_changed_where_that_is_hard_to_see() -> Result<()> {
    for (seed, count) in [(66, 4), (119, 4), (133, 3), (400, 5), (20043, 1)] {
        let found = edits(&request(&format!("hard-{seed}"), seed, count)?, TOOLCHAIN)?;
        println!("{}", found.table());
        let counts = found.of(SERVED);
        ensure!(counts.counted == count && counts.unequal == 0, "{}", found.messages.join("\n"));
        let is_right = counts.stale.is_empty() && counts.mistold == 0 && found.of(NINJA).stale.is_empty();
        ensure!(is_right, "{}", found.messages.join("\n"));
    }
    Ok(())
}

#[test]
fn flags_and_machines_make_what_lld_makes() -> Result<()> {
    let found = flags(&request("flags", 1, 60)?, TOOLCHAIN)?;
    println!("{found}");
    ensure!(found.links > 50 && found.refused < 20, "{found}");
    let counts = found.ways.get(SERVED.name).copied().unwrap_or_default();
    ensure!(counts.same > 30 && counts.other == 0 && counts.failed == 0, "{}", found.messages.join("\n"));
    Ok(())
}

#[test]
fn options_of_the_help_do_what_they_do_without_distlto() -> Result<()> {
    let found = options(&request("options", 1, 15)?, TOOLCHAIN)?;
    println!("{found}");
    ensure!(found.links == 15 && found.served > 2 && found.refused > 2, "{found}");
    ensure!(found.messages.is_empty(), "{}", found.messages.join("\n"));
    Ok(())
}

#[test]
fn programs_of_other_formats_are_those_of_their_linkers() -> Result<()> {
    for format in [Format::Macho, Format::Wasm] {
        let name = format!("{format:?}").to_lowercase();
        let found = formats::links(&request(&name, 6_100_000, 6)?, TOOLCHAIN, format, 2)?;
        println!("{name}: {found}");
        ensure!(found.links == 18 && found.refused < 9 && found.ran > 12, "{found}");
        ensure!(found.messages.is_empty(), "{}", found.messages.join("\n"));
    }
    Ok(())
}

#[test]
fn another_build_gets_what_lld_and_clang_make() -> Result<()> {
    let found = index(&request("index", 1, 8)?, TOOLCHAIN)?;
    println!("{found}");
    ensure!(found.links == 24 && found.refused < 8 && found.backends > 12, "{found}");
    ensure!(found.messages.is_empty(), "{found}");
    Ok(())
}

#[test]
fn a_server_that_errs_never_makes_another_program() -> Result<()> {
    let found = remote::remote(&request("remote", 1, 8)?, TOOLCHAIN)?;
    println!("{found}");
    ensure!(found.links == 16, "{found}");
    remote::check(&found)
}

#[test]
fn what_a_link_reads_is_known() -> Result<()> {
    let found = reads(&request("reads", 1, 8)?, TOOLCHAIN)?;
    println!("{found}");
    ensure!(found.links > 100, "{found}");
    ensure!(found.messages.is_empty(), "{}", found.messages.join("\n"));
    let found = traces(&request("traces", 1, 6)?, TOOLCHAIN)?;
    ensure!(found.links == 6 && found.files > 120 && found.missing.is_empty(), "{found}");
    Ok(())
}

#[test]
fn a_whole_link_from_elsewhere_is_the_one_made_here() -> Result<()> {
    let found = shared(&request("shared", 1, 3)?, TOOLCHAIN)?;
    println!("{found}");
    ensure!(found.links == 81 && found.whole > 20, "{found}");
    ensure!(found.messages.is_empty(), "{}", found.messages.join("\n"));
    Ok(())
}

#[test]
fn links_at_once_on_one_store_are_those_of_lld() -> Result<()> {
    let found = store(&request("store", 1, 16)?, TOOLCHAIN)?;
    println!("{found}");
    ensure!(found.links == 16 && found.cleanings > 0, "{found}");
    ensure!(found.wrong.is_empty(), "{}", found.wrong.join("\n"));
    Ok(())
}

#[test]
fn what_is_done_to_a_service_never_makes_another_program() -> Result<()> {
    let found = service(&request("service", 1, 12)?, TOOLCHAIN)?;
    println!("{found}");
    ensure!(found.programs > 8 && found.links > 40, "{found}");
    ensure!(found.wrong.is_empty(), "{}", found.wrong.join("\n"));
    Ok(())
}
