//! The store of a coordinator that does not lead: whatever reaches it is refused.

use crate::store::{Changes, Loaded, Store, StoreError};

/// A store that takes nothing.
pub(super) struct NoStore {
    /// Address of the store that another one leads.
    pub(super) store: String,
}

impl NoStore {
    fn refusal(&self) -> StoreError {
        let why = "it stands by, and writes nothing".to_owned();
        StoreError::NotLeader { store: self.store.clone(), why }
    }
}

impl Store for NoStore {
    fn load(&self) -> Result<Loaded, StoreError> {
        Err(self.refusal())
    }

    fn tidy(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn commit(&mut self, _: &Changes) -> Result<(), StoreError> {
        Err(self.refusal())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_can_be_committed() {
        let mut none = NoStore { store: "postgres://there".to_owned() };
        let refused = none.commit(&Changes::default()).unwrap_err();
        assert!(matches!(refused, StoreError::NotLeader { .. }), "{refused}");
        assert!(none.load().is_err());
    }
}
