//! The forms in which `distlto plan` writes a graph: the option of each, its requirements on a graph, and its emitter.
//!
//! Does not depend on the output of the emitters.

use camino::Utf8Path;
use distlto_planner::emit::{dot, ninja};
use distlto_planner::graph::{ActionGraph, json};
use distlto_prepare::io_error::IoError;
use distlto_prepare::write::{to_standard_output, write_if_changed};
use miette::Report;

use super::GraphSource;

/// The form of a written graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Json,
    Dot,
    Ninja,
}

impl Form {
    /// The option that asks for it.
    pub const fn option(self) -> &'static str {
        match self {
            Self::Json => "--json",
            Self::Dot => "--dot",
            Self::Ninja => "--ninja",
        }
    }

    /// Whether it is there to be run, so that every step has to be one that can be.
    pub const fn is_run(self) -> bool {
        matches!(self, Self::Ninja)
    }

    /// Writes the graph to a file, or to standard output.
    pub fn emit(
        self,
        graph: &ActionGraph,
        input: &GraphSource,
        path: &Utf8Path,
        opt_program: &str,
    ) -> Result<(), Report> {
        let text = self.text(graph, input, path, opt_program)?;
        if is_stream(path) {
            return Ok(to_standard_output(&text)?);
        }
        write_if_changed(path.as_std_path(), &text)?;
        Ok(())
    }

    fn text(
        self,
        graph: &ActionGraph,
        input: &GraphSource,
        path: &Utf8Path,
        opt_program: &str,
    ) -> Result<Vec<u8>, Report> {
        let opt_program = opt_program.to_owned();
        let (place, source) = (path.to_owned(), input.path.clone());
        Ok(match self {
            Self::Json => json::to_bytes(graph),
            Self::Dot => {
                let mut text = Vec::new();
                dot::write(graph, &mut text).map_err(IoError::on("write", path))?;
                text
            }
            Self::Ninja => {
                let manifest = again(path).map(|command| ninja::NinjaRemake { path: place, source, command });
                let build_directory = input.directory().filter(|parent| !parent.as_str().is_empty());
                let build_directory = build_directory.map(Utf8Path::to_owned);
                let options = ninja::NinjaOptions { opt_program, build_directory, manifest };
                ninja::render(graph, &options)?.into_bytes()
            }
        })
    }
}

pub fn is_stream(path: &Utf8Path) -> bool {
    path == "-"
}

/// The command by which a build program makes the file again: that of this run. Nothing if the file goes to a stream or the
/// command is not text.
fn again(path: &Utf8Path) -> Option<Vec<String>> {
    if is_stream(path) {
        return None;
    }
    std::env::args_os().map(|word| word.into_string().ok()).collect()
}
