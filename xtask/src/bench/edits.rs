//! `cargo xtask bench edits`: what one edit costs in a link, with precise keys and without, against lld with its own cache, and
//! what goes over the network where checkouts share a cache.
//!
//! Compiling is not measured. The ways take turns within each run.

mod ways;

use std::path::PathBuf;
use std::thread::available_parallelism;

use anyhow::Result;

use super::machine;
use super::measure::middle;
use super::picture::{self, Figures, Row};
use super::program;
use super::remote::server::Server;
use crate::project::{Edit, Project};
use crate::projects::{Name, bench_directory};
use crate::{setup, shell};
use ways::{Once, Way, Ways};

/// What to measure.
pub struct Request {
    /// Which programs.
    pub programs: Vec<Name>,
    /// Which kinds of edits, in this order.
    pub edits: Vec<Edit>,
    /// How often; medians are shown.
    pub runs: usize,
    /// Jobs at a time, for every way; the number of processors where absent.
    pub jobs: Option<usize>,
    /// Where figures for the README's picture go, and the picture beside them.
    pub json: Option<PathBuf>,
}

/// What is edited, for the table.
fn what(edit: Edit) -> &'static str {
    match edit {
        Edit::Leaf => "a function of a file that few import from",
        Edit::Apart => "a function that nobody imports, of a file that many import from",
        Edit::Wide => "a function that many import",
        Edit::Header => "a function in a header",
        Edit::Comment => "a comment in a file that many import from",
    }
}

/// The same in the picture.
fn briefly(edit: Edit) -> &'static str {
    match edit {
        Edit::Leaf => "Edit of a function that few import",
        Edit::Apart => "Edit of a function that nobody imports",
        Edit::Wide => "Edit of a function that many import",
        Edit::Header => "Edit of a function in a header",
        Edit::Comment => "Edit of a comment",
    }
}

/// Measures each program and prints a table for it.
pub fn edits(request: &Request) -> Result<()> {
    setup::programs()?;
    let distlto = shell::distlto()?;
    let jobs = request.jobs.unwrap_or_else(|| available_parallelism().map_or(1, usize::from));
    println!("edits, {jobs} jobs, medians of {} runs, {}", request.runs, machine());
    for name in &request.programs {
        let project = name.open(&bench_directory())?;
        let program = program::of_project(&project)?;
        let server = Server::start(&[])?;
        let ways = Ways { project: &project, program, distlto: &distlto, jobs, server };
        ways.forget()?;
        let mut cold = Vec::new();
        for way in Way::ALL {
            eprintln!("{}: {}: cold", project.name, way.name());
            cold.push(ways.link(way)?.linked.cost.wall);
        }
        println!("\n{}", project.name);
        let lld = cold[Way::Lld as usize];
        let row = |what: &str, lld, distlto| Row { what: what.to_owned(), lld, distlto };
        let mut rows = vec![
            row("First link", lld, cold[Way::Distlto as usize]),
            row("First link of a second checkout", lld, cold[Way::Second as usize]),
        ];
        for &edit in &request.edits {
            let runs = measured(&project, &ways, edit, request.runs.max(1))?;
            print(&format!("{}, {}", what(edit), project.edited(edit).0), &runs);
            let wall =
                |way: Way| middle(runs.iter().map(|links| links[way as usize].linked.cost.wall).collect());
            rows.push(row(briefly(edit), wall(Way::Lld), wall(Way::Distlto)));
        }
        if let Some(json) = &request.json {
            let (program, machine) = (project.name.to_string(), machine());
            picture::write(&Figures { program, machine, jobs, rows }, json)?;
        }
        project.restore()?;
    }
    Ok(())
}

/// The links of each run after an edit of this kind, the ways in the order of [`Way::ALL`].
fn measured(project: &Project, ways: &Ways<'_>, edit: Edit, runs: usize) -> Result<Vec<Vec<Once>>> {
    let mut all = Vec::new();
    project.restore()?;
    for run in 0..runs {
        eprintln!("{}: {edit:?}: run {} of {runs}", project.name, run + 1);
        project.edit(edit, run as u32 + 1)?;
        project.compile()?;
        let mut links = vec![Once::default(); Way::ALL.len()];
        // The second checkout finds what the first one has put into the cache.
        let turns = Way::ALL.len() - 1;
        for place in (0..turns).map(|place| (place + run) % turns).chain([turns]) {
            links[place] = ways.link(Way::ALL[place])?;
        }
        all.push(links);
    }
    Ok(all)
}

/// The medians of all runs, as ratios to the first way, and to the link that runs each backend whose shard or imports changed.
fn print(head: &str, runs: &[Vec<Once>]) {
    let against = |base: Way, way: Way, figure: &dyn Fn(&Once, &Once) -> f64| {
        middle(runs.iter().map(|links| figure(&links[way as usize], &links[base as usize])).collect())
    };
    let figures = |way: Way, figure: &dyn Fn(&Once, &Once) -> f64| against(Way::Lld, way, figure);
    let wall = |link: &Once, base: &Once| link.linked.cost.wall / base.linked.cost.wall;
    let changed = figures(Way::Exact, &|link, _| link.linked.ran as f64);
    let others = figures(Way::Exact, &|link, _| link.others as f64);
    println!("\n{head}: {changed} backends whose shard or imports changed, {others} objects are others");
    println!(
        "  {:32}{:>6}{:>6}{:>8}{:>9}{:>9}{:>9}{:>9}{:>9}{:>10}{:>10}",
        "", "ran", "kept", "cached", "wall s", "cpu s", "wall x", "cpu x", "x plain", "KiB up", "KiB down"
    );
    for way in Way::ALL {
        println!(
            "  {:32}{:>6}{:>6}{:>8}{:>9.3}{:>9.2}{:>9.3}{:>9.3}{:>9.3}{:>10.0}{:>10.0}",
            way.name(),
            figures(way, &|link, _| link.linked.ran as f64),
            figures(way, &|link, _| link.linked.kept as f64),
            figures(way, &|link, _| link.linked.cached as f64),
            figures(way, &|link, _| link.linked.cost.wall),
            figures(way, &|link, _| link.linked.cost.cpu),
            figures(way, &wall),
            figures(way, &|link, lld| link.linked.cost.cpu / lld.linked.cost.cpu),
            against(Way::Exact, way, &wall),
            figures(way, &|link, _| link.up as f64 / 1024.0),
            figures(way, &|link, _| link.down as f64 / 1024.0),
        );
    }
}
