//! Identity folders of nodes, users and admins. They contain `identity.pem` (key, certificate and
//! the authority's certificate; mode 0600) and `coordinator` (the address of the enrolment, a
//! hint). Makes no certificate.

pub mod enrol;
pub(crate) mod grace;
pub mod peer;
pub mod renew;

use crate::authority::certificate::{pem_text, public_key_info};
use crate::authority::serial::numbers_of;
use crate::authority::token::AuthorityPin;
use crate::authority::validity::Validity;
use crate::endpoint::address::{ADDRESS_MAX, Address};
use crate::files::{self, Access};
use crate::identity::peer::{PeerError, PeerIdentity};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::io;
use std::path::{Path, PathBuf};

const IDENTITY_FILE: &str = "identity.pem";
const ADDRESS_FILE: &str = "coordinator";
const FILE_BYTES_MAX: u64 = 64 << 10;

/// A private key and its certificate from the farm.
pub struct Identity {
    /// Identity in the certificate.
    pub peer: PeerIdentity,
    /// Address of the farm's coordinator at the enrolment, for commands without another address.
    pub coordinator: Option<Address>,
    key: PrivatePkcs8KeyDer<'static>,
    chain: Vec<CertificateDer<'static>>,
}

/// Why a folder has no usable identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// There is no identity in the folder.
    #[error("no identity at `{}`; enrol this machine or person with a join token (`tessera token \
        create` makes one)", folder.display())]
    Missing {
        /// Path of the folder.
        folder: PathBuf,
    },
    /// A file cannot be read or written.
    #[error("cannot read or write the identity at `{}`", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
    /// The identity is damaged.
    #[error(
        "the identity at `{}` is damaged: {problem}; remove it and enrol again",
        folder.display()
    )]
    Broken {
        /// Path of the folder.
        folder: PathBuf,
        /// Description of the fault.
        problem: String,
    },
}

impl Identity {
    /// Creates an identity. The chain is the own certificate, then the authority's.
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

    /// Returns whether there is an identity in this folder, intact or not.
    pub fn is_at(folder: &Path) -> bool {
        folder.join(IDENTITY_FILE).exists()
    }

    /// Loads the identity of a folder.
    pub fn load(folder: &Path) -> Result<Self, IdentityError> {
        let path = folder.join(IDENTITY_FILE);
        let bytes = match files::read_secret(&path, FILE_BYTES_MAX) {
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

    /// Stores the identity in a folder, readable only by its owner. The folder is made if it is
    /// absent. A former identity is replaced as a whole.
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

    /// Returns the certificate of the farm's authority.
    pub fn authority(&self) -> &CertificateDer<'static> {
        // `from_parts` allows no chain of another length.
        &self.chain[1]
    }

    /// Returns the validity of its certificate; None if that is unreadable.
    pub fn validity(&self) -> Option<Validity> {
        Validity::of_certificate(&self.chain[0])
    }

    /// Returns the serial number of its certificate among those of its identity.
    pub fn serial(&self) -> u64 {
        numbers_of(&self.chain[0]).map_or(0, |(_, serial)| serial)
    }

    /// Returns whether this is a newer certificate of the same identity.
    pub(crate) fn succeeds(&self, former: &Self) -> bool {
        self.peer.number == former.peer.number
            && self.authority_pin() == former.authority_pin()
            && self.serial() > former.serial()
    }

    /// Returns the pin by which tokens of the same farm name it; None if the authority's
    /// certificate cannot be read.
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
    let bytes = files::read_bounded(path, ADDRESS_MAX as u64).ok()?;
    std::str::from_utf8(&bytes).ok()?.trim().parse().ok()
}
