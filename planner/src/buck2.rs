//! The front end for Buck2's distributed ThinLTO rules: their meta file in, their plans and lists out.
//!
//! The formats are those of the prelude's rules (`cxx/dist_lto`); `docs/design/buck2-files.md` describes them with every
//! difference from the stock tools. Two kinds of linker have each a meta file of their own: `gnu` and `darwin`.
//! The caller's `Runner` starts the linker.

pub mod darwin;
pub mod error;
pub mod final_list;
pub mod full_index;
pub mod gnu;
pub mod import_list;
pub mod index_directory;
pub mod json_text;
pub mod listing;
pub mod meta;
pub mod modules;
pub mod outputs;
pub mod places;
pub mod plan;
pub mod settle;
pub mod spelling;
pub mod split_units;
pub mod stale;
pub mod thin_link;
pub mod trace;
