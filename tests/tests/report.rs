//! `distlto report` in a browser: a link's answers, its run, its modules, other workers, two runs, by keys alone; nothing is asked of
//! any network, nothing of a name becomes markup, and the page is what its sources make.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_executor::schedule::pools::Resource;
use distlto_executor::schedule::{Policy, Schedule, Weight};
use distlto_planner::graph::{Action, ActionGraph, ActionId, ActionKind, BackendWork, Decided, Work};
use distlto_record::action::{ActionCost, ActionRecord, ActionStatus, EngineTimes, Interval};
use distlto_record::run::{PhaseRecord, RunRecord};
use distlto_tests::browser::{Browser, key};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::project::{FORKED, Project};
use distlto_tests::run::{capture, succeed};
use distlto_tests::toolchain::{Toolchain, repository};
use serde_json::Value;

/// The page has shown all.
const READY: &str = "document.getElementById('main').getAttribute('aria-busy') === 'false'";

fn said(directory: &Path, words: &[&str]) -> Result<String> {
    let mut command = Command::new(distlto::binary()?);
    let output = succeed(command.args(words).current_dir(directory).env_remove("DISTLTO_STATE"))?;
    Ok(String::from_utf8(output.stdout)?)
}

/// Opens a page; gives the addresses that it asked for, which is its own alone.
fn open(browser: &Browser, page: &Path) -> Result<()> {
    browser.open(page, READY)?;
    let asked = browser.requests()?;
    ensure!(asked.len() == 1 && asked.iter().all(|url| url.starts_with("file://")), "{asked:?}");
    Ok(())
}

/// The lines of a list, and those that a command has printed.
fn same_lines(browser: &Browser, list: &str, printed: &str) -> Result<()> {
    let lines = browser
        .ask(&format!("[...document.querySelectorAll('#{list} > li')].map(e => e.textContent.trim())"))?;
    let mut printed: Vec<&str> = printed.lines().map(str::trim).collect();
    if list == "answers" {
        // The numbers of modules answer nothing.
        printed.rotate_left(1);
    }
    ensure!(lines == serde_json::json!(printed), "#{list}: {lines}\n{printed:?}");
    Ok(())
}

#[test]
fn a_link_is_looked_at_by_keys_alone() -> Result<()> {
    let mut project = Project::create("report", &FORKED)?;
    project.flags.push("-Wl,--time-trace".to_owned());
    let here = project.path(".");
    succeed(&mut project.link()?)?;
    project.edit("shared.c", "x * 100", "x * 101")?;
    succeed(&mut project.link()?)?;
    let told = said(&here, &["report", "program"])?;
    ensure!(told.starts_with("report.html is written: "), "{told}");

    let browser = Browser::start()?;
    open(&browser, &project.path("report.html"))?;
    same_lines(&browser, "answers", &said(&here, &["inspect", "program"])?)?;
    same_lines(&browser, "difference", &said(&here, &["diff", "program"])?)?;
    modules(&browser)?;
    timeline(&browser)?;
    sliders(&browser)?;
    table(&browser)?;
    ensure!(browser.requests()?.is_empty(), "something was asked of a network");
    choices(&browser)?;
    tops(&browser)?;
    let colours = ["light", "dark"].map(|scheme| colours(&browser, scheme));
    let [light, dark] = colours.map(|colours| colours.map_err(|error| error.to_string()));
    ensure!(light.is_ok() && dark.is_ok() && light != dark, "{light:?} and {dark:?}");
    ensure!(browser.requests()?.is_empty(), "something was asked of a network");
    let complaints = browser.complaints()?;
    ensure!(complaints.is_empty(), "{complaints:?}");
    Ok(())
}

/// Searches a module, follows who imports from it and back, and walks over the map.
fn modules(browser: &Browser) -> Result<()> {
    let title = || browser.shown("module-title");
    let list = |id: &str| {
        browser.ask(&format!("[...document.querySelectorAll('#{id} button')].map(e => e.textContent)"))
    };
    // The first Tab is at the way past everything else.
    browser.press(&format!("{}{}", key::TAB, key::ENTER))?;
    browser.wait("document.activeElement.id === 'search'")?;
    browser.press("SHARE")?;
    browser.wait("document.querySelectorAll('#found li').length === 1")?;
    ensure!(browser.shown("found-count")? == "1 found");
    browser.press(&format!("{}{}", key::DOWN, key::ENTER))?;
    ensure!(title()? == "shared.o", "{}", title()?);
    ensure!(list("importers")? == serde_json::json!(["a.o", "b.o"]), "{}", list("importers")?);
    let live = browser.text("document.getElementById('live').textContent")?;
    ensure!(live.starts_with("shared.o, ") && live.ends_with(", 2 importers, 0 imports"), "{live}");

    browser.tab_to("e.closest('#importers') && e.textContent === 'b.o'")?;
    browser.press(key::ENTER)?;
    ensure!(
        title()? == "b.o" && browser.text("document.activeElement.id")? == "module-title",
        "{}",
        title()?
    );
    ensure!(list("imports-list")? == serde_json::json!(["shared.o"]), "{}", list("imports-list")?);
    ensure!(browser.shown("module-facts")?.contains("its import shared.o changed"), "why it ran");
    browser.tab_to("e.closest('#imports-list')")?;
    browser.press(key::ENTER)?;
    ensure!(title()? == "shared.o", "{}", title()?);

    browser.ask("document.getElementById('search').focus()")?;
    browser.tab_to("e.id === 'map'")?;
    let mut seen = BTreeSet::new();
    for way in [key::LEFT, key::UP, key::RIGHT, key::DOWN, "+", key::LEFT, key::UP, "0"] {
        browser.press(way)?;
        seen.insert(title()?);
    }
    ensure!(seen.len() > 1 && seen.iter().all(|name| name.ends_with(".o")), "arrows lead to {seen:?}");
    Ok(())
}

/// Goes along the lanes of both runs, and from an action to its module.
fn timeline(browser: &Browser) -> Result<()> {
    let about = browser.shown("timeline-about")?;
    ensure!(about.contains("3 done") && about.contains("1 kept"), "{about}");
    ensure!(!about.contains("No time trace"), "lld's own trace is not shown: {about}");
    browser.ask("document.querySelector('nav a').focus()")?;
    browser.tab_to("e.id === 'earlier'")?;
    let height = "document.getElementById('lanes').clientHeight";
    let before = browser.ask(height)?.as_u64();
    browser.press(" ")?;
    ensure!(browser.ask(height)?.as_u64() > before, "the earlier run is not shown");
    browser.tab_to("e.id === 'lanes'")?;
    browser.press(key::RIGHT)?;
    // On a slow machine it has a phase of its own.
    if browser.shown("action")?.starts_with("digest of the linker") {
        browser.press(key::RIGHT)?;
    }
    ensure!(browser.shown("action")?.starts_with("thin link"), "{}", browser.shown("action")?);
    browser.press(key::DOWN)?;
    let action = browser.shown("action")?;
    for expected in [
        "begins",
        "takes",
        "changed",
        "waits for it",
        "the link of the program",
        "differs from the one before",
    ] {
        ensure!(action.contains(expected), "{expected}: {action}");
    }
    browser.press(key::ENTER)?;
    let title = browser.shown("module-title")?;
    ensure!(action.starts_with(&title), "{title}: {action}");
    let path = browser.ask("[...document.querySelectorAll('#critical li')].map(e => e.textContent)")?;
    let path = path.as_array().context("a list")?;
    let names = |name: &str| path.iter().any(|step| step.as_str().is_some_and(|step| step.starts_with(name)));
    ensure!(names("thin link, ") && names("final link, ") && path.len() > 2, "{path:?}");
    Ok(())
}

/// Sorts the table of modules by two of its columns, both ways.
fn table(browser: &Browser) -> Result<()> {
    let column = |number: usize| {
        let cells = "[...document.querySelectorAll('#table tbody tr')]";
        browser.ask(&format!("{cells}.map(row => row.cells[{number}].textContent)"))
    };
    browser.ask("document.getElementById('map').focus()")?;
    browser.tab_to("e.closest('#table th') && e.textContent === 'importers'")?;
    for (way, expected) in [("descending", ["2", "0", "0"]), ("ascending", ["0", "0", "0"])] {
        browser.press(key::ENTER)?;
        let sorted = browser.text("document.activeElement.closest('th').ariaSort")?;
        ensure!(
            sorted == way && column(4)?.as_array().is_some_and(|cells| cells[..3] == expected),
            "{way}: {}",
            column(4)?
        );
    }
    browser.tab_to("e.closest('#table th') && e.textContent === 'object'")?;
    browser.press(key::ENTER)?;
    ensure!(column(5)? == serde_json::json!(["linker's key", "ran", "ran", "ran"]), "{}", column(5)?);
    ensure!(
        column(6)?[0] == "" && column(6)?[1].as_str().is_some_and(|why| why.contains("changed")),
        "{}",
        column(6)?
    );
    Ok(())
}

/// Colours, and addresses that lead to what was chosen.
fn choices(browser: &Browser) -> Result<()> {
    let legend = || browser.shown("map-legend");
    ensure!(
        legend()?.contains("its backend ran (3)") && legend()?.contains("found by the linker's key (1)"),
        "{}",
        legend()?
    );
    let colour = |kind: &str| {
        let choose = format!(
            "(e => {{ e.value = {kind:?}; e.dispatchEvent(new Event('input')); }})(document.getElementById('colour'))"
        );
        browser.ask(&choose).and_then(|_| legend())
    };
    let reasons = colour("reason")?;
    ensure!(
        reasons.contains("import (2)")
            && reasons.contains("module (1)")
            && reasons.contains("did not run (1)"),
        "{reasons}"
    );
    let times = colour("time")?;
    ensure!(times.contains(" ms to ") && !times.contains("not known"), "{times}");
    let address = browser.text("location.hash")?;
    for part in ["module=", "action=", "sort=found", "colour=time"] {
        ensure!(address.contains(part), "{part}: {address}");
    }
    // As in another browser, and as by a link within the page.
    browser.ask("(location.hash = '#module=b.o&colour=reason&sort=-module', location.reload())")?;
    browser.wait("document.readyState === 'complete' && location.hash.startsWith('#module=b.o')")?;
    browser.wait(READY)?;
    let asked = browser.requests()?;
    ensure!(asked.len() == 1 && asked.iter().all(|url| url.starts_with("file://")), "{asked:?}");
    ensure!(
        browser.shown("module-title")? == "b.o" && legend()? == reasons,
        "{}: {}",
        browser.shown("module-title")?,
        legend()?
    );
    let first = "document.querySelector('#table tbody a').textContent";
    ensure!(browser.text(first)? == "shared.o", "{}", browser.text(first)?);
    browser.ask("document.querySelector('#table tbody a').click()")?;
    browser.wait("document.getElementById('module-title').textContent === 'shared.o'")?;
    Ok(())
}

/// The answers at the top, the command, and both links so far.
fn tops(browser: &Browser) -> Result<()> {
    let tiles = browser.shown("tiles")?;
    for expected in [
        "time",
        "without a backend",
        "3 of 4",
        "1 by the linker's key",
        "slowest backend",
        "import\n2 of 3 backends: shared.o",
    ] {
        ensure!(tiles.contains(expected), "{expected}: {tiles}");
    }
    let about = browser.text("document.getElementById('about').textContent")?;
    for expected in [
        rustix::system::uname().nodename().to_string_lossy().as_ref(),
        "distlto 0",
        "linker ",
        "compiler ",
        " link --compiler ",
    ] {
        ensure!(about.contains(expected), "{expected}: {about}");
    }
    let past = browser.ask("[...document.querySelectorAll('#past-table tbody tr')].map(row => [row.cells[3], row.cells[4]].map(cell => cell.textContent))")?;
    ensure!(past == serde_json::json!([["3", "1"], ["4", "0"]]), "{past}");
    Ok(())
}

/// Moves both sliders.
fn sliders(browser: &Browser) -> Result<()> {
    browser.ask("document.getElementById('search').focus()")?;
    browser.tab_to("e.id === 'workers'")?;
    let took = || -> Result<f64> {
        browser.text("document.getElementById('what-if-result').dataset.us")?.parse().context("microseconds")
    };
    browser.press(key::HOME)?;
    ensure!(browser.shown("workers-value")? == "1 worker");
    let alone = took()?;
    browser.press(key::END)?;
    ensure!(browser.shown("workers-value")? != "1 worker" && took()? < alone, "{alone}: {}", took()?);
    browser.tab_to("e.id === 'memory'")?;
    browser.press(key::HOME)?;
    // Room for the largest alone: one after the other.
    ensure!(took()? == alone && browser.shown("memory-value")?.ends_with("iB"), "{alone}: {}", took()?);
    Ok(())
}

/// The ground and what the map is drawn in.
fn colours(browser: &Browser, scheme: &str) -> Result<(String, Value)> {
    browser.prefer(scheme)?;
    browser.wait(&format!("matchMedia('(prefers-color-scheme: {scheme})').matches"))?;
    let drawn = "(c => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)))(document.getElementById('map'))";
    // It is drawn anew a moment later.
    browser.ask("(window.before = null)")?;
    browser.wait(&format!("(now => {{ const same = now === window.before; window.before = now; return same; }})([...{drawn}].sort().join())"))?;
    let ground = browser.text("getComputedStyle(document.body).backgroundColor")?;
    let count = browser.ask(&format!("{drawn}.size"))?;
    ensure!(count.as_u64() > Some(3), "{scheme}: {count} colours");
    Ok((ground, browser.ask("getComputedStyle(document.body).color")?))
}

const NAMES: [&str; 8] = [
    "<script>hacked=1</script>.o",
    "</script><script>hacked=1</script>",
    "\"'><img src=x onerror=hacked=1>.o",
    "<!--",
    "@data@ @answers@ $& \\u003c",
    "line\u{2028}\u{2029}\nbreak.o",
    "\u{202e}o.txt\u{200f}\u{5d0}/\u{2066}\u{fffd}.o",
    "",
];

fn action(id: usize, label: &str, cpu_us: u64, memory: Option<u64>) -> ActionRecord {
    let mut action = ActionRecord::new(id, ActionKind::Opt, label, 1);
    action.result = ActionStatus::Done;
    (action.start_us, action.end_us, action.lane) = (Some(0), Some(cpu_us), Some(id));
    action.took.cpu_us = Some(cpu_us);
    action.took.peak_memory = memory;
    action.worker = Some(label.to_owned());
    action
}

fn record(folder: &Folder, actions: Vec<ActionRecord>) -> Result<()> {
    let output = Some(NAMES[1].to_owned());
    let run = RunRecord { version: 1, output, actions, wall_us: 1_000_000, ..RunRecord::default() };
    folder.write("record.json", run.to_bytes())?;
    Ok(())
}

#[test]
fn a_lane_shows_an_engines_part_of_an_action() -> Result<()> {
    let folder = Folder::create(Toolchain::from_env()?, "behaviour/report-engine")?;
    let mut remote = action(0, "far.o", 90_000, None);
    remote.worker = Some("worker-7".to_owned());
    remote.engine = Some(EngineTimes {
        uploading_us: 10_000,
        queued_us: 20_000,
        running_us: 50_000,
        downloading_us: 5_000,
    });
    record(&folder, vec![remote])?;
    said(&folder.path, &["report", "record.json", "-o", "page.html"])?;
    let browser = Browser::start()?;
    open(&browser, &folder.path.join("page.html"))?;
    browser.ask("document.getElementById('lanes').focus()")?;
    browser.press(key::DOWN)?;
    let action = browser.shown("action")?;
    for expected in ["far.o", "worker-7", "sending 10 ms, queued 20 ms, running 50 ms, receiving 5 ms"] {
        ensure!(action.contains(expected), "{expected}: {action}");
    }
    ensure!(browser.shown("timeline-about")?.contains("engine"), "{}", browser.shown("timeline-about")?);
    Ok(())
}

/// A run on two jobs with 3 s in which no backend ran, the last at its end. Each backend, with start and end in seconds, had
/// the processor for half of its time.
fn run_of(backends: [(u64, u64); 3], wall: u64) -> RunRecord {
    let mut kept = action(3, "kept.o", 0, None);
    kept.result = ActionStatus::Kept;
    (kept.lane, kept.start_us, kept.end_us, kept.took) = (None, None, None, ActionCost::default());
    kept.took.spared_us = Some(4_000_000);
    let backend = |(id, (start, end)): (usize, (u64, u64))| {
        let interval = Interval { start: start * 1_000_000, end: end * 1_000_000 };
        let mut action = action(id, &format!("m{id}.o"), interval.length() / 2, None);
        (action.start_us, action.end_us, action.worker) = (Some(interval.start), Some(interval.end), None);
        action.phases.command = Some(interval);
        action
    };
    let phase = PhaseRecord { name: "thin link".to_owned(), start_us: 500_000, end_us: Some(1_000_000) };
    RunRecord {
        version: 1,
        jobs: Some(2),
        wall_us: wall * 1_000_000,
        exit_code: Some(0),
        phases: vec![phase],
        actions: backends.into_iter().enumerate().map(backend).chain([kept]).collect(),
        ..RunRecord::default()
    }
}

#[test]
fn the_estimate_for_a_runs_own_workers_is_its_own_time() -> Result<()> {
    let folder = Folder::create(Toolchain::from_env()?, "behaviour/report-agrees")?;
    let browser = Browser::start()?;
    let estimate = |workers: &str| -> Result<f64> {
        let slide = format!(
            "(e => {{ for (e.value = 0; document.getElementById('workers-value').textContent !== {workers:?}; e.value++) e.dispatchEvent(new Event('input')); }})(document.getElementById('workers'))"
        );
        browser.ask(&slide)?;
        browser.text("document.getElementById('what-if-result').dataset.us")?.parse().context("microseconds")
    };
    let page = |run: &RunRecord| -> Result<String> {
        folder.write("record.json", run.to_bytes())?;
        said(&folder.path, &["report", "record.json"])?;
        open(&browser, &folder.path.join("report.html"))?;
        browser.shown("what-if-run")
    };
    let own = page(&run_of([(1, 5), (1, 3), (3, 5)], 7))?;
    ensure!(own.starts_with("The run itself took 7.0 s with 2 workers: the large ring."), "{own}");
    ensure!(own.contains("These backends took 8.0 s, of which 4.0 s on a processor"), "{own}");
    ensure!(estimate("2 workers")? == 7e6 && estimate("1 worker")? == 11e6);
    let told = said(&folder.path, &["inspect", "record.json"])?;
    ensure!(told.contains("number of workers: 15.0 s with 1, 9.0 s with 2"), "{told}");
    browser.ask("(e => { e.value = 'all'; e.dispatchEvent(new Event('input')); })(document.getElementById('backends'))")?;
    ensure!(estimate("2 workers")? == 9e6, "the kept object's backend is among all");

    // Another link held one of the two all the time.
    let mut run = run_of([(1, 5), (5, 7), (7, 9)], 11);
    run.waited.others_us = 8_000_000;
    let own = page(&run)?;
    ensure!(
        own.starts_with("The run itself took 11.0 s with 2 workers, of which others held 1.0 on average"),
        "{own}"
    );
    ensure!(estimate("1 worker")? == 11e6, "with the one that was left");
    // It held the memory of all, too, for two more seconds.
    run = RunRecord { wall_us: 13_000_000, ..run };
    run.waited.idle_us = 2_000_000;
    let own = page(&run)?;
    ensure!(own.contains("It waited 2.0 s for others with no backend running"), "{own}");
    ensure!(estimate("1 worker")? == 11e6, "without the wait");
    Ok(())
}

#[test]
fn names_are_text_whatever_they_hold() -> Result<()> {
    let folder = Folder::create(Toolchain::from_env()?, "behaviour/report-names")?;
    let actions =
        NAMES.iter().enumerate().map(|(id, name)| action(id, name, 1000 + id as u64, Some(u64::MAX)));
    record(&folder, actions.collect())?;
    said(&folder.path, &["report", "record.json", "--output", "a page.html"])?;
    let browser = Browser::start()?;
    open(&browser, &folder.path.join("a page.html"))?;
    same_lines(&browser, "answers", &said(&folder.path, &["inspect", "record.json"])?)?;
    for (name, shown) in
        [("hacked=1</script>.o", NAMES[0]), ("img src", NAMES[2]), ("$&", NAMES[4]), ("<!--", NAMES[3])]
    {
        browser.ask("document.getElementById('search').select()")?;
        browser.press(&format!("{name}{}", key::ENTER))?;
        ensure!(browser.text("document.getElementById('module-title').textContent")? == shown, "{name}");
    }
    browser.ask("document.getElementById('search').select()")?;
    browser.press(&format!("break{}", key::ENTER))?;
    let title = browser.text("document.getElementById('module-title').textContent")?;
    ensure!(title == "line\\u{2028}\\u{2029}\\nbreak.o", "{title}");
    browser.ask("document.getElementById('search').select()")?;
    browser.press(&format!("202e{}", key::ENTER))?;
    let title = browser.text("document.getElementById('module-title').textContent")?;
    ensure!(title.starts_with("\\u{202e}o.txt") && title.contains("\\u{2066}\u{fffd}.o"), "{title}");

    ensure!(browser.ask("typeof hacked")? == "undefined", "a name was run");
    let elements =
        browser.ask("[document.images.length, document.querySelectorAll('script:not([type])').length]")?;
    ensure!(elements == serde_json::json!([0, 1]), "a name is an element: {elements}");
    let complaints = browser.complaints()?;
    ensure!(complaints.is_empty(), "{complaints:?}");

    // What is not UTF-8 is no record, and no page is made of it.
    let text = fs::read(folder.path.join("record.json"))?;
    let at = text.windows(4).position(|part| part == b"<!--").context("a name")?;
    fs::write(folder.path.join("record.json"), [&text[..at], b"\xff", &text[at..]].concat())?;
    let mut command = Command::new(distlto::binary()?);
    let output =
        capture(command.args(["report", "record.json", "-o", "none.html"]).current_dir(&folder.path))?;
    ensure!(output.status.code() == Some(3) && !folder.path.join("none.html").exists(), "{output:?}");
    Ok(())
}

/// When the last of these, each with its time and its memory, ends by the schedule of a run.
fn makespan(backends: &[(u64, u64)], workers: u64, memory: Option<u64>) -> u64 {
    let mut graph = ActionGraph::new();
    for (number, &(cost, _)) in backends.iter().enumerate() {
        let label = number.to_string();
        let work = Work::Backend(BackendWork {
            module: graph.file(format!("{number}.o")),
            shard: graph.file(format!("{number}.thinlto.bc")),
            imports: Vec::new(),
            extra: Vec::new(),
            object: graph.file(format!("{number}.native.o")),
            dwo: None,
            also: Vec::new(),
            decided: Decided::default(),
        });
        graph.add(Action { work, label, prefix: None, args: Vec::new(), cost });
    }
    let wanted: Vec<_> = graph.actions().map(|(id, _)| id).collect();
    let weigh = |id: ActionId| Weight { time: backends[id.index()].0, memory: backends[id.index()].1 };
    let mut schedule = Schedule::new(&graph, &wanted, Policy::default(), weigh);
    schedule.limit(Resource::Slots, workers);
    memory.into_iter().for_each(|memory| schedule.limit(Resource::Memory, memory));
    let (mut running, mut now, mut added) = (BinaryHeap::new(), 0, 0);
    loop {
        while let Some((id, _)) = schedule.take() {
            running.push(Reverse((now + backends[id.index()].0, added, id)));
            added += 1;
        }
        let Some(Reverse((end, _, id))) = running.pop() else { return now };
        now = end;
        schedule.done(id);
    }
}

#[test]
fn the_sliders_tell_what_the_schedule_would_do() -> Result<()> {
    let folder = Folder::create(Toolchain::from_env()?, "behaviour/report-schedule")?;
    // Some of equal length, some without a time, some of more memory than all others.
    let backends: Vec<(u64, u64)> = (0..90_u64)
        .map(|i| {
            (
                i * 7919 % 31 * 10_000 + i % 3,
                (i * 104_729 % 97 + 1) * if i % 20 == 0 { 40 << 20 } else { 3 << 20 },
            )
        })
        .collect();
    let actions = backends
        .iter()
        .enumerate()
        .map(|(id, &(took, memory))| action(id, &format!("m{id}.o"), took, Some(memory)));
    record(&folder, actions.collect())?;
    said(&folder.path, &["report", "record.json"])?;
    let browser = Browser::start()?;
    open(&browser, &folder.path.join("report.html"))?;
    let told = browser.ask(
        "(() => {
            const [workers, memory, result] = ['workers', 'memory', 'what-if-result'].map(id => document.getElementById(id));
            const told = [];
            for (workers.value = 0; ; workers.value++) {
                for (memory.value = 0; ; memory.value++) {
                    memory.dispatchEvent(new Event('input'));
                    told.push([result.dataset.us, result.dataset.workers, result.dataset.memory]);
                    if (memory.value === memory.max) break;
                }
                if (workers.value === workers.max) return told;
            }
        })()",
    )?;
    let told: Vec<[String; 3]> = serde_json::from_value(told)?;
    let (mut by_memory, mut by_workers) = (BTreeSet::new(), BTreeSet::new());
    for [us, workers, memory] in &told {
        let memory = (!memory.is_empty()).then(|| memory.parse()).transpose()?;
        let expected = makespan(&backends, workers.parse()?, memory);
        ensure!(us.parse() == Ok(expected), "{workers} workers, {memory:?}: {us} instead of {expected}");
        by_workers.insert(workers);
        by_memory.insert(memory);
    }
    ensure!(by_workers.len() > 5 && by_memory.len() > 5, "{by_workers:?} {by_memory:?}");
    Ok(())
}

#[test]
fn the_page_is_what_its_sources_make() -> Result<()> {
    let folder = Folder::create(Toolchain::from_env()?, "behaviour/report-page")?;
    let out = folder.path.join("page.html");
    let mut command = distlto::xtask();
    command.args(["page", "--out"]).arg(&out);
    succeed(&mut command)?;
    let (made, kept) = (fs::read(&out)?, fs::read(repository().join("record/src/page/built.html"))?);
    ensure!(made == kept, "record/src/page/built.html is not what record/page makes; run `cargo xtask page`");
    ensure!(
        String::from_utf8(kept)?.contains("Copyright (c) 2022 Leon Sorokin"),
        "uPlot's licence is not kept"
    );
    Ok(())
}
