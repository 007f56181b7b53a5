//! Values of a meta file that serde has no type for: nested flags, indices.
//!
//! Does not depend on keys.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, SeqAccess, Visitor};

/// Words, however deep in lists; those in lists without blanks around them, as the stock tools write them.
#[derive(Debug, Default)]
pub struct Flags<'a>(pub Vec<Cow<'a, str>>);

impl<'de: 'a, 'a> Deserialize<'de> for Flags<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut words = Vec::new();
        Words { into: &mut words, in_list: false }.deserialize(deserializer)?;
        Ok(Self(words))
    }
}

struct Words<'v, 'a> {
    into: &'v mut Vec<Cow<'a, str>>,
    in_list: bool,
}

impl<'de> DeserializeSeed<'de> for Words<'_, 'de> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Words<'_, 'de> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list of strings, nested or not")
    }
    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<(), E> {
        self.into.push(Cow::Borrowed(if self.in_list { text.trim() } else { text }));
        Ok(())
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        let text = if self.in_list { text.trim() } else { text };
        self.into.push(Cow::Owned(text.to_owned()));
        Ok(())
    }
    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Words { into: self.into, in_list: true })?.is_some() {}
        Ok(())
    }
}

/// An index into the rule's own list; a number, or its digits as a string.
#[derive(Debug, Clone, Copy)]
pub struct Index(pub u64);

impl<'de> Deserialize<'de> for Index {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IndexVisitor;
        impl Visitor<'_> for IndexVisitor {
            type Value = Index;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number from 0 on")
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Index, E> {
                Ok(Index(number))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Index, E> {
                text.trim().parse().map(Index).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(IndexVisitor)
    }
}

/// Deserializes a present key as `Some`, so that `null` (`Some(None)`) differs from a missing key (`None`).
pub fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}
