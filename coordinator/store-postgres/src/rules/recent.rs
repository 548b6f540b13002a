//! The newest commits that the database has taken. A database that lost its end, as after a
//! takeover by an asynchronous standby, gets them again. Owns their bound, and sends nothing.

use std::collections::VecDeque;
use std::sync::Arc;

/// Most bytes that are kept, beside the newest commit.
const BYTES_MAX: usize = 32 << 20;

/// Where a database stands between two commits: the newest record, and the number of commits.
pub type Place = (i64, i64);

/// A commit, and where the database stood before it.
pub type Kept<G> = (Place, Arc<G>);

/// What a commit sends.
pub trait Sent {
    /// Sequence of the newest record after it.
    fn head(&self) -> i64;
    /// Bytes that are sent, about.
    fn bytes(&self) -> usize;
}

/// The newest commits, each following the one before it.
#[derive(Debug)]
pub struct Recent<G> {
    commits: VecDeque<Kept<G>>,
    bytes: usize,
    most: usize,
}

impl<G: Sent> Default for Recent<G> {
    fn default() -> Self {
        Self::with_most(BYTES_MAX)
    }
}

impl<G: Sent> Recent<G> {
    /// Keeps so many bytes, beside the newest commit.
    pub fn with_most(most: usize) -> Self {
        Self { commits: VecDeque::new(), bytes: 0, most }
    }

    /// Keeps a commit that the database has taken, and forgets the oldest ones beyond the bound.
    pub fn keep(&mut self, before: Place, group: Arc<G>) {
        self.bytes += group.bytes();
        self.commits.push_back((before, group));
        while self.bytes > self.most && self.commits.len() > 1 {
            let oldest = self.commits.pop_front();
            self.bytes -= oldest.map_or(0, |(_, group)| group.bytes());
        }
    }

    /// Returns the commits that a database at this place lacks, in order; None if it was never at
    /// this place, or so long ago that its next commit is not kept.
    pub fn since(&self, place: Place) -> Option<VecDeque<Kept<G>>> {
        let first = self.commits.iter().position(|(before, _)| *before == place)?;
        Some(self.commits.range(first..).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bytes(usize);

    impl Sent for Bytes {
        fn head(&self) -> i64 {
            0
        }

        fn bytes(&self) -> usize {
            self.0
        }
    }

    #[test]
    fn what_follows_a_place_is_found_as_far_as_it_is_kept() {
        let mut recent = Recent::default();
        assert!(recent.since((0, 0)).is_none());
        for commit in 0..5 {
            recent.keep((commit * 10, commit), Arc::new(Bytes(100)));
        }
        let lacking = |recent: &Recent<Bytes>, place| recent.since(place).map(|kept| kept.len());
        assert_eq!(lacking(&recent, (0, 0)), Some(5));
        assert_eq!(lacking(&recent, (40, 4)), Some(1));
        // Another history, and what no commit has followed yet.
        assert_eq!((lacking(&recent, (11, 1)), lacking(&recent, (50, 5))), (None, None));
        recent.keep((50, 5), Arc::new(Bytes(BYTES_MAX - 150)));
        assert_eq!((lacking(&recent, (30, 3)), lacking(&recent, (40, 4))), (None, Some(2)));
        // The newest is kept however large it is.
        recent.keep((60, 6), Arc::new(Bytes(2 * BYTES_MAX)));
        assert_eq!((lacking(&recent, (50, 5)), lacking(&recent, (60, 6))), (None, Some(1)));
    }
}
