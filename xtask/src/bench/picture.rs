//! The picture of the README: seconds of links as bars, drawn from what `cargo xtask bench edits --json` has measured.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// What was measured.
#[derive(Debug, Serialize, Deserialize)]
pub struct Figures {
    /// The program, the machine and how many jobs ran at once.
    pub program: String,
    pub machine: String,
    pub jobs: usize,
    pub rows: Vec<Row>,
}

/// Seconds of one kind of link.
#[derive(Debug, Serialize, Deserialize)]
pub struct Row {
    pub what: String,
    /// By lld with its own cache.
    pub lld: f64,
    /// By distlto.
    pub distlto: f64,
}

const WIDTH: f64 = 760.0;
/// Where bars begin, and the room for the number behind the longest.
const LEFT: f64 = 300.0;
const NUMBER: f64 = 60.0;
const BAR: f64 = 14.0;
const ROW: f64 = 46.0;
const TOP: f64 = 58.0;

/// Writes the figures, and the picture beside them.
pub fn write(figures: &Figures, json: &Path) -> Result<()> {
    let text = serde_json::to_string_pretty(figures)? + "\n";
    fs::write(json, text).with_context(|| format!("cannot write {}", json.display()))?;
    redraw(json)
}

/// Writes the picture of figures beside them.
pub fn redraw(json: &Path) -> Result<()> {
    let text = fs::read_to_string(json).with_context(|| format!("cannot read {}", json.display()))?;
    let svg = json.with_extension("svg");
    fs::write(&svg, draw(&serde_json::from_str(&text)?))
        .with_context(|| format!("cannot write {}", svg.display()))
}

/// The picture, for light and dark pages.
fn draw(figures: &Figures) -> String {
    let height = TOP + ROW * figures.rows.len() as f64;
    let most = figures.rows.iter().map(|row| row.lld.max(row.distlto)).fold(f64::EPSILON, f64::max);
    let scale = (WIDTH - LEFT - NUMBER) / most;
    let title = format!("Seconds of a link of {}, {} jobs at once", figures.program, figures.jobs);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" aria-label=\"{title}\">\n{STYLE}<text x=\"0\" y=\"18\" class=\"title\">{title}</text>\n"
    );
    let legend = [("lld", "lld with its cache", LEFT), ("own", "distlto", LEFT + 170.0)];
    for (class, text, x) in legend {
        let _ =
            writeln!(svg, "<rect x=\"{x}\" y=\"30\" width=\"{BAR}\" height=\"{BAR}\" class=\"{class}\"/>");
        let _ = writeln!(svg, "<text x=\"{}\" y=\"42\">{text}</text>", x + BAR + 6.0);
    }
    for (number, row) in figures.rows.iter().enumerate() {
        let y = TOP + ROW * number as f64;
        let _ = writeln!(svg, "<text x=\"0\" y=\"{}\">{}</text>", y + BAR + 6.0, row.what);
        for (class, seconds, y) in [("lld", row.lld, y), ("own", row.distlto, y + BAR + 2.0)] {
            let width = (seconds * scale).max(1.0);
            let _ = writeln!(
                svg,
                "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{width:.1}\" height=\"{BAR}\" class=\"{class}\"/>"
            );
            let (x, y) = (LEFT + width + 6.0, y + BAR - 3.0);
            let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y}\">{seconds:.1} s</text>");
        }
    }
    svg + "</svg>\n"
}

const STYLE: &str = "<style>
text { font: 14px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600 }
.lld { fill: #8c959f }
.own { fill: #0969da }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .lld { fill: #6e7681 } .own { fill: #4493f8 } }
</style>
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::root;

    #[test]
    fn the_picture_of_the_readme_shows_the_figures_beside_it() -> Result<()> {
        let json = root().join("docs/gains.json");
        let figures: Figures = serde_json::from_str(&fs::read_to_string(&json)?)?;
        assert_eq!(draw(&figures), fs::read_to_string(json.with_extension("svg"))?);
        Ok(())
    }
}
