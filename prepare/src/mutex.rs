//! Locks that a panic elsewhere does not take away: what they guard is changed in steps that each leave it whole.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a lock guards, for as long as this is held.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
