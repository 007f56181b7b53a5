//! `cargo xtask recipes`: each section of `docs/recipes.md` on a project, from clean, after one edit, installed.
//!
//! The lines that run are those of the page. What they did is read off the records that distlto keeps of its runs
//! (`docs/run-record.md`) and off the files that are there. Knows nothing of how a link is made.

mod examples;
mod page;
mod projects;
mod run;
mod seen;
mod third_party;

use std::fs::{self, File};

use anyhow::{Result, bail, ensure};

use crate::recipes::page::Page;
use crate::recipes::projects::Project;
use crate::recipes::run::Build;
use crate::recipes::seen::Seen;
use crate::shell::{root, target};
use crate::{apt, install};

/// What is built.
pub struct Request {
    /// The projects of this repository in place of other people's.
    pub examples: bool,
    /// distlto without optimisation.
    pub debug: bool,
    /// Names of projects; all where empty.
    pub names: Vec<String>,
}

const HEADER: [&str; 8] = [
    "recipe",
    "project",
    "links",
    "backends",
    "own tests",
    "backends after an edit",
    "second build",
    "installed",
];

/// Builds the projects and prints a row for each.
pub fn recipes(request: &Request) -> Result<()> {
    let page = Page::parse(&fs::read_to_string(root().join("docs/recipes.md"))?)?;
    let all = if request.examples { examples::EXAMPLES } else { third_party::THIRD_PARTY };
    for name in &request.names {
        let known: Vec<&str> = all.iter().map(|project| project.name).collect();
        ensure!(
            known.contains(&name.as_str()),
            "no project is called {name}; there are {}",
            known.join(", ")
        );
    }
    let wanted: Vec<&Project> = all
        .iter()
        .filter(|project| request.names.is_empty() || request.names.iter().any(|name| name == project.name))
        .collect();
    apt::provide(&wanted.iter().flat_map(|project| project.tools).copied().collect::<Vec<_>>())?;
    let prefix = target().join("recipes/prefix");
    let directory = target().join("recipes").join(if request.examples { "examples" } else { "third-party" });
    fs::create_dir_all(&directory)?;
    {
        // Tests run this program several times at once.
        let lock = File::create(prefix.with_file_name("lock"))?;
        lock.lock()?;
        install::install(&prefix, request.debug)?;
    }
    println!("| {} |\n|{}", HEADER.join(" | "), "---|".repeat(HEADER.len()));
    let mut failed = Vec::new();
    for project in wanted {
        match Build::prepare(project, &page, &directory, &prefix).and_then(|build| row(&build)) {
            Ok(row) => println!("| {} |", row.join(" | ")),
            Err(error) => {
                eprintln!("error: {}: {error:#}", project.name);
                failed.push(project.name);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("not as the page says: {}", failed.join(", ")) }
}

/// Builds a project as its recipe says, checks what the recipe promises, and says what was seen.
fn row(build: &Build) -> Result<[String; 8]> {
    build.step("configure")?;
    let before = Seen::of(&build.work)?;
    build.step("build")?;
    let built = Seen::of(&build.work)?;
    let clean = built.since(&before)?;
    ensure!(clean.links > 0 && clean.ran > 0, "distlto has linked nothing");
    ensure!(clean.failed == 0, "a clean build: {clean:?}");
    build.step("test")?;

    // Tests may be programs that are built for them alone.
    let before = Seen::of(&build.work)?;
    build.edit()?;
    build.step("build")?;
    let edited = Seen::of(&build.work)?;
    let again = edited.since(&before)?;
    ensure!(again.ran > 0, "no backend ran after an edit");
    ensure!(again.ran < clean.ran && again.failed == 0, "an edit ran {again:?} of {clean:?}");

    build.step("build")?;
    let unchanged = Seen::of(&build.work)?;
    let second = unchanged.since(&edited)?;
    ensure!(second.links == 0, "a second build links: {second:?}");
    let written = unchanged.written_since(&edited);
    ensure!(written.is_empty(), "a second build writes {written:?}");

    build.step("install")?;
    let files = seen::installed(&build.destination)?;
    let relinked = Seen::of(&build.work)?.since(&unchanged)?.ran;
    ensure!(relinked == 0, "an installation ran {relinked} backends");
    Ok([
        build.project.recipe.to_owned()
            + if build.project.variant.is_empty() { "" } else { ", " }
            + build.project.variant,
        build.project.title(),
        clean.links.to_string(),
        clean.ran.to_string(),
        "passed".to_owned(),
        format!("{} of {}, in {} of {} links", again.ran, clean.ran, again.links, clean.links),
        "links nothing".to_owned(),
        format!("no state in {files} file(s)"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_project_has_lines_for_each_step() {
        let text = fs::read_to_string(root().join("docs/recipes.md")).unwrap();
        let page = Page::parse(&text).unwrap();
        for project in examples::EXAMPLES.iter().chain(third_party::THIRD_PARTY) {
            for step in ["configure", "build", "test", "install"] {
                let own = project.own.iter().any(|(name, _)| *name == step);
                let said = page.step(project.recipe, step, project.variant).is_some();
                assert!(own || said, "{}: {} has no `sh {step}`", project.name, project.recipe);
            }
        }
    }
}
