//! One line of the action log.
//!
//! `CHECK F NUMBER DIGEST PATH` defines a file's content under a number; `CHECK A DIGEST IN... > OUT...`
//! records an action by the digest of its command and the numbers of what it read and wrote. CHECK is the
//! beginning of the BLAKE3 hash of the rest of the line. Knows nothing of files or of graphs.

use std::borrow::Cow;
use std::io::Write;

use crate::digests::Digest;

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub enum LogLine<'a> {
    /// A path with a content.
    File {
        /// What other lines call it.
        number: u32,
        /// Its content.
        digest: Digest,
        /// Its path.
        path: Cow<'a, str>,
    },
    /// An action that finished.
    Action {
        /// The digest of its command.
        command: Digest,
        /// The numbers of its inputs.
        inputs: Vec<u32>,
        /// The numbers of its outputs.
        outputs: Vec<u32>,
    },
}

const CHECK: usize = 8;

/// Appends the line of a file's content to `to`.
pub fn write_file(to: &mut Vec<u8>, number: u32, digest: Digest, path: &str) {
    checked(to, |to| {
        put(to, format_args!("F {number} {digest} "));
        for &byte in path.as_bytes() {
            match byte {
                b'\n' => to.extend(b"\\n"),
                b'\\' => to.extend(b"\\\\"),
                byte => to.push(byte),
            }
        }
    });
}

/// Appends the line of an action to `to`.
pub fn write_action(to: &mut Vec<u8>, command: Digest, inputs: &[u32], outputs: &[u32]) {
    checked(to, |to| {
        put(to, format_args!("A {command}"));
        inputs.iter().for_each(|input| put(to, format_args!(" {input}")));
        to.extend(b" >");
        outputs.iter().for_each(|output| put(to, format_args!(" {output}")));
    });
}

fn put(to: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    to.write_fmt(text).expect("a Vec takes every write");
}

fn checked(to: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = to.len();
    to.extend([b' '; CHECK + 1]);
    write(to);
    let check = check(&to[start + CHECK + 1..]);
    to[start..start + CHECK].copy_from_slice(&check);
    to.push(b'\n');
}

fn check(content: &[u8]) -> [u8; CHECK] {
    let hash = blake3::hash(content);
    let mut text = [0; CHECK];
    for (pair, byte) in text.chunks_exact_mut(2).zip(hash.as_bytes()) {
        pair[0] = b"0123456789abcdef"[usize::from(byte >> 4)];
        pair[1] = b"0123456789abcdef"[usize::from(byte & 15)];
    }
    text
}

/// What a line says, without its newline; `None` if it is damaged.
pub fn read(line: &[u8]) -> Option<LogLine<'_>> {
    let (found, content) = line.split_first_chunk::<CHECK>()?;
    let content = content.strip_prefix(b" ")?;
    if *found != check(content) {
        return None;
    }
    let content = std::str::from_utf8(content).ok()?;
    if let Some(content) = content.strip_prefix("F ") {
        let (number, content) = content.split_once(' ')?;
        let (digest, path) = content.split_once(' ')?;
        return Some(LogLine::File {
            number: number.parse().ok()?,
            digest: Digest::parse(digest)?,
            path: unescape(path)?,
        });
    }
    let content = content.strip_prefix("A ")?;
    let (command, content) = content.split_at(content.find(' ')?);
    let (inputs, outputs) = content.split_once(" >")?;
    Some(LogLine::Action {
        command: Digest::parse(command)?,
        inputs: numbers(inputs)?,
        outputs: numbers(outputs)?,
    })
}

fn numbers(text: &str) -> Option<Vec<u32>> {
    let Some(text) = text.strip_prefix(' ') else {
        return text.is_empty().then(Vec::new);
    };
    text.split(' ').map(|number| number.parse().ok()).collect()
}

fn unescape(path: &str) -> Option<Cow<'_, str>> {
    if !path.contains('\\') {
        return Some(Cow::Borrowed(path));
    }
    let mut whole = String::with_capacity(path.len());
    let mut characters = path.chars();
    while let Some(character) = characters.next() {
        whole.push(match character {
            '\\' => match characters.next()? {
                'n' => '\n',
                '\\' => '\\',
                _ => return None,
            },
            character => character,
        });
    }
    Some(Cow::Owned(whole))
}
