//! The words of the compiler proper (`-cc1`) with files or effects that must be known, one a line.
//!
//! Source: LLVM 22, `clang/include/clang/Options/Options.td`, `BackendUtil.cpp`. Many names stand for all that begin
//! with them.

use super::options::{self, KnownWord};
use crate::options::Code::*;
use crate::options::{Opt, maybe, maybe1, next1, prefix1};

/// Returns the table's entry for a word of the compiler's command.
pub fn find(word: &[u8]) -> Option<KnownWord<'_>> {
    options::find(OPTIONS, word)
}

/// The options, by name.
pub const OPTIONS: &[Opt] = &[
    maybe1("add-plugin").loads(),
    prefix1("ast-merge").unnamed(),
    prefix1("coverage-data-file").unnamed(),
    prefix1("coverage-notes-file").unnamed(),
    prefix1("dependency-file").unnamed(),
    prefix1("diagnostic-log-file").unnamed(),
    prefix1("dump").unnamed(),
    prefix1("dwarf-debug-flags").code(Names),
    prefix1("fbasic-block-sections=list=").reads(),
    prefix1("fcoverage-compilation-dir=").code(Directory),
    prefix1("fdebug-compilation-dir=").code(Directory),
    prefix1("fdump").unnamed(),
    prefix1("fembed-bitcode").code(Names),
    prefix1("fmemory-profile-use=").reads(),
    prefix1("fmodule").unnamed(),
    prefix1("foptimization-record").unnamed(),
    maybe1("fpass-plugin").loads(),
    maybe1("fplugin").loads(),
    prefix1("fprofile-instrument-use-path=").reads(),
    prefix1("fprofile-list=").reads(),
    prefix1("fprofile-remapping-file=").reads(),
    prefix1("fprofile-sample-use=").reads(),
    prefix1("fsave-optimization-record").unnamed(),
    prefix1("ftime-trace").unnamed(),
    prefix1("fworking-directory").unnamed(),
    prefix1("header-include-file").unnamed(),
    prefix1("include").unnamed(),
    prefix1("ivfsoverlay").unnamed(),
    maybe("load").loads(),
    next1("o").writes(),
    prefix1("object-file-name").code(Names),
    prefix1("opt-record").unnamed(),
    prefix1("plugin").loads(),
    prefix1("record-command-line").code(Names),
    prefix1("save-temps").unnamed(),
    prefix1("serialize-diagnostic").unnamed(),
    next1("split-dwarf-output").writes(),
    prefix1("stack-usage-file").unnamed(),
    prefix1("stats-file").unnamed(),
    prefix1("vfsoverlay").unnamed(),
    prefix1("working-directory").unnamed(),
];
