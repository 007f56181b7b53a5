//! A ThinLTO module without code, for questions to a linker: bitcode that LLVM 14 to 23 read.
//!
//! It has a source name and a hash; without them LLVM 23 does not accept it as a module of its link. Records are named
//! after those of `llvm/include/llvm/Bitcode/LLVMBitCodes.h`. Does not depend on the question.

use crate::bitcode::writer::Writer;
use crate::bitcode::{GLOBALVAL_SUMMARY_BLOCK, IDENTIFICATION_BLOCK, MAGIC, MODULE_BLOCK, STRTAB_BLOCK};

/// Bits that begin each record, among blocks and in them.
const WIDTHS: (u32, u32) = (2, 3);
const IDENTIFICATION_STRING: u64 = 1;
const IDENTIFICATION_EPOCH: u64 = 2;
const MODULE_VERSION: u64 = 1;
const MODULE_TRIPLE: u64 = 2;
const MODULE_DATALAYOUT: u64 = 3;
const MODULE_SOURCE_FILENAME: u64 = 16;
const MODULE_HASH: u64 = 17;
const SUMMARY_VERSION: u64 = 10;
const SUMMARY_FLAGS: u64 = 20;
const STRTAB_BLOB: u64 = 1;

/// The source name of the module.
const SOURCE: &str = "empty";
/// Any machine will do; this one every build of LLVM has that is in use.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";
const DATALAYOUT: &str = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128";

/// The module as a file.
pub fn empty_module() -> Vec<u8> {
    let mut identification = Writer::new(WIDTHS.1);
    identification.text(IDENTIFICATION_STRING, "distlto");
    identification.record(IDENTIFICATION_EPOCH, &[0]);
    let mut summary = Writer::new(WIDTHS.1);
    summary.record(SUMMARY_VERSION, &[9]);
    summary.record(SUMMARY_FLAGS, &[0]);
    let mut module = Writer::new(WIDTHS.1);
    module.record(MODULE_VERSION, &[2]);
    module.text(MODULE_SOURCE_FILENAME, SOURCE);
    module.text(MODULE_TRIPLE, TRIPLE);
    module.text(MODULE_DATALAYOUT, DATALAYOUT);
    module.block(GLOBALVAL_SUMMARY_BLOCK, summary);
    module.record(MODULE_HASH, &[1; 5]);
    let mut strings = Writer::new(WIDTHS.1);
    strings.record(STRTAB_BLOB, &[]);
    let mut file = Writer::new(WIDTHS.0);
    file.block(IDENTIFICATION_BLOCK, identification);
    file.block(MODULE_BLOCK, module);
    file.block(STRTAB_BLOCK, strings);
    [&MAGIC, file.file().as_slice()].concat()
}
