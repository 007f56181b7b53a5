//! Detects a command that ended for lack of memory: killed by others, or by its own message.
//!
//! The kernel's killer and those in user space (earlyoom, systemd-oomd) send SIGKILL. A shell, or a driver that starts
//! the compiler as a process of its own, then ends with its own code and text. Independent of the memory budget.

use signal_hook::consts::SIGKILL;

use crate::attempt::JobAttempt;
use crate::cause::Cause;
use crate::verify::{Refusal, Refused};

/// Exit code of a shell when its command was killed.
const SHELL: i32 = 128 + SIGKILL;

/// Messages of drivers about a killed compiler, and of LLVM and the C++ library about refused memory.
const TEXTS: &[&str] = &[
    "unable to execute command: Killed",
    "LLVM ERROR: out of memory",
    "terminate called after throwing an instance of 'std::bad_alloc'",
];

/// Returns whether the attempt may succeed when nothing else takes memory of this machine.
pub(super) fn for_want_of_memory(attempt: &JobAttempt) -> bool {
    let Err(Cause::Refused(Refused { refusal, .. })) = &attempt.result else { return false };
    if attempt.executed.as_ref().is_some_and(|executed| executed.worker.is_some()) {
        return false;
    }
    let said = || TEXTS.iter().any(|known| attempt.stderr.contains(known));
    match **refusal {
        Refusal::Signal { signal: SIGKILL, .. } | Refusal::Exit { code: SHELL, .. } => true,
        Refusal::Signal { .. } | Refusal::Exit { .. } => said(),
        _ => false,
    }
}
