//! JSON text as Python's `json.dumps(sort_keys=True)` prints it, which is how the stock tools write their plans.
//!
//! `, ` and `: ` separate; everything but printable ASCII is escaped, beyond the basic plane as surrogates. Formed by
//! hand into a buffer that is used again, since a link of many objects writes as many plans.

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends a string with its quotes.
pub fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut plain = 0;
    for (at, c) in text.char_indices() {
        if matches!(c, ' '..='~') && c != '"' && c != '\\' {
            continue;
        }
        out.extend_from_slice(&text.as_bytes()[plain..at]);
        plain = at + c.len_utf8();
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\u{8}' => out.extend_from_slice(b"\\b"),
            '\u{c}' => out.extend_from_slice(b"\\f"),
            other => other.encode_utf16(&mut [0; 2]).iter().for_each(|&unit| escaped(out, unit)),
        }
    }
    out.extend_from_slice(&text.as_bytes()[plain..]);
    out.push(b'"');
}

fn escaped(out: &mut Vec<u8>, unit: u16) {
    out.extend_from_slice(b"\\u");
    for shift in [12, 8, 4, 0] {
        out.push(HEX[usize::from(unit >> shift & 15)]);
    }
}

/// Appends a number.
pub fn number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends `[...]` with what `each` appends for each item.
pub fn list<T>(out: &mut Vec<u8>, items: impl IntoIterator<Item = T>, mut each: impl FnMut(&mut Vec<u8>, T)) {
    out.push(b'[');
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(b", ");
        }
        each(out, item);
    }
    out.push(b']');
}

/// Appends `true` or `false`.
pub fn boolean(out: &mut Vec<u8>, value: bool) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_escaped_as_python_does() {
        let mut out = Vec::new();
        string(&mut out, "a \"\\/\n\r\t\u{8}\u{c}\u{0}\u{1f}\u{7f}é\u{ffff}😀~");
        // What `python3 -c 'import json; print(json.dumps(...))'` prints.
        let python = r#""a \"\\/\n\r\t\b\f\u0000\u001f\u007f\u00e9\uffff\ud83d\ude00~""#;
        assert_eq!(String::from_utf8(out).expect("ASCII"), python);
    }

    proptest! {
        #[test]
        fn text_and_numbers_read_back(text: String, values: Vec<u64>) {
            let mut out = Vec::new();
            string(&mut out, &text);
            prop_assert!(out.is_ascii());
            prop_assert_eq!(serde_json::from_slice::<String>(&out).expect("a string"), text);
            out.clear();
            list(&mut out, &values, |out, &value| number(out, value));
            prop_assert_eq!(serde_json::from_slice::<Vec<u64>>(&out).expect("numbers"), values);
        }
    }
}
