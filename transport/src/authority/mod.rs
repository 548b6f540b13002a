//! The farm's own certificate authority: ECDSA P-256, self-signed, with one key in one folder. The
//! caller decides whose certificate is signed.

pub(crate) mod certificate;
mod error;
mod former;
pub mod member;
mod rotation;
pub(crate) mod serial;
pub mod token;
pub mod validity;

pub use error::AuthorityError;

use crate::authority::certificate::{
    AUTHORITY_NAME, AUTHORITY_VALIDITY, CERTIFICATE_FILE, FILE_BYTES_MAX, GENERATION_PREFIX,
    KEY_FILE, as_authority, parameters, pem_text, public_key_info,
};
use crate::authority::former::{FORMER_FILE, Former, ROTATION_FILE};
use crate::authority::serial::serial_number;
use crate::authority::token::AuthorityPin;
use crate::authority::validity::Lifetimes;
use crate::files::{self, Access};
use crate::identity::Identity;
use crate::identity::peer::PeerIdentity;
use rcgen::{
    CertificateParams, CertificateSigningRequestParams, DnType, ExtendedKeyUsagePurpose, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, SanType,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{
    CertificateDer, CertificateSigningRequestDer, PrivateKeyDer, PrivatePkcs8KeyDer,
};
use std::path::Path;
use std::time::Duration;

/// Name in every coordinator's certificate, so that a coordinator can be dialled at any address.
pub const SERVER_NAME: &str = "tessera-coordinator";
/// Longest certificate request that is accepted, in bytes. A request for P-256 with a name is below
/// 1 KiB.
const REQUEST_BYTES_MAX: usize = 16 << 10;
/// Life of a coordinator's own certificate: one year. It is made again at each start and every day.
/// The long life helps peers whose clocks are ahead.
const SERVER_VALIDITY: Duration = Duration::from_secs(365 * 86_400);

/// Life of the certificate of pages: 90 days. It is made again every day.
const WEB_VALIDITY: Duration = Duration::from_secs(90 * 86_400);

/// A certificate authority.
pub struct Authority {
    pub(crate) issuer: Issuer<'static, KeyPair>,
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) lifetimes: Lifetimes,
    /// Generation of the farm that the coordinator's certificate names; 0: none.
    pub(crate) generation: u64,
    /// The former authority, while it is still trusted.
    pub(crate) former: Option<Former>,
}

impl Authority {
    /// Names of all files that an authority's folder can have.
    pub const FILES: [&str; 4] = [KEY_FILE, CERTIFICATE_FILE, FORMER_FILE, ROTATION_FILE];

    /// Creates a new authority that is not stored.
    pub fn generate() -> Result<Self, AuthorityError> {
        Self::from_key(
            KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(AuthorityError::Crypto)?,
        )
    }

    /// Returns whether the folder has an authority's key.
    pub fn is_at(folder: &Path) -> bool {
        folder.join(KEY_FILE).exists()
    }

    /// Opens the authority of a folder, or makes one if the folder has none. Only its owner can
    /// read the key.
    pub fn open_or_create(folder: &Path) -> Result<Self, AuthorityError> {
        let (key_path, certificate_path) = (folder.join(KEY_FILE), folder.join(CERTIFICATE_FILE));
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| AuthorityError::File { path, source }
        };
        former::complete(folder)?;
        let key_there = key_path.try_exists().map_err(failed(&key_path))?;
        let certificate_there = certificate_path.try_exists().map_err(failed(&certificate_path))?;
        if key_there && certificate_there {
            return Self::open(folder);
        }
        if certificate_there {
            return Err(AuthorityError::Broken {
                path: certificate_path,
                problem: "its key file is missing",
            });
        }
        files::create_private_folder(folder).map_err(failed(folder))?;
        // A key without a certificate comes from a first start that was interrupted. The same key
        // gets its certificate now.
        let authority =
            if key_there { Self::from_key(read_key(&key_path)?)? } else { Self::generate()? };
        if !key_there {
            let key = authority.issuer.key().serialize_pem();
            files::write_atomically(&key_path, key.as_bytes(), Access::Secret)
                .map_err(failed(&key_path))?;
        }
        let text = pem_text("CERTIFICATE", &authority.certificate);
        files::write_atomically(&certificate_path, text.as_bytes(), Access::Public)
            .map_err(failed(&certificate_path))?;
        Ok(authority)
    }

    /// Opens the authority of a folder.
    pub fn open(folder: &Path) -> Result<Self, AuthorityError> {
        former::complete(folder)?;
        let key = read_key(&folder.join(KEY_FILE))?;
        let path = folder.join(CERTIFICATE_FILE);
        let broken = |problem| AuthorityError::Broken { path: path.clone(), problem };
        let bytes = files::read_bounded(&path, FILE_BYTES_MAX)
            .map_err(|source| AuthorityError::File { path: path.clone(), source })?;
        let certificate = CertificateDer::from_pem_slice(&bytes)
            .map_err(|_| broken("no certificate is in it"))?
            .into_owned();
        if public_key_info(&certificate).as_deref() != Some(&key.subject_public_key_info()) {
            return Err(broken("its certificate is of another key"));
        }
        let issuer = Issuer::from_ca_cert_der(&certificate, key)
            .map_err(|_| broken("its certificate is not an authority's"))?;
        Ok(Self {
            issuer,
            certificate,
            lifetimes: Lifetimes::default(),
            generation: 0,
            former: Former::open(folder)?,
        })
    }

    fn from_key(key: KeyPair) -> Result<Self, AuthorityError> {
        let params = as_authority(parameters(AUTHORITY_NAME, AUTHORITY_VALIDITY)?);
        let certificate = params.self_signed(&key).map_err(AuthorityError::Crypto)?.der().clone();
        let (lifetimes, generation) = (Lifetimes::default(), 0);
        let issuer = Issuer::new(params, key);
        Ok(Self { issuer, certificate, lifetimes, generation, former: None })
    }

    /// Returns this authority with other lifetimes for the certificates that it signs from now on.
    pub fn with_lifetimes(mut self, lifetimes: Lifetimes) -> Self {
        self.lifetimes = lifetimes;
        self
    }

    /// Returns this authority with another generation in the coordinator's certificate.
    pub fn with_generation(mut self, generation: u64) -> Self {
        self.generation = generation;
        self
    }

    /// Returns how long the signed certificates are valid.
    pub fn lifetimes(&self) -> &Lifetimes {
        &self.lifetimes
    }

    /// Returns the trusted certificates: the authority's own and that of the former authority.
    pub(crate) fn roots(&self) -> Vec<CertificateDer<'static>> {
        let former = self.former.iter().map(|former| former.certificate.clone());
        std::iter::once(self.certificate.clone()).chain(former).collect()
    }

    /// Returns the authority's own certificate.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// Returns the pin by which join tokens name the authority.
    pub fn pin(&self) -> AuthorityPin {
        AuthorityPin::of_public_key(&self.issuer.key().subject_public_key_info())
    }

    /// Creates an identity with a new key and serial number 1, for farms within one process.
    pub fn issue(&self, peer: &PeerIdentity) -> Result<Identity, AuthorityError> {
        self.issue_as(peer, 1)
    }

    /// Creates an identity with a new key and this serial number.
    pub fn issue_as(&self, peer: &PeerIdentity, serial: u64) -> Result<Identity, AuthorityError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(AuthorityError::Crypto)?;
        let chain = vec![self.sign((peer, serial), &key)?, self.certificate.clone()];
        Ok(Identity::from_parts(PrivatePkcs8KeyDer::from(key.serialize_der()), chain)?)
    }

    /// Signs a PKCS #10 request (DER), as the certificate of this serial number. Returns the chain:
    /// the new certificate, then the authority's. Only the request's public key is used. Its
    /// signature is checked, which proves that the requester has the private key.
    pub fn sign_request(
        &self,
        (peer, serial): (&PeerIdentity, u64),
        request: &[u8],
    ) -> Result<Vec<CertificateDer<'static>>, AuthorityError> {
        if request.len() > REQUEST_BYTES_MAX {
            return Err(AuthorityError::Request("it is too long"));
        }
        let request =
            CertificateSigningRequestParams::from_der(&CertificateSigningRequestDer::from(request))
                .map_err(|_| {
                    AuthorityError::Request("it cannot be read, or its signature is wrong")
                })?;
        if request.public_key.algorithm() != &PKCS_ECDSA_P256_SHA256 {
            return Err(AuthorityError::Request("its key is not ECDSA P-256"));
        }
        Ok(vec![self.sign((peer, serial), &request.public_key)?, self.certificate.clone()])
    }

    fn sign(
        &self,
        (peer, serial): (&PeerIdentity, u64),
        key: &impl PublicKeyData,
    ) -> Result<CertificateDer<'static>, AuthorityError> {
        let number = peer.number;
        let peer =
            PeerIdentity::new(peer.role, &peer.name, peer.node)?.in_pool(peer.pool.as_deref())?;
        let mut params = parameters(&peer.name, self.lifetimes.life(peer.role))?;
        if let Some(pool) = &peer.pool {
            params.distinguished_name.push(DnType::OrganizationalUnitName, pool);
        }
        params.serial_number = Some(serial_number(number, serial));
        let uri = peer.uri().try_into().map_err(AuthorityError::Crypto)?;
        params.subject_alt_names = vec![SanType::URI(uri)];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.finish(params, key)
    }

    /// Makes a new chain and key for a coordinator. They need not be stored, since clients trust
    /// the authority.
    pub(crate) fn issue_server(
        &self,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), AuthorityError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(AuthorityError::Crypto)?;
        let mut params = parameters(SERVER_NAME, SERVER_VALIDITY)?;
        let name = SERVER_NAME.try_into().map_err(AuthorityError::Crypto)?;
        params.subject_alt_names = vec![SanType::DnsName(name)];
        if self.generation > 0 {
            let generation = format!("{GENERATION_PREFIX}{}", self.generation);
            params.distinguished_name.push(DnType::OrganizationalUnitName, generation);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let mut chain = vec![self.finish(params, &key)?, self.certificate.clone()];
        if let Some(former) = &self.former {
            // A peer that trusts the former authority needs the second certificate. A token that
            // names the former authority needs the third.
            chain.extend([former.cross.clone(), former.certificate.clone()]);
        }
        Ok((chain, PrivatePkcs8KeyDer::from(key.serialize_der()).into()))
    }

    /// Makes a new chain and key for pages that are served at these names or addresses, for people
    /// who have told their browsers to trust the farm's authority.
    pub fn issue_web(
        &self,
        names: &[String],
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), AuthorityError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(AuthorityError::Crypto)?;
        let mut params = parameters(SERVER_NAME, WEB_VALIDITY)?;
        let named = names.iter().map(|name| match name.parse() {
            Ok(address) => Ok(SanType::IpAddress(address)),
            Err(_) => name.as_str().try_into().map(SanType::DnsName),
        });
        params.subject_alt_names =
            named.collect::<Result<_, _>>().map_err(AuthorityError::Crypto)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let chain = vec![self.finish(params, &key)?, self.certificate.clone()];
        Ok((chain, PrivatePkcs8KeyDer::from(key.serialize_der()).into()))
    }

    fn finish(
        &self,
        mut params: CertificateParams,
        key: &impl PublicKeyData,
    ) -> Result<CertificateDer<'static>, AuthorityError> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        Ok(params.signed_by(key, &self.issuer).map_err(AuthorityError::Crypto)?.der().clone())
    }
}

fn read_key(path: &Path) -> Result<KeyPair, AuthorityError> {
    let bytes = files::read_secret(path, FILE_BYTES_MAX)
        .map_err(|source| AuthorityError::File { path: path.to_owned(), source })?;
    let broken =
        || AuthorityError::Broken { path: path.to_owned(), problem: "no P-256 key is in it" };
    let text = std::str::from_utf8(&bytes).map_err(|_| broken())?;
    KeyPair::from_pkcs8_pem_and_sign_algo(text, &PKCS_ECDSA_P256_SHA256).map_err(|_| broken())
}
