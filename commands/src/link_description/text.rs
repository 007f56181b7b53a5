//! Which of the JSON texts of distlto, lld and Buck2 a file holds, by the names of the members at its top.
//!
//! Pure. A truncated text is still recognised by its beginning; its own reader then reports where it ends.

use std::fmt;

use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};

/// A JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonText {
    /// A record of a run.
    Record,
    /// A job file of lld's DTLTO, of either shape.
    Jobs,
    /// A meta file of Buck2's rule.
    Meta,
    /// An action graph, or none of these.
    Other,
}

impl JsonText {
    /// Returns the kind of these bytes; `None` if they are no JSON text that begins with an object or a list.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes.trim_ascii_start().first()? {
            b'[' => return Some(Self::Meta),
            b'{' => {}
            _ => return None,
        }
        let members = members(bytes);
        let has = |names: &[&str]| names.iter().all(|name| members.iter().any(|member| member == name));
        Some(if has(&["begun_ms"]) {
            Self::Record
        } else if has(&["jobs"]) {
            Self::Jobs
        } else {
            Self::Other
        })
    }
}

/// The names of the members of the object that a text is, as far as it can be read.
fn members(bytes: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    // An error in the text is reported by its own reader.
    let _ = serde_json::Deserializer::from_slice(bytes).deserialize_map(Names(&mut names));
    names
}

struct Names<'n>(&'n mut Vec<String>);

impl<'de> Visitor<'de> for Names<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        // More than any of these texts has: a reader of names is not to fill the memory.
        const MOST: usize = 1000;
        while let Some(name) = map.next_key::<String>()? {
            self.0.push(name);
            if self.0.len() > MOST {
                return Err(A::Error::custom("no text has so many members"));
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_are_told_by_members_at_the_top_alone() {
        for (text, expected) in [
            (r#"{"version": 1, "begun_ms": 5}"#, Some(JsonText::Record)),
            (r#" {"common": {}, "jobs": []}"#, Some(JsonText::Jobs)),
            (r#"{"version": {"major": 0}, "jobs": {}}"#, Some(JsonText::Jobs)),
            (r#"{"version": 1, "actions": ["begun_ms", {"begun_ms": 1, "jobs": 2}]}"#, Some(JsonText::Other)),
            (r#"{"label": "\"begun_ms\": jobs"}"#, Some(JsonText::Other)),
            (r#"{"begun_ms": ["#, Some(JsonText::Record)),
            ("[", Some(JsonText::Meta)),
            ("", None),
            ("BC\u{c0}", None),
        ] {
            assert_eq!(JsonText::of(text.as_bytes()), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_told(bytes in prop::collection::vec(any::<u8>(), 0..200), start in "[{\\[ ]?") {
            let _ = JsonText::of(&[start.as_bytes(), &bytes].concat());
        }

        #[test]
        fn a_text_that_is_cut_is_no_panic(end in 0..60_usize) {
            let text = br#"{"version": 1, "begun_ms": {"a": [1, "\u00e9"]}, "jobs": null}"#;
            let _ = JsonText::of(&text[..end.min(text.len())]);
        }
    }
}
