//! Random programs, linked in every way and compared with lld: the campaigns of `cargo xtask campaign`.
//!
//! A seed decides a program (`generate`), which is data (`model`); `source` and `assembly` write its texts, `line` its link
//! line, and a `workspace` builds it. `links` compares ways of linking one line; `edits` a relink with a fresh link,
//! `remote` a link with a server that errs with one without, `service` what users do to links with quiet ones, `reads` relinks after changes of what a link reads with fresh links, `traces` the record of a link with strace, `store` many links at once on one store with lld alone, `index` thin links and backends of foreign builds with lld and
//! clang. `flags` links for random machines with random flags, `options` with options of the linker's help, `stock` compares tools for Buck2 with its own.

mod arrange;
mod assembly;
mod backends;
mod change;
pub mod edits;
mod flag_groups;
pub mod flags;
mod foretold;
pub mod formats;
mod generate;
pub mod index;
mod line;
pub mod links;
mod model;
mod option_values;
pub mod options;
mod outcome;
pub mod random;
mod read_parts;
pub mod reads;
pub mod remote;
mod server_faults;
pub mod service;
pub mod shared;
mod source;
pub mod stock;
pub mod store;
pub mod traces;
pub mod ways;
pub mod windows;
mod workspace;
