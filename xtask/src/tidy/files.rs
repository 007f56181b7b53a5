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
        findings.extend(forgotten(file, files));
    }
    findings
}

/// A file of tests that no test program has: its tests would never run.
fn forgotten(file: &File, files: &[File]) -> Option<String> {
    let (folder, name) = file.path.strip_suffix(".rs")?.rsplit_once('/')?;
    let tests = folder == "tests" || folder.contains("/tests");
    if !tests || folder.contains("/src") || name == "main" {
        return None;
    }
    let main = files.iter().find(|file| file.path.strip_prefix(folder) == Some("/main.rs"))?;
    let is_module =
        main.text().is_some_and(|text| text.lines().any(|line| line.ends_with(&format!("mod {name};"))));
    let in_manifest = |file: &File| {
        file.path.ends_with("Cargo.toml")
            && file.text().is_some_and(|text| text.contains(&format!("\"tests/{name}.rs\"")))
    };
    let is_program = files.iter().any(in_manifest);
    (!is_module && !is_program)
        .then(|| format!("{}: no test program has it; add `mod {name};` to {}", file.path, main.path))
}
