//! Many processes, and few descriptors.

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use distlto_tests::distlto;
use distlto_tests::store;

/// Descriptors that distlto may hold at any time.
const DESCRIPTORS: usize = 64;
const PATIENCE: Duration = Duration::from_secs(600);

#[test]
fn many_short_processes_cost_no_descriptors() -> Result<()> {
    let script = format!("ulimit -Sn 256; exec {} xargs -n1 -P4 /bin/true", distlto::binary()?.display());
    let numbers = tempfile::NamedTempFile::new()?;
    fs::write(numbers.path(), (0..3000).map(|number| format!("{number}\n")).collect::<String>())?;
    let mut command = Command::new("bash");
    store::give(&mut command);
    command.args(["-c", &script]).stdin(numbers.reopen()?).stdout(Stdio::null());
    let mut build = command.spawn()?;
    let folder = format!("/proc/{}/fd", build.id());
    let begun = Instant::now();
    let mut most = 0;
    let status = loop {
        if let Some(status) = build.try_wait()? {
            break status;
        }
        most = most.max(fs::read_dir(&folder).map_or(0, Iterator::count));
        if begun.elapsed() > PATIENCE {
            build.kill()?;
        }
        sleep(Duration::from_millis(5));
    };
    ensure!(status.success(), "{status}");
    ensure!((1..=DESCRIPTORS).contains(&most), "{most} descriptors at once");
    Ok(())
}
