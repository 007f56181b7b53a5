//! Tables of what a server does wrong: one row says how, and by what one sees that a link has met it.
//!
//! Knows nothing of what a link has to make of it.

use anyhow::{Result, ensure};
use distlto_reapi_server::{Break, Counts, Cut, Faults, Options, Server};

use super::program::Checkout;

/// One row.
pub struct Fault {
    name: &'static str,
    options: &'static [&'static str],
    set: fn(&mut Faults),
    met: fn(&Faults, &Counts) -> bool,
}

impl Fault {
    /// A fault, and whether it was met by the switches that are left and what the server counted.
    pub const fn new(name: &'static str, set: fn(&mut Faults), met: fn(&Faults, &Counts) -> bool) -> Self {
        Self { name, options: &[], set, met }
    }

    /// The same for a link with options.
    pub const fn with(self, options: &'static [&'static str]) -> Self {
        Self { options, ..self }
    }

    /// Links on a server that errs so; gives what was said and counted.
    pub fn link(&self, options: Options) -> Result<(String, Counts)> {
        let mut faults = Faults::default();
        (self.set)(&mut faults);
        let server = Server::start(options, faults)?;
        let said = Checkout::new()?.linked(&server, self.options)?;
        let (left, counts) = (server.faults(), server.counts());
        ensure!((self.met)(&left, &counts), "the fault was not met: {counts:#?}\n{left:#?}");
        Ok((said, counts))
    }
}

/// Has each one checked, and tells all that are wrong.
pub fn each(faults: &[Fault], check: impl Fn(&Fault) -> Result<()>) -> Result<()> {
    let told = |fault: &Fault| check(fault).err().map(|error| format!("{}: {error:#}", fault.name));
    let wrong: Vec<_> = faults.iter().filter_map(told).collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    Ok(())
}

/// A cut of streams.
pub fn cut(streams: u32, after: u64, how: Break) -> Option<Cut> {
    Some(Cut { streams, after, how })
}

/// Whether no stream is left to be cut.
pub fn is_used_up(cut: Option<Cut>) -> bool {
    cut.is_some_and(|cut| cut.streams == 0)
}

/// Every blob but the smallest is a stream.
pub fn all_streams(faults: &mut Faults) {
    faults.batch_limit = 1500;
}
