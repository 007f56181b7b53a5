//! The kind of an action in JSON: always a string. Serde's derive would also take `{"link":null}`, which the published
//! schema refuses.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

use super::ActionKind;

/// An action's kind as its name.
pub(super) struct KindName(pub ActionKind);

impl Serialize for KindName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

impl<'de> Deserialize<'de> for KindName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = KindName;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let names: Vec<_> = ActionKind::ALL.iter().map(|kind| kind.name()).collect();
                write!(f, "the kind of an action ({})", names.join(", "))
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<KindName, E> {
                let unknown = || E::invalid_value(serde::de::Unexpected::Str(name), &self);
                ActionKind::from_name(name).map(KindName).ok_or_else(unknown)
            }
        }
        deserializer.deserialize_str(Name)
    }
}
