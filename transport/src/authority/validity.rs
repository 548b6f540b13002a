//! Lifetimes of certificates: those that a farm gives, and those in a certificate. Only functions
//! that say so read the clock.

use rustls::pki_types::CertificateDer;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tessera_protocol::client::Role;
use x509_parser::prelude::{FromDer, X509Certificate};

/// How long before its creation a certificate begins to be valid. The clock of the machine that
/// checks it may be behind.
pub const CLOCK_SKEW: Duration = Duration::from_secs(86_400);
/// Longest life that a farm can give. A certificate with a longer life is not the farm's, and is
/// renewed at once.
pub const LIFE_MAX: Duration = Duration::from_secs(31 * 86_400);
/// Shortest life that a farm can give. With less, nothing but renewals would happen.
pub const LIFE_MIN: Duration = Duration::from_secs(2);
/// Longest grace.
pub const GRACE_MAX: Duration = Duration::from_secs(31 * 86_400);

/// How long a farm's certificates are valid, and how long after that they can be renewed (and used
/// for nothing else).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// Lifetime of nodes' certificates: 2 s to 31 days.
    pub node: Duration,
    /// Lifetime of users' certificates: 2 s to 31 days.
    pub user: Duration,
    /// Grace after a node's certificate has expired: 0 to 31 days.
    pub node_grace: Duration,
    /// Grace after a person's certificate has expired: 0 to 31 days.
    pub user_grace: Duration,
}

impl Default for Lifetimes {
    /// Returns 24 h with 72 h of grace for nodes, and 8 h with 14 days of grace for people.
    fn default() -> Self {
        const HOUR: u64 = 3600;
        Self {
            node: Duration::from_secs(24 * HOUR),
            user: Duration::from_secs(8 * HOUR),
            node_grace: Duration::from_secs(72 * HOUR),
            user_grace: Duration::from_secs(14 * 24 * HOUR),
        }
    }
}

impl Lifetimes {
    /// The longest lifetimes, for farms that exist only within one process.
    pub const LONGEST: Self =
        Self { node: LIFE_MAX, user: LIFE_MAX, node_grace: GRACE_MAX, user_grace: GRACE_MAX };

    /// Returns the life of a certificate for this role.
    pub fn life(&self, role: Role) -> Duration {
        let life = if role == Role::Node { self.node } else { self.user };
        life.clamp(LIFE_MIN, LIFE_MAX)
    }

    /// Returns how long an expired certificate can be renewed.
    pub fn grace(&self, role: Role) -> Duration {
        let grace = if role == Role::Node { self.node_grace } else { self.user_grace };
        grace.min(GRACE_MAX)
    }

    /// Returns the time after which every certificate given before has expired or has been renewed.
    pub fn longest(&self) -> Duration {
        let of = |role| self.life(role) + self.grace(role);
        of(Role::Node).max(of(Role::Admin))
    }
}

/// Begin and end of a certificate's validity, in seconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// When the certificate was made.
    pub issued_at: u64,
    /// End of the validity.
    pub expires_at: u64,
}

impl Validity {
    /// Reads the validity of a certificate; None if it cannot be read.
    pub fn of_certificate(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
        let validity = certificate.validity();
        let secs = |time: x509_parser::time::ASN1Time| u64::try_from(time.timestamp()).ok();
        let issued_at = secs(validity.not_before)?.saturating_add(CLOCK_SKEW.as_secs());
        // The certificate is still valid in the last second that it names.
        Some(Self { issued_at, expires_at: secs(validity.not_after)?.saturating_add(1) })
    }

    /// Returns the seconds from the creation to the end.
    pub fn life_secs(&self) -> u64 {
        self.expires_at.saturating_sub(self.issued_at)
    }

    /// Returns whether the certificate has expired.
    pub fn is_expired(&self, now_secs: u64) -> bool {
        now_secs >= self.expires_at
    }

    /// Returns whether it is time to renew: half of the life is over, or the life is longer than
    /// any farm gives. It is also time if the certificate seems to come from the future, because
    /// this machine's clock is then behind.
    pub fn is_due(&self, now_secs: u64) -> bool {
        const AHEAD_SECS: u64 = 300;
        let half = self.issued_at.saturating_add(self.life_secs() / 2);
        now_secs >= half
            || self.life_secs() > LIFE_MAX.as_secs() + 1
            || now_secs.saturating_add(AHEAD_SECS) < self.issued_at
    }
}

/// Returns the seconds since the Unix epoch, by the system's clock.
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
        // No farm gives a year, so this certificate is due at once.
        let year = Validity { issued_at: 1_000_000, expires_at: 1_000_000 + 365 * 86_400 };
        assert!(year.is_due(1_000_001));
        // This certificate was made by a clock that is ahead.
        assert!(day.is_due(990_000));
    }

    #[test]
    fn certificate_lifetimes_are_bounded() {
        let odd = Lifetimes { node: Duration::ZERO, user: Duration::MAX, ..Lifetimes::default() };
        assert_eq!((odd.life(Role::Node), odd.life(Role::Admin)), (LIFE_MIN, LIFE_MAX));
        assert_eq!(Lifetimes::default().longest(), Duration::from_secs(344 * 3600));
    }
}
