//! Where cargo has unpacked the crates of `tests/third-party`, whose C and C++ sources are compiled as test data.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};
use cargo_metadata::MetadataCommand;

use crate::toolchain::repository;

/// The unpacked sources of one crate of `tests/third-party/Cargo.toml`.
pub fn sources(name: &str) -> Result<PathBuf> {
    static CRATES: OnceLock<Result<BTreeMap<String, PathBuf>, String>> = OnceLock::new();
    let crates = CRATES.get_or_init(|| list().map_err(|error| format!("{error:#}")));
    match crates {
        Ok(crates) => crates
            .get(name)
            .cloned()
            .with_context(|| format!("tests/third-party/Cargo.toml names no crate {name}")),
        Err(error) => bail!("{error}; `cargo xtask setup` fetches the third-party sources"),
    }
}

fn list() -> Result<BTreeMap<String, PathBuf>> {
    let metadata = MetadataCommand::new()
        .manifest_path(repository().join("tests/third-party/Cargo.toml"))
        .other_options(vec!["--locked".to_owned()])
        .exec()?;
    Ok(metadata
        .packages
        .into_iter()
        .filter_map(|package| {
            let dir = package.manifest_path.parent()?.to_owned();
            Some((package.name.to_string(), dir.into_std_path_buf()))
        })
        .collect())
}
