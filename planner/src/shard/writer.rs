//! The body of a bitstream block, as records that no abbreviation describes.
//!
//! Knows nothing of what the records mean. The format is that of LLVM's document "LLVM Bitcode File Format".

const END_BLOCK: u64 = 0;
const UNABBREVIATED: u64 = 3;
/// Bits of a chunk in records that no abbreviation describes.
const CHUNK: u32 = 6;

/// Writes bits into bytes, the lowest first.
pub(super) struct Writer {
    bytes: Vec<u8>,
    /// Bits that do not fill a byte, and how many.
    rest: u64,
    count: u32,
    /// Of what begins each record.
    width: u32,
}

impl Writer {
    /// For a block whose records begin with so many bits.
    pub(super) fn new(width: u32) -> Self {
        Self { bytes: Vec::new(), rest: 0, count: 0, width }
    }

    pub(super) fn record(&mut self, code: u64, operands: &[u64]) {
        self.fixed(UNABBREVIATED, self.width);
        self.vbr(code);
        self.vbr(operands.len() as u64);
        operands.iter().for_each(|&operand| self.vbr(operand));
    }

    /// The end of the block, and all of it.
    pub(super) fn end(mut self) -> Vec<u8> {
        self.fixed(END_BLOCK, self.width);
        // What is left of the last word is zeros.
        self.fixed(0, 7);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self.bytes
    }

    fn vbr(&mut self, mut value: u64) {
        let more = 1 << (CHUNK - 1);
        while value >= more {
            self.fixed(value & (more - 1) | more, CHUNK);
            value >>= CHUNK - 1;
        }
        self.fixed(value, CHUNK);
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
