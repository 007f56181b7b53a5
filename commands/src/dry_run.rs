//! Lists the actions that would run, with their reasons, as lines of text for `distlto plan` and `distlto link`.
//!
//! Pure: the caller finds the actions.

use std::cmp::Reverse;

use distlto_prepare::text::printable;

/// An action that would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its cost, for the order.
    pub weight: u64,
    /// Its cost in words.
    pub takes: String,
    /// Its name.
    pub what: String,
    /// Why it would run.
    pub why: String,
}

/// A line for each, the heaviest first.
pub fn lines(mut rows: Vec<Row>) -> String {
    rows.sort_by_key(|row| Reverse(row.weight));
    let width = rows.iter().map(|row| row.takes.len()).max().unwrap_or(0);
    let line = |Row { takes, what, why, .. }: &Row| {
        printable(&format!("{takes:>width$}  {what}: {why}")).into_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heaviest_first_then_in_order() {
        let row = |weight: u64, what: &str| Row {
            weight,
            takes: weight.to_string(),
            what: what.to_owned(),
            why: "its command changed".to_owned(),
        };
        assert_eq!(
            lines(vec![row(5, "opt a"), row(70, "opt b\n\u{1b}[31m"), row(5, "opt c")]),
            "70  opt b\\n\\u{1b}[31m: its command changed\n 5  opt a: its command changed\n 5  opt c: its command changed\n"
        );
        assert_eq!(lines(Vec::new()), "");
    }
}
