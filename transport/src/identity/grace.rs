//! Accepts the farm's certificates, and also expired ones during a grace time, so that they can be
//! renewed. Other modules decide what a peer with an expired certificate can do.

use crate::authority::validity::{Lifetimes, Validity};
use crate::identity::peer::PeerIdentity;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use std::sync::Arc;
use std::time::Duration;

/// Verifies like the web's verifier, except that a certificate within the grace of its role is
/// verified as of its last valid second.
#[derive(Debug)]
pub(crate) struct GraceVerifier {
    pub(crate) strict: Arc<dyn ClientCertVerifier>,
    pub(crate) lifetimes: Lifetimes,
}

impl GraceVerifier {
    /// Returns the last second of a certificate that can still be renewed at `now`.
    fn last_second(&self, certificate: &CertificateDer<'_>, now: UnixTime) -> Option<UnixTime> {
        let role = PeerIdentity::of_certificate(certificate).ok()?.role;
        let validity = Validity::of_certificate(certificate)?;
        let until = validity.expires_at.saturating_add(self.lifetimes.grace(role).as_secs());
        let last = Duration::from_secs(validity.expires_at.saturating_sub(1));
        (now.as_secs() < until).then(|| UnixTime::since_unix_epoch(last))
    }
}

fn is_expired(error: &Error) -> bool {
    matches!(
        error,
        Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. }
        )
    )
}

impl ClientCertVerifier for GraceVerifier {
    fn offer_client_auth(&self) -> bool {
        self.strict.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.strict.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.strict.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match self.strict.verify_client_cert(end_entity, intermediates, now) {
            Err(error) if is_expired(&error) => match self.last_second(end_entity, now) {
                Some(last) => self.strict.verify_client_cert(end_entity, intermediates, last),
                None => Err(error),
            },
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.strict.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.strict.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.strict.supported_verify_schemes()
    }
}
