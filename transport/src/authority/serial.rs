//! Serial numbers of members' certificates: the number of the identity, and the certificate's own.

use rcgen::SerialNumber;
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

/// First byte of the serial numbers of members' certificates, which keeps them positive.
const SERIAL_MARK: u8 = 1;

/// Returns the serial number of a member's certificate: its identity's number, then its own. So it
/// is unique for the authority.
pub(crate) fn serial_number(identity: u64, serial: u64) -> SerialNumber {
    let mut bytes = vec![SERIAL_MARK];
    bytes.extend_from_slice(&identity.to_be_bytes());
    bytes.extend_from_slice(&serial.to_be_bytes());
    SerialNumber::from(bytes)
}

/// Returns the number of the identity and that of the certificate; None if the serial number is not
/// a member's.
pub(crate) fn serial_parts(bytes: &[u8]) -> Option<(u64, u64)> {
    let (identity, serial) = bytes.strip_prefix(&[SERIAL_MARK])?.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*identity), u64::from_be_bytes(serial.try_into().ok()?)))
}

/// Returns the number of the identity of a certificate and the certificate's own; None if the
/// certificate is not a member's.
pub(crate) fn numbers_of(certificate: &CertificateDer<'_>) -> Option<(u64, u64)> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    serial_parts(certificate.raw_serial())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_numbers_are_read_back_and_others_are_not() {
        let bytes = serial_number(7, u64::MAX).to_bytes();
        assert_eq!(serial_parts(&bytes), Some((7, u64::MAX)));
        for length in 0..bytes.len() {
            assert_eq!(serial_parts(&bytes[..length]), None, "{length}");
        }
        assert_eq!(serial_parts(&[&[2][..], &bytes[1..]].concat()), None);
        assert_eq!(serial_parts(&[&bytes[..], &[0][..]].concat()), None);
    }
}
