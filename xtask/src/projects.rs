//! The third-party programs that `demo`, `bench` and `compare` build, with where their sources come from.
//!
//! Sources are those of the crates of `tests/third-party` and of Debian's source packages. They are copied, since they
//! are edited.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cargo_metadata::MetadataCommand;
use clap::ValueEnum;
use distlto_prepare::write::write_if_changed;

use crate::debian::{self, SourcePackage};
use crate::install::files;
use crate::project::{Project, copy};
use crate::shell::{self, root};

/// The programs, as they are named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Name {
    /// libgit2's command-line program, 232 modules of C.
    Libgit2,
    /// leveldb's test of its tables, a small program of C++.
    Leveldb,
    /// protobuf's compiler, 125 modules of C++, from Debian's source package.
    Protoc,
    /// Patterns that a crate of Rust parses and leveldb's C++ keeps: a program of both languages.
    RustAndCpp,
    /// CMake itself, some 650 modules of C++ and C, from Debian's source package.
    Cmake,
}

impl Name {
    /// Has its sources be in a directory.
    pub fn open(self, dir: &Path) -> Result<Project> {
        match self {
            Self::Libgit2 => libgit2(dir),
            Self::Leveldb => leveldb(dir),
            Self::Protoc => protoc(dir),
            Self::RustAndCpp => rust_and_cpp(dir),
            Self::Cmake => cmake(dir),
        }
    }
}

/// CMake itself. Another release has other lines to edit, and other figures.
const CMAKE: SourcePackage = SourcePackage {
    name: "cmake",
    version: "3.25.1-1",
    archive: "cmake_3.25.1.orig.tar.gz",
    sha256: "1c511d09516af493694ed9baf13c55947a36389674d657a2d5e0ccedc6b291d8",
};

/// protobuf, of which its compiler is linked.
const PROTOBUF: SourcePackage = SourcePackage {
    name: "protobuf",
    version: "3.21.12-3+deb12u1",
    archive: "protobuf_3.21.12.orig.tar.gz",
    sha256: "930c2c3b5ecc6c9c12615cf5ad93f1cd6e12d0aba862b572e076259970ac3a53",
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
        apart: ("src/util/vector.c", "\tcmp = v->_cmp ? v->_cmp : strict_comparison;\n"),
        header: (
            "src/util/vector.h",
            "GIT_INLINE(void *) git_vector_get(const git_vector *v, size_t position)\n{\n",
        ),
    })
}

/// leveldb with the test of its tables, which does not depend on how fast a machine is as others do.
fn leveldb(dir: &Path) -> Result<Project> {
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
        apart: (
            "util/coding.cc",
            "const char* GetVarint64Ptr(const char* p, const char* limit, uint64_t* value) {\n",
        ),
        header: ("util/coding.h", "inline uint32_t DecodeFixed32(const char* ptr) {\n"),
    })
}

/// Rust and C++ in one program: leveldb, and the parser of Rust's regular expressions.
fn rust_and_cpp(dir: &Path) -> Result<Project> {
    let dir = dir.join("rust-and-cpp");
    let sources = dir.join("sources");
    fs::create_dir_all(&sources)?;
    let own = root().join("xtask/rust-and-cpp");
    // They are edited in the repository too.
    for file in files(&own)? {
        write_if_changed(&sources.join(file.strip_prefix(&own)?), &fs::read(&file)?)?;
    }
    copy(&sources_of("leveldb-sys")?.join("deps/leveldb-1.22"), &sources.join("leveldb"))?;
    copy(&sources_of("regex-syntax")?.join("src"), &sources.join("regex-syntax/src"))?;
    Ok(Project {
        name: "patterns of Rust in leveldb",
        sources,
        build: dir.join("build"),
        target: "patterns",
        options: &[
            "-DLEVELDB_BUILD_TESTS=OFF",
            "-DLEVELDB_BUILD_BENCHMARKS=OFF",
            "-DCMAKE_POLICY_VERSION_MINIMUM=3.5",
        ],
        leaf: ("main.cc", "  leveldb_options_t* options = leveldb_options_create();\n"),
        wide: ("leveldb/util/coding.cc", "void PutFixed32(std::string* dst, uint32_t value) {\n"),
        apart: (
            "leveldb/util/coding.cc",
            "const char* GetVarint64Ptr(const char* p, const char* limit, uint64_t* value) {\n",
        ),
        header: ("leveldb/util/coding.h", "inline uint32_t DecodeFixed32(const char* ptr) {\n"),
    })
}

/// CMake's program, C++ with bundled C libraries, some 650 modules.
fn cmake(dir: &Path) -> Result<Project> {
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
        apart: ("Source/cmStringAlgorithms.cxx", "  // If argument is empty, it is an empty list.\n"),
        header: ("Source/cmLinkItem.h", "  // No configuration is always optimized.\n"),
    })
}

/// protobuf's compiler, C++ of some 125 modules that import much from one another.
fn protoc(dir: &Path) -> Result<Project> {
    let dir = dir.join("protoc");
    let sources = dir.join("sources");
    debian::unpack(&PROTOBUF, &dir, &sources)?;
    Ok(Project {
        name: "protoc",
        sources,
        build: dir.join("build"),
        target: "protoc-3.21.12.0",
        options: &["-Dprotobuf_BUILD_TESTS=OFF", "-Dprotobuf_WITH_ZLIB=OFF"],
        leaf: (
            "src/google/protobuf/compiler/ruby/ruby_generator.cc",
            "std::string LabelForField(const FieldDescriptor* field) {\n",
        ),
        wide: ("src/google/protobuf/io/printer.cc", "void Printer::Outdent() {\n"),
        apart: ("src/google/protobuf/io/printer.cc", "  auto save = format;\n"),
        header: (
            "src/google/protobuf/compiler/cpp/helpers.h",
            "inline bool HasHasbit(const FieldDescriptor* field) {\n",
        ),
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
