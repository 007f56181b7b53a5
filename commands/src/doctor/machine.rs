//! Memory, processors and a build's job slots, as a run would find them.
//!
//! Does not depend on tools.

use std::thread;
use std::time::Instant;

use distlto_executor::schedule::memory::{Limit, Memory, System};
use distlto_executor::schedule::tokens::{JobSlots, Unusable};
use distlto_record::progress::text::{counted, size};

use super::Doctor;

impl Doctor<'_> {
    /// Reports on memory, processors, job slots and other links.
    pub(super) fn machine(&mut self, slots: Result<Option<JobSlots>, Unusable>) {
        self.report.about("memory");
        self.memory(&System::real());
        self.report.about("processors");
        self.processors();
        self.report.about("job slots");
        self.job_slots(slots);
        self.report.about("other links");
        self.ledger();
    }

    fn memory(&mut self, system: &System) {
        let budget = Memory::new(Limit::Available, system.clone(), Instant::now()).last();
        match (system.available(), budget) {
            (Some(available), Some(budget)) => self.report.good(&format!(
                "{} are available, of which jobs may take {} together (--memory says otherwise)",
                size(available),
                size(budget)
            )),
            _ => self.report.note(
                "the system does not say how much is available: nothing waits for memory unless --memory says how much",
            ),
        }
        match system.limit() {
            Some(limit) => self.report.note(&format!("a control group allows {} in all", size(limit))),
            None => self.report.good("no control group that is seen here limits it"),
        }
        if system.stalled().is_none() {
            self.report.note("the kernel does not count waits for memory (PSI), so that none slows starts");
        }
    }

    fn processors(&mut self) {
        let Ok(jobs) = thread::available_parallelism().map(usize::from) else {
            return self
                .report
                .note("the system does not say how many there are: jobs run one by one (-j N)");
        };
        self.report.good(&format!("at most {} at once (-j says otherwise)", counted(jobs, "job")));
        let allowed = rustix::thread::sched_getaffinity(None).map(|set| set.count() as usize);
        if let Some(allowed) = allowed.ok().filter(|&allowed| allowed > jobs) {
            self.report.note(&format!("a control group's quota leaves {jobs} of {allowed} processors"));
        }
    }

    fn job_slots(&mut self, found: Result<Option<JobSlots>, Unusable>) {
        match found {
            Ok(Some(_)) => self.report.good("jobs take slots of the build that runs this"),
            Ok(None) if std::env::var_os("MAKELEVEL").is_some() => {
                self.report
                    .note("the make that runs this has no job slots: it has some if it is run with -j N");
            }
            Ok(None) => {
                self.report
                    .note("no make, Ninja or cargo with job slots runs this: jobs are as many as -j says");
            }
            Err(unusable) => self.report.wrong(&format!("{unusable}: jobs take none of them")),
        }
    }
}
