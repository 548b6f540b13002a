//! Identity folders of nodes, users and admins: `identity.pem` (key, certificate, authority's
//! certificate; mode 0600) and `coordinator` (the address it was enrolled at, a hint). Makes no
//! certificate.

use crate::address::Address;
use crate::authority::public_key_info;
use crate::files::{self, Access};
use crate::peer::{PeerError, PeerIdentity};
use crate::token::AuthorityPin;
use crate::validity::Validity;
use base64::Engine as _;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::io;
use std::path::{Path, PathBuf};

const IDENTITY_FILE: &str = "identity.pem";
const ADDRESS_FILE: &str = "coordinator";
const FILE_BYTES_MAX: u64 = 64 << 10;

/// A private key and the farm's word on whose it is.
pub struct Identity {
    /// Who.
    pub peer: PeerIdentity,
    /// Address of the farm's coordinator when this was made, for commands that are not told
    /// otherwise.
    pub coordinator: Option<Address>,
    key: PrivatePkcs8KeyDer<'static>,
    chain: Vec<CertificateDer<'static>>,
}

/// Why a folder gives no identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// None is there.
    #[error("no identity at `{}`; enrol this machine or person with a join token (`tessera token \
        create` makes one)", folder.display())]
    Missing {
        /// The folder.
        folder: PathBuf,
    },
    /// It cannot be read or written.
    #[error("cannot read or write the identity at `{}`", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It is damaged.
    #[error(
        "the identity at `{}` is damaged: {problem}; remove it and enrol again",
        folder.display()
    )]
    Broken {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

impl Identity {
    /// An identity of its parts: the chain is the own certificate, then the authority's.
    pub(crate) fn from_parts(
        key: PrivatePkcs8KeyDer<'static>,
        chain: Vec<CertificateDer<'static>>,
    ) -> Result<Self, PeerError> {
        if chain.len() != 2 {
            return Err(PeerError::Malformed);
        }
        let peer = PeerIdentity::of_certificate(&chain[0])?;
        Ok(Self { peer, coordinator: None, key, chain })
    }

    /// Is there an identity in this folder (whole or not)?
    pub fn is_at(folder: &Path) -> bool {
        folder.join(IDENTITY_FILE).exists()
    }

    /// The identity in a folder.
    pub fn load(folder: &Path) -> Result<Self, IdentityError> {
        let path = folder.join(IDENTITY_FILE);
        let bytes = match files::read_bounded(&path, FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(IdentityError::Missing { folder: folder.to_owned() });
            }
            Err(source) => return Err(IdentityError::File { path, source }),
        };
        let broken = |problem: &str| IdentityError::Broken {
            folder: folder.to_owned(),
            problem: problem.to_owned(),
        };
        let key = PrivatePkcs8KeyDer::from_pem_slice(&bytes)
            .map_err(|_| broken("it has no private key"))?;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
        let chain = chain.map_err(|_| broken("a certificate is not readable"))?;
        let mut identity =
            Self::from_parts(key, chain).map_err(|error| broken(&error.to_string()))?;
        identity.coordinator = read_address(&folder.join(ADDRESS_FILE));
        Ok(identity)
    }

    /// Keeps the identity in a folder (made if need be), readable only by its owner. The identity
    /// that was there is replaced as a whole.
    pub fn save(&self, folder: &Path) -> Result<(), IdentityError> {
        let failed = |path: PathBuf| move |source| IdentityError::File { path, source };
        files::create_private_folder(folder).map_err(failed(folder.to_owned()))?;
        if let Some(coordinator) = &self.coordinator {
            let path = folder.join(ADDRESS_FILE);
            files::write_atomically(&path, format!("{coordinator}\n").as_bytes(), Access::Public)
                .map_err(failed(path))?;
        }
        let mut text = pem_text("PRIVATE KEY", self.key.secret_pkcs8_der());
        for certificate in &self.chain {
            text += &pem_text("CERTIFICATE", certificate);
        }
        let path = folder.join(IDENTITY_FILE);
        files::write_atomically(&path, text.as_bytes(), Access::Secret).map_err(failed(path))
    }

    /// The authority of the farm this identity belongs to.
    pub fn authority(&self) -> &CertificateDer<'static> {
        // `from_parts` lets no chain of another length in.
        &self.chain[1]
    }

    /// Returns the validity of its certificate; None if that is unreadable.
    pub fn validity(&self) -> Option<Validity> {
        Validity::of_certificate(&self.chain[0])
    }

    /// What tokens of the same farm name it by; None where the authority's certificate is not
    /// readable.
    pub fn authority_pin(&self) -> Option<AuthorityPin> {
        Some(AuthorityPin::of_public_key(&public_key_info(self.authority())?))
    }

    pub(crate) fn key(&self) -> PrivatePkcs8KeyDer<'static> {
        self.key.clone_key()
    }

    pub(crate) fn chain(&self) -> Vec<CertificateDer<'static>> {
        self.chain.clone()
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Identity({})", self.peer)
    }
}

/// The hint is optional: an unreadable one counts as absent.
fn read_address(path: &Path) -> Option<Address> {
    let bytes = files::read_bounded(path, 1024).ok()?;
    std::str::from_utf8(&bytes).ok()?.trim().parse().ok()
}

/// PEM (RFC 7468): base64 in lines of 64 between two marks.
pub(crate) fn pem_text(label: &str, der: &[u8]) -> String {
    let code = base64::engine::general_purpose::STANDARD.encode(der);
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in code.as_bytes().chunks(64) {
        // base64 is ASCII, so every byte is a character.
        text.extend(line.iter().map(|byte| char::from(*byte)));
        text.push('\n');
    }
    text + &format!("-----END {label}-----\n")
}
