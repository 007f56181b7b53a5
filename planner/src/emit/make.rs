//! The action graph as a makefile for GNU make 4.0 or later: the backend compilations run through a program that fails
//! closed, objects of equal flags share a variable, and shards that a thin link leaves as they were are not rebuilt
//! from.
//!
//! Syntax: <https://www.gnu.org/software/make/manual/make.html>. An action of several outputs has a stamp file with the
//! time of its run. Its outputs depend on the stamp and keep the times of their content. Does not access files on disk.

use std::fmt::Write;

use camino::{Utf8Path, Utf8PathBuf};
use indexmap::IndexSet;
use miette::Diagnostic;
use thiserror::Error;

use super::command::{backend_words, command_line, words_outside_response_file};
use crate::graph::{Action, ActionGraph, BackendWork, Work};
use crate::response;
use crate::words::{shell_line, shell_quote};

/// Settings that the file needs besides the graph.
#[derive(Debug, Clone)]
pub struct MakeOptions {
    /// The program that runs one backend compilation: `PROG --out O --input M --index S -- COMPILER FLAGS...`.
    pub opt_program: String,
    /// How the file itself is made again when the link plan changes.
    pub remake: Option<MakeRemake>,
}

/// How a makefile is made again; make does so before it builds anything else.
#[derive(Debug, Clone)]
pub struct MakeRemake {
    /// The file itself, as `make -f` names it.
    pub path: Utf8PathBuf,
    /// The source that it is made from.
    pub source: Utf8PathBuf,
    /// The command that makes it.
    pub command: Vec<String>,
}

/// Why a graph has no form as a makefile.
#[derive(Debug, Error, Diagnostic)]
#[error("action {label:?}: make cannot express {text:?}")]
#[diagnostic(
    code(distlto::bad_input),
    help(
        "rename the file or reword the argument: a makefile has no line breaks in words, and no backslashes in names"
    )
)]
pub struct MakeError {
    /// The action.
    pub label: String,
    /// The path or word.
    pub text: String,
}

/// The text of a makefile that is run in the link's working directory. Equal graphs give equal texts.
pub fn render(graph: &ActionGraph, options: &MakeOptions) -> Result<String, MakeError> {
    let graph = graph.canonical();
    let mut flags = IndexSet::new();
    let mut rules = String::new();
    // make builds the first rule by default, so the program's rule comes before the others.
    let is_link = |action: &Action| matches!(action.work, Work::Link { .. });
    let (links, others): (Vec<_>, Vec<_>) = graph.actions().partition(|(_, action)| is_link(action));
    for (id, action) in links.into_iter().chain(others) {
        let words = graph.command(id);
        let mut writer = Writer { graph: &graph, action, text: &mut rules };
        match &action.work {
            Work::Backend(backend) => writer.backend(backend, &mut flags)?,
            Work::Prepare { .. } => writer.step(&[command_line(&words)])?,
            Work::ThinLink { .. } | Work::Link { .. } => writer.link(&words)?,
        }
    }
    let mut text = String::from("# One distributed ThinLTO link. Run it in the link's working directory.\n");
    define(&mut text, "DISTLTO_OPT", &super::command::program(&options.opt_program));
    define(&mut text, "distlto_equals", "=");
    for (number, words) in flags.iter().enumerate() {
        define(&mut text, &format!("distlto_flags_{number}"), words);
    }
    text.push_str(".DELETE_ON_ERROR:\n\n");
    text.push_str(&rules);
    if let Some(MakeRemake { path, source, command }) = &options.remake {
        let label = path.as_str();
        let words: Vec<_> = command.iter().map(String::as_str).collect();
        let recipe = recipe(&command_line(&words), label)?;
        write_text(
            &mut text,
            format_args!("{}: {}\n\t{recipe}\n", target(path, label)?, prerequisite(source, label)?),
        );
    }
    Ok(text)
}

/// The target of a rule, in quotes for the shell.
const OUTPUT: &str = r"'$(subst ','\'',$@)'";

struct Writer<'a> {
    graph: &'a ActionGraph,
    action: &'a Action,
    text: &'a mut String,
}

impl Writer<'_> {
    fn backend(&mut self, backend: &BackendWork, flags: &mut IndexSet<String>) -> Result<(), MakeError> {
        let (files, words) = backend_words(self.graph, self.action, backend);
        let files = shell_line(files);
        let (number, _) = flags.insert_full(self.checked(&command_line(&words))?);
        let files = self.recipe(&files)?;
        self.step(&[])?;
        write_text(self.text, format_args!("\t$(DISTLTO_OPT) {files} -- $(distlto_flags_{number})\n"));
        // The object's rule writes them; a rule of several targets would run once for each.
        let object = prerequisite(self.graph.path(backend.object), &self.action.label)?;
        for file in self.action.outputs().filter(|&file| file != backend.object) {
            let also = target(self.graph.path(file), &self.action.label)?;
            write_text(self.text, format_args!("{also}: {object}\n\t@test -f {OUTPUT}\n"));
        }
        self.text.push('\n');
        Ok(())
    }

    /// A link. The words after its linker stand in a response file, which make
    /// writes.
    fn link(&mut self, words: &[&str]) -> Result<(), MakeError> {
        let (head, rest) = words.split_at(words_outside_response_file(words));
        let first = self.action.outputs().next().map_or("", |file| self.graph.path(file).as_str());
        let response = format!("{first}.rsp");
        let quoted: Vec<_> = rest
            .iter()
            .map(|word| String::from_utf8_lossy(&response::quote(word.as_bytes())).into_owned())
            .collect();
        let name = format!("distlto_words_{}", self.text.len());
        define(self.text, &name, &self.checked(&quoted.join(" "))?);
        // The name of the file is make's own to read: it has no quotes.
        let place = self.checked(&response)?.replace('$', "$$");
        let write = format!("$(file >{place},$({name}))");
        let command =
            self.recipe(&format!("{} {}", command_line(head), shell_quote(&format!("@{response}"))))?;
        self.step(&[])?;
        write_text(self.text, format_args!("\t{write}{command}\n"));
        self.stamp()
    }

    /// The rule of a step, with lines of its recipe.
    fn step(&mut self, recipe: &[String]) -> Result<(), MakeError> {
        let label = &self.action.label;
        let inputs = self.action.inputs().map(|file| prerequisite(self.graph.path(file), label));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?.join(" ");
        let target = match self.stamp_name() {
            Some(stamp) => target(&stamp, label)?,
            None => {
                let object = self.action.backend().map(|backend| backend.object);
                let only = object.or_else(|| self.action.outputs().next());
                only.map_or(Ok(String::new()), |file| target(self.graph.path(file), label))?
            }
        };
        write_text(self.text, format_args!("{target}: {inputs}\n"));
        for line in recipe {
            let line = self.recipe(line)?;
            write_text(self.text, format_args!("\t{line}\n"));
        }
        if recipe.is_empty() { Ok(()) } else { self.stamp() }
    }

    /// Ends a recipe: the outputs follow from the stamp file by a recipe that does nothing, after which make looks at
    /// their times.
    fn stamp(&mut self) -> Result<(), MakeError> {
        let Some(stamp) = self.stamp_name() else {
            self.text.push('\n');
            return Ok(());
        };
        let label = self.action.label.clone();
        let quoted = self.recipe(&shell_quote(stamp.as_str()))?;
        let outputs = self.outputs()?.join(" ");
        write_text(
            self.text,
            format_args!(
                "\t@touch {quoted}\n{outputs}: {}\n\t@test -f {OUTPUT} || {{ echo {OUTPUT} is gone: remove {quoted} >&2; \
                 false; }}\n\n",
                prerequisite(&stamp, &label)?
            ),
        );
        Ok(())
    }

    /// Where the time of a step lies that has several outputs.
    fn stamp_name(&self) -> Option<Utf8PathBuf> {
        let mut outputs = self.action.outputs();
        let first = outputs.next()?;
        let several = outputs.next().is_some() && !matches!(self.action.work, Work::Backend(_));
        several.then(|| format!("{}.stamp", self.graph.path(first)).into())
    }

    fn outputs(&self) -> Result<Vec<String>, MakeError> {
        self.action.outputs().map(|file| target(self.graph.path(file), &self.action.label)).collect()
    }

    fn recipe(&self, line: &str) -> Result<String, MakeError> {
        recipe(line, &self.action.label)
    }

    fn checked(&self, text: &str) -> Result<String, MakeError> {
        one_line(text, &self.action.label).map(str::to_owned)
    }
}

fn write_text(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a String does not fail");
}

/// Defines a variable with this text for its value.
fn define(text: &mut String, name: &str, value: &str) {
    let value = value.replace('$', "$$").replace('#', "\\#");
    // make drops blanks before a value.
    let first = if value.starts_with(' ') { "$()" } else { "" };
    write_text(text, format_args!("{name} := {first}{value}\n"));
}

/// A line for the shell.
fn recipe(line: &str, label: &str) -> Result<String, MakeError> {
    Ok(one_line(line, label)?.replace('$', "$$"))
}

fn one_line<'t>(text: &'t str, label: &str) -> Result<&'t str, MakeError> {
    if text.contains(['\n', '\r', '\0']) {
        return Err(MakeError { label: label.to_owned(), text: text.to_owned() });
    }
    Ok(text)
}

/// A path as a target, where a percent sign would make a pattern.
fn target(path: &Utf8Path, label: &str) -> Result<String, MakeError> {
    Ok(prerequisite(path, label)?.replace('%', "\\%"))
}

/// A path as a prerequisite.
fn prerequisite(path: &Utf8Path, label: &str) -> Result<String, MakeError> {
    one_line(path.as_str(), label)?;
    let mut escaped = String::with_capacity(path.as_str().len());
    for (at, character) in path.as_str().char_indices() {
        match character {
            '\\' => return Err(MakeError { label: label.to_owned(), text: path.to_string() }),
            '$' => escaped.push_str("$$"),
            '=' => escaped.push_str("$(distlto_equals)"),
            '~' if at == 0 => escaped.push_str("./~"),
            ' ' | '\t' | '#' | ':' | '*' | '?' | '[' | ']' => escaped.extend(['\\', character]),
            character => escaped.push(character),
        }
    }
    Ok(escaped)
}
