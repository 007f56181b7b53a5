//! JSON text as Python's `json.dumps` prints it, for output that equals the stock tools' byte for byte.
//!
//! `, ` and `: ` separate; everything but printable ASCII is escaped, beyond the basic plane as surrogates.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

/// Python's way.
pub struct Python;

impl Formatter for Python {
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, text: &str) -> io::Result<()> {
        let is_odd = |c: char| !matches!(c, ' '..='~');
        for part in text.split_inclusive(is_odd) {
            let plain = part.trim_end_matches(is_odd);
            out.write_all(plain.as_bytes())?;
            for unit in part[plain.len()..].encode_utf16() {
                write!(out, "\\u{unit:04x}")?;
            }
        }
        Ok(())
    }
}

/// Returns a serializer that appends to `out`.
pub fn serializer(out: &mut Vec<u8>) -> Serializer<&mut Vec<u8>, Python> {
    Serializer::with_formatter(out, Python)
}

/// Appends a value of text, numbers, lists and structures of them.
pub fn append(out: &mut Vec<u8>, value: &impl Serialize) {
    value.serialize(&mut serializer(out)).expect("text, numbers and lists have a JSON form");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn text_reads_back(text: String) {
            let mut out = Vec::new();
            append(&mut out, &text);
            prop_assert!(out.is_ascii());
            prop_assert_eq!(serde_json::from_slice::<String>(&out).expect("a string"), text);
        }
    }
}
