//! TLS to the database: the server's certificate is always checked, with its name.

use crate::address::Protection;
use crate::link_error::LinkError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Returns what connects by TLS; None if the connection is not protected.
pub(crate) fn connector(protection: &Protection) -> Result<Option<MakeRustlsConnect>, LinkError> {
    let Protection::Verified(file) = protection else { return Ok(None) };
    let mut roots = RootCertStore::empty();
    match file {
        Some(path) => add_file(&mut roots, path)?,
        None => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
        }
    }
    if roots.is_empty() {
        let what = match file {
            Some(path) => format!("`{}` (sslrootcert) has no certificate", path.display()),
            None => "this machine knows no certificate authority: name one by sslrootcert".into(),
        };
        return Err(LinkError::Setup(what));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| LinkError::Setup(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Some(MakeRustlsConnect::new(config)))
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), LinkError> {
    let failed = |error: String| {
        LinkError::Setup(format!("`{}` (sslrootcert) cannot be read: {error}", path.display()))
    };
    let certificates =
        CertificateDer::pem_file_iter(path).map_err(|error| failed(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| failed(error.to_string()))?;
        roots.add(certificate).map_err(|error| failed(error.to_string()))?;
    }
    Ok(())
}
