//! Whether a command was ended for want of memory: killed without our doing, or by its own word.
//!
//! The kernel's killer and those in user space (earlyoom, systemd-oomd) send SIGKILL. A shell and a driver that start
//! the compiler as a process of its own end with a code and a text of their own then. Knows nothing of memory.

use signal_hook::consts::SIGKILL;

use crate::attempt::JobAttempt;
use crate::cause::Cause;
use crate::verify::{Refusal, Refused};

/// What a shell ends with when its command was killed.
const SHELL: i32 = 128 + SIGKILL;

/// What drivers print of a compiler that was killed, and LLVM and the C++ library of memory that the system refuses.
const TEXTS: &[&str] = &[
    "unable to execute command: Killed",
    "LLVM ERROR: out of memory",
    "terminate called after throwing an instance of 'std::bad_alloc'",
];

/// Whether the attempt may succeed when nothing else takes memory of this machine.
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
