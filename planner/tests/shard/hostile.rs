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
    check_damaged(good, read);
}

/// The same for a reader that may make something of a part.
pub fn check_damaged<T: std::fmt::Debug>(good: &[u8], read: impl Fn(&[u8]) -> Result<T, BitcodeError>) {
    let placed = |bytes: &[u8]| {
        if let Err(error) = read(bytes) {
            assert!(error.bit <= bytes.len() as u64 * 8, "the place lies in the file: {error}");
        }
    };
    (0..good.len()).for_each(|length| placed(&good[..length]));
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

/// A file with one module block, in 3-bit abbreviation numbers, that holds these fields of so many bits.
fn module_of(fields: impl Iterator<Item = (u64, u32)>) -> Vec<u8> {
    let mut bits: Vec<bool> = Vec::new();
    for (value, width) in fields {
        bits.extend((0..width).map(|bit| value >> bit & 1 == 1));
    }
    bits.resize(bits.len().next_multiple_of(32), false);
    let body: Vec<u8> =
        bits.chunks(8).map(|byte| byte.iter().rev().fold(0, |all, &bit| all << 1 | u8::from(bit))).collect();
    let words = (body.len() / 4) as u32;
    [&b"BC\xC0\xDE\x21\x0C\0\0"[..], &words.to_le_bytes(), &body].concat()
}

/// Checks that a reader is not taken in by what costs a file little and a reader much.
pub fn check_crafted<T: std::fmt::Debug>(read: impl Fn(&[u8]) -> Result<T, BitcodeError>) {
    // DEFINE_ABBREV of one literal, a million times over: a reader that recurses runs out of stack.
    let define = [(2, 3), (1, 5), (1, 1), (0, 8)];
    let error = read(&module_of(define.iter().copied().cycle().take(4_000_000))).expect_err("no module");
    assert!(error.to_string().contains("too many abbreviations"), "{error}");
    // A record of 2^59 operands: a reader that allocates by the length runs out of memory.
    let long = [(3, 3), (1, 6)].into_iter().chain([(32, 6); 11]).chain([(16, 6)]);
    let error = read(&module_of(long)).expect_err("no module");
    assert!(error.to_string().contains("values in the last"), "{error}");
    // One abbreviation of a hundred literals, which costs no bits to use, used a million times.
    let literals = (0..100).flat_map(|_| [(1, 1), (0, 8)]);
    let define = [(2, 3), (100 & 15 | 16, 5), (100 >> 4, 5)].into_iter().chain(literals);
    let started = std::time::Instant::now();
    // Whether this is a module is not the question: reading it takes time in proportion to its length.
    read(&module_of(define.chain(std::iter::repeat_n((4, 3), 1_000_000)))).ok();
    assert!(started.elapsed().as_secs() < 300, "{:?}", started.elapsed());
}
