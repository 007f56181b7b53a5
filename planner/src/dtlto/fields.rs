//! The strings of a job file: neither a path nor a word of a command holds a NUL, and no path is empty.
//!
//! Does not depend on the field that holds them.

use std::borrow::Cow;

use distlto_prepare::json::Text;
use serde::de::{Deserialize, Deserializer, Error};

/// A path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathText<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for PathText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = without_nul(deserializer)?;
        if text.is_empty() {
            return Err(D::Error::custom("an empty path, where every file has a name"));
        }
        Ok(Self(text))
    }
}

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JobWord(pub String);

impl<'de> Deserialize<'de> for JobWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        without_nul(deserializer).map(|word| Self(word.into_owned()))
    }
}

fn without_nul<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'de, str>, D::Error> {
    let Text(text) = Text::deserialize(deserializer)?;
    if text.contains('\0') {
        return Err(D::Error::custom(format_args!(
            "{text:?} holds a NUL character, which no path and no word of a command can"
        )));
    }
    Ok(text)
}
