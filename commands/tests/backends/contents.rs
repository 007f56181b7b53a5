//! Objects that lack what their module has are refused, whatever they are made of; those of a healthy compiler never are.

use std::cell::RefCell;

use distlto_executor::cancel::Cancel;
use distlto_executor::run::{NoHooks, RunOptions, run};
use distlto_planner::graph::ActionGraph;
use distlto_record::progress::{Progress, ProgressEvent};
use distlto_record::report::Report;

use super::common::{Link, add_opt_with, cause, is_done};

/// Everything that a compiler may drop or rename, beside things that it may not.
const RICH: &str = r#"
int other(int);
extern int missing __attribute__((weak));
static int values[4];
__attribute__((constructor)) static void evaluated(void) { values[0] = 5; }
__attribute__((constructor(200))) void seen_and_evaluated(void) { values[1] = 6; }
__attribute__((constructor, used)) static void used_and_evaluated(void) { values[2] = 7; }
__attribute__((constructor)) static void empty(void) {}
static int one(void) { return 1; }
static int (*pick(void))(void) { return one; }
int picked(void) __attribute__((ifunc("pick")));
__attribute__((weak)) int weak(int x) { return x + values[0]; }
__attribute__((visibility("hidden"))) int hidden(int x) { return other(x) * 3; }
int named(void) __asm__("named$otherwise");
int named(void) { return values[1]; }
int body(int x) { return x + 9; }
extern int alias(int) __attribute__((alias("body")));
extern int weak_alias(int) __attribute__((weak, alias("body")));
__attribute__((noinline)) static int local(int x) { values[x & 3] += x; return values[2]; }
int calls_local(int x) { return local(x) + (&missing ? missing : 0); }
__thread int of_thread = 4;
int tentative;
const int constant = 17;
static inline int inlined(int x) { return x * 2; }
__attribute__((used, section("kept_values"))) static int kept = 3;
__attribute__((section("dropped_values"))) static int dropped = 3;
__asm__(".globl from_assembly\n.type from_assembly,STT_OBJECT\n.data\nfrom_assembly: .long 3\n.text\n");
int main(void) {
  return calls_local(weak(hidden(named()))) + of_thread + tentative + inlined(constant) + picked() + alias(1) + weak_alias(2) + dropped;
}
"#;

/// What the modules above and below want of one more.
const OTHER: &str = "int other(int x) { return x - 1; } volatile int entries; void enlist(int *entry) { *entry = ++entries; }";

/// A module that has nothing but a constructor, which other modules know nothing of.
const LISTED: &str = "void enlist(int *); static int entry; \
    __attribute__((constructor)) static void enlist_entry(void) { enlist(&entry); }";

/// A module that has nothing but a destructor.
const LAST: &str = "__attribute__((destructor)) static void last(void) {}";

const CLASSES: &str = r#"
extern "C" int other(int);
extern "C" void enlist(int *);
template <class T> struct Box { static T value; virtual T get() const { return value; } virtual ~Box() {} };
template <class T> T Box<T>::value = T(other(3));
inline int shared = other(4);
struct Listed { int entry; Listed() { enlist(&entry); } ~Listed() { other(entry); } };
static Listed listed;
static int evaluated = [] { int sum = 0; for (int i = 0; i < 4; ++i) sum += i; return sum; }();
struct Base { virtual int kind() { return 0; } };
struct Derived final : Base { int kind() override { return evaluated; } };
namespace { struct Hidden : Base { int kind() override { return 2; } }; }
Base *make(int kind) { static Derived derived; static Hidden hidden; return kind ? static_cast<Base *>(&derived) : &hidden; }
thread_local Listed of_thread;
int main() { Box<int> box; return box.get() + shared + make(1)->kind() + of_thread.entry; }
"#;

/// Compiles `a.o` from `source` and thin-links it with `OTHER`, both for the target in `flags`.
fn link(version: u32, source: &str, flags: &[&str]) -> Link {
    let link = compiled(version, source, flags);
    link.thin_link(version, &["a.o", "b.o"]);
    link
}

fn compiled(version: u32, source: &str, flags: &[&str]) -> Link {
    let link = Link::new(version);
    link.write("b.c", OTHER);
    let name = if source == CLASSES { "a.cpp" } else { "a.c" };
    link.write(name, source);
    for (source, object) in [(name, "a.o"), ("b.c", "b.o")] {
        let language = if source.ends_with(".cpp") { "-std=c++17" } else { "-std=gnu11" };
        let head = [link.clang.as_str(), language, "-O2", "-flto=thin", "-fcommon"];
        let mut words = [&head[..], &["-c", source, "-o", object]].concat();
        words.extend(flags);
        link.tool(&words);
    }
    link
}

/// Targets of other formats than ELF, each with the words of a thin link into a library.
const OTHER_FORMATS: [(&str, &[&str]); 6] = [
    ("x86_64-windows-msvc", TO_DLL),
    ("i686-windows-msvc", TO_DLL),
    ("aarch64-windows-msvc", TO_DLL),
    ("x86_64-windows-gnu", TO_DLL),
    (
        "arm64-apple-macos13",
        &[
            "ld64.lld-22",
            "--thinlto-index-only",
            "-arch",
            "arm64",
            "-platform_version",
            "macos",
            "13",
            "13",
            "-dylib",
            "-undefined",
            "dynamic_lookup",
        ],
    ),
    (
        "wasm32-unknown-unknown",
        &["wasm-ld-22", "--thinlto-index-only", "--no-entry", "--allow-undefined", "--export-all"],
    ),
];
const TO_DLL: &[&str] = &[
    "lld-link-22",
    "/thinlto-index-only",
    "/dll",
    "/noentry",
    "/nodefaultlib",
    "/force:unresolved",
    "/safeseh:no",
];

fn link_to(target: &str, words: &[&str], source: &str) -> Link {
    // WebAssembly has no common symbols.
    let link = compiled(22, source, &[&format!("--target={target}"), "-ffreestanding", "-fno-common"]);
    link.tool(&[words, &["a.o", "b.o"]].concat());
    link
}

/// What was said of results that did not serve.
#[derive(Default)]
struct Retried(RefCell<Vec<String>>);

impl Progress for Retried {
    fn report(&self, event: ProgressEvent<'_>) {
        if let ProgressEvent::Retried(text) = event {
            self.0.borrow_mut().push(text.to_owned());
        }
    }
}

/// Compiles `a.o` with a script; gives what was said too.
fn opt(link: &Link, body: &str) -> (Report, Vec<String>) {
    let (retried, cancel) = (Retried::default(), Cancel::new().unwrap());
    let (graph, wanted) = link.graph(&link.compiler(body), &["a.o"]);
    let options = RunOptions { progress: &retried, ..link.options(&cancel) };
    let report = run(&graph, &wanted, &options, &NoHooks);
    (report, retried.0.into_inner())
}

/// Expects that what a compiler wrote is refused twice.
#[track_caller]
fn refused(link: &Link, lacks: &str, body: &str) {
    let (report, retried) = opt(link, &format!("echo >> runs\n{body}"));
    let refusal =
        format!("a.o: the object {} is not that of its module: {lacks}", link.path("out/a.o").display());
    assert_eq!(cause(&report), refusal);
    assert_eq!(retried, [format!("{refusal}; it is tried once more")]);
    assert_eq!((report.exit_code(), link.read("runs").len()), (1, 2));
    assert!(!link.path("out/a.o").exists());
}

/// The compiler, told to compile something else.
const OF_NOTHING: &str = "echo | clang-22 -c -x c - -o \"$out\"";

#[test]
fn healthy_compilers_are_believed() {
    let plain: &[&str] = &[];
    let cases = [
        (RICH, plain, "\"$@\""),
        (RICH, &["-fPIC", "-ffunction-sections"], "\"$@\" -O0 -ffunction-sections -fdata-sections"),
        (RICH, plain, "\"$@\" -fno-pic -femulated-tls -fno-use-init-array"),
        (LISTED, plain, "\"$@\""),
        (CLASSES, plain, "\"$@\""),
        (CLASSES, &["-O0", "-Xclang", "-disable-O0-optnone"], "\"$@\" -O3"),
        (CLASSES, &["-fvisibility=hidden", "-fno-inline"], "\"$@\" -g"),
    ];
    for version in [14, 16, 19, 22] {
        for (source, flags, words) in cases {
            let link = link(version, source, flags);
            let (report, retried) = opt(&link, &format!("exec {} {words}", link.clang));
            assert!(is_done(&report) && retried.is_empty(), "LLVM {version} {flags:?} {words}: {report:?}");
        }
    }
}

#[test]
fn other_machines_are_judged_too() {
    for target in ["aarch64-linux-gnu", "i386-linux-gnu", "arm-linux-gnueabihf", "riscv64-linux-gnu"] {
        let target = format!("--target={target}");
        let link = link(22, RICH, &[&target, "-ffreestanding"]);
        let (report, retried) = opt(&link, &format!("exec clang-22 {target} \"$@\""));
        assert!(is_done(&report) && retried.is_empty(), "{target}: {report:?}");
        std::fs::remove_file(link.path("out/a.o")).unwrap();
        refused(
            &link,
            "it does not define main, from_assembly",
            &format!("echo | clang-22 {target} -c -x c - -o \"$out\""),
        );
    }
}

/// `RICH` without the features that only ELF has.
const PORTABLE: &str = r#"
int other(int);
static int values[4];
__attribute__((constructor)) static void evaluated(void) { values[0] = 5; }
__attribute__((constructor(200))) void seen_and_evaluated(void) { values[1] = 6; }
__attribute__((constructor, used)) static void used_and_evaluated(void) { values[2] = 7; }
__attribute__((constructor)) static void empty(void) {}
__attribute__((weak)) int weak(int x) { return x + values[0]; }
__attribute__((visibility("hidden"))) int hidden(int x) { return other(x) * 3; }
int named(void) __asm__("named$otherwise");
int named(void) { return values[1]; }
__attribute__((noinline)) static int local(int x) { values[x & 3] += x; return values[2]; }
int calls_local(int x) { return local(x); }
_Thread_local int of_thread = 4;
int tentative;
const int constant = 17;
static inline int inlined(int x) { return x * 2; }
int entry(void) { return calls_local(weak(hidden(named()))) + of_thread + tentative + inlined(constant); }
"#;

/// Removes an option that clang refuses for Windows.
const WITHOUT_PIC: &str = "for word; do shift; test $word = -fPIC || set -- \"$@\" \"$word\"; done";

#[test]
fn other_formats_are_judged_too() {
    for (target, words) in OTHER_FORMATS {
        let flag = format!("--target={target}");
        for source in [PORTABLE, LISTED, CLASSES] {
            let link = link_to(target, words, source);
            let (report, retried) = opt(&link, &format!("{WITHOUT_PIC}; exec clang-22 {flag} \"$@\""));
            assert!(is_done(&report) && retried.is_empty(), "{target}: {report:?} {retried:?}");
        }
        let defines = "__attribute__((dllexport)) int only(void) { return 3; }";
        let section = if target.contains("apple") { "__DATA,__entries" } else { "entries" };
        let placed = format!("__attribute__((used, section(\"{section}\"))) static int entry = 3;");
        let prefix = if target.contains("apple") || target.contains("i686") { "_" } else { "" };
        let (has_sections, is_coff) = (!target.contains("wasm"), target.contains("windows"));
        let cases = [
            (defines, &*format!("it does not define {prefix}only"), true),
            (&placed, &format!("it has no section {section}"), has_sections),
            (LAST, "it has no list of destructors", is_coff),
            (LISTED, "it has no list of constructors, and does not name the source file a.c", is_coff),
        ];
        for (source, lacks, _) in cases.into_iter().filter(|(_, _, is_seen)| *is_seen) {
            let of_nothing = format!("echo | clang-22 {flag} -c -x c - -o \"$out\"");
            refused(&link_to(target, words, source), lacks, &of_nothing);
        }
    }
}

#[test]
fn an_object_of_another_module() {
    refused(&link(22, RICH, &[]), "it does not define main, from_assembly", OF_NOTHING);
    let lacks = "it does not define b1, b2";
    for version in [14, 16, 19, 22] {
        let link = Link::new(version);
        // Nothing is internal without an entry.
        link.tool(&[&format!("ld.lld-{version}"), "--thinlto-index-only", "-shared", "b.o", "-o", "library"]);
        link.write("other.c", "int b3(int x) { return x; }");
        let (graph, wanted) = link.graph(&link.compiler("clang-22 -c other.c -o \"$out\""), &["b.o"]);
        let cancel = Cancel::new().unwrap();
        let report = run(&graph, &wanted, &link.options(&cancel), &NoHooks);
        assert!(cause(&report).ends_with(lacks), "LLVM {version}: {report:?}");
    }
}

#[test]
fn names_are_few() {
    let link = Link::new(22);
    let many: String = (1..=5).map(|number| format!("int f{number};")).collect();
    link.write("a.c", many);
    link.tool(&["clang-22", "-flto=thin", "-c", "a.c", "-o", "a.o"]);
    link.tool(&["ld.lld-22", "--thinlto-index-only", "-shared", "a.o", "-o", "library"]);
    refused(&link, "it does not define f1, f2, f3 and 2 more", OF_NOTHING);
}

/// What another module refers to has a name of the link's own, which is missing as any other is.
#[test]
fn a_local_symbol_that_is_imported() {
    for version in [14, 16, 19, 22] {
        let link = Link::new(version);
        link.write("a.c", "int b1(int); int main(int argc, char **argv) { return b1(argc); }");
        let local =
            "static int count; __attribute__((noinline)) static int local(int x) { return count += x; }";
        link.write("b.c", format!("{local} int b1(int x) {{ return local(x); }}"));
        for (source, object) in [("a.c", "a.o"), ("b.c", "b.o")] {
            link.tool(&[&link.clang, "-O2", "-flto=thin", "-c", source, "-o", object]);
        }
        link.thin_link(version, &["a.o", "b.o"]);
        assert!(is_done(&link.opt_of(&link.clang, "b.o")));
        // As without a thin link.
        let (graph, wanted) = link.graph(&link.compiler("clang-22 -O2 -c b.c -o \"$out\""), &["b.o"]);
        let cancel = Cancel::new().unwrap();
        let report = run(&graph, &wanted, &link.options(&cancel), &NoHooks);
        assert!(cause(&report).ends_with("it does not define local"), "LLVM {version}: {report:?}");
    }
}

#[test]
fn a_module_that_only_registers_something() {
    for version in [14, 16, 19, 22] {
        let link = link(version, LISTED, &[]);
        refused(&link, "it has no list of constructors, and does not name the source file a.c", OF_NOTHING);
        std::fs::remove_file(link.path("runs")).unwrap();
        let drops =
            format!("{} \"$@\" && llvm-objcopy-22 -R .init_array -R .rela.init_array \"$out\"", link.clang);
        refused(&link, "it has no list of constructors, but the constructor enlist_entry", &drops);
    }
}

#[test]
fn a_list_of_destructors_and_a_section_that_is_kept() {
    let link = link(22, LAST, &[]);
    refused(&link, "it has no list of destructors", OF_NOTHING);
    let placed = "__attribute__((used, section(\"entries\"))) static int entry = 3;";
    let link = self::link(22, placed, &[]);
    refused(&link, "it has no section entries", OF_NOTHING);
}

#[test]
fn without_a_thin_link_what_is_not_weak_is_wanted() {
    let link = Link::new(22);
    let (mut graph, cancel) = (ActionGraph::new(), Cancel::new().unwrap());
    let id = add_opt_with(&mut graph, &link.compiler(OF_NOTHING), "b.o", "/dev/null");
    let report = run(&graph, &[id], &link.options(&cancel), &NoHooks);
    assert!(cause(&report).ends_with("it does not define b1, b2"), "{report:?}");
}

#[test]
fn once_is_not_believed_and_the_second_time_is() {
    for (once, said) in [
        (OF_NOTHING, "is not that of its module: it does not define main"),
        ("exit 0", "did not write"),
        (": > \"$out\"", "wrote an empty"),
        ("clang-22 -c a.c -o - | head -c 200 > \"$out\"", "truncated or malformed"),
        ("cp a.o \"$out\"", "is bitcode, expected ELF"),
    ] {
        let link = Link::new(22);
        let body = format!("if [ ! -e lied ]; then : > lied; {once}; exit 0; fi; exec clang-22 \"$@\"");
        let (report, retried) = opt(&link, &body);
        assert!(is_done(&report), "{report:?}");
        let [text] = retried.as_slice() else { panic!("{retried:?}") };
        assert!(text.contains(said) && text.ends_with("; it is tried once more"), "{text}");
    }
}

/// A compiler that says that it failed is believed at once.
#[test]
fn failures_are_not_repeated() {
    let link = Link::new(22);
    let (report, retried) = opt(&link, "echo >> runs; echo error: why >&2; exit 3");
    assert!(!is_done(&report) && retried.is_empty(), "{retried:?}");
    assert_eq!(link.read("runs").len(), 1);
}

/// Symbols that an assembler renames are not looked for.
#[test]
fn versions_of_symbols() {
    let source =
        "__asm__(\".symver old_f,f@V1,remove\"); int old_f(void) { return 1; } int g(void) { return 2; }";
    let link = Link::new(22);
    link.write("a.c", source);
    link.tool(&["clang-22", "-O2", "-flto=thin", "-c", "a.c", "-o", "a.o"]);
    link.write("versions", "V1 { f; };");
    let words = ["--thinlto-index-only", "-shared", "--version-script=versions", "a.o", "-o", "library"];
    link.tool(&[&["ld.lld-22"], &words[..]].concat());
    let (report, retried) = opt(&link, "exec clang-22 \"$@\"");
    assert!(is_done(&report) && retried.is_empty(), "{report:?}");
}
