//! TLS 1.3 settings of both ends: mutual authentication under the farm's authority, or under a
//! token's pin of it.

use crate::authority::certificate::public_key_info;
use crate::authority::token::AuthorityPin;
use crate::authority::{Authority, SERVER_NAME};
use crate::endpoint::seen_clock::{ClockVerifier, SeenClock};
use crate::identity::Identity;
use crate::identity::grace::GraceVerifier;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig,
    SignatureScheme,
};
use std::sync::Arc;
use tessera_protocol::hello::ALPN;

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn roots(authority: &CertificateDer<'_>) -> Result<Arc<RootCertStore>, Error> {
    roots_of([authority.clone().into_owned()])
}

fn roots_of(
    authorities: impl IntoIterator<Item = CertificateDer<'static>>,
) -> Result<Arc<RootCertStore>, Error> {
    let mut store = RootCertStore::empty();
    authorities.into_iter().try_for_each(|authority| store.add(authority))?;
    Ok(Arc::new(store))
}

/// Returns the settings of the coordinator's side. A client's certificate is verified if it shows
/// one. A client without one can only enrol.
pub(crate) fn server(authority: &Authority) -> Result<ServerConfig, Error> {
    let general = |error: &dyn std::fmt::Display| Error::General(error.to_string());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(roots_of(authority.roots())?, provider())
            .allow_unauthenticated()
            .build()
            .map_err(|error| general(&error))?;
    let verifier = Arc::new(GraceVerifier { strict: verifier, lifetimes: *authority.lifetimes() });
    let (chain, key) = authority.issue_server().map_err(|error| general(&error))?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    // A resumed session would skip the check of the client's certificate.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// Settings of a dialling side, and what its handshakes tell about the coordinator's clock.
pub(crate) type Dialler = (ClientConfig, Arc<SeenClock>);

/// Returns the settings of a dialling side with an identity, which trusts only its farm's
/// authority.
pub(crate) fn client(identity: &Identity) -> Result<Dialler, Error> {
    let roots = roots(identity.authority())?;
    let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider())
        .build()
        .map_err(|error| Error::General(error.to_string()))?;
    let (verifier, seen) = ClockVerifier::around(verifier);
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_auth_cert(identity.chain(), identity.key().into())?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok((config, seen))
}

/// Returns the settings of a dialling side that enrols. It trusts the authority whose key the token
/// names, which the server must show in its chain.
pub(crate) fn enrolling_client(pin: AuthorityPin) -> Result<Dialler, Error> {
    let pinned = PinnedAuthority { pin, provider: provider() };
    let (verifier, seen) = ClockVerifier::around(Arc::new(pinned));
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok((config, seen))
}

/// Returns the name that a coordinator's certificate has at any address.
pub(crate) fn server_name() -> &'static str {
    SERVER_NAME
}

/// Verifies like the web's verifier, with the certificate in the server's chain that has the pinned
/// key as the root.
#[derive(Debug)]
struct PinnedAuthority {
    pin: AuthorityPin,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedAuthority {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let is_pinned = |certificate: &&CertificateDer<'_>| {
            public_key_info(certificate)
                .is_some_and(|info| AuthorityPin::of_public_key(&info) == self.pin)
        };
        let unknown = || Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let authority = intermediates.iter().find(is_pinned).ok_or_else(unknown)?;
        let verifier =
            WebPkiServerVerifier::builder_with_provider(roots(authority)?, self.provider.clone())
                .build()
                .map_err(|_| unknown())?;
        verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
