//! Detects an action that failed because this machine had too little left for it: memory, or the system's processes,
//! threads and open files.
//!
//! The kernel's killer and those in user space (earlyoom, systemd-oomd) send SIGKILL. A shell, or a driver that starts
//! the compiler as a process of its own, then ends with its own code and text. Independent of the memory budget and of
//! the limits (`distlto_prepare::limits`).

use distlto_prepare::limits::SystemLimit;
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
pub(super) fn of_memory(attempt: &JobAttempt) -> bool {
    let Err(Cause::Refused(Refused { refusal, .. })) = &attempt.result else { return false };
    if attempt.ran_elsewhere() {
        return false;
    }
    let said = || TEXTS.iter().any(|known| attempt.stderr.contains(known));
    match **refusal {
        Refusal::Signal { signal: SIGKILL, .. } | Refusal::Exit { code: SHELL, .. } => true,
        Refusal::Signal { .. } | Refusal::Exit { .. } => said(),
        _ => false,
    }
}

/// Returns the lacking resource, if fewer jobs at once may help. A compiler's own words about it become the cause.
pub(super) fn of_system_limit(attempt: &mut JobAttempt) -> Option<SystemLimit> {
    let Err(cause) = &attempt.result else { return None };
    if attempt.ran_elsewhere() {
        return None;
    }
    if let Some(limit) = SystemLimit::of(cause) {
        return Some(limit);
    }
    let Cause::Refused(Refused { module, refusal }) = cause else { return None };
    if !matches!(**refusal, Refusal::Exit { .. } | Refusal::Signal { .. }) {
        return None;
    }
    let limit = SystemLimit::in_output(attempt.stderr.as_bytes())?;
    attempt.result = Err(Cause::SystemLimit { label: module.clone(), source: limit.into() });
    Some(limit)
}
