//! Tokens: join tokens, with which a machine or a user can ask for a certificate, and bearer
//! tokens, with which HTTP requests are made for a member. The coordinator keeps the list of them.
//!
//! Text form of a join token: `tsr1_` and base64url (no padding) of 32 bytes of authority key hash,
//! 32 bytes of secret, and 4 bytes of checksum (the start of BLAKE3 over the other 64). With the
//! checksum, a cut or mistyped token gives another error than an unknown one. A bearer token is
//! `tsb1_` and the same of the secret and a checksum over it: the address names the farm.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::fmt;
use std::str::FromStr;
use tessera_protocol::client::Role;

/// First characters of every join token.
pub const PREFIX: &str = "tsr1_";
/// First characters of every bearer token.
pub const BEARER_PREFIX: &str = "tsb1_";
/// Length of a token's secret in bytes.
pub const SECRET_BYTES: usize = 32;
const HASH_BYTES: usize = 32;
const CHECK_BYTES: usize = 4;

/// BLAKE3 of the DER of the authority's SubjectPublicKeyInfo: names a farm.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AuthorityPin(pub [u8; 32]);

impl AuthorityPin {
    /// Returns the pin of a key, given its SubjectPublicKeyInfo in DER.
    pub fn of_public_key(subject_public_key_info: &[u8]) -> Self {
        Self(*blake3::hash(subject_public_key_info).as_bytes())
    }
}

impl fmt::Debug for AuthorityPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A join token: the authority to trust, and the secret to show.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinToken {
    /// The authority that the farm's coordinator must have.
    pub authority: AuthorityPin,
    /// Proves to the coordinator that the bearer was invited.
    pub secret: [u8; SECRET_BYTES],
}

/// Why a token does not let its bearer in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The text is not a token.
    #[error("not a join token: {0}; `tessera token create` prints one that begins with {PREFIX}")]
    Form(&'static str),
    /// The text is not a bearer token.
    #[error(
        "not a token for HTTP; `tessera token create --api` prints one that begins with \
            {BEARER_PREFIX}"
    )]
    Bearer,
    /// The secret is not known.
    #[error("the token is not known here")]
    Unknown,
    /// The token has expired.
    #[error("the token has expired")]
    Expired,
    /// The token has no uses left.
    #[error("the token has been used up")]
    Used,
}

impl JoinToken {
    /// Creates a token with a secret from the operating system's random source. The error is a
    /// failure of that source.
    pub fn generate(authority: AuthorityPin) -> Result<Self, std::io::Error> {
        Ok(Self { authority, secret: random_secret()? })
    }

    /// Returns the hash that the ledger stores; see [`hash_secret`].
    pub fn hash(&self) -> [u8; 32] {
        hash_secret(&self.secret)
    }
}

/// Returns a secret from the operating system's random source.
fn random_secret() -> Result<[u8; SECRET_BYTES], std::io::Error> {
    let mut secret = [0; SECRET_BYTES];
    rustls::crypto::ring::default_provider()
        .secure_random
        .fill(&mut secret)
        .map_err(|_| std::io::Error::other("the operating system gives no random numbers"))?;
    Ok(secret)
}

/// A bearer token: whoever shows it acts for a member, with the rights that its record gives.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken {
    secret: [u8; SECRET_BYTES],
}

impl BearerToken {
    /// Creates a token with a secret from the operating system's random source. The error is a
    /// failure of that source.
    pub fn generate() -> Result<Self, std::io::Error> {
        random_secret().map(|secret| Self { secret })
    }

    /// Returns the hash that the ledger stores; see [`hash_secret`].
    pub fn hash(&self) -> [u8; 32] {
        hash_secret(&self.secret)
    }
}

impl fmt::Display for BearerToken {
    /// Writes the text form. It contains the secret: show it once, to the person who asked.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.secret.to_vec();
        bytes.extend_from_slice(&blake3::hash(&self.secret).as_bytes()[..CHECK_BYTES]);
        write!(f, "{BEARER_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken { secret: hidden }")
    }
}

impl FromStr for BearerToken {
    type Err = TokenError;

    /// Reads the text form.
    fn from_str(text: &str) -> Result<Self, TokenError> {
        let code = text.strip_prefix(BEARER_PREFIX).ok_or(TokenError::Bearer)?;
        let bytes = URL_SAFE_NO_PAD.decode(code).map_err(|_| TokenError::Bearer)?;
        let (secret, check) = bytes.split_at_checked(SECRET_BYTES).ok_or(TokenError::Bearer)?;
        if check != &blake3::hash(secret).as_bytes()[..CHECK_BYTES] {
            return Err(TokenError::Bearer);
        }
        let secret = secret.try_into().map_err(|_| TokenError::Bearer)?;
        Ok(Self { secret })
    }
}

/// Returns the hash of a token's secret, for the ledger. The secret has 256 random bits, so a plain
/// hash cannot be searched.
pub fn hash_secret(secret: &[u8]) -> [u8; 32] {
    blake3::derive_key("tessera 2026 join token ledger", secret)
}

impl fmt::Display for JoinToken {
    /// Writes the text form. It contains the secret: show it once, to the person who asked.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = [self.authority.0, self.secret].concat();
        bytes.extend_from_slice(&blake3::hash(&bytes).as_bytes()[..CHECK_BYTES]);
        write!(f, "{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinToken {{ authority: {:?}, secret: hidden }}", self.authority)
    }
}

impl FromStr for JoinToken {
    type Err = TokenError;

    /// Reads the text form. White space around it is ignored.
    fn from_str(text: &str) -> Result<Self, TokenError> {
        let code =
            text.trim().strip_prefix(PREFIX).ok_or(TokenError::Form("it has another beginning"))?;
        let bytes =
            URL_SAFE_NO_PAD.decode(code).map_err(|_| TokenError::Form("it is cut or mistyped"))?;
        let (body, check) = bytes
            .split_at_checked(HASH_BYTES + SECRET_BYTES)
            .ok_or(TokenError::Form("it is cut short"))?;
        if check != &blake3::hash(body).as_bytes()[..CHECK_BYTES] {
            return Err(TokenError::Form("it is cut or mistyped"));
        }
        let mut token =
            Self { authority: AuthorityPin([0; HASH_BYTES]), secret: [0; SECRET_BYTES] };
        token.authority.0.copy_from_slice(&body[..HASH_BYTES]);
        token.secret.copy_from_slice(&body[HASH_BYTES..]);
        Ok(token)
    }
}

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum TokenUse {
    /// Joining the farm.
    Join,
    /// HTTP requests of programs, for the member of this number.
    Api(u64),
    /// HTTP requests of a browser, for the member of this number.
    Session(u64),
}

impl TokenUse {
    /// Returns the number of the member that the bearer acts for; None for a join token.
    pub fn member(self) -> Option<u64> {
        match self {
            Self::Join => None,
            Self::Api(number) | Self::Session(number) => Some(number),
        }
    }
}

/// One entry of a coordinator's token ledger.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TokenRecord {
    /// [`hash_secret`] of the token's secret.
    pub hash: [u8; 32],
    /// Role that the token gives to its bearer.
    pub role: Role,
    /// When the token expires, in seconds since the Unix epoch.
    pub expires_at: u64,
    /// How often the token can still be used.
    pub uses_left: u32,
    /// Pool that a node joins with the token.
    pub pool: Option<String>,
    /// How often the token can be used in all.
    pub uses: u32,
    /// Who made the token: role and name.
    pub made_by: String,
    /// Name that the bearer must have.
    pub name: Option<String>,
    /// Whether the bearer replaces the present holder of the name.
    pub replace: bool,
    /// What the token is for.
    pub purpose: TokenUse,
}

/// Rights that a token gives to its bearer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The role.
    pub role: Role,
    /// A node's pool.
    pub pool: Option<String>,
    /// Name that the bearer must have.
    pub name: Option<String>,
    /// Whether the bearer replaces the present holder of the name.
    pub replace: bool,
}

impl TokenRecord {
    /// Returns the first 12 digits of the hash, which name the token.
    pub fn id(&self) -> String {
        self.hash[..6].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Checks whether this secret can be used at this time (seconds since the Unix epoch). Counts
    /// no use.
    pub fn check(&self, secret: &[u8], now_secs: u64) -> Result<Grant, TokenError> {
        // blake3's comparison takes the same time wherever the bytes differ.
        if blake3::Hash::from(hash_secret(secret)) != blake3::Hash::from(self.hash) {
            return Err(TokenError::Unknown);
        }
        if now_secs >= self.expires_at {
            return Err(TokenError::Expired);
        }
        if self.uses_left == 0 {
            return Err(TokenError::Used);
        }
        let (role, replace) = (self.role, self.replace);
        Ok(Grant { role, pool: self.pool.clone(), name: self.name.clone(), replace })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> JoinToken {
        JoinToken { authority: AuthorityPin([7; 32]), secret: [9; 32] }
    }

    #[test]
    fn a_token_survives_its_text() {
        let text = token().to_string();
        assert_eq!(text.parse::<JoinToken>().unwrap(), token());
        assert_eq!(format!(" {text}\n").parse::<JoinToken>().unwrap(), token());
        assert!(!format!("{:?}", token()).contains("9, 9"));
    }

    #[test]
    fn a_mistyped_or_cut_token_is_refused() {
        let text = token().to_string();
        for length in 0..text.len() {
            assert!(
                matches!(text[..length].parse::<JoinToken>(), Err(TokenError::Form(_))),
                "{length}"
            );
        }
        assert!(matches!(
            text.replacen("CQkJ", "CQkK", 1).parse::<JoinToken>(),
            Err(TokenError::Form(_))
        ));
        assert!(matches!((text + "AAAA").parse::<JoinToken>(), Err(TokenError::Form(_))));
    }

    fn record() -> TokenRecord {
        TokenRecord {
            hash: token().hash(),
            role: Role::Node,
            expires_at: 100,
            uses_left: 1,
            pool: Some("gpu".into()),
            uses: 3,
            made_by: "admin ada".into(),
            name: Some("rig".into()),
            replace: true,
            purpose: TokenUse::Join,
        }
    }

    #[test]
    fn a_ledger_entry_is_read_back_and_has_an_id() {
        let bytes = tessera_protocol::encode(&record()).unwrap();
        assert_eq!(tessera_protocol::decode::<TokenRecord>(&bytes).unwrap(), record());
        for length in 0..bytes.len() {
            assert!(tessera_protocol::decode::<TokenRecord>(&bytes[..length]).is_err(), "{length}");
        }
        assert_eq!(TokenRecord { hash: [7; 32], ..record() }.id(), "070707070707");
    }

    #[test]
    fn a_bearer_token_is_read_whole_or_not_at_all() {
        let token = BearerToken { secret: [9; 32] };
        let text = token.to_string();
        assert_eq!(text.parse::<BearerToken>().unwrap(), token);
        assert!(!format!("{token:?}").contains("9, 9"));
        for length in 0..text.len() {
            assert_eq!(text[..length].parse::<BearerToken>(), Err(TokenError::Bearer), "{length}");
        }
        for wrong in [text.replacen("CQkJ", "CQkK", 1), text.clone() + "AAAA", text + " "] {
            assert_eq!(wrong.parse::<BearerToken>(), Err(TokenError::Bearer), "{wrong}");
        }
        let join = super::tests::token().to_string();
        assert_eq!(join.parse::<BearerToken>(), Err(TokenError::Bearer));
        assert_ne!(
            BearerToken::generate().unwrap().hash(),
            BearerToken::generate().unwrap().hash()
        );
    }

    #[test]
    fn two_generated_tokens_differ() {
        let pin = AuthorityPin([0; 32]);
        assert_ne!(
            JoinToken::generate(pin).unwrap().secret,
            JoinToken::generate(pin).unwrap().secret
        );
    }

    #[test]
    fn a_token_record_checks_secret_expiry_and_uses() {
        let record = record();
        let (pool, name) = (Some("gpu".into()), Some("rig".into()));
        let grant = Grant { role: Role::Node, pool, name, replace: true };
        assert_eq!(record.check(&[9; 32], 99), Ok(grant));
        assert_eq!(record.check(&[9; 32], 100), Err(TokenError::Expired));
        assert_eq!(record.check(&[8; 32], 99), Err(TokenError::Unknown));
        assert_eq!(record.check(&[], 99), Err(TokenError::Unknown));
        let used = TokenRecord { uses_left: 0, ..record };
        assert_eq!(used.check(&[9; 32], 99), Err(TokenError::Used));
    }
}
