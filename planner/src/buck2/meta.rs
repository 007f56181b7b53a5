//! The meta file of the rule for linker type `gnu`: everything on the link line, with the places of its outputs.
//!
//! A list of entries, each with flags before and after it and its linkables. Flags are nested lists, flattened while
//! they are read; text is borrowed from the file. Does not open the files at the paths.

pub mod values;

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use distlto_prepare::json::{self, JsonObject, Text};
use serde::de::{Deserialize, Deserializer, Error};

use super::error::MetaError;
use values::{Flags, Index};

/// Suffix of a native object, in place of the shard's suffix, as the rule declares it.
const OBJECT: &str = ".opt.o";

/// A meta file.
#[derive(Debug, Default)]
pub struct Meta<'a> {
    /// In link order.
    pub entries: Vec<MetaEntry<'a>>,
}

impl Meta<'_> {
    /// All flags.
    pub fn flags(&self) -> impl Iterator<Item = &str> {
        let flags = self.entries.iter().flat_map(|entry| entry.pre_flags.iter().chain(&entry.post_flags));
        flags.map(|flag| &**flag)
    }
}

/// One dependency's contribution to the link.
#[derive(Debug, Default)]
pub struct MetaEntry<'a> {
    /// Flags before its linkables.
    pub pre_flags: Vec<Cow<'a, str>>,
    /// Flags after them.
    pub post_flags: Vec<Cow<'a, str>>,
    /// Its linkables; empty for an entry of flags alone.
    pub linkables: Vec<Linkable<'a>>,
}

/// One thing to link.
#[derive(Debug)]
pub enum Linkable<'a> {
    /// An object, of bitcode or native.
    Object(Object<'a>),
    /// An archive with members that are linked one by one.
    Archive(Archive<'a>),
    /// A file that is linked unchanged, with words of its own.
    Opaque(Opaque<'a>),
}

/// An object; the meta file calls it `bitcode` even if it is native.
#[derive(Debug)]
pub struct Object<'a> {
    /// The object, as on the link line.
    pub path: Cow<'a, str>,
    /// Where its shard goes.
    pub output: Cow<'a, str>,
    /// Where its plan goes.
    pub plan_output: Cow<'a, str>,
    /// Its index in plans.
    pub index: u64,
}

impl Object<'_> {
    /// Where its native object will be.
    pub fn native(&self) -> Cow<'_, str> {
        match self.output.strip_suffix(super::index_directory::SHARD) {
            Some(stem) => Cow::Owned(format!("{stem}{OBJECT}")),
            None => Cow::Borrowed(&self.output),
        }
    }
}

/// An archive with members that are linked one by one.
#[derive(Debug)]
pub struct Archive<'a> {
    /// The index of the archive and of each member in plans.
    pub index: u64,
    /// Where its plan goes.
    pub plan: Cow<'a, str>,
    /// The directory for its members' shards.
    pub index_directory: Cow<'a, str>,
    /// The directory where its members' native objects will be.
    pub objects_directory: Cow<'a, str>,
    /// The members; `None` where the archive has none, and another action writes its plan.
    pub members: Option<Vec<Cow<'a, str>>>,
}

impl Archive<'_> {
    /// The directory that its members' paths are seen from.
    pub fn base(&self) -> &str {
        self.plan.rsplit_once('/').map_or("", |(base, _)| if base.is_empty() { "/" } else { base })
    }
}

/// A file that is linked unchanged: a native archive or a shared library.
#[derive(Debug)]
pub struct Opaque<'a> {
    /// Its words on the link line, such as `-Wl,--whole-archive` around it.
    pub words: Vec<Cow<'a, str>>,
    /// The file that the linker loads.
    pub file: Cow<'a, str>,
}

/// Reads a meta file; `path` is for messages.
pub fn read<'a>(path: &Path, text: &'a [u8]) -> Result<Meta<'a>, MetaError> {
    let file = || path.to_owned();
    let text = std::str::from_utf8(text)
        .map_err(|error| MetaError::NotUtf8 { file: file(), offset: error.valid_up_to() })?;
    let raw: Vec<JsonObject<RawEntry<'a>>> =
        json::read(text.as_bytes()).map_err(|error| MetaError::unread(file(), error))?;
    let entry = |JsonObject(RawEntry { pre_flags, post_flags, linkables })| MetaEntry {
        pre_flags: pre_flags.0,
        post_flags: post_flags.0,
        linkables,
    };
    let meta = Meta { entries: raw.into_iter().map(entry).collect() };
    check_outputs(path, &meta)?;
    Ok(meta)
}

/// Refuses a meta file in which two objects share an output: one of them would be lost.
pub(super) fn check_outputs(path: &Path, meta: &Meta<'_>) -> Result<(), MetaError> {
    let objects =
        meta.entries.iter().flat_map(|entry| &entry.linkables).filter_map(|linkable| match linkable {
            Linkable::Object(object) => Some(object),
            _ => None,
        });
    let mut writers: HashMap<&str, &str> = HashMap::new();
    for object in objects {
        for output in [&object.output, &object.plan_output] {
            let other = writers.insert(output, &object.path).filter(|&other| other != object.path);
            if let Some(other) = other {
                return Err(MetaError::SharedOutput {
                    file: path.to_owned(),
                    output: output.to_string(),
                    one: other.to_owned(),
                    other: object.path.to_string(),
                });
            }
        }
    }
    Ok(())
}

#[derive(serde::Deserialize)]
struct RawEntry<'a> {
    #[serde(borrow)]
    pre_flags: Flags<'a>,
    #[serde(borrow)]
    post_flags: Flags<'a>,
    #[serde(borrow)]
    linkables: Vec<Linkable<'a>>,
}

/// The keys of all kinds of linkable: a tagged enum would be read twice.
#[derive(serde::Deserialize)]
struct RawLinkable<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    path: Option<Text<'a>>,
    #[serde(borrow)]
    output: Option<Text<'a>>,
    #[serde(borrow)]
    plan_output: Option<Text<'a>>,
    idx: Option<Index>,
    archive_idx: Option<Index>,
    #[serde(borrow)]
    archive_plan: Option<Text<'a>>,
    #[serde(borrow)]
    archive_index_dir: Option<Text<'a>>,
    #[serde(borrow)]
    archive_opt_objects_dir: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "values::present")]
    objects: Option<Option<Vec<JsonObject<RawMember<'a>>>>>,
    #[serde(borrow)]
    cmd_args: Option<Flags<'a>>,
    #[serde(borrow)]
    object: Option<JsonObject<RawFile<'a>>>,
}

#[derive(serde::Deserialize)]
struct RawMember<'a> {
    #[serde(borrow)]
    path: Text<'a>,
}

#[derive(serde::Deserialize)]
struct RawFile<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    archive: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Linkable<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        fn need<T, E: Error>(value: Option<T>, key: &'static str) -> Result<T, E> {
            value.ok_or_else(|| E::missing_field(key))
        }
        let JsonObject(raw) = JsonObject::<RawLinkable<'a>>::deserialize(deserializer)?;
        match &*raw.kind.0 {
            "bitcode" => Ok(Linkable::Object(Object {
                path: need(raw.path, "path")?.0,
                output: need(raw.output, "output")?.0,
                plan_output: need(raw.plan_output, "plan_output")?.0,
                index: need(raw.idx, "idx")?.0,
            })),
            "archive" => {
                let members = need(raw.objects, "objects")?;
                let paths = |members: Vec<JsonObject<RawMember<'a>>>| {
                    members.into_iter().map(|JsonObject(member)| member.path.0).collect()
                };
                Ok(Linkable::Archive(Archive {
                    index: need(raw.archive_idx, "archive_idx")?.0,
                    plan: need(raw.archive_plan, "archive_plan")?.0,
                    index_directory: need(raw.archive_index_dir, "archive_index_dir")?.0,
                    objects_directory: need(raw.archive_opt_objects_dir, "archive_opt_objects_dir")?.0,
                    members: members.map(paths),
                }))
            }
            "cmd_args" => {
                let JsonObject(object) = need(raw.object, "object")?;
                let file = match &*object.kind.0 {
                    "archive" => need(object.archive, "archive")?,
                    "shared_lib" => need(object.name, "name")?,
                    other => return Err(Error::unknown_variant(other, &["archive", "shared_lib"])),
                };
                Ok(Linkable::Opaque(Opaque { words: need(raw.cmd_args, "cmd_args")?.0, file: file.0 }))
            }
            other => Err(Error::unknown_variant(other, &["bitcode", "archive", "cmd_args"])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        read(Path::new("m.json"), text.as_bytes()).expect_err("refused").to_string()
    }

    #[test]
    fn every_problem_says_where_it_is() {
        let entry = |linkable: &str| {
            format!(
                r#"[{{"pre_flags": [], "post_flags": [], "linkables": []}},
                    {{"pre_flags": [], "post_flags": [], "linkables": [{linkable}]}}]"#
            )
        };
        for (linkable, place, expected) in [
            (
                r#"{"type": "rlib"}"#,
                "",
                "unknown variant `rlib`, expected one of `bitcode`, `archive`, `cmd_args`",
            ),
            (r#"{"path": "a"}"#, "", "missing field `type`"),
            (r#"{"type": "bitcode", "path": "a"}"#, "", "missing field `output`"),
            (r#"[]"#, "", "invalid type: sequence, expected an object"),
            (r#"{"type": "bitcode", "path": 3}"#, ".path", "invalid type: integer `3`, expected a string"),
            (
                r#"{"type": "bitcode", "path": "a", "output": "b", "plan_output": "c", "idx": -1}"#,
                ".idx",
                "invalid type: integer `-1`, expected a number from 0 on",
            ),
            (
                r#"{"type": "cmd_args", "cmd_args": [1], "object": {"type": "archive", "archive": "a"}}"#,
                ".cmd_args[0]",
                "invalid type: integer `1`, expected a string or a list of strings, nested or not",
            ),
            (
                r#"{"type": "cmd_args", "cmd_args": [], "object": {"type": "x"}}"#,
                "",
                "unknown variant `x`, expected `archive` or `shared_lib`",
            ),
            (
                r#"{"type": "archive", "archive_idx": 1, "archive_plan": "p", "archive_index_dir": "i", "archive_opt_objects_dir": "o", "objects": [{"path": "a"}, {}]}"#,
                ".objects[1]",
                "missing field `path`",
            ),
        ] {
            let said = problem(&entry(linkable));
            let begins = format!("m.json: [1].linkables[0]{place} (line 2, column ");
            assert!(said.starts_with(&begins) && said.ends_with(&format!("): {expected}")), "{said}");
        }
        assert_eq!(problem("{}"), "m.json: line 1, column 0: invalid type: map, expected a sequence");
        assert_eq!(
            problem(r#"[{"pre_flags": []}]"#),
            "m.json: [0] (line 1, column 18): missing field `post_flags`"
        );
        let cut = problem(r#"[{"pre_flags": [], "post_f"#);
        assert!(
            cut.starts_with("m.json is no JSON: [0]") && cut.contains("(line 1, column 26): EOF"),
            "{cut}"
        );
        let bytes = read(Path::new("m.json"), b"[\"\xff\"]").expect_err("refused").to_string();
        assert_eq!(bytes, "m.json is not UTF-8 at byte 2");
    }

    #[test]
    fn two_objects_cannot_share_an_output() {
        let object = |path: &str, output: &str| {
            format!(
                r#"{{"type": "bitcode", "path": "{path}", "output": "{output}", "plan_output": "{output}.p", "idx": 0}}"#
            )
        };
        let meta = |one: &str, other: &str| {
            format!(r#"[{{"pre_flags": [], "post_flags": [], "linkables": [{one}, {other}]}}]"#)
        };
        assert_eq!(
            problem(&meta(&object("a.o", "x"), &object("b.o", "x"))),
            "m.json: a.o and b.o have the same output x"
        );
        let same = meta(&object("a.o", "x"), &object("a.o", "x"));
        assert!(read(Path::new("m.json"), same.as_bytes()).is_ok());
    }
}
