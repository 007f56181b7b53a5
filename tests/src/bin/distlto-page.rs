//! What `cargo xtask bench report` asks of a browser: `distlto-page FILE` opens a page of `distlto report` and says when the first
//! answer is on the screen, when all is there, and how long the page takes over what a person does.

use std::env;
use std::path::Path;

use anyhow::{Context, Result};
use distlto_tests::browser::Browser;
use serde_json::Value;

/// What is done, and how.
const INTERACTIONS: [(&str, &str); 8] = [
    ("a letter of a search", "type('search', '7')"),
    ("a search for a whole name", "type('search', 'unit99999.o')"),
    ("the module is chosen", "press('search', 'Enter')"),
    ("a module that most import", "type('search', 'unit0.o'); press('search', 'Enter')"),
    ("an arrow on the map", "press('map', 'ArrowRight')"),
    ("the map is zoomed", "press('map', '+')"),
    ("a step in the timeline", "press('lanes', 'ArrowRight')"),
    ("a slider is moved", "slide('workers', 5)"),
];

const HELPERS: &str = "
    const at = id => document.getElementById(id);
    const type = (id, text) => { at(id).value = text; at(id).dispatchEvent(new Event('input')); };
    const press = (id, key) => at(id).dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    const slide = (id, value) => { at(id).value = value; at(id).dispatchEvent(new Event('input')); };
    const frame = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));";

fn main() -> Result<()> {
    let page = env::args().nth(1).context("the page is wanted")?;
    let browser = Browser::start()?;
    browser.open(Path::new(&page), "document.querySelector('main').ariaBusy === 'false'")?;
    let marks = "performance.getEntriesByType('mark').concat(performance.getEntriesByType('paint')).map(e => [e.name, e.startTime])";
    let marks: Vec<(String, f64)> = serde_json::from_value(browser.ask(marks)?)?;
    for (mark, what) in [
        ("first-contentful-paint", "first answer on the screen"),
        ("map", "timeline and map are drawn"),
        ("ready", "all is there"),
    ] {
        let (_, at) = marks.iter().find(|(name, _)| name == mark).with_context(|| format!("no {mark}"))?;
        println!("{what:36} {at:7.0} ms");
    }
    for (what, how) in INTERACTIONS {
        browser.ask(&format!(
            "(() => {{ {HELPERS} window.took = undefined; (async () => {{ await frame(); const start = performance.now(); {how}; \
             const handled = performance.now(); await frame(); window.took = [handled - start, performance.now() - start]; }})(); }})()"
        ))?;
        browser.wait("window.took !== undefined")?;
        let took = browser.ask("window.took")?;
        let part = |at: usize| took[at].as_f64().unwrap_or(f64::NAN);
        println!("{what:36} {:7.0} ms, on the screen after {:.0} ms", part(0), part(1));
    }
    let held = browser.ask("performance.memory?.usedJSHeapSize ?? null")?;
    if let Value::Number(bytes) = held {
        println!(
            "{:36} {:7.0} MiB",
            "the script's heap",
            bytes.as_f64().unwrap_or(f64::NAN) / f64::from(1 << 20)
        );
    }
    Ok(())
}
