//! Rules about one file's lines: head comments, length, words that do not belong, and paths of one machine.

use super::File;
use crate::shell::root;

const LONGEST: usize = 900;

/// Findings in one file.
pub fn check(file: &File) -> Vec<String> {
    let Some(text) = file.text() else { return Vec::new() };
    let mut findings = Vec::new();
    if file.path.ends_with(".rs") && !is_case(&file.path) {
        rust(&file.path, text, &mut findings);
    }
    let places = places();
    for (number, line) in text.lines().enumerate() {
        for (pattern, remedy) in &places {
            if contains_place(line, pattern) && !is_lock(&file.path) {
                findings.push(format!("{}:{}: `{pattern}`; {remedy}", file.path, number + 1));
            }
        }
    }
    findings
}

fn rust(path: &str, text: &str, findings: &mut Vec<String>) {
    if !text.starts_with("//!") {
        findings.push(format!("{path}:1: no head comment; begin with `//!` and say what the file does"));
    }
    let lines = text.lines().count();
    if lines > LONGEST {
        findings.push(format!("{path}:{LONGEST}: {lines} lines; split the file by noun"));
    }
    if path.ends_with("/mod.rs") {
        for (number, line) in text.lines().enumerate() {
            let declares = ["//", "mod ", "pub mod ", "pub(crate) mod ", "use ", "pub use ", "#[", "}", " "];
            if !line.is_empty() && !declares.iter().any(|start| line.starts_with(start)) {
                findings
                    .push(format!("{path}:{}: logic in mod.rs; move it to a file of its own", number + 1));
            }
        }
    }
    for (number, line) in text.lines().enumerate() {
        for (pattern, remedy) in words() {
            if line.contains(&pattern) {
                findings.push(format!("{path}:{}: `{pattern}`; {remedy}", number + 1));
            }
        }
    }
    if is_installed(path) {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            for (pattern, remedy) in PANICS {
                if line.contains(pattern) && !line.trim_start().starts_with("//") {
                    findings.push(format!("{path}:{}: `{pattern}`; {remedy}", number + 1));
                }
            }
        }
    }
}

/// What panics where a pipe is closed, or where there are no more threads.
const PANICS: [(&str, &str); 5] = [
    ("println!(", MESSAGES),
    ("print!(", MESSAGES),
    ("thread::spawn(", THREADS),
    ("scope.spawn(", THREADS),
    ("enable_steady_tick(", THREADS),
];
const MESSAGES: &str =
    "an unread message fails nothing: message::say; what is asked for: write::to_standard_output";
const THREADS: &str = "there may be no thread: threads::start";

/// Whether a source is of what users install.
fn is_installed(path: &str) -> bool {
    let is_ours =
        CRATES.iter().any(|name| path.strip_prefix(name).is_some_and(|rest| rest.starts_with("/src/")));
    is_ours && !path.ends_with("/tests.rs")
}

const CRATES: [&str; 8] = ["prepare", "planner", "record", "reapi", "executor", "commands", "cli", "plugin"];

/// What Rust sources do not say.
fn words() -> Vec<(String, &'static str)> {
    vec![
        (
            format!("#[{}", "ignore"),
            "a test that needs a missing tool fails and names the command that installs it",
        ),
        (format!("{}!(", "todo"), "finish it"),
        (format!("{}ME", "FIX"), "mend it, or say what holds in a comment"),
        (format!("{}X", "XX"), "mend it, or say what holds in a comment"),
        (format!("#[{}(", "allow"), "use #[expect] with a reason"),
        (format!("#![{}(", "allow"), "use #[expect] with a reason"),
    ]
}

/// What no file says.
fn places() -> Vec<(String, &'static str)> {
    let machine = "a path of one machine; find it at run time";
    let registry = "a registry's host; name the crate or package alone";
    let homes = [format!("/{}/", "root"), format!("/{}/", "home")];
    // Where this checkout lies, wherever that is.
    let own = root().parent().filter(|parent| parent.components().count() > 1);
    let own = own.map(|parent| format!("{}/", parent.display()));
    let hosts = [
        format!("{}.io", "crates"),
        format!("registry.{}.org", "npmjs"),
        format!("{}.org", "pypi"),
        format!("{}.debian.org", "deb"),
    ];
    let machines = homes.into_iter().chain(own).map(|place| (place, machine));
    machines.chain(hosts.map(|host| (host, registry))).collect()
}

/// Whether a line names an absolute place; a folder of that name below another one is none.
fn contains_place(line: &str, pattern: &str) -> bool {
    line.match_indices(pattern).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-)}>%$".contains(c))
    })
}

fn is_lock(path: &str) -> bool {
    path.ends_with("Cargo.lock")
}

/// Programs of the harness are foreign code by nature.
fn is_case(path: &str) -> bool {
    path.starts_with("tests/cases/") || path.contains("/tests/data/")
}
