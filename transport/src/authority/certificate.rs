//! Certificates as the authority makes and keeps them: names, times, files and PEM. Signs nothing.

use crate::authority::error::AuthorityError;
use crate::authority::validity::CLOCK_SKEW;
use base64::Engine as _;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyUsagePurpose};
use rustls::pki_types::CertificateDer;
use std::time::{Duration, SystemTime};

pub(crate) const KEY_FILE: &str = "authority.key";
pub(crate) const CERTIFICATE_FILE: &str = "authority.pem";
/// A key and a certificate of P-256 are below 2 KiB each.
pub(crate) const FILE_BYTES_MAX: u64 = 64 << 10;
/// Name in every authority's certificate.
pub(crate) const AUTHORITY_NAME: &str = "Tessera farm authority";
pub(crate) const AUTHORITY_VALIDITY: Duration = Duration::from_secs(20 * 365 * 86_400);

/// Sets the parameters of an authority's certificate.
pub(crate) fn as_authority(mut params: CertificateParams) -> CertificateParams {
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

pub(crate) fn parameters(
    common_name: &str,
    validity: Duration,
) -> Result<CertificateParams, AuthorityError> {
    let mut params = CertificateParams::new(Vec::new()).map_err(AuthorityError::Crypto)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    let now = SystemTime::now();
    params.not_before = (now - CLOCK_SKEW).into();
    params.not_after = (now + validity).into();
    Ok(params)
}

/// Returns the SubjectPublicKeyInfo (DER) of a certificate; None if the bytes are not a
/// certificate.
pub(crate) fn public_key_info(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    use x509_parser::prelude::{FromDer, X509Certificate};
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    Some(certificate.public_key().raw.to_vec())
}

/// PEM (RFC 7468): base64 in lines of 64 between two marks.
pub(crate) fn pem_text(label: &str, der: &[u8]) -> String {
    let code = base64::engine::general_purpose::STANDARD.encode(der);
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in code.as_bytes().chunks(64) {
        // base64 is ASCII, so every byte is one character.
        text.extend(line.iter().map(|byte| char::from(*byte)));
        text.push('\n');
    }
    text + &format!("-----END {label}-----\n")
}
