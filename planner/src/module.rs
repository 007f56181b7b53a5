//! Properties of a bitcode object: target, content hash, kind of summary, size.
//!
//! Reads only module-level records and the summary, and skips all code by block lengths. Does not depend on files or
//! links. Record numbers are those of `LLVMBitCodes.h`; the differences between producers were measured with clang 14
//! to 22, `opt`, `llvm-as` and rustc 1.95.

use crate::bitcode::{self, BitcodeError, Block, Item, ModuleHash, SubBlock, Walk};

const REMEDY: &str = "compile the object again; if it is complete, it is not bitcode of LLVM 14 or later";

/// MODULE: the version of the format; from 2 on, names are in a string table at the end of the file.
const MODULE_VERSION: u64 = 1;
const MODULE_TRIPLE: u64 = 2;
const MODULE_SOURCE_FILENAME: u64 = 16;
const MODULE_HASH: u64 = 17;
/// GLOBALVAL_SUMMARY: functions with call edges, with hotness, with relative frequencies.
const PERMODULE: u64 = 1;
const PERMODULE_PROFILE: u64 = 2;
const PERMODULE_RELBF: u64 = 19;
const SUMMARY_VERSION: u64 = 10;

/// Flags of a function: LLVM never inlines it, or always.
const FUNCTION_NOINLINE: u64 = 1 << 4;
const FUNCTION_ALWAYSINLINE: u64 = 1 << 5;

/// A link's treatment of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummaryKind {
    /// Compiled on its own with imports: `-flto=thin`, `-funified-lto` of either kind, any rustc bitcode.
    ThinLto,
    /// Merged with others: `-flto` for ELF and COFF.
    FullLto,
    /// Merged with others, as there is no summary: `-emit-llvm` and `llvm-as` output, `-flto` for Darwin.
    None,
}

/// One bitcode object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// The target triple; empty if not recorded.
    pub triple: String,
    /// The source file as the compiler was given it; empty if not recorded.
    pub source_name: String,
    /// The hash of the content; `None` when the producer recorded none (`opt -module-summary`) or zeros.
    pub hash: Option<ModuleHash>,
    /// A link's treatment of the object. For a split unit: of its first module.
    pub summary: SummaryKind,
    /// Whether the object holds two modules, with the second for regular LTO (`-fsplit-lto-unit` with type metadata).
    pub split_unit: bool,
    /// IR instructions of all functions in the summary, for a split unit in that of its first module. `None` without a
    /// summary of a known layout ([`bitcode::SUMMARY_VERSIONS`]).
    pub instructions: Option<u64>,
    /// Whether no other module can import a function, because all are `noinline`, as -O0 leaves them. `None` without
    /// functions with known flags.
    pub noinline: Option<bool>,
}

/// Reads raw bitcode, or bitcode in Darwin's wrapper. Time and memory are bounded by the length of `bytes`.
pub fn read(bytes: &[u8]) -> Result<Module, BitcodeError> {
    read_stream(bytes).map_err(|error| BitcodeError { remedy: REMEDY, ..error })
}

/// [`Module::source_name`] alone, for which a small part of the file is read.
pub fn source_name(bytes: &[u8]) -> Result<String, BitcodeError> {
    let mut top = bitcode::open(bytes)?;
    let mut walk = Walk::default();
    while let Item::Block(block) = top.next(&mut walk)? {
        if block.id != bitcode::MODULE_BLOCK {
            continue;
        }
        let mut block = block.open(&walk);
        loop {
            match block.next(&mut walk)? {
                Item::Record(MODULE_SOURCE_FILENAME) => return Ok(text(block.bytes()?)),
                Item::End => return Ok(String::new()),
                _ => {}
            }
        }
    }
    Err(top.error("the end of the file", "a module"))
}

/// State during the walk.
#[derive(Default)]
struct ModuleReader {
    walk: Walk,
    modules: u32,
    version: u64,
    string_table: bool,
    triple: Vec<u8>,
    source_name: Vec<u8>,
    hash: Option<ModuleHash>,
    summary: Option<SummaryKind>,
    instructions: Option<u64>,
    inlining: Inlining,
}

/// How many functions may be inlined.
#[derive(Default)]
struct Inlining {
    never: u64,
    sometimes: u64,
}

fn read_stream(bytes: &[u8]) -> Result<Module, BitcodeError> {
    let mut top = bitcode::open(bytes)?;
    let mut reader = ModuleReader::default();
    while let Item::Block(block) = top.next(&mut reader.walk)? {
        match block.id {
            bitcode::MODULE_BLOCK => reader.module(block)?,
            bitcode::STRTAB_BLOCK => reader.string_table = true,
            _ => {}
        }
    }
    if reader.modules == 0 {
        return Err(top.error("the end of the file", "a module"));
    }
    if reader.version >= 2 && !reader.string_table {
        return Err(top.error("the end of the file", "a string table (the file may be truncated)"));
    }
    Ok(Module {
        triple: text(reader.triple),
        source_name: text(reader.source_name),
        hash: reader.hash.filter(|hash| *hash != [0; 5]),
        summary: reader.summary.unwrap_or(SummaryKind::None),
        split_unit: reader.modules > 1,
        instructions: reader.instructions,
        noinline: reader.inlining.noinline(),
    })
}

/// Names are shown, never compared or opened, so those that are not UTF-8 are shown as well as can be.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

impl Inlining {
    /// Counts a function with these flags.
    fn count(&mut self, flags: u64) {
        if flags & FUNCTION_NOINLINE != 0 {
            self.never += 1;
        } else if flags & FUNCTION_ALWAYSINLINE == 0 {
            self.sometimes += 1;
        }
    }

    /// [`Module::noinline`].
    fn noinline(&self) -> Option<bool> {
        (self.never > 0 || self.sometimes > 0).then_some(self.sometimes == 0)
    }
}

impl ModuleReader {
    fn module(&mut self, block: SubBlock<'_>) -> Result<(), BitcodeError> {
        let mut block = block.open(&self.walk);
        self.modules += 1;
        let first = self.modules == 1;
        let mut summary = None;
        loop {
            match block.next(&mut self.walk)? {
                Item::Block(inner) => {
                    let kind = match inner.id {
                        bitcode::GLOBALVAL_SUMMARY_BLOCK => SummaryKind::ThinLto,
                        bitcode::FULL_LTO_GLOBALVAL_SUMMARY_BLOCK => SummaryKind::FullLto,
                        bitcode::MODULE_STRTAB_BLOCK => {
                            return Err(inner.error("the module path table of an index shard", "a module"));
                        }
                        _ => continue,
                    };
                    summary = Some(kind);
                    let (instructions, inlining) = self.summary(inner)?;
                    if first {
                        (self.instructions, self.inlining) = (instructions, inlining);
                    }
                }
                Item::Record(MODULE_VERSION) => self.version = number(&mut block)?,
                Item::Record(MODULE_TRIPLE) if first => self.triple = block.bytes()?,
                Item::Record(MODULE_SOURCE_FILENAME) if first => self.source_name = block.bytes()?,
                Item::Record(MODULE_HASH) if first => self.hash = Some(hash(&mut block)?),
                Item::Record(_) => {}
                Item::End => break,
            }
        }
        if first {
            self.summary = summary;
        }
        Ok(())
    }

    /// Returns the instructions of all functions, if the layout is known, and how many of them may be inlined.
    fn summary(&mut self, block: SubBlock<'_>) -> Result<(Option<u64>, Inlining), BitcodeError> {
        let mut block = block.open(&self.walk);
        let mut known = false;
        let mut sum = 0u64;
        let mut inlining = Inlining::default();
        loop {
            match block.next(&mut self.walk)? {
                Item::Record(SUMMARY_VERSION) => {
                    known = bitcode::SUMMARY_VERSIONS.contains(&number(&mut block)?);
                }
                Item::Record(PERMODULE | PERMODULE_PROFILE | PERMODULE_RELBF) if known => {
                    // Value, flags, instructions, flags of functions, and more.
                    let mut fields = [0; 4];
                    if block.operands(&mut fields)? < fields.len() {
                        return Err(block.error("a shorter record", "a function's summary"));
                    }
                    sum = sum.saturating_add(fields[2]);
                    inlining.count(fields[3]);
                }
                Item::End => return Ok((known.then_some(sum), inlining)),
                _ => {}
            }
        }
    }
}

/// The one number of a record.
pub(crate) fn number(block: &mut Block<'_>) -> Result<u64, BitcodeError> {
    let mut fields = [0];
    match block.operands(&mut fields)? {
        1 => Ok(fields[0]),
        _ => Err(block.error("an empty record", "a number")),
    }
}

/// The five words of a hash record.
pub(crate) fn hash(block: &mut Block<'_>) -> Result<ModuleHash, BitcodeError> {
    let mut fields = [0; 5];
    let count = block.operands(&mut fields)?;
    let words = fields.map(|word| u32::try_from(word).ok());
    match words {
        [Some(a), Some(b), Some(c), Some(d), Some(e)] if count == 5 => Ok([a, b, c, d, e]),
        _ => Err(block.error("another record", "a hash of five 32-bit words")),
    }
}
