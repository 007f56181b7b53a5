//! What a compiler driver says, reads and writes besides linking.

use anyhow::{Result, ensure};

use super::{Pair, without_random_names};

const WARNED: [(&str, &str); 2] = [
    ("w.c", "int c(int);\nint main(void) { int unused; return c(1) - 1; }\n"),
    ("c.c", "static int nobody(void) { return 1; }\nint c(int x) { return x; }\n"),
];

#[test]
fn a_source_on_standard_input_is_compiled() -> Result<()> {
    let pair = Pair::create("standard-input")?;
    let source = "int b(int); int main(void) { return b(3); }";
    pair.same_program(&format!(
        "echo '{source}' | $link %clang -O2 -flto=thin -fuse-ld=lld -x c - -x none b.o -o P"
    ))?;
    Ok(())
}

#[test]
fn a_source_from_a_pipe_is_compiled() -> Result<()> {
    let pair = Pair::create("source-pipe")?;
    pair.same_program("$link %clang -O2 -flto=thin -fuse-ld=lld -x c <(cat a.c) b.c -o P")?;
    Ok(())
}

/// What comes through a pipe is another content under the same name.
#[test]
fn what_comes_through_a_pipe_is_read_again() -> Result<()> {
    let pair = Pair::create("pipe-again")?;
    let link = "$link %clang -O2 -flto=thin -fuse-ld=lld";
    for words in ["-x c - -o P < main.c", "-x c <(cat main.c) -o P", "@<(echo $object) -o P"] {
        for code in [1, 2, 3] {
            pair.write("main.c", &format!("int main(void) {{ return {code}; }}\n"))?;
            pair.both(&format!("%clang -O2 -flto=thin -c main.c -o main-{code}.o"))?;
            // Old enough to be relied on.
            let age = "find . -name '*.[co]' -exec touch -d '1 hour ago' {} +";
            let ended = pair.same(&format!("{age}; object=main-{code}.o; {link} {words}; ./P"))?;
            ensure!(ended.code == Some(code), "{words}: {ended:?}");
        }
    }
    let ended =
        pair.same(&format!("mkfifo pipe; cat main.c > pipe & {link} -x c pipe -o Q; rm pipe; ./Q"))?;
    ensure!(ended.code == Some(3), "{ended:?}");
    let ended =
        pair.same(&format!("mkfifo pipe; sed s/3/4/ main.c > pipe & {link} -x c pipe -o Q; rm pipe; ./Q"))?;
    ensure!(ended.code == Some(4), "{ended:?}");
    Ok(())
}

#[test]
fn compilers_warn() -> Result<()> {
    let pair = Pair::create("warnings")?;
    WARNED.iter().try_for_each(|(name, text)| pair.write(name, text))?;
    let ended = pair.same("$link %clang -Wall -flto=thin -fuse-ld=lld w.c c.c -o P")?;
    ensure!(
        ended.stderr.contains("unused variable") && ended.stderr.contains("unused function"),
        "{ended:?}"
    );
    pair.asked()
}

#[test]
fn a_compiler_that_fails_ends_the_command() -> Result<()> {
    let pair = Pair::create("compile-error")?;
    pair.write("c.c", "int c(int x) { return y; }\n")?;
    let ended = pair.same("$link %clang -flto=thin -fuse-ld=lld a.c c.c -o P")?;
    ensure!(ended.code == Some(1) && ended.stderr.contains("undeclared identifier"), "{ended:?}");
    Ok(())
}

#[test]
fn what_a_command_would_run_is_printed_and_not_run() -> Result<()> {
    let pair = Pair::create("would-run")?;
    for script in [
        "$link %clang '-###' -flto=thin -fuse-ld=lld a.o b.o -o P",
        "$link %clang '-###' -flto=thin -fuse-ld=lld a.c b.c -o P",
        "$link %clang --version",
        "$link %lld --version",
        "$link %clang -print-search-dirs",
        "$link %clang --help",
    ] {
        let ended = pair.same_but(script, without_random_names)?;
        ensure!(ended.code == Some(0) && !pair.served.path.join("P").exists(), "{script}: {ended:?}");
    }
    Ok(())
}

#[test]
fn a_verbose_driver_says_the_same() -> Result<()> {
    let pair = Pair::create("verbose")?;
    for script in [
        "$link %clang -v -flto=thin -fuse-ld=lld a.o b.o -o P",
        "$link %clang -v -flto=thin -fuse-ld=lld a.c b.c -o P",
        "$link %clang -v -flto=thin -fuse-ld=lld -Wl,--verbose a.o b.o -o P",
        "$link %clang -flto=thin -fuse-ld=lld -Wl,-t a.o b.o -o P",
    ] {
        let ended = pair.same_but(script, without_random_names)?;
        ensure!(ended.code == Some(0) && pair.served.path.join("P").exists(), "{script}: {ended:?}");
    }
    pair.asked()
}

/// Also where there is nothing to do.
#[test]
fn what_is_asked_for_is_printed_each_time() -> Result<()> {
    let pair = Pair::with_names("printed-again")?;
    for words in ["-v", "-H", "-Wl,-t", "-Wl,-M", "-Xlinker --cref", "-Wl,--print-memory-usage", "-Wl,-Map=-"]
    {
        let script = format!("$link %clang -flto=thin -fuse-ld=lld {words} a.o b.o -o P");
        let first = pair.same_but(&script, without_random_names)?;
        let second = pair.same_but(&script, without_random_names)?;
        ensure!(
            first == second && (words == "-H" || first.stdout.len() + first.stderr.len() > 0),
            "{second:?}"
        );
    }
    Ok(())
}

#[test]
fn a_compiler_keeps_what_it_is_asked_to_keep() -> Result<()> {
    for (name, option) in
        [("plain", "-save-temps"), ("beside", "-save-temps=obj"), ("here", "--save-temps=cwd")]
    {
        let pair = Pair::create(&format!("save-temps-{name}"))?;
        pair.same_program(&format!("$link %clang {option} -flto=thin -fuse-ld=lld a.c b.c -o P"))?;
        ensure!(pair.served.path.join("a.i").exists() || pair.served.path.join("P-a.i").exists(), "{option}");
    }
    Ok(())
}

#[test]
fn a_linker_keeps_what_it_is_asked_to_keep() -> Result<()> {
    let pair = Pair::create("linker-save-temps")?;
    pair.same("$link %clang -flto=thin -fuse-ld=lld -Wl,--save-temps a.o b.o -o P")?;
    ensure!(
        pair.served.path.join("P.0.2.internalize.bc").exists()
            || pair.served.path.join("P.resolution.txt").exists()
    );
    Ok(())
}

#[test]
fn headers_are_listed() -> Result<()> {
    let pair = Pair::create("headers")?;
    pair.write("h.h", "int b(int);\n")?;
    pair.write("a.c", "#include \"h.h\"\nint main(void) { return b(3); }\n")?;
    let ended = pair.same_program("$link %clang -H -flto=thin -fuse-ld=lld a.c b.c -o P")?;
    ensure!(ended.stderr.contains(". ./h.h"), "{ended:?}");
    pair.same_program("$link %clang -MMD -MF deps.d -flto=thin -fuse-ld=lld a.c b.o -o P")?;
    Ok(())
}

#[test]
fn times_are_reported() -> Result<()> {
    let pair = Pair::create("times")?;
    // How long it takes differs, and so does the order of what took how long.
    let titles = |text: String| {
        let titles = text.lines().filter(|line| line.contains("eport") && !line.contains("===---"));
        titles.map(|title| format!("{}\n", title.trim())).collect::<String>()
    };
    let ended =
        pair.same_but("$link %clang -ftime-report -O2 -flto=thin -fuse-ld=lld a.c b.c -o P", titles)?;
    ensure!(ended.stderr.contains("Clang"), "{ended:?}");
    Ok(())
}

#[test]
fn options_may_come_from_a_pipe() -> Result<()> {
    let pair = Pair::create("options-pipe")?;
    pair.same_program("$link %clang -O2 -flto=thin -fuse-ld=lld @<(echo a.o b.o -o P)")?;
    pair.same_program("$link %clang @<(echo -O2 -flto=thin -fuse-ld=lld a.o b.o -o P)")?;
    pair.same("$link %clang @<(echo -O2 -flto=thin -fuse-ld=lld a.o b.o -o other) -Wl,--build-id")?;
    ensure!(pair.served.path.join("other").exists());
    Ok(())
}

#[test]
fn a_link_of_several_steps_is_linked() -> Result<()> {
    let pair = Pair::create("script")?;
    pair.write(
        "build.sh",
        "set -e\necho begins\n$CC -O2 -flto=thin -c a.c b.c\necho compiled >&2\n$CC -flto=thin -fuse-ld=lld a.o b.o -o P\n",
    )?;
    let ended = pair.same_program("CC=%clang $link sh build.sh")?;
    ensure!(ended.stdout == "begins\n" && ended.stderr == "compiled\n", "{ended:?}");
    Ok(())
}
