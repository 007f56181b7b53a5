//! Bitcode that is of a later LLVM than the compiler which is to read it, as that compiler says so.
//!
//! LLVM ends its readers' messages with both versions, as in `error: Unknown attribute kind (86) (Producer: 'LLVM22.1.8'
//! Reader: 'LLVM 15.0.6')` (`llvm/lib/Bitcode/Reader/BitcodeReader.cpp`), save for summaries, which have versions of their own.

/// Returns the versions of the bitcode and of the compiler if a failed compiler says that the bitcode is later.
pub(super) fn too_old(lines: &[String]) -> Option<(String, String)> {
    lines.iter().find_map(|line| llvm(line)).or_else(|| lines.iter().find_map(|line| summaries(line)))
}

fn llvm(line: &str) -> Option<(String, String)> {
    let (_, rest) = line.rsplit_once("(Producer: '")?;
    let (producer, rest) = rest.split_once("' Reader: '")?;
    let (reader, _) = rest.split_once('\'')?;
    let [producer, reader] = [producer, reader].map(|text| text.strip_prefix("LLVM").unwrap_or(text).trim());
    let major = |version: &str| version.split('.').next()?.parse::<u32>().ok();
    (major(producer)? > major(reader)?).then(|| (format!("of LLVM {producer}"), format!("of LLVM {reader}")))
}

/// `Invalid summary version 12. Version should be in the range [1-10].`
fn summaries(line: &str) -> Option<(String, String)> {
    let (_, rest) = line.split_once("Invalid summary version ")?;
    let (found, rest) = rest.split_once(". Version should be in the range [")?;
    let (known, _) = rest.split_once('-')?.1.split_once(']')?;
    let number = |text: &str| text.parse::<u32>().ok();
    let texts =
        || (format!("of an LLVM with summaries of version {found}"), format!("of one with version {known}"));
    (number(found)? > number(known)?).then(texts)
}

#[cfg(test)]
mod tests {
    use super::too_old;

    #[test]
    fn what_clang_says() {
        let versions =
            |line: &str| too_old(&[line.to_owned()]).map(|(producer, reader)| format!("{producer} {reader}"));
        let found = |text: &str| Some(text.to_owned());
        for (line, expected) in [
            (
                "error: Unknown attribute kind (86) (Producer: 'LLVM22.1.8' Reader: 'LLVM 15.0.6')",
                found("of LLVM 22.1.8 of LLVM 15.0.6"),
            ),
            (
                "error: Invalid attribute group entry (Producer: 'LLVM22.1.8' Reader: 'LLVM 16.0.6')",
                found("of LLVM 22.1.8 of LLVM 16.0.6"),
            ),
            (
                "Error loading index file 'x': Invalid summary version 12. Version should be in the range [1-10].",
                found("of an LLVM with summaries of version 12 of one with version 10"),
            ),
            ("Invalid summary version 0. Version should be in the range [1-10].", None),
            ("error: Invalid record (Producer: 'LLVM9.0.1' Reader: 'LLVM 16.0.6')", None),
            ("error: Invalid record (Producer: 'LLVM16.0.1' Reader: 'LLVM 16.0.6')", None),
            ("error: Invalid record (Producer: 'APPLE_1_1200.0.32_0' Reader: 'LLVM 16.0.6')", None),
            ("error: Invalid record", None),
        ] {
            assert_eq!(versions(line), expected, "{line}");
        }
    }
}
