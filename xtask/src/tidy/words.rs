//! The comments of the product in the field's words: roundabout ones are counted over all of it.
//!
//! The limits are those of neighbours (of comment lines, n2 has "what" in 0.1 %, nextest in 0.2 %, wild in 1.4 %).

use super::File;

/// Words by which a comment goes around a noun, and the largest share of comment lines with any of them.
const LIMITS: [(&[&str], f64); 2] =
    [(&["what"], 0.02), (&["told", "tells", "tell", "whose", "whoever", "whichever"], 0.01)];
/// How many lines a finding names.
const NAMED: usize = 5;

/// Counts over all files.
pub(super) fn check(files: &[File]) -> Vec<String> {
    let comments: Vec<(&str, usize, &str)> =
        files.iter().filter(|file| is_product(&file.path)).flat_map(comments).collect();
    let mut findings = Vec::new();
    for (words, limit) in LIMITS {
        let has = |(_, _, line): &&(&str, usize, &str)| {
            let mut found = line.split(|letter: char| !letter.is_alphanumeric());
            found.any(|word| words.iter().any(|other| word.eq_ignore_ascii_case(other)))
        };
        let lines: Vec<_> = comments.iter().filter(has).collect();
        let share = lines.len() as f64 / comments.len().max(1) as f64;
        if share > limit {
            let places = lines.iter().take(NAMED).map(|(path, line, _)| format!("{path}:{line}"));
            findings.push(format!(
                "{} of {} comment lines ({:.1} %) have {}, more than {:.0} %: name the thing (a key, a module, a miss); for \
                 example {}",
                lines.len(),
                comments.len(),
                100.0 * share,
                words.join(" or "),
                100.0 * limit,
                places.collect::<Vec<_>>().join(", ")
            ));
        }
    }
    findings
}

fn is_product(path: &str) -> bool {
    let is_of_tests = path.starts_with("tests/") || path.starts_with("xtask/");
    !is_of_tests && path.contains("/src/") && path.ends_with(".rs")
}

/// The comment lines of a file: path, number, text.
fn comments(file: &File) -> impl Iterator<Item = (&str, usize, &str)> {
    let lines = file.text().unwrap_or_default().lines().zip(1..);
    let comments = lines.filter(|(line, _)| line.trim_start().starts_with("//"));
    comments.map(|(line, number)| (file.path.as_str(), number, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, lines: &[&str]) -> File {
        File { path: path.to_owned(), bytes: lines.join("\n").into_bytes() }
    }

    #[test]
    fn roundabout_comments_are_counted_in_the_product_alone() {
        let plain = vec!["/// The key."; 60];
        let roundabout = ["    // What it is.", "//! whatever: somewhat", "let what = 1; // what"];
        let lines = [&plain[..], &roundabout].concat();
        assert_eq!(check(&[file("planner/src/key.rs", &lines)]), Vec::<String>::new());
        let more = [&lines[..], &["/// So it was told.", "// what"]].concat();
        let findings = check(&[file("planner/src/key.rs", &more)]);
        assert_eq!(findings.len(), 2);
        assert!(
            findings[0].starts_with("2 of 64 comment lines (3.1 %) have what, more than 2 %"),
            "{}",
            findings[0]
        );
        assert!(findings[0].ends_with("planner/src/key.rs:61, planner/src/key.rs:65"), "{}", findings[0]);
        assert_eq!(
            check(&[file("tests/src/key.rs", &more), file("planner/tests/key.rs", &more)]),
            Vec::<String>::new()
        );
    }
}
