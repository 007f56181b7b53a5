//! One reader for every JSON text that must have exactly the form of its format.
//!
//! An error has its place in the document (`actions[3].outputs[0].path`), line and column, the value found and the
//! value expected. Only a refused text is read a second time, by `serde_path_to_error`, to learn the place. Knows no
//! format, and nothing of the file that the text came from: the caller names it.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::error::Category;

/// Why a text was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    /// The path of the member: `actions[3].outputs[0].path`; empty for the document as a whole.
    pub place: String,
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in bytes; 0 before the first one.
    pub column: usize,
    /// The value found, and the value expected.
    pub problem: String,
    /// Whether the text itself is damaged or is another's.
    pub fault: Fault,
}

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The text ends too early.
    Truncated,
    /// It is not JSON.
    Syntax,
    /// It is JSON that the format does not allow.
    Content,
}

impl JsonError {
    fn new(place: String, error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let mut problem = error.to_string();
        if let Some(stem) = problem.strip_suffix(&format!(" at line {line} column {column}")) {
            problem.truncate(stem.len());
        }
        let fault = match error.classify() {
            Category::Eof => Fault::Truncated,
            Category::Data => Fault::Content,
            Category::Io | Category::Syntax => Fault::Syntax,
        };
        Self { place, line, column, problem, fault }
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, line, column, problem, .. } = self;
        match place.as_str() {
            "" => write!(f, "line {line}, column {column}: {problem}"),
            place => write!(f, "{place} (line {line}, column {column}): {problem}"),
        }
    }
}

impl std::error::Error for JsonError {}

/// Reads one document; nothing but blanks may follow it.
pub fn read<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Result<T, JsonError> {
    serde_json::from_slice(bytes)
        .map_err(|error| locate::<T>(bytes).unwrap_or_else(|| JsonError::new(String::new(), &error)))
}

/// The same error with its place.
fn locate<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Option<JsonError> {
    let mut text = serde_json::Deserializer::from_slice(bytes);
    let error = serde_path_to_error::deserialize::<_, T>(&mut text).err()?;
    // Drops the end of a path where no key has been read yet: it is no place.
    let place = error.path().to_string();
    let place = match place.trim_end_matches(".?") {
        "." | "?" => "",
        place => place,
    };
    Some(JsonError::new(place.to_owned(), error.inner()))
}

/// Why a document with a version was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unread {
    /// It is of a version that this program does not know.
    Version(u64),
    /// It does not have the form of its version.
    Json(JsonError),
}

/// Reads an object with the member `version`, which must be `known`; `version` takes it from the value read.
pub fn read_version<'b, T: Deserialize<'b>>(
    bytes: &'b [u8],
    known: impl Into<u64>,
    version: impl FnOnce(&T) -> u64,
) -> Result<T, Unread> {
    #[derive(serde::Deserialize)]
    struct VersionOnly {
        version: u64,
    }
    let known = known.into();
    let found = match read::<JsonObject<T>>(bytes) {
        Ok(JsonObject(document)) => match version(&document) {
            found if found == known => return Ok(document),
            found => found,
        },
        // Another version may have other members: it says more than the first of them.
        Err(error) => match serde_json::from_slice::<JsonObject<VersionOnly>>(bytes) {
            Ok(JsonObject(VersionOnly { version })) if version != known => version,
            _ => return Err(Unread::Json(error)),
        },
    };
    Err(Unread::Version(found))
}

/// A struct that is read from an object only, where serde's derive also takes an array of its fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JsonObject<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for JsonObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = JsonObject<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<JsonObject<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(JsonObject)
            }
        }
        deserializer.deserialize_map(Members(PhantomData))
    }
}

/// Text, borrowed from the document unless it holds escapes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text<'a>(pub Cow<'a, str>);

impl AsRef<str> for Text<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowed;
        impl<'de> Visitor<'de> for Borrowed {
            type Value = Cow<'de, str>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(text))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text.to_owned()))
            }
        }
        deserializer.deserialize_str(Borrowed).map(Self)
    }
}
