//! A directory with a program's sources, and its link: planned, run by hand, and by the linker alone.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output};

use distlto_planner::index::{self, IndexError, PlanRequest, Planned};
use distlto_planner::link_command::{self, GivenCommand, Resolved};
use distlto_planner::link_plan::LinkPlan;
use distlto_planner::runner::{Runner, ToolOutput};
use distlto_planner::words::{Word, lossy, path_of, word_of};

use crate::working_directory::WorkingDirectory;

/// The compiler that all links are made with.
pub const CLANG: &str = "clang-22";

/// Runs tools in the process's working directory.
struct Processes;

impl Runner for Processes {
    fn run(&self, command: &[Word]) -> std::io::Result<ToolOutput> {
        let Output { status, stdout, stderr } = Command::new(path_of(&command[0]))
            .args(command[1..].iter().map(|word| OsStr::from_bytes(word)))
            .output()?;
        Ok(ToolOutput { status, stdout, stderr })
    }
}

/// A temporary working directory of the whole process, which one test has at a time.
pub struct Folder {
    directory: WorkingDirectory,
}

impl Folder {
    /// An empty one.
    pub fn new() -> Self {
        Self { directory: WorkingDirectory::enter() }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// With `main.o`, which calls the functions of these names and prints what they return.
    pub fn calling(names: &[&str]) -> Self {
        let folder = Self::new();
        let declared: String = names.iter().map(|name| format!("int {name}(void);\n")).collect();
        let printed: String = names.iter().map(|name| format!("printf(\"%d\\n\", {name}());\n")).collect();
        let text = format!("#include <stdio.h>\n{declared}int main(void) {{\n{printed}return 0;\n}}\n");
        folder.compile("main.o", &text, &["-flto=thin"]);
        folder
    }

    /// Compiles C to an object; `flags` say what kind.
    pub fn compile(&self, object: impl AsRef<OsStr>, text: &str, flags: &[&str]) {
        self.compile_as("c", object, text, flags);
    }

    /// Compiles a language of clang's to an object.
    pub fn compile_as(&self, language: &str, object: impl AsRef<OsStr>, text: &str, flags: &[&str]) {
        let source = self.path().join("source");
        fs::write(&source, text).expect("writing a source");
        let mut clang = Command::new(CLANG);
        clang.args(["-O2", "-c", "-x", language]).args(flags).arg(source);
        succeed(clang.arg("-o").arg(Path::new(".").join(object.as_ref())));
    }

    /// A ThinLTO object with a function that returns a number.
    pub fn thin(&self, object: impl AsRef<OsStr>, function: &str, value: u32) {
        self.compile(object, &returning(function, value), &["-flto=thin"]);
    }

    /// An archive: `rcs`, or `rcsT` for a thin one.
    pub fn archive(&self, kind: &str, archive: &str, members: &[&str]) {
        succeed(Command::new("llvm-ar-22").args([kind, archive]).args(members));
    }
}

/// A function that is not inlined, so that it is called in its own module.
pub fn returning(function: &str, value: u32) -> String {
    format!("__attribute__((noinline)) int {function}(void) {{ return {value}; }}\n")
}

/// Runs a command that must succeed.
pub fn succeed(command: &mut Command) -> Output {
    let output = command.output();
    let output = output.unwrap_or_else(|error| {
        panic!("{command:?}: {error}; install it: apt-get install clang-22 lld-22 llvm-22")
    });
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The driver's command for these inputs.
pub fn command_of<W: AsRef<OsStr>>(output: &str, inputs: &[W]) -> Vec<Word> {
    let fixed = [CLANG, "-O2", "-flto=thin", "-fuse-ld=lld-22", "-o", output].map(OsString::from);
    fixed.into_iter().chain(inputs.iter().map(|word| word.as_ref().to_owned())).map(word_of).collect()
}

/// Plans a link.
pub fn plan_of(command: &[Word], state: &str, compiler: Option<&str>) -> Result<LinkPlan, IndexError> {
    let Resolved::Link(link) = link_command::resolve(&GivenCommand::new(command), &Processes)? else {
        panic!("{CLANG} links with ld.lld");
    };
    let planned = index::plan(PlanRequest {
        link: &link,
        state,
        compiler,
        backend_args: &[],
        flags_from: None,
        store: None,
        runner: &Processes,
        preview: None,
        linker_flags: None,
        identity: None,
    })?;
    match planned {
        Planned::Link(planned, pending) => {
            pending.finish(&planned.plan)?;
            Ok(planned.plan)
        }
        Planned::Unchanged => panic!("the link has ThinLTO inputs"),
    }
}

/// A link that was planned and run by hand.
pub struct Linked {
    pub plan: LinkPlan,
}

impl Linked {
    /// Of these inputs, into `prog`. The plan must come out the same from its own thin link's command, the program
    /// must say what that of the linker's own ThinLTO says, and every file of the graph must be there.
    pub fn of<W: AsRef<OsStr>>(inputs: &[W]) -> Self {
        Self::to("prog", inputs)
    }

    /// The same with another output.
    pub fn to<W: AsRef<OsStr>>(output: &str, inputs: &[W]) -> Self {
        let state = format!("{output}.distlto");
        let plan = plan_of(&command_of(output, inputs), &state, None).expect("a plan");
        let own = &plan.thin_link.command;
        assert_eq!(own[..6], ["distlto-index", "--index", &state, "--compiler", CLANG, "--"]);
        let again: Vec<Word> = own[6..].iter().map(|word| word.clone().into_bytes()).collect();
        assert_eq!(
            plan_of(&again, &state, Some(CLANG)).expect("a plan"),
            plan,
            "the thin link's own command"
        );
        for module in &plan.modules {
            fs::create_dir_all(module.object.parent().expect("a directory")).expect("making it");
            let ran = succeed(Command::new(&plan.backend[0]).args(&plan.backend[1..]).args(&module.args));
            assert_eq!(String::from_utf8_lossy(&ran.stderr), "", "{}", module.id);
        }
        succeed(Command::new(&plan.link.command[0]).args(&plan.link.command[1..]));
        let graph = plan.to_graph().expect("a graph");
        let missing: Vec<_> = graph.files().filter(|path| !path.exists()).collect();
        assert!(missing.is_empty(), "{missing:?}");
        let mut alone = Command::new(CLANG);
        alone.args(command_of("./alone", inputs)[1..].iter().map(|word| OsStr::from_bytes(word)));
        succeed(&mut alone);
        let [ours, theirs] = [Path::new(output), Path::new("alone")]
            .map(|program| succeed(&mut Command::new(Path::new(".").join(program))));
        assert_eq!(String::from_utf8_lossy(&ours.stdout), String::from_utf8_lossy(&theirs.stdout));
        assert!(!ours.stdout.is_empty(), "a program that says nothing proves nothing");
        Self { plan }
    }

    /// The ids of the modules that are compiled, in link order.
    pub fn ids(&self) -> Vec<&str> {
        self.plan.modules.iter().map(|module| module.id.as_str()).collect()
    }

    /// The final link's words without those that the driver adds, with `§` for the state directory.
    pub fn words(&self) -> String {
        let Ok(Resolved::Link(empty)) =
            link_command::resolve(&GivenCommand::new(&command_of("prog", &["-lnone"])), &Processes)
        else {
            panic!("{CLANG} links with ld.lld");
        };
        let mut added: Vec<String> =
            [&empty.linker, empty.line.words()].concat().iter().map(|word| lossy(word)).collect();
        added.retain(|word| word != "-lnone");
        let state = format!("{}.distlto/", self.plan.output);
        // Where the driver's -lgcc was found; lld does without it here.
        let kept = self.plan.link.command.iter().filter(|word| !word.ends_with("/libgcc.a"));
        let kept = kept.filter(|word| match added.iter().position(|of_driver| of_driver == *word) {
            Some(at) => {
                added.swap_remove(at);
                false
            }
            None => **word != self.plan.output,
        });
        kept.map(|word| word.replace(&state, "§")).collect::<Vec<_>>().join(" ")
    }
}
