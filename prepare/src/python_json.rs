//! JSON text as Python's `json.dump` writes it, for files that Buck2's stock tools would have written.
//!
//! ASCII alone, the indentation asked for, no newline at the end, floats as Python's `repr` gives them. Keys are in the
//! order of the value: use a sorted map. Source: the documentation of Python's module `json` and of `float.__repr__`.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter};

/// The text of a value, indented by so many spaces.
pub fn to_string(value: &impl Serialize, indent: usize) -> String {
    let spaces = " ".repeat(indent);
    let mut out = Vec::with_capacity(256);
    let formatter = Python(PrettyFormatter::with_indent(spaces.as_bytes()));
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
    value.serialize(&mut serializer).expect("writing to memory does not fail, and keys are strings");
    String::from_utf8(out).expect("the formatter writes ASCII")
}

/// A float as Python prints it: the shortest digits that read back as the same, in positional form from 1e-4 to
/// below 1e16, with an exponent of at least two digits otherwise.
fn float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent @ -4..16) => {
            // Display is positional and has the same digits, but gives whole numbers no point.
            let text = format!("{value}");
            if exponent >= 0 && !text.contains('.') { text + ".0" } else { text }
        }
        Ok(exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
        }
        Err(_) => scientific,
    }
}

struct Python<'a>(PrettyFormatter<'a>);

impl Formatter for Python<'_> {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }

    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        out.write_all(float(value).as_bytes())
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        for part in fragment.split_inclusive(|c| !matches!(c, ' '..='~')) {
            let plain = part.trim_end_matches(|c| !matches!(c, ' '..='~'));
            out.write_all(plain.as_bytes())?;
            for unit in part[plain.len()..].encode_utf16() {
                write!(out, "\\u{unit:04x}")?;
            }
        }
        Ok(())
    }
}
