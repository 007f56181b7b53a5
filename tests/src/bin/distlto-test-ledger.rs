//! A run without compilers: it takes part in a ledger and runs jobs that are nothing but a pause.
//!
//! `distlto-test-ledger LEDGER hold MEMORY` takes a slot and so much memory, says `held`, and keeps it until its standard
//! input ends. `distlto-test-ledger LEDGER work COUNT MEMORY BUDGET MOST` runs COUNT jobs of MEMORY each within BUDGET, by the
//! rules of a run, and ends with exit code 1 as soon as it sees that several jobs together hold more than MOST.

use std::env;
use std::error::Error;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use distlto_executor::ledger::holding::{Holding, Wish};
use distlto_executor::ledger::share::{self, RunLimits, Sums};
use distlto_executor::ledger::{Ledger, Seat};

fn main() -> ExitCode {
    match work() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("distlto-test-ledger: {error}");
            ExitCode::FAILURE
        }
    }
}

fn work() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (place, rest) = arguments.split_first().ok_or("no ledger is named")?;
    let mut seat = Ledger::open(PathBuf::from(place))?.join()?;
    match *rest {
        ["hold", memory] => {
            let held = Holding { slots: 1, memory: memory.parse()?, ..Holding::default() };
            seat.turn()?.write(&held)?;
            println!("held");
            io::stdin().read_to_end(&mut Vec::new())?;
            Ok(())
        }
        ["work", count, memory, budget, most] => {
            jobs(&mut seat, (count.parse()?, memory.parse()?), budget.parse()?, most.parse()?)
        }
        _ => Err("usage: distlto-test-ledger LEDGER hold MEMORY | work COUNT MEMORY BUDGET MOST".into()),
    }
}

fn jobs(seat: &mut Seat, (count, memory): (u64, u64), budget: u64, most: u64) -> Result<(), Box<dyn Error>> {
    let limits = RunLimits { slots: None, memory: Some(budget) };
    let (mut left, mut own) = (count, Holding { most: Some(budget), ..Holding::default() });
    while left > 0 || own.slots > 0 {
        let turn = seat.turn()?;
        let sums = Sums::of(turn.others());
        let all = sums.memory + own.memory;
        if all > most && sums.slots + own.slots > 1 {
            return Err(format!("{all} of {most} are held: {own:?} and {:?}", turn.others()).into());
        }
        let now = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())?;
        let since = own.waits.map_or(now, |wish| wish.since);
        let room = share::share_of((own.slots, since), limits, turn.others(), |other| turn.goes_on(other));
        let fits = own.memory + memory <= room.memory || (own.slots == 0 && !room.first_waits);
        let starts = left > 0 && fits && own.slots < 3;
        own.waits = (left > 0 && !starts).then_some(Wish { since, slots: 1, memory });
        if starts {
            (left, own.slots, own.memory) = (left - 1, own.slots + 1, own.memory + memory);
        } else if own.slots > 0 {
            (own.slots, own.memory) = (own.slots - 1, own.memory - memory);
        }
        let others = turn.others().len() as u64;
        turn.write(&own)?;
        sleep(Duration::from_millis(1 + others));
    }
    Ok(())
}
