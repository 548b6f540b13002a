//! Whether this process still leads its store, for threads that do not write to it.

use super::StoreError;
use std::sync::Arc;

/// A question that any thread can ask at no cost.
#[derive(Clone)]
pub struct LeadCheck(Arc<dyn Fn() -> Result<(), StoreError> + Send + Sync>);

impl LeadCheck {
    /// `check` must not wait. It fails if this process leads no more, and says why.
    pub fn new(check: impl Fn() -> Result<(), StoreError> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    /// Fails if this process leads its store no more: what it knows may be old.
    pub fn check(&self) -> Result<(), StoreError> {
        (self.0)()
    }
}

impl std::fmt::Debug for LeadCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LeadCheck({:?})", self.check().is_ok())
    }
}
