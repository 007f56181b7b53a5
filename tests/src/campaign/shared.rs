//! `campaign shared`: the links of `campaign reads` in two checkouts that share whole links by a server, against links
//! without one.
//!
//! After each change the first checkout links, then a copy of it with an empty store, and then, now and then, a copy from
//! before an earlier change. The oracle is a link of the same files without a server and a store.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};
use distlto_reapi_server::{Faults, Options, Server};

use super::links::{Request, each};
use super::random::Random;
use super::reads::Link;
use crate::run::{capture, succeed, told};
use crate::toolchain::Toolchain;

/// Changes of each link.
const CHANGES: usize = 8;

/// What came of all links.
#[derive(Debug, Default)]
pub struct Found {
    /// Links with a server.
    pub links: usize,
    /// Those of them that came from there, so that no linker ran.
    pub whole: usize,
    /// Why links were not kept there, with their numbers.
    pub reasons: BTreeMap<String, usize>,
    /// What is wrong, and where.
    pub messages: Vec<String>,
}

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { links, whole, reasons, messages } = self;
        for (reason, number) in reasons {
            writeln!(formatter, "{number:6} not shared: {reason}")?;
        }
        write!(
            formatter,
            "{links} links, of which {whole} came whole from the server; wrong {}",
            messages.len()
        )
    }
}

/// Runs the campaign; tells what is wrong as it is found.
pub fn shared(request: &Request, toolchain: Toolchain) -> Result<Found> {
    each(
        request,
        |seed| Checkouts::run(request, toolchain, seed),
        |all: &mut Found, one: Found| {
            one.messages.iter().for_each(|message| println!("{message}"));
            all.links += one.links;
            all.whole += one.whole;
            all.messages.extend(one.messages);
            for (reason, number) in one.reasons {
                *all.reasons.entry(reason).or_default() += number;
            }
        },
    )
}

/// The files of a link: names, contents and whether they may be executed.
type Files = Vec<(String, Option<(Vec<u8>, bool)>)>;

struct Checkouts {
    seed: u64,
    server: Server,
    link: Link,
    /// Where copies and stores are.
    folder: PathBuf,
    copies: usize,
    found: Found,
}

impl Checkouts {
    fn run(request: &Request, toolchain: Toolchain, seed: u64) -> Result<Found> {
        let mut random = Random::new(seed ^ 0x0077_686f_6c65);
        let link = Link::create(request, toolchain, seed)?;
        let folder = link.path.with_extension("shared");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        let server = Server::start(Options::default(), Faults::default())?;
        let mut checkouts = Self { seed, server, link, folder, copies: 0, found: Found::default() };
        let mut earlier = Vec::new();
        for number in 0..=CHANGES {
            if number > 0 {
                let change = checkouts.link.draw(&mut random);
                checkouts.link.change(&mut random, change)?;
            }
            // What was written in this tick of the clock is too young to be known.
            std::thread::sleep(std::time::Duration::from_millis(60));
            let pristine = checkouts.copy(&checkouts.link.path.clone())?;
            let fresh = checkouts.copy(&pristine)?;
            let command = checkouts.command(&fresh)?;
            let expected = checkouts.linked(command, &fresh)?;
            let variables = checkouts.link.variables.clone();
            checkouts.check("the first checkout", &checkouts.link.path.clone(), &expected)?;
            let other = checkouts.copy(&pristine)?;
            checkouts.check("another checkout", &other, &expected)?;
            earlier.push((pristine, variables, expected));
            let (pristine, variables, expected) = &earlier[random.below(earlier.len())];
            let now = std::mem::replace(&mut checkouts.link.variables, variables.clone());
            let other = checkouts.copy(pristine)?;
            checkouts.check("a checkout of an earlier state", &other, expected)?;
            checkouts.link.variables = now;
        }
        if !request.keep {
            fs::remove_dir_all(&checkouts.folder)?;
            fs::remove_dir_all(&checkouts.link.path)?;
        }
        Ok(checkouts.found)
    }

    fn copy(&mut self, of: &Path) -> Result<PathBuf> {
        self.copies += 1;
        let copy = self.folder.join(format!("checkout-{}", self.copies));
        succeed(Command::new("cp").arg("-a").arg(of).arg(&copy))?;
        Ok(copy)
    }

    /// A link in a place, with an empty store but for the first checkout.
    fn command(&mut self, place: &Path) -> Result<Command> {
        let mut command = self.link.command(place)?;
        if place != self.link.path {
            self.copies += 1;
            let store = self.folder.join(format!("store-{}", self.copies));
            fs::create_dir(&store)?;
            command.env("XDG_CACHE_HOME", store);
        }
        Ok(command)
    }

    fn files(&self, place: &Path) -> Files {
        let file = |name: &str| {
            let path = place.join(name);
            let is_executable = fs::metadata(&path).ok()?.permissions().mode() & 0o111 != 0;
            Some((fs::read(&path).ok()?, is_executable))
        };
        self.link.outputs().map(|name| (name.to_owned(), file(name))).collect()
    }

    fn linked(&mut self, mut command: Command, place: &Path) -> Result<Files> {
        let output = capture(&mut command)?;
        ensure!(output.status.success(), "{}", told(&command, &output));
        let said = String::from_utf8_lossy(&output.stderr);
        self.found.whole += usize::from(said.contains("the whole link"));
        if let Some((_, reason)) = said.split_once("the link is not shared: ") {
            let reason = reason.lines().next().unwrap_or_default().to_owned();
            *self.found.reasons.entry(reason).or_default() += 1;
        }
        Ok(self.files(place))
    }

    fn check(&mut self, what: &str, place: &Path, expected: &Files) -> Result<()> {
        let mut command = self.command(place)?;
        command.env("DISTLTO_SHARE_LINKS", "1").env("DISTLTO_REMOTE_CACHE", self.server.url());
        let found = self.linked(command, place)?;
        self.found.links += 1;
        let differing = expected.iter().zip(&found).filter(|(one, other)| one != other);
        let names: Vec<&str> = differing.map(|((name, _), _)| name.as_str()).collect();
        if !names.is_empty() {
            let text = format!(
                "seed {}: {what} has other files: {}\n  in {}\n  again: cargo xtask campaign shared --seed {0} --count 1 --keep DIR\n",
                self.seed,
                names.join(", "),
                place.display()
            );
            self.found.messages.push(text);
        }
        Ok(())
    }
}
