//! What `llvm-bcanalyzer` says of a file, and the LLVM versions whose files are read.
//!
//! The newest LLVM and one older one are used: `DISTLTO_TEST_LLVM` names it, 14 is the default. Knows
//! nothing of distlto's own readers.

use std::path::Path;

use super::toolchain::{NEWEST, run};

/// The versions to test with.
pub fn versions() -> Vec<u32> {
    let older = std::env::var("DISTLTO_TEST_LLVM").ok().map(|text| text.parse().expect("a major version"));
    match older {
        Some(NEWEST) | None => vec![NEWEST, 14],
        Some(older) => vec![NEWEST, older],
    }
}

/// One record of a dump, with the block that holds it.
#[derive(Debug)]
pub struct Dumped {
    pub block: String,
    pub code: String,
    pub operands: Vec<u64>,
}

impl Dumped {
    pub fn text(&self, from: usize) -> String {
        self.operands[from..].iter().map(|&byte| byte as u8 as char).collect()
    }
}

/// All records of a file, and the names of all blocks as they begin.
pub fn dump(file: &Path) -> (Vec<Dumped>, Vec<String>) {
    let dir = file.parent().expect("a file has a directory");
    let text = run(dir, "llvm-bcanalyzer", NEWEST, &["-dump", file.to_str().expect("UTF-8")]);
    let mut open: Vec<String> = Vec::new();
    let (mut records, mut blocks) = (Vec::new(), Vec::new());
    for line in String::from_utf8_lossy(&text).lines() {
        let Some(element) = line.trim_start().strip_prefix('<') else { continue };
        let name = element.split([' ', '>', '/']).next().unwrap_or("").to_owned();
        if element.starts_with('/') {
            open.pop();
        } else if let (true, Some(end)) = (element.contains(" op0="), element.find("/>")) {
            // Negative numbers are how the tool prints those from 2^63 on. Metadata holds other things, too.
            let number = |field: &str| field.split_once('=')?.1.trim().parse::<i128>().ok();
            let operands =
                element[..end].split(" op").skip(1).map(|field| Some(number(field)? as u64)).collect();
            let block = open.last().cloned().unwrap_or_default();
            records.extend(Option::map(operands, |operands| Dumped { block, code: name, operands }));
        } else if element.contains("NumWords=") {
            blocks.push(name.clone());
            open.push(name);
        }
    }
    (records, blocks)
}
