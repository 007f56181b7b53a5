//! The body of a bitstream block, as records that no abbreviation describes, and blocks of such.
//!
//! Does not depend on the meaning of the records. The format is that of LLVM's document "LLVM Bitcode File Format".

use std::ops::Range;

use super::cursor::{Cursor, MAX_WIDTH};
use super::error::BitcodeError;

const END_BLOCK: u64 = 0;
const ENTER_SUBBLOCK: u64 = 1;
const UNABBREVIATED: u64 = 3;
/// Bits of a chunk in records that no abbreviation describes.
const CHUNK: u32 = 6;

/// Writes bits into bytes, the lowest first.
pub(crate) struct Writer {
    bytes: Vec<u8>,
    /// Bits that do not fill a byte, and how many.
    rest: u64,
    count: u32,
    /// Bits of the abbreviation number that begins each record.
    width: u32,
}

impl Writer {
    /// Makes a writer for a block with an abbreviation number of `width` bits before each record.
    pub(crate) fn new(width: u32) -> Self {
        Self { bytes: Vec::new(), rest: 0, count: 0, width }
    }

    /// Copies bits of another block of this width: whole records.
    pub(crate) fn copy(&mut self, bytes: &[u8], bits: Range<u64>) -> Result<(), BitcodeError> {
        let mut from = Cursor::new(bytes);
        from.skip(bits.start, 1)?;
        let mut left = bits.end.saturating_sub(bits.start);
        while left > 0 {
            let width = left.min(MAX_WIDTH.into()) as u32;
            let value = from.fixed(width)?;
            self.fixed(value, width);
            left -= u64::from(width);
        }
        Ok(())
    }

    pub(crate) fn record(&mut self, code: u64, operands: &[u64]) {
        self.fixed(UNABBREVIATED, self.width);
        self.vbr(code, CHUNK);
        self.vbr(operands.len() as u64, CHUNK);
        operands.iter().for_each(|&operand| self.vbr(operand, CHUNK));
    }

    /// A record of characters.
    pub(crate) fn text(&mut self, code: u64, text: &str) {
        self.record(code, &text.bytes().map(u64::from).collect::<Vec<_>>());
    }

    /// A block inside.
    pub(crate) fn block(&mut self, id: u64, inside: Self) {
        self.fixed(ENTER_SUBBLOCK, self.width);
        self.vbr(id, 8);
        self.vbr(inside.width.into(), 4);
        self.fill_word();
        let body = inside.end();
        self.fixed((body.len() / 4) as u64, 32);
        self.bytes.extend(body);
    }

    /// The end of the block, and all of it.
    pub(crate) fn end(mut self) -> Vec<u8> {
        self.fixed(END_BLOCK, self.width);
        self.file()
    }

    /// All of it, without an end: blocks that are in no other.
    pub(crate) fn file(mut self) -> Vec<u8> {
        self.fill_word();
        self.bytes
    }

    /// Fills the rest of the last word with zeros.
    fn fill_word(&mut self) {
        if self.count > 0 {
            self.fixed(0, u8::BITS - self.count);
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn vbr(&mut self, mut value: u64, chunk: u32) {
        let more = 1 << (chunk - 1);
        while value >= more {
            self.fixed(value & (more - 1) | more, chunk);
            value >>= chunk - 1;
        }
        self.fixed(value, chunk);
    }

    /// At most 32 bits.
    fn fixed(&mut self, value: u64, width: u32) {
        self.rest |= value << self.count;
        self.count += width;
        while self.count >= 8 {
            self.bytes.extend(self.rest.to_le_bytes().first());
            self.rest >>= 8;
            self.count -= 8;
        }
    }
}
