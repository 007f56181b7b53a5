//! All tests of the planner with real toolchains and damaged inputs, in one program, since linking is the cost.

mod buck2;
mod clang_options;
mod codegen_flags;
mod digests;
mod dtlto;
mod graph;
mod module;
mod options;
mod processor;
mod shard;
mod working_directory;
