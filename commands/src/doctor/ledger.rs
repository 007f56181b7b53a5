//! The ledger by which concurrent links share this machine: reports its place and the present holdings.
//!
//! Waits for no run except one that is just writing. Does not depend on the meaning of the sums for a schedule.

use std::fs;

use distlto_executor::ledger::holding::Holding;
use distlto_executor::ledger::{Ledger, LedgerError, place};
use distlto_prepare::text::printable;
use distlto_record::progress::text::{counted, size};

use super::Doctor;

/// So much of a command line is shown.
const SHOWN: usize = 100;

impl Doctor<'_> {
    /// Reports on the ledger.
    pub(super) fn ledger(&mut self) {
        let alone = "links that run at once know nothing of each other";
        match holdings() {
            Ok(None) => self.report.note(&format!("{} switches the ledger off: {alone}", place::VARIABLE)),
            Err(error) => {
                self.report.wrong(&format!("{error}: {alone} ({} names another place)", place::VARIABLE))
            }
            Ok(Some((shown, holdings))) => {
                self.report.good(&format!(
                    "links that run at once share memory and job slots by {shown} ({} names another place, or is off)",
                    place::VARIABLE
                ));
                if holdings.is_empty() {
                    self.report.good("no other link runs jobs at the moment");
                }
                holdings.iter().for_each(|holding| self.report.note(&sentence(holding)));
            }
        }
    }
}

type LedgerHoldings = (String, Vec<Holding>);

/// Returns the place of the ledger and its holdings; `None` if it is switched off.
fn holdings() -> Result<Option<LedgerHoldings>, LedgerError> {
    let Some(place) = place::of_environment()? else { return Ok(None) };
    let shown = place.display().to_string();
    let ledger = Ledger::existing(place)?;
    let holdings = ledger.map(|ledger| ledger.holdings()).transpose()?;
    Ok(Some((shown, holdings.unwrap_or_default())))
}

fn sentence(holding: &Holding) -> String {
    let mut text = format!("process {}", holding.process);
    if let Some(command) = command_line(holding.process) {
        text.push_str(&format!(" ({command})"));
    }
    text.push_str(&format!(
        " runs {} with {} of memory",
        counted(holding.slots, "job"),
        size(holding.memory)
    ));
    if holding.beside > 0 {
        text.push_str(&format!(", for a linker that holds {}", size(holding.beside)));
    }
    if let Some(wish) = holding.waits {
        text.push_str(&format!("; the next one waits for {}", size(wish.memory)));
    }
    text
}

/// The beginning of a process's command line.
fn command_line(process: u32) -> Option<String> {
    let line = fs::read(format!("/proc/{process}/cmdline")).ok()?;
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    let line = line.trim_end();
    let shown: String = line.chars().take(SHOWN).collect();
    let rest = if shown.len() < line.len() { "..." } else { "" };
    (!line.is_empty()).then(|| format!("{}{rest}", printable(&shown)))
}
