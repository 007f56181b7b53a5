//! `campaign edits`: random programs that are edited and linked again, against a fresh link of the same command in a copy
//! of the directory; and the backends that came to their turn, against those whose shard differs. Every second program has
//! the linker's default names.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::{self, File};
use std::time::SystemTime;

use anyhow::{Context, Result};

use super::backends::{Backends, came_up, is_planned};
use super::change::{Also, change, prepare};
use super::foretold::{Foretold, Objects, objects};
use super::generate;
use super::line;
use super::links::{Request, each, explain};
use super::model::Program;
use super::outcome::{difference, outcome, save_commands};
use super::random::Random;
use super::ways::{EXACT, NINJA, SERVED, Way};
use super::workspace::Workspace;
use crate::run::capture;
use crate::toolchain::Toolchain;

/// How many edits each program gets.
pub const EDITS: usize = 5;

/// What was counted of one way.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Counts {
    /// Links: the first one of each program, and one after each edit.
    pub links: usize,
    /// Links that fail, as the fresh link does or should.
    pub refused: usize,
    /// Links that differ from a fresh link, by kind.
    pub stale: BTreeMap<&'static str, usize>,
    /// Links that are left to the linker by itself; they have no backends to count.
    pub left: usize,
    /// Links whose backends were counted.
    pub counted: usize,
    /// Backends of those links.
    pub backends: usize,
    /// Backends that ran in those links, or whose objects were kept when it showed what they import.
    pub ran: usize,
    /// Of those, the latter.
    pub kept: usize,
    /// Backends whose shard differs from the one before, in those links.
    pub changed: usize,
    /// Links in which others ran than those.
    pub unequal: usize,
    /// Links whose backends a dry run had foretold.
    pub foretold: usize,
    /// Links of which a dry run had said something else, or had written something.
    pub mistold: usize,
}

/// What came of all edits.
#[derive(Debug, Default)]
pub struct Found {
    /// How often each edit was made.
    pub edits: BTreeMap<&'static str, usize>,
    /// By the way's name.
    pub ways: BTreeMap<&'static str, Counts>,
    /// What differs, and after which edit.
    pub messages: Vec<String>,
}

impl Found {
    /// The counts of a way.
    pub fn of(&self, way: Way) -> Counts {
        self.ways.get(way.name).cloned().unwrap_or_default()
    }

    /// The counts as a table.
    pub fn table(&self) -> String {
        let number: usize = self.edits.values().sum();
        let list: Vec<String> = self.edits.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let mut text = format!("{number} edits: {}\n", list.join(", "));
        let head = [
            "links", "refused", "stale", "left", "counted", "backends", "changed", "ran", "kept", "unequal",
            "foretold", "mistold",
        ];
        let _ = writeln!(text, "{:<20} {}", "way", head.map(|name| format!("{name:>8}")).join(" "));
        for (name, counts) in &self.ways {
            let stale = counts.stale.values().sum();
            let row = [
                counts.links,
                counts.refused,
                stale,
                counts.left,
                counts.counted,
                counts.backends,
                counts.changed,
                counts.ran - counts.kept,
                counts.kept,
                counts.unequal,
                counts.foretold,
                counts.mistold,
            ];
            let row = row.map(|number| format!("{number:>8}")).join(" ");
            let _ = writeln!(text, "{name:<20} {row}");
        }
        text
    }

    fn add(&mut self, one: Self) {
        for (name, count) in one.edits {
            *self.edits.entry(name).or_default() += count;
        }
        for (name, counts) in one.ways {
            let all = self.ways.entry(name).or_default();
            all.links += counts.links;
            all.refused += counts.refused;
            all.left += counts.left;
            all.counted += counts.counted;
            all.backends += counts.backends;
            all.ran += counts.ran;
            all.kept += counts.kept;
            all.changed += counts.changed;
            all.unequal += counts.unequal;
            all.foretold += counts.foretold;
            all.mistold += counts.mistold;
            for (kind, number) in counts.stale {
                *all.stale.entry(kind).or_default() += number;
            }
        }
        for message in one.messages {
            println!("{message}");
            self.messages.push(message);
        }
    }
}

/// Runs the campaign: `count` edits, so many of each program; tells each difference as it is found.
pub fn edits(request: &Request, toolchain: Toolchain) -> Result<Found> {
    let programs =
        Request { count: request.count.div_ceil(EDITS), directory: request.directory.clone(), ..*request };
    let work = |seed| {
        let left = request.count - (seed - request.seed) as usize * EDITS;
        edit(request, toolchain, seed, left.min(EDITS))
    };
    each(&programs, work, Found::add)
}

/// A program in its directory, and what the links of it had.
struct Edited {
    seed: u64,
    program: Program,
    workspace: Workspace,
    /// By the way's name, the backends of its last link, if that succeeded.
    before: BTreeMap<&'static str, Backends>,
    /// Those of all links of a way before: the store has their objects.
    earlier: BTreeMap<&'static str, Vec<Backends>>,
    /// The objects of its last link, likewise.
    objects: BTreeMap<&'static str, Objects>,
    found: Found,
}

fn edit(request: &Request, toolchain: Toolchain, seed: u64, count: usize) -> Result<Found> {
    let mut program = generate::program_for(seed, toolchain);
    // Other numbers than those of the program.
    let mut random = Random::new(!seed);
    prepare(&mut random, &mut program);
    let workspace = Workspace::create(request.directory.join(format!("edit-{seed}")), toolchain)?;
    let mut edited = Edited {
        seed,
        program,
        workspace,
        before: BTreeMap::new(),
        earlier: BTreeMap::new(),
        objects: BTreeMap::new(),
        found: Found::default(),
    };
    edited.link("nothing")?;
    for number in 1..=count {
        let mut next = edited.program.clone();
        let (name, also) = change(&mut random, &mut next);
        *edited.found.edits.entry(name).or_default() += 1;
        edited.workspace.commands.push(format!("echo edit {number}: {name}"));
        edited.program = next;
        edited.also(&mut random, also)?;
        edited.link(name)?;
    }
    save_commands(&edited.workspace)?;
    if !request.keep {
        fs::remove_dir_all(&edited.workspace.path)?;
    }
    Ok(edited.found)
}

impl Edited {
    /// Touches an input, or removes an output of every way.
    fn also(&mut self, random: &mut Random, also: Also) -> Result<()> {
        match also {
            Also::Nothing => {}
            Also::Touch => {
                let objects = self.program.units.iter().map(|unit| unit.object.clone());
                let archives = self.program.archives.iter().map(|library| format!("lib{}.a", library.name));
                let shared = self.program.shared.iter().map(|library| format!("lib{}.so", library.name));
                let files = line::files(&self.program).into_keys().map(str::to_owned);
                let all: Vec<String> = objects.chain(archives).chain(shared).chain(files).collect();
                let path = random.pick(&all).context("a program has units")?;
                let path = self.workspace.path.join(path);
                File::options().append(true).open(&path)?.set_modified(SystemTime::now())?;
            }
            Also::Delete => {
                let map = self.program.options.map && random.chance(50);
                for way in [SERVED, NINJA] {
                    let output = line::output(&self.program, way.dir);
                    let path = self.workspace.path.join(if map { format!("{output}.map") } else { output });
                    // There is none after a link that failed.
                    let _ = fs::remove_file(path);
                }
            }
        }
        Ok(())
    }

    /// Builds, links in each way, and compares with a fresh link.
    fn link(&mut self, edit: &'static str) -> Result<()> {
        self.workspace.build(&self.program)?;
        let mut backends: Option<Option<Backends>> = None;
        for way in [SERVED, NINJA] {
            let names: &[&str] = if way.keeps && self.seed % 2 == 1 { &[EXACT] } else { &[] };
            let more = if way.keeps { [&["--json"], names].concat() } else { Vec::new() };
            let foretold = if way.keeps {
                Foretold::ask(&self.program, &mut self.workspace, way, names)
                    .map_err(|error| error.to_string())
            } else {
                Ok(None)
            };
            let again = outcome(&self.program, &mut self.workspace, way, &more)?;
            let path = self.workspace.path.with_extension("fresh");
            let mut fresh = self.workspace.copy(path)?;
            let oracle = outcome(&self.program, &mut fresh, way, names)?;
            let kind = difference(way, &again, &oracle);
            let counts = self.found.ways.entry(way.name).or_default();
            counts.links += 1;
            counts.refused += usize::from(oracle.error.is_some());
            if let Some(kind) = kind {
                self.tell(way, edit, kind.name(), &explain(kind, &again, &oracle));
            } else if again.bytes != oracle.bytes {
                self.tell(way, edit, "bytes", "");
            } else if way.keeps && again.error.is_none() && self.lacks_map(way) {
                self.tell(way, edit, "map", "  there is no map file\n");
            }
            if way.keeps && again.error.is_none() {
                let backends = match &backends {
                    Some(backends) => backends.clone(),
                    None => backends.insert(Backends::of(&self.program, &fresh)?).clone(),
                };
                let before = backends.as_ref().and_then(|now| Some((now, self.before.get(way.name)?)));
                let may = before.map(|(now, before)| now.unlike(before).may).unwrap_or_default();
                self.compare(way, edit, foretold, &again.events, &may)?;
                match backends {
                    Some(backends) => self.count(way, edit, &again.events, backends)?,
                    None => drop(self.before.remove(way.name)),
                }
            } else if again.error.is_none() {
                self.settles(way, edit)?;
                let now = Backends::of(&self.program, &fresh)?;
                self.has_run(way, edit, &again.events, now);
            } else {
                self.before.remove(way.name);
                self.objects.remove(way.name);
            }
            fs::remove_dir_all(&fresh.path)?;
        }
        Ok(())
    }

    /// Compares what was foretold with what ran. `may` are the backends that have not changed in what lld's own keys hold.
    fn compare(
        &mut self,
        way: Way,
        edit: &'static str,
        foretold: Result<Option<Foretold>, String>,
        events: &str,
        may: &[String],
    ) -> Result<()> {
        let now = objects(&self.program, &self.workspace)?;
        let before = self.objects.insert(way.name, now.clone()).unwrap_or_default();
        let checked = foretold.and_then(|foretold| {
            let foretold = foretold.ok_or("a dry run fails where the link does not")?;
            let came_up = came_up(events).map_err(|error| error.to_string())?;
            let written = foretold.check_written();
            let checked = written.and_then(|()| foretold.check(came_up.0, may));
            checked.and_then(|()| foretold.check_reasons(&before, &now)).map_err(|error| error.to_string())
        });
        let counts = self.found.ways.entry(way.name).or_default();
        match checked {
            Ok(()) => counts.foretold += 1,
            Err(text) => {
                counts.mistold += 1;
                self.message(way, edit, "dry run", &format!("  {text}\n"));
            }
        }
        Ok(())
    }

    /// A build program that has just built has nothing to do.
    fn settles(&mut self, way: Way, edit: &'static str) -> Result<()> {
        let mut build = way.commands(&self.program, &self.workspace, &[])?;
        let mut build = build.pop().context("a way has commands")?;
        let text = String::from_utf8_lossy(&capture(&mut build)?.stdout).into_owned();
        if !text.contains("no work to do") {
            self.tell(way, edit, "not settled", &text);
        }
        Ok(())
    }

    /// A build program has compiled what changed. It goes by times, so that it may compile more.
    fn has_run(&mut self, way: Way, edit: &'static str, said: &str, now: Option<Backends>) {
        let before = self.before.remove(way.name);
        let Some(now) = now else { return };
        let number = now.number();
        let compiled = said.lines().filter_map(|line| Some(line.split_once("] opt ")?.1.to_owned()));
        let ran: Vec<String> = compiled.collect();
        if let Some(before) = &before {
            let changed = now.unlike(before);
            let counts = self.found.ways.entry(way.name).or_default();
            counts.counted += 1;
            counts.backends += number;
            counts.ran += ran.len();
            counts.changed += changed.must.len();
            if !changed.are_among(&ran) {
                counts.unequal += 1;
                let text = format!("  ran: {}\n  changed: {}\n", ran.join(" "), changed.must.join(" "));
                self.message(way, edit, "backends", &text);
            }
        }
        self.before.insert(way.name, now);
    }

    fn lacks_map(&self, way: Way) -> bool {
        let map = format!("{}.map", line::output(&self.program, way.dir));
        self.program.options.map && !self.workspace.path.join(map).exists()
    }

    /// Compares the backends that ran with those whose shard differs from that of the link before, and has to run with those whose
    /// shard no earlier link has had.
    fn count(&mut self, way: Way, edit: &'static str, events: &str, backends: Backends) -> Result<()> {
        let (ran, kept) = came_up(events)?;
        let number = backends.number();
        // A linker is left alone only with what no word of its line names.
        if number > 0 && backends.noted && !is_planned(events)? {
            self.before.remove(way.name);
            self.found.ways.entry(way.name).or_default().left += 1;
            return Ok(());
        }
        if number == 0 && ran.is_empty() {
            // The linker links by itself, and what is known of the link before stays.
            return Ok(());
        }
        let earlier = self.earlier.entry(way.name).or_default();
        let is_new = |name: &String| earlier.iter().all(|other| backends.unlike(other).must.contains(name));
        let Some(before) = self.before.insert(way.name, backends.clone()) else {
            earlier.push(backends);
            return Ok(());
        };
        let mut changed = backends.unlike(&before);
        changed.must.retain(is_new);
        earlier.push(backends);
        let counts = self.found.ways.entry(way.name).or_default();
        counts.counted += 1;
        counts.backends += number;
        counts.ran += ran.len();
        counts.kept += kept;
        counts.changed += changed.must.len();
        if !changed.fits(&ran) {
            counts.unequal += 1;
            let [ran, must, may] = [&ran, &changed.must, &changed.may].map(|names| names.join(" "));
            let text = format!("  ran: {ran}\n  changed: {must}\n  or called otherwise: {may}\n");
            self.message(way, edit, "backends", &text);
        }
        Ok(())
    }

    fn tell(&mut self, way: Way, edit: &'static str, kind: &'static str, text: &str) {
        *self.found.ways.entry(way.name).or_default().stale.entry(kind).or_default() += 1;
        self.message(way, edit, kind, text);
    }

    fn message(&mut self, way: Way, edit: &str, kind: &str, text: &str) {
        let (seed, number) = (self.seed, self.found.edits.values().sum::<usize>());
        self.found.messages.push(format!(
            "seed {seed}, edit {number} ({edit}): {}: {kind}\n{text}  again: cargo xtask campaign edits --seed {seed} \
             --count {number} --keep DIR\n",
            way.name
        ));
    }
}
