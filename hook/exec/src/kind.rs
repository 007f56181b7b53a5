//! Which programs take part in a link, by the name and the arguments that they are started with.
//!
//! lld takes its flavour from its name (`lld/tools/lld/lld.cpp`, `parseProgname`), so a linker that distlto can serve has
//! such a name. A driver counts by its usual name, unless it only compiles; one by another name is no driver here, and
//! its linkers are linkers all the same. Reads no file.

/// The part of a program in a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It may be a linker.
    Linker,
    /// A compiler driver that may start a linker.
    Driver,
    /// Anything else.
    Other,
}

/// Each name of a linker has one of these parts, between dashes. Those that cannot ask are named by the service.
const LINKERS: [&[u8]; 10] =
    [b"ld", b"ld.lld", b"ld64", b"ld64.lld", b"lld", b"ld.bfd", b"ld.gold", b"gold", b"ld.mold", b"mold"];
/// In the names of libraries.
const SHARED: &[u8] = b".so";
/// The first argument that names a flavour instead.
const FLAVOUR: &[u8] = b"-flavor";
/// How drivers are called, after a prefix such as `x86_64-linux-gnu-` and before a version.
const DRIVERS: [&[u8]; 14] = [
    b"clang",
    b"clang++",
    b"gcc",
    b"g++",
    b"cc",
    b"c++",
    b"flang",
    b"gfortran",
    b"gdc",
    b"ldc2",
    b"rustc",
    b"swiftc",
    b"collect2",
    b"emcc",
];
/// Arguments of drivers that start no linker.
const COMPILES: [&[u8]; 7] = [b"-c", b"-S", b"-E", b"-M", b"-MM", b"-fsyntax-only", b"-cc1"];

/// Returns the kind of a program. `name` is its first word, be that a path.
pub fn of<'a>(name: &[u8], arguments: impl Iterator<Item = &'a [u8]> + Clone) -> Kind {
    let name = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    // The loader is called `ld-linux-x86-64.so.2`, and can be started as a program.
    let is_library = name.windows(SHARED.len()).any(|part| part == SHARED);
    let is_named = !is_library && name.split(|&byte| byte == b'-').any(|part| LINKERS.contains(&part));
    if is_named || arguments.clone().next() == Some(FLAVOUR) {
        return Kind::Linker;
    }
    let stem = without_version(name);
    let last = stem.rsplit(|&byte| byte == b'-').next().unwrap_or_default();
    let is_driver = DRIVERS.contains(&last) || stem.ends_with(b"clang-cl");
    match is_driver && !arguments.into_iter().any(|argument| COMPILES.contains(&argument)) {
        true => Kind::Driver,
        false => Kind::Other,
    }
}

/// Returns `clang` for `clang-22`, and `gcc` for `gcc-12.2`.
fn without_version(name: &[u8]) -> &[u8] {
    let mut parts = name.rsplitn(2, |&byte| byte == b'-');
    match (parts.next(), parts.next()) {
        (Some(version), Some(stem)) if version.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.') => {
            stem
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, of};

    #[test]
    fn linkers_and_their_drivers_have_names() {
        let kind = |line: &str| {
            let mut words = line.split(' ').map(str::as_bytes);
            let name = words.next().expect("a name");
            of(name, words)
        };
        for line in [
            "/usr/bin/ld.lld-22 a.o",
            "ld",
            "x86_64-linux-gnu-ld",
            "wasm-ld",
            "lld-link /out:a",
            "ld64.lld",
            "rust-lld -flavor gnu",
            "gcc-ld/ld.lld",
            "lld -flavor link",
            "linker -flavor gnu",
            "/usr/bin/x86_64-linux-gnu-ld.bfd a.o",
            "ld.gold",
            "mold",
        ] {
            assert_eq!(kind(line), Kind::Linker, "{line}");
        }
        for line in [
            "clang a.o",
            "/usr/bin/clang++-22 a.o",
            "aarch64-linux-gnu-gcc-12",
            "rustc a.rs",
            "cc",
            "clang-cl-22",
        ] {
            assert_eq!(kind(line), Kind::Driver, "{line}");
        }
        for line in [
            "/lib64/ld-linux-x86-64.so.2 a",
            "ld-musl-x86_64.so.1",
            "clang -c a.c",
            "clang -cc1 a.c",
            "clang-format-22",
            "make",
            "sh",
            "",
            "gcc-ar",
            "old",
            "ccache",
        ] {
            assert_eq!(kind(line), Kind::Other, "{line}");
        }
    }
}
