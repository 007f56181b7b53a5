//! The action graph as JSON: versioned, indexed, sorted; one line for each file, prefix and action.
//!
//! The format is described in `docs/action-graph.md` and `docs/action-graph.schema.json`. The writer streams;
//! the reader takes bytes. Knows nothing of the files that hold the JSON.

use std::borrow::Cow;
use std::io::{self, Write};

use camino::Utf8PathBuf;
use distlto_prepare::json::{self, JsonObject, Unread};
use serde::de::{Deserializer, Error, Unexpected};
use serde::{Deserialize, Serialize, Serializer};

use super::error::GraphError;
use super::{ActionGraph, ActionKind, Decided, FileId, Listed, PrefixId, VERSION};

/// Digits of a digest.
const DIGITS: usize = 64;

/// The kind of an action: always a string. Serde's derive would also take `{"link":null}`, which the published schema
/// refuses.
struct KindName(ActionKind);

impl Serialize for KindName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

impl<'de> Deserialize<'de> for KindName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        ActionKind::from_name(&name).map(Self).ok_or_else(|| {
            let names: Vec<_> = ActionKind::ALL.iter().map(|kind| kind.name()).collect();
            let expected = format!("the kind of an action ({})", names.join(", "));
            D::Error::invalid_value(Unexpected::Str(&name), &expected.as_str())
        })
    }
}

/// The whole text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GraphDocument<'a> {
    version: u64,
    #[serde(default)]
    is_record: bool,
    files: Vec<String>,
    prefixes: Vec<Vec<String>>,
    #[serde(borrow)]
    actions: Vec<JsonObject<ActionObject<'a>>>,
}

/// One action.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ActionObject<'a> {
    kind: KindName,
    #[serde(borrow)]
    label: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefix: Option<u32>,
    args: Cow<'a, [String]>,
    inputs: Vec<u32>,
    outputs: Vec<u32>,
    cost: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    imported: u64,
    #[serde(borrow, default, deserialize_with = "digest", skip_serializing_if = "Option::is_none")]
    shard: Option<Cow<'a, str>>,
}

/// A digest in hexadecimal.
fn digest<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'a, str>>, D::Error> {
    let text = Cow::<'a, str>::deserialize(deserializer)?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
    match text.len() == DIGITS && text.bytes().all(is_digit) {
        true => Ok(Some(text)),
        false => {
            Err(D::Error::invalid_value(Unexpected::Str(&text), &"64 hexadecimal digits, in lower case"))
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Writes the graph's JSON. Equal graphs give equal bytes, in any order of construction.
pub fn write(graph: &ActionGraph, out: &mut impl Write) -> io::Result<()> {
    let order = graph.canonical_order();
    write!(out, "{{\n\"version\":{VERSION},\n")?;
    if graph.is_record() {
        out.write_all(b"\"is_record\":true,\n")?;
    }
    out.write_all(b"\"files\":")?;
    lines(out, order.files.iter().map(|&file| graph.text(file)))?;
    out.write_all(b",\n\"prefixes\":")?;
    lines(out, order.prefixes.iter().map(|&prefix| graph.prefix_words(prefix)))?;
    out.write_all(b",\n\"actions\":")?;
    let records = order.actions.iter().map(|&id| {
        let action = graph.action(id);
        ActionObject {
            kind: KindName(action.kind()),
            label: Cow::Borrowed(&action.label),
            prefix: order.prefix_place(action),
            args: Cow::Borrowed(&action.args),
            inputs: action.inputs().map(|file| order.place(file)).collect(),
            outputs: action.outputs().map(|file| order.place(file)).collect(),
            cost: action.cost,
            imported: action.backend().map_or(0, |backend| backend.decided.imported),
            shard: action.backend().and_then(|backend| backend.decided.shard.as_deref()).map(Cow::Borrowed),
        }
    });
    lines(out, records)?;
    out.write_all(b"\n}\n")
}

/// [`write`] to memory.
pub fn to_bytes(graph: &ActionGraph) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(graph, &mut bytes).expect("writing to a Vec does not fail, and every key of the format is text");
    bytes
}

/// Reads a graph's JSON and checks it. The result is in canonical order, regardless of the text's order.
pub fn read(bytes: &[u8]) -> Result<ActionGraph, GraphError> {
    let read = json::read_version(bytes, VERSION, |document: &GraphDocument<'_>| document.version);
    let document = read.map_err(|unread| match unread {
        Unread::Version(found) => GraphError::Version { found },
        Unread::Json(error) => GraphError::Json(error),
    })?;
    let files = document.files.into_iter().map(Utf8PathBuf::from).collect();
    let ids = |places: Vec<u32>| places.into_iter().map(FileId).collect();
    let actions = document.actions.into_iter().map(|JsonObject(record)| Listed {
        kind: record.kind.0,
        label: record.label.into_owned(),
        prefix: record.prefix.map(PrefixId),
        args: record.args.into_owned(),
        inputs: ids(record.inputs),
        outputs: ids(record.outputs),
        cost: record.cost,
        decided: Decided { imported: record.imported, shard: record.shard.map(Cow::into_owned) },
    });
    let graph = ActionGraph::from_lists(files, document.prefixes, actions.collect())?;
    Ok(if document.is_record { graph.into_record() } else { graph })
}

/// A JSON array with one line for each item.
fn lines<T: Serialize>(out: &mut impl Write, items: impl Iterator<Item = T>) -> io::Result<()> {
    let mut before: &[u8] = b"[\n";
    for item in items {
        out.write_all(before)?;
        serde_json::to_writer(&mut *out, &item)?;
        before = b",\n";
    }
    out.write_all(if before == b"[\n" { b"[]" } else { b"\n]" })
}
