//! The lines of `docs/recipes.md` that a shell runs, by section and step.
//!
//! A block of the page that begins with `sh STEP` is one step of the section that it stands in, `sh STEP VARIANT` the same
//! step in another way. Blocks before the first section are for all. What `shell` holds is for every shell. Any other block
//! is for readers alone.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};

/// The steps, in the order in which they are taken.
const STEPS: [&str; 5] = ["shell", "configure", "build", "test", "install"];

/// The blocks by section (empty before the first), step and variant.
pub struct Page(BTreeMap<(String, String, String), String>);

impl Page {
    /// Reads the page.
    pub fn parse(text: &str) -> Result<Self> {
        let mut blocks = BTreeMap::new();
        let mut section = String::new();
        let mut lines = text.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            if let Some(name) = line.strip_prefix("## ") {
                name.clone_into(&mut section);
            }
            let Some(info) = line.strip_prefix("```") else { continue };
            let text: Vec<&str> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
            let mut words = info.split_whitespace();
            if words.next() != Some("sh") {
                continue;
            }
            let (step, variant) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            ensure!(STEPS.contains(&step), "docs/recipes.md:{}: `{step}` is none of {STEPS:?}", number + 1);
            let key = (section.clone(), step.to_owned(), variant.to_owned());
            if blocks.insert(key, text.join("\n")).is_some() {
                bail!("docs/recipes.md:{}: {section} has two blocks for `{step} {variant}`", number + 1);
            }
        }
        Ok(Self(blocks))
    }

    /// The script of a step, if the page has one.
    pub fn step(&self, section: &str, step: &str, variant: &str) -> Option<&str> {
        let of = |variant: &str| self.0.get(&(section.to_owned(), step.to_owned(), variant.to_owned()));
        of(variant).or_else(|| of("")).map(String::as_str)
    }

    /// The same with what every shell is told before; `instead` of the page's own step where that is not empty.
    pub fn script(&self, section: &str, step: &str, variant: &str) -> String {
        let lines = ["", section].map(|section| self.step(section, "shell", "").unwrap_or_default());
        let step = self.step(section, step, variant).unwrap_or_default();
        format!("set -eu\n{}\n{}\n{step}\n", lines[0], if section.is_empty() { "" } else { lines[1] })
    }
}

#[cfg(test)]
mod tests {
    use super::Page;

    const TEXT: &str = "```sh shell\nA=1\n```\n## One\n```sh build\nmake\n```\n```c\nint x;\n```\n\
                        ```sh build fast\nmake -j\n```\n## Two\n```sh build\nninja\n```\n";

    #[test]
    fn steps_are_found_by_section_and_variant() {
        let page = Page::parse(TEXT).unwrap();
        assert_eq!(page.step("One", "build", ""), Some("make"));
        assert_eq!(page.step("One", "build", "fast"), Some("make -j"));
        assert_eq!(page.step("One", "build", "slow"), Some("make"));
        assert_eq!(page.step("Two", "test", ""), None);
        assert_eq!(page.script("Two", "build", ""), "set -eu\nA=1\n\nninja\n");
    }

    #[test]
    fn two_blocks_of_one_step_and_unknown_steps_are_errors() {
        assert!(Page::parse("## A\n```sh build\n```\n```sh build\n```\n").is_err());
        assert!(Page::parse("```sh biuld\n```\n").is_err());
    }
}
