//! Helpers for shared state within the process.

/// Locks a mutex, also after a panic of another holder: every value guarded in this crate is whole
/// between any two statements.
pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
