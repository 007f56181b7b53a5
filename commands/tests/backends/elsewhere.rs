//! An executor of one's own: all that it needs stands in the description, and its results are checked as local ones are.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use distlto_executor::action::{ActionInput, InputContent};
use distlto_executor::attempt::{self, Context, JobAttempt};
use distlto_executor::cancel::Cancel;
use distlto_executor::cause::Cause;
use distlto_executor::describe::{Describer, Platform, Toolchains};
use distlto_executor::execute::cc1::Cc1Commands;
use distlto_executor::execute::drivers::Drivers;
use distlto_executor::execute::local::Local;
use distlto_executor::execute::process::GRACE;
use distlto_executor::execute::spawn::PLAIN;
use distlto_executor::execute::{Execute, Executed, ExecutionRequest};
use distlto_executor::job::Job;
use distlto_executor::output::Role;
use distlto_executor::schedule::Site;
use distlto_executor::staging::StagingArea;
use distlto_executor::undeclared::Undeclared;
use distlto_executor::verify::{Backend, Modules, Refusal};
use distlto_planner::digests::{Digest, FileDigests};
use distlto_record::action::EngineTimes;
use distlto_record::report::{Measured, Span};

use super::common::Link;

/// Executes what a description says, in a directory that holds what it names and nothing else.
struct Elsewhere<'a> {
    from: &'a Path,
    place: &'a Path,
    returns_outputs: bool,
}

impl Execute for Elsewhere<'_> {
    fn execute(&self, request: &ExecutionRequest<'_>) -> Result<Executed, Cause> {
        let described = request.described.expect("a description");
        assert_eq!(described.local_only, None);
        let action = &described.action;
        for ActionInput { name, digest, content, .. } in &action.inputs {
            let bytes = match content {
                InputContent::File(file) => fs::read(self.from.join(&**file)).expect("an input"),
                InputContent::Bytes(bytes) => bytes.clone(),
            };
            assert_eq!(Digest::of(&bytes), *digest, "{name}");
            fs::write(self.place.join(&**name), bytes).expect("room");
        }
        let mut command = Command::new(&*action.words[0]);
        command.args(action.words[1..].iter().map(|word| &**word)).current_dir(self.place).env_clear();
        let path = std::env::var_os("PATH").expect("a PATH");
        command.env("PATH", path).envs(action.environment.iter().cloned());
        let begun = Instant::now();
        let ran = command.output().expect("a compiler");
        let outputs = request.outputs.iter().zip(&action.outputs);
        for (output, (name, _)) in outputs.filter(|_| self.returns_outputs) {
            fs::copy(self.place.join(&**name), &output.file).expect("an output");
        }
        Ok(Executed {
            undeclared: Undeclared::default(),
            status: ran.status,
            stdout: ran.stdout.as_slice().into(),
            stderr: ran.stderr.as_slice().into(),
            measured: Measured::default(),
            span: Span::since(begun),
            interrupted: false,
            worker: Some("elsewhere".to_owned()),
            times: EngineTimes::default(),
            kept: false,
            same_imports: None,
        })
    }
}

/// Compiles `a.o` to `out/a.o`.
fn compile(link: &Link, execute: &dyn Execute, cancel: &Cancel) -> JobAttempt {
    let directory = Some(link.place.path());
    let digests = FileDigests::new(link.place.path());
    let answers = Cc1Commands::default();
    let drivers = Drivers { answers: &answers, spawner: &PLAIN, cancel, grace: GRACE, directory };
    let toolchains = Toolchains::new(None);
    let describer = Describer::new(&toolchains, &drivers, &digests, directory, Platform::default())
        .expect("a name in UTF-8");
    let index = "-fthinlto-index=a.o.thinlto.bc";
    let job = Job {
        label: "a.o".to_owned(),
        words: [&link.clang, "-c", "-O2", "-fPIC", "a.o", index, "-o", "out/a.o"].map(str::to_owned).to_vec(),
        backend: Some(Backend {
            module: "a.o".to_owned(),
            shard: "a.o.thinlto.bc".to_owned(),
            others: vec!["b.o".to_owned()],
        }),
        outputs: vec![("out/a.o".into(), Role::Object)],
    };
    let context = Context {
        execute,
        cancel,
        modules: &Modules::new(directory),
        directory,
        expected: None,
        staging: &StagingArea::new(directory, None),
        digests: &digests,
        describer: Some(&describer),
        caches: &[],
        linker: None,
    };
    let attempt = attempt::run(&job, Site::Here, Duration::ZERO, &context);
    assert_eq!(toolchains.troubles(), Vec::<String>::new());
    attempt
}

#[test]
fn a_description_is_all_that_another_machine_needs() {
    let (link, cancel) = (Link::new(22), Cancel::new().unwrap());
    let directory = Some(link.place.path());
    let local = Local { spawner: &PLAIN, grace: GRACE, directory, drivers: None };
    compile(&link, &local, &cancel).result.expect("an object");
    let expected = link.read("out/a.o");
    fs::remove_file(link.path("out/a.o")).unwrap();

    let place = tempfile::tempdir().unwrap();
    let elsewhere = Elsewhere { from: link.place.path(), place: place.path(), returns_outputs: true };
    let attempt = compile(&link, &elsewhere, &cancel);
    attempt.result.expect("an object");
    assert_eq!(attempt.executed.and_then(|executed| executed.worker).as_deref(), Some("elsewhere"));
    assert_eq!(link.read("out/a.o"), expected);
    assert_eq!(link.temporaries(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn success_without_an_output_is_refused_wherever_it_was() {
    let (link, cancel) = (Link::new(22), Cancel::new().unwrap());
    let place = tempfile::tempdir().unwrap();
    let elsewhere = Elsewhere { from: link.place.path(), place: place.path(), returns_outputs: false };
    let cause = compile(&link, &elsewhere, &cancel).result.expect_err("no object");
    assert!(matches!(cause.refusal(), Some(Refusal::NoOutput { .. })), "{cause}");
    assert!(!link.path("out/a.o").exists());
}
