//! Links that objects in the modules' places would make otherwise: two steps leave them to the linker, and say so.

use std::process::Command;

use anyhow::{Result, ensure};
use distlto_tests::project::Project;
use distlto_tests::run::{fail, succeed};

/// A project of two sources in which the second one is an archive, or lazy; linked in two steps.
fn project(name: &str, first: &str, second: &str, flags: &[&str]) -> Result<Project> {
    let mut project = Project::create(name, &[("main.c", first), ("other.c", second)])?;
    succeed(&mut project.folder.command("%ar rcs libother.a other.o", "")?)?;
    project.objects = vec!["main.o".to_owned(), "libother.a".to_owned()];
    project.flags = flags.iter().map(|&flag| flag.to_owned()).collect();
    project.options = vec!["--two-step"];
    Ok(project)
}

/// What two steps say of the link, and the names that its output exports by lld alone, which are those by distlto.
fn linked(project: &Project) -> Result<(String, String)> {
    let exported = || {
        let mut list = Command::new(project.folder.toolchain.tool("llvm-nm")?);
        list.args(["-D", "--just-symbol-name"]).arg(project.path(&project.output));
        Ok::<_, anyhow::Error>(String::from_utf8(succeed(&mut list)?.stdout)?)
    };
    succeed(&mut project.plain_link()?)?;
    let expected = exported()?;
    let said = String::from_utf8(succeed(&mut project.link()?)?.stderr)?;
    let found = exported()?;
    ensure!(found == expected, "{found} is not {expected}");
    Ok((said, found))
}

/// Symbols of an unpacked archive cannot be hidden by its name.
#[test]
fn libraries_that_are_excluded() -> Result<()> {
    let main = "int other(void);\nint main(void) { return other() - 1; }\n";
    let other = "int other(void) { return 1; }\n";
    let flags = ["-Wl,--export-dynamic,--exclude-libs=libother.a"];
    let (said, exported) = linked(&project("excluded", main, other, &flags)?)?;
    ensure!(exported.contains("main") && !exported.contains("other"), "{exported}");
    let warning = "names libother.a, whose members are linked one by one: the linker links by itself";
    ensure!(said.contains(warning), "{said}");
    // One that only an object names, and that is not on the line.
    let noted = format!("#pragma comment(lib, \"other\")\n{main}");
    let mut project =
        project("excluded-noted", &noted, other, &["-L.", "-Wl,--export-dynamic,--exclude-libs=ALL"])?;
    project.objects.truncate(1);
    let (said, exported) = linked(&project)?;
    ensure!(exported.contains("main") && !exported.contains("other"), "{exported}");
    ensure!(said.contains("whose members are linked one by one: the linker links by itself"), "{said}");
    // What a shared library defines too is exported, lest there be two.
    let main = "int other(void);\nint also(void);\nint main(void) { return other() - also(); }\n";
    let mut project = self::project("excluded-shared", main, other, &["-Wl,--exclude-libs=libother.a"])?;
    project.folder.write("also.c", "int also(void) { return 1; }\n")?;
    for command in [
        "%clang -O2 -c also.c -o also.o",
        "%ar rcs libother.a also.o",
        "%clang -shared -fPIC also.c -o libshared.so",
    ] {
        succeed(&mut project.folder.command(command, "")?)?;
    }
    project.objects.push("libshared.so".to_owned());
    let (said, exported) = linked(&project)?;
    ensure!(!exported.contains("also") && said.contains(warning), "{exported}{said}");
    Ok(())
}

/// The final link finds such an archive again, and a shared library would have it take a module a second time.
#[test]
fn libraries_that_only_an_object_names() -> Result<()> {
    let main = "#pragma comment(lib, \"other\")\nint other(void);\nint entry(void) { return other(); }\n";
    let other = "int also(void) { return 1; }\nint other(void) { return also(); }\n";
    let flags = ["-shared", "-L.", "-Wl,--version-script=version.map"];
    let mut project = project("noted", main, other, &flags)?;
    project.folder.write("version.map", "{ global: entry; local: *; };\n")?;
    project.folder.write("wants.c", "int also(void);\nint wants(void) { return also(); }\n")?;
    succeed(&mut project.folder.command("%clang -shared -fPIC wants.c -o libwants.so", "")?)?;
    project.objects = vec!["main.o".to_owned(), "libwants.so".to_owned()];
    let (said, exported) = linked(&project)?;
    ensure!(exported.contains("entry") && !exported.contains("also"), "{exported}");
    let warning = "a shared library wants a symbol of ./libother.a, which only an object names (.deplibs)";
    ensure!(said.contains(warning), "{said}");
    Ok(())
}

/// What a module defines is weak in its object, from which the linker would take it that nobody needs the wrapper.
#[test]
fn wrapper_that_nothing_defines() -> Result<()> {
    let main = "int f(int);\nint main(int count, char **words) { return f(count); }\n";
    let project = project("wrapper", main, "int f(int x) { return x; }\n", &["-Wl,--wrap=f"])?;
    for mut link in [project.plain_link()?, project.link()?] {
        let (_, said) = fail(&mut link)?;
        ensure!(said.contains("undefined symbol: __wrap_f"), "{said}");
    }
    Ok(())
}

/// A reference to `f` from a module is a weak one when lld resolves it, and as strong as that to `__real_f` later.
#[test]
fn wrapped_function_that_nothing_loaded_defines() -> Result<()> {
    let main = "#include <stdio.h>\n__attribute__((weak)) int f(int);\nint __real_f(int);\nint __wrap_f(int x) { return x; }\n\
                int main(int count, char **words) { return count > 5 ? __real_f(count) : printf(\"%d\\n\", f ? f(4) : 3) - 2; }\n";
    let other = "int f(int x) { return x + 1; }\n";
    let lazy = project("wrapped", main, other, &["-Wl,--wrap=f"])?;
    let (said, _) = linked(&lazy)?;
    ensure!(lazy.say()? == "4\n", "{}", lazy.say()?);
    let warning = "__real_f is called, which --wrap=f makes f, and nothing that is loaded defines f: the linker links by itself";
    ensure!(said.contains(warning), "{said}");
    // With a definition it is a link like any other.
    let loaded = project("wrapped-whole", main, other, &["-Wl,--wrap=f,--whole-archive"])?;
    let objects = [&loaded.objects[..], &["-Wl,--no-whole-archive".to_owned()]].concat();
    let (said, _) = linked(&Project { objects, ..loaded })?;
    ensure!(said.is_empty(), "{said}");
    let main = "int puts(const char *);\nint __real_puts(const char *);\n\
                int __wrap_puts(const char *text) { return __real_puts(text + 1); }\n\
                int main(void) { return puts(\"text\") < 0; }\n";
    let shared = project("wrapped-shared", main, other, &["-Wl,--wrap=puts"])?;
    let (said, _) = linked(&shared)?;
    ensure!(shared.say()? == "ext\n" && said.is_empty(), "{said}");
    Ok(())
}

/// A module's object no longer says what the module has said of symbols: where another definition counts, and where the code
/// that uses them is gone.
#[test]
fn symbols_that_modules_hide() -> Result<()> {
    let hidden = "#define HIDDEN __attribute__((visibility(\"hidden\")))\n";
    let main = format!(
        "{hidden}HIDDEN __attribute__((weak)) int of_native(void) {{ return 1; }}\n\
         HIDDEN __attribute__((weak)) _Thread_local int of_thread = 1;\n\
         HIDDEN int of_module(void);\nint never(void);\n\
         int main(void) {{ return never() ? of_module() : 0; }}\n"
    );
    let other = "int never(void) { return 0; }\nint of_module(void) { return 2; }\n";
    let native = "int of_native(void) { return 3; }\n_Thread_local int of_thread = 3;\nint seen;\n";
    let mut project =
        Project::create("hidden", &[("native.c", native), ("main.c", &main), ("other.c", other)])?;
    succeed(&mut project.folder.command("%clang -O2 -c native.c -o native.o", "")?)?;
    project.flags = vec!["-Wl,--export-dynamic".to_owned()];
    project.options = vec!["--two-step"];
    let (said, exported) = linked(&project)?;
    let names: Vec<&str> =
        exported.lines().filter(|name| ["of_", "seen"].iter().any(|of| name.starts_with(of))).collect();
    ensure!(names == ["seen"] && said.is_empty(), "{exported}{said}");
    // Nor may a shared library define it, which no module's object refers to.
    let user = "int of_module(void);\nint used(void) { return of_module(); }\n";
    project.folder.write("user.c", user)?;
    project.folder.write("shared.c", "int of_module(void) { return 2; }\n")?;
    project.folder.write("never.c", "int never(void) { return 0; }\n")?;
    for command in [
        "%clang -O2 -c user.c -o user.o",
        "%clang -shared -fPIC shared.c -o libshared.so",
        "%clang -O2 -flto=thin -c never.c -o never.o",
    ] {
        succeed(&mut project.folder.command(command, "")?)?;
    }
    let objects = ["native.o", "main.o", "never.o", "user.o", "libshared.so"].map(str::to_owned).to_vec();
    let all = std::mem::replace(&mut project.objects, objects);
    for mut link in [project.plain_link()?, project.link()?] {
        let (_, said) = fail(&mut link)?;
        ensure!(said.contains("undefined hidden symbol: of_module"), "{said}");
    }
    project.objects = all;
    // Where nothing native is linked, nobody can say it in the modules' place.
    project.objects.remove(0);
    project.flags = ["-nostdlib", "-shared"].map(str::to_owned).to_vec();
    let (said, _) = linked(&project)?;
    let warning = "of_module is hidden or aligned by a module whose object does not define it, and no native object is loaded: the linker links by itself";
    ensure!(said.contains(warning), "{said}");
    Ok(())
}

/// Of common symbols the largest alignment counts, though the definition of another file is larger.
#[test]
fn common_symbols_are_aligned_as_modules_say() -> Result<()> {
    let main = "__attribute__((aligned(64))) char first[8], second[8];\nint printf(const char *, ...);\nint off(char *);\n\
                int main(void) { return printf(\"%d\\n\", off(first) + off(second)) < 0; }\n";
    let native = "char first[40], second[40];\nint off(char *at) { return (unsigned long)at % 64; }\n";
    let mut project = Project::create("common", &[("native.c", native), ("main.c", main)])?;
    for command in
        ["%clang -O2 -fcommon -c native.c -o native.o", "%clang -O2 -fcommon -flto=thin -c main.c -o main.o"]
    {
        succeed(&mut project.folder.command(command, "")?)?;
    }
    project.options = vec!["--two-step"];
    let (said, _) = linked(&project)?;
    ensure!(project.say()? == "0\n" && said.is_empty(), "{}{said}", project.say()?);
    Ok(())
}
