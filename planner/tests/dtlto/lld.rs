//! Job files that lld 22 writes while the test runs, and the objects that their commands give.
//!
//! The distributor copies the directory and fails; what it copied is the job as lld left it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use distlto_planner::dtlto::{self, JobFile, cost};

const SOURCES: [(&str, &str); 3] = [
    (
        "a",
        "int foo(int); int bar(int); static int g[64];
         int main(int argc, char **argv) {
             int s = 0;
             for (int i = 0; i < 1000 * argc; i++) { s += foo(i); if (s % 7 == 3) s += bar(i); g[i & 63] = s; }
             return s + g[5];
         }",
    ),
    ("b", "int bar(int); int ext; int foo(int x) { return x % 3 ? x << (x & 31) : bar(x) + ext; }"),
    (
        "c",
        "int tab[16];
         int bar(int x) {
             switch (x & 7) {
             case 0: return tab[x & 15]; case 1: return x * 3; case 2: return x - 8; case 3: return 11;
             default: return x ^ 5;
             }
         }",
    ),
];

/// Three modules, to be linked in several ways.
pub struct Program {
    directory: tempfile::TempDir,
}

impl Program {
    /// Compiles the modules with these flags.
    pub fn compile(flags: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(directory.path().join("src")).expect("a directory");
        let program = Self { directory };
        for (name, text) in SOURCES {
            fs::write(program.src().join(format!("{name}.c")), text).expect("written");
            let mut clang = Command::new("clang-22");
            clang
                .args(["-c", "-O2", "-flto=thin", &format!("{name}.c"), "-o", &format!("{name}.o")])
                .args(flags);
            run(clang.current_dir(program.src()));
        }
        program
    }

    /// Compiles the modules by way of LLVM's text, without what clang says of each function: its processor and more.
    pub fn without_attributes() -> Self {
        let program = Self::compile(&["-S", "-emit-llvm"]);
        for (name, _) in SOURCES {
            let text = fs::read_to_string(program.src().join(format!("{name}.o"))).expect("LLVM's text");
            let plain = text.lines().map(|line| match line.split_once(" = {") {
                Some((group, _)) if line.starts_with("attributes ") => format!("{group} = {{ nounwind }}\n"),
                _ => format!("{line}\n"),
            });
            fs::write(program.src().join(format!("{name}.ll")), plain.collect::<String>()).expect("written");
            let mut clang = Command::new("clang-22");
            clang.args(["-c", "-O2", "-flto=thin", &format!("{name}.ll"), "-o", &format!("{name}.o")]);
            run(clang.current_dir(program.src()));
        }
        program
    }

    fn src(&self) -> PathBuf {
        self.directory.path().join("src")
    }

    fn lld(&self, options: &[String]) -> Command {
        let mut lld = Command::new("ld.lld-22");
        lld.args(["-e", "main", "--unresolved-symbols=ignore-all", "-m", "elf_x86_64", "a.o", "b.o", "c.o"]);
        lld.args(options).current_dir(self.src());
        lld
    }

    /// Digests of the objects of lld's own LTO, in the order of the modules. Whether they can be linked then does not
    /// matter here.
    pub fn own_objects(&self, options: &[String]) -> Vec<Digest> {
        let own = self.directory.path().join("own");
        let _ = fs::remove_dir_all(&own);
        fs::create_dir(&own).expect("a directory");
        let mut lld = self.lld(options);
        lld.arg("-o").arg(own.join("program")).arg(format!("--lto-obj-path={}", own.join("o").display()));
        let output = lld.output().expect("ld.lld-22 (apt-get install lld-22)");
        let said = String::from_utf8_lossy(&output.stderr);
        let read =
            |task| fs::read(own.join(format!("o{task}"))).unwrap_or_else(|_| panic!("{lld:?}: {said}"));
        (1..=3).map(|task| digest(&read(task))).collect()
    }

    /// The job file that lld writes for its distributor, and the directory with its shards.
    pub fn job_file(&self, options: &[String]) -> (JobFile, PathBuf) {
        let kept = self.directory.path().join("kept");
        let _ = fs::remove_dir_all(&kept);
        let distributor = self.directory.path().join("distributor");
        fs::write(&distributor, "#!/bin/sh\ncp -r . \"$1\"\nexit 1\n").expect("written");
        fs::set_permissions(&distributor, fs::Permissions::from_mode(0o755)).expect("made executable");
        let output = self
            .lld(options)
            .args(["-o", "program"])
            .arg(format!("--thinlto-distributor={}", distributor.display()))
            .arg(format!("--thinlto-distributor-arg={}", kept.display()))
            .arg("--thinlto-remote-compiler=clang-22")
            .output()
            .expect("ld.lld-22 (apt-get install lld-22)");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("distributor execution failed"), "{said}");
        let path = find(&kept, "dist-file.json");
        let name = path.display().to_string();
        (
            dtlto::read(&fs::read(&path).expect("a job file"), &name)
                .unwrap_or_else(|error| panic!("{error}")),
            kept,
        )
    }

    /// Digests of the objects of that job file's commands, in its order.
    pub fn distributed_objects(&self, options: &[String]) -> Vec<Digest> {
        let (file, kept) = self.job_file(options);
        let compile = |&job| {
            let command = file.graph.command(job);
            run(Command::new(command[0]).args(&command[1..]).current_dir(&kept));
            digest(&fs::read(kept.join(file.object(job))).expect("an object"))
        };
        file.jobs.iter().map(compile).collect()
    }
}

/// What an object is compared by; short in messages.
pub type Digest = blake3::Hash;

fn digest(object: &[u8]) -> Digest {
    assert!(!object.is_empty());
    blake3::hash(object)
}

fn find(directory: &Path, suffix: &str) -> PathBuf {
    let entries =
        fs::read_dir(directory).expect("the distributor ran").map(|entry| entry.expect("an entry").path());
    let mut found = entries.filter(|path| path.to_str().is_some_and(|path| path.ends_with(suffix)));
    found.next().expect("a job file")
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| {
        panic!("{command:?}: {error} (apt-get install clang-22 lld-22)");
    });
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_commands_of_a_link_give_the_objects_of_its_own_lto() {
    let program = Program::compile(&[]);
    let options = ["-pie".to_owned()];
    assert_eq!(program.distributed_objects(&options), program.own_objects(&options));
}

#[test]
fn costs_come_from_shards_or_from_sizes() {
    let program = Program::compile(&[]);
    let (mut file, kept) = program.job_file(&["-pie".to_owned()]);
    cost::set_costs(&mut file, Some(&kept));
    let costs =
        |file: &JobFile| -> Vec<u64> { file.jobs.iter().map(|&job| file.graph.action(job).cost).collect() };
    let known = costs(&file);
    // The module that imports both others has most to do.
    assert!(known[0] > known[1] && known[0] > known[2] && known[1] > 0 && known[2] > 0, "{known:?}");
    for &job in &file.jobs {
        fs::write(kept.join(file.shard(job)), "no shard").expect("written");
    }
    cost::set_costs(&mut file, Some(&kept));
    let by_size = costs(&file);
    assert!(by_size.iter().all(|&cost| cost > 0) && by_size != known, "{by_size:?}");
    fs::remove_dir_all(&kept).expect("removed");
    cost::set_costs(&mut file, Some(&kept));
    assert_eq!(costs(&file), [0, 0, 0]);
}

#[test]
fn lld_without_a_compiler_is_told_apart() {
    let program = Program::compile(&[]);
    let kept = program.directory.path().join("kept");
    let distributor = program.directory.path().join("distributor");
    program.job_file(&["-pie".to_owned()]);
    fs::remove_dir_all(&kept).expect("removed");
    let mut lld = program.lld(&["-pie".to_owned(), "-o".to_owned(), "program".to_owned()]);
    lld.arg(format!("--thinlto-distributor={}", distributor.display()));
    lld.arg(format!("--thinlto-distributor-arg={}", kept.display()));
    lld.output().expect("ld.lld-22 (apt-get install lld-22)");
    let bytes = fs::read(find(&kept, "dist-file.json")).expect("a job file");
    let error = dtlto::read(&bytes, "jobs").expect_err("no compiler").to_string();
    assert!(error.contains("common.args[0]: the compiler's name is empty"), "{error}");
}
