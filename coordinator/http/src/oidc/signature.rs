//! Signatures of tokens, checked by `ring`: the cryptography that TLS has here. Signs nothing.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature as rings;

/// What tokens may be signed with: no algorithm whose key both sides have.
pub(super) const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

static RING: CryptoProvider = CryptoProvider {
    signer_factory: no_signer,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes `ring` check the signatures of this process's tokens.
pub(super) fn use_ring() {
    // A second call finds the first one's.
    let _ = RING.install_default();
}

/// A key for one algorithm.
struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKey,
}

fn verifier(
    algorithm: &Algorithm,
    key: &DecodingKey,
) -> jsonwebtoken::errors::Result<Box<dyn JwtVerifier>> {
    let fits = ALGORITHMS.contains(algorithm) && algorithm.family() == key.family();
    match fits {
        true => Ok(Box::new(RingVerifier { algorithm: *algorithm, key: key.clone() })),
        false => Err(Error::from(ErrorKind::InvalidAlgorithm)),
    }
}

fn no_signer(_: &Algorithm, _: &EncodingKey) -> jsonwebtoken::errors::Result<Box<dyn JwtSigner>> {
    Err(Error::from(ErrorKind::UnsupportedAlgorithm))
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], given: &Vec<u8>) -> Result<(), signature::Error> {
        let checked = match self.key.kind() {
            DecodingKeyKind::RsaModulusExponent { n, e } => {
                let key = rings::RsaPublicKeyComponents { n, e };
                let algorithm = rsa(self.algorithm).ok_or_else(signature::Error::new)?;
                key.verify(algorithm, message, given)
            }
            DecodingKeyKind::SecretOrDer(bytes) => {
                let algorithm = curve(self.algorithm).ok_or_else(signature::Error::new)?;
                rings::UnparsedPublicKey::new(algorithm, bytes).verify(message, given)
            }
        };
        checked.map_err(|_| signature::Error::new())
    }
}

fn rsa(algorithm: Algorithm) -> Option<&'static rings::RsaParameters> {
    match algorithm {
        Algorithm::RS256 => Some(&rings::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Some(&rings::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Some(&rings::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Some(&rings::RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Some(&rings::RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Some(&rings::RSA_PSS_2048_8192_SHA512),
        _ => None,
    }
}

fn curve(algorithm: Algorithm) -> Option<&'static dyn rings::VerificationAlgorithm> {
    match algorithm {
        Algorithm::ES256 => Some(&rings::ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Some(&rings::ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => Some(&rings::ED25519),
        _ => None,
    }
}
