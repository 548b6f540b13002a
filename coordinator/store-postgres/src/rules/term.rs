//! A term as its leader counts it: from before the attempt to take or renew it, and by a clock that
//! only grows, so that it ends here before it ends by the database's clock.

use super::Stop;
use std::time::Duration;

/// Attempts to renew in one term: every 10/3 s of 15 s.
const RENEWALS: f64 = 4.5;

/// A lead's number is one of so many after that of the lead before.
const EPOCHS: u128 = 1 << 20;

/// Returns the number of the lead after one, drawn with a random number. A takeover may be lost
/// with the database's end; the one that takes its place must not have the same number.
pub fn next_epoch(before: i64, drawn: u128) -> i64 {
    let step = i64::try_from(drawn % EPOCHS).unwrap_or(0);
    before.saturating_add(1 + step)
}

/// Returns the time from one renewal of a term to the next.
pub fn renew_every(term: Duration) -> Duration {
    term.div_f64(RENEWALS)
}

/// Whether a renewal found fewer commits than the database had taken before it.
pub fn is_behind(found: i64, taken_before: i64) -> bool {
    found < taken_before
}

/// How the term stands.
#[derive(Clone, Debug)]
pub enum Standing {
    /// It lasts until then, by the leader's own clock, and longer if it is renewed.
    Until(Duration),
    /// Another one leads, or nobody does.
    Lost(Stop),
}

impl Standing {
    /// A term that was taken or renewed by an attempt that began at `asked`.
    pub fn counted(asked: Duration, term: Duration) -> Self {
        Self::Until(asked + term)
    }

    /// Fails if the term has ended; says why.
    pub fn check(&self, now: Duration) -> Result<(), Stop> {
        match self {
            Self::Until(end) if now < *end => Ok(()),
            Self::Until(_) => Err(Stop::TermOver),
            Self::Lost(why) => Err(why.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lead_has_a_number_after_the_one_before() {
        assert_eq!((next_epoch(0, 0), next_epoch(7, EPOCHS - 1)), (1, 7 + (1 << 20)));
        assert!(next_epoch(7, u128::MAX) > 7);
    }

    #[test]
    fn a_term_ends_by_the_time_of_its_attempt() {
        let secs = Duration::from_secs;
        let standing = Standing::counted(secs(100), secs(15));
        assert_eq!(standing.check(secs(114)), Ok(()));
        assert_eq!(standing.check(secs(115)), Err(Stop::TermOver));
        assert_eq!(Standing::Lost(Stop::TermOver).check(secs(0)), Err(Stop::TermOver));
        assert_eq!(renew_every(secs(9)), secs(2));
        assert!(is_behind(4, 5) && !is_behind(5, 5) && !is_behind(6, 5));
    }
}
