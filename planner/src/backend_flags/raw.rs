//! First step: gathers every LTO option of a link line as written, without judging it.
//!
//! The linker's table gives the effect of an option; options that change no code are skipped here.

use crate::link_line::{Argument, LinkOption, options};
use crate::linker::options::{of, value};
use crate::options::{Code, LinkedKind};

/// The LTO options of a link line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawLto {
    /// Options in order.
    pub options: Vec<RawOption>,
    /// `-shared` was given.
    pub shared: bool,
    /// `-pie` counts.
    pub pie: bool,
    /// `-r` was given.
    pub relocatable: bool,
}

/// One LTO option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawOption {
    /// Its effect.
    pub code: Code,
    /// Its value; empty where it has none.
    pub value: String,
    /// How it was written, for messages.
    pub written: String,
}

impl RawLto {
    /// The last option that changes this, which is the one that counts.
    pub fn last(&self, code: Code) -> Option<&RawOption> {
        self.options.iter().rev().find(|option| option.code == code)
    }
}

/// Gathers the LTO options of a link line.
pub fn gather(arguments: &[Argument]) -> RawLto {
    let mut raw = RawLto::default();
    for option in options(arguments) {
        match code(option) {
            Code::Same => {}
            Code::Linked(LinkedKind::Shared) => raw.shared = true,
            Code::Linked(LinkedKind::Pie(pie)) => raw.pie = pie,
            Code::Linked(LinkedKind::Relocatable) => raw.relocatable = true,
            Code::Linked(LinkedKind::Static { .. }) => {}
            code => raw.options.push(RawOption {
                value: match option.name.strip_prefix("plugin-opt=") {
                    Some(llvm) if code == Code::Llvm => llvm.to_owned(),
                    _ => value(option).unwrap_or_default().to_owned(),
                },
                code,
                written: option.words.join(" "),
            }),
        }
    }
    raw
}

/// Returns the effect of an option. A `--plugin-opt=` that no ld.lld knows may change anything.
fn code(option: &LinkOption) -> Code {
    match of(option) {
        Some(known) => known.code,
        None if option.name.starts_with("plugin-opt=") => Code::Untranslatable,
        None => Code::Same,
    }
}
