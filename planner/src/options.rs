//! The options of a tool: names, form of the value, files that they name, and their effect on a backend. A tool's
//! table is a list of these, one option a line.
//!
//! Knows no option itself: see `linker::elf::table`, `clang::driver` and `clang::cc1`.

/// One option of a tool, under one of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opt {
    /// The name as it is written, without dashes.
    pub name: &'static str,
    /// The name that the rest of the program uses: one for all spellings.
    pub canonical: &'static str,
    /// With how many dashes it is known.
    pub dashes: Dashes,
    /// How its value is given.
    pub value: Value,
    /// Whether the tool stops before the program, or writes files that only it can write.
    pub is_whole: bool,
    /// Which files it names.
    pub files: Files,
    /// Its effect on a backend's output for a module.
    pub code: Code,
}

/// With how many dashes an option is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dashes {
    /// `-name`.
    One,
    /// `--name`.
    Two,
    /// `-name` and `--name`.
    Either,
}

/// How the value of an option is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// It takes none.
    None,
    /// `name=value`, or the next word.
    Equals,
    /// `name=value`.
    EqualsOnly,
    /// `name=value`, or none.
    Optional,
    /// The next word.
    Next,
    /// The rest of the word, or the next word.
    Short,
    /// The rest of the word.
    Joined,
    /// The rest of the word, and the next word too.
    JoinedAndNext,
}

/// Which files an option names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// Nothing is known of any.
    Unknown,
    /// The value is a file that is read.
    Read,
    /// The value is code that the tool loads.
    Loaded,
    /// Files are read or written that no word names, or in ways that are not known.
    Unnamed,
    /// The value is a file that is written.
    Written,
    /// Without a value a file is written that is named after the output; with one, the value.
    Beside,
    /// Many files are written, with names that begin as the output's.
    Temporaries,
}

/// The effect of an option on a backend's output for a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Nothing.
    Same,
    /// Nothing: it asks for output besides the objects.
    Report,
    /// Nothing: it asks for remarks on the modules.
    Remarks,
    /// The kind of output, which decides how code finds its data.
    Linked(LinkedKind),
    /// The level of optimisation.
    Level,
    /// The level of code generation, where that is another one.
    CodegenLevel,
    /// The effect of LLVM's own option in its value.
    Llvm,
    /// The processor that code is generated for.
    Processor,
    /// The profile of samples.
    SampleProfile,
    /// Code is instrumented for a context-sensitive profile.
    CsGenerate,
    /// The context-sensitive profile.
    CsProfile,
    /// Whether a profile that does not fit causes a warning.
    MismatchWarning(bool),
    /// Debug information has a file of its own.
    SplitDebug,
    /// Which basic blocks have a section of their own.
    BlockSections,
    /// Whether there is a map of the addresses of basic blocks.
    BlockAddressMap(bool),
    /// Whether sections of basic blocks have names of their own.
    UniqueBlockNames(bool),
    /// A plugin that transforms the module.
    PassPlugin,
    /// An effect that no compiler option has.
    Untranslatable,
    /// The effect of the linker's words in its value.
    OfLinker,
    /// Whether code is position-independent, if no option gives the kind of output.
    Position,
    /// The same as in a compilation of sources: a backend is given it as it is.
    Kept,
    /// Nothing: only a compilation of sources takes it, or it would make one of bitcode write something else.
    OfSources,
    /// Nothing: the directory of a compilation, which sources record and bitcode has recorded.
    Directory,
    /// Names of the compilation's files may stand in the object.
    Names,
}

/// The kind of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkedKind {
    /// A shared library.
    Shared,
    /// A position-independent program, or not one.
    Pie(bool),
    /// A program without shared libraries: at a fixed place, or not.
    Static {
        /// Whether it is position-independent.
        pie: bool,
    },
    /// Another relocatable object.
    Relocatable,
}

impl Opt {
    const fn new(name: &'static str, dashes: Dashes, value: Value) -> Self {
        Self {
            name,
            canonical: name,
            dashes,
            value,
            is_whole: false,
            files: Files::Unknown,
            code: Code::Same,
        }
    }

    /// It is another spelling of this option.
    pub const fn named(self, canonical: &'static str) -> Self {
        Self { canonical, ..self }
    }

    /// With it the tool stops before the program, or writes files that only it can write.
    pub const fn whole(self) -> Self {
        Self { is_whole: true, ..self }
    }

    /// It names a file that is read.
    pub const fn reads(self) -> Self {
        Self { files: Files::Read, ..self }
    }

    /// It names code that is loaded.
    pub const fn loads(self) -> Self {
        Self { files: Files::Loaded, ..self }
    }

    /// The words do not name the files it concerns.
    pub const fn unnamed(self) -> Self {
        Self { files: Files::Unnamed, ..self }
    }

    /// It names a file that is written.
    pub const fn writes(self) -> Self {
        Self { files: Files::Written, ..self }
    }

    /// It writes a file named after the output, with a suffix.
    pub const fn beside(self) -> Self {
        Self { files: Files::Beside, ..self }
    }

    /// It writes many files beside the output.
    pub const fn temporaries(self) -> Self {
        Self { files: Files::Temporaries, ..self }
    }

    /// Sets its effect on a backend's output for a module.
    pub const fn code(self, code: Code) -> Self {
        Self { code, ..self }
    }

    /// Whether a word with so many dashes can be it.
    pub fn takes_dashes(&self, dashes: usize) -> bool {
        match self.dashes {
            Dashes::One => dashes == 1,
            Dashes::Two => dashes == 2,
            Dashes::Either => true,
        }
    }
}

/// `-name` or `--name`.
pub(crate) const fn flag(name: &'static str) -> Opt {
    Opt::new(name, Dashes::Either, Value::None)
}

/// `--name`.
pub(crate) const fn flag2(name: &'static str) -> Opt {
    Opt::new(name, Dashes::Two, Value::None)
}

/// `-name`.
pub(crate) const fn one(name: &'static str) -> Opt {
    Opt::new(name, Dashes::One, Value::None)
}

/// `-name=value`, `--name value`.
pub(crate) const fn eq(name: &'static str) -> Opt {
    Opt::new(name, Dashes::Either, Value::Equals)
}

/// `--name=value`, `--name value`.
pub(crate) const fn eq2(name: &'static str) -> Opt {
    Opt::new(name, Dashes::Two, Value::Equals)
}

/// `-name=value`, `--name=value`.
pub(crate) const fn only(name: &'static str) -> Opt {
    Opt::new(name, Dashes::Either, Value::EqualsOnly)
}

/// `--name=value`.
pub(crate) const fn only2(name: &'static str) -> Opt {
    Opt::new(name, Dashes::Two, Value::EqualsOnly)
}

/// `-name`, `--name=value`.
pub(crate) const fn maybe(name: &'static str) -> Opt {
    Opt::new(name, Dashes::Either, Value::Optional)
}

/// `--name`, `--name=value`.
pub(crate) const fn maybe2(name: &'static str) -> Opt {
    Opt::new(name, Dashes::Two, Value::Optional)
}

/// `-name value`.
pub(crate) const fn next1(name: &'static str) -> Opt {
    Opt::new(name, Dashes::One, Value::Next)
}

/// `--name value`.
pub(crate) const fn next2(name: &'static str) -> Opt {
    Opt::new(name, Dashes::Two, Value::Next)
}

/// `-name=value`, `-name value`.
pub(crate) const fn eq1(name: &'static str) -> Opt {
    Opt::new(name, Dashes::One, Value::Equals)
}

/// `-name`, `-name=value`.
pub(crate) const fn maybe1(name: &'static str) -> Opt {
    Opt::new(name, Dashes::One, Value::Optional)
}

/// `-namevalue`.
pub(crate) const fn prefix1(name: &'static str) -> Opt {
    Opt::new(name, Dashes::One, Value::Joined)
}

/// `-nameone two`.
pub(crate) const fn both1(name: &'static str) -> Opt {
    Opt::new(name, Dashes::One, Value::JoinedAndNext)
}

/// `-nvalue`, `-n value`.
pub(crate) const fn short(name: &'static str) -> Opt {
    Opt::new(name, Dashes::One, Value::Short)
}

/// `-namevalue`, `--namevalue`.
pub(crate) const fn prefix(name: &'static str) -> Opt {
    Opt::new(name, Dashes::Either, Value::Joined)
}

/// `--namevalue`.
pub(crate) const fn prefix2(name: &'static str) -> Opt {
    Opt::new(name, Dashes::Two, Value::Joined)
}
