//! zstd by pieces, with bounded memory however much a damaged or hostile stream would become.

use std::io::{self, Read};

use zstd::stream::raw::{Decoder, Operation};

/// As fast as a network of 1 Gbit/s needs, on one processor.
const LEVEL: i32 = 1;
const PIECE: usize = 128 << 10;

/// Compresses all of it.
pub fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    zstd::bulk::compress(bytes, LEVEL)
}

/// Decompresses all of it, or the first `limit` bytes and one: whoever compares digests then sees that it is longer.
pub fn decompress(bytes: &[u8], limit: u64) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    zstd::Decoder::with_buffer(bytes)?.take(limit.saturating_add(1)).read_to_end(&mut all)?;
    Ok(all)
}

/// Compresses piece by piece.
pub fn encoder() -> io::Result<zstd::Encoder<'static, Vec<u8>>> {
    zstd::Encoder::new(Vec::new(), LEVEL)
}

/// Decompresses piece by piece.
pub struct Decompressor {
    decoder: Decoder<'static>,
    buffer: Vec<u8>,
    left: u64,
}

impl Decompressor {
    /// For a stream of at most `limit` bytes.
    pub fn new(limit: u64) -> io::Result<Self> {
        Ok(Self { decoder: Decoder::new()?, buffer: vec![0; PIECE], left: limit })
    }

    /// Takes some of the compressed bytes, and hands their expansion to `sink`. Returns whether there is more to take.
    pub fn step(&mut self, bytes: &mut &[u8], sink: impl FnOnce(&[u8])) -> io::Result<bool> {
        let status = self.decoder.run_on_buffers(bytes, &mut self.buffer)?;
        *bytes = &bytes[status.bytes_read..];
        let written = status.bytes_written;
        self.left = self.left.checked_sub(written as u64).ok_or_else(|| io::Error::other("it is longer"))?;
        sink(&self.buffer[..written]);
        // A full buffer may mean that the decoder holds more.
        Ok(!bytes.is_empty() || written == self.buffer.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bomb_does_not_burst() {
        let bomb = zstd::encode_all(io::repeat(0).take(1 << 26), 3).expect("memory");
        assert!(bomb.len() < 1 << 16);
        let mut most = 0;
        let mut decompressor = Decompressor::new(1000).expect("memory");
        assert!(decompressor.step(&mut &*bomb, |piece| most = piece.len()).is_err());
        assert_eq!(most, 0);
    }
}
