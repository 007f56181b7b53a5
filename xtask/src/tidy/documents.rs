//! Rules about documents: a link leads to a file and a heading that are there, and so does a path in backquotes that is one of
//! the repository.
//!
//! Anchors are those that GitHub makes of headings. Links to other hosts are nobody's business here.

use std::collections::{BTreeMap, BTreeSet};

use super::File;

/// Findings in all documents.
pub fn check(files: &[File]) -> Vec<String> {
    let known = Known::of(files);
    let documents = files.iter().filter(|file| is_document(&file.path));
    documents.flat_map(|file| known.findings(&file.path, file.text().unwrap_or_default())).collect()
}

pub(super) fn is_document(path: &str) -> bool {
    path.ends_with(".md")
}

/// What a document may name.
struct Known<'a> {
    files: BTreeMap<&'a str, &'a File>,
    folders: BTreeSet<&'a str>,
    /// The anchors of each document.
    anchors: BTreeMap<&'a str, BTreeSet<String>>,
}

impl<'a> Known<'a> {
    fn of(files: &'a [File]) -> Self {
        let paths = || files.iter().map(|file| file.path.as_str());
        let above = |path: &'a str| path.match_indices('/').map(move |(at, _)| &path[..at]);
        let documents = files.iter().filter(|file| is_document(&file.path));
        let anchors = |file: &'a File| (file.path.as_str(), anchors(file.text().unwrap_or_default()));
        Self {
            files: files.iter().map(|file| (file.path.as_str(), file)).collect(),
            folders: paths().flat_map(above).collect(),
            anchors: documents.map(anchors).collect(),
        }
    }

    fn findings(&self, path: &str, text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        for (number, line) in prose(text) {
            let mut add =
                |found: &str, remedy: &str| findings.push(format!("{path}:{number}: `{found}`: {remedy}"));
            for link in between(line, "](", ")") {
                if let Err(remedy) = self.follow(path, link) {
                    add(link, remedy);
                }
            }
            // A history names files that are gone.
            let words = if path == "CHANGELOG.md" { Vec::new() } else { between(line, "`", "`") };
            for word in words {
                if !self.has(word) {
                    add(word, "the repository has no such file; say where it is");
                }
                if !self.defines(word) {
                    add(word, "its module has no such name; say where it is");
                }
            }
        }
        findings
    }

    /// Whether a link leads somewhere, from the folder of the document that has it.
    fn follow(&self, from: &str, link: &str) -> Result<(), &'static str> {
        if link.contains("://") {
            return Ok(());
        }
        let (to, anchor) = link.split_once('#').map_or((link, None), |(to, anchor)| (to, Some(anchor)));
        let place = if to.is_empty() { from.to_owned() } else { relative(from, to) };
        if !self.files.contains_key(place.as_str()) && !self.folders.contains(place.as_str()) {
            return Err("the link leads to no file; say where it is");
        }
        let Some(anchor) = anchor else { return Ok(()) };
        let there = self.anchors.get(place.as_str()).is_some_and(|anchors| anchors.contains(anchor));
        if there { Ok(()) } else { Err("no heading there has this anchor; name one that there is") }
    }

    /// Whether a word in backquotes names a file or folder that is there, or none of the repository. Sources may be named
    /// by the end of their path.
    fn has(&self, word: &str) -> bool {
        let placeholder = |part: &str| part.contains('*') || part.chars().any(|c| c.is_ascii_uppercase());
        let below = word.split_once('/').is_some_and(|(top, _)| self.folders.contains(top));
        let named = below || (word.ends_with(".rs") && ![".rs", "mod.rs"].contains(&word));
        let stem = word.rsplit_once('.').map_or(word, |(stem, _)| stem);
        if !named || word.contains([' ', ':', '=']) || stem.split('/').any(placeholder) {
            return true;
        }
        let path = word.trim_end_matches('/');
        let end = format!("/{path}");
        self.files.contains_key(path)
            || self.folders.contains(path)
            || self.files.keys().any(|file| file.ends_with(&end))
    }

    /// Whether a path of Rust, such as `distlto_planner::dtlto::read`, leads to a module that has the name.
    fn defines(&self, word: &str) -> bool {
        let Some((path, name)) = word.strip_prefix("distlto_").and_then(|path| path.rsplit_once("::")) else {
            return true;
        };
        let (package, modules) = path.split_once("::").unwrap_or((path, "lib"));
        let file = format!("{package}/src/{}.rs", modules.replace("::", "/"));
        let text = self.files.get(file.as_str()).and_then(|file| file.text()).unwrap_or_default();
        text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
    }
}

/// A path as seen from the folder of a document.
fn relative(document: &str, path: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The lines outside of code blocks, with their numbers.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut code = false;
    text.lines().zip(1..).filter_map(move |(line, number)| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        (!code && !fence).then_some((number, line))
    })
}

/// The texts between two marks.
fn between<'a>(line: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some((inside, after)) = rest.split_once(open).and_then(|(_, after)| after.split_once(close)) {
        found.push(inside);
        rest = after;
    }
    found
}

/// The anchors of headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter_map(|(_, line)| {
        line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))
    });
    let anchor = |heading: &str| {
        let letters = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        letters.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(document: &str, text: &str) -> Vec<String> {
        let file = |path: &str, text: &str| File { path: path.to_owned(), bytes: text.as_bytes().to_vec() };
        let files = [
            file(document, text),
            file("docs/other.md", "# Other\n## What `x` does, and not\n```\n# no heading\n```\n"),
            file("planner/src/link/lock.rs", "pub fn take_lock() {}"),
        ];
        check(&files)
    }

    #[test]
    fn what_is_there_is_found() {
        let text = "[a](other.md) [b](other.md#what-x-does-and-not) [c](#here) [d](../planner/src) [e](https://x/y)\n\
                    ## Here\n`planner/src/link/lock.rs` `link/lock.rs` `lock.rs` `planner/` `planner/src/NAME.rs` `.rs`\n\
                    `planner/src/*.rs` `src/util/other.c` `a.o` `distlto_planner::link::lock::take_lock`\n```\n[f](gone.md) `gone.rs`\n```\n";
        assert_eq!(findings("docs/one.md", text), Vec::<String>::new());
        assert_eq!(findings("CHANGELOG.md", "`planner/src/gone.rs`"), Vec::<String>::new());
    }

    #[test]
    fn what_is_elsewhere_is_named_with_its_line() {
        for wrong in [
            "[a](gone.md)",
            "[a](docs/other.md)",
            "[a](other.md#no-heading)",
            "[a](#there)",
            "[a](../gone/x.rs)",
        ] {
            let found = findings("docs/one.md", &format!("one\n\n{wrong}\n"));
            assert!(found.len() == 1 && found[0].starts_with("docs/one.md:3: `"), "{wrong}: {found:?}");
        }
        for wrong in [
            "planner/src/lock.rs",
            "gone.rs",
            "ink/lock.rs",
            "planner/tests/",
            "docs/gone.md",
            "distlto_planner::link::lock::take",
            "distlto_planner::lock::take_lock",
        ] {
            let found = findings("ARCHITECTURE.md", &format!("see `{wrong}`"));
            assert_eq!(found.len(), 1, "{wrong}: {found:?}");
        }
    }
}
