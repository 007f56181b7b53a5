//! How large and how old a cache may grow, and how people write that.
//!
//! Knows nothing of the cached files.

use std::time::Duration;

/// The default size limit of a cache: 10 GiB.
pub const DEFAULT_SIZE: u64 = 10 << 30;

/// When results are dropped again, the least recently used first. `None` sets no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheLimits {
    /// Bytes.
    pub size: Option<u64>,
    /// Time since the last use.
    pub age: Option<Duration>,
}

impl Default for CacheLimits {
    fn default() -> Self {
        Self { size: Some(DEFAULT_SIZE), age: None }
    }
}

/// Bytes: `10`, `512M`, `20G`. K, M, G and T stand for powers of 1024.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (number, shift) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        Some(b'T') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let number: u64 = number.parse().map_err(|_| "expected a number, or one with K, M, G or T".to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "that many bytes there are not".to_owned())
}

/// A time: `30` or `30d` are days, `12h` hours, `90m` minutes, `10s` seconds.
pub fn parse_age(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.as_bytes().last() {
        Some(b'd') => (&text[..text.len() - 1], 24 * 60 * 60),
        Some(b'h') => (&text[..text.len() - 1], 60 * 60),
        Some(b'm') => (&text[..text.len() - 1], 60),
        Some(b's') => (&text[..text.len() - 1], 1),
        _ => (text, 24 * 60 * 60),
    };
    let number: u64 =
        number.parse().map_err(|_| "expected a number of days, or one with d, h, m or s".to_owned())?;
    number.checked_mul(unit).map(Duration::from_secs).ok_or_else(|| "that long there is not".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_ages_as_people_write_them() {
        assert_eq!(parse_size("10"), Ok(10));
        assert_eq!(parse_size("3M"), Ok(3 << 20));
        assert_eq!(parse_size("2T"), Ok(2 << 40));
        assert_eq!(parse_age("2"), Ok(Duration::from_secs(172_800)));
        assert_eq!(parse_age("90m"), Ok(Duration::from_secs(5400)));
        for wrong in ["", "M", "1.5G", "-1", "1ü", "99999999999T", "d"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
            assert!(parse_age(wrong).is_err(), "{wrong}");
        }
    }
}
