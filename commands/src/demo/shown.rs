//! Output of a command as the demonstration shows it: the lines that matter, in 80 columns.

/// Columns of a terminal.
const COLUMNS: usize = 80;

/// The lines that begin with one of these texts, or all where none is given. Long ones are wrapped between words, and dots
/// stand for the lines between.
pub fn excerpt(text: &str, beginnings: &[&str]) -> String {
    let matters =
        |line: &str| beginnings.is_empty() || beginnings.iter().any(|begin| line.starts_with(begin));
    let mut shown = String::new();
    let mut left_out = false;
    for line in text.lines() {
        if !matters(line) {
            left_out = true;
            continue;
        }
        if std::mem::take(&mut left_out) {
            shown.push_str("...\n");
        }
        wrap(line, &mut shown);
    }
    shown
}

fn wrap(line: &str, shown: &mut String) {
    let mut column = 0;
    for word in line.split_inclusive(' ') {
        let width = word.trim_end().chars().count();
        if column > 0 && column + width > COLUMNS {
            shown.truncate(shown.trim_end_matches(' ').len());
            shown.push_str("\n    ");
            column = 4;
        }
        shown.push_str(word);
        column += word.chars().count();
    }
    shown.push('\n');
}
