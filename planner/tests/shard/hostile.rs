//! What every reader of bitcode must stand: truncation at every byte, flipped bits, random bytes.
//!
//! Knows nothing of what is read.

use distlto_planner::bitcode::BitcodeError;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Checks a reader with damaged forms of bytes that it reads well.
pub fn check<T: std::fmt::Debug>(good: &[u8], read: impl Fn(&[u8]) -> Result<T, BitcodeError>) {
    read(good).expect("the undamaged bytes are read");
    for length in 0..good.len() {
        let error = read(&good[..length]).expect_err("a truncated file is an error");
        assert!(error.bit <= length as u64 * 8, "the place lies in the file: {error}");
        assert!(!error.remedy.is_empty() && !error.expected.is_empty());
    }
    let placed = |bytes: &[u8]| {
        if let Err(error) = read(bytes) {
            assert!(error.bit <= bytes.len() as u64 * 8, "the place lies in the file: {error}");
        }
    };
    let mut bytes = good.to_vec();
    for bit in 0..good.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        placed(&bytes);
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(512) });
    let damage = prop::collection::vec((0..good.len(), any::<u8>()), 1..40);
    let result = runner.run(&damage, |damage| {
        let mut bytes = good.to_vec();
        damage.iter().for_each(|&(place, byte)| bytes[place] = byte);
        placed(&bytes);
        Ok(())
    });
    result.expect("damaged bytes do no harm");
    let result = runner.run(&prop::collection::vec(any::<u8>(), 0..4096), |random| {
        placed(&random);
        placed(&[b"BC\xC0\xDE", &random[..]].concat());
        // Behind the head of a module block that spans the rest.
        let words = (random.len() / 4) as u32;
        let head = [&b"BC\xC0\xDE\x21\x0C\0\0"[..], &words.to_le_bytes()];
        placed(&[&head.concat(), &random[..]].concat());
        Ok(())
    });
    result.expect("random bytes do no harm");
}
