//! Real links that run at once, and one ledger between them.
//!
//! Each backend writes down when it begins and ends. What it held at most is what the system has measured of it, as the
//! link's history tells. Who was first to begin waits until so many run, so that no test depends on who is quick.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use distlto_executor::ledger::Ledger;
use distlto_executor::schedule::memory::System;
use distlto_record::run;
use distlto_tests::distlto;
use distlto_tests::project::Project;
use distlto_tests::run::{capture, succeed, told};
use distlto_tests::toolchain::{helper, system_tool};
use serde_json::Value;
use tempfile::TempDir;

const MODULES: usize = 4;

/// Links of programs of their own that share a ledger and a log.
struct Links {
    shared: TempDir,
    projects: Vec<Project>,
}

impl Links {
    fn create(name: &str, count: usize) -> Result<Self> {
        let shared = tempfile::tempdir()?;
        let declared: String = (0..MODULES).map(|n| format!("int f{n}(int);\n")).collect();
        let sum: Vec<String> = (0..MODULES).map(|n| format!("f{n}(0)")).collect();
        let mut sources = vec![(
            "main.c".to_owned(),
            format!("{declared}int main(void) {{ return {} - 100; }}\n", sum.join(" + ")),
        )];
        // No module needs the code of another one, so that all are about as large.
        let body = |n: usize| format!("__attribute__((noinline)) int f{n}(int x) {{ return x + 25; }}\n");
        sources.extend((0..MODULES).map(|n| (format!("f{n}.c"), body(n))));
        let sources: Vec<_> = sources.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let create = |at| Project::create(&format!("ledger/{name}{at}"), &sources);
        Ok(Self { shared, projects: (0..count).map(create).collect::<Result<_>>()? })
    }

    fn log(&self) -> PathBuf {
        self.shared.path().join("log")
    }

    /// Has each backend write down when it begins, wait until so many run, run `then`, compile, and write down its end.
    fn meet(&self, count: usize, then: &str) -> Result<()> {
        fs::write(self.log(), "")?;
        let together = self.shared.path().join("together");
        let _ = fs::remove_file(&together);
        for (at, project) in self.projects.iter().enumerate() {
            let rule = format!(
                "echo \"+ {at} $module\" >> {log}\n\
                 tries=0\n\
                 until [ -e {together} ]; do\n\
                 now=$(($(grep -c '^+' {log}) - $(grep -c '^-' {log})))\n\
                 [ $now -lt {count} ] || : > {together}\n\
                 tries=$((tries + 1))\n\
                 [ $tries -lt 3000 ] || {{ echo 'nobody else came' >&2; exit 1; }}\n\
                 sleep 0.02\n\
                 done\n\
                 {then}\n\
                 sleep 0.05\n\
                 \"$clang\" \"$@\"\n\
                 status=$?\n\
                 echo \"- {at} $module\" >> {log}\n\
                 exit $status\n",
                log = self.log().display(),
                together = together.display(),
            );
            project.folder.write("tools/rule", rule)?;
        }
        Ok(())
    }

    fn link(&self, at: usize, options: &[&str]) -> Result<Command> {
        let mut link = self.projects[at].link_with(options)?;
        self.environment(&mut link);
        Ok(link)
    }

    /// The ledger is what is asked about, not the slots of the make that runs this.
    fn environment<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        for name in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CARGO_MAKEFLAGS"] {
            command.env_remove(name);
        }
        command.env("DISTLTO_LEDGER", self.shared.path().join("ledger"))
    }

    /// Runs all links at once; all must succeed.
    fn all(&self, options: &[&str], change: impl Fn(&mut Command)) -> Result<Vec<Output>> {
        let mut commands: Vec<Command> =
            (0..self.projects.len()).map(|at| self.link(at, options)).collect::<Result<_>>()?;
        commands.iter_mut().for_each(change);
        let start = |link: &mut Command| {
            link.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
        };
        let children: Vec<Child> = commands.iter_mut().map(start).collect::<Result<_, _>>()?;
        let outputs: Vec<Output> =
            children.into_iter().map(Child::wait_with_output).collect::<Result<_, _>>()?;
        for (link, output) in commands.iter().zip(&outputs) {
            ensure!(output.status.success(), "{}\n{}", told(link, output), fs::read_to_string(self.log())?);
        }
        for project in &self.projects {
            succeed(&mut Command::new(project.path("program")))?;
        }
        let left = fs::read_dir(self.shared.path().join("ledger")).map_or(0, Iterator::count);
        ensure!(left == 0, "{left} files are left in the ledger");
        Ok(outputs)
    }

    /// Changes all modules of all programs, without making them larger.
    fn edit(&self, from: &str, to: &str) -> Result<()> {
        for project in &self.projects {
            for n in 0..MODULES {
                project.edit(&format!("f{n}.c"), from, to)?;
            }
            project.edit("main.c", &format!(" - {}", 4 * parse(from)?), &format!(" - {}", 4 * parse(to)?))?;
        }
        Ok(())
    }

    fn history(&self, at: usize) -> Result<PathBuf> {
        Ok(distlto::state_dir(&self.projects[at].path("program"))?.join("history"))
    }

    /// What each module of a link took when it was compiled last, in bytes.
    fn memory(&self, at: usize) -> Result<BTreeMap<String, u64>> {
        let text = fs::read_to_string(self.history(at)?)?;
        let of_line = |line: &str| {
            let line: Value = serde_json::from_str(line)?;
            let module = line[6].as_str().context("a module")?;
            Ok((module.to_owned(), line[5].as_u64().context("memory")?))
        };
        text.lines().skip(1).map(of_line).collect()
    }

    /// Has history say that each module took so many bytes.
    fn pretend(&self, memory: u64) -> Result<()> {
        for at in 0..self.projects.len() {
            let text = fs::read_to_string(self.history(at)?)?;
            let mut lines = text.lines();
            let mut changed = format!("{}\n", lines.next().context("a first line")?);
            for line in lines {
                let mut line: Value = serde_json::from_str(line)?;
                line[5] = memory.into();
                changed.push_str(&format!("{line}\n"));
            }
            fs::write(self.history(at)?, changed)?;
        }
        Ok(())
    }

    /// The most backends at once, and the most bytes that they held together.
    fn most(&self, memory: &[BTreeMap<String, u64>]) -> Result<(usize, u64)> {
        let log = fs::read_to_string(self.log())?;
        let (mut now, mut most) = ((0_usize, 0_u64), (0, 0));
        for line in log.lines() {
            let [sign, at, module] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
            let of_link = &memory[at.parse::<usize>()?];
            let name = Path::new(module).file_name().context("a file")?.to_string_lossy();
            let (_, &bytes) = of_link
                .iter()
                .find(|(known, _)| Path::new(known).file_name().is_some_and(|known| known == &*name))
                .with_context(|| format!("{module} is not in {of_link:?}"))?;
            match sign {
                "+" => now = (now.0 + 1, now.1 + bytes),
                _ => now = (now.0 - 1, now.1 - bytes),
            }
            most = (now.0.max(most.0), now.1.max(most.1));
        }
        Ok(most)
    }
}

fn parse(number: &str) -> Result<u64> {
    Ok(number.parse()?)
}

/// Links one program alone, two backends at once. Gives what its backends held together, and its linker beside them.
fn alone(links: &Links, at: usize) -> Result<(u64, u64)> {
    // They begin, and wait for this test to say that they may go on.
    links.meet(usize::MAX, "")?;
    let mut link = links.link(at, &["-j2"])?;
    let child = link.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let process = child.id();
    let ledger = Ledger::open(links.shared.path().join("ledger"))?;
    let mut held = Vec::new();
    for _ in 0..6000 {
        held = ledger.holdings()?;
        if held.iter().any(|run| run.slots == 2) {
            break;
        }
        sleep(Duration::from_millis(10));
    }
    // Whatever it says of tools, which are not in PATH.
    let doctor = capture(links.environment(Command::new(distlto::binary()?).arg("doctor")))?;
    fs::write(links.shared.path().join("together"), "")?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{}", told(&link, &output));
    let [run] = held[..] else { bail!("{held:?}") };
    ensure!((run.process, run.slots) == (process, 2) && run.memory > 0, "{run:?}");
    ensure!(run.beside > 0, "{run:?}");
    let said = String::from_utf8(doctor.stdout)?;
    let sentence = format!("process {process} (");
    ensure!(said.contains(&sentence) && said.contains(" runs 2 jobs with "), "{said}");
    let none = capture(links.environment(Command::new(distlto::binary()?).arg("doctor")))?;
    let said = String::from_utf8(none.stdout)?;
    ensure!(said.contains("no other link runs jobs at the moment"), "{said}");
    let mut memory = vec![BTreeMap::new(); at];
    memory.push(links.memory(at)?);
    let (count, bytes) = links.most(&memory)?;
    ensure!(count == 2, "{count} at once");
    Ok((bytes, run.beside))
}

#[test]
fn two_links_within_a_budget_of_one_and_a_half() -> Result<()> {
    let links = Links::create("two", 2)?;
    let (first, second) = (alone(&links, 0)?, alone(&links, 1)?);
    let one = first.0.max(second.0);
    // The memory of a backend differs a little each time.
    let room = one / 2 * 3 + one / 10;
    let beside = first.1 + second.1;
    let budget = (room + beside).to_string();
    links.edit("25", "26")?;
    links.meet(3, "")?;
    // Links share slots too. With two for both, links that begin at once have one each; four fit if one begins alone.
    let options = ["-j3", "--memory", &budget];
    links.all(&options, |_| {})?;
    let (count, bytes) = links.most(&[links.memory(0)?, links.memory(1)?])?;
    println!(
        "MiB: one link {}, budget {} and {} for linkers, both {}; {count} backends at once",
        one >> 20,
        room >> 20,
        beside >> 20,
        bytes >> 20
    );
    ensure!(count == 3, "{count} at once");
    ensure!(bytes <= room, "{bytes} of {room}");
    // Without the ledger nothing keeps the fourth.
    links.edit("26", "27")?;
    links.meet(4, "")?;
    links.all(&options, |link| {
        link.env("DISTLTO_LEDGER", "off");
    })?;
    Ok(())
}

#[test]
fn of_three_links_without_a_budget_nobody_is_killed() -> Result<()> {
    let links = Links::create("three", 3)?;
    links.meet(1, "")?;
    links.all(&["-j3"], |_| {})?;
    // By what is known of them three backends are all that this machine has memory for.
    let available = System::real().available().context("the system says what is available")?;
    let kill = format!(
        "now=$(($(grep -c '^+' {log}) - $(grep -c '^-' {log})))\n\
         [ $now -le 5 ] || [ -e $module.killed ] || {{ \n\
         : > $module.killed\n\
         echo \"killed $now\" >> {log}\n\
         kill -KILL $$\n\
         }}",
        log = links.log().display()
    );
    for (ledger, at_least) in [(true, 3), (false, 6)] {
        links.pretend(available / 4)?;
        links.edit(if ledger { "25" } else { "26" }, if ledger { "26" } else { "27" })?;
        links.meet(at_least, &kill)?;
        links.all(&["-j3"], |link| {
            if !ledger {
                link.env("DISTLTO_LEDGER", "off");
            }
        })?;
        let log = fs::read_to_string(links.log())?;
        // Who was killed is run again alone, so that even that link ends.
        ensure!(log.contains("killed") != ledger, "ledger: {ledger}\n{log}");
    }
    Ok(())
}

/// The same command with one processor.
fn on_one_processor(command: &Command) -> Result<Command> {
    let allowed = rustix::thread::sched_getaffinity(None)?;
    let processor = (0..rustix::thread::CpuSet::MAX_CPU).find(|&number| allowed.is_set(number));
    let mut with = Command::new(system_tool("taskset")?);
    with.arg("-c").arg(processor.context("a processor")?.to_string());
    with.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => with.env(name, value),
            None => with.env_remove(name),
        };
    }
    with.current_dir(command.get_current_dir().context("links have a directory")?);
    Ok(with)
}

#[test]
fn two_links_share_slots_and_each_has_one() -> Result<()> {
    let links = Links::create("slots", 2)?;
    links.meet(3, "")?;
    links.all(&["-j3"], |link| {
        *link = on_one_processor(link).expect("taskset");
        link.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    })?;
    // One may have taken all three before the other one came.
    let (count, _) = links.most(&[links.memory(0)?, links.memory(1)?])?;
    ensure!((3..=4).contains(&count), "{count} at once");
    Ok(())
}

#[test]
fn a_link_that_waits_for_slots_of_another_run_says_so() -> Result<()> {
    let links = Links::create("waits", 1)?;
    links.meet(1, "")?;
    let mut holder = Command::new(helper("distlto-test-ledger")?);
    holder.arg(links.shared.path().join("ledger")).args(["hold", "0"]);
    let mut holder = holder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    BufReader::new(holder.stdout.take().context("it was asked for")?).read_line(&mut String::new())?;
    let output = succeed(&mut on_one_processor(&links.link(0, &["-v", "-j2"])?)?)?;
    drop(holder.stdin.take());
    ensure!(holder.wait()?.success());
    let said = String::from_utf8(output.stderr)?;
    ensure!(said.contains(" % of the best possible with the jobs that others left; they held "), "{said}");
    let state = distlto::state_dir(&links.projects[0].path("program"))?;
    let last = run::list(state.as_ref())?.pop().context("a record")?;
    let waited = run::read(&last)?.waited;
    ensure!(waited.others_us > 0 && waited.make_us == 0 && waited.idle_us == 0, "{waited:?}");
    Ok(())
}

#[test]
fn a_ledger_that_cannot_be_used_costs_a_warning() -> Result<()> {
    let links = Links::create("unusable", 1)?;
    links.meet(1, "")?;
    let ledger = links.shared.path().join("file");
    fs::write(&ledger, "")?;
    for (value, part) in [(ledger.as_os_str(), "is no directory"), ("relative".as_ref(), "no absolute path")]
    {
        let mut link = links.link(0, &[])?;
        let output = succeed(link.env("DISTLTO_LEDGER", value))?;
        let said = String::from_utf8(output.stderr)?;
        ensure!(said.matches("distlto: warning: ").count() == 1 && said.contains(part), "{said}");
        let mut doctor = Command::new(distlto::binary()?);
        let output = capture(doctor.arg("doctor").env("DISTLTO_LEDGER", value))?;
        let said = String::from_utf8(output.stdout)?;
        let wrong = said.lines().find(|line| line.contains(part)).context("the doctor says nothing")?;
        ensure!(wrong.trim_start().starts_with("WRONG"), "{said}");
        links.edit("25", "26").or_else(|_| links.edit("26", "25"))?;
    }
    // Where nothing is named it is the user's own.
    let runtime = links.shared.path().join("runtime");
    fs::create_dir(&runtime)?;
    let mut link = links.link(0, &[])?;
    let output = succeed(link.env("DISTLTO_LEDGER", "").env("XDG_RUNTIME_DIR", &runtime))?;
    ensure!(output.stderr.is_empty(), "{}", told(&link, &output));
    let found = fs::metadata(runtime.join("distlto-ledger-v1"))?;
    ensure!(found.is_dir() && found.permissions().mode() & 0o777 == 0o700, "{found:?}");
    Ok(())
}
