//! The former authority: its files, and a rotation that is completed as often as it takes.

use crate::authority::certificate::{CERTIFICATE_FILE, FILE_BYTES_MAX, KEY_FILE, pem_text};
use crate::authority::error::AuthorityError;
use crate::files::{self, Access};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// File with the former authority's certificate, and the new one's certificate by the former
/// authority.
pub(crate) const FORMER_FILE: &str = "former.pem";
/// File with everything that a rotation changes. Once it exists, the rotation has happened, and
/// every start completes it.
pub(crate) const ROTATION_FILE: &str = "rotation.pem";
pub(crate) const UNTIL: &str = "until ";

/// The authority before the present one.
#[derive(Clone, Debug)]
pub(crate) struct Former {
    /// Certificate of the former authority. What it has signed is still accepted.
    pub(crate) certificate: CertificateDer<'static>,
    /// The present key, certified by the former authority. Peers that trust the former authority
    /// can so trust the present one.
    pub(crate) cross: CertificateDer<'static>,
    /// When the former authority stops being trusted, in seconds since the Unix epoch.
    pub(crate) until: u64,
}

impl Former {
    pub(crate) fn to_text(&self) -> String {
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
            return Err(AuthorityError::Broken {
                path,
                problem: "it does not have two certificates",
            });
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
            problem: "it does not have a key and three certificates",
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
    let text = std::str::from_utf8(&bytes).map_err(|_| broken("it is not text"))?;
    let until = text.lines().find_map(|line| line.strip_prefix(UNTIL)?.parse().ok());
    let until = until.ok_or_else(|| broken("it does not have an end time"))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let certificates = certificates.map_err(|_| broken("a certificate is not readable"))?;
    Ok(Some((until, certificates, bytes)))
}

pub(crate) fn write(path: &Path, text: &str, access: Access) -> Result<(), AuthorityError> {
    files::write_atomically(path, text.as_bytes(), access).map_err(failed(path))
}

pub(crate) fn remove(path: &Path) -> Result<(), AuthorityError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(path)(error)),
        _ => Ok(()),
    }
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> AuthorityError + use<> {
    let path: PathBuf = path.to_owned();
    move |source| AuthorityError::File { path, source }
}
