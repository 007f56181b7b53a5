//! Locks that survive a panic of another holder: each step of a change leaves the guarded value whole.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the value until the guard is dropped, also after a panic elsewhere.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
