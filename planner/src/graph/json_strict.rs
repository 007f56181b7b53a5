//! Two gaps in what serde's derive refuses, closed: a struct is a JSON object and nothing else, where the
//! derive also takes an array of its fields; an enum's name is a string, where it also takes `{"name":null}`.
//!
//! Without this the reader would accept texts that the published schema refuses.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::{Serialize, Serializer};

use super::ActionKind;

/// A struct that is read from an object only.
pub(super) struct Strict<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Strict<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
            type Value = Strict<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Strict<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Strict)
            }
        }
        deserializer.deserialize_map(Object(PhantomData))
    }
}

/// An action's kind as its name.
pub(super) struct Kind(pub ActionKind);

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = Kind;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let names: Vec<_> = ActionKind::ALL.iter().map(|kind| kind.name()).collect();
                write!(f, "the kind of an action ({})", names.join(", "))
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<Kind, E> {
                let unknown = || E::invalid_value(serde::de::Unexpected::Str(name), &self);
                ActionKind::from_name(name).map(Kind).ok_or_else(unknown)
            }
        }
        deserializer.deserialize_str(Name)
    }
}
