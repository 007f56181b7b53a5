//! How large and how old a cache may grow, and how people write that.
//!
//! Knows nothing of the cached files.

use std::path::Path;
use std::time::Duration;

use rustix::fs::statvfs;

/// The least default size of a cache: 10 GiB.
const LEAST_DEFAULT: u64 = 10 << 30;
/// A cache may take this part of its disk by default.
const PART: u64 = 10;

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
        Self { size: Some(LEAST_DEFAULT), age: None }
    }
}

/// The default size limit of a cache in this folder, which may be missing: a tenth of the disk, 10 GiB at least.
pub fn default_size(folder: &Path) -> u64 {
    let disk = folder.ancestors().find_map(|folder| statvfs(folder).ok());
    let size = disk.map_or(0, |disk| disk.f_blocks.saturating_mul(disk.f_frsize));
    (size / PART).max(LEAST_DEFAULT)
}

/// A number of bytes below this is refused without a unit: it was meant in another one.
const SMALL: u64 = 1 << 20;

/// Bytes: `512M`, `20G`, `20GB`, `20GiB`, `8388608`. K, M, G and T stand for powers of 1024.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let expected = || "expected a number with K, M, G or T, such as 8G".to_owned();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| expected())?;
    let shift = match unit {
        "" if (1..SMALL).contains(&number) => {
            return Err(format!("{number} bytes are meant in another unit: write {number}G or {number}M"));
        }
        "" | "B" => 0,
        "K" | "KB" | "KiB" | "k" | "kB" => 10,
        "M" | "MB" | "MiB" => 20,
        "G" | "GB" | "GiB" => 30,
        "T" | "TB" | "TiB" => 40,
        _ => return Err(expected()),
    };
    number.checked_mul(1 << shift).ok_or_else(|| "that many bytes there are not".to_owned())
}

/// The same, or a part of this machine's memory: `50%`.
pub fn parse_memory(text: &str) -> Result<u64, String> {
    let Some(percent) = text.strip_suffix('%') else { return parse_size(text) };
    let percent: u64 = percent.parse().map_err(|_| "expected 1% to 100%".to_owned())?;
    if !(1..=100).contains(&percent) {
        return Err("expected 1% to 100%".to_owned());
    }
    let system = rustix::system::sysinfo();
    let unit = u64::from(system.mem_unit.max(1));
    Ok((system.totalram as u64).saturating_mul(unit) / 100 * percent)
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
        assert_eq!(parse_size("0"), Ok(0));
        assert_eq!(parse_size("8388608"), Ok(8 << 20));
        for three in ["3M", "3MB", "3MiB"] {
            assert_eq!(parse_size(three), Ok(3 << 20));
        }
        assert_eq!(parse_size("2T"), Ok(2 << 40));
        assert_eq!(parse_age("2"), Ok(Duration::from_secs(172_800)));
        assert_eq!(parse_age("90m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_size("8"), Err("8 bytes are meant in another unit: write 8G or 8M".to_owned()));
        assert_eq!(parse_size("8B"), Ok(8));
        for wrong in ["8iB", "8i", "8GBB", "8X", "50%"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
        let whole = parse_memory("100%").expect("the machine's memory");
        assert!(parse_memory("50%").is_ok_and(|half| half > 0 && half <= whole / 2));
        assert_eq!(parse_memory("2G"), Ok(2 << 30));
        for wrong in ["0%", "101%", "%", "-1%", "8"] {
            assert!(parse_memory(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "M", "1.5G", "-1", "1ü", "99999999999T", "d"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
            assert!(parse_age(wrong).is_err(), "{wrong}");
        }
    }
}
