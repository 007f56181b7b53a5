//! File names that stay where they are put: any member name or path becomes plain components under a directory.
//!
//! Knows nothing of files. Percent-encoding is that of RFC 3986; the `stem_<n>.ext` rule for members of one name
//! is that of Buck2's `dist_lto` tools, where it collides with nothing.

use std::collections::{HashMap, HashSet};

/// The longest component that is kept as it is, in bytes; file systems stop at 255, and suffixes are added.
const LONGEST: usize = 200;
/// How much of a longer one stays readable.
const KEPT: usize = 150;
/// How names of distlto's own files begin, temporaries and records.
const RESERVED: &str = ".distlto-";

/// Maps any path to a relative UTF-8 path of normal components, one for one: equal results mean equal paths
/// (up to collisions of 128 bits of blake3 for components over 200 bytes).
///
/// Plain components stay as they are. `%`, `;` (which linkers split options at), control characters, all that is not
/// ASCII (which LLVM writes wrongly into index shards), backslashes, and components that are empty, `.` or `..` are percent-encoded; a leading `/` is
/// the component `%2F`; no component begins like distlto's own files. A path that is a file on one system never
/// becomes a directory of another file's path there, since components map one for one; `a` beside `a/b`, which
/// no file system can hold, stay a file and a directory of one name.
pub fn escape_path(path: &[u8]) -> String {
    let (absolute, rest) = match path.strip_prefix(b"/") {
        Some(rest) => (true, rest),
        None => (false, path),
    };
    let mut out = String::with_capacity(path.len() + 4);
    if absolute {
        out.push_str("%2F");
    }
    for component in rest.split(|&byte| byte == b'/') {
        if !out.is_empty() {
            out.push('/');
        }
        out.push_str(&escape_component(component, &[]));
    }
    out
}

/// One component, `/` and the characters in `also` encoded: a file name that is safe anywhere.
fn escape_component(component: &[u8], also: &[char]) -> String {
    match component {
        // Lower case, so that it is not the encoding of any byte.
        b"" => return "%empty".to_owned(),
        b"." => return "%2E".to_owned(),
        b".." => return "%2E%2E".to_owned(),
        _ => {}
    }
    let mut out = encoded(component, |c| {
        matches!(c, '%' | ';' | '\\' | '/') || c.is_control() || !c.is_ascii() || also.contains(&c)
    });
    if out.to_ascii_lowercase().starts_with(RESERVED) {
        out.replace_range(..1, "%2E");
    }
    if out.len() > LONGEST { shorten(&out, component) } else { out }
}

/// A text with the bytes of some characters encoded, and those that are no UTF-8.
fn encoded(text: &[u8], is_encoded: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_encoded(c) {
                c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| push_encoded(&mut out, byte));
            } else {
                out.push(c);
            }
        }
        chunk.invalid().iter().for_each(|&byte| push_encoded(&mut out, byte));
    }
    out
}

fn push_encoded(out: &mut String, byte: u8) {
    *out += &format!("%{byte:02X}");
}

/// A readable beginning, `%~`, which no encoding contains, a hash of the whole, and the suffix, by which compilers
/// recognise the kind of a file.
fn shorten(encoded: &str, component: &[u8]) -> String {
    let mut end = KEPT;
    // A cut inside an encoded byte would leave `%` or `%A`: go back before it.
    while !encoded.is_char_boundary(end) || encoded[..end].bytes().rev().take(2).any(|byte| byte == b'%') {
        end -= 1;
    }
    let hash = blake3::hash(component).to_hex();
    let suffix = encoded.rfind('.').map_or("", |dot| &encoded[dot..]);
    let plain = suffix.len() <= 16 && suffix.bytes().skip(1).all(|byte| byte.is_ascii_alphanumeric());
    format!("{}%~{}{}", &encoded[..end], &hash[..32], if plain { suffix } else { "" })
}

/// The file name of each member, given their names in archive order (of nested archives, the innermost name).
///
/// A name's directories are dropped, as `ar x` does. A name that does not end in `.o` gets that end. Blanks and quotes are
/// encoded, since Buck2's rules write names into argument files as they are. The second member of one name is called
/// `stem_1.ext`, the third `stem_2.ext`; a number that is another member's own name is passed over. Names that differ only
/// by case count as one, so the files are distinct on case-insensitive file systems too. The result depends on the names
/// and their order alone.
pub fn member_file_names<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    number(names.into_iter().map(|name| escape_component(base_name(name), &[' ', '"', '\''])).collect())
}

/// The end of objects' names. A compiler driver takes the kind of a linker input from the end of its name: it would
/// compile `m.bc` and link the result, and assemble `m.s`.
const OBJECT: &str = ".o";

fn number(own: Vec<String>) -> Vec<String> {
    let is_object: Vec<bool> = own.iter().map(|name| name.ends_with(OBJECT)).collect();
    let own: Vec<String> = own.into_iter().map(as_object).collect();
    // Who keeps a name: the first that has it, before all who have got its end only here.
    let mut owner: HashMap<String, usize> = HashMap::new();
    for (at, name) in own.iter().enumerate() {
        let owner = owner.entry(fold(name)).or_insert(at);
        if is_object[at] && !is_object[*owner] {
            *owner = at;
        }
    }
    let mut taken: HashSet<String> = owner.keys().cloned().collect();
    let mut count: HashMap<String, u64> = HashMap::new();
    own.into_iter()
        .enumerate()
        .map(|(at, name)| {
            let folded = fold(&name);
            if owner.get(&folded) == Some(&at) {
                return name;
            }
            let count = count.entry(folded).or_default();
            let (stem, extension) = split_extension(&name);
            loop {
                *count += 1;
                let candidate = as_object(format!("{stem}_{count}{extension}"));
                if taken.insert(fold(&candidate)) {
                    return candidate;
                }
            }
        })
        .collect()
}

fn as_object(mut name: String) -> String {
    if !name.ends_with(OBJECT) {
        name.push_str(OBJECT);
    }
    name
}

/// The order in which Buck2's `dist_lto` tools list members: the first one of each name in archive order, then the
/// others, those of one name together.
pub fn duplicates_last<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<usize> {
    let mut first = HashMap::new();
    let mut keys: Vec<(bool, usize, usize)> = names
        .into_iter()
        .enumerate()
        .map(|(at, name)| {
            let first = *first.entry(name).or_insert(at);
            (first != at, first, at)
        })
        .collect();
    keys.sort_unstable();
    keys.into_iter().map(|(_, _, at)| at).collect()
}

/// Returns the last component of a name, without separators at its end; Windows' separator counts too.
fn base_name(name: &[u8]) -> &[u8] {
    let is_separator = |byte: &u8| matches!(byte, b'/' | b'\\');
    let trimmed = name.len() - name.iter().rev().take_while(|byte| is_separator(byte)).count();
    let start = name[..trimmed].iter().rposition(is_separator).map_or(0, |at| at + 1);
    &name[start..trimmed]
}

/// The form in which two names of one case-insensitive file are equal.
fn fold(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    name.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

fn split_extension(name: &str) -> (&str, &str) {
    match name.rfind('.') {
        Some(dot) if name[..dot].bytes().any(|byte| byte != b'.') => name.split_at(dot),
        _ => (name, ""),
    }
}

/// A name for people: as it is where it is UTF-8 without control characters, else with those bytes encoded.
pub(crate) fn printable(name: &[u8]) -> String {
    encoded(name, |c| c.is_control() || c == '%')
}
