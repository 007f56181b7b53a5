//! The lines of `docs/recipes.md` on projects of `examples/`, by `cargo xtask recipes`: each is built, tested, edited, built
//! twice and installed there, and what happened is read off distlto's own records.

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::run::succeed;

/// How many links an edit runs, of those of a clean build: that depends on the project alone. How many backends run depends on which
/// links run at once, as they share objects.
fn recipe(name: &str, edited: &str) -> Result<()> {
    let mut command = distlto::xtask();
    command.args(["recipes", "--debug", "--examples", name]);
    let output = succeed(&mut command)?;
    let said = String::from_utf8(output.stdout)?;
    let row = said.lines().last().context("a table has rows")?;
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    ensure!(cells.len() == 10 && cells[6].ends_with(edited), "{name}: {said}");
    Ok(())
}

#[test]
fn cmake_by_a_toolchain_file() -> Result<()> {
    recipe("cmake", "in 1 of 2 links")
}

#[test]
fn cmake_by_an_option_with_makefiles() -> Result<()> {
    recipe("cmake-make", "in 1 of 2 links")
}

#[test]
fn cmake_for_some_targets() -> Result<()> {
    recipe("cmake-enable", "in 1 of 2 links")
}

#[test]
fn meson() -> Result<()> {
    recipe("meson", "in 1 of 3 links")
}

#[test]
fn cargo_with_rust_and_cpp() -> Result<()> {
    recipe("rust", "in 1 of 1 links")
}

#[test]
fn gn() -> Result<()> {
    recipe("gn", "in 2 of 3 links")
}

#[test]
fn ninja() -> Result<()> {
    recipe("ninja", "in 1 of 2 links")
}

#[test]
fn cmake_by_one_word() -> Result<()> {
    recipe("cmake-word", "in 1 of 2 links")
}

#[test]
fn meson_by_one_word() -> Result<()> {
    recipe("meson-word", "in 1 of 3 links")
}
