//! A position in a bitstream: reads fixed-width and variable-width numbers and skips to word boundaries.
//!
//! Every read is checked against the end of the enclosing block. Knows nothing of blocks or records. The
//! encodings are those of LLVM's document "LLVM Bitcode File Format", section "Bitstream Format".

use std::borrow::Cow;

use super::error::BitcodeError;

/// The widest number that one chunk holds.
pub const MAX_WIDTH: u32 = 32;

/// A position in bytes, in bits, with an end that reads do not pass.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    bit: u64,
    end: u64,
    /// Where 32-bit boundaries are counted from: bitcode in a wrapper need not be aligned in its file.
    base: u64,
}

impl<'a> Cursor<'a> {
    /// The first bit of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, bit: 0, end: bytes.len() as u64 * 8, base: 0 }
    }

    /// The cursor at byte `offset` of the same bytes, ending after `size` bytes.
    pub fn window(&self, offset: u64, size: u64) -> Result<Self, BitcodeError> {
        let length = self.bytes.len() as u64;
        match offset.checked_add(size) {
            Some(end) if end <= length => {
                Ok(Self { bytes: self.bytes, bit: offset * 8, end: end * 8, base: offset * 8 })
            }
            _ => Err(self.error(
                format!("a wrapper for {size} bytes at byte {offset}, in a file of {length} bytes"),
                "a wrapper within the file",
            )),
        }
    }

    /// The cursor at the same place, ending after `bytes` more bytes; `None` if there are fewer.
    pub fn limited(&self, bytes: u64) -> Option<Self> {
        (bytes <= self.left() / 8).then(|| Self { end: self.bit + bytes * 8, ..*self })
    }

    /// Bits from the beginning of the bytes.
    pub fn bit(&self) -> u64 {
        self.bit
    }

    /// Bits before the end.
    pub fn left(&self) -> u64 {
        self.end - self.bit
    }

    /// The bytes from a byte boundary to the end.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.bit as usize / 8..self.end as usize / 8]
    }

    /// An error at this place. The remedy is that of unknown bytes; readers of a known kind set their own.
    pub fn error(&self, found: impl Into<Cow<'static, str>>, expected: &'static str) -> BitcodeError {
        BitcodeError {
            bit: self.bit,
            found: found.into(),
            expected,
            remedy: "make the file again with the step that wrote it",
        }
    }

    /// A number of `width` bits, at most [`MAX_WIDTH`].
    pub fn fixed(&mut self, width: u32) -> Result<u64, BitcodeError> {
        debug_assert!(width <= MAX_WIDTH);
        if u64::from(width) > self.left() {
            return Err(self.ends());
        }
        let rest = &self.bytes[(self.bit / 8) as usize..];
        let word = match rest.first_chunk::<8>() {
            Some(word) => u64::from_le_bytes(*word),
            None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
        };
        let value = word >> (self.bit % 8) & ((1 << width) - 1);
        self.bit += u64::from(width);
        Ok(value)
    }

    /// Reads a number in chunks of `width` bits (2 to [`MAX_WIDTH`]). The highest bit of a chunk means that more
    /// follow.
    pub fn vbr(&mut self, width: u32) -> Result<u64, BitcodeError> {
        let more = 1u64 << (width - 1);
        let mut value = 0;
        let mut shift = 0;
        loop {
            let chunk = self.fixed(width)?;
            if shift >= u64::BITS {
                return Err(self.error("a number of more than 64 bits", "a number of at most 64 bits"));
            }
            value |= (chunk & (more - 1)) << shift;
            if chunk & more == 0 {
                return Ok(value);
            }
            shift += width - 1;
        }
    }

    /// A letter, digit, point or underscore in 6 bits.
    pub fn char6(&mut self) -> Result<u64, BitcodeError> {
        const CHARACTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._";
        Ok(u64::from(CHARACTERS[self.fixed(6)? as usize]))
    }

    /// Skips `count` values of `width` bits each.
    pub fn skip(&mut self, count: u64, width: u32) -> Result<(), BitcodeError> {
        match count.checked_mul(u64::from(width)) {
            Some(bits) if bits <= self.left() => {
                self.bit += bits;
                Ok(())
            }
            _ => Err(self.ends()),
        }
    }

    /// Skips to the next 32-bit boundary.
    pub fn align(&mut self) -> Result<(), BitcodeError> {
        let used = (self.bit - self.base) % 32;
        if used == 0 { Ok(()) } else { self.skip(32 - used, 1) }
    }

    fn ends(&self) -> BitcodeError {
        self.error("the end of the block or file", "more data")
    }
}
