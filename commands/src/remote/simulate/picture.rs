//! Simulated links as curves over the number of workers, in SVG: both axes are logarithmic.
//!
//! One panel for each program. Beside the curves of each latency stand what the slots alone would allow, and the longest
//! backend. Knows nothing of how links are simulated.

use std::fmt::Write;

use super::cluster::{Cluster, simulate};
use super::program::SimulatedLink;
use super::table::time;

const WIDTH: f64 = 330.0;
const HEIGHT: f64 = 220.0;
const MARGIN: f64 = 46.0;
const COLOURS: [&str; 6] = ["#1b6ca8", "#e07b00", "#a3195b", "#2a7f3e", "#6b4fa0", "#7a5230"];

/// One panel.
struct Panel {
    left: f64,
    /// Workers, from 1.
    most: f64,
    /// Seconds, as powers of ten.
    low: f64,
    high: f64,
}

impl Panel {
    fn x(&self, workers: f64) -> f64 {
        self.left + MARGIN + (WIDTH - MARGIN - 10.0) * workers.log10() / self.most.log10().max(0.1)
    }

    fn y(&self, seconds: f64) -> f64 {
        let share = (seconds.max(1e-6).log10() - self.low) / (self.high - self.low);
        HEIGHT - MARGIN - (HEIGHT - MARGIN - 24.0) * share
    }

    fn curve(&self, points: &[(f64, f64)], style: &str) -> String {
        let points: Vec<String> = points
            .iter()
            .map(|&(workers, seconds)| format!("{:.1},{:.1}", self.x(workers), self.y(seconds)))
            .collect();
        format!("<polyline fill=\"none\" {style} points=\"{}\"/>\n", points.join(" "))
    }
}

/// Draws all programs.
pub(super) fn draw(programs: &[&SimulatedLink], curves: &[Vec<Cluster>]) -> String {
    let (width, height) = (WIDTH * programs.len() as f64, HEIGHT + 8.0);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"10\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    for (number, program) in programs.iter().enumerate() {
        panel(&mut text, program, curves, WIDTH * number as f64);
    }
    text.push_str("</svg>\n");
    text
}

fn panel(text: &mut String, program: &SimulatedLink, curves: &[Vec<Cluster>], left: f64) {
    let seconds = |microseconds: u64| microseconds as f64 / 1e6;
    let simulated: Vec<Vec<(f64, f64)>> = curves
        .iter()
        .map(|curve| {
            curve.iter().map(|one| (one.workers as f64, seconds(simulate(program, one).makespan))).collect()
        })
        .collect();
    let most = curves.iter().flatten().map(|one| one.workers).max().unwrap_or(1) as f64;
    let here = curves.iter().flatten().map(|one| one.here).max().unwrap_or(1) as f64;
    let (longest, work) = (seconds(program.longest()), seconds(program.work()));
    let highest = simulated.iter().flatten().map(|point| point.1).fold(work / (1.0 + here), f64::max);
    let panel =
        Panel { left, most, low: longest.max(1e-6).log10().floor(), high: highest.max(1e-6).log10().ceil() };
    axes(text, &panel, &program.name);
    let slots: Vec<(f64, f64)> = curves
        .first()
        .into_iter()
        .flatten()
        .map(|one| one.workers as f64)
        .map(|workers| (workers, (work / (workers + here)).max(longest)))
        .collect();
    text.push_str(&panel.curve(&slots, "stroke=\"#888888\" stroke-dasharray=\"4 3\""));
    for (number, (curve, points)) in curves.iter().zip(&simulated).enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        text.push_str(&panel.curve(points, &format!("stroke=\"{colour}\" stroke-width=\"1.5\"")));
        let latency = curve.first().map_or(0, |cluster| cluster.latency);
        let y = 36.0 + 12.0 * number as f64;
        let _ = writeln!(
            text,
            "<text x=\"{:.0}\" y=\"{y}\" text-anchor=\"end\" fill=\"{colour}\">{} latency</text>",
            left + WIDTH - 12.0,
            time(latency)
        );
    }
    let y = 36.0 + 12.0 * curves.len() as f64;
    let _ = writeln!(
        text,
        "<text x=\"{:.0}\" y=\"{y}\" text-anchor=\"end\" fill=\"#666666\">slots, longest backend</text>",
        left + WIDTH - 12.0
    );
}

fn axes(text: &mut String, panel: &Panel, name: &str) {
    let escaped = name.replace('&', "&amp;").replace('<', "&lt;");
    let _ =
        writeln!(text, "<text x=\"{:.0}\" y=\"14\" font-size=\"12\">{escaped}</text>", panel.left + MARGIN);
    let mut line = |x1: f64, y1: f64, x2: f64, y2: f64, label: String, x: f64, y: f64, anchor: &str| {
        let _ = writeln!(
            text,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#dddddd\"/>\
             <text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{label}</text>"
        );
    };
    let (bottom, top) = (panel.y(10f64.powf(panel.low)), panel.y(10f64.powf(panel.high)));
    let mut workers = 1.0;
    while workers <= panel.most {
        let x = panel.x(workers);
        line(x, bottom, x, top, format!("{workers}"), x, bottom + 13.0, "middle");
        workers *= 10.0;
    }
    let mut power = panel.low;
    while power <= panel.high {
        let seconds = 10f64.powf(power);
        let (y, x) = (panel.y(seconds), panel.x(1.0));
        line(x, y, panel.x(panel.most), y, time((seconds * 1e6).round() as u64), x - 4.0, y + 3.0, "end");
        power += 1.0;
    }
    let _ = writeln!(
        text,
        "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">workers</text>",
        panel.left + (WIDTH + MARGIN) / 2.0,
        bottom + 27.0
    );
}
