//! Captured output of a child, bounded: the beginning and the end are kept, the middle of a flood is not.
//!
//! The beginning holds a compiler's first error and the end its last words. Lines are also looked at as they
//! pass, so that an error text in the part that is thrown away is still seen.

use std::collections::VecDeque;

/// How many bytes of the beginning are kept, unless said otherwise.
pub const HEAD: usize = 256 << 10;
/// How many bytes of the end are kept.
pub const TAIL: usize = 64 << 10;
/// How much of one line is looked at; error texts stand at a line's beginning.
const LINE: usize = 256;

/// Bounded output of a child on one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    keep: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    omitted: u64,
    line: Vec<u8>,
    errors: Vec<String>,
}

impl Default for Captured {
    fn default() -> Self {
        Self::keeping(HEAD)
    }
}

impl Captured {
    /// Keeps this many bytes of the beginning, and [`TAIL`] of the end.
    pub fn keeping(keep: usize) -> Self {
        Self {
            keep,
            head: Vec::new(),
            tail: VecDeque::new(),
            omitted: 0,
            line: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.look(bytes);
        let room = self.keep - self.head.len();
        let (head, rest) = bytes.split_at(bytes.len().min(room));
        self.head.extend_from_slice(head);
        let skipped = rest.len().saturating_sub(TAIL);
        let over = (self.tail.len() + rest.len() - skipped).saturating_sub(TAIL);
        self.tail.drain(..over);
        self.tail.extend(&rest[skipped..]);
        self.omitted += (over + skipped) as u64;
    }

    /// Looks at lines for backend errors, without keeping more than the beginning of one.
    fn look(&mut self, bytes: &[u8]) {
        for (index, part) in bytes.split(|&byte| byte == b'\n').enumerate() {
            if index > 0 {
                self.end_line();
            }
            let room = LINE - self.line.len();
            self.line.extend_from_slice(&part[..part.len().min(room)]);
        }
    }

    fn end_line(&mut self) {
        if self.errors.len() < 8 && crate::backend_error::is_error(&self.line) {
            self.errors.push(String::from_utf8_lossy(&self.line).trim_end().to_owned());
        }
        self.line.clear();
    }

    /// The first lines that a compiler prints only when it has failed; empty when there are none.
    pub fn errors(&self) -> Vec<String> {
        let mut all = self.errors.clone();
        if all.len() < 8 && crate::backend_error::is_error(&self.line) {
            all.push(String::from_utf8_lossy(&self.line).trim_end().to_owned());
        }
        all
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    /// The bytes as they came; an omitted middle is left out.
    pub fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.head;
        bytes.extend(self.tail);
        bytes
    }

    /// The text; bytes that are not UTF-8 are replaced, an omitted middle is marked.
    pub fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.head).into_owned();
        if self.omitted > 0 {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&format!("[... {} bytes omitted ...]\n", self.omitted));
        }
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        text.push_str(&String::from_utf8_lossy(&tail));
        text
    }
}

impl From<&[u8]> for Captured {
    fn from(bytes: &[u8]) -> Self {
        let mut captured = Self::default();
        captured.push(bytes);
        captured
    }
}
