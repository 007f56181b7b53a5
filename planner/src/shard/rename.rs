//! A shard with other module paths: for modules that are moved, or have names with a process number.
//!
//! The module path table is one block of 32-bit words, so a new one is spliced into its place and the lengths of the
//! blocks around it are corrected; all else stays as the thin link wrote it. The format is that of LLVM's document
//! "LLVM Bitcode File Format".

use std::cell::Cell;
use std::ops::Range;

use super::read::{MODULE_ENTRY, MODULE_HASH, REMEDY, Shard, read};
use crate::bitcode::writer::Writer;
use crate::bitcode::{self, BitcodeError, Item, ModuleHash, SubBlock, Walk};
use crate::module::{hash, number};

/// The shard with `path(old)` in place of every module path `old` for which there is one.
///
/// Fails where [`read`] does, and on a path table with unknown records. The result is read back and compared with the
/// shard's content.
pub fn rename(bytes: &[u8], path: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Result<Vec<u8>, BitcodeError> {
    let mut expected = read(bytes)?;
    let mut renamed = false;
    for module in &mut expected.modules {
        if let Some(new) = path(&module.path).filter(|new| *new != module.path) {
            module.path = new;
            renamed = true;
        }
    }
    if !renamed {
        return Ok(bytes.to_vec());
    }
    let found = splice(bytes, path, |hash| hash).map_err(|error| BitcodeError { remedy: REMEDY, ..error })?;
    check(&found, &expected)?;
    Ok(found)
}

/// The shard with these module paths and hashes, one for each module that it has and in its order.
///
/// LLVM writes a path that is not ASCII so that neither it nor the hash behind it can be had back, and different paths
/// may look the same then.
pub fn rename_all(bytes: &[u8], modules: &[(&[u8], Option<ModuleHash>)]) -> Result<Vec<u8>, BitcodeError> {
    let mut expected = read(bytes)?;
    for (module, (path, hash)) in expected.modules.iter_mut().zip(modules) {
        module.path = path.to_vec();
        module.hash = hash.or(module.hash);
    }
    let (mut next, at) = (modules.iter(), Cell::new(None));
    let path = |_: &[u8]| {
        at.set(next.next());
        at.get().map(|(path, _)| path.to_vec())
    };
    let found = splice(bytes, path, |old| at.get().and_then(|(_, hash)| *hash).unwrap_or(old));
    let found = found.map_err(|error| BitcodeError { remedy: REMEDY, ..error })?;
    check(&found, &expected)?;
    Ok(found)
}

fn check(found: &[u8], expected: &Shard) -> Result<(), BitcodeError> {
    match read(found) {
        Ok(read) if read == *expected => Ok(()),
        // No known linker writes a shard that leads here.
        _ => Err(BitcodeError {
            bit: 0,
            found: "a shard that cannot be rewritten".into(),
            expected: "one whose paths can be replaced",
            remedy: REMEDY,
        }),
    }
}

/// The block of the index and, in it, the table of paths.
pub(super) fn find_table(bytes: &[u8]) -> Result<(Walk, SubBlock<'_>, SubBlock<'_>), BitcodeError> {
    let mut walk = Walk::default();
    let mut top = bitcode::open(bytes)?;
    let no_table = |top: &bitcode::Block<'_>| top.error("no module path table", "an index shard");
    let index = loop {
        match top.next(&mut walk)? {
            Item::Block(block) if block.id == bitcode::MODULE_BLOCK => break block,
            Item::Block(_) => {}
            _ => return Err(no_table(&top)),
        }
    };
    let mut inside = index.open(&walk);
    loop {
        match inside.next(&mut walk)? {
            Item::Block(block) if block.id == bitcode::MODULE_STRTAB_BLOCK => {
                return Ok((walk, index, block));
            }
            Item::End => return Err(no_table(&top)),
            _ => {}
        }
    }
}

/// The block of summaries of the index.
pub(super) fn find_summaries<'a>(
    index: SubBlock<'a>,
    walk: &mut Walk,
) -> Result<Option<SubBlock<'a>>, BitcodeError> {
    let mut inside = index.open(walk);
    loop {
        match inside.next(walk)? {
            Item::Block(block) if block.id == bitcode::GLOBALVAL_SUMMARY_BLOCK => return Ok(Some(block)),
            Item::End => return Ok(None),
            _ => {}
        }
    }
}

pub(super) fn splice(
    bytes: &[u8],
    path: impl FnMut(&[u8]) -> Option<Vec<u8>>,
    rehash: impl FnMut(ModuleHash) -> ModuleHash,
) -> Result<Vec<u8>, BitcodeError> {
    let (walk, index, table) = find_table(bytes)?;
    let new = new_table(table, &walk, path, rehash)?;
    replace(bytes, index.body(), &[(table.body(), &new)])
}

/// The shard with other bodies in the place of some blocks of its index, in their order.
pub(super) fn replace(
    bytes: &[u8],
    index: Range<usize>,
    bodies: &[(Range<usize>, &[u8])],
) -> Result<Vec<u8>, BitcodeError> {
    let words = |bytes: usize| {
        u32::try_from(bytes / 4).map(u32::to_le_bytes).map_err(|_| BitcodeError {
            bit: 0,
            found: "too long a block".into(),
            expected: "4 GiB words",
            remedy: REMEDY,
        })
    };
    let length = bodies.iter().fold(index.len(), |length, (old, new)| length - old.len() + new.len());
    // The length of a block is the word before its body.
    let mut out = Vec::with_capacity(bytes.len() - index.len() + length);
    out.extend(&bytes[..index.start - 4]);
    out.extend(words(length)?);
    let mut from = index.start;
    for (old, new) in bodies {
        out.extend(&bytes[from..old.start - 4]);
        out.extend(words(new.len())?);
        out.extend(*new);
        from = old.end;
    }
    out.extend(&bytes[from..]);
    Ok(out)
}

/// The body of a path table block with other paths and hashes; a path is asked for before its hash.
pub(super) fn new_table(
    table: SubBlock<'_>,
    walk: &Walk,
    mut path: impl FnMut(&[u8]) -> Option<Vec<u8>>,
    mut rehash: impl FnMut(ModuleHash) -> ModuleHash,
) -> Result<Vec<u8>, BitcodeError> {
    let mut out = Writer::new(table.width());
    let mut walk = walk.clone();
    let mut block = table.open(&walk);
    loop {
        match block.next(&mut walk)? {
            Item::Record(MODULE_ENTRY) => {
                let number = number(&mut block)?;
                let old = block.bytes()?;
                let new = path(&old).unwrap_or(old);
                let operands = [number].into_iter().chain(new.into_iter().map(u64::from));
                out.record(MODULE_ENTRY, &operands.collect::<Vec<_>>());
            }
            Item::Record(MODULE_HASH) => {
                let words = rehash(hash(&mut block)?);
                out.record(MODULE_HASH, &words.map(u64::from));
            }
            Item::End => return Ok(out.end()),
            Item::Record(_) | Item::Block(_) => {
                return Err(block.error("a record that is not known", "a module's path or hash"));
            }
        }
    }
}
