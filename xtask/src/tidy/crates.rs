//! Rules about manifests and imports: dependencies of the workspace's crates point one way, some modules are independent
//! of others of their crate, and versions are named in one place.

use super::File;

/// The crates in the order of the data; each may depend on those before it.
const ORDER: [&str; 8] = ["prepare", "plugin", "planner", "record", "reapi", "executor", "commands", "cli"];

/// What the sources of a crate or module do not name: what it knows nothing of. A module may name itself.
const UNAWARE: [(&str, &[&str]); 8] = [
    ("prepare/src", &["link_plan", "ActionGraph", "std::net"]),
    ("planner/src", &["process::Command", "std::net", "clap::", "crate::buck2::"]),
    ("record/src", &["process::Command", "std::net", "clap::", "link_line"]),
    (
        "executor/src",
        &[
            "link_line",
            "link_plan",
            "link_command",
            "planner::index",
            "planner::buck2",
            "planner::emit",
            "clap::",
        ],
    ),
    ("reapi/src", &["distlto_planner", "distlto_record", "clap::"]),
    ("hook/src", &["distlto_"]),
    ("commands/src", &["crate::distribute::", "crate::distribute;"]),
    ("commands/src/distribute", &["crate::link::", "crate::link;"]),
];

/// Findings in manifests and sources.
pub fn check(files: &[File]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in files {
        findings.extend(aware(file));
        let Some((dir, "Cargo.toml")) = file.path.rsplit_once('/') else { continue };
        let outside = dir == "tests/third-party" || dir.starts_with("examples/") || dir.starts_with("rules/");
        if outside || dir.contains("/tests/") {
            continue;
        }
        let Some(text) = file.text() else { continue };
        let mut inside = false;
        for (number, line) in text.lines().enumerate() {
            let place = format!("{}:{}", file.path, number + 1);
            if line.starts_with('[') {
                inside = line.ends_with("dependencies]");
                continue;
            }
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            if !inside || name.is_empty() || line.starts_with('#') {
                continue;
            }
            if !line.contains("workspace = true") {
                findings.push(format!("{place}: a version of its own; use `{name}.workspace = true`"));
            }
            if let Some(found) = backwards(dir, name) {
                findings.push(format!("{place}: {found}"));
            }
        }
    }
    findings
}

/// Where a source names what its crate or module knows nothing of.
fn aware(file: &File) -> Vec<String> {
    let is_in = |place: &str| {
        let rest = file.path.strip_prefix(place).unwrap_or_default();
        file.path.ends_with(".rs") && (rest.starts_with('/') || rest == ".rs")
    };
    let is_own = |place: &str, word: &str| {
        let module = word.strip_prefix("crate::").map(|path| path.trim_end_matches([':', ';']));
        module.is_some_and(|module| is_in(&format!("{place}/{module}")))
    };
    // Comments may speak of the world, and tests ask other programs.
    let code = file.text().unwrap_or_default().lines().enumerate();
    let code = code.take_while(|(_, line)| *line != "#[cfg(test)]");
    let code = code.filter(|(_, line)| !line.trim_start().starts_with("//"));
    let mut findings = Vec::new();
    for (place, words) in UNAWARE.iter().filter(|(place, _)| is_in(place)) {
        findings.extend(code.clone().filter_map(|(number, line)| {
            let word = words.iter().find(|word| line.contains(**word) && !is_own(place, word))?;
            let source = format!("{}:{}", file.path, number + 1);
            Some(format!("{source}: `{word}`, of which {place} knows nothing; move what needs it elsewhere"))
        }));
    }
    findings
}

/// Why a crate may not depend on another one.
fn backwards(dir: &str, dependency: &str) -> Option<String> {
    let other = dependency.strip_prefix("distlto-")?;
    let own = ORDER.iter().position(|&name| name == dir)?;
    match ORDER.iter().position(|&name| name == other) {
        Some(place) if place < own => None,
        Some(_) => Some(format!(
            "{dir} comes before {other} in {ORDER:?}; move the shared part to the earlier crate"
        )),
        None => None,
    }
}
