//! Helpers for shared state within the process.

/// Locks a mutex, even after another holder panicked: every value in this crate's locks is
/// consistent between any two statements.
pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
