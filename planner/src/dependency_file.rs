//! Dependency files of ld.lld: the rule for make that `--dependency-file` has it write, read and written.
//!
//! The form is that of `writeDependencyFile` in `lld/ELF/Driver.cpp`: the output, a colon and each file on a line of
//! its own, then an empty rule for every file. A space is escaped by a backslash, as are the backslashes before it,
//! `#` by a backslash and `$` by itself. Pure. lld writes a slash for a backslash in a name, so such a name is lost.

use crate::words::Word;

/// Files that a link read, for make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DependencyFile {
    /// The output, which lld does not escape.
    pub target: Word,
    /// The files, in the order in which the linker opened them.
    pub files: Vec<Word>,
}

impl DependencyFile {
    /// Reads one; `None` for a text of another form, such as one with a newline in a name.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let end = text.windows(2).position(|part| part == b":\n" || part == b": ")?;
        let (target, rest) = (text[..end].to_vec(), &text[end + 1..]);
        let mut lines = rest.split(|&byte| byte == b'\n');
        let mut continued = lines.next()? == b" \\";
        let mut files = Vec::new();
        while continued {
            let line = lines.next()?.strip_prefix(b" ")?;
            let whole = line.strip_suffix(b" \\");
            files.push(unescaped(whole.unwrap_or(line)));
            continued = whole.is_some();
        }
        Some(Self { target, files })
    }

    /// The text that lld would write.
    pub fn to_bytes(&self) -> Word {
        let mut text = self.target.clone();
        text.push(b':');
        for file in &self.files {
            text.extend(b" \\\n ");
            escape(file, &mut text);
        }
        text.push(b'\n');
        for file in &self.files {
            text.push(b'\n');
            escape(file, &mut text);
            text.extend(b":\n");
        }
        text
    }
}

/// The files that the first rule of a dependency file of a compiler names: many on a line, escaped as by lld.
pub fn rule_files(text: &[u8]) -> Vec<Word> {
    let Some(colon) = text.iter().position(|&byte| byte == b':') else { return Vec::new() };
    let mut files = Vec::new();
    let mut name = Word::new();
    let mut slashes = 0;
    for &byte in &text[colon + 1..] {
        let escaped = slashes % 2 == 1;
        let continued = byte == b'\n' && slashes == 1 && name.len() == 1;
        if continued || (byte == b' ' && !escaped) || (byte == b'\n') {
            if !name.is_empty() && !continued {
                files.push(unescaped(&name));
            }
            name.clear();
            if byte == b'\n' && !continued {
                break;
            }
        } else {
            name.push(byte);
        }
        slashes = if byte == b'\\' { slashes + 1 } else { 0 };
    }
    if !name.is_empty() {
        files.push(unescaped(&name));
    }
    files
}

fn escape(name: &[u8], text: &mut Word) {
    for (at, &byte) in name.iter().enumerate() {
        match byte {
            b'#' => text.push(b'\\'),
            b'$' => text.push(b'$'),
            b' ' => {
                let before = name[..at].iter().rev().take_while(|&&byte| byte == b'\\').count();
                text.extend(std::iter::repeat_n(b'\\', before + 1));
            }
            _ => {}
        }
        text.push(byte);
    }
}

fn unescaped(name: &[u8]) -> Word {
    let mut word = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&byte, after)) = rest.split_first() {
        let slashes = rest.iter().take_while(|&&byte| byte == b'\\').count();
        rest = after;
        match (byte, rest.first()) {
            (b'$', Some(b'$')) => rest = &rest[1..],
            (b'\\', _) => {
                let escaped = match name.len() - after.len() - 1 + slashes {
                    end if name.get(end) == Some(&b' ') => slashes / 2,
                    end if name.get(end) == Some(&b'#') => slashes - 1,
                    _ => slashes,
                };
                word.extend(std::iter::repeat_n(b'\\', escaped));
                rest = &rest[slashes - 1..];
                continue;
            }
            _ => {}
        }
        word.push(byte);
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_come_back(files in prop::collection::vec("[a-z #$\\\\/]{1,12}", 0..6)) {
            // A backslash at the end of a line continues it.
            let files: Vec<Word> = files
                .into_iter()
                .map(|name| format!("{name}.o").into_bytes())
                .collect();
            let written = DependencyFile { target: b"out".to_vec(), files };
            prop_assert_eq!(rule_files(&written.to_bytes()), written.files.clone());
            prop_assert_eq!(DependencyFile::parse(&written.to_bytes()), Some(written));
        }

        #[test]
        fn any_bytes_are_read_or_not(text in prop::collection::vec(any::<u8>(), 0..200)) {
            DependencyFile::parse(&text);
        }
    }
}
