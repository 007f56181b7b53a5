//! A program as data: units of source, what each defines and uses, and the elements of the link line. Knows no text.

/// What a unit is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// C.
    C,
    /// C++.
    Cpp,
    /// Assembly of x86-64.
    Assembly,
}

/// What a unit is compiled to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Bitcode with a summary for ThinLTO.
    Thin,
    /// Bitcode for full LTO.
    Full,
    /// Machine code.
    Native,
}

/// What a symbol is in one unit that defines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A function.
    Strong,
    /// A function that another definition may replace.
    Weak,
    /// A function in a COMDAT group; a weak one in C.
    Inline,
    /// The same with a variable in a group of its own.
    InlineStatic,
    /// Another name of a function.
    Alias,
    /// Another name of a function, which may be replaced.
    WeakAlias,
    /// A function that is chosen when the program starts.
    Ifunc,
    /// A variable.
    Data,
    /// A variable that another definition may replace.
    WeakData,
    /// A variable of C without a value.
    Common,
    /// A variable in a COMDAT group, whose value a constructor gives; a weak one in C.
    InlineData,
    /// A variable of each thread.
    Tls,
    /// A variable of each thread that another definition may replace.
    WeakTls,
}

impl What {
    /// Whether it is a function.
    pub fn is_function(self) -> bool {
        use What::{Alias, Ifunc, Inline, InlineStatic, Strong, Weak, WeakAlias};
        matches!(self, Strong | Weak | Inline | InlineStatic | Alias | WeakAlias | Ifunc)
    }

    /// Whether it is of each thread.
    pub fn is_tls(self) -> bool {
        matches!(self, Self::Tls | Self::WeakTls)
    }
}

/// A definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The symbol.
    pub name: String,
    /// What it is here.
    pub what: What,
    /// What tells it from other definitions of the symbol.
    pub value: usize,
    /// `hidden` or `protected`; the default where empty.
    pub visibility: &'static str,
    /// Functions that it calls. None of them calls it, whichever definitions are taken.
    pub calls: Vec<String>,
    /// Whether it calls a local function, which is promoted when another unit imports this one.
    pub local: bool,
    /// Whether it has a loop.
    pub long: bool,
}

/// What a unit reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Use {
    /// The result of a function.
    Call(String),
    /// The same, or that there is no such function.
    WeakCall(String),
    /// A variable.
    Data(String),
    /// A variable of each thread.
    Tls(String),
    /// What another unit reports.
    Report(usize),
    /// The same, or that there is no such unit.
    WeakReport(usize),
}

/// A function that prints its name before or after `main`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constructor {
    /// Which one of the unit.
    pub number: usize,
    /// Its priority.
    pub priority: Option<usize>,
    /// Whether it belongs to an object of C++.
    pub object: bool,
    /// Whether there is a destructor of the name too.
    pub destructor: bool,
}

/// A source file and its object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Its place in [`Program::units`].
    pub number: usize,
    /// What it is written in.
    pub language: Language,
    /// What it is compiled to.
    pub form: Form,
    /// The level of `-O`.
    pub level: usize,
    /// The option that says whether code is independent of its position.
    pub position: &'static str,
    /// Where the object lies.
    pub object: String,
    /// For an object that is a symbolic link: which of several files it leads to.
    pub link: Option<usize>,
    /// What it defines.
    pub defines: Vec<Definition>,
    /// What it reports.
    pub uses: Vec<Use>,
    /// What it prints by itself.
    pub constructors: Vec<Constructor>,
    /// A library that the object names (`.deplibs`).
    pub library: Option<String>,
}

impl Unit {
    /// Whether it defines a symbol.
    pub fn has(&self, name: &str) -> bool {
        self.defines.iter().any(|definition| definition.name == name)
    }

    /// Whether it is bitcode.
    pub fn is_bitcode(&self) -> bool {
        self.form != Form::Native
    }

    /// The file's name.
    pub fn source(&self) -> String {
        let suffix = match self.language {
            Language::C => "c",
            Language::Cpp => "cpp",
            Language::Assembly => "s",
        };
        format!("u{}.{suffix}", self.number)
    }
}

/// An archive, or a shared library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// The name after `-l`.
    pub name: String,
    /// Its units.
    pub members: Vec<usize>,
    /// Of an archive: whether it holds only the names of its members.
    pub thin: bool,
}

/// A part of the link line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Element {
    /// An object.
    Object(usize),
    /// An archive, by path.
    Archive(String),
    /// An archive or a shared library, by `-l`.
    Named(String),
    /// `--whole-archive`
    Whole(Vec<Self>),
    /// `--start-group`
    Group(Vec<Self>),
    /// `--start-lib`; other units under another spelling of the path.
    Lazy(Vec<usize>, Vec<usize>),
    /// A shared library, by path.
    Shared(String),
    /// A linker script that names objects, by a file that it includes.
    Script(Vec<usize>),
}

/// What is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A program that can lie anywhere.
    Pie,
    /// A program with a place.
    Fixed,
    /// A program without shared libraries.
    Static,
    /// A shared library.
    Shared,
}

/// What is said of the link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What is made.
    pub kind: Kind,
    /// The level of `-O`.
    pub level: usize,
    /// Words for lld.
    pub linker: Vec<String>,
    /// Patterns of a version script's `global:`.
    pub version: Option<Vec<String>>,
    /// Whether a map file is written.
    pub map: bool,
    /// Whether inputs stand in a response file.
    pub response: bool,
    /// How many objects of one content there are, the last of them in an archive.
    pub twins: usize,
    /// Whether the C++ of bitcode has classes in common, whose virtual calls the link may resolve.
    pub classes: bool,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The number that it was made of.
    pub seed: u64,
    /// The first one holds `main`.
    pub units: Vec<Unit>,
    /// The archives.
    pub archives: Vec<Library>,
    /// The shared libraries that are linked.
    pub shared: Vec<Library>,
    /// The link line's inputs.
    pub line: Vec<Element>,
    /// The rest of the link line.
    pub options: Options,
}
