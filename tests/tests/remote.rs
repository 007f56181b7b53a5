//! A link with an engine is the link on this machine, or fails in clear words: whatever the engine does.
//!
//! Real engines are casd's (`on_casd`); the server that errs is `distlto-reapi-server`. Nothing waits for a time where there
//! is something to wait for, and a test asserts on what the server counted that its fault was met.

mod access;
mod bounded;
mod cached;
mod executing;
mod faults;
mod gone;
mod http;
mod large;
mod on_casd;
mod program;
mod s3;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

/// Waits until something is so, which it is soon unless something is wrong.
fn until(mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !is_so()? {
        ensure!(begun.elapsed() < Duration::from_secs(300), "what was waited for did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
