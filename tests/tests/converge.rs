//! Builds end: after an input was touched, a build that goes by times asks for the link once, and then no more.
//!
//! With real ninja, GNU make and CMake. The link that the touch asks for runs no backend and leaves the program's content as
//! it is, but newer than what asked for it.

use std::fs;
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::succeed;
use distlto_tests::toolchain::{Toolchain, system_tool};

/// A build of two modules by one build system.
struct Build {
    folder: Folder,
    tool: &'static str,
    arguments: Vec<String>,
}

impl Build {
    fn new(name: &str, tool: &'static str) -> Result<Self> {
        let folder = Folder::create(Toolchain::from_env()?, &format!("converge/{name}"))?;
        folder.write("main.c", "int f(int); int main(int n, char **v) { return f(n); }\n")?;
        folder.write("f.c", "__attribute__((noinline)) int f(int n) { return n * 7; }\n")?;
        folder.write("unread", "")?;
        Ok(Self { folder, tool, arguments: Vec::new() })
    }

    fn clang(&self) -> Result<String> {
        Ok(self.folder.toolchain.tool("clang")?.display().to_string())
    }

    /// The link, which writes down that it ran and what it told.
    fn link(&self, objects: &str, output: &str) -> Result<String> {
        let (distlto, clang) = (distlto::binary()?.display(), self.clang()?);
        Ok(format!("{distlto} link -v -- {clang} -O2 -flto=thin -fuse-ld=lld {objects} -o {output} 2>>log"))
    }

    /// Builds; gives what the links told, nothing if there were none.
    fn build(&self) -> Result<String> {
        let log = self.folder.path.join("log");
        fs::write(&log, "")?;
        let mut command = Command::new(system_tool(self.tool)?);
        succeed(command.args(&self.arguments).current_dir(&self.folder.path))?;
        Ok(fs::read_to_string(log)?)
    }

    /// Builds twice, touches a file, and builds twice again.
    fn converges(&self, touched: &str, program: &str) -> Result<()> {
        let program = self.folder.path.join(program);
        let links = self.build()?;
        ensure!(links.contains("2 of 2 backends"), "the first build links: {links}");
        let links = self.build()?;
        ensure!(links.is_empty(), "the second build links: {links}");
        let before = fs::read(&program)?;
        // Later than every output by more than any clock's tick; not in the future, as tools warn of that.
        std::thread::sleep(Duration::from_millis(60));
        fs::File::options()
            .write(true)
            .open(self.folder.path.join(touched))?
            .set_modified(SystemTime::now())?;
        let links = self.build()?;
        let idle = links.contains("nothing to do") || links.contains(" 0 of 2 backends");
        ensure!(idle, "the build after the touch: {links:?}");
        ensure!(fs::read(&program)? == before, "the program differs");
        let links = self.build()?;
        ensure!(links.is_empty(), "the build after that links again: {links}");
        Ok(())
    }
}

fn ninja(name: &str) -> Result<Build> {
    let build = Build::new(name, "ninja")?;
    let (clang, link) = (build.clang()?, build.link("$in", "$out")?);
    let text = format!(
        "rule cc\n  command = {clang} -O2 -flto=thin -c $in -o $out\nrule link\n  command = {link}\n\
         build main.o: cc main.c\nbuild f.o: cc f.c\nbuild program: link main.o f.o | unread\n"
    );
    build.folder.write("build.ninja", text)?;
    Ok(build)
}

fn make(name: &str) -> Result<Build> {
    let build = Build::new(name, "make")?;
    let (clang, link) = (build.clang()?, build.link("main.o f.o", "$@")?);
    let text =
        format!("program: main.o f.o unread\n\t{link}\n%.o: %.c\n\t{clang} -O2 -flto=thin -c $< -o $@\n");
    build.folder.write("Makefile", text)?;
    Ok(build)
}

#[test]
fn ninja_stops_asking() -> Result<()> {
    ninja("ninja")?.converges("main.o", "program")
}

#[test]
fn make_stops_asking() -> Result<()> {
    make("make")?.converges("main.o", "program")
}

/// What makes a build system ask need not be anything that the link reads.
#[test]
fn what_the_link_does_not_read_asks_once() -> Result<()> {
    ninja("ninja-unread")?.converges("unread", "program")?;
    make("make-unread")?.converges("unread", "program")
}

#[test]
fn cmake_stops_asking() -> Result<()> {
    for generator in ["Ninja", "Unix Makefiles"] {
        let mut build = Build::new(&format!("cmake-{}", generator.replace(' ', "-")), "cmake")?;
        let text = format!(
            "cmake_minimum_required(VERSION 3.20)\nproject(p C)\nadd_compile_options(-O2 -flto=thin)\n\
             add_link_options(-O2 -flto=thin -fuse-ld=lld)\nadd_executable(program main.c f.c)\n\
             set_property(TARGET program PROPERTY RULE_LAUNCH_LINK \"{}/launch\")\n",
            build.folder.path.display()
        );
        build.folder.write("CMakeLists.txt", text)?;
        let script = format!(
            "#!/bin/sh\nexec {} link -v -- \"$@\" 2>>{}/log\n",
            distlto::binary()?.display(),
            build.folder.path.display()
        );
        let launch = build.folder.write("launch", script)?;
        fs::set_permissions(&launch, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        let mut configure = Command::new(system_tool("cmake")?);
        configure.args(["-S", ".", "-B", "build", "-G", generator]);
        configure.arg(format!("-DCMAKE_C_COMPILER={}", build.clang()?));
        succeed(configure.current_dir(&build.folder.path))?;
        build.arguments = ["--build", "build"].map(str::to_owned).to_vec();
        build
            .converges("build/CMakeFiles/program.dir/main.c.o", "build/program")
            .map_err(|error| error.context(generator))?;
    }
    Ok(())
}
