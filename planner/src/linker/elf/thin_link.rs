//! How ld.lld is told to do a thin link: to write shards and import lists, to say what it loads, and to write no program.
//!
//! Pure. The options are those of `lld/ELF/Options.td`.

use crate::linker::ThinLinkPlaces;

/// The words after a link line without an output.
pub fn words(places: &ThinLinkPlaces<'_>) -> Vec<String> {
    let mut words = vec![
        format!("--thinlto-index-only={}", places.index),
        "--thinlto-emit-imports-files".to_owned(),
        format!("--thinlto-prefix-replace=;{}", places.prefix),
        "--trace".to_owned(),
        "-o".to_owned(),
        places.output.to_owned(),
    ];
    if let Some(regular) = places.regular {
        // Only the first partition's code is written in an index-only link.
        words.push("--lto-partitions=1".to_owned());
        words.push(format!("--lto-obj-path={regular}"));
    }
    words
}
