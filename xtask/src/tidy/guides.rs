//! The documents stay short, and quote messages that there are: `README.md`, `ARCHITECTURE.md` and all below `docs/`.
//!
//! A word has a letter or a digit: marks of tables do not count.

use super::File;

/// The most words of all documents together.
const MOST: usize = 16_000;
/// The most words of the page that everybody reads.
const MOST_OF_README: usize = 1_000;
const README: &str = "README.md";
/// The page of messages: they stand in backquotes in the first column of its tables, with `...` for parts that vary.
const MESSAGES: &str = "docs/troubleshooting.md";

/// Findings in the documents.
pub(super) fn check(files: &[File]) -> Vec<String> {
    let mut findings = lengths(files);
    let page = files.iter().find(|file| file.path == MESSAGES).and_then(File::text);
    findings.extend(page.map_or_else(Vec::new, |page| unknown_messages(page, files)));
    findings
}

fn lengths(files: &[File]) -> Vec<String> {
    let documents: Vec<&File> = files.iter().filter(|file| is_counted(&file.path)).collect();
    let all: usize = documents.iter().map(|file| words(file)).sum();
    let readme = documents.iter().find(|file| file.path == README).map_or(0, |file| words(file));
    let limits = [(README, readme, MOST_OF_README), ("README.md, ARCHITECTURE.md and docs/", all, MOST)];
    let long = limits.into_iter().filter(|(_, count, most)| count > most);
    long.map(|(name, count, most)| format!("{name}: {count} words, more than {most}; say each fact once"))
        .collect()
}

fn is_counted(path: &str) -> bool {
    [README, "ARCHITECTURE.md"].contains(&path) || (path.starts_with("docs/") && path.ends_with(".md"))
}

fn words(file: &File) -> usize {
    let text = file.text().unwrap_or_default();
    text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

/// Messages of the page that no source has.
fn unknown_messages(page: &str, files: &[File]) -> Vec<String> {
    let sources: Vec<String> = files
        .iter()
        .filter(|file| file.path.ends_with(".rs"))
        .filter_map(|file| Some(joined(file.text()?)))
        .collect();
    let mut findings = Vec::new();
    for (line, number) in page.lines().zip(1..) {
        let Some(cell) = line.strip_prefix("| ").and_then(|row| row.split(" | ").next()) else { continue };
        let parts =
            cell.split('`').skip(1).step_by(2).flat_map(|message| message.split("...")).map(str::trim);
        for part in parts.filter(|part| part.contains(' ')) {
            if !sources.iter().any(|source| source.contains(part)) {
                findings.push(format!(
                    "{MESSAGES}:{number}: no source prints `{part}`; quote the message as it is"
                ));
            }
        }
    }
    findings
}

/// The text with the lines of a string joined.
fn joined(source: &str) -> String {
    let mut lines = source.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |text, line| text + line.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), bytes: text.as_bytes().to_vec() }
    }

    #[test]
    fn words_of_documents_are_counted_together() {
        let text = "word | word |---|\n".repeat(MOST_OF_README / 2);
        let readme = file(README, &text);
        assert_eq!(lengths(&[readme]), Vec::<String>::new());
        let [readme, page] = [README, "docs/a.md"].map(|path| file(path, &format!("{text}more")));
        assert_eq!(lengths(&[readme]).len(), 1);
        let long = |path: &str| file(path, &"word ".repeat(MOST));
        assert_eq!(lengths(&[long("ARCHITECTURE.md"), long("rules/README.md")]), Vec::<String>::new());
        assert_eq!(lengths(&[page, long("docs/design/a.md")]).len(), 1);
    }

    #[test]
    fn messages_are_those_of_sources() {
        let source = file("a.rs", "error(\"the index shard {} is \\\n        empty: {why}\")");
        let page = "| You see | Do |\n|---|---|\n| `the index shard ... is empty: ...`, `P` | `do this` |\n";
        assert_eq!(unknown_messages(page, std::slice::from_ref(&source)), Vec::<String>::new());
        let wrong = page.replace("is empty", "was empty");
        assert_eq!(unknown_messages(&wrong, &[source]).len(), 1);
    }
}
