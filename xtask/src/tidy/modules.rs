//! Rules about the modules of a crate: no large circles of imports, and no name for two types.
//!
//! Reads imports and definitions as text, so it needs no compiler.

use std::collections::{BTreeMap, BTreeSet};

use super::File;

/// More modules than this must not import each other in a circle.
const CIRCLE: usize = 3;
/// What begins a definition of a type.
const TYPES: [&str; 3] = ["struct ", "enum ", "trait "];

/// The modules of a crate, each with its file and the modules that it imports.
type Modules<'f> = BTreeMap<Vec<&'f str>, (&'f File, BTreeSet<Vec<String>>)>;

/// Findings in the crates that are installed.
pub fn check(files: &[File]) -> Vec<String> {
    let mut crates: BTreeMap<&str, Modules<'_>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs") && !file.path.starts_with("tests/")) {
        let Some((name, inner)) = file.path.split_once("/src/") else { continue };
        if name == "xtask" || inner.starts_with("bin/") {
            continue;
        }
        let path = inner.trim_end_matches(".rs").split('/');
        let module = path.filter(|part| !["lib", "main"].contains(part)).collect();
        crates.entry(name).or_default().insert(module, (file, BTreeSet::new()));
    }
    let mut findings = Vec::new();
    for (name, mut modules) in crates {
        let known: BTreeSet<Vec<String>> = modules.keys().map(|path| owned(path)).collect();
        for (path, (file, imports)) in &mut modules {
            let text = file.text().unwrap_or_default();
            let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            *imports = imported(&owned(path), text, &known);
        }
        findings.extend(circles(name, &modules));
        findings.extend(types(&modules));
    }
    findings
}

fn owned(path: &[&str]) -> Vec<String> {
    path.iter().map(|part| (*part).to_owned()).collect()
}

/// The modules that one imports.
fn imported(own: &[String], text: &str, known: &BTreeSet<Vec<String>>) -> BTreeSet<Vec<String>> {
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(|line| line.to_owned() + "\n")
        .collect();
    let mut found = BTreeSet::new();
    for path in uses(&code).into_iter().chain(inline(&code)) {
        let mut base = own.to_vec();
        let mut parts: Vec<&str> = path.split("::").map(str::trim).collect();
        match parts[0] {
            "crate" => {
                base.clear();
                parts.remove(0);
            }
            "self" => drop(parts.remove(0)),
            "super" => {
                while parts.first() == Some(&"super") {
                    base.pop();
                    parts.remove(0);
                }
            }
            first => {
                base.push(first.to_owned());
                if !known.contains(&base) {
                    continue;
                }
                base.pop();
            }
        }
        base.extend(parts.iter().map(|part| (*part).to_owned()));
        let module = (1..=base.len()).rev().map(|length| &base[..length]).find(|path| known.contains(*path));
        found.extend(module.filter(|module| *module != own).map(<[String]>::to_vec));
    }
    found
}

/// The paths of the `use` declarations, one for each name.
fn uses(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for (at, _) in code.match_indices("use ") {
        let begins = code[..at].rsplit('\n').next().is_some_and(|before| {
            let before = before.trim();
            before.is_empty() || before.starts_with("pub")
        });
        if let Some(tree) = code[at + 4..].split(';').next().filter(|_| begins) {
            expand("", tree, &mut paths);
        }
    }
    paths
}

fn expand(before: &str, tree: &str, paths: &mut Vec<String>) {
    let Some((head, rest)) = tree.split_once('{') else {
        let name = tree.split(" as ").next().unwrap_or_default().trim();
        paths.extend((!name.is_empty()).then(|| format!("{before}{name}")));
        return;
    };
    let before = format!("{before}{}", head.trim());
    let inner = rest.trim_end().strip_suffix('}').unwrap_or(rest);
    let (mut depth, mut start) = (0_usize, 0);
    for (at, letter) in inner.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                expand(&before, &inner[start..at], paths);
                start = at + 1;
            }
            _ => {}
        }
    }
    expand(&before, &inner[start..], paths);
}

/// Paths in the code itself.
fn inline(code: &str) -> Vec<String> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let words = code.split(|letter| !is_part(letter));
    let paths = words.filter(|word| word.starts_with("crate::") || word.starts_with("super::"));
    paths.map(|path| path.trim_end_matches(':').to_owned()).collect()
}

fn circles(name: &str, modules: &Modules<'_>) -> Vec<String> {
    let edges: BTreeMap<Vec<String>, &BTreeSet<Vec<String>>> =
        modules.iter().map(|(path, (_, imports))| (owned(path), imports)).collect();
    let reached = |from: &Vec<String>| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(next) = open.pop() {
            for import in edges.get(&next).into_iter().copied().flatten() {
                if seen.insert(import.clone()) {
                    open.push(import.clone());
                }
            }
        }
        seen
    };
    let reach: BTreeMap<&Vec<String>, BTreeSet<Vec<String>>> =
        edges.keys().map(|path| (path, reached(path))).collect();
    let mut found = BTreeSet::new();
    for (path, seen) in &reach {
        let circle: BTreeSet<String> = seen
            .iter()
            .filter(|other| reach.get(other).is_some_and(|back| back.contains(*path)))
            .map(|other| other.join("::"))
            .collect();
        if circle.len() > CIRCLE {
            found.insert(circle);
        }
    }
    let sentence = |circle: BTreeSet<String>| {
        let names: Vec<String> = circle.into_iter().collect();
        format!(
            "{name}/src: {} modules import each other in a circle, and {CIRCLE} may: {}; let the lower ones import nothing of the upper ones",
            names.len(),
            names.join(", ")
        )
    };
    found.into_iter().map(sentence).collect()
}

fn types(modules: &Modules<'_>) -> Vec<String> {
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    // The protocol is one file, which several crates compile.
    for (file, _) in modules.values().filter(|(file, _)| !file.path.ends_with("/protocol.rs")) {
        let text = file.text().unwrap_or_default();
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for line in text.lines().filter(|line| line.starts_with("pub")) {
            let defined = line.split_once(' ').map_or("", |(_, rest)| rest);
            let Some(rest) = TYPES.iter().find_map(|word| defined.strip_prefix(word)) else { continue };
            let name = rest.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
            places.entry(name).or_default().push(&file.path);
        }
    }
    let twice = places.into_iter().filter(|(_, files)| files.len() > 1);
    twice
        .map(|(name, files)| format!("{}: `{name}` is another type in {}; rename one", files[1], files[0]))
        .collect()
}
