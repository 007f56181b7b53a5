//! The argument file of the final link: the loaded files in order, native objects in the modules' places, and the
//! flags that stand around them.
//!
//! Pure. The linker's listing names files without flags, so each file gets those of the entry of the meta file that
//! lists it, when the entry changes. The order is the stock planner's; `docs/design/buck2-files.md` describes it.

use std::borrow::Cow;
use std::collections::HashMap;

use super::listing::{Listing, LoadedLine};
use super::meta::{Linkable, Meta, MetaEntry, Opaque};
use super::modules::{LinkedModules, SlotOrigin};
use crate::response;

/// The inputs of the list.
#[derive(Clone, Copy)]
pub struct FinalList<'a> {
    /// The meta file.
    pub meta: &'a Meta<'a>,
    /// The modules of the meta file.
    pub modules: &'a LinkedModules<'a>,
    /// The linker's listings of indexed and loaded files.
    pub listing: &'a Listing<'a>,
    /// The lines of the link's argument file with search paths.
    pub search_paths: &'a [&'a [u8]],
    /// Whether the final link's command itself brings a file that the meta file does not list.
    pub brought: &'a dyn Fn(&[u8]) -> bool,
}

impl FinalList<'_> {
    /// The text, one argument a line.
    pub fn text(&self) -> Vec<u8> {
        let entries = &self.meta.entries;
        let mut writer =
            ListWriter { out: self.search_paths.join(&b'\n'), entries, written: vec![false; entries.len()] };
        writer.out.push(b'\n');
        let leading = entries.iter().take_while(|entry| entry.linkables.is_empty()).count();
        (0..leading).for_each(|entry| writer.all_flags(entry));
        let opaque = self.opaque();
        let mut last = None;
        for loaded in &self.listing.loaded {
            let known = match loaded.slot {
                Some(slot) => Some(self.modules.slots[slot].entry),
                None => opaque.get(loaded.line).map(|(entry, _)| *entry),
            };
            if known.is_none() && (self.brought)(loaded.line) {
                continue;
            }
            if let Some(entry) = known {
                writer.written[entry] = true;
            }
            if let Some(left) = last.filter(|&left| Some(left) != known) {
                writer.flags(&entries[left].post_flags);
            }
            if let Some(entry) = known.filter(|_| last != known) {
                writer.flags_between(entry);
                writer.flags(&entries[entry].pre_flags);
            }
            last = known;
            match opaque.get(loaded.line).filter(|_| loaded.slot.is_none()) {
                Some((_, opaque)) => writer.flags(&opaque.words),
                None => writer.file(&self.file(loaded)),
            }
        }
        if let Some(left) = last {
            writer.flags(&entries[left].post_flags);
        }
        for entry in 0..entries.len() {
            if !writer.written[entry] {
                writer.all_flags(entry);
            }
        }
        writer.out
    }

    /// Returns the path in the final link for a loaded file.
    fn file<'f>(&'f self, loaded: &LoadedLine<'f>) -> Cow<'f, [u8]> {
        let Some(slot) = loaded.slot else { return Cow::Borrowed(loaded.line) };
        let listed = &self.modules.slots[slot];
        match listed.origin {
            SlotOrigin::Object(object) if self.listing.indexed[slot] => bytes(object.native()),
            SlotOrigin::Object(_) => Cow::Borrowed(listed.path.as_bytes()),
            SlotOrigin::Member(archive) => {
                bytes(Cow::Owned(self.modules.member_object(slot, self.modules.archives[archive].archive)))
            }
        }
    }

    /// Returns the linkables that are linked unchanged, by file. Of several with one file the last counts, unless an
    /// earlier one takes the whole archive: its members would be lost.
    fn opaque(&self) -> HashMap<&[u8], (usize, &Opaque<'_>)> {
        let mut found: HashMap<&[u8], (usize, &Opaque<'_>)> = HashMap::new();
        for (entry, listed) in self.meta.entries.iter().enumerate() {
            for linkable in &listed.linkables {
                let Linkable::Opaque(opaque) = linkable else { continue };
                let place = found.entry(opaque.file.as_bytes()).or_insert((entry, opaque));
                if takes_whole(opaque) || !takes_whole(place.1) {
                    *place = (entry, opaque);
                }
            }
        }
        found
    }
}

/// Whether the words take an archive's members whether they are needed or not.
fn takes_whole(opaque: &Opaque<'_>) -> bool {
    opaque.words.iter().any(|word| word.contains("-whole-archive") || word.contains("-force_load"))
}

fn bytes(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

struct ListWriter<'a> {
    out: Vec<u8>,
    entries: &'a [MetaEntry<'a>],
    /// For each entry, whether its flags are written.
    written: Vec<bool>,
}

impl ListWriter<'_> {
    /// Flags stand in the rule's own argument file as they are here, so they are in its quoting already.
    fn flags(&mut self, flags: &[Cow<'_, str>]) {
        for flag in flags {
            self.out.extend_from_slice(flag.as_bytes());
            self.out.push(b'\n');
        }
    }

    /// A file's name is no argument yet.
    fn file(&mut self, name: &[u8]) {
        let odd = |&byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'\\');
        if name.iter().any(odd) {
            self.out.extend(response::quote(name));
        } else {
            self.out.extend_from_slice(name);
        }
        self.out.push(b'\n');
    }

    fn all_flags(&mut self, entry: usize) {
        let entries = self.entries;
        self.flags(&entries[entry].pre_flags);
        self.flags(&entries[entry].post_flags);
        self.written[entry] = true;
    }

    /// Flags of the entries without linkables just before one, unless they are written.
    fn flags_between(&mut self, entry: usize) {
        let is_flags = |&before: &usize| !self.written[before] && self.entries[before].linkables.is_empty();
        let first = (0..entry).rev().take_while(is_flags).last().unwrap_or(entry);
        (first..entry).for_each(|between| self.all_flags(between));
    }
}
