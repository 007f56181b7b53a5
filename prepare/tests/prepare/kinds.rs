//! Kinds of files made by real compilers and linkers, and of bytes that only look like them.
//!
//! What a file must be is known from the command that made it.

use std::fs;
use std::path::Path;

use distlto_prepare::kind::{Kind, bitcode_of, classify, classify_file, is_whole};

use crate::tools::{THIN_LTO, compile, run, scratch};

fn kind(directory: &Path, file: &str) -> String {
    classify_file(&directory.join(file)).expect("a readable file").to_string()
}

#[test]
fn compilers_and_linkers_say_what_they_make() {
    let scratch = scratch();
    let directory = scratch.path();
    for (file, options, expected) in [
        ("elf.o", &["--target=x86_64-linux-gnu"][..], "ELF x86-64 object"),
        ("elf32.o", &["--target=i686-linux-gnu"], "ELF x86 object"),
        ("x32.o", &["--target=x86_64-linux-gnux32"], "ELF x32 object"),
        ("arm.o", &["--target=armv7-linux-gnueabihf"], "ELF arm object"),
        ("aarch64be.o", &["--target=aarch64_be-linux-gnu"], "ELF aarch64_be object"),
        ("ppc64le.o", &["--target=powerpc64le-linux-gnu"], "ELF powerpc64le object"),
        ("mips.o", &["--target=mips-linux-gnu"], "ELF mips object"),
        ("riscv64.o", &["--target=riscv64-linux-gnu"], "ELF riscv64 object"),
        ("s390x.o", &["--target=s390x-linux-gnu"], "ELF s390x object"),
        ("coff.o", &["--target=x86_64-pc-windows-msvc"], "COFF x86-64 object"),
        ("coff32.o", &["--target=i686-pc-windows-msvc"], "COFF x86 object"),
        ("coffarm.o", &["--target=aarch64-pc-windows-msvc"], "COFF aarch64 object"),
        ("macho.o", &["--target=arm64-apple-macosx14"], "Mach-O aarch64 object"),
        ("macho64.o", &["--target=x86_64-apple-macosx14"], "Mach-O x86-64 object"),
        ("wasm.o", &["--target=wasm32"], "wasm wasm32 object"),
        ("xcoff.o", &["--target=powerpc64-ibm-aix"], "XCOFF powerpc64 object"),
        ("thin.o", THIN_LTO, "bitcode"),
        ("full.o", &["-flto"], "bitcode"),
        ("wrapped.o", &["-flto=thin", "--target=arm64-apple-macosx14"], "wrapped bitcode"),
        ("fat.o", &["-flto=thin", "-ffat-lto-objects"], "ELF x86-64 object with bitcode (FatLTO)"),
        ("text.s", &["-S"], "text"),
    ] {
        compile(directory, file, options);
        assert_eq!(kind(directory, file), expected, "{file}");
        let is_object = expected != "text";
        assert_eq!(is_whole(&fs::read(directory.join(file)).expect("written")), is_object, "{file}");
    }
    let main = directory.join("main.c");
    fs::write(&main, "int main(void) { return 0; }").expect("scratch is writable");
    for (file, options, expected) in [
        ("lib.so", &["-shared"][..], "ELF x86-64 shared library"),
        ("pie", &["-pie"], "ELF x86-64 executable"),
        ("no-pie", &["-no-pie"], "ELF x86-64 executable"),
        ("static-pie", &["-static-pie"], "ELF x86-64 executable"),
    ] {
        let mut arguments = vec!["-fuse-ld=lld", "main.c", "-o", file];
        arguments.extend(options);
        run(directory, "clang-22", &arguments);
        assert_eq!(kind(directory, file), expected, "{file}");
    }
    for (file, options, expected) in [
        ("a.dll", &["/dll", "/noentry", "/machine:x64"][..], "COFF x86-64 shared library"),
        ("a.exe", &["/entry:f_coff_o", "/subsystem:console"], "COFF x86-64 executable"),
    ] {
        let out = format!("/out:{file}");
        let mut arguments = vec!["coff.o", &out];
        arguments.extend(options);
        run(directory, "lld-link-22", &arguments);
        assert_eq!(kind(directory, file), expected, "{file}");
    }
    run(directory, "wasm-ld-22", &["--no-entry", "wasm.o", "-o", "program.wasm"]);
    assert_eq!(kind(directory, "program.wasm"), "wasm wasm32 executable");
    run(directory, "llvm-lipo-22", &["-create", "macho.o", "macho64.o", "-output", "universal"]);
    assert_eq!(kind(directory, "universal"), "Mach-O universal file");
    // The C library's own dynamic object has an interpreter and is a library all the same.
    let libc = run(directory, "clang-22", &["-print-file-name=libc.so.6"]);
    let libc = String::from_utf8(libc).expect("a UTF-8 path");
    assert_eq!(kind(directory, libc.trim()), "ELF x86-64 shared library");
}

#[test]
fn bitcode_is_found_in_each_wrapping() {
    let scratch = scratch();
    let directory = scratch.path();
    compile(directory, "fat.o", &["-flto=thin", "-ffat-lto-objects"]);
    compile(directory, "wrapped.o", &["-flto=thin", "--target=arm64-apple-macosx14"]);
    compile(directory, "thin.o", THIN_LTO);
    for file in ["fat.o", "wrapped.o", "thin.o"] {
        let bytes = fs::read(directory.join(file)).expect("written");
        fs::write(directory.join("inner.bc"), bitcode_of(&bytes).expect(file)).expect("scratch is writable");
        let listing = run(directory, "llvm-bcanalyzer-22", &["inner.bc"]);
        assert!(String::from_utf8_lossy(&listing).contains("Stream type: LLVM IR"), "{file}");
        // Cut anywhere: never a panic, never bytes from outside.
        for length in 0..bytes.len().min(4096) {
            bitcode_of(&bytes[..length]);
            classify(&bytes[..length]);
        }
    }
    run(directory, "llvm-objcopy-22", &["--dump-section=.llvm.lto=section.bc", "fat.o"]);
    let fat = fs::read(directory.join("fat.o")).expect("written");
    assert_eq!(bitcode_of(&fat), fs::read(directory.join("section.bc")).ok().as_deref());
    assert_eq!(bitcode_of(b"int main;"), None);
    assert_eq!(bitcode_of(b"\xDE\xC0\x17\x0B\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x07\0\0\x01"), None);
}

#[test]
fn truncated_objects_keep_their_kind_and_are_not_whole() {
    let scratch = scratch();
    let directory = scratch.path();
    for (file, options) in [
        ("elf.o", &[][..]),
        ("macho.o", &["--target=arm64-apple-macosx14"]),
        ("wasm.o", &["--target=wasm32"]),
    ] {
        compile(directory, file, options);
        let bytes = fs::read(directory.join(file)).expect("written");
        let half = &bytes[..bytes.len() / 2];
        assert_eq!(classify(half), classify(&bytes), "{file}");
        assert!(is_whole(&bytes) && !is_whole(half), "{file}");
    }
    compile(directory, "thin.o", THIN_LTO);
    let bytes = fs::read(directory.join("thin.o")).expect("written");
    assert!(is_whole(&bytes) && !is_whole(&bytes[..bytes.len() - 3]));
}

#[test]
fn what_only_looks_like_coff_is_not() {
    for bytes in [
        &b"d\x86 is how this text begins, and it goes on for more than a header's twenty bytes"[..],
        b"L\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18",
        // A machine and nothing else: no sections, no symbols.
        b"d\x86\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        b"\0\0\xff\xff\0\0\x64\x86\0\0\0\0\xff\xff\xff\x7f\0\0\0\0",
    ] {
        assert_eq!(classify(bytes), Kind::Other, "{bytes:?}");
    }
    assert_eq!(
        classify(b"\xca\xfe\xba\xbe\0\0\0\x34\0\x1d\x0a\0\x06\0\x0f\x09"),
        Kind::Other,
        "a Java class"
    );
    assert_eq!(classify(b""), Kind::Empty);
    assert_eq!(classify("INPUT(libm.so.6) /* \u{e4} */\n".as_bytes()), Kind::Text);
    assert_eq!(classify(b"!<arch>\n"), Kind::Archive { thin: false });
    assert_eq!(classify(b"!<thin>\n"), Kind::Archive { thin: true });
    assert_eq!(classify(b"<bigaf>\n"), Kind::Archive { thin: false });
}

#[test]
fn import_libraries_hold_native_objects() {
    let scratch = scratch();
    let directory = scratch.path();
    fs::write(directory.join("a.def"), "LIBRARY a.dll\nEXPORTS\n  first\n  second\n").expect("writable");
    run(directory, "llvm-dlltool-22", &["-d", "a.def", "-l", "a.lib", "-m", "i386:x86-64"]);
    crate::tools::unpacked(directory, "a.lib", "out");
    let members = crate::tools::files(&directory.join("out"));
    let kinds: Vec<String> = members.values().map(|bytes| classify(bytes).to_string()).collect();
    assert_eq!(kinds, ["COFF x86-64 object"; 5]);
    let short = members.values().filter(|bytes| bytes.starts_with(b"\0\0\xff\xff"));
    assert_eq!(short.count(), 2, "each import has a short object");
}
