//! Projects that are not ours, of each build system one that is small and tests itself.

use crate::debian::SourcePackage;
use crate::recipes::projects::{C, CMAKE, GN, MAKE, MESON, NINJA, NONE, PYTHON, Project, RUST, Sources};

/// All of them.
pub const THIRD_PARTY: &[Project] = &[
    Project {
        name: "xz",
        recipe: "autotools and libtool",
        sources: Sources::Debian(SourcePackage {
            name: "xz-utils",
            version: "5.4.1-1+deb12u1",
            archive: "xz-utils_5.4.1.orig.tar.xz",
            sha256: "5d9827aa1875b21c288f78864bb26d2650b436ea8d2cad364e4921eb6266a5a5",
        }),
        tools: &[MAKE],
        options: &["--disable-nls"],
        edit: ("src/liblzma/check/check.c", "lzma_check_is_supported(lzma_check type)\n{\n", C),
        ..NONE
    },
    Project {
        name: "jsoncpp",
        recipe: "CMake",
        sources: Sources::Debian(SourcePackage {
            name: "libjsoncpp",
            version: "1.9.5-4",
            archive: "libjsoncpp_1.9.5.orig.tar.gz",
            sha256: "f409856e5920c18d0c2fb85276e24ee607d2a09b5e7d5f0a371368903c275da2",
        }),
        tools: &[CMAKE, NINJA, PYTHON],
        options: &["-DJSONCPP_WITH_POST_BUILD_UNITTEST=OFF"],
        edit: (
            "src/lib_json/json_writer.cpp",
            "void StyledWriter::unindent() {\n  assert(indentString_.size() >= indentSize_);\n",
            C,
        ),
        ..NONE
    },
    Project {
        name: "json-c",
        recipe: "CMake",
        variant: "option",
        sources: Sources::Debian(SourcePackage {
            name: "json-c",
            version: "0.16-2",
            archive: "json-c_0.16.orig.tar.gz",
            sha256: "3ecaeedffd99a60b1262819f9e60d7d983844073abc74e495cb822b251904185",
        }),
        tools: &[CMAKE, MAKE],
        // Its sources warn with this clang, and its list of exports names what it does not define.
        options: &["-DDISABLE_WERROR=ON", "-DCMAKE_SHARED_LINKER_FLAGS=-Wl,--undefined-version"],
        edit: ("linkhash.c", "int json_global_set_string_hash(const int h)\n{\n", C),
        ..NONE
    },
    Project {
        name: "fribidi",
        recipe: "Meson",
        sources: Sources::Debian(SourcePackage {
            name: "fribidi",
            version: "1.0.8-2.1",
            archive: "fribidi_1.0.8.orig.tar.bz2",
            sha256: "94c7b68d86ad2a9613b4dcffe7bbeb03523d63b5b37918bdf2e4ef34195c1e6c",
        }),
        tools: &[MESON, NINJA],
        options: &["-Ddocs=false"],
        edit: ("lib/fribidi-joining.c", "  FriBidiArabicProp *ar_props\n)\n{\n", C),
        ..NONE
    },
    Project {
        name: "ripgrep",
        recipe: "cargo",
        sources: Sources::Debian(SourcePackage {
            name: "rust-ripgrep",
            version: "13.0.0-4",
            archive: "rust-ripgrep_13.0.0.orig.tar.gz",
            sha256: "f37c9d2c2bc7e00bd2653e13771397b94e452583da9b9494eabef627618d64bf",
        }),
        options: &["--features", "pcre2"],
        // The C library that it brings along, in place of one of the system.
        variables: &[("PCRE2_SYS_STATIC", "1")],
        edit: ("crates/core/main.rs", "fn search(args: &Args) -> Result<bool> {\n", RUST),
        ..NONE
    },
    Project {
        name: "zlib",
        recipe: "GN",
        sources: Sources::Debian(SourcePackage {
            name: "zlib",
            version: "1:1.2.13.dfsg-1",
            archive: "zlib_1.2.13.dfsg.orig.tar.bz2",
            sha256: "71feb7947e3c00ef125f83b79a4e529bde31171e5babe48b391f06758d1ab0a1",
        }),
        tools: &[GN, NINJA],
        added: &[
            ("examples/gn/.gn", ".gn"),
            ("examples/gn/build", "build"),
            ("xtask/src/recipes/zlib.gn", "BUILD.gn"),
        ],
        own: &[
            (
                "test",
                "cd out/thin\n./zlib_example\n./minigzip <../../zlib.h | ./minigzip -d | cmp - ../../zlib.h",
            ),
            (
                "install",
                "install -D -t \"$DESTDIR/usr/bin\" out/thin/minigzip\ninstall -D -t \"$DESTDIR/usr/lib\" out/thin/lib*.so",
            ),
        ],
        edit: (
            "uncompr.c",
            "    Byte buf[1];    /* for detection of incomplete stream when *destLen == 0 */\n",
            C,
        ),
        ..NONE
    },
    Project {
        name: "ninja",
        recipe: "Ninja",
        sources: Sources::Debian(SourcePackage {
            name: "ninja-build",
            version: "1.11.1-2~deb12u1",
            archive: "ninja-build_1.11.1.orig.tar.gz",
            sha256: "31747ae633213f1eda3842686f83c2aa1412e0f5691d1c14dbbcc67fe7400cea",
        }),
        tools: &[NINJA, PYTHON],
        options: &["ninja", "ninja_test"],
        own: &[("test", "./ninja_test"), ("install", "install -D -t \"$DESTDIR/usr/bin\" ninja")],
        edit: ("src/graphviz.cc", "void GraphViz::Start() {\n", C),
        ..NONE
    },
];
