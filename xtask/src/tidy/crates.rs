//! Rules about manifests: dependencies of the workspace's crates point one way, and versions are named in one place.

use super::File;

/// The crates in the order of the data; each may depend on those before it.
const ORDER: [&str; 8] = ["prepare", "plugin", "planner", "record", "reapi", "executor", "commands", "cli"];

/// What the sources of a crate do not name, by the first comment of the crate: what it knows nothing of.
const UNAWARE: [(&str, &[&str]); 6] = [
    ("prepare", &["link_plan", "ActionGraph", "std::net"]),
    ("planner", &["process::Command", "std::net", "clap::"]),
    ("record", &["process::Command", "std::net", "clap::", "link_line"]),
    (
        "executor",
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
    ("reapi", &["distlto_", "clap::"]),
    ("hook", &["distlto_"]),
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

/// Where a source names what its crate knows nothing of.
fn aware(file: &File) -> Vec<String> {
    let of = |(dir, words): &(&'static str, &'static [&'static str])| {
        file.path.strip_prefix(dir)?.strip_prefix("/src/")?;
        file.path.ends_with(".rs").then_some((*dir, *words))
    };
    let Some((dir, words)) = UNAWARE.iter().find_map(of) else { return Vec::new() };
    // Comments may speak of the world, and tests ask other programs.
    let code = file.text().unwrap_or_default().lines().enumerate();
    let code = code.take_while(|(_, line)| *line != "#[cfg(test)]");
    let code = code.filter(|(_, line)| !line.trim_start().starts_with("//"));
    let finding = |(number, line): (usize, &str)| {
        let word = words.iter().find(|word| line.contains(**word))?;
        Some(format!(
            "{}:{}: `{word}`, of which {dir} knows nothing; move it to a later crate",
            file.path,
            number + 1
        ))
    };
    code.filter_map(finding).collect()
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
