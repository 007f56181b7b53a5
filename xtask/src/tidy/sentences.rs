//! Documents in short sentences, so that a reader takes in each at once.
//!
//! A sentence ends at `.`, `!`, `?` or `:` before white space; a list item begins one. Inline code is one word, and a link
//! its text. Code blocks, tables, headings, HTML comments and the changelog's released sections do not count.

use super::File;
use super::documents::{is_document, prose};

/// The most words of a sentence.
const LONGEST: usize = 30;
/// Words that a finding quotes.
const QUOTED: usize = 6;

/// Findings in all documents.
pub(super) fn check(files: &[File]) -> Vec<String> {
    files.iter().filter(|file| is_document(&file.path)).flat_map(findings).collect()
}

fn findings(file: &File) -> Vec<String> {
    let mut text = file.text().unwrap_or_default();
    if file.path == "CHANGELOG.md" {
        let released = text.match_indices("\n## ").find(|(at, _)| !text[at + 4..].starts_with("Unreleased"));
        text = released.map_or(text, |(at, _)| &text[..at]);
    }
    let mut findings = Vec::new();
    for words in paragraphs(text).iter().map(|(number, paragraph)| words(*number, paragraph)) {
        let ends = |(_, word): &(usize, String)| word.trim_end_matches('*').ends_with(['.', '!', '?', ':']);
        for sentence in words.split_inclusive(ends).filter(|sentence| sentence.len() > LONGEST) {
            let first: Vec<&str> = sentence.iter().take(QUOTED).map(|(_, word)| word.as_str()).collect();
            findings.push(format!(
                "{}:{}: \"{} ...\" has {} words, more than {LONGEST}; make it two sentences or more",
                file.path,
                sentence[0].0,
                first.join(" "),
                sentence.len()
            ));
        }
    }
    findings
}

/// The paragraphs and list items, each with the number of its first line.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let (mut last, mut is_comment) = (0, false);
    for (number, line) in prose(text) {
        let trimmed = line.trim_start();
        let (mark, rest) = trimmed.split_once(' ').unwrap_or((trimmed, ""));
        let is_numbered = mark.ends_with('.') && mark.starts_with(|first: char| first.is_ascii_digit());
        let is_item = mark == "-" || mark == "*" || is_numbered;
        is_comment |= line.contains("<!--");
        let is_prose = !is_comment && !mark.is_empty() && !mark.starts_with(['#', '|']);
        is_comment &= !line.contains("-->");
        match found.last_mut() {
            _ if !is_prose => continue,
            _ if is_item => found.push((number, rest.to_owned())),
            Some((_, paragraph)) if number == last + 1 => *paragraph += &format!("\n{line}"),
            // A block of code without a fence.
            _ if line.starts_with("    ") => continue,
            _ => found.push((number, line.to_owned())),
        }
        last = number;
    }
    found
}

/// The words of a paragraph, each with the number of its line.
fn words(mut number: usize, paragraph: &str) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    let (mut word, mut is_code, mut is_target) = (String::new(), false, false);
    for letter in paragraph.chars().chain(['\n']) {
        is_code ^= letter == '`';
        is_target |= !is_code && letter == '(' && word.ends_with(']');
        if letter.is_whitespace() && !is_code {
            words.push((number, std::mem::take(&mut word)));
        } else if !is_target {
            word.push(if letter.is_whitespace() { ' ' } else { letter });
        }
        is_target &= letter != ')';
        number += usize::from(letter == '\n');
    }
    words.retain(|(_, word)| word.contains(|letter: char| letter == '`' || letter.is_alphanumeric()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        check(&[File { path: path.to_owned(), bytes: text.as_bytes().to_owned() }])
    }

    #[test]
    fn long_sentences_of_prose_are_found() {
        let (half, long) = ("word ".repeat(15), "word ".repeat(31));
        let short = [
            &format!("{half}{half}- -\n\n{half}(`{long}`\n`{long}`), [a\nb](c.md#d).** {half}end: {half}\n"),
            &format!("- {half}\n- {half}\n1. {half}\n# {long}\n| {long}\n```\n{long}\n```\n"),
            &format!("<!-- {long}\n{long} -->\n\n    {long}\n    {long}\n"),
        ];
        assert_eq!(found("docs/a.md", &short.map(String::as_str).concat()), Vec::<String>::new());
        for (text, line) in [("One.\nTwo: ", 2), ("- a\n- b\n1. ", 3), ("`a\nb`. [c](d)! e? ", 2)] {
            let expected = format!("docs/a.md:{line}: \"word word word word word word ...\" has 31 words");
            let findings = found("docs/a.md", &format!("{text}{long}"));
            assert!(findings.len() == 1 && findings[0].starts_with(&expected), "{text}: {findings:?}");
        }
        let text = format!("# Changelog\n\n## Unreleased\n\n- {long}\n\n## 0.1.0\n\n- {long}\n");
        assert_eq!(["CHANGELOG.md", "docs/a.md", "src/a.rs"].map(|path| found(path, &text).len()), [1, 2, 0]);
    }
}
