//! Counts words; a crate of its own, so that calls into it cross modules.

use std::collections::BTreeMap;

/// How often each word of a text occurs.
pub fn count(text: &str) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for word in text.split_whitespace() {
        *counts.entry(word).or_insert(0) += 1;
    }
    counts
}
