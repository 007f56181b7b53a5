//! The page of `distlto report`: one HTML file with the known facts of a link, and the script that shows them.
//!
//! A function of an inspection, of records of runs and of a comparison. The page itself is made of `record/page` by
//! `cargo xtask page` and is here as it was built (`page/built.html`); this puts data into its places. Nothing of a link becomes
//! markup: texts are JSON in which no `<` stands, everything else is base64, and the script shows texts as text alone.
//! docs/why.md is its guide.
//!
//! The script computes no layout: Rust places the modules (`treemap`), and the script draws edges around one module
//! only. So a canvas and lists suffice, and uPlot, for the distributions, is the only bundled library. A graph library
//! on WebGL adds 260 KB and fails without a GPU.

mod block;
mod critical_path;
mod modules;
mod tiles;
mod time_trace;
mod timeline;
mod treemap;

pub use time_trace::{TimeTrace, TimeTraceError};

use distlto_prepare::text::printable;
use serde::Serialize;
use serde_json::{Value, json};

use crate::inspect::Inspection;
use crate::run::RunRecord;
use crate::usage::LinkUsage;

/// The version of the data, which page and script share.
const VERSION: u32 = 1;

/// How many links of the history a page shows.
const HISTORY: usize = 100;

/// The page as it was built, with places for data.
const BUILT: &str = include_str!("page/built.html");

/// The placeholders: for the answers, which are shown first, and for all other data.
const PLACES: [&str; 2] = ["@answers@", "@data@"];

/// The contents of a page.
#[derive(Debug)]
pub struct Subject<'a> {
    /// The known facts of the link.
    pub inspection: &'a Inspection,
    /// The output of `distlto inspect`.
    pub answers: &'a str,
    /// Whether it is known which module imports from which.
    pub knows_imports: bool,
    /// The run, if there was one.
    pub run: Option<&'a RunRecord>,
    /// The run that it is compared with.
    pub earlier: Option<&'a RunRecord>,
    /// The output of `distlto diff` for the two runs.
    pub difference: Option<&'a str>,
    /// The links of this output so far, the oldest first.
    pub history: &'a [LinkUsage],
    /// Time traces that compilers and linkers have written.
    pub traces: &'a [TimeTrace],
}

impl Subject<'_> {
    /// The page.
    pub fn to_html(&self) -> String {
        let [answers, data] = PLACES;
        let (head, rest) = BUILT.split_once(answers).unwrap_or((BUILT, ""));
        let (middle, tail) = rest.split_once(data).unwrap_or((rest, ""));
        let inspection = self.inspection;
        let mut page = head.to_owned();
        page += &in_script(&json!({
            "output": printable(&inspection.output),
            "about": self.run.map(tiles::about).unwrap_or_default(),
            "tiles": self.run.map(|run| tiles::of(run, inspection)).unwrap_or_default(),
            "lines": lines(self.answers),
        }));
        page += middle;
        self.data(&mut page);
        page += tail;
        page
    }

    fn data(&self, page: &mut String) {
        let inspection = self.inspection;
        let runs: Vec<(&RunRecord, &[TimeTrace])> = self
            .run
            .map(|run| (run, self.traces))
            .into_iter()
            .chain(self.earlier.map(|run| (run, &[][..])))
            .collect();
        let about: Vec<(Value, String)> =
            runs.iter().map(|(run, traces)| timeline::of(run, inspection, traces)).collect();
        let map = treemap::of(&inspection.modules);
        let facts = json!({
            "version": VERSION,
            "modules": inspection.modules.len(),
            "directories": map.directories.len(),
            "by_time": map.by_time,
            "knows_imports": self.knows_imports,
            "runs": about.iter().map(|(facts, _)| facts).collect::<Vec<_>>(),
            "difference": self.difference.map(lines),
            "history": self.history.iter().rev().take(HISTORY).collect::<Vec<_>>(),
        });
        block(page, "facts", "application/json", &in_script(&facts));
        block(page, "names", "text/plain", &modules::names(inspection, &map));
        block(page, "modules", "text/plain", &modules::columns(inspection, &map));
        for (number, (_, actions)) in about.iter().enumerate() {
            block(page, &format!("run{number}"), "text/plain", actions);
        }
        block(page, "imports", "text/plain", &modules::imports(inspection));
    }
}

/// Splits a text into printable lines: no character of a name can break a line.
fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| printable(line).into_owned()).collect()
}

/// Data that no script of the page takes for markup: `text` holds no `<`.
fn block(page: &mut String, id: &str, kind: &str, text: &str) {
    for part in ["<script type=\"", kind, "\" id=\"data-", id, "\">", text, "</script>\n"] {
        page.push_str(part);
    }
}

/// JSON that ends no element: `<` stands in strings alone, where JSON has another spelling for it.
fn in_script(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("strings, numbers and lists serialise").replace('<', "\\u003c")
}
