//! What a link of `reads` may read and write, and what can change between two of them.
//!
//! Knows the words that make a link read it, and no folder.

/// Something that a link reads or writes, with the words that make it do that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Archive,
    ThinArchive,
    Included,
    Response,
    Configuration,
    Data,
    Searched,
    SymbolicLink,
    Wrapper,
    Order,
    Profile,
    Map,
    SplitDebug,
    UserConfiguration,
    Replay,
    Cxx,
    Rust,
}

use Part::*;

impl Part {
    pub(super) const ALL: [Self; 17] = [
        Archive,
        ThinArchive,
        Included,
        Response,
        Configuration,
        Data,
        Searched,
        SymbolicLink,
        Wrapper,
        Order,
        Profile,
        Map,
        SplitDebug,
        UserConfiguration,
        Replay,
        Cxx,
        Rust,
    ];

    pub(super) fn words(self) -> &'static [&'static str] {
        match self {
            Archive => &["lib/libarch.a", "-Wl,-u,arch"],
            ThinArchive => &["thin.a", "-Wl,-u,thin"],
            Included => &["script.ld"],
            Response => &["@outer.rsp"],
            Configuration => &["--config=./options.cfg"],
            Data => &["data.o", "-Wl,-u,data"],
            Searched => &["-Learly", "-Llate", "-lfound", "-Wl,-u,found"],
            SymbolicLink => &["linked.o"],
            Wrapper => &["--ld-path=./ld.lld"],
            Order => &["-Wl,--symbol-ordering-file=order.txt", "-Wl,--no-warn-symbol-ordering"],
            Profile => &["-Wl,--lto-sample-profile=samples.prof"],
            Map => &["-Wl,-Map=out/program.map", "-Wl,--dependency-file=out/program.d"],
            SplitDebug => &["-g", "-gsplit-dwarf", "-Wl,--plugin-opt=dwo_dir=dwo"],
            UserConfiguration => &["--config-user-dir=user"],
            Cxx => &["cxx.o", "-lstdc++", "-Wl,-u,cxx"],
            Rust => &["rust.o", "-Wl,-u,rust"],
            Replay => &["-Wl,-mllvm,-cgscc-inline-replay=replay.txt"],
        }
    }

    /// Files that the link writes for it.
    pub(super) fn outputs(self) -> &'static [&'static str] {
        match self {
            Map => &["out/program.map", "out/program.d"],
            SplitDebug => &["dwo/main.o.dwo"],
            _ => &[],
        }
    }
}

/// What is done between two links.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    /// One of the sources of the program.
    Source,
    /// What a part reads.
    Of(Part),
    /// A variable that the linker reads.
    Variable,
    /// A file that the link writes is gone.
    Removed,
    /// A file that the link writes is another one.
    Overwritten,
    /// An input gets another time.
    Touched,
    /// An input is copied, and the copy takes its place.
    Copied,
    /// A file and a variable that nothing reads.
    Nothing,
    /// What was looked for and not found is there, or no longer.
    Appeared(Part),
}

impl Change {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Source => "a source",
            Self::Of(Archive) => "a member of an archive",
            Self::Of(ThinArchive) => "a member of a thin archive",
            Self::Of(Included) => "a file that a script includes",
            Self::Of(Response) => "a response file in a response file",
            Self::Of(Configuration) => "a file that a configuration file includes",
            Self::Of(Data) => "a file that the assembler includes",
            Self::Of(SymbolicLink) => "where a symbolic link leads",
            Self::Of(Wrapper) => "a script around the linker",
            Self::Of(Order) => "a list of symbols",
            Self::Of(Profile) => "a profile",
            Self::Of(Cxx) => "a source in C++",
            Self::Of(Rust) => "a source in Rust",
            Self::Of(Replay) => "a file behind an option of LLVM",
            Self::Of(_) => "a library",
            Self::Variable => "a variable",
            Self::Removed => "an output that is removed",
            Self::Overwritten => "an output that is overwritten",
            Self::Touched => "the time of an input",
            Self::Copied => "an input in the place of its copy",
            Self::Nothing => "nothing that is read",
            Self::Appeared(Searched) => "a library in an earlier directory",
            Self::Appeared(_) => "a configuration file that is looked for",
        }
    }

    pub(super) fn has_effect(self) -> bool {
        !matches!(self, Self::Touched | Self::Copied | Self::Nothing)
    }
}
