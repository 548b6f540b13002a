//! TLS for browsers: the certificate in use, made or read again when it is due.

use crate::address::{Place, TlsChoice};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::sync::Arc;
use tessera_coordinator::api::Api;

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or has not what it should.
    #[error("`{path}` has no usable {what}: {problem}")]
    File {
        /// File of --http-tls.
        path: String,
        /// What it should have.
        what: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// The certificate and the key do not fit together, or cannot be used.
    #[error("the certificate for HTTP cannot be used: {0}")]
    Unusable(String),
}

/// Makes the settings of TLS anew.
pub(crate) fn settings(
    choice: &TlsChoice,
    (place, api): (&Place, &Api),
) -> Result<Arc<ServerConfig>, TlsError> {
    let (chain, key) = match choice {
        TlsChoice::Files { certificate, key } => (chain_of(certificate)?, key_of(key)?),
        TlsChoice::Farm => api
            .web_certificate(&place.names())
            .map_err(|error| TlsError::Unusable(error.to_string()))?,
    };
    if let Some(certificate) = chain.first() {
        api.serves_certificate(certificate);
    }
    let unusable = |error: rustls::Error| TlsError::Unusable(error.to_string());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn chain_of(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = |problem: String| TlsError::File {
        path: path.display().to_string(),
        what: "certificate",
        problem,
    };
    let read = CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?;
    let chain: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| wrong(error.to_string()))?;
    match chain.is_empty() {
        true => Err(wrong("it has none".to_owned())),
        false => Ok(chain),
    }
}

fn key_of(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| TlsError::File {
        path: path.display().to_string(),
        what: "private key",
        problem: error.to_string(),
    })
}
