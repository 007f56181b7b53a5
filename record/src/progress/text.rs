//! Text for people: times, sizes, names that may hold anything, and as much of a line as there is room for.
//!
//! Pure.

use std::borrow::Cow;
use std::time::Duration;

pub use distlto_prepare::text::printable;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Text with a line's end after its last line, for printing beside other texts.
pub fn whole_lines(text: &str) -> Cow<'_, str> {
    if text.is_empty() || text.ends_with('\n') {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{text}\n"))
    }
}

/// `1.2 s`, `34 ms`.
pub fn human(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{} ms", duration.as_millis())
    } else {
        format!("{:.1} s", duration.as_secs_f64())
    }
}

/// The same of microseconds.
pub fn human_us(microseconds: u64) -> String {
    human(Duration::from_micros(microseconds))
}

/// `1 module`, `2 modules`.
pub fn counted(number: impl TryInto<u64>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// `12 s`, `3 min 20 s`, `2 h 5 min`: an estimate needs no more digits.
pub(crate) fn about(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().ceil() as u64;
    match seconds {
        0..100 => format!("{seconds} s"),
        100..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// `12 KiB`, `340 MiB`, `1.2 GiB`.
pub fn size(bytes: u64) -> String {
    let kib = bytes as f64 / 1024.0;
    match kib {
        kib if kib < 1000.0 => format!("{:.0} KiB", kib.ceil()),
        kib if kib < 1000.0 * 1024.0 => format!("{:.0} MiB", kib / 1024.0),
        kib => format!("{:.1} GiB", kib / 1024.0 / 1024.0),
    }
}

/// How many columns a text takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// Returns the text in at most `columns` columns; `..` replaces a cut beginning, for paths differ at their end.
pub(super) fn fitted(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let mut room = columns.saturating_sub(2);
    let mut start = text.len();
    for (at, c) in text.char_indices().rev() {
        let Some(left) = room.checked_sub(c.width().unwrap_or(0)) else { break };
        (room, start) = (left, at);
    }
    Cow::Owned(format!("{}{}", &".."[..columns.min(2)], if columns > 2 { &text[start..] } else { "" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_loses_its_beginning() {
        assert_eq!(fitted("module.o", 8), "module.o");
        assert_eq!(fitted("module.o", 6), "..le.o");
        assert_eq!(fitted("module.o", 2), "..");
        assert_eq!(fitted("module.o", 0), "");
        let wide = fitted("\u{6a21}\u{6a21}\u{6a21}", 5);
        assert_eq!(wide, "..\u{6a21}");
        assert!((0..20).all(|columns| width(&fitted("\u{6a21}x\u{6a21}y\u{6a21}z", columns)) <= columns));
    }

    #[test]
    fn times_and_sizes_read_well() {
        assert_eq!(human(Duration::from_millis(34)), "34 ms");
        assert_eq!(human(Duration::from_millis(1234)), "1.2 s");
        assert_eq!(about(Duration::from_millis(1234)), "2 s");
        assert_eq!(about(Duration::from_secs(200)), "3 min 20 s");
        assert_eq!(about(Duration::from_secs(7500)), "2 h 5 min");
        assert_eq!((size(340 << 20), size(1300 << 20)), ("340 MiB".to_owned(), "1.3 GiB".to_owned()));
    }
}
