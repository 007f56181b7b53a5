//! Blocks and records: walks one block, hands out its records and its unopened inner blocks.
//!
//! An inner block is passed over by its length word unless it is opened, and a record's operands are passed
//! over unless they are asked for. There is no recursion: who wants depth opens a block and walks it.
//! The structure is that of LLVM's document "LLVM Bitcode File Format".

use std::collections::HashMap;
use std::rc::Rc;

use super::abbreviation::{Abbreviation, Encoding, Tail};
use super::cursor::{Cursor, MAX_WIDTH};
use super::error::BitcodeError;

/// The most abbreviations of one kind of block. LLVM's writer defines fewer than thirty.
const MAX_ABBREVIATIONS: usize = 256;

const END_BLOCK: u64 = 0;
const ENTER_SUBBLOCK: u64 = 1;
const DEFINE_ABBREV: u64 = 2;
const UNABBREV_RECORD: u64 = 3;
const FIRST_ABBREVIATION: u64 = 4;

const BLOCKINFO: u64 = 0;
const SETBID: u64 = 1;

/// State that the whole walk of a file shares: the abbreviations that a BLOCKINFO block gives to other blocks.
#[derive(Debug, Clone, Default)]
pub struct Walk {
    abbreviations: HashMap<u64, Vec<Rc<Abbreviation>>>,
}

/// The next thing in a block.
#[derive(Debug)]
pub enum Item<'a> {
    /// An inner block, passed over unless it is opened.
    Block(SubBlock<'a>),
    /// A record's code. Its operands can be read until the next item is asked for.
    Record(u64),
    /// The block's end.
    End,
}

/// A block that was not opened.
#[derive(Debug, Clone, Copy)]
pub struct SubBlock<'a> {
    /// The block's number.
    pub id: u64,
    width: u32,
    cursor: Cursor<'a>,
}

impl<'a> SubBlock<'a> {
    /// Opens the block, with the abbreviations that its kind has so far.
    pub fn open(self, walk: &Walk) -> Block<'a> {
        let abbreviations = walk.abbreviations.get(&self.id).cloned().unwrap_or_default();
        Block {
            cursor: self.cursor,
            width: self.width,
            top: false,
            abbreviations,
            start: 0,
            pending: Pending::Nothing,
        }
    }

    /// Where the block's body lies, in bytes from the beginning of all bytes. The four bytes before it are its length
    /// in words of 32 bits.
    pub fn body(&self) -> std::ops::Range<usize> {
        // The cursor lies within the bytes, which are in memory, and at a word's boundary.
        let start = (self.cursor.bit() / 8) as usize;
        start..start + (self.cursor.left() / 8) as usize
    }

    /// How many bits the numbers of abbreviations have in it.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// An error at the block's beginning.
    pub fn error(&self, found: &'static str, expected: &'static str) -> BitcodeError {
        self.cursor.error(found, expected)
    }
}

/// One block on the way to its end.
#[derive(Debug)]
pub struct Block<'a> {
    cursor: Cursor<'a>,
    width: u32,
    top: bool,
    abbreviations: Vec<Rc<Abbreviation>>,
    /// Where the latest record begins.
    start: u64,
    pending: Pending,
}

/// Operands of the latest record that were not read.
#[derive(Debug)]
enum Pending {
    Nothing,
    Plain { left: u64 },
    Abbreviated { abbreviation: Rc<Abbreviation>, next: usize },
    Array { element: Encoding, left: u64 },
}

impl<'a> Block<'a> {
    /// The top level of a stream, which holds blocks until the bytes end.
    pub fn top(cursor: Cursor<'a>) -> Self {
        Self { cursor, width: 2, top: true, abbreviations: Vec::new(), start: 0, pending: Pending::Nothing }
    }

    /// The bit that was reached, from the beginning of all bytes.
    pub fn bit(&self) -> u64 {
        self.cursor.bit()
    }

    /// The bit where the latest record begins, from the beginning of all bytes.
    pub fn record_start(&self) -> u64 {
        self.start
    }

    /// The byte that was reached, from the beginning of all bytes.
    pub fn place(&self) -> usize {
        (self.cursor.bit() / 8) as usize
    }

    /// An error at the place that was reached.
    pub fn error(
        &self,
        found: impl Into<std::borrow::Cow<'static, str>>,
        expected: &'static str,
    ) -> BitcodeError {
        self.cursor.error(found, expected)
    }

    /// The next record, inner block, or the end. BLOCKINFO blocks are taken into `walk` on the way.
    pub fn next(&mut self, walk: &mut Walk) -> Result<Item<'a>, BitcodeError> {
        self.finish()?;
        loop {
            // As LLVM does: a few bytes after the last block are padding.
            if self.top && self.cursor.left() < 64 {
                return Ok(Item::End);
            }
            let at = self.cursor;
            self.start = at.bit();
            match self.cursor.fixed(self.width)? {
                END_BLOCK if self.top => return Err(at.error("the end of no block", "a block")),
                END_BLOCK => return Ok(Item::End),
                ENTER_SUBBLOCK => {
                    let block = self.enter(at)?;
                    if block.id != BLOCKINFO {
                        return Ok(Item::Block(block));
                    }
                    read_block_info(block, walk)?;
                }
                _ if self.top => return Err(at.error("something else", "a block at the top level")),
                DEFINE_ABBREV => define(&mut self.cursor, &mut self.abbreviations)?,
                UNABBREV_RECORD => {
                    let code = self.cursor.vbr(6)?;
                    let left = self.cursor.vbr(6)?;
                    self.check_count(left, 6)?;
                    self.pending = Pending::Plain { left };
                    return Ok(Item::Record(code));
                }
                id => {
                    let found = usize::try_from(id - FIRST_ABBREVIATION)
                        .ok()
                        .and_then(|index| self.abbreviations.get(index))
                        .ok_or_else(|| {
                            at.error(format!("abbreviation {id}, which is not defined"), "a defined one")
                        })?;
                    let abbreviation = Rc::clone(found);
                    let code = abbreviation.code.read(&mut self.cursor)?;
                    self.pending = Pending::Abbreviated { abbreviation, next: 0 };
                    return Ok(Item::Record(code));
                }
            }
        }
    }

    /// The first operands of the latest record, into `found`; fewer if the record has fewer.
    pub fn operands(&mut self, found: &mut [u64]) -> Result<usize, BitcodeError> {
        for (index, place) in found.iter_mut().enumerate() {
            match self.value()? {
                Some(value) => *place = value,
                None => return Ok(index),
            }
        }
        Ok(found.len())
    }

    /// The operands of the latest record that were not read so far, as bytes.
    pub fn bytes(&mut self) -> Result<Vec<u8>, BitcodeError> {
        let mut bytes = Vec::new();
        while let Some(value) = self.value()? {
            let byte = u8::try_from(value)
                .map_err(|_| self.cursor.error(format!("the number {value} in a string"), "a byte"))?;
            bytes.push(byte);
        }
        Ok(bytes)
    }

    /// Returns the unread operands of the latest record, at most `limit`; more are an error.
    pub fn numbers(&mut self, limit: usize) -> Result<Vec<u64>, BitcodeError> {
        let mut numbers = Vec::new();
        while let Some(value) = self.value()? {
            if numbers.len() == limit {
                return Err(self.cursor.error("more operands than the file has room for", "fewer"));
            }
            numbers.push(value);
        }
        Ok(numbers)
    }

    /// Returns the blob at the end of the latest record and skips its other operands; `None` if there is none.
    pub fn blob(&mut self) -> Result<Option<&'a [u8]>, BitcodeError> {
        match &self.pending {
            Pending::Abbreviated { abbreviation, .. } if matches!(abbreviation.tail, Some(Tail::Blob)) => {}
            _ => return Ok(None),
        }
        let scalars = |pending: &Pending| match pending {
            Pending::Abbreviated { abbreviation, next } => abbreviation.operands.len() - next,
            _ => 0,
        };
        for _ in 0..scalars(&self.pending) {
            self.value()?;
        }
        self.pending = Pending::Nothing;
        let length = self.cursor.vbr(6)?;
        self.cursor.align()?;
        let rest = self.cursor.rest();
        self.cursor.skip(length, 8)?;
        self.cursor.align()?;
        // The cursor has just passed over as many bytes of the rest.
        Ok(usize::try_from(length).ok().and_then(|length| rest.get(..length)))
    }

    /// Skips the rest of the latest record.
    fn finish(&mut self) -> Result<(), BitcodeError> {
        loop {
            if let Pending::Array { element, left } = self.pending {
                element.skip(&mut self.cursor, left)?;
                self.pending = Pending::Nothing;
            }
            if self.value()?.is_none() {
                return Ok(());
            }
        }
    }

    /// The next operand of the latest record.
    fn value(&mut self) -> Result<Option<u64>, BitcodeError> {
        loop {
            match &mut self.pending {
                Pending::Nothing => return Ok(None),
                Pending::Plain { left: 0 } | Pending::Array { left: 0, .. } => {
                    self.pending = Pending::Nothing;
                }
                Pending::Plain { left } => {
                    *left -= 1;
                    return self.cursor.vbr(6).map(Some);
                }
                Pending::Array { element, left } => {
                    *left -= 1;
                    return element.read(&mut self.cursor).map(Some);
                }
                Pending::Abbreviated { abbreviation, next } => {
                    if let Some(encoding) = abbreviation.operands.get(*next) {
                        *next += 1;
                        return encoding.read(&mut self.cursor).map(Some);
                    }
                    let tail = abbreviation.tail;
                    self.pending = self.begin(tail)?;
                }
            }
        }
    }

    /// Reads an array's length. A blob is passed over: who wants it asks for it.
    fn begin(&mut self, tail: Option<Tail>) -> Result<Pending, BitcodeError> {
        match tail {
            None => Ok(Pending::Nothing),
            Some(Tail::Array(element)) => {
                let left = self.cursor.vbr(6)?;
                self.check_count(left, 1)?;
                Ok(Pending::Array { element, left })
            }
            Some(Tail::Blob) => {
                let length = self.cursor.vbr(6)?;
                self.cursor.align()?;
                self.cursor.skip(length, 8)?;
                self.cursor.align()?;
                Ok(Pending::Nothing)
            }
        }
    }

    fn check_count(&self, count: u64, least_bits: u64) -> Result<(), BitcodeError> {
        if count > self.cursor.left() / least_bits {
            let found = format!("{count} values in the last {} bits of a block", self.cursor.left());
            return Err(self.cursor.error(found, "as many as fit"));
        }
        Ok(())
    }

    fn enter(&mut self, at: Cursor<'a>) -> Result<SubBlock<'a>, BitcodeError> {
        let id = self.cursor.vbr(8)?;
        let width = self.cursor.vbr(4)?;
        self.cursor.align()?;
        let bytes = self.cursor.fixed(32)? * 4;
        let width = u32::try_from(width)
            .ok()
            .filter(|width| (2..=MAX_WIDTH).contains(width))
            .ok_or_else(|| at.error(format!("abbreviation numbers of {width} bits"), "2 to 32 bits"))?;
        let Some(cursor) = self.cursor.limited(bytes) else {
            let left = self.cursor.left() / 8;
            let found = format!("block {id} of {bytes} bytes where {left} bytes are left");
            return Err(at.error(found, "a whole block (the file may be truncated)"));
        };
        self.cursor.skip(bytes, 8)?;
        Ok(SubBlock { id, width, cursor })
    }
}

fn define(cursor: &mut Cursor<'_>, abbreviations: &mut Vec<Rc<Abbreviation>>) -> Result<(), BitcodeError> {
    if abbreviations.len() >= MAX_ABBREVIATIONS {
        return Err(cursor.error("too many abbreviations", "at most 256 in one kind of block"));
    }
    abbreviations.push(Rc::new(Abbreviation::read(cursor)?));
    Ok(())
}

/// Takes the abbreviations of a BLOCKINFO block, which are all for other blocks.
fn read_block_info(block: SubBlock<'_>, walk: &mut Walk) -> Result<(), BitcodeError> {
    let mut block = block.open(&Walk::default());
    let mut target = None;
    loop {
        let at = block.cursor;
        match block.cursor.fixed(block.width)? {
            END_BLOCK => return Ok(()),
            DEFINE_ABBREV => {
                let Some(id) = target else {
                    return Err(at.error("an abbreviation for no block", "SETBID before it"));
                };
                define(&mut block.cursor, walk.abbreviations.entry(id).or_default())?;
            }
            UNABBREV_RECORD => {
                let code = block.cursor.vbr(6)?;
                let count = block.cursor.vbr(6)?;
                block.check_count(count, 6)?;
                for index in 0..count {
                    let value = block.cursor.vbr(6)?;
                    if code == SETBID && index == 0 {
                        target = Some(value);
                    }
                }
            }
            id => {
                return Err(
                    at.error(format!("abbreviation {id}"), "SETBID, names or abbreviations in BLOCKINFO")
                );
            }
        }
    }
}
