//! Projects of `examples/`, which are quick and are built in tests.

use crate::recipes::projects::{C, CMAKE, GN, MAKE, MESON, NINJA, NONE, Project, RUST, Sources};

/// All of them.
pub const EXAMPLES: &[Project] = &[
    Project {
        name: "cmake",
        recipe: "CMake",
        sources: Sources::Example("cmake"),
        tools: &[CMAKE, NINJA],
        edit: ("total.cpp", "  double sum = 0;\n", C),
        ..NONE
    },
    Project {
        name: "cmake-make",
        recipe: "CMake",
        variant: "option",
        sources: Sources::Example("cmake"),
        tools: &[CMAKE, MAKE],
        edit: ("total.cpp", "  double sum = 0;\n", C),
        ..NONE
    },
    Project {
        name: "cmake-enable",
        recipe: "CMake",
        variant: "targets",
        sources: Sources::Example("cmake"),
        tools: &[CMAKE, NINJA],
        options: &["-DSHAPES_DISTLTO=ON"],
        edit: ("total.cpp", "  double sum = 0;\n", C),
        ..NONE
    },
    Project {
        name: "meson",
        recipe: "Meson",
        sources: Sources::Example("meson"),
        tools: &[MESON, NINJA],
        edit: ("names.c", "const char *weekday_name(int year, int month, int day) {\n", C),
        ..NONE
    },
    Project {
        name: "rust",
        recipe: "cargo",
        sources: Sources::Example("rust"),
        options: &["--offline"],
        edit: ("words/src/lib.rs", "-> BTreeMap<&str, usize> {\n", RUST),
        ..NONE
    },
    Project {
        name: "gn",
        recipe: "GN",
        sources: Sources::Example("gn"),
        tools: &[GN, NINJA],
        own: &[
            ("test", "out/thin/stack_test"),
            (
                "install",
                "install -D -t \"$DESTDIR/usr/bin\" out/thin/stack\ninstall -D -t \"$DESTDIR/usr/lib\" out/thin/lib*.so",
            ),
        ],
        edit: ("machine.cc", "long Machine::top() const {\n", C),
        ..NONE
    },
    Project {
        name: "ninja",
        recipe: "Ninja",
        sources: Sources::Example("ninja"),
        tools: &[NINJA],
        own: &[
            ("configure", ":"),
            ("test", "./roman_test"),
            ("install", "install -D -t \"$DESTDIR/usr/bin\" roman"),
        ],
        edit: ("main.c", "  char text[16];\n", C),
        ..NONE
    },
    Project {
        name: "cmake-word",
        recipe: "CMake",
        variant: "word",
        sources: Sources::Example("cmake"),
        tools: &[CMAKE, MAKE],
        edit: ("total.cpp", "  double sum = 0;\n", C),
        ..NONE
    },
    Project {
        name: "meson-word",
        recipe: "Meson",
        variant: "word",
        sources: Sources::Example("meson"),
        tools: &[MESON, NINJA],
        edit: ("names.c", "const char *weekday_name(int year, int month, int day) {\n", C),
        ..NONE
    },
];
