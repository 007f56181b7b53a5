//! The faults that newcomers make, and what distlto says of each: word for word.
//!
//! The script of a fault runs in a folder with `a.c` and `b.c`. Of its output, the lines that are distlto's have to be those
//! of the table. `*` stands for any text of a line: times, paths of this machine, texts of the system.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::{capture, told};
use distlto_tests::toolchain::{Toolchain, system_tool};

/// The name, the script, its exit code, and the lines of distlto.
type Fault = (&'static str, &'static str, i32, &'static [&'static str]);

/// Compiles both files for ThinLTO.
const THIN: &str = "$CC -O2 -flto=thin -c a.c b.c";
const ADD: &str = "compile with clang -O2 -flto=thin and link with -fuse-ld=lld";
const ASK: &str = "cannot ask for objects; link with -fuse-ld=lld, lld 15 or later";

/// What is compiled or linked by other tools or options.
const TOOLS: &[Fault] = &[
    ("gcc", "make CC='gcc -O2'", 0, &["distlto: *ld.bfd linked 1 file without bitcode; {ADD}"]),
    (
        "gcc's own LTO",
        "make CC='gcc -O2 -flto'",
        0,
        &["distlto: *ld.bfd linked 1 file without bitcode; {ADD}"],
    ),
    (
        "no -flto=thin",
        "make CC=\"$CC -O2\" LDFLAGS=-fuse-ld=lld",
        0,
        &["distlto: *bin/lld linked 1 file without bitcode; {ADD}"],
    ),
    (
        "no -flto=thin, and links have to be served",
        "DISTLTO_REQUIRE=1 make CC=\"$CC -O2\" LDFLAGS=-fuse-ld=lld",
        1,
        &[
            "error: no link of the command has asked for its objects: *bin/lld linked 1 file without bitcode; {ADD}",
            "  help: or run it without --require and DISTLTO_REQUIRE",
        ],
    ),
    (
        "-flto=thin only where it links",
        "make CC=\"$CC -O2\" LDFLAGS='-fuse-ld=lld -flto=thin'",
        0,
        &["distlto: *bin/lld linked 1 file without bitcode; {ADD}"],
    ),
    (
        "full LTO",
        "make CC=\"$CC -O2 -flto\" LDFLAGS=-fuse-ld=lld",
        0,
        &["distlto: 1 link passed through: its bitcode is of full LTO (compile with -flto=thin)"],
    ),
    (
        "no -fuse-ld=lld",
        "make CC=\"$CC -O2 -flto=thin\"",
        0,
        &["distlto: 1 link passed through: *ld.bfd {ASK}"],
    ),
    (
        "gold",
        "make CC=\"$CC -O2 -flto=thin\" LDFLAGS=-fuse-ld=gold",
        0,
        &["distlto: 1 link passed through: *ld.gold {ASK}"],
    ),
    (
        "lld 14",
        "make CC='clang-14 -O2 -flto=thin' LDFLAGS=-fuse-ld=lld",
        0,
        &[
            "distlto: 1 link passed through: *llvm-14/bin/lld cannot ask for objects; link with -fuse-ld=lld-*, lld 15 or later",
        ],
    ),
    (
        "gcc -fuse-ld=lld without ld.lld",
        "mkdir bin; ln -s $CC bin/ld.lld-99; PATH=$PWD/bin:$PATH make CC='gcc -O2' LDFLAGS=-fuse-ld=lld",
        2,
        &[
            "distlto: note: gcc -fuse-ld=lld looks for ld.lld, and PATH has none: put a symbolic link ld.lld to *bin/ld.lld-99 there, \
             or use clang",
        ],
    ),
    (
        "-O0",
        "make CC=\"$CC -flto=thin\" LDFLAGS=-fuse-ld=lld",
        0,
        &[
            "distlto: 1 link in *: 2 backends ran; 1 link of -O0 modules, which import nothing: compile with -O2; the next build \
             finds these objects",
        ],
    ),
    (
        "an object of another machine",
        "$CC -O2 -flto=thin -c a.c; $CC -O2 -flto=thin --target=aarch64-linux-gnu -c b.c; distlto $LINK",
        1,
        &[],
    ),
    (
        "an empty object",
        "{THIN}; : > b.o; distlto $LINK",
        1,
        &["distlto: warning: b.o is empty: compile it again"],
    ),
    ("a missing object", "{THIN}; rm b.o; distlto $LINK", 1, &[]),
];

/// What the command line, a variable or a file says.
const WORDS: &[Fault] = &[
    (
        "a mistyped subcommand",
        "distlto isnpect p",
        2,
        &["error: 'isnpect' is no subcommand, and no program in PATH; did you mean 'inspect'?"],
    ),
    (
        "a compiler that is not there",
        "distlto clang-99 a.o",
        2,
        &["error: 'clang-99' is no subcommand, and no program in PATH"],
    ),
    (
        "a link command without --",
        "distlto link $LINK",
        2,
        &[
            "error: unexpected argument '*' found",
            "  tip: the link command stands behind --: distlto link -- clang++ ...",
        ],
    ),
    (
        "an option before a build",
        "distlto -j4 make",
        2,
        &[
            "error: unexpected argument '-j' found",
            "  tip: the options of a build's links are in DISTLTO_LINK_OPTIONS: DISTLTO_LINK_OPTIONS=-j4 distlto make",
        ],
    ),
    (
        "a wrong value of a variable",
        "DISTLTO_JOBS=many distlto $LINK",
        2,
        &[
            "error: invalid value 'many' for '--jobs <N>': invalid digit found in string",
            "  tip: this is the value of DISTLTO_JOBS",
        ],
    ),
    (
        "a mistyped variable",
        "{THIN}; DISTLTO_REQIRE=1 distlto $LINK",
        0,
        &[
            "distlto: warning: DISTLTO_REQIRE is no variable of distlto; did you mean DISTLTO_REQUIRE? (said once)",
        ],
    ),
    (
        "an unknown key",
        "echo 'cahce = \"x\"' > distlto.toml; distlto $LINK",
        3,
        &["error: *distlto.toml:1:9: unknown key `cahce`; did you mean `cache`?", "{KEYS}"],
    ),
    (
        "a wrong value of a key",
        "echo 'jobs = \"many\"' > distlto.toml; distlto $LINK",
        3,
        &[
            "error: *distlto.toml:1:8: invalid value 'many' for '--jobs <N>': invalid digit found in string",
            "{KEYS}",
        ],
    ),
    (
        "a file that is no TOML",
        "echo 'jobs = ' > distlto.toml; distlto $LINK",
        3,
        &["error: *distlto.toml:1:8: string values must be quoted, expected literal string", "{KEYS}"],
    ),
    (
        "a checkout that names a cache and is not trusted",
        "{THIN}; echo 'cache = \"elsewhere\"' > distlto.toml; distlto $LINK",
        0,
        &[
            "distlto: warning: *distlto.toml sets cache, which is ignored; trusted = [\"*\"] in * trusts that checkout",
        ],
    ),
    (
        "a program that distlto has not linked",
        "{THIN}; $LINK; distlto inspect p",
        3,
        &[
            "error: there is no record of a link of p: * is not there",
            "  help: name an output that distlto linked *",
        ],
    ),
    (
        "a module that a link does not have",
        "{THIN}; distlto $LINK; distlto explain p nomodule.o",
        2,
        &[
            "error: no module of p is called nomodule.o",
            "  help: `distlto inspect --modules` lists them; the end of a name will do",
        ],
    ),
];

/// Servers and places that cannot be used.
const PLACES: &[Fault] = &[
    (
        "a cache that refuses connections",
        "{THIN}; distlto link --remote-cache http://127.0.0.1:9/ -- $LINK",
        0,
        &[
            "distlto: warning: no remote cache is used: http://127.0.0.1:9: *Connection refused*; this machine does all of it",
        ],
    ),
    (
        "an engine that refuses connections",
        "{THIN}; distlto link --remote grpc://127.0.0.1:9 -- $LINK",
        0,
        &[
            "distlto: warning: no engine is used: grpc://127.0.0.1:9: *Connection refused*; this machine does all of it",
        ],
    ),
    (
        "a URL without a scheme",
        "distlto link --remote-cache cache.example.com:9092 -- $LINK",
        2,
        &[
            "error: --remote-cache, DISTLTO_REMOTE_CACHE: no scheme; grpc://HOST:PORT, * is expected",
            "  help: see docs/remote.md",
        ],
    ),
    (
        "a URL with an unknown scheme",
        "distlto link --remote-cache cache://example -- $LINK",
        2,
        &[
            "error: --remote-cache, DISTLTO_REMOTE_CACHE: an unknown scheme; grpc://HOST:PORT, * is expected",
            "  help: see docs/remote.md",
        ],
    ),
    (
        "a home that cannot be written",
        "{THIN}; env -u XDG_CACHE_HOME -u DISTLTO_CACHE HOME=/proc/none distlto $LINK",
        0,
        &[
            "distlto: 1 link in *: 2 backends ran; nothing is kept for the next build: cannot create directory \
             /proc/none/.cache/distlto: *; set DISTLTO_CACHE to a folder",
        ],
    ),
    (
        "a store that is a file",
        "{THIN}; : > store; DISTLTO_CACHE=$PWD/store distlto $LINK",
        0,
        &[
            "distlto: warning: the cache *store is not used: cannot create directory *: Not a directory (os error 20)",
        ],
    ),
    (
        "a folder that is not there",
        "distlto stats nowhere",
        4,
        &["error: cannot find nowhere: *", "  help: check the path's *"],
    ),
];

const KEYS: &str =
    "  help: `distlto config --help` lists the keys; with an empty DISTLTO_CONFIG no such file is read";

const MAKEFILE: &str = "p: a.o b.o\n\t$(CC) $(LDFLAGS) $^ -o $@\n%.o: %.c\n\t$(CC) -c $< -o $@\n";

#[test]
fn each_fault_of_a_newcomer_has_a_sentence() -> Result<()> {
    let toolchain = Toolchain::from_env()?;
    let folder = Folder::create(toolchain, "faults")?;
    let clang = folder.toolchain.tool("clang")?;
    let link = format!("{} -O2 -flto=thin -fuse-ld=lld a.o b.o -o p", clang.display());
    let mut wrong = String::new();
    for (number, &(name, script, code, lines)) in [TOOLS, WORDS, PLACES].concat().iter().enumerate() {
        let place = folder.path.join(number.to_string());
        folder.write(
            &format!("{number}/a.c"),
            "int b(int);\nint main(int count, char **words) { return b(count); }\n",
        )?;
        folder.write(&format!("{number}/b.c"), "int b(int x) { return x + 4; }\n")?;
        folder.write(&format!("{number}/Makefile"), MAKEFILE)?;
        folder.write(&format!("{number}/home/x"), "")?;
        let script = script.replace("{THIN}", THIN).replace("make CC", "distlto make -s CC");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(&place).env("HOME", place.join("home"));
        shell.env("CC", &clang).env("LINK", &link).env("PATH", path(&place)?).env("LC_ALL", "C");
        shell.env("XDG_CACHE_HOME", place.join("cache")).env("XDG_CONFIG_HOME", place.join("config"));
        let output = capture(&mut shell)?;
        let expected: Vec<String> = lines
            .iter()
            .map(|line| line.replace("{ADD}", ADD).replace("{ASK}", ASK).replace("{KEYS}", KEYS))
            .collect();
        let text = String::from_utf8_lossy(&output.stderr);
        let said: Vec<&str> = text.lines().map(str::trim_end).filter(|line| is_ours(line)).collect();
        let is_said = said.len() == expected.len()
            && said
                .iter()
                .zip(&expected)
                .all(|(line, expected)| matches(line.trim_start(), expected.trim_start()));
        if !is_said || output.status.code() != Some(code) {
            wrong += &format!("{name}: expected {code} and {expected:#?}\n{}\n", told(&shell, &output));
        }
    }
    ensure!(wrong.is_empty(), "{wrong}");
    Ok(())
}

/// The folder of distlto, without an `ld.lld` for gcc, and the system's.
fn path(place: &Path) -> Result<std::ffi::OsString> {
    let bin = place.join("distlto");
    std::fs::create_dir(&bin)?;
    std::os::unix::fs::symlink(distlto::binary()?, bin.join("distlto"))?;
    let system = system_tool("gcc")?;
    let system = system.parent().context("a program lies in a folder")?;
    Ok(std::env::join_paths([&bin, system, Path::new("/bin")])?)
}

fn is_ours(line: &str) -> bool {
    let line = line.trim_start();
    ["distlto: ", "error: ", "help: ", "tip: "].iter().any(|start| line.starts_with(start))
}

/// Whether a line is the expected one, in which `*` stands for any text.
fn matches(line: &str, expected: &str) -> bool {
    let mut parts = expected.split('*');
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else { return false };
    let mut is_open = false;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        is_open = part.is_empty();
    }
    rest.is_empty() || is_open
}
