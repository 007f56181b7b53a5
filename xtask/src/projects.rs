//! The third-party programs that `demo`, `bench` and `compare` build, with where their sources come from.
//!
//! Sources are those of the crates of `tests/third-party` and of Debian's source packages. They are copied, since they
//! are edited.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cargo_metadata::MetadataCommand;

use crate::debian::{self, SourcePackage};
use crate::project::{Project, copy};
use crate::shell::{self, root};

/// CMake itself. Another release has other lines to edit, and other figures.
const CMAKE: SourcePackage = SourcePackage {
    name: "cmake",
    version: "3.25.1-1",
    archive: "cmake_3.25.1.orig.tar.gz",
    sha256: "1c511d09516af493694ed9baf13c55947a36389674d657a2d5e0ccedc6b291d8",
};

/// libgit2 and its command-line program, 232 C files of very different sizes.
pub fn libgit2(dir: &Path) -> Result<Project> {
    let sources = dir.join("libgit2");
    copy(&sources_of("libgit2-sys")?.join("libgit2"), &sources)?;
    Ok(Project {
        name: "libgit2's git2",
        sources,
        build: dir.join("build"),
        target: "git2",
        options: &[
            "-DUSE_HTTPS=OFF",
            "-DUSE_SSH=OFF",
            "-DBUILD_TESTS=OFF",
            "-DBUILD_SHARED_LIBS=OFF",
            "-DREGEX_BACKEND=builtin",
            "-DUSE_BUNDLED_ZLIB=ON",
            "-DUSE_HTTP_PARSER=builtin",
            "-DBUILD_CLI=ON",
        ],
        // A function that calls nothing.
        leaf: ("src/util/varint.c", "\tuintmax_t val = c & 127;\n"),
        wide: ("src/util/errors.c", "\tif ((threadstate = threadstate_get()) == NULL)\n\t\treturn true;\n"),
    })
}

/// leveldb with the test of its tables, which does not depend on how fast a machine is as others do.
pub fn leveldb(dir: &Path) -> Result<Project> {
    let sources = dir.join("leveldb/sources");
    copy(&sources_of("leveldb-sys")?.join("deps/leveldb-1.22"), &sources)?;
    Ok(Project {
        name: "leveldb's table_test",
        sources,
        build: dir.join("leveldb/build"),
        target: "table_test",
        options: &["-DLEVELDB_BUILD_BENCHMARKS=OFF", "-DCMAKE_POLICY_VERSION_MINIMUM=3.5"],
        leaf: ("table/filter_block.cc", "void FilterBlockBuilder::GenerateFilter() {\n"),
        wide: ("util/coding.cc", "void PutFixed32(std::string* dst, uint32_t value) {\n"),
    })
}

/// CMake's program, C++ with bundled C libraries, some 650 modules.
pub fn cmake(dir: &Path) -> Result<Project> {
    let dir = dir.join("cmake");
    let sources = dir.join("sources");
    debian::unpack(&CMAKE, &dir, &sources)?;
    Ok(Project {
        name: "CMake",
        sources,
        build: dir.join("build"),
        target: "bin/cmake",
        options: &[
            "-DBUILD_TESTING=OFF",
            "-DCMAKE_USE_OPENSSL=OFF",
            "-DBUILD_CursesDialog=OFF",
            "-DBUILD_QtDialog=OFF",
        ],
        leaf: ("Source/cmAddCompileDefinitionsCommand.cxx", "  cmMakefile& mf = status.GetMakefile();\n"),
        wide: ("Source/cmStringAlgorithms.cxx", "  auto start = str.begin();\n"),
    })
}

/// Where the projects of benches lie.
pub fn bench_directory() -> PathBuf {
    shell::target().join("bench")
}

/// The unpacked sources of a crate that `tests/third-party` names.
pub fn sources_of(name: &str) -> Result<PathBuf> {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("tests/third-party/Cargo.toml"))
        .other_options(vec!["--locked".to_owned()])
        .exec()?;
    let package = metadata.packages.iter().find(|package| *package.name == name);
    let manifest = &package.with_context(|| format!("tests/third-party names no {name}"))?.manifest_path;
    Ok(manifest.parent().context("a manifest has a directory")?.as_std_path().to_owned())
}
