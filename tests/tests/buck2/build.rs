//! Builds what is asked for from recorded actions: the makers of a file run when something needs the file, and the
//! function of a dynamic output is called with the contents of its inputs, then records further actions.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};

use anyhow::{Context, Result, bail, ensure};
use starlark::environment::{FrozenModule, Module};
use starlark::eval::Evaluator;
use starlark::values::Value;
use starlark::values::dict::DictRef;
use starlark::values::list::ListRef;
use starlark::values::tuple::TupleRef;

use super::project::{Built, Foreign, Project};
use super::render::{Rendered, attribute, json, render};
use super::sandbox;
use super::values::Artifact;

/// What makes files, by index.
#[derive(Debug)]
enum Maker<'v> {
    Run { name: String, command: Rendered },
    Write { output: String, text: String },
    Copy { output: String, source: String },
    Directory { output: String, entries: Vec<(String, String)> },
    Dynamic { value: Value<'v>, inputs: Vec<String>, outputs: Vec<String>, number: usize },
}

/// One build.
pub struct Build<'b, 'v, 'a, 'e> {
    eval: &'b mut Evaluator<'v, 'a, 'e>,
    stand_in: &'b FrozenModule,
    project: &'b mut Project,
    makers: Vec<Maker<'v>>,
    /// Which maker makes a path; a dynamic output's is replaced when its function has said how.
    made_by: HashMap<String, usize>,
    declared: HashSet<String>,
    finished: HashSet<usize>,
    /// How much of the module's list of emitted values has been read.
    read: usize,
    /// How many dynamic outputs each target has.
    dynamics: HashMap<(String, String), usize>,
    built: Built,
}

impl<'b, 'v, 'a, 'e> Build<'b, 'v, 'a, 'e> {
    /// Nothing is run yet. The build files have been evaluated.
    pub fn new(
        eval: &'b mut Evaluator<'v, 'a, 'e>,
        stand_in: &'b FrozenModule,
        project: &'b mut Project,
    ) -> Self {
        Self {
            eval,
            stand_in,
            project,
            makers: Vec::new(),
            made_by: HashMap::new(),
            declared: HashSet::new(),
            finished: HashSet::new(),
            read: 0,
            dynamics: HashMap::new(),
            built: Built::default(),
        }
    }

    /// What the target's program is started with.
    pub fn command(mut self, label: &str) -> Result<Vec<String>> {
        let providers = self.analyse(label)?;
        let arguments = self.call("run_arguments", &[providers])?;
        Ok(render(arguments, self.eval.heap())?.words)
    }

    fn analyse(&mut self, label: &str) -> Result<Value<'v>> {
        let emitted = emitted(self.eval.module())?;
        let resolve = self.call("resolver", &[emitted])?;
        let heap = self.eval.heap();
        self.invoke(resolve, &[heap.alloc(""), heap.alloc(label)])
    }

    /// Makes all that building the target makes.
    pub fn build(mut self, label: &str) -> Result<Built> {
        let (target, part) =
            label.strip_suffix(']').and_then(|label| label.split_once('[')).unwrap_or((label, ""));
        let providers = self.analyse(target)?;
        let part = self.eval.heap().alloc(part);
        let outputs = self.call("built_outputs", &[providers, part])?;
        self.read_emitted()?;
        for output in ListRef::from_value(outputs).context("outputs are a list")?.iter() {
            let path = artifact(output)?.path.clone();
            self.make(&path)?;
            self.built.outputs.push(self.project.root.join(&path));
        }
        Ok(self.built)
    }

    fn call(&mut self, function: &str, arguments: &[Value<'v>]) -> Result<Value<'v>> {
        let function = self.stand_in.get(function)?;
        let function = self.eval.module().heap().access_owned_frozen_value(&function);
        self.invoke(function, arguments)
    }

    fn invoke(&mut self, function: Value<'v>, arguments: &[Value<'v>]) -> Result<Value<'v>> {
        self.eval.eval_function(function, arguments, &[]).map_err(|error| error.into_anyhow())
    }

    /// Sees to it that a file or directory is there.
    fn make(&mut self, path: &str) -> Result<()> {
        while let Some(index) = self.maker(path) {
            if self.finished.insert(index) {
                self.run(index).with_context(|| format!("for {path}"))?;
            } else if !matches!(self.makers[index], Maker::Dynamic { .. }) {
                return Ok(());
            }
        }
        ensure!(!path.starts_with("buck-out/"), "nothing makes {path}");
        ensure!(self.project.root.join(path).exists(), "{path} is no source");
        Ok(())
    }

    /// The maker of a path or of the directory that it lies in.
    fn maker(&self, path: &str) -> Option<usize> {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        ends.map(|end| &path[..end]).find_map(|path| self.made_by.get(path)).copied()
    }

    fn run(&mut self, index: usize) -> Result<()> {
        let root = self.project.root.clone();
        match &self.makers[index] {
            Maker::Run { name, command } => {
                let (name, command) = (name.clone(), command.clone());
                self.run_command(&name, command).with_context(|| name.clone())
            }
            Maker::Write { output, text } => {
                sandbox::replace(&root.join(output), |place| Ok(fs::write(place, text)?))
            }
            Maker::Copy { output, source } => {
                let (output, source) = (output.clone(), source.clone());
                self.make(&source)?;
                sandbox::replace(&root.join(output), |place| sandbox::copy(&root.join(source), place))
            }
            Maker::Directory { output, entries } => {
                let (output, entries) = (output.clone(), entries.clone());
                for (_, source) in &entries {
                    self.make(source)?;
                }
                sandbox::replace(&root.join(output), |place| {
                    fs::create_dir(place)?;
                    entries
                        .iter()
                        .try_for_each(|(name, source)| sandbox::copy(&root.join(source), &place.join(name)))
                })
            }
            Maker::Dynamic { value, inputs, outputs, number } => {
                let (value, inputs, outputs, number) = (*value, inputs.clone(), outputs.clone(), *number);
                for input in &inputs {
                    self.make(input)?;
                }
                let read = |input: &String| Ok(self.eval.heap().alloc(fs::read_to_string(root.join(input))?));
                let contents = inputs.iter().map(read).collect::<Result<Vec<_>>>()?;
                let contents = self.eval.heap().alloc(contents);
                let number = self.eval.heap().alloc(i32::try_from(number)?);
                self.call("call_dynamic", &[value, contents, number])?;
                self.read_emitted()?;
                for output in outputs {
                    ensure!(self.made_by.get(&output) != Some(&index), "the function did not bind {output}");
                }
                Ok(())
            }
        }
    }

    fn run_command(&mut self, name: &str, command: Rendered) -> Result<()> {
        let mut inputs = [&command.inputs[..], &command.tagged].concat();
        inputs.sort();
        inputs.dedup();
        for input in &inputs {
            self.make(input)?;
        }
        let there = command.outputs.iter().all(|output| self.project.root.join(output).exists());
        if !there || self.project.done.get(name) != Some(&self.state(&command)?) {
            let path = self.project.path.as_deref();
            sandbox::run(&self.project.root, &command.words, &inputs, &command.outputs, path)?;
            let state = self.state(&command)?;
            self.project.done.insert(name.to_owned(), state);
            self.built.ran.push(name.to_owned());
        }
        ensure!(self.built.inputs.insert(name.to_owned(), inputs).is_none(), "two actions are named {name}");
        Ok(())
    }

    /// A number for a command and what it reads. Of tagged inputs only what the last run listed counts, as in Buck2.
    fn state(&self, command: &Rendered) -> Result<u64> {
        let root = &self.project.root;
        let mut hasher = DefaultHasher::new();
        (&command.words, &command.outputs).hash(&mut hasher);
        let mut read = command.inputs.clone();
        match command.lists.first().map(|list| fs::read_to_string(root.join(list))) {
            Some(Ok(list)) => read.extend(list.lines().map(str::to_owned)),
            _ => read.extend(command.tagged.iter().cloned()),
        }
        read.sort();
        for path in read {
            let found = root.join(&path).exists().then(|| sandbox::digest(&root.join(&path))).transpose()?;
            (path, found).hash(&mut hasher);
        }
        Ok(hasher.finish())
    }

    /// Takes over what rules and dynamic functions have recorded since the last time.
    fn read_emitted(&mut self) -> Result<()> {
        let list = emitted(self.eval.module())?;
        let list = ListRef::from_value(list).context("emitted values are a list")?;
        for pair in &list.content()[self.read..] {
            self.read += 1;
            let (kind, value) = pair_of(*pair)?;
            self.take(kind, value)?;
        }
        Ok(())
    }

    fn take(&mut self, kind: &str, value: Value<'v>) -> Result<()> {
        let heap = self.eval.heap();
        let field = |name: &str| attribute(value, name, heap).with_context(|| format!("{kind} has {name}"));
        let path = |name: &str| Ok::<_, anyhow::Error>(artifact(field(name)?)?.path.clone());
        let maker = match kind {
            "declare" => {
                let path = artifact(value)?.path.clone();
                ensure!(self.declared.insert(path.clone()), "{path} is declared twice");
                return Ok(());
            }
            "run" => {
                let text =
                    |name: &str| field(name).map(|value| value.unpack_str().unwrap_or_default().to_owned());
                Maker::Run {
                    name: format!("{}: {} {}", text("owner")?, text("category")?, text("identifier")?),
                    command: render(field("command")?, heap)?,
                }
            }
            "write" => Maker::Write {
                output: path("output")?,
                text: render(field("content")?, heap)?.words.join("\n"),
            },
            "write_json" => {
                Maker::Write { output: path("output")?, text: json(field("content")?, heap)?.to_string() }
            }
            "copy" => Maker::Copy { output: path("output")?, source: path("source")? },
            "symlinked_dir" => {
                let content =
                    DictRef::from_value(field("content")?).context("a directory's content is a dict")?;
                let entry = |(name, source): (Value<'v>, Value<'v>)| {
                    Ok((
                        name.unpack_str().context("names are strings")?.to_owned(),
                        artifact(source)?.path.clone(),
                    ))
                };
                let entries = content.iter().map(entry).collect::<Result<_>>()?;
                Maker::Directory { output: path("output")?, entries }
            }
            "dynamic" => {
                let text =
                    |name: &str| field(name).map(|value| value.unpack_str().unwrap_or_default().to_owned());
                let (inputs, outputs) = (paths(field("dynamic")?)?, paths(field("outputs")?)?);
                let count = self.dynamics.entry((text("package")?, text("name")?)).or_default();
                *count += 1;
                Maker::Dynamic { value, inputs, outputs, number: *count }
            }
            _ => return Ok(()),
        };
        let outputs = match &maker {
            Maker::Run { command, .. } => command.outputs.clone(),
            Maker::Dynamic { outputs, .. } => outputs.clone(),
            Maker::Write { output, .. } | Maker::Copy { output, .. } | Maker::Directory { output, .. } => {
                vec![output.clone()]
            }
        };
        ensure!(!outputs.is_empty(), "an action without outputs: {maker:?}");
        for output in outputs {
            let before = self.made_by.insert(output.clone(), self.makers.len());
            if let Some(before) = before.filter(|&before| before != self.makers.len()) {
                let open = matches!(self.makers[before], Maker::Dynamic { .. });
                ensure!(open, "{output} is made by two actions");
            }
        }
        self.makers.push(maker);
        Ok(())
    }
}

/// The list that `emit` appends to.
fn emitted<'v>(module: &Module<'v>) -> Result<Value<'v>> {
    module.extra_value().context("the list is set")
}

fn pair_of(pair: Value<'_>) -> Result<(&str, Value<'_>)> {
    match TupleRef::from_value(pair).map(|pair| pair.content()) {
        Some([kind, value]) => Ok((kind.unpack_str().context("kinds are strings")?, *value)),
        _ => bail!("{pair} is no pair"),
    }
}

fn artifact(value: Value<'_>) -> Result<&Artifact> {
    Artifact::from_value(value).with_context(|| format!("{value} is no artifact"))
}

fn paths(value: Value) -> Result<Vec<String>> {
    let list = ListRef::from_value(value).context("artifacts are in a list")?;
    list.iter().map(|value| Ok(artifact(value)?.path.clone())).collect()
}

/// The targets of foreign rules.
pub fn foreign(module: &Module) -> Result<Vec<Foreign>> {
    let list = emitted(module)?;
    let mut found = Vec::new();
    for pair in ListRef::from_value(list).context("emitted values are a list")?.iter() {
        let (kind, value) = pair_of(pair)?;
        if kind == "foreign" {
            let field =
                |name: &str| attribute(value, name, module.heap()).with_context(|| format!("it has {name}"));
            let text =
                |name: &str| field(name).map(|value| value.unpack_str().unwrap_or_default().to_owned());
            found.push(Foreign {
                kind: text("kind")?,
                name: text("name")?,
                attributes: json(field("given")?, module.heap())?,
            });
        }
    }
    Ok(found)
}
