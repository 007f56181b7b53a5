//! The same on a real engine, by every front end.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use distlto_tests::run::{capture, told};
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
    checkout.check_program()?;

    // In two steps the linker names modules otherwise: the oracle is the same link on this machine.
    let link = |remote: &[&str]| -> Result<_> {
        let checkout = Checkout::new()?;
        let options = [&["--two-step", "-j1", "--save-plan=plan.json"], remote].concat();
        let ended = Running::start(checkout.link(&options)?)?.end()?;
        ensure!(ended.output.status.success(), "{}", ended.told());
        Ok((checkout.objects()?, fs::read(checkout.path.join("program"))?, checkout))
    };
    let here = link(&[])?;
    let there = link(&["--remote", url, "--remote-fallback=never"])?;
    ensure!(here.0 == there.0 && here.1 == there.1, "in two steps another program is made");

    // The graph of that link, from the beginning.
    let checkout = here.2;
    let remove = |name: &str| fs::remove_dir_all(checkout.path.join(name));
    remove("program.distlto/objects")?;
    fs::remove_file(checkout.path.join("program"))?;
    let mut run = checkout.command(Path::new(distlto::binary()?))?;
    run.args(["run", "-j1", "--remote", url, "--remote-fallback=never", "plan.json"]);
    let ended = Running::start(run)?.end()?;
    ensure!(ended.output.status.success(), "{}", ended.told());
    ensure!(
        fs::read(checkout.path.join("program"))? == here.1 && checkout.objects()? == here.0,
        "{}",
        ended.told()
    );
    checkout.check_temporaries()
}
