//! Reads index shards.

use std::borrow::Cow;
use std::collections::HashMap;

use miette::Diagnostic;
use thiserror::Error;

use crate::bitcode::{self, BitcodeError, Item, ModuleHash, SubBlock, Walk};
use crate::module::{hash, number};

pub(super) const REMEDY: &str =
    "run the thin link again; a shard is written only by a thin link that succeeds";

/// MODULE: the version of the format; from 2 on, a string table ends the file.
pub(super) const MODULE_VERSION: u64 = 1;
/// MODULE_STRTAB: a module's number and path, then its hash.
pub(super) const MODULE_ENTRY: u64 = 1;
pub(super) const MODULE_HASH: u64 = 2;
/// GLOBALVAL_SUMMARY: functions of the combined index.
pub(super) const COMBINED: u64 = 4;
pub(super) const COMBINED_PROFILE: u64 = 5;
/// Variables and aliases of it; the GUID that a value's number stands for.
pub(super) const VARIABLE: u64 = 6;
pub(super) const ALIAS: u64 = 8;
pub(super) const VALUE_GUID: u64 = 16;
pub(super) const SUMMARY_VERSION: u64 = 10;
pub(super) const SUMMARY_FLAGS: u64 = 20;
/// Where the references of a function begin, and where their number is.
pub(super) const FUNCTION_REFERENCES: usize = 9;
pub(super) const REFERENCE_COUNT: usize = 6;
/// Functions of a module's own summary, which no shard has.
pub(super) const PERMODULE: [u64; 3] = [1, 2, 19];

/// Index flag: a backend writes an empty object, since the linker did not load the module.
pub(super) const FLAG_SKIP: u64 = 2;
/// Index flags: modules may be split units, all of them or some.
pub(super) const FLAGS_SPLIT: u64 = 8 | 0x10;
/// Bit of a value's flags: only the declaration is imported.
pub(super) const DECLARATION: u64 = 1 << 10;

/// A module that a shard names: its own, or one that it imports from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardModule {
    /// The module id, as the linker saw it. Not always UTF-8.
    pub path: Vec<u8>,
    /// The hash of the module that the thin link read; `None` when it had none.
    pub hash: Option<ModuleHash>,
    /// Functions with bodies that the backend takes from this module; 0 when the version is not known.
    pub functions: u64,
    /// IR instructions of those functions; 0 when the version is not known.
    pub instructions: u64,
}

impl ShardModule {
    /// The path to show; bytes that are not UTF-8 are replaced.
    pub fn name(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.path)
    }
}

/// One index shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shard {
    /// The modules in the order of the shard's path table. Empty for a stub.
    pub modules: Vec<ShardModule>,
    /// The index flags: 1 dead-stripped, 2 skip, 8 split unit, 0x10 partially split, 0x40 dso-local,
    /// 0x80 whole-program visibility, 0x200 unified, 0x400 internalised.
    pub flags: u64,
    /// The version of the summary records.
    pub version: u64,
}

/// The work of a backend compilation, in IR instructions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Of the module itself.
    pub own_instructions: u64,
    /// Of the functions that it imports.
    pub imported_instructions: u64,
}

impl Cost {
    /// Both together.
    pub fn total(self) -> u64 {
        self.own_instructions.saturating_add(self.imported_instructions)
    }
}

/// The shard is of an LLVM with an unknown record layout, so its costs are unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error, Diagnostic)]
#[error("the shard's summaries are of version {found}; known are 9 (LLVM 14) to 14 (LLVM 23)")]
#[diagnostic(code(distlto::bad_input), help("take the modules' sizes in place of their costs"))]
pub struct UnknownVersion {
    /// The version in the shard.
    pub found: u64,
}

/// A module is not the one that the thin link read, or its hash could not be read.
#[derive(Debug, Error, Diagnostic)]
pub enum HashMismatch<E: std::error::Error + 'static> {
    /// The shard does not name its module.
    #[error("the shard is not that of module {own}, which its path table does not name; it names {named}")]
    #[diagnostic(
        code(distlto::bad_input),
        help("run the thin link again, and give each module its own shard")
    )]
    OtherShard {
        /// The module it should be for.
        own: String,
        /// The modules it names, at most three.
        named: String,
    },
    /// The module's content differs from the thin link's input.
    #[error(
        "module {module} has changed since the thin link: the shard records hash {recorded}, the module has {found}"
    )]
    #[diagnostic(code(distlto::bad_input), help("run the thin link again"))]
    Changed {
        /// The module id.
        module: String,
        /// The hash in the shard, 40 hexadecimal digits.
        recorded: String,
        /// The hash in the module, or `none`.
        found: String,
    },
    /// The shard records a hash for a module with a path that no link plan can name.
    #[error("module {module} of the shard has a path that is not UTF-8")]
    #[diagnostic(code(distlto::bad_input), help("rename the object, and run the thin link again"))]
    NotUtf8 {
        /// The module id, its other bytes replaced.
        module: String,
    },
    /// A module's hash could not be read.
    #[error("cannot check module {module}: {source}")]
    #[diagnostic(code(distlto::bad_input), help("make the module again, then run the thin link again"))]
    Unreadable {
        /// The module id.
        module: String,
        /// The error of the caller's reader.
        source: E,
    },
}

impl Shard {
    /// Whether this is the stub of a module that the linker did not load; its backend writes an empty object.
    pub fn is_stub(&self) -> bool {
        self.flags & FLAG_SKIP != 0
    }

    /// Returns the work of the backend compilation of module `own`, a module id.
    pub fn cost(&self, own: &str) -> Result<Cost, UnknownVersion> {
        if !bitcode::SUMMARY_VERSIONS.contains(&self.version) {
            return Err(UnknownVersion { found: self.version });
        }
        let mut cost = Cost::default();
        for module in &self.modules {
            let sum = if module.path == own.as_bytes() {
                &mut cost.own_instructions
            } else {
                &mut cost.imported_instructions
            };
            *sum = sum.saturating_add(module.instructions);
        }
        Ok(cost)
    }

    /// The modules that module `own` imports from, in the order of the path table.
    pub fn imported_from<'s>(&'s self, own: &'s str) -> impl Iterator<Item = &'s ShardModule> {
        self.modules.iter().filter(move |module| module.path != own.as_bytes())
    }
}

/// Checks, before a backend runs, that `own` and its imports are the thin link's inputs. For each hash in the shard,
/// `module_hash` must find the same one. A stub names no modules and always passes.
pub fn check_hashes<E: std::error::Error + 'static>(
    shard: &Shard,
    own: &str,
    module_hash: impl Fn(&str) -> Result<Option<ModuleHash>, E>,
) -> Result<(), HashMismatch<E>> {
    if !shard.is_stub() && !shard.modules.iter().any(|module| module.path == own.as_bytes()) {
        let mut names: Vec<_> = shard.modules.iter().take(3).map(ShardModule::name).collect();
        if names.is_empty() {
            names.push("no module".into());
        }
        return Err(HashMismatch::OtherShard { own: own.to_owned(), named: names.join(", ") });
    }
    for module in &shard.modules {
        let Some(recorded) = module.hash else { continue };
        let Ok(path) = std::str::from_utf8(&module.path) else {
            return Err(HashMismatch::NotUtf8 { module: module.name().into_owned() });
        };
        let found = module_hash(path)
            .map_err(|source| HashMismatch::Unreadable { module: path.to_owned(), source })?;
        if found != Some(recorded) {
            return Err(HashMismatch::Changed {
                module: path.to_owned(),
                recorded: hexadecimal(recorded),
                found: found.map_or_else(|| "none".to_owned(), hexadecimal),
            });
        }
    }
    Ok(())
}

fn hexadecimal(hash: ModuleHash) -> String {
    hash.iter().map(|word| format!("{word:08x}")).collect()
}

/// Reads an index shard. Time and memory are bounded by the length of `bytes`.
pub fn read(bytes: &[u8]) -> Result<Shard, BitcodeError> {
    read_stream(bytes).map_err(|error| BitcodeError { remedy: REMEDY, ..error })
}

/// The modules that a shard names, without the sizes of their functions: takes a small part of [`read`]'s time.
pub fn modules(bytes: &[u8]) -> Result<Vec<ShardModule>, BitcodeError> {
    let names = || {
        let mut top = bitcode::open(bytes)?;
        let mut reader = ShardReader { names_only: true, ..ShardReader::default() };
        while let Item::Block(block) = top.next(&mut reader.walk)? {
            if block.id == bitcode::MODULE_BLOCK {
                reader.index(block)?;
                break;
            }
        }
        Ok(reader.modules)
    };
    names().map_err(|error: BitcodeError| BitcodeError { remedy: REMEDY, ..error })
}

/// State during the walk. Module numbers are those of the path table, which need not be in order.
#[derive(Default)]
struct ShardReader {
    walk: Walk,
    format: u64,
    modules: Vec<ShardModule>,
    numbers: HashMap<u64, usize>,
    summary: Option<Summary>,
    /// Whether summaries are passed over.
    names_only: bool,
}

/// The summary's head.
#[derive(Clone, Copy)]
struct Summary {
    version: u64,
    flags: u64,
}

fn read_stream(bytes: &[u8]) -> Result<Shard, BitcodeError> {
    let mut top = bitcode::open(bytes)?;
    let mut reader = ShardReader::default();
    let mut index = false;
    let mut string_table = false;
    while let Item::Block(block) = top.next(&mut reader.walk)? {
        match block.id {
            bitcode::MODULE_BLOCK if index => return Err(block.error("a second module", "an index shard")),
            bitcode::MODULE_BLOCK => {
                index = true;
                reader.index(block)?;
            }
            bitcode::STRTAB_BLOCK => string_table = true,
            _ => {}
        }
    }
    if reader.format >= 2 && !string_table {
        return Err(top.error("the end of the file", "a string table (the file may be truncated)"));
    }
    match reader.summary {
        Some(Summary { version, flags }) => Ok(Shard { modules: reader.modules, flags, version }),
        None => Err(top.error("the end of the file", "an index shard's summary")),
    }
}

impl ShardReader {
    fn index(&mut self, block: SubBlock<'_>) -> Result<(), BitcodeError> {
        let mut block = block.open(&self.walk);
        loop {
            match block.next(&mut self.walk)? {
                Item::Block(inner) if inner.id == bitcode::MODULE_STRTAB_BLOCK => self.paths(inner)?,
                Item::Block(inner) if inner.id == bitcode::GLOBALVAL_SUMMARY_BLOCK && !self.names_only => {
                    self.summary(inner)?;
                }
                Item::Record(MODULE_VERSION) => self.format = number(&mut block)?,
                Item::End => return Ok(()),
                _ => {}
            }
        }
    }

    fn paths(&mut self, block: SubBlock<'_>) -> Result<(), BitcodeError> {
        let mut block = block.open(&self.walk);
        loop {
            match block.next(&mut self.walk)? {
                Item::Record(MODULE_ENTRY) => {
                    let number = number(&mut block)?;
                    let path = block.bytes()?;
                    if self.numbers.insert(number, self.modules.len()).is_some() {
                        return Err(block.error(format!("module number {number} again"), "each number once"));
                    }
                    self.modules.push(ShardModule { path, hash: None, functions: 0, instructions: 0 });
                }
                Item::Record(MODULE_HASH) => {
                    let hash = hash(&mut block)?;
                    let Some(module) = self.modules.last_mut() else {
                        return Err(block.error("a hash before any module", "a module's path"));
                    };
                    module.hash = Some(hash).filter(|hash| *hash != [0; 5]);
                }
                Item::End => return Ok(()),
                _ => {}
            }
        }
    }

    fn summary(&mut self, block: SubBlock<'_>) -> Result<(), BitcodeError> {
        let mut block = block.open(&self.walk);
        let mut head = Summary { version: 0, flags: 0 };
        loop {
            let item = block.next(&mut self.walk)?;
            let known = bitcode::SUMMARY_VERSIONS.contains(&head.version);
            match item {
                Item::Record(SUMMARY_VERSION) => head.version = number(&mut block)?,
                Item::Record(SUMMARY_FLAGS) => head.flags = number(&mut block)?,
                Item::Record(COMBINED | COMBINED_PROFILE) if known => {
                    // Value, module, flags, instructions, and more.
                    let mut fields = [0; 4];
                    if block.operands(&mut fields)? < fields.len() {
                        return Err(block.error("a shorter record", "a function's summary"));
                    }
                    let [_, number, flags, instructions] = fields;
                    let Some(module) = self.numbers.get(&number).map(|&index| &mut self.modules[index])
                    else {
                        let found = format!("a function of module number {number}");
                        return Err(block.error(found, "a number of the module path table"));
                    };
                    if flags & DECLARATION == 0 {
                        module.functions += 1;
                        module.instructions = module.instructions.saturating_add(instructions);
                    }
                }
                Item::Record(code) if known && PERMODULE.contains(&code) => {
                    return Err(block.error("the summary of an object", "an index shard"));
                }
                Item::End => {
                    self.summary = Some(head);
                    return Ok(());
                }
                _ => {}
            }
        }
    }
}
