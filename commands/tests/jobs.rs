//! `distlto jobs`: its forms, read back by what they are for, and what it says of link commands.

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use clap::{Args, FromArgMatches};
use distlto_commands::jobs::{self, JobFormat, JobsArgs, JobsError};
use distlto_planner::dtlto::{self, JobFile};
use distlto_planner::graph::json;
use distlto_planner::runner::{Runner, ToolOutput};
use distlto_planner::words::Word;
use distlto_prepare::exit;

/// Name and bytes of the planner's job files, which lld wrote.
fn files() -> Vec<(String, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../planner/tests/data/dtlto");
    let entries = fs::read_dir(directory).expect("test data").map(|entry| entry.expect("an entry").path());
    let of = |path: PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name in UTF-8").to_owned();
        (name, fs::read(&path).expect("test data"))
    };
    let mut files: Vec<_> = entries.map(of).collect();
    files.sort();
    files
}

/// A driver that answers every question with these words on standard error.
struct Driver(&'static str);

impl Runner for Driver {
    fn run(&self, command: &[Word]) -> io::Result<ToolOutput> {
        assert_eq!(command.last().map(Vec::as_slice), Some(&b"-###"[..]));
        let stderr = self.0.as_bytes().to_vec();
        Ok(ToolOutput { status: ExitStatus::from_raw(0), stdout: Vec::new(), stderr })
    }
}

fn form(file: &JobFile, form: JobFormat) -> Vec<u8> {
    let mut text = Vec::new();
    jobs::write_as(file, form, &mut text).expect("memory");
    text
}

#[test]
fn a_shell_reads_the_words_of_every_command() {
    for (name, bytes) in files() {
        let file = dtlto::read(&bytes, &name).expect("a job file");
        let commands = String::from_utf8(form(&file, JobFormat::Commands)).expect("UTF-8");
        let script: String = commands.lines().map(|line| format!("printf '%s\\0' {line}\n")).collect();
        let said = Command::new("sh").arg("-c").arg(script).output().expect("a shell").stdout;
        let said = String::from_utf8(said).expect("UTF-8");
        let words: Vec<_> = said.split_terminator('\0').collect();
        let expected: Vec<_> = file.jobs.iter().flat_map(|&job| file.graph.command(job)).collect();
        assert_eq!(words, expected, "{name}");
    }
}

#[test]
fn the_other_forms_are_read_back() {
    for (name, bytes) in files() {
        let file = dtlto::read(&bytes, &name).expect("a job file");
        assert_eq!(
            json::read(&form(&file, JobFormat::Graph)).expect("an action graph"),
            file.graph,
            "{name}"
        );
        assert_eq!(dtlto::read(&form(&file, JobFormat::Jobs), &name).expect("a job file"), file, "{name}");
    }
}

#[test]
fn a_driver_is_told_in_its_own_spelling() {
    let driver = Driver(
        " \"/usr/bin/ld.lld\" \"-pie\" \"a.o\" \"-plugin-opt=mcpu=x86-64\" \"-plugin-opt=cs-profile-generate\" \
         \"-plugin-opt=cs-profile-path=default_%m.profraw\" \"-mllvm\" \"-a,b\"\n",
    );
    let command = [b"clang".to_vec(), b"a.o".to_vec()];
    let said = jobs::check_line(&command, &driver).expect("a link");
    let expected = "-plugin-opt=cs-profile-generate: the compiler is not told to instrument, so running the program \
                    leaves no profile; add -Wl,--thinlto-remote-compiler-arg=-fcs-profile-generate\n\
                    -mllvm -a,b: lld does not tell the compiler; add \
                    -Wl,--thinlto-remote-compiler-arg=-mllvm -Xlinker --thinlto-remote-compiler-arg=-a,b\n";
    assert_eq!(said, expected);
    let command = ["ld.lld", "-pie", "a.o", "-mllvm", "-a,b"].map(|word| word.as_bytes().to_vec());
    let said = jobs::check_line(&command, &driver).expect("a link");
    assert!(
        said.ends_with("add --thinlto-remote-compiler-arg=-mllvm --thinlto-remote-compiler-arg=-a,b\n"),
        "{said}"
    );
    let command = ["ld.lld", "-pie", "a.o"].map(|word| word.as_bytes().to_vec());
    let said = jobs::check_line(&command, &driver).expect("a link");
    assert_eq!(said, "lld passes every option of this link line on to the compiler\n");
}

#[test]
fn what_is_no_job_file_and_no_link_is_said() {
    let parse = |words: &[&str]| {
        let parser = JobsArgs::augment_args(clap::Command::new("jobs"));
        parser
            .try_get_matches_from([&["jobs"], words].concat())
            .map(|found| JobsArgs::from_arg_matches(&found).expect("what was parsed"))
    };
    let run =
        |words: &[&str]| jobs::run(&parse(words).expect("arguments"), &Driver("")).expect_err("refused");
    let missing = run(&["no/such/file.json"]);
    assert!(matches!(missing, JobsError::Missing { .. }), "{missing}");
    assert_eq!(exit::code_of(&missing), 3);
    let other = run(&["--check-line", "--", "ld.bfd", "a.o"]);
    assert!(matches!(other, JobsError::NotALink), "{other}");
    assert_eq!(exit::code_of(&other), 2);
    for wrong in [&[][..], &["--check-line"], &["x.json", "--", "ld.lld"], &["x.json", "--to", "x"]] {
        assert!(parse(wrong).is_err(), "{wrong:?}");
    }
}
