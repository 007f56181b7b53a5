//! Why a graph is not run.

use camino::Utf8PathBuf;
use miette::Diagnostic;
use thiserror::Error;

/// Why a graph is not run, or not to its end.
#[derive(Debug, Error, Diagnostic)]
pub enum RunError {
    /// A target that the graph does not know.
    #[error("the graph has no output and no action {target}{}", near.as_ref().map_or_else(String::new, |near| format!("; it has {near}")))]
    #[diagnostic(
        code(distlto::usage),
        help("name an output file or a label; distlto plan GRAPH --dot - shows all")
    )]
    NoTarget {
        /// The target.
        target: String,
        /// An output of the same file name.
        near: Option<String>,
    },
    /// Files that no action writes and that are not there.
    #[error("{path}, which {label} reads, is missing{}", if *more == 0 { String::new() } else { format!(", and {more} more inputs are") })]
    #[diagnostic(
        code(distlto::bad_input),
        help(
            "run in the directory that the graph's paths are relative to, after the compilations that make its inputs; no \
             action of the graph writes this file"
        )
    )]
    MissingInput {
        /// The first of them.
        path: Utf8PathBuf,
        /// An action that reads it.
        label: String,
        /// How many more are missing.
        more: usize,
    },
    /// The thin link decided otherwise than the graph says.
    #[error("{graph} is out of date: {difference}")]
    #[diagnostic(
        code(distlto::bad_input),
        help(
            "the thin link has run: write the graph again with `distlto plan {index} --json {graph}`, or run `distlto run {index}`, which follows it"
        )
    )]
    Stale {
        /// The graph.
        graph: Utf8PathBuf,
        /// The directory with the thin link's plan.
        index: Utf8PathBuf,
        /// The first difference.
        difference: String,
    },
    /// Each run of the thin link writes another graph.
    #[error("{graph} is written anew by its own thin link each time that it runs")]
    #[diagnostic(code(distlto::failed), help("run the thin link twice by hand and compare the graphs"))]
    NeverSettles {
        /// The graph.
        graph: Utf8PathBuf,
    },
}
