//! Rules about which files there are: sizes, kinds, and the documents a visitor expects.

use super::File;

const LARGEST: usize = 512 * 1024;
const LARGEST_PICTURE: usize = 150 * 1000;

const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Findings over all files.
pub fn check(files: &[File]) -> Vec<String> {
    let mut findings = Vec::new();
    for name in DOCUMENTS {
        if !files.iter().any(|file| file.path == name) {
            findings.push(format!("{name}: missing; write it"));
        }
    }
    for file in files {
        let path = &file.path;
        if file.bytes.len() > LARGEST {
            findings.push(format!("{path}: {} bytes; keep files below {LARGEST}", file.bytes.len()));
        }
        let data = path.starts_with("tests/data/") || path.contains("/tests/");
        let picture =
            path.starts_with("docs/") && path.ends_with(".png") && file.bytes.len() <= LARGEST_PICTURE;
        if file.text().is_none() && !data && !picture {
            findings.push(format!(
                "{path}: binary; only a crate's tests/ folder holds binary data, and docs/ pictures (PNG) of at most {LARGEST_PICTURE} bytes"
            ));
        }
    }
    findings
}
