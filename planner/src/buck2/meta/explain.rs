//! What is wrong with a meta file, and where: entry, linkable and key, which a parser's line and column do not say.
//!
//! Only a file that could not be read is looked at; it is then parsed a second time, as plain JSON.

use std::path::Path;

use serde_json::{Map, Value};

use crate::buck2::error::MetaError;

/// What a key's value has to be.
#[derive(Clone, Copy)]
enum Needed {
    Text,
    Index,
    Flags,
    /// Looked at by itself.
    Any,
}

type Key = (&'static str, Needed);

const OBJECT: &[Key] = &[
    ("path", Needed::Text),
    ("output", Needed::Text),
    ("plan_output", Needed::Text),
    ("idx", Needed::Index),
];
const ARCHIVE: &[Key] = &[
    ("archive_idx", Needed::Index),
    ("archive_plan", Needed::Text),
    ("archive_index_dir", Needed::Text),
    ("archive_opt_objects_dir", Needed::Text),
    ("objects", Needed::Any),
];
const OPAQUE: &[Key] = &[("cmd_args", Needed::Flags), ("object", Needed::Any)];
const DARWIN: &[Key] = &[
    ("input_object_file_path", Needed::Text),
    ("output_index_shard_file_path", Needed::Text),
    ("output_plan_file_path", Needed::Text),
    ("starlark_array_index", Needed::Index),
];

/// The error for a file that serde could not read.
pub fn why(
    path: &Path,
    text: &str,
    error: &serde_json::Error,
    look: fn(&Value) -> Result<(), (String, String)>,
) -> MetaError {
    let file = path.to_owned();
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => return MetaError::Syntax { file, problem: error.to_string() },
    };
    match look(&value) {
        Err((place, problem)) => MetaError::Content { file, place, problem },
        Ok(()) => MetaError::Content { file, place: String::new(), problem: error.to_string() },
    }
}

/// The first problem of a meta file for `gnu`: place and problem.
pub fn gnu(value: &Value) -> Result<(), (String, String)> {
    let entries = list(value, "entries")?;
    for (number, entry) in entries.iter().enumerate() {
        let place = format!("entry {number}");
        let entry = map(entry, &place)?;
        keys(
            entry,
            &[("pre_flags", Needed::Flags), ("post_flags", Needed::Flags), ("linkables", Needed::Any)],
            &place,
        )?;
        for (number, linkable) in
            list(&entry["linkables"], "linkables").map_err(|error| within(&place, error))?.iter().enumerate()
        {
            look_at_linkable(linkable, &format!("{place}, linkable {number}"))?;
        }
    }
    Ok(())
}

/// The first problem of a meta file for `darwin`.
pub fn darwin(value: &Value) -> Result<(), (String, String)> {
    for (number, record) in list(value, "records")?.iter().enumerate() {
        let place = format!("record {number}");
        keys(map(record, &place)?, DARWIN, &place)?;
    }
    Ok(())
}

fn look_at_linkable(linkable: &Value, place: &str) -> Result<(), (String, String)> {
    let linkable = map(linkable, place)?;
    match kind(linkable, place)? {
        "bitcode" => keys(linkable, OBJECT, place),
        "archive" => {
            keys(linkable, ARCHIVE, place)?;
            if linkable["objects"].is_null() {
                return Ok(());
            }
            let members = list(&linkable["objects"], "members").map_err(|error| within(place, error))?;
            for (number, member) in members.iter().enumerate() {
                let place = format!("{place}, object {number}");
                keys(map(member, &place)?, &[("path", Needed::Text)], &place)?;
            }
            Ok(())
        }
        "cmd_args" => {
            keys(linkable, OPAQUE, place)?;
            let place = format!("{place}, \"object\"");
            let object = map(&linkable["object"], &place)?;
            match kind(object, &place)? {
                "archive" => keys(object, &[("archive", Needed::Text)], &place),
                "shared_lib" => keys(object, &[("name", Needed::Text)], &place),
                other => Err((place, format!("unknown type {other:?}"))),
            }
        }
        other => Err((place.to_owned(), format!("unknown type {other:?}"))),
    }
}

fn kind<'v>(object: &'v Map<String, Value>, place: &str) -> Result<&'v str, (String, String)> {
    keys(object, &[("type", Needed::Text)], place)?;
    Ok(object["type"].as_str().unwrap_or_default())
}

fn keys(object: &Map<String, Value>, needed: &[Key], place: &str) -> Result<(), (String, String)> {
    for (key, needed) in needed {
        let problem = match object.get(*key) {
            None => format!("{key:?} is missing"),
            Some(value) => match mismatch(value, *needed) {
                Some(needed) => format!("{key:?} is {} where {needed} is needed", name(value)),
                None => continue,
            },
        };
        return Err((place.to_owned(), problem));
    }
    Ok(())
}

/// What is needed, if the value is something else.
fn mismatch(value: &Value, needed: Needed) -> Option<&'static str> {
    let (good, needed) = match needed {
        Needed::Any => return None,
        Needed::Text => (value.is_string(), "a string"),
        Needed::Index => {
            let digits = value.as_str().is_some_and(|text| text.trim().parse::<u64>().is_ok());
            (digits || value.is_u64(), "a number from 0 on")
        }
        Needed::Flags => (is_flags(value), "a string or a list of strings, nested or not,"),
    };
    (!good).then_some(needed)
}

fn is_flags(value: &Value) -> bool {
    match value {
        Value::String(_) | Value::Null => true,
        Value::Array(items) => items.iter().all(is_flags),
        _ => false,
    }
}

fn list<'v>(value: &'v Value, what: &str) -> Result<&'v Vec<Value>, (String, String)> {
    value
        .as_array()
        .ok_or_else(|| (String::new(), format!("{} where a list of {what} is needed", name(value))))
}

fn map<'v>(value: &'v Value, place: &str) -> Result<&'v Map<String, Value>, (String, String)> {
    value.as_object().ok_or_else(|| (place.to_owned(), format!("{} where an object is needed", name(value))))
}

fn within(place: &str, (_, problem): (String, String)) -> (String, String) {
    (place.to_owned(), problem)
}

fn name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
