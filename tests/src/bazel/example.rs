//! `examples/bazel`, as its README says: by a WORKSPACE in the older version, by modules in the newer one.

use anyhow::Result;

use super::Version;
use super::workspace::Workspace;
use crate::toolchain::repository;

/// Makes a workspace of it.
pub fn create(version: Version, name: &str) -> Result<Workspace> {
    let workspace = Workspace::create(version, name)?;
    workspace.copy(&repository().join("examples/bazel"))?;
    let rules = repository().join("rules/bazel").display().to_string();
    if version == Version::Four {
        workspace.edit("WORKSPACE", "../../rules/bazel", &rules)?;
        return Ok(workspace);
    }
    let workspace = workspace.by_modules();
    workspace.edit("MODULE.bazel", "../../rules/bazel", &rules)?;
    Ok(workspace)
}
