//! Strict readers of JSON objects, arrays, strings and indices, which tell where they are.
//!
//! Objects: no unknown, repeated or missing field. They are serde seeds, so that a text of any size is read without
//! a tree of it in memory. Knows nothing of what the fields mean.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};

use super::error::Problem;
use super::place::{Context, Step};

/// What is read from a JSON object.
pub(super) trait Fields<'de> {
    /// What to call the object.
    const NAME: &'static str;
    /// The fields it has; each is required.
    const FIELDS: &'static [&'static str];
    /// Called at the beginning of each object.
    fn begin(&mut self) {}
    /// Reads the value of one of them, by its index.
    fn field<A: MapAccess<'de>>(&mut self, index: usize, map: &mut A, at: &Context) -> Result<(), A::Error>;
}

/// Reads an object into what has these fields.
pub(super) struct Object<'c, 'f, T> {
    pub at: &'c Context,
    pub into: &'f mut T,
}

impl<'de, T: Fields<'de>> DeserializeSeed<'de> for Object<'_, '_, T> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: Fields<'de>> Visitor<'de> for Object<'_, '_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, an object", T::NAME)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.into.begin();
        let mut seen = [false; 8];
        while let Some(key) = map.next_key_seed(Text { at: self.at, what: What::Key })? {
            let Some(index) = T::FIELDS.iter().position(|&field| field == key) else {
                let name = key.into_owned();
                return Err(self.at.fail(Problem::UnknownField { name, of: T::NAME, known: T::FIELDS }));
            };
            self.at.enter(Step::Field(T::FIELDS[index]));
            if std::mem::replace(&mut seen[index], true) {
                return Err(self.at.fail(Problem::RepeatedField));
            }
            self.into.field(index, &mut map, self.at)?;
            self.at.leave();
        }
        match T::FIELDS.iter().zip(seen).find(|(_, seen)| !seen) {
            Some((&name, _)) => Err(self.at.fail(Problem::MissingField { name, of: T::NAME })),
            None => Ok(()),
        }
    }
}

/// Reads an array: a seed for each item, and what is done with the value.
pub(super) struct Array<'c, S, F> {
    pub at: &'c Context,
    pub what: &'static str,
    pub item: S,
    pub take: F,
}

impl<'de, S, F> DeserializeSeed<'de> for Array<'_, S, F>
where
    S: DeserializeSeed<'de> + Copy,
    F: FnMut(S::Value) -> Result<(), Problem>,
{
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, S, F> Visitor<'de> for Array<'_, S, F>
where
    S: DeserializeSeed<'de> + Copy,
    F: FnMut(S::Value) -> Result<(), Problem>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an array of {}", self.what)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        for index in 0.. {
            self.at.enter(Step::Index(index));
            let item = items.next_element_seed(self.item)?;
            if let Some(item) = item {
                (self.take)(item).map_err(|problem| self.at.fail::<A::Error>(problem))?;
            } else {
                self.at.leave();
                break;
            }
            self.at.leave();
        }
        Ok(())
    }
}

/// Reads an array of objects that share a state.
pub(super) struct Objects<'c, 'f, T> {
    pub at: &'c Context,
    pub what: &'static str,
    pub into: &'f mut T,
}

impl<'de, T: Fields<'de>> DeserializeSeed<'de> for Objects<'_, '_, T> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Fields<'de>> Visitor<'de> for Objects<'_, '_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an array of {}", self.what)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        for index in 0.. {
            self.at.enter(Step::Index(index));
            let more = items.next_element_seed(Object { at: self.at, into: &mut *self.into })?;
            self.at.leave();
            if more.is_none() {
                break;
            }
        }
        Ok(())
    }
}

/// What a string is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Key,
    Word,
    Path,
}

/// Reads a string. A path is not empty; nothing holds a NUL.
#[derive(Clone, Copy)]
pub(super) struct Text<'c> {
    pub at: &'c Context,
    pub what: What,
}

impl Text<'_> {
    /// What a string may not be.
    pub fn check<E: Error>(self, text: &str) -> Result<(), E> {
        if text.contains('\0') {
            return Err(self.at.fail(Problem::Nul { text: text.to_owned() }));
        }
        if text.is_empty() && self.what == What::Path {
            return Err(self.at.fail(Problem::EmptyPath));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Text<'_> {
    type Value = Cow<'de, str>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text<'_> {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.what {
            What::Key => "the name of a field",
            What::Word => "a word of a command, a string",
            What::Path => "a path, a string",
        })
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        self.check(text)?;
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        self.check(text)?;
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// Reads a number that counts from 0.
#[derive(Clone, Copy)]
pub(super) struct Index<'c> {
    pub at: &'c Context,
}

impl Index<'_> {
    fn not_one<E: Error>(self, found: impl fmt::Display) -> E {
        self.at.fail(Problem::NotAnIndex { found: found.to_string() })
    }
}

impl<'de> DeserializeSeed<'de> for Index<'_> {
    type Value = u64;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Index<'_> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an index, a number that counts from 0")
    }

    fn visit_u64<E: Error>(self, index: u64) -> Result<u64, E> {
        Ok(index)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
        Err(self.not_one(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<u64, E> {
        Err(self.not_one(format_args!("{number:?}")))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<u64, A::Error> {
        Err(match number_in(map) {
            Some(number) => self.not_one(format_args!("{number:?}")),
            None => A::Error::invalid_type(Unexpected::Map, &self),
        })
    }
}

/// A number that is no 64-bit integer: built with its feature `arbitrary_precision`, as another crate of a build may ask,
/// serde_json hands it over as a map.
fn number_in<'de, A: MapAccess<'de>>(map: A) -> Option<f64> {
    serde_json::Number::deserialize(MapAccessDeserializer::new(map)).ok()?.as_f64()
}

/// What an array holds where a string is allowed too.
pub(super) trait Parts<'de>: Sized {
    /// What the array is called.
    const WHAT: &'static str;
    /// Reads the array.
    fn parts<A: SeqAccess<'de>>(items: A, at: &Context) -> Result<Self, A::Error>;
    /// What a string stands for.
    fn text<E: Error>(text: Cow<'de, str>, at: &Context) -> Result<Self, E>;
    /// What a number stands for; `None` where none is allowed.
    fn number(_index: u64) -> Option<Self> {
        None
    }
}

/// Reads a string, a number or an array, whichever is allowed.
pub(super) struct Either<'c, T> {
    pub at: &'c Context,
    pub kind: PhantomData<T>,
}

impl<T> Clone for Either<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Either<'_, T> {}

impl<'de, T: Parts<'de>> DeserializeSeed<'de> for Either<'_, T> {
    type Value = T;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Parts<'de>> Visitor<'de> for Either<'_, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::WHAT)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<T, A::Error> {
        T::parts(items, self.at)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<T, E> {
        T::text(Cow::Borrowed(text), self.at)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::text(Cow::Owned(text.to_owned()), self.at)
    }

    fn visit_u64<E: Error>(self, index: u64) -> Result<T, E> {
        T::number(index).ok_or_else(|| E::invalid_type(Unexpected::Unsigned(index), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        match T::number(0) {
            Some(_) => Err(Index { at: self.at }.not_one(number)),
            None => Err(E::invalid_type(Unexpected::Signed(number), &self)),
        }
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        match T::number(0) {
            Some(_) => Err(Index { at: self.at }.not_one(format_args!("{number:?}"))),
            None => Err(E::invalid_type(Unexpected::Float(number), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        let number = T::number(0).and_then(|_| number_in(map));
        Err(match number {
            Some(number) => Index { at: self.at }.not_one(format_args!("{number:?}")),
            None => A::Error::invalid_type(Unexpected::Map, &self),
        })
    }
}
