//! zstd by pieces, with bounded memory however much a damaged or hostile stream would become.

use std::io;

use zstd::stream::raw::{Decoder, Encoder, Operation};

/// As fast as a network of 1 Gbit/s needs, on one processor.
const LEVEL: i32 = 1;
const PIECE: usize = 128 << 10;

/// Compresses all of it.
pub fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    zstd::bulk::compress(bytes, LEVEL)
}

/// Decompresses all of it; an error if that is more than `limit` bytes.
pub fn decompress(bytes: &[u8], limit: u64) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    let mut decompressor = Decompressor::new(limit)?;
    let mut bytes = bytes;
    while decompressor.step(&mut bytes, |piece| all.extend_from_slice(piece))? {}
    Ok(all)
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

/// Compresses piece by piece.
pub struct Compressor {
    encoder: Encoder<'static>,
    buffer: Vec<u8>,
}

impl Compressor {
    pub fn new() -> io::Result<Self> {
        Ok(Self { encoder: Encoder::new(LEVEL)?, buffer: vec![0; PIECE] })
    }

    /// Adds bytes; appends finished output to `out`.
    pub fn push(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        while !bytes.is_empty() {
            let status = self.encoder.run_on_buffers(bytes, &mut self.buffer)?;
            bytes = &bytes[status.bytes_read..];
            out.extend_from_slice(&self.buffer[..status.bytes_written]);
        }
        Ok(())
    }

    /// Ends the stream.
    pub fn finish(mut self, out: &mut Vec<u8>) -> io::Result<()> {
        loop {
            let mut buffer = zstd::stream::raw::OutBuffer::around(&mut self.buffer[..]);
            let left = self.encoder.finish(&mut buffer, true)?;
            out.extend_from_slice(buffer.as_slice());
            if left == 0 {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn what_was_compressed_comes_back() {
        let bytes: Vec<u8> = (0..1_000_000_u32).flat_map(|number| (number / 7).to_le_bytes()).collect();
        let mut shrunk = Vec::new();
        let mut compressor = Compressor::new().expect("memory");
        bytes.chunks(10_001).for_each(|piece| compressor.push(piece, &mut shrunk).expect("memory"));
        compressor.finish(&mut shrunk).expect("memory");
        assert_eq!(zstd::decode_all(&*shrunk).expect("a stream"), bytes);
        let limit = bytes.len() as u64;
        assert!(decompress(&shrunk, limit).expect("a stream") == bytes);
        assert!(decompress(&compress(&bytes).expect("memory"), limit).expect("a stream") == bytes);
        assert!(decompress(&shrunk, limit - 1).is_err());
    }

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
