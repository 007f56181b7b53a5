//! Text that may hold anything, made fit for one line of a terminal or a log.
//!
//! Pure.

use std::borrow::Cow;

/// A name as it may be printed: a control character could move the cursor, and a line break would make two lines of one.
pub fn printable(text: &str) -> Cow<'_, str> {
    // Those that turn the direction of what follows reorder the rest of the line.
    let odd = |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !text.contains(odd) {
        return Cow::Borrowed(text);
    }
    let escaped = |c: char| -> String { if odd(c) { c.escape_default().collect() } else { c.to_string() } };
    Cow::Owned(text.chars().map(escaped).collect())
}
