//! The harness of tests that cross crates: programs that are compiled, linked in several ways, run and compared.
//!
//! A case is a file below `cases/` (see `cases/README.md`); `tests/programs.rs` runs them all. The other files of
//! `tests/` use the same parts to check how a link behaves: what it runs again, and what it leaves when it fails.

pub mod bazel;
pub mod browser;
pub mod build;
pub mod campaign;
pub mod case;
pub mod check;
pub mod distlto;
pub mod engine;
pub mod example;
pub mod folder;
pub mod formatted;
pub mod plugin;
pub mod program;
pub mod project;
pub mod run;
pub mod sliced;
pub mod small_disk;
pub mod store;
pub mod terminal;
pub mod third_party;
pub mod toolchain;
pub mod way;
