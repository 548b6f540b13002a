//! Memory that a scene may use, counted before anything is allocated. Counts never go down, so that
//! repeated work also has an end.

use crate::error::SceneError;
use crate::options::Limits;
use std::sync::atomic::{AtomicU64, Ordering};

/// Approximate bytes of a parsed JSON object, and of a JSON value after a comma.
const OBJECT_BYTES: u64 = 256;
const VALUE_BYTES: u64 = 32;

/// Bytes that a scene may still use, shared by everything that reads for it.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: u64,
    spent: AtomicU64,
    /// Bytes of compressed images, and of their content.
    packed: AtomicU64,
    unpacked: AtomicU64,
    expansion_bytes: u64,
    expansion_ratio: u64,
}

impl Budget {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            limit: limits.memory_bytes,
            spent: AtomicU64::new(0),
            packed: AtomicU64::new(0),
            unpacked: AtomicU64::new(0),
            expansion_bytes: limits.expansion_bytes,
            expansion_ratio: limits.expansion_ratio,
        }
    }

    /// Counts `count` elements of `size` bytes that will be allocated for the item at `path` of
    /// `file`.
    pub(crate) fn spend(
        &self,
        count: u64,
        size: u64,
        file: &str,
        path: &str,
    ) -> Result<(), SceneError> {
        let bytes = count.saturating_mul(size);
        let spent =
            self.spent.fetch_add(bytes.min(u64::MAX / 4), Ordering::Relaxed).saturating_add(bytes);
        if spent <= self.limit {
            return Ok(());
        }
        let (path, limit) = (path.to_owned(), self.limit);
        Err(SceneError::Memory { file: file.into(), path, needed: spent, limit })
    }

    /// Counts the JSON of a file in its parsed form.
    pub(crate) fn spend_json(&self, json: &[u8], file: &str) -> Result<(), SceneError> {
        let (mut objects, mut values) = (0, 0);
        let (mut in_string, mut escaped) = (false, false);
        for byte in json {
            match (in_string, byte) {
                (true, _) if escaped => escaped = false,
                (true, b'\\') => escaped = true,
                (_, b'"') => in_string = !in_string,
                (false, b'{') => objects += 1,
                (false, b',') => values += 1,
                _ => {}
            }
        }
        self.spend(objects, OBJECT_BYTES, file, "(its JSON)")?;
        self.spend(values, VALUE_BYTES, file, "(its JSON)")
    }

    /// Counts an image of `packed` bytes with `unpacked` bytes of content. The error says what is
    /// wrong and what to do.
    pub(crate) fn expand(&self, packed: u64, unpacked: u64) -> Result<(), String> {
        let packed = self.packed.fetch_add(packed, Ordering::Relaxed).saturating_add(packed);
        let total = self.unpacked.fetch_add(unpacked, Ordering::Relaxed).saturating_add(unpacked);
        let most = self.expansion_bytes.saturating_add(packed.saturating_mul(self.expansion_ratio));
        if total <= most {
            return Ok(());
        }
        let (ratio, free) = (self.expansion_ratio, self.expansion_bytes);
        Err(format!(
            "with it, images of {packed} bytes give {total}, more than {free} and \
             {ratio} for each byte; make it smaller"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(memory_bytes: u64) -> Budget {
        let limits =
            Limits { memory_bytes, expansion_bytes: 100, expansion_ratio: 10, ..Limits::default() };
        Budget::new(&limits)
    }

    #[test]
    fn counted_memory_stays_counted() {
        let budget = budget(100);
        assert!(budget.spend(10, 6, "f", "p").is_ok());
        assert!(budget.spend(10, 4, "f", "p").is_ok());
        assert!(budget.spend(1, 1, "f", "p").unwrap_err().to_string().contains("p"));
        assert!(budget.spend(u64::MAX, u64::MAX, "f", "p").is_err());
        assert!(budget.spend(u64::MAX, u64::MAX, "f", "p").is_err());
    }

    #[test]
    fn json_is_counted_by_its_parsed_size() {
        let budget = budget(1 << 20);
        assert!(budget.spend_json(br#"{"a":"{{{{\",,,,","b":[1,2]}"#, "f").is_ok());
        assert_eq!(budget.spent.load(Ordering::Relaxed), OBJECT_BYTES + 2 * VALUE_BYTES);
        assert!(budget.spend_json("{},".repeat(1 << 20).as_bytes(), "f").is_err());
    }

    #[test]
    fn images_give_what_is_free_and_a_multiple_of_their_files() {
        let budget = budget(1 << 20);
        assert!(budget.expand(1, 100).is_ok());
        assert!(budget.expand(1, 21).is_err());
        assert!(budget.expand(1000, 5000).is_ok());
    }
}
