//! Detects an action that failed because the system had no more processes, threads or open files for it here.
//!
//! Independent of limits; see `distlto_prepare::limits`.

use distlto_prepare::limits::Lack;

use crate::attempt::JobAttempt;
use crate::cause::Cause;
use crate::verify::{Refusal, Refused};

/// Returns the lacking resource, if fewer jobs at once may help. A compiler's own words about it become the cause.
pub(super) fn of(attempt: &mut JobAttempt) -> Option<Lack> {
    let Err(cause) = &attempt.result else { return None };
    if attempt.executed.as_ref().is_some_and(|executed| executed.worker.is_some()) {
        return None;
    }
    if let Some(lack) = Lack::of(cause) {
        return Some(lack);
    }
    let Cause::Refused(Refused { module, refusal }) = cause else { return None };
    if !matches!(**refusal, Refusal::Exit { .. } | Refusal::Signal { .. }) {
        return None;
    }
    let lack = Lack::said(attempt.stderr.as_bytes())?;
    attempt.result = Err(Cause::Lacks { label: module.clone(), source: lack.into() });
    Some(lack)
}
