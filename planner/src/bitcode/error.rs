//! The error of bytes that are no bitcode.

use std::borrow::Cow;

use miette::Diagnostic;
use thiserror::Error;

/// Bytes that are not the bitcode they should be. The caller adds the file's path.
#[derive(Debug, Clone, PartialEq, Eq, Error, Diagnostic)]
#[error("malformed bitcode at byte {}, bit {bit}: {found}; expected {expected}", bit / 8)]
#[diagnostic(code(distlto::bad_input), help("{remedy}"))]
pub struct BitcodeError {
    /// Bits from the beginning of the bytes that were given to the place of the fault.
    pub bit: u64,
    /// The content found there.
    pub found: Cow<'static, str>,
    /// The expected content.
    pub expected: &'static str,
    /// Advice for the user.
    pub remedy: &'static str,
}
