//! The same on a real engine, by every front end.

use std::path::Path;

use anyhow::{Result, ensure};
use distlto_tests::run::{capture, succeed, told};
use distlto_tests::{distlto, engine};

use super::program::{Checkout, Running, warnings};

#[test]
fn every_front_end_makes_the_same_on_a_real_engine() -> Result<()> {
    let url = engine::url()?;
    for round in ["first", "second"] {
        let checkout = Checkout::new()?;
        let link = checkout.remote_link(url, &["--remote-fallback=never"])?;
        let said = Running::start(link)?.right(&checkout)?;
        ensure!(warnings(&said).is_empty(), "{round}: {said}");
    }

    let checkout = Checkout::new()?;
    let mut plain = checkout.plain_link()?;
    plain.env("DISTLTO_REMOTE", url).env("DISTLTO_REMOTE_FALLBACK", "never");
    let output = capture(&mut plain)?;
    ensure!(output.status.success(), "{}", told(&plain, &output));
    // DTLTO and graphs have the linker's default names.
    let here = Checkout::new()?;
    succeed(&mut here.link(&["--exact-names"])?)?;
    ensure!(checkout.program()? == here.program()?, "{}", told(&plain, &output));

    // A graph of the same link.
    let checkout = Checkout::new()?;
    let link = checkout.link(&[])?;
    let words: Vec<_> = link.get_args().skip_while(|word| *word != "--").collect();
    let mut index = checkout.command(Path::new(distlto::binary()?))?;
    succeed(index.args(["index", "--index", "graph"]).args(words))?;
    let mut run = checkout.command(Path::new(distlto::binary()?))?;
    run.args(["run", "-j1", "--remote", url, "--remote-fallback=never", "graph"]);
    let ended = Running::start(run)?.end()?;
    ensure!(ended.output.status.success(), "{}", ended.told());
    ensure!(checkout.program()? == here.program()?, "{}", ended.told());
    checkout.check_temporaries()
}
