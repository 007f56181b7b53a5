//! First step: gathers every LTO option of a link line as it was written, judging none.
//!
//! The names are those of `lld/ELF/Options.td`; `--plugin-opt=X` is folded into the option it is an alias of.
//! An option that is not about LTO is passed over here, since it cannot change what a backend compiles.

use crate::link_line::{Argument, LinkOption, options};

/// The LTO options of a link line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawLto {
    /// Options in order: the name without dashes or `plugin-opt=`, its value, and the words as written.
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
    /// What it is.
    pub kind: RawKind,
    /// How it was written, for messages.
    pub written: String,
}

/// The LTO options of ld.lld.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawKind {
    /// `--lto-O<n>`.
    OptLevel(String),
    /// `--lto-CGO<n>`.
    CodegenLevel(String),
    /// `-mllvm X`, `--plugin-opt=-X`.
    Mllvm(String),
    /// `--plugin-opt=mcpu=X`.
    Cpu(String),
    /// `--lto-sample-profile=F`.
    SampleProfile(String),
    /// `--lto-cs-profile-generate`.
    CsProfileGenerate,
    /// `--lto-cs-profile-file=F`.
    CsProfileFile(String),
    /// `--[no-]lto-pgo-warn-mismatch`.
    PgoWarnMismatch(bool),
    /// `--plugin-opt=dwo_dir=D`.
    DwoDirectory(String),
    /// `--lto-basic-block-sections=X`.
    BasicBlockSections(String),
    /// `--[no-]lto-basic-block-address-map`.
    BasicBlockAddressMap(bool),
    /// `--[no-]lto-unique-basic-block-section-names`.
    UniqueBasicBlockSectionNames(bool),
    /// `--load-pass-plugin=F`.
    PassPlugin(String),
    /// An option of the backend that has no spelling for a compiler.
    Untranslatable,
    /// An option that says what else to write or how to run; it changes no code.
    NoEffectOnCode,
    /// A `--plugin-opt=` that ld.lld does not know, or knows and ignores.
    UnknownPluginOption,
}

/// Gathers the LTO options of a link line.
pub fn gather(arguments: &[Argument]) -> RawLto {
    let mut raw = RawLto::default();
    for option in options(arguments) {
        match option.name.as_str() {
            "shared" => raw.shared = true,
            "pie" => raw.pie = true,
            "no-pie" => raw.pie = false,
            "relocatable" => raw.relocatable = true,
            _ => {
                if let Some(kind) = kind_of(option) {
                    raw.options.push(RawOption { kind, written: option.words.join(" ") });
                }
            }
        }
    }
    raw
}

fn kind_of(option: &LinkOption) -> Option<RawKind> {
    if let Some(plugin) = option.name.strip_prefix("plugin-opt=") {
        return plugin_kind(plugin);
    }
    if option.name == "mllvm" {
        return option.value.clone().map(RawKind::Mllvm);
    }
    if option.name == "load-pass-plugin" {
        return option.value.clone().map(RawKind::PassPlugin);
    }
    let name = option.name.as_str();
    let value = |prefix: &str| name.strip_prefix(prefix).map(str::to_owned);
    let kind = match name {
        "lto-cs-profile-generate" => RawKind::CsProfileGenerate,
        "lto-pgo-warn-mismatch" => RawKind::PgoWarnMismatch(true),
        "no-lto-pgo-warn-mismatch" => RawKind::PgoWarnMismatch(false),
        "lto-basic-block-address-map" => RawKind::BasicBlockAddressMap(true),
        "no-lto-basic-block-address-map" => RawKind::BasicBlockAddressMap(false),
        "lto-unique-basic-block-section-names" => RawKind::UniqueBasicBlockSectionNames(true),
        "no-lto-unique-basic-block-section-names" => RawKind::UniqueBasicBlockSectionNames(false),
        // The thin link alone decides these, and writes the outcome into the shards.
        "lto-whole-program-visibility"
        | "no-lto-whole-program-visibility"
        | "lto-validate-all-vtables-have-type-infos"
        | "no-lto-validate-all-vtables-have-type-infos"
        | "lto-known-safe-vtables" => return None,
        "lto-debug-pass-manager" | "disable-verify" | "save-temps" | "opt-remarks-with-hotness" => {
            RawKind::NoEffectOnCode
        }
        _ => {
            if let Some(file) = value("lto-cs-profile-file=") {
                RawKind::CsProfileFile(file)
            } else if let Some(level) = value("lto-CGO") {
                RawKind::CodegenLevel(level)
            } else if let Some(level) = value("lto-O") {
                RawKind::OptLevel(level)
            } else if let Some(file) = value("lto-sample-profile=") {
                RawKind::SampleProfile(file)
            } else if let Some(sections) = value("lto-basic-block-sections=") {
                RawKind::BasicBlockSections(sections)
            } else if name.starts_with("lto-newpm-passes=") || name.starts_with("lto-aa-pipeline=") {
                RawKind::Untranslatable
            } else if name.starts_with("opt-remarks-") || name.starts_with("save-temps=") {
                RawKind::NoEffectOnCode
            } else {
                return None;
            }
        }
    };
    Some(kind)
}

fn plugin_kind(option: &str) -> Option<RawKind> {
    let value = |prefix: &str| option.strip_prefix(prefix).map(str::to_owned);
    // GCC's driver passes these to whatever linker it calls; ld.lld ignores them.
    if option.starts_with("-fresolution=") || option.starts_with("-pass-through=") || option.starts_with('/')
    {
        return None;
    }
    let kind = match option {
        "thinlto" | "thinlto-index-only" | "thinlto-emit-imports-files" | "emit-asm" | "emit-llvm" => {
            return None;
        }
        "cs-profile-generate" => RawKind::CsProfileGenerate,
        "disable-verify" | "debug-pass-manager" | "save-temps" | "opt-remarks-with-hotness" => {
            RawKind::NoEffectOnCode
        }
        "new-pass-manager" => return None,
        _ => {
            if option.starts_with('-') {
                RawKind::Mllvm(option.to_owned())
            } else if let Some(file) = value("cs-profile-path=") {
                RawKind::CsProfileFile(file)
            } else if let Some(cpu) = value("mcpu=") {
                RawKind::Cpu(cpu)
            } else if let Some(file) = value("sample-profile=") {
                RawKind::SampleProfile(file)
            } else if let Some(directory) = value("dwo_dir=") {
                RawKind::DwoDirectory(directory)
            } else if let Some(level) = value("O") {
                RawKind::OptLevel(level)
            } else if ["opt-remarks-", "stats-file=", "time-trace="]
                .iter()
                .any(|known| option.starts_with(known))
            {
                RawKind::NoEffectOnCode
            } else if ["jobs=", "lto-partitions=", "obj-path=", "thinlto-"]
                .iter()
                .any(|known| option.starts_with(known))
            {
                return None;
            } else {
                RawKind::UnknownPluginOption
            }
        }
    };
    Some(kind)
}
