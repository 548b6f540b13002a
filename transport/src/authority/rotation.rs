//! Rotation of the authority. While both are trusted, servers present the new one, cross-signed by
//! the old one, and accept certificates of either. The old key is deleted at the rotation.

use crate::authority::{
    AUTHORITY_NAME, AUTHORITY_VALIDITY, Authority, AuthorityError, CERTIFICATE_FILE,
    FILE_BYTES_MAX, KEY_FILE, as_authority, parameters,
};
use crate::files::{self, Access};
use crate::identity::pem_text;
use rcgen::{Issuer, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// File with the former authority's certificate, and the new one's certificate by the former
/// authority.
const FORMER_FILE: &str = "former.pem";
/// File with everything that a rotation changes. Once it exists, the rotation has happened, and
/// every start completes it.
const ROTATION_FILE: &str = "rotation.pem";
const UNTIL: &str = "until ";

/// The authority before the present one.
#[derive(Clone, Debug)]
pub struct Former {
    /// Certificate of the former authority. What it has signed is still accepted.
    pub(crate) certificate: CertificateDer<'static>,
    /// The present key, certified by the former authority. Peers that trust the former authority
    /// can so trust the present one.
    pub(crate) cross: CertificateDer<'static>,
    /// When the former authority stops being trusted, in seconds since the Unix epoch.
    pub(crate) until: u64,
}

impl Authority {
    /// Returns until when a former authority is trusted, in seconds since the Unix epoch.
    pub fn former_until(&self) -> Option<u64> {
        self.former.as_ref().map(|former| former.until)
    }

    /// Makes a new authority in the same folder, and trusts this one beside it for the time
    /// `overlap`. The change is durable on return, and the old key is deleted. Refused during
    /// another rotation.
    pub fn rotate(
        &self,
        folder: &Path,
        now_secs: u64,
        overlap: Duration,
    ) -> Result<Self, AuthorityError> {
        if let Some(until) = self.former_until().filter(|until| *until > now_secs) {
            return Err(AuthorityError::Rotating(until - now_secs));
        }
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(AuthorityError::Crypto)?;
        let params = as_authority(parameters(AUTHORITY_NAME, AUTHORITY_VALIDITY)?);
        let cross =
            params.signed_by(&key, &self.issuer).map_err(AuthorityError::Crypto)?.der().clone();
        let certificate = params.self_signed(&key).map_err(AuthorityError::Crypto)?.der().clone();
        let until = now_secs.saturating_add(overlap.as_secs());
        let former = Former { certificate: self.certificate.clone(), cross, until };
        let text = key.serialize_pem() + &pem_text("CERTIFICATE", &certificate) + &former.to_text();
        write(&folder.join(ROTATION_FILE), &text, Access::Secret)?;
        complete(folder)?;
        let (former, lifetimes) = (Some(former), self.lifetimes);
        Ok(Self { issuer: Issuer::new(params, key), certificate, lifetimes, former })
    }

    /// Returns this authority without the former one if that one's time is over; otherwise None.
    pub fn past_overlap(
        &self,
        folder: &Path,
        now_secs: u64,
    ) -> Result<Option<Self>, AuthorityError> {
        match self.former_until() {
            Some(until) if until <= now_secs => {
                let current = Self::open(folder)?.with_lifetimes(self.lifetimes);
                remove(&folder.join(FORMER_FILE))?;
                Ok(Some(Self { former: None, ..current }))
            }
            _ => Ok(None),
        }
    }
}

impl Former {
    fn to_text(&self) -> String {
        let certificates =
            pem_text("CERTIFICATE", &self.cross) + &pem_text("CERTIFICATE", &self.certificate);
        format!("{UNTIL}{}\n{certificates}", self.until)
    }

    /// Returns the former authority in a folder.
    pub(crate) fn open(folder: &Path) -> Result<Option<Self>, AuthorityError> {
        let path = folder.join(FORMER_FILE);
        let Some((until, mut certificates, _)) = read(&path)? else { return Ok(None) };
        let (Some(certificate), Some(cross), None) =
            (certificates.pop(), certificates.pop(), certificates.pop())
        else {
            return Err(AuthorityError::Broken { path, problem: "it has not two certificates" });
        };
        Ok(Some(Self { certificate, cross, until }))
    }
}

/// Completes a rotation that has happened. Can be repeated.
pub(crate) fn complete(folder: &Path) -> Result<(), AuthorityError> {
    let path = folder.join(ROTATION_FILE);
    let Some((until, certificates, bytes)) = read(&path)? else { return Ok(()) };
    let key = PrivatePkcs8KeyDer::from_pem_slice(&bytes);
    let (Ok(key), [certificate, cross, former]) = (key, certificates.as_slice()) else {
        return Err(AuthorityError::Broken {
            path,
            problem: "it has not a key and three certificates",
        });
    };
    let former = Former { certificate: former.clone(), cross: cross.clone(), until };
    write(&folder.join(FORMER_FILE), &former.to_text(), Access::Public)?;
    write(
        &folder.join(KEY_FILE),
        &pem_text("PRIVATE KEY", key.secret_pkcs8_der()),
        Access::Secret,
    )?;
    write(&folder.join(CERTIFICATE_FILE), &pem_text("CERTIFICATE", certificate), Access::Public)?;
    remove(&path)
}

type Read = (u64, Vec<CertificateDer<'static>>, Vec<u8>);

/// Returns the time in a file, its certificates in order, and its bytes; None if there is no file.
fn read(path: &Path) -> Result<Option<Read>, AuthorityError> {
    let bytes = match files::read_bounded(path, FILE_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(failed(path)(source)),
    };
    let broken = |problem| AuthorityError::Broken { path: path.to_owned(), problem };
    let text = std::str::from_utf8(&bytes).map_err(|_| broken("it is no text"))?;
    let until = text.lines().find_map(|line| line.strip_prefix(UNTIL)?.parse().ok());
    let until = until.ok_or_else(|| broken("it does not say until when"))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let certificates = certificates.map_err(|_| broken("a certificate is not readable"))?;
    Ok(Some((until, certificates, bytes)))
}

fn write(path: &Path, text: &str, access: Access) -> Result<(), AuthorityError> {
    files::write_atomically(path, text.as_bytes(), access).map_err(failed(path))
}

fn remove(path: &Path) -> Result<(), AuthorityError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(path)(error)),
        _ => Ok(()),
    }
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> AuthorityError + use<> {
    let path: PathBuf = path.to_owned();
    move |source| AuthorityError::File { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_rotation_is_completed_at_the_next_start() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let first = Authority::open_or_create(folder.path()).unwrap();
        let before: Vec<Vec<u8>> = [KEY_FILE, CERTIFICATE_FILE]
            .iter()
            .map(|name| std::fs::read(place(name)).unwrap())
            .collect();
        let second = first.rotate(folder.path(), 100, Duration::from_secs(50)).unwrap();
        assert_ne!(first.pin(), second.pin());
        assert!(matches!(
            second.rotate(folder.path(), 149, Duration::ZERO),
            Err(AuthorityError::Rotating(1))
        ));
        let all = [KEY_FILE, CERTIFICATE_FILE, FORMER_FILE]
            .map(|name| std::fs::read_to_string(place(name)).unwrap());
        // The process ended after the commit, with none, one or both of the authority's files
        // replaced.
        for replaced in 0..3 {
            for (index, name) in [KEY_FILE, CERTIFICATE_FILE].iter().enumerate() {
                let bytes = if index < replaced { all[index].as_bytes() } else { &before[index] };
                std::fs::write(place(name), bytes).unwrap();
            }
            let rotation = all.concat().replace(UNTIL, &format!("\n{UNTIL}"));
            std::fs::write(place(ROTATION_FILE), rotation).unwrap();
            let opened = Authority::open_or_create(folder.path()).unwrap();
            assert_eq!(
                (opened.pin(), opened.former_until()),
                (second.pin(), Some(150)),
                "{replaced}"
            );
            assert!(!place(ROTATION_FILE).exists());
        }
        assert!(second.past_overlap(folder.path(), 149).unwrap().is_none());
        let current = second.past_overlap(folder.path(), 150).unwrap().unwrap();
        assert_eq!((current.pin(), current.former_until()), (second.pin(), None));
        assert_eq!(Authority::open(folder.path()).unwrap().former_until(), None);
    }
}
