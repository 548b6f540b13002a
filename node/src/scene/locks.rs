//! One lock per key, which exists as long as it is held or awaited.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// Locks by key. Unused keys need no memory.
#[derive(Debug)]
pub(crate) struct Locks<K> {
    turns: Mutex<BTreeMap<K, Arc<Turn<()>>>>,
}

impl<K> Default for Locks<K> {
    fn default() -> Self {
        Self { turns: Mutex::default() }
    }
}

impl<K: Ord> Locks<K> {
    /// Waits for the key's turn, which lasts until the guard is dropped.
    pub(crate) async fn lock(&self, key: K) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.turns();
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            turns.entry(key).or_default().clone()
        };
        turn.lock_owned().await
    }

    fn turns(&self) -> MutexGuard<'_, BTreeMap<K, Arc<Turn<()>>>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn locks_of_different_keys_do_not_wait_for_each_other() {
        let locks = Locks::default();
        let first = locks.lock(1).await;
        let _other = locks.lock(2).await;
        let waiting = locks.lock(1);
        tokio::pin!(waiting);
        assert!(
            tokio::time::timeout(std::time::Duration::from_millis(5), &mut waiting).await.is_err()
        );
        drop(first);
        waiting.await;
        let _third = locks.lock(3).await;
        assert_eq!(locks.turns().len(), 2);
    }
}
