//! Numbers and texts as the script of the page reads them: varints and lines, deflated, in base64.
//!
//! A varint has seven bits in each byte, the lowest first, and the eighth says that more follow (LEB128). Deflated is zlib's
//! form (RFC 1950), which a browser's `DecompressionStream` calls `deflate`.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use distlto_prepare::text::printable;
use flate2::Compression;
use flate2::write::ZlibEncoder;

/// A block of the page that grows.
#[derive(Debug, Default)]
pub(super) struct PageBlock(Vec<u8>);

impl PageBlock {
    /// Adds a number.
    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// Adds a number that may not be known.
    pub(super) fn known(&mut self, number: Option<u64>) {
        self.number(number.map_or(0, |number| number.saturating_add(1)));
    }

    /// Adds a name as a line; printable text holds no line break.
    pub(super) fn line(&mut self, text: &str) {
        self.0.extend_from_slice(printable(text).as_bytes());
        self.0.push(b'\n');
    }

    /// As it stands in the page.
    pub(super) fn packed(&self) -> String {
        let mut deflated = ZlibEncoder::new(Vec::new(), Compression::default());
        let bytes = deflated.write_all(&self.0).and_then(|()| deflated.finish());
        STANDARD.encode(bytes.expect("writing to memory does not fail"))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::ZlibDecoder;

    use super::*;

    #[test]
    fn numbers_and_lines_come_back() {
        let mut block = PageBlock::default();
        [0, 127, 128, 300, u64::MAX].into_iter().for_each(|number| block.number(number));
        block.known(None);
        block.known(Some(0));
        block.line("a\nb</script>");
        let bytes = STANDARD.decode(block.packed()).expect("base64");
        let mut plain = Vec::new();
        ZlibDecoder::new(&bytes[..]).read_to_end(&mut plain).expect("deflated");
        let (numbers, line) = plain.split_at(17);
        assert_eq!(&numbers[..6], [0, 0x7f, 0x80, 1, 0xac, 2]);
        assert_eq!(&numbers[6..], [&[0xff; 9][..], &[1, 0]].concat());
        assert_eq!(line, b"\x01a\\nb</script>\n");
    }
}
