//! What a dialling side learns about the coordinator's clock from its certificate. A certificate is
//! refused where the clocks are days apart, and then the clocks are the reason to name.
//!
//! The coordinator makes its certificate at each start and every day. So its clock has reached the
//! time of that certificate, and is at most a day beyond it.

use crate::authority::validity::{Validity, now_secs};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const DAY_SECS: u64 = 86_400;

/// Difference between this machine's clock and the coordinator's, in whole days or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClocksApart {
    pub(crate) days: u64,
    /// Whether this machine's clock is the one that is behind.
    pub(crate) behind: bool,
}

/// When the certificate was made that the farm's coordinator showed; 0 if it has shown none.
#[derive(Debug, Default)]
pub(crate) struct SeenClock(AtomicU64);

impl SeenClock {
    /// Returns the difference of the clocks if it is at least a day.
    pub(crate) fn apart(&self) -> Option<ClocksApart> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            issued_at => apart(issued_at, now_secs()),
        }
    }
}

fn apart(issued_at: u64, now_secs: u64) -> Option<ClocksApart> {
    let behind_secs = issued_at.saturating_sub(now_secs);
    let ahead_secs = now_secs.saturating_sub(issued_at.saturating_add(DAY_SECS));
    let days = behind_secs.max(ahead_secs) / DAY_SECS;
    (days > 0).then_some(ClocksApart { days, behind: behind_secs > 0 })
}

/// Verifies like another verifier, and notes when a certificate of the farm was made, also one that
/// is refused because of its time.
#[derive(Debug)]
pub(crate) struct ClockVerifier {
    inner: Arc<dyn ServerCertVerifier>,
    seen: Arc<SeenClock>,
}

impl ClockVerifier {
    pub(crate) fn around(inner: Arc<dyn ServerCertVerifier>) -> (Arc<Self>, Arc<SeenClock>) {
        let seen = Arc::new(SeenClock::default());
        (Arc::new(Self { inner, seen: seen.clone() }), seen)
    }
}

impl ServerCertVerifier for ClockVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verify = |at| {
            self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, at)
        };
        let result = verify(now);
        if let Some(validity) = Validity::of_certificate(end_entity) {
            let made = UnixTime::since_unix_epoch(Duration::from_secs(validity.issued_at));
            // Somebody else's certificate says nothing about the farm's clock.
            if result.is_ok() || verify(made).is_ok() {
                self.seen.0.store(validity.issued_at, Ordering::Relaxed);
            }
        }
        result
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_days_between_clocks_are_reported() {
        let issued = 1_000 * DAY_SECS;
        assert_eq!(apart(issued, issued), None);
        assert_eq!(apart(issued, issued + 2 * DAY_SECS - 1), None);
        assert_eq!(apart(issued, issued - DAY_SECS + 1), None);
        let behind = |days| Some(ClocksApart { days, behind: true });
        assert_eq!(apart(issued, issued - 3 * DAY_SECS), behind(3));
        assert_eq!(apart(issued, 0), behind(1_000));
        let ahead = Some(ClocksApart { days: 399, behind: false });
        assert_eq!(apart(issued, issued + 400 * DAY_SECS), ahead);
    }
}
