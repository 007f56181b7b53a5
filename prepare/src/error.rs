//! Everything that can go wrong between an archive and its member files.
//!
//! Each variant names the file, the place in it and the remedy; its class decides the exit code (see [`crate::exit`]).

use std::path::PathBuf;

use miette::Diagnostic;
use thiserror::Error;

use crate::io_error::IoError;

/// An error of classifying or unpacking.
#[derive(Debug, Error, Diagnostic)]
pub enum PrepareError {
    /// A file cannot be read or written.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),

    /// An input exists but is a directory, a pipe or a device.
    #[error("{} is not a regular file", path.display())]
    #[diagnostic(code(distlto::bad_input), help("name the archive or object itself"))]
    NotRegular {
        /// The input.
        path: PathBuf,
    },

    /// The input is not an archive.
    #[error("{} is not an archive but {found}", path.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help("only archives have members; pass objects and libraries to the link as they are")
    )]
    NotAnArchive {
        /// The input.
        path: PathBuf,
        /// Its kind.
        found: String,
    },

    /// An archive breaks the rules of its format.
    #[error("{} is malformed: {place}: {problem}", path.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help(
            "build the archive again; one written by a command that was killed or ran out of space looks like this"
        )
    )]
    Malformed {
        /// The archive, or the nested one inside it as `outer.a(inner.a)`.
        path: PathBuf,
        /// The member and byte offset.
        place: String,
        /// The problem.
        problem: String,
    },

    /// GNU ar's thin archives refer into nested regular archives in a way that LLVM does not read either.
    #[error("{} is a thin archive that names members inside another archive (`{header}`)", path.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help("lld cannot read such archives; make it again with `llvm-ar --thin` or without nesting")
    )]
    NestedReference {
        /// The thin archive.
        path: PathBuf,
        /// The name field of the member's header.
        header: String,
    },

    /// A thin archive names a file that cannot be read.
    #[error("{} names the member {}, which cannot be read: {source}", archive.display(), member.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help("a thin archive needs its members beside it: build them again, or make a regular archive")
    )]
    MissingMember {
        /// The thin archive.
        archive: PathBuf,
        /// The member's file, relative to the archive's directory resolved.
        member: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },

    /// At the place of a member there is none, or another one.
    #[error("{} has no member {name} at byte {offset}; there is {found}", archive.display())]
    #[diagnostic(code(distlto::bad_input), help("the archive has changed since the thin link: link again"))]
    NoSuchMember {
        /// The archive.
        archive: PathBuf,
        /// The member's name.
        name: String,
        /// The offset of its header.
        offset: u64,
        /// The content there instead.
        found: String,
    },
    /// Thin archives that contain one another, or nest too deep.
    #[error("{} contains {}, {problem}", archive.display(), member.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help("remove the nested archive from the outer one and build it again")
    )]
    Nesting {
        /// The outer archive.
        archive: PathBuf,
        /// The nested one.
        member: PathBuf,
        /// The problem.
        problem: &'static str,
    },

    /// More members than any real archive has.
    #[error("{} has more than {limit} members, nested archives included", path.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help("check what the archive contains; it may be nested in itself many times")
    )]
    TooManyMembers {
        /// The archive.
        path: PathBuf,
        /// The most that is accepted.
        limit: usize,
    },

    /// A universal file has no slice for the architecture, or several and none was chosen.
    #[error("{}: {problem}; it holds {present}", path.display())]
    #[diagnostic(code(distlto::bad_input), help("choose one of these with --target-architecture"))]
    Architecture {
        /// The universal file.
        path: PathBuf,
        /// The problem with the requested slice.
        problem: String,
        /// The slices, separated by commas.
        present: String,
    },

    /// The objects directory holds something that is no member.
    #[error("{} holds `{file}`, which is not a member of {}", directory.display(), archive.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help("the objects directory holds members alone: empty it, or name one that does not exist yet")
    )]
    Stranger {
        /// The directory.
        directory: PathBuf,
        /// The archive.
        archive: PathBuf,
        /// The name of the other entry.
        file: String,
    },

    /// The directory to be maintained is not of the expected kind.
    #[error("{} is no {what}", directory.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help("name the directory that the runs were given; one that no run has used yet holds nothing")
    )]
    NotKept {
        /// The directory.
        directory: PathBuf,
        /// The expected kind.
        what: &'static str,
    },

    /// A later version of distlto has written it.
    #[error("{} is a {what} of version {found}, and this distlto knows versions up to {known}", directory.display())]
    #[diagnostic(code(distlto::bad_input), help("use the distlto that wrote it, or remove the directory"))]
    NewerLayout {
        /// The directory.
        directory: PathBuf,
        /// Its kind.
        what: &'static str,
        /// Its version.
        found: u32,
        /// The latest version that is known.
        known: u32,
    },

    /// JSON holds text in UTF-8.
    #[error("{} is not UTF-8, so that no manifest can hold it", path.display())]
    #[diagnostic(code(distlto::usage), help("choose another objects directory"))]
    NotUtf8 {
        /// The path as given.
        path: PathBuf,
    },

    /// Files and destinations do not correspond.
    #[error("{}: {problem}", directory.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help("name each file of the directory, and no other, once with --object_to_map; nothing was copied")
    )]
    Mapping {
        /// The directory with the files to be copied.
        directory: PathBuf,
        /// Which file or destination is wrong, and how.
        problem: String,
    },

    /// A file of statistics, or the list of them.
    #[error("{}: {problem}", path.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help(
            "each line of the list names a file with one JSON object of numbers, as compilers write with -save-stats"
        )
    )]
    Statistics {
        /// The list or the file.
        path: PathBuf,
        /// The line or key, and the expectation there.
        problem: String,
    },
}
