//! Text that may hold anything, made fit for a terminal or a log.
//!
//! Pure.

use std::borrow::Cow;

/// A name as it may be printed: a control character could move the cursor, and a line break would make two lines of one.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_odd)
}

/// Lines as they may be printed: the same, but for their breaks and tabulators.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_odd(c) && !matches!(c, '\n' | '\t'))
}

/// Characters that turn the direction of writing reorder the rest of the line.
fn is_odd(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, odd: impl Fn(char) -> bool + Copy) -> Cow<'_, str> {
    if !text.contains(odd) {
        return Cow::Borrowed(text);
    }
    let escaped = |c: char| -> String { if odd(c) { c.escape_default().collect() } else { c.to_string() } };
    Cow::Owned(text.chars().map(escaped).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_terminal_obeys_it() {
        let text = "a\tb\n\u{1b}[2Jc\r\n\u{202e}d\u{9b}";
        assert_eq!(printable_lines(text), "a\tb\n\\u{1b}[2Jc\\r\n\\u{202e}d\\u{9b}");
        assert_eq!(printable(text), "a\\tb\\n\\u{1b}[2Jc\\r\\n\\u{202e}d\\u{9b}");
        assert!(matches!(printable_lines("a\n\tb"), Cow::Borrowed(_)));
    }
}
