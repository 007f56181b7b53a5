//! The action graph as a `build.ninja`: the backend compilations run through a program that fails closed, links take
//! their words from a response file, and rules that keep unchanged outputs have `restat`.
//!
//! Syntax: <https://ninja-build.org/manual.html#_lexical_syntax>. A command passes through three readers, so
//! its words are quoted for a response file or for the shell, and then for Ninja. Does not access files on disk.

use std::fmt::Write;

use camino::{Utf8Path, Utf8PathBuf};
use miette::Diagnostic;
use thiserror::Error;

use super::command::{command_line, own_flags, program, words_outside_response_file};
use crate::graph::{Action, ActionGraph, BackendWork, FileId, Work};
use crate::response;
use crate::words::{shell_line, shell_quote};

/// The longest single argument that Linux passes to a program, less its final NUL: Ninja passes a whole
/// command to `/bin/sh -c` (`MAX_ARG_STRLEN` in `linux/binfmts.h`).
const LONGEST_COMMAND: usize = 32 * 4096 - 1;

/// Settings that the file needs besides the graph.
#[derive(Debug, Clone)]
pub struct NinjaOptions {
    /// The program that runs one backend compilation: `PROG --out O --input M --index S -- COMPILER FLAGS...`.
    pub opt_program: String,
    /// Where Ninja keeps its log; without it in the working directory, where another build's log may lie.
    pub build_directory: Option<Utf8PathBuf>,
    /// How the file itself is made again when the graph changes.
    pub manifest: Option<NinjaRemake>,
}

/// How a `build.ninja` is made again; Ninja does so before it builds anything else.
#[derive(Debug, Clone)]
pub struct NinjaRemake {
    /// The file itself, as `ninja -f` names it.
    pub path: Utf8PathBuf,
    /// The source that it is made from.
    pub source: Utf8PathBuf,
    /// The command that makes it.
    pub command: Vec<String>,
}

/// Why a graph has no Ninja form.
#[derive(Debug, Error, Diagnostic)]
#[diagnostic(code(distlto::bad_input))]
pub enum NinjaError {
    /// A line break or NUL, for which Ninja has no escape.
    #[error("action {label:?}: Ninja cannot express the line break in {text:?}")]
    #[diagnostic(help("rename the file or reword the argument; no build.ninja can hold it"))]
    LineBreak {
        /// The action.
        label: String,
        /// The path or word.
        text: String,
    },
    /// A command that the operating system would refuse.
    #[error("action {label:?}: a command of {length} bytes; /bin/sh -c takes at most {LONGEST_COMMAND}")]
    #[diagnostic(help("shorten the flags that the compilation takes, or put them into a response file"))]
    TooLong {
        /// The action.
        label: String,
        /// The command's length.
        length: usize,
    },
}

/// The text of a `build.ninja` that is run in the link's working directory. Equal graphs give equal texts.
pub fn render(graph: &ActionGraph, options: &NinjaOptions) -> Result<String, NinjaError> {
    let graph = graph.canonical();
    let mut file = File { graph: &graph, text: String::new() };
    file.head(options)?;
    for (id, action) in graph.actions() {
        let words = graph.command(id);
        match &action.work {
            Work::Prepare { .. } => file.prepare(action, &words)?,
            Work::ThinLink { .. } => file.link(action, "thin_link", &words)?,
            Work::Backend(backend) => file.opt(action, backend, options)?,
            Work::Link { .. } => file.link(action, "link", &words)?,
        }
    }
    if let Some(manifest) = &options.manifest {
        file.manifest(manifest)?;
    }
    Ok(file.text)
}

struct File<'a> {
    graph: &'a ActionGraph,
    text: String,
}

impl File<'_> {
    fn head(&mut self, options: &NinjaOptions) -> Result<(), NinjaError> {
        self.line("# One distributed ThinLTO link. Run it in the link's working directory.");
        self.line("ninja_required_version = 1.5");
        if let Some(directory) = &options.build_directory {
            self.variable("", "builddir", directory.as_str(), "builddir")?;
        }
        self.variable("", "opt", &program(&options.opt_program), "opt")?;
        // Ninja has no escape for a bar in a path, but a path may hold a variable that holds one.
        self.line("bar = |");
        self.line("\nrule prepare\n  command = $words\n  description = prepare $label\n  restat = 1");
        for (rule, title, restat) in [("thin_link", "thin link", "\n  restat = 1"), ("link", "link", "")] {
            self.line(&format!(
                "\nrule {rule}\n  command = $words\n  description = {title} $label\n  rspfile = $response\n  \
                 rspfile_content = $content{restat}"
            ));
        }
        for (index, words) in self.graph.prefixes().enumerate() {
            let command =
                format!("$opt $files -- {}$flags", escaped(&shell_line(words.iter().map(String::as_str))));
            no_line_break(&command, "opt")?;
            self.line(&format!(
                "\nrule opt{index}\n  command = {command}\n  description = opt $label\n  restat = 1"
            ));
        }
        self.line("\nrule opt\n  command = $opt $files --$flags\n  description = opt $label\n  restat = 1\n");
        Ok(())
    }

    fn prepare(&mut self, action: &Action, words: &[&str]) -> Result<(), NinjaError> {
        let words = command_line(words);
        short_enough(&words, action)?;
        self.build(action, "prepare")?;
        self.variable("  ", "words", &words, &action.label)
    }

    fn link(&mut self, action: &Action, rule: &str, words: &[&str]) -> Result<(), NinjaError> {
        let (head, rest) = words.split_at(words_outside_response_file(words));
        // A checked graph has an output for each action; in another one Ninja will refuse the build line.
        let first = action.outputs().next().map_or("", |file| self.graph.path(file).as_str());
        let response = format!("{first}.rsp");
        self.build(action, rule)?;
        let at_file = shell_quote(&format!("@{response}"));
        let words = format!("{} {at_file}", command_line(head));
        short_enough(&words, action)?;
        self.variable("  ", "words", &words, &action.label)?;
        self.variable("  ", "response", &response, &action.label)?;
        let quoted: Vec<_> = rest
            .iter()
            .map(|word| String::from_utf8_lossy(&response::quote(word.as_bytes())).into_owned())
            .collect();
        self.variable("  ", "content", &quoted.join(" "), &action.label)
    }

    fn opt(
        &mut self,
        action: &Action,
        backend: &BackendWork,
        options: &NinjaOptions,
    ) -> Result<(), NinjaError> {
        let path = |file: FileId| self.graph.path(file).as_str();
        let (out, module, shard) = (path(backend.object), path(backend.module), path(backend.shard));
        let mut files = shell_line(["--out", out, "--input", module, "--index", shard]);
        if let Some(dwo) = backend.dwo {
            files = format!("{files} {}", shell_line(["--dwo", path(dwo)]));
        }
        let flags: String =
            own_flags(action, module, shard, out).map(|word| format!(" {}", shell_quote(word))).collect();
        let prefix = action.prefix.map_or(&[][..], |prefix| self.graph.prefix_words(prefix));
        let shared = shell_line(prefix.iter().map(String::as_str));
        short_enough(&format!("{} {files} -- {shared}{flags}", program(&options.opt_program)), action)?;
        match action.prefix {
            Some(prefix) => self.build(action, &format!("opt{}", prefix.0))?,
            None => self.build(action, "opt")?,
        }
        self.variable("  ", "files", &files, &action.label)?;
        if flags.is_empty() { Ok(()) } else { self.variable("  ", "flags", &flags, &action.label) }
    }

    fn manifest(&mut self, manifest: &NinjaRemake) -> Result<(), NinjaError> {
        let words: Vec<_> = manifest.command.iter().map(String::as_str).collect();
        let command = escaped(&command_line(&words));
        no_line_break(&command, manifest.path.as_str())?;
        self.line(&format!(
            "\nrule plan\n  command = {command}\n  description = plan\n  generator = 1\n  restat = 1\n"
        ));
        let [path, source] = [&manifest.path, &manifest.source].map(|path| escaped_path(path, path.as_str()));
        self.line(&format!("build {}: plan {}", path?, source?));
        Ok(())
    }

    /// The `build` line of an action and its label.
    fn build(&mut self, action: &Action, rule: &str) -> Result<(), NinjaError> {
        self.text.push_str("build");
        for file in action.outputs() {
            self.text.push(' ');
            self.text.push_str(&escaped_path(self.graph.path(file), &action.label)?);
        }
        write_text(&mut self.text, format_args!(": {rule}"));
        for file in action.inputs() {
            self.text.push(' ');
            self.text.push_str(&escaped_path(self.graph.path(file), &action.label)?);
        }
        self.text.push('\n');
        self.variable("  ", "label", &action.label, &action.label)
    }

    fn variable(&mut self, indent: &str, name: &str, value: &str, label: &str) -> Result<(), NinjaError> {
        no_line_break(value, label)?;
        write_text(&mut self.text, format_args!("{indent}{name} = {}\n", escaped(value)));
        Ok(())
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }
}

fn write_text(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a String does not fail");
}

fn short_enough(command: &str, action: &Action) -> Result<(), NinjaError> {
    match command.len() {
        length if length > LONGEST_COMMAND => {
            Err(NinjaError::TooLong { label: action.label.clone(), length })
        }
        _ => Ok(()),
    }
}

fn no_line_break(text: &str, label: &str) -> Result<(), NinjaError> {
    if text.contains(['\n', '\r', '\0']) {
        return Err(NinjaError::LineBreak { label: label.to_owned(), text: text.to_owned() });
    }
    Ok(())
}

/// A variable's value. Ninja drops blanks before a value, so the first one is escaped.
fn escaped(value: &str) -> String {
    let escaped = value.replace('$', "$$");
    if escaped.starts_with(' ') { format!("${escaped}") } else { escaped }
}

fn escaped_path(path: &Utf8Path, label: &str) -> Result<String, NinjaError> {
    no_line_break(path.as_str(), label)?;
    let mut escaped = String::with_capacity(path.as_str().len());
    for character in path.as_str().chars() {
        match character {
            '$' | ' ' | ':' => escaped.extend(['$', character]),
            '|' => escaped.push_str("${bar}"),
            character => escaped.push(character),
        }
    }
    Ok(escaped)
}
