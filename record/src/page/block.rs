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
