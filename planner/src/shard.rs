//! Index shards: the thin link's decisions for one module, as recorded in its `.thinlto.bc`.
//!
//! A shard names the module, the modules it imports from with their hashes, and the size of each function. Does not
//! depend on files or on the modules themselves. Record numbers are those of `LLVMBitCodes.h`; layouts were compared
//! with `llvm-bcanalyzer` for shards of lld 14, 15, 16, 19 and 22.

mod canonical;
mod complete;
mod own;
mod read;
mod rename;

pub use canonical::{Canonical, Renamed, canonical, decisions, digest, digest_without_paths, is_equivalent};
pub use complete::complete;
pub use own::{OwnSymbol, OwnSymbols, guid, own_symbols};
pub use read::{Cost, HashMismatch, Shard, ShardModule, UnknownVersion, check_hashes, modules, read};
pub use rename::{rename, rename_all};
