//! Abbreviations: how the operands of a kind of record are encoded.
//!
//! Does not depend on the meaning of records. Limits that LLVM does not have bound the work that a hostile file can
//! ask for: an operand may cost no bits at all, so the number of operands is limited instead.

use super::cursor::{Cursor, MAX_WIDTH};
use super::error::BitcodeError;

/// The most operands of one abbreviation. LLVM's largest has about twenty.
const MAX_OPERANDS: u64 = 128;

/// How one value is encoded.
#[derive(Debug, Clone, Copy)]
pub enum Encoding {
    /// Not at all: it is always this number.
    Literal(u64),
    /// In so many bits.
    Fixed(u32),
    /// In chunks of so many bits.
    Vbr(u32),
    /// As one character in 6 bits.
    Char6,
}

impl Encoding {
    /// Reads one value.
    pub fn read(self, cursor: &mut Cursor<'_>) -> Result<u64, BitcodeError> {
        match self {
            Self::Literal(value) => Ok(value),
            Self::Fixed(width) => cursor.fixed(width),
            Self::Vbr(width) => cursor.vbr(width),
            Self::Char6 => cursor.char6(),
        }
    }

    /// Skips `count` values.
    pub fn skip(self, cursor: &mut Cursor<'_>, count: u64) -> Result<(), BitcodeError> {
        match self {
            Self::Literal(_) => Ok(()),
            Self::Fixed(width) => cursor.skip(count, width),
            Self::Char6 => cursor.skip(count, 6),
            Self::Vbr(width) => {
                for _ in 0..count {
                    cursor.vbr(width)?;
                }
                Ok(())
            }
        }
    }
}

/// The end of a record, after the operands that are always there.
#[derive(Debug, Clone, Copy)]
pub enum Tail {
    /// Any number of values.
    Array(Encoding),
    /// Any number of bytes, at word boundaries.
    Blob,
}

/// The operands of a record. The first operand is the record's code.
#[derive(Debug)]
pub struct Abbreviation {
    /// The record's code.
    pub code: Encoding,
    /// The operands that are always there.
    pub operands: Vec<Encoding>,
    /// The end after them.
    pub tail: Option<Tail>,
}

impl Abbreviation {
    /// Reads a definition, after its DEFINE_ABBREV.
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Self, BitcodeError> {
        let at = *cursor;
        let mut left = cursor.vbr(5)?;
        if left == 0 || left > MAX_OPERANDS {
            return Err(at.error(
                format!("an abbreviation of {left} operands"),
                "an abbreviation of 1 to 128 operands",
            ));
        }
        let mut operands = Vec::new();
        let mut tail = None;
        while left > 0 {
            let at = *cursor;
            left -= 1;
            match (operand(cursor)?, left) {
                (Operand::Scalar(encoding), _) => operands.push(encoding),
                (Operand::Blob, 0) => tail = Some(Tail::Blob),
                (Operand::Array, 1) => {
                    let at = *cursor;
                    left = 0;
                    match operand(cursor)? {
                        // An element without bits would make an array of any length out of nothing.
                        Operand::Scalar(Encoding::Literal(_)) | Operand::Array | Operand::Blob => {
                            return Err(
                                at.error("an array of other elements", "fixed, VBR or char6 elements")
                            );
                        }
                        Operand::Scalar(element) => tail = Some(Tail::Array(element)),
                    }
                }
                (Operand::Array | Operand::Blob, _) => {
                    return Err(at.error("an array or blob before other operands", "it as the last operand"));
                }
            }
        }
        if operands.is_empty() {
            return Err(
                at.error("an abbreviation without a record code", "a first operand that is one number")
            );
        }
        let code = operands.remove(0);
        Ok(Self { code, operands, tail })
    }
}

enum Operand {
    Scalar(Encoding),
    Array,
    Blob,
}

fn operand(cursor: &mut Cursor<'_>) -> Result<Operand, BitcodeError> {
    if cursor.fixed(1)? == 1 {
        return Ok(Operand::Scalar(Encoding::Literal(cursor.vbr(8)?)));
    }
    let at = *cursor;
    Ok(match cursor.fixed(3)? {
        kind @ (1 | 2) => {
            let wide = cursor.vbr(5)?;
            let width = wide as u32;
            match (kind, wide) {
                // LLVM's reader takes a width of nothing for the number 0, and so do its files.
                (_, 0) => Operand::Scalar(Encoding::Literal(0)),
                (1, 1..=32) => Operand::Scalar(Encoding::Fixed(width)),
                (2, 2..=32) => Operand::Scalar(Encoding::Vbr(width)),
                _ => return Err(at.error(format!("a number of {wide} bits"), "a width of at most 32 bits")),
            }
        }
        3 => Operand::Array,
        4 => Operand::Scalar(Encoding::Char6),
        5 => Operand::Blob,
        kind => return Err(at.error(format!("operand encoding {kind}"), "encoding 1 to 5")),
    })
}

const _: () = assert!(MAX_WIDTH == 32, "the widths above are those of the cursor");
