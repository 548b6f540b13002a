//! Lifetimes of certificates: what a farm gives, and what a certificate says. Only functions that
//! say so read the clock.

use rustls::pki_types::CertificateDer;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tessera_protocol::client::Role;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Certificates say that they hold from a day before they are made: the clock of the machine that
/// checks them may be behind.
pub const CLOCK_SKEW: Duration = Duration::from_secs(86_400);
/// Longest life that a farm may give. Whatever holds for longer is of a build before lives were
/// short, and is renewed at once.
pub const LIFE_MAX: Duration = Duration::from_secs(31 * 86_400);
/// Shortest life: below it, renewals would be all that happens.
pub const LIFE_MIN: Duration = Duration::from_secs(2);
/// Longest grace.
pub const GRACE_MAX: Duration = Duration::from_secs(31 * 86_400);

/// How long a farm's certificates hold, and for how long after that they may still be renewed, and
/// do nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// Lifetime of nodes' certificates: 2 s to 31 days.
    pub node: Duration,
    /// Lifetime of users' certificates: 2 s to 31 days.
    pub user: Duration,
    /// After a node's certificate has expired: 0 to 31 days.
    pub node_grace: Duration,
    /// After a person's certificate has expired: 0 to 31 days.
    pub user_grace: Duration,
}

impl Default for Lifetimes {
    /// Nodes 24 h, and 72 h to come back in; people 8 h, and no grace.
    fn default() -> Self {
        const HOUR: u64 = 3600;
        Self {
            node: Duration::from_secs(24 * HOUR),
            user: Duration::from_secs(8 * HOUR),
            node_grace: Duration::from_secs(72 * HOUR),
            user_grace: Duration::ZERO,
        }
    }
}

impl Lifetimes {
    /// The longest that may be: for farms that live and die within one process.
    pub const LONGEST: Self =
        Self { node: LIFE_MAX, user: LIFE_MAX, node_grace: GRACE_MAX, user_grace: GRACE_MAX };

    /// What a certificate of this role gets.
    pub fn life(&self, role: Role) -> Duration {
        let life = if role == Role::Node { self.node } else { self.user };
        life.clamp(LIFE_MIN, LIFE_MAX)
    }

    /// How long an expired certificate can be renewed.
    pub fn grace(&self, role: Role) -> Duration {
        let grace = if role == Role::Node { self.node_grace } else { self.user_grace };
        grace.min(GRACE_MAX)
    }

    /// After so long, every certificate that was given before has expired, or has been renewed.
    pub fn longest(&self) -> Duration {
        let of = |role| self.life(role) + self.grace(role);
        of(Role::Node).max(of(Role::Admin))
    }
}

/// When a certificate was made and when it ends, seconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// When it was made.
    pub issued_at: u64,
    /// End of the validity.
    pub expires_at: u64,
}

impl Validity {
    /// What a certificate says; None where it cannot be read.
    pub fn of_certificate(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
        let validity = certificate.validity();
        let secs = |time: x509_parser::time::ASN1Time| u64::try_from(time.timestamp()).ok();
        let issued_at = secs(validity.not_before)?.saturating_add(CLOCK_SKEW.as_secs());
        // The last second named is one in which it holds.
        Some(Self { issued_at, expires_at: secs(validity.not_after)?.saturating_add(1) })
    }

    /// Seconds from when it was made to its end.
    pub fn life_secs(&self) -> u64 {
        self.expires_at.saturating_sub(self.issued_at)
    }

    /// Is it over?
    pub fn is_expired(&self, now_secs: u64) -> bool {
        now_secs >= self.expires_at
    }

    /// Is half of its life over, or was it made for longer than any farm gives? Then it is time for
    /// the next. So it is where it seems to be of the future: this machine's clock is behind, and
    /// cannot tell.
    pub fn is_due(&self, now_secs: u64) -> bool {
        const AHEAD_SECS: u64 = 300;
        let half = self.issued_at.saturating_add(self.life_secs() / 2);
        now_secs >= half
            || self.life_secs() > LIFE_MAX.as_secs() + 1
            || now_secs.saturating_add(AHEAD_SECS) < self.issued_at
    }
}

/// Seconds since the Unix epoch, by the system's clock.
pub fn now_secs() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_due_at_half_of_its_life() {
        let day = Validity { issued_at: 1_000_000, expires_at: 1_086_400 };
        assert!(!day.is_due(1_000_000) && !day.is_due(1_043_199) && day.is_due(1_043_200));
        assert!(!day.is_expired(1_086_399) && day.is_expired(1_086_400));
        // Made for a year, by an older build.
        let year = Validity { issued_at: 1_000_000, expires_at: 1_000_000 + 365 * 86_400 };
        assert!(year.is_due(1_000_001));
        // Made by a clock that is ahead of this one.
        assert!(day.is_due(990_000));
    }

    #[test]
    fn certificate_lifetimes_are_bounded() {
        let odd = Lifetimes { node: Duration::ZERO, user: Duration::MAX, ..Lifetimes::default() };
        assert_eq!((odd.life(Role::Node), odd.life(Role::Admin)), (LIFE_MIN, LIFE_MAX));
        assert_eq!(Lifetimes::default().longest(), Duration::from_secs(96 * 3600));
    }
}
