//! What values become: command lines with the files they name, lines of an argument file, JSON.
//!
//! The rules are those of Buck2's `cmd_args`, `write` and `write_json`. Knows nothing of actions.

use std::borrow::Cow;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value as Json};
use starlark::values::dict::DictRef;
use starlark::values::list::ListRef;
use starlark::values::tuple::TupleRef;
use starlark::values::{Heap, Value};

use super::values::Artifact;

/// Words and the files that they stand for.
#[derive(Debug, Default, Clone)]
pub struct Rendered {
    pub words: Vec<String>,
    /// Paths that have to be there.
    pub inputs: Vec<String>,
    /// Paths that whoever uses the words makes.
    pub outputs: Vec<String>,
    /// Inputs that count only as far as the lists name them.
    pub tagged: Vec<String>,
    /// Outputs that list what was read of the tagged inputs.
    pub lists: Vec<String>,
}

/// How the paths of artifacts are spelled inside a `cmd_args`.
#[derive(Debug, Default, Clone)]
struct Spelling {
    parents: usize,
    relative_to: Option<String>,
}

/// Renders anything that may stand on a command line.
pub fn render<'v>(value: Value<'v>, heap: Heap<'v>) -> Result<Rendered> {
    let mut rendered = Rendered::default();
    add(&mut rendered, value, heap, &Spelling::default())?;
    Ok(rendered)
}

/// Renders the content of `write_json`.
pub fn json<'v>(value: Value<'v>, heap: Heap<'v>) -> Result<Json> {
    if value.is_none() {
        return Ok(Json::Null);
    }
    if let Some(truth) = value.unpack_bool() {
        return Ok(truth.into());
    }
    if let Some(number) = value.unpack_i32() {
        return Ok(number.into());
    }
    if let Some(text) = value.unpack_str() {
        return Ok(text.into());
    }
    if let Some(artifact) = Artifact::from_value(value) {
        return Ok(artifact.path.clone().into());
    }
    if let Some(list) = ListRef::from_value(value) {
        return list.iter().map(|item| json(item, heap)).collect::<Result<Vec<_>>>().map(Json::Array);
    }
    if let Some(dict) = DictRef::from_value(value) {
        let mut map = Map::new();
        for (key, item) in dict.iter() {
            let key = key.unpack_str().context("a key of JSON is a string")?;
            map.insert(key.to_owned(), json(item, heap)?);
        }
        return Ok(Json::Object(map));
    }
    let delimiter = attribute(value, "_delimiter", heap).and_then(|value| value.unpack_str());
    let words = render(value, heap)?.words;
    Ok(match delimiter {
        Some(_) => words.concat().into(),
        None => words.into(),
    })
}

/// A field of a struct, if it is one.
pub fn attribute<'v>(value: Value<'v>, name: &str, heap: Heap<'v>) -> Option<Value<'v>> {
    value.get_attr(name, heap).ok().flatten()
}

fn add<'v>(to: &mut Rendered, value: Value<'v>, heap: Heap<'v>, spelling: &Spelling) -> Result<()> {
    if let Some(text) = value.unpack_str() {
        to.words.push(text.to_owned());
    } else if let Some(artifact) = Artifact::from_value(value) {
        to.words.push(spelling.apply(&artifact.path));
        if artifact.output { &mut to.outputs } else { &mut to.inputs }.push(artifact.path.clone());
    } else if let Some(list) = ListRef::from_value(value) {
        for item in list.iter() {
            add(to, item, heap, spelling)?;
        }
    } else if let Some(tuple) = TupleRef::from_value(value) {
        for item in tuple.iter() {
            add(to, item, heap, spelling)?;
        }
    } else if let Some(tagged) = attribute(value, "_tagged", heap) {
        let mut inner = Rendered::default();
        add(&mut inner, tagged, heap, spelling)?;
        to.words.extend(inner.words);
        to.tagged.extend(inner.inputs);
        to.lists.extend(inner.outputs.iter().cloned());
        to.outputs.extend(inner.outputs);
    } else if attribute(value, "_cmd_args", heap).is_some() {
        add_cmd_args(to, value, heap, spelling)?;
    } else if attribute(value, "_provider", heap).is_some() {
        let args = attribute(value, "args", heap).context("only RunInfo stands on a command line")?;
        add(to, args, heap, spelling)?;
    } else {
        bail!("{} does not stand on a command line: {value}", value.get_type());
    }
    Ok(())
}

fn add_cmd_args<'v>(to: &mut Rendered, value: Value<'v>, heap: Heap<'v>, outer: &Spelling) -> Result<()> {
    let field = |name: &str| attribute(value, name, heap).with_context(|| format!("a cmd_args has {name}"));
    let text = |name: &str| field(name).map(|value| value.unpack_str());
    let mut spelling = outer.clone();
    spelling.parents += usize::try_from(field("_parent")?.unpack_i32().unwrap_or(0))?;
    let origin = field("_relative_to")?;
    if !origin.is_none() {
        spelling.relative_to = Some(origin_of(origin)?);
    }
    let mut inner = Rendered::default();
    add(&mut inner, field("_cmd_args")?, heap, &spelling)?;
    let mut words = inner.words;
    if let Some(format) = text("_format")? {
        words = words.iter().map(|word| format.replace("{}", word)).collect();
    }
    if text("_quote")?.is_some() {
        words = words.iter().map(|word| Ok(shlex::try_quote(word)?.into_owned())).collect::<Result<_>>()?;
    }
    if let Some(delimiter) = text("_delimiter")? {
        words = vec![words.join(delimiter)];
    }
    to.words.extend(words);
    if field("_ignore")?.unpack_bool() == Some(true) {
        return Ok(());
    }
    let mut hidden = Rendered::default();
    add(&mut hidden, field("_hidden")?, heap, &spelling)?;
    to.inputs.extend(inner.inputs.into_iter().chain(hidden.inputs));
    to.outputs.extend(inner.outputs.into_iter().chain(hidden.outputs));
    to.tagged.extend(inner.tagged.into_iter().chain(hidden.tagged));
    to.lists.extend(inner.lists.into_iter().chain(hidden.lists));
    Ok(())
}

/// The directory that `relative_to` means: an artifact, or one and how many parents to go up.
fn origin_of(value: Value) -> Result<String> {
    let (artifact, parents) = match TupleRef::from_value(value).map(|tuple| tuple.content()) {
        Some([artifact, parents]) => (*artifact, parents.unpack_i32().context("parents are a number")?),
        _ => (value, 0),
    };
    let artifact = Artifact::from_value(artifact).context("relative_to takes an artifact")?;
    Ok(ancestor(&artifact.path, usize::try_from(parents)?).to_owned())
}

fn ancestor(path: &str, parents: usize) -> &str {
    (0..parents).fold(path, |path, _| path.rsplit_once('/').map_or("", |(parent, _)| parent))
}

impl Spelling {
    fn apply(&self, path: &str) -> String {
        let path = ancestor(path, self.parents);
        match &self.relative_to {
            None => path.to_owned(),
            Some(origin) => relative(path, origin).into_owned(),
        }
    }
}

fn relative<'a>(path: &'a str, origin: &str) -> Cow<'a, str> {
    let (from, to): (Vec<_>, Vec<_>) = (origin.split('/').collect(), path.split('/').collect());
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = from[common..].iter().map(|_| "..");
    let words: Vec<_> = up.chain(to[common..].iter().copied()).collect();
    if words.is_empty() { Cow::Borrowed(".") } else { Cow::Owned(words.join("/")) }
}
