//! Turns the inputs of a linker into files that a ThinLTO backend can open.
//!
//! Knows file formats (bitcode, native objects, FatLTO, archives of every kind) and one rule for names;
//! knows nothing of links and plans. The small tools that Buck2's rules call beside it (copy, archive mapper, merger of
//! statistics) are here too, since they need nothing else.

pub mod archive;
pub mod archive_mapper;
pub mod blobs;
pub mod command;
pub mod compiler_statistics;
pub mod copy;
pub mod damage;
pub mod digest;
pub mod error;
pub mod exit;
pub mod file_status;
pub mod frame;
pub mod input;
pub mod io_error;
pub mod json;
pub mod json_lines;
pub mod kind;
pub mod layout;
pub mod leftovers;
pub mod limits;
pub mod lock;
pub mod member;
pub mod message;
pub mod mutex;
pub mod names;
mod native;
pub mod private;
pub mod prune;
pub mod regular;
pub mod sealed;
pub mod share;
mod staged_directory;
pub mod text;
pub mod threads;
pub mod universal;
pub mod unpack;
pub mod warning;
pub mod write;
