//! The linker's symbol resolution, which it writes with `--save-temps=resolution`.
//!
//! Format: `writeToResolutionFile` in llvm/lib/LTO/LTO.cpp (LLVM 15 to 23): a line with a module's name, then a line
//! `-r=MODULE,SYMBOL,FLAGS` for each symbol that it defines or refers to. Flag `p` means that the module's definition
//! prevails, `l` that the definition is local to the link, `x` that native code uses the symbol. Names are not
//! escaped. Does not depend on shards.

use std::collections::HashMap;

/// The prefix of a symbol's line.
const SYMBOL: &[u8] = b"-r=";

/// The symbols of all modules of a link.
#[derive(Debug, Default)]
pub struct Resolutions<'t> {
    /// The modules in link order.
    names: Vec<&'t [u8]>,
    /// The lines of each module's symbols.
    modules: HashMap<&'t [u8], &'t [u8]>,
    /// The beginning of symbols that is no part of a name in a module.
    prefix: &'static str,
}

/// The resolution of one symbol in one module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SymbolResolution<'t> {
    /// As the module names it.
    pub symbol: &'t [u8],
    /// Whether this module's definition prevails.
    pub prevails: bool,
    /// Whether the definition, in any module, is local to the link, so that nothing replaces it at run time.
    pub is_final: bool,
    /// Whether native code uses the symbol.
    pub is_native: bool,
}

impl<'t> Resolutions<'t> {
    /// Reads the file of a link in whose native objects symbols begin with this.
    pub fn read(text: &'t [u8], prefix: &'static str) -> Self {
        let (mut names, mut modules) = (Vec::new(), HashMap::new());
        let mut rest = text;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (name, after) = (&rest[..end], &rest[end + 1..]);
            let head = [SYMBOL, name, b","].concat();
            let mut lines = after;
            while lines.starts_with(&head) {
                lines = memchr::memchr(b'\n', lines).map_or(&[][..], |end| &lines[end + 1..]);
            }
            names.push(name);
            modules.insert(name, &after[..after.len() - lines.len()]);
            rest = lines;
        }
        Self { names, modules, prefix }
    }

    /// The modules in link order.
    pub fn modules(&self) -> impl Iterator<Item = &'t [u8]> {
        self.names.iter().copied()
    }

    /// The symbols of a module; none of one that the file does not name.
    pub fn of(&self, module: &[u8]) -> impl Iterator<Item = SymbolResolution<'t>> + use<'t> {
        let (lines, head) = match self.modules.get_key_value(module) {
            Some((name, lines)) => (*lines, SYMBOL.len() + name.len() + 1),
            None => (&[][..], 0),
        };
        let prefix = self.prefix.as_bytes();
        lines.split(|&byte| byte == b'\n').filter_map(move |line| {
            let (symbol, flags) = split_last(line.get(head..)?)?;
            let symbol = symbol.strip_prefix(prefix).unwrap_or(symbol);
            let [prevails, is_final, is_native] = [b'p', b'l', b'x'].map(|flag| flags.contains(&flag));
            Some(SymbolResolution { symbol, prevails, is_final, is_native })
        })
    }
}

/// Returns the parts before and after the last comma.
fn split_last(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memrchr(b',', line)?;
    Some((&line[..at], &line[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As LLVM 22 writes it.
    const FILE: &[u8] = b"a,b.o\n-r=a,b.o,main,plx\n-r=a,b.o,w,l\n-r=a,b.o,puts,\nlib.a(c.o at 78)\n-r=lib.a(c.o at 78),w,pl\n";

    #[test]
    fn a_file_that_was_cut_is_read_as_far_as_it_goes() {
        for end in 0..FILE.len() {
            let read = Resolutions::read(&FILE[..end], "");
            assert!(read.modules().map(|module| read.of(module).count()).sum::<usize>() <= 4);
        }
    }
}
